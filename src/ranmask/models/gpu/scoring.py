"""From copies to logits: batches are cut on the host, laid out and computed on the device.

The host does not wait for the device before all is asked for: while batches are computed, it
prepares the next ones.  `select` finds the scorer of a model: one that was seen to compute the same
function, or none.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch

from ranmask.errors import ClassifierError, ModelError
from ranmask.models.base import MaskedCopies, Scores
from ranmask.models.batching import Batch
from ranmask.models.encoding import TokenRows, WordEncoder
from ranmask.models.flat import Ids, ranges
from ranmask.models.gpu.forward import PackedEncoder, Start, TorchOperations
from ranmask.models.gpu.layout import FEW_COPIES, SharedRows, spell
from ranmask.models.gpu.packing import Packing, cut, pack, to_device
from ranmask.models.gpu.weights import encoder_parts
from ranmask.models.hub import first_line
from ranmask.models.numerics import SAME_LIMIT, Probes, relative_difference

_COARSE_STEPS = 32  # of a smaller dtype's rounding, by which its logits may differ
_ROWS_AT_ONCE = 1 << 15  # laid out together, before the device has work

_Begin: TypeAlias = Callable[[Packing], tuple[Start, torch.Tensor | None]]
"""What the tokens of a batch begin with, and their places in it."""


class PackedScorer:
    """Logits of copies and token rows, not checked to be finite.

    ``model`` is one whose structure `weights` knows; a batch has at most so many ``tokens``.
    """

    def __init__(
        self, model: Any, operations: TorchOperations, encoder: WordEncoder, tokens: int
    ) -> None:
        self._model = PackedEncoder(encoder_parts(model), operations)
        self._operations = operations
        self._encoder = encoder
        self._tokens = tokens

    def for_model(self, model: Any) -> PackedScorer:
        """The same for a copy of the model, in another dtype or on another device."""
        return PackedScorer(model, self._operations, self._encoder, self._tokens)

    def score(self, copies: Sequence[MaskedCopies]) -> Scores:
        """Logits of all copies of all texts, in their order."""
        return self.launch(copies)()

    def launch(self, copies: Sequence[MaskedCopies]) -> Callable[[], Scores]:
        """Begin to compute `score` on the device; what is returned waits for it."""
        others: list[int] = []
        with self._computing():
            found = [*self._shared(copies, others)]
            if others:
                rows = self._encoder.rows_of_all([copies[number] for number in others])
                found.append((others, self._of_rows(rows, self._tokens)))
            if not found:
                raise ClassifierError("no copies to score")
            fetched = _to_host(torch.cat([part for _, part in found]))
        order = np.array([number for numbers, _ in found for number in numbers])

        def scores() -> Scores:
            logits = fetched()
            if not others:
                return logits
            counts = np.array([len(text) for text in copies])
            placed = np.empty_like(logits)
            placed[ranges((np.cumsum(counts) - counts)[order], counts[order])] = logits
            return placed

        return scores

    def score_rows(self, rows: Sequence[TokenRows], tokens: int | None = None) -> Scores:
        """Logits of token rows, in their order; ``tokens``: most of a batch."""
        if not rows:
            raise ClassifierError("no copies to score")
        with self._computing():
            return _to_host(self._of_rows(rows, tokens or self._tokens))()

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """On the model's own device, which need not be PyTorch's current one."""
        device = self._model.device
        own = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
        with torch.inference_mode(), own:
            self._model.refresh()
            yield

    def _shared(
        self, copies: Sequence[MaskedCopies], others: list[int]
    ) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Logits of texts that are laid out on the device, by batches; the ``others`` are noted."""
        many = [number for number, text in enumerate(copies) if len(text) >= FEW_COPIES]
        others.extend(number for number, text in enumerate(copies) if len(text) < FEW_COPIES)
        rows = np.array([len(copies[number]) for number in many], dtype=np.int64)
        # By the rows before a text, so that the last one of a full list is not left by itself.
        pieces = (np.cumsum(rows) - rows) // _ROWS_AT_ONCE
        cuts = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(many)]
        for start, stop in pairwise(cuts):
            some = many[start:stop]
            if not some:
                continue
            spelt = spell([copies[number] for number in some], self._encoder)
            unsuited = np.flatnonzero(~spelt.suit(self._encoder)).tolist()
            others.extend(some[text] for text in unsuited)
            for texts in spelt.batches(self._encoder, self._tokens):
                shared = SharedRows(spelt.some(texts), self._encoder, self._model.device)
                yield [some[text] for text in texts], self._of_shared(shared)

    def _of_shared(self, rows: SharedRows) -> torch.Tensor:
        start = self._model.start(*rows.table())
        return self._all(rows.lengths, self._tokens, lambda packing: (start, rows.index(packing)))

    def _of_rows(self, rows: Sequence[TokenRows], tokens: int) -> torch.Tensor:
        flat = []
        for text in rows:
            column = np.arange(text.ids.shape[1])
            used = column < text.lengths[:, None]
            types = np.where(column < text.first_body_place, 0, text.body_type)
            positions = text.positions[used] + self._encoder.first_position
            flat.append([text.ids[used], positions, np.broadcast_to(types, used.shape)[used]])
        lengths = np.concatenate([text.lengths for text in rows])
        columns, first = to_device(
            [np.concatenate(flat, axis=1), np.cumsum(lengths) - lengths], self._model.device
        )

        def begin(packing: Packing) -> tuple[Start, None]:
            moved = first[packing.rows] - packing.starts
            places = torch.arange(packing.tokens, device=moved.device) + moved[packing.owner]
            return self._model.start(*columns[:, places]), None

        return self._all(lengths, tokens, begin)

    def _all(self, lengths: Ids, tokens: int, begin: _Begin) -> torch.Tensor:
        """Logits of all rows, on the device."""
        logits: torch.Tensor | None = None
        for rows, rising in cut(lengths, tokens):
            packing = pack(rows, rising, self._model.device)
            part = self._model.logits(*begin(packing), packing).float()
            if logits is None:
                logits = part.new_empty(len(lengths), part.shape[1])
            logits[packing.rows] = part
        if logits is None:
            raise ClassifierError("no copies to score")
        return logits


def _to_host(logits: torch.Tensor) -> Callable[[], Scores]:
    """Logits on their way to the host; what is returned waits for these, and for nothing later."""
    there = logits
    if logits.device.type == "cuda":
        there = torch.empty(logits.shape, dtype=logits.dtype, pin_memory=True)
        there.copy_(logits, non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()

    def doubles() -> Scores:
        if logits.device.type == "cuda":
            arrived.synchronize()
        found: Scores = there.numpy().astype(np.float64)
        return found

    return doubles


def select(
    model: Any, exact: Any, run: Callable[[Any, Batch], Scores], random: Probes
) -> tuple[PackedScorer | None, list[str]]:
    """The fastest scorer for ``model`` whose logits are the model's own; and why others are not.

    Compared in single precision, where rounding hides nothing: ``exact`` is the same model in it.
    In the model's own dtype only coarse errors would show, and are looked for.

    ``run``: logits of a batch by a model's own forward; ``random``: what they are compared on.
    """
    try:
        encoder_parts(model)
    except ModelError as error:
        return None, [str(error)]
    kinds, copies = random.all_kinds(), random.copies()
    probes = [kinds, [kinds[0], random.longest()], [random.encoder.rows(copies)]]
    own = [random.padded_logits(partial(run, exact), rows) for rows in probes]

    def build(model: Any, operations: TorchOperations, limit: float) -> PackedScorer:
        scorer = PackedScorer(model, operations, random.encoder, random.tokens)
        found = [*map(scorer.score_rows, probes), scorer.score([copies])]
        for logits, expected in zip(found, [*own, own[-1]], strict=True):
            difference = relative_difference(logits, expected)
            if not difference <= limit:  # nan is not
                raise ModelError(f"it moves logits by {difference:.1e} of their size")
        return scorer

    coarse = max(SAME_LIMIT, _COARSE_STEPS * torch.finfo(model.dtype).eps)
    complaints: list[str] = []
    for operations in _operations(model.device):
        try:
            build(exact, operations, SAME_LIMIT)
            return build(model, operations, coarse), complaints
        except Exception as error:  # whatever a compiler or a driver raises: the next may work
            name = type(operations).__name__
            complaints.append(f"{name} cannot be used: {first_line(error)}")
    return None, complaints


def _operations(device: torch.device) -> Iterator[TorchOperations]:
    """What may be tried on a device, fastest first."""
    if device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        from ranmask.models.gpu.kernels import TritonOperations

        yield TritonOperations()
    yield TorchOperations()

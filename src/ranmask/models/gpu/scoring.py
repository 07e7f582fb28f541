"""From copies to logits: batches are cut on the host, laid out and computed on the device.

The host does not wait for the device before all is asked for: while batches are computed, it
prepares the next ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeAlias

import numpy as np
import torch

from ranmask.errors import ClassifierError
from ranmask.models.base import MaskedCopies, Scores
from ranmask.models.batching import Batch
from ranmask.models.encoding import Ids, TokenRows, WordEncoder
from ranmask.models.frames import Frame
from ranmask.models.gpu.forward import PackedEncoder, Start
from ranmask.models.gpu.layout import FEW_COPIES, SharedRows, SpeltText, spell, suits
from ranmask.models.gpu.packing import Packing, cut, pack, to_device
from ranmask.models.gpu.weights import known_parts

_TEXTS_AT_ONCE = 16

_Begin: TypeAlias = Callable[[Packing], tuple[Start, torch.Tensor | None]]
"""What the tokens of a batch begin with, and their places in it."""


class PackedEngine:
    """Logits of copies, token rows and batches, not checked to be finite.

    Args:
        model: What computes logits.
        encoder: What makes token rows.
        first_position: The position that the model gives to a row's first token.
        tokens: Most tokens of a batch.
    """

    def __init__(
        self, model: PackedEncoder, encoder: WordEncoder, first_position: int, tokens: int
    ) -> None:
        self._model = model
        self._encoder = encoder
        self._first_position = first_position
        self._tokens = tokens

    def for_model(self, model: Any) -> PackedEngine:
        """The same engine for a copy of the model, in another dtype or on another device."""
        return PackedEngine(
            self._model.for_parts(known_parts(model)),
            self._encoder,
            self._first_position,
            self._tokens,
        )

    def score(self, copies: Sequence[MaskedCopies]) -> Scores:
        """Logits of all copies of all texts, in their order."""
        found: list[tuple[list[int], torch.Tensor]] = []
        others: list[int] = []
        with self._computing():
            for numbers, texts in self._shared(copies, others):
                found.append((numbers, self._of_shared(texts)))
            if others:
                rows = self._encoder.rows_of_all([copies[number] for number in others])
                found.append((others, self._of_rows(rows, self._tokens)))
            return _in_order(found, [len(one) for one in copies])

    def score_rows(self, rows: Sequence[TokenRows], tokens: int | None = None) -> Scores:
        """Logits of token rows, in their order; ``tokens``: most of a batch."""
        if not rows:
            raise ClassifierError("no copies to score")
        with self._computing():
            return _on_host(self._of_rows(rows, tokens or self._tokens))

    def score_batch(self, batch: Batch) -> Scores:
        """Logits of one batch, without its padding."""
        width = batch.ids.shape[1]
        lengths = np.full(len(batch.ids), width)
        if batch.visible is not None:
            lengths = batch.visible.sum(axis=1)
        used = np.arange(width) < lengths[:, None]
        with self._computing():
            begin = self._begin_flat(
                lengths, batch.ids[used], batch.positions[used], batch.types[used]
            )
            return _on_host(self._all(lengths, int(lengths.sum()), begin))

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
    ) -> Iterator[tuple[list[int], list[SpeltText]]]:
        """Texts to lay out on the device, a batch at a time; the ``others`` are noted."""
        many = [number for number, one in enumerate(copies) if len(one) >= FEW_COPIES]
        others.extend(number for number, one in enumerate(copies) if len(one) < FEW_COPIES)
        numbers: list[int] = []
        texts: list[SpeltText] = []
        tokens = 0
        for number, words, frame in self._spelt(copies, many):
            text = spell(copies[number], words, frame, self._encoder.hide)
            if not suits(text, self._encoder):
                others.append(number)
                continue
            own = int(text.lengths.sum())
            if texts and (tokens + own > self._tokens or not texts[0].goes_with(text)):
                yield numbers, texts
                numbers, texts, tokens = [], [], 0
            numbers.append(number)
            texts.append(text)
            tokens += own
        if texts:
            yield numbers, texts

    def _spelt(
        self, copies: Sequence[MaskedCopies], numbers: Sequence[int]
    ) -> Iterator[tuple[int, list[tuple[int, ...]], Frame]]:
        """Some texts' words as tokens, a few at a time: so that the device soon has work."""
        for start in range(0, len(numbers), _TEXTS_AT_ONCE):
            some = numbers[start : start + _TEXTS_AT_ONCE]
            spelt = self._encoder.spelt([copies[number] for number in some])
            for number, (words, frame) in zip(some, spelt, strict=True):
                yield number, words, frame

    def _of_shared(self, texts: Sequence[SpeltText]) -> torch.Tensor:
        rows = SharedRows(texts, self._encoder, self._first_position, self._model.device)
        start = self._model.start(rows.tokens, rows.positions, rows.types)
        return self._all(rows.lengths, self._tokens, lambda packing: (start, rows.index(packing)))

    def _of_rows(self, rows: Sequence[TokenRows], tokens: int) -> torch.Tensor:
        used = [np.arange(text.ids.shape[1]) < text.lengths[:, None] for text in rows]
        types = [
            np.broadcast_to(
                np.where(np.arange(one.shape[1]) < text.first_body_place, 0, text.body_type),
                one.shape,
            )
            for text, one in zip(rows, used, strict=True)
        ]
        lengths = np.concatenate([text.lengths for text in rows])
        begin = self._begin_flat(
            lengths,
            np.concatenate([text.ids[one] for text, one in zip(rows, used, strict=True)]),
            np.concatenate([text.positions[one] for text, one in zip(rows, used, strict=True)]),
            np.concatenate([kind[one] for kind, one in zip(types, used, strict=True)]),
        )
        return self._all(lengths, tokens, begin)

    def _begin_flat(self, lengths: Ids, ids: Ids, positions: Ids, types: Ids) -> _Begin:
        """For rows whose tokens are there one after another."""
        columns, first = to_device(
            [
                np.stack([ids, positions + self._first_position, types]),
                np.cumsum(lengths) - lengths,
            ],
            self._model.device,
        )

        def begin(packing: Packing) -> tuple[Start, torch.Tensor | None]:
            moved = first[packing.rows] - packing.starts
            places = torch.arange(packing.tokens, device=moved.device) + moved[packing.owner]
            return self._model.start(*columns[:, places]), None

        return begin

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


def _in_order(found: Sequence[tuple[list[int], torch.Tensor]], sizes: Sequence[int]) -> Scores:
    """Logits of texts, found in another order."""
    if not found:
        raise ClassifierError("no copies to score")
    order = [number for numbers, _ in found for number in numbers]
    logits = _on_host(torch.cat([part for _, part in found]))
    if order == sorted(order):
        return logits
    ends = np.cumsum([sizes[number] for number in order])[:-1]
    parts = dict(zip(order, np.split(logits, ends), strict=True))
    return np.concatenate([parts[number] for number in range(len(sizes))])


def _on_host(logits: torch.Tensor) -> Scores:
    doubles: Scores = logits.cpu().numpy().astype(np.float64)
    return doubles

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
from ranmask.models.batching import by_text
from ranmask.models.encoding import Ids, TokenRows, WordEncoder
from ranmask.models.gpu.forward import PackedEncoder, Start
from ranmask.models.gpu.layout import FEW_COPIES, SharedRows, SpeltText, spell
from ranmask.models.gpu.operations import TorchOperations
from ranmask.models.gpu.packing import Packing, cut, pack, to_device
from ranmask.models.gpu.weights import encoder_parts

_TEXTS_AT_ONCE = 16  # tokenised together: few, so that the device soon has work

_Begin: TypeAlias = Callable[[Packing], tuple[Start, torch.Tensor | None]]
"""What the tokens of a batch begin with, and their places in it."""


class PackedScorer:
    """Logits of copies and token rows, not checked to be finite.

    Args:
        model: A model whose structure `weights` knows.
        operations: What computes it.
        encoder: What makes token rows.
        first_position: The position that the model gives to a row's first token.
        tokens: Most tokens of a batch.
    """

    def __init__(
        self,
        model: Any,
        operations: TorchOperations,
        encoder: WordEncoder,
        first_position: int,
        tokens: int,
    ) -> None:
        self._model = PackedEncoder(encoder_parts(model), operations)
        self._given = operations, encoder, first_position, tokens
        self._encoder = encoder
        self._first_position = first_position
        self._tokens = tokens

    def for_model(self, model: Any) -> PackedScorer:
        """The same for a copy of the model, in another dtype or on another device."""
        return PackedScorer(model, *self._given)

    def score(self, copies: Sequence[MaskedCopies]) -> Scores:
        """Logits of all copies of all texts, in their order."""
        others: list[int] = []
        with self._computing():
            found = [
                (numbers, self._of_shared(texts)) for numbers, texts in self._shared(copies, others)
            ]
            if others:
                rows = self._encoder.rows_of_all([copies[number] for number in others])
                found.append((others, self._of_rows(rows, self._tokens)))
            if not found:
                raise ClassifierError("no copies to score")
            logits = _on_host(torch.cat([part for _, part in found]))
        order = [number for numbers, _ in found for number in numbers]
        if order == sorted(order):
            return logits
        parts = dict(zip(order, by_text(logits, [copies[place] for place in order]), strict=True))
        return np.concatenate([parts[number] for number in range(len(copies))])

    def score_rows(self, rows: Sequence[TokenRows], tokens: int | None = None) -> Scores:
        """Logits of token rows, in their order; ``tokens``: most of a batch."""
        if not rows:
            raise ClassifierError("no copies to score")
        with self._computing():
            return _on_host(self._of_rows(rows, tokens or self._tokens))

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
        many = [number for number, text in enumerate(copies) if len(text) >= FEW_COPIES]
        others.extend(number for number, text in enumerate(copies) if len(text) < FEW_COPIES)
        numbers: list[int] = []
        texts: list[SpeltText] = []
        tokens = 0
        for number, text in self._spelt(copies, many):
            if not text.suits(self._encoder):
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
    ) -> Iterator[tuple[int, SpeltText]]:
        """Some of the texts, as tokens."""
        for start in range(0, len(numbers), _TEXTS_AT_ONCE):
            some = numbers[start : start + _TEXTS_AT_ONCE]
            texts = spell([copies[number] for number in some], self._encoder)
            yield from zip(some, texts, strict=True)

    def _of_shared(self, texts: Sequence[SpeltText]) -> torch.Tensor:
        rows = SharedRows(texts, self._encoder, self._first_position, self._model.device)
        start = self._model.start(rows.tokens, rows.positions, rows.types)
        return self._all(rows.lengths, self._tokens, lambda packing: (start, rows.index(packing)))

    def _of_rows(self, rows: Sequence[TokenRows], tokens: int) -> torch.Tensor:
        flat = []
        for text in rows:
            column = np.arange(text.ids.shape[1])
            used = column < text.lengths[:, None]
            types = np.where(column < text.first_body_place, 0, text.body_type)
            positions = text.positions[used] + self._first_position
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


def _on_host(logits: torch.Tensor) -> Scores:
    doubles: Scores = logits.cpu().numpy().astype(np.float64)
    return doubles

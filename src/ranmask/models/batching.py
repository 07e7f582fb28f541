"""Batches of rows, filled by number of tokens.

`batches` pads rows of similar length: for training, and where nothing is proved.  `even_batches`
holds rows of one length, a multiple of a step.  Libraries that add up in one order for all such
shapes give a row the same bits in any batch (`numerics`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.models.encoding import TokenRows
from ranmask.models.flat import Ids


@dataclass(frozen=True, eq=False)
class Batch:
    """Token arrays of shape (rows, width), and the place of each row among all rows.

    ``visible`` is None where no row is padded.  Rows beyond those that have a place fill the batch.
    """

    places: npt.NDArray[np.intp]
    ids: Ids
    positions: Ids
    types: Ids
    visible: Ids | None

    def some(self, rows: npt.NDArray[np.intp]) -> Batch:
        """A batch of some of the rows, each with a place of its own."""
        ids, positions, types = (part[rows] for part in (self.ids, self.positions, self.types))
        visible = None if self.visible is None else self.visible[rows]
        return Batch(np.arange(len(rows)), ids, positions, types, visible)

    def inputs(self, types: bool, device: Any = "cpu") -> dict[str, Any]:
        """What a model's forward takes, as tensors; ``types``: whether it takes token types."""
        import torch

        given = {"input_ids": self.ids}
        if self.visible is not None:
            given["attention_mask"] = self.visible
        if types:
            given["token_type_ids"] = self.types
        return {name: torch.from_numpy(array).to(device) for name, array in given.items()}


def batches(
    texts: Sequence[TokenRows], *, tokens: int, least_rows: int, pad_id: int
) -> Iterator[Batch]:
    """All rows of all texts, shortest first, in batches of at most ``tokens`` tokens.

    A batch also ends where the length changes, once it has ``least_rows`` rows: most batches
    then need no padding at all.  A row longer than ``tokens`` is a batch of its own.
    """
    rows = _Rows(texts, pad_id)
    rising, total, start = rows.rising, len(rows.rising), 0
    while start < total:
        # Rows of the same length as the first, as many as fit ...
        length = int(rising[start])
        same = int(np.searchsorted(rising, length, side="right"))
        stop = min(same, start + max(1, tokens // length))
        # ... and longer ones, while the batch is too small to be worth a pass.
        while stop == same and stop - start < least_rows and stop < total:
            length = int(rising[stop])
            room = max(1, tokens // length) - (stop - start)
            if room <= 0:
                break
            same = int(np.searchsorted(rising, length, side="right"))
            stop = min(same, stop + room, start + max(least_rows, stop - start + 1))
        yield rows.batch(rows.order[start:stop])
        start = stop


@dataclass(frozen=True)
class RowCount:
    """How many rows a batch may have: a multiple of ``step``, and ``most`` where that is given."""

    step: int
    most: int | None = None


def even_batches(
    texts: Sequence[TokenRows], *, tokens: int, count: RowCount, pad_id: int
) -> Iterator[Batch]:
    """All rows of all texts in batches of one length each, of about ``tokens`` tokens at most.

    A batch that would have another number of rows than ``count`` allows repeats some of its own.
    """
    rows = _Rows(texts, pad_id)
    starts = np.flatnonzero(np.diff(rows.rising, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(rows.order)], strict=True):
        most = max(1, tokens // int(rows.rising[start]) // count.step) * count.step
        most = min(most, count.most or most)
        for first in range(start, stop, most):
            places = rows.order[first : min(first + most, stop)]
            filled = np.resize(places, -(-len(places) // count.step) * count.step)
            yield replace(rows.batch(filled), places=places)


class _Rows:
    """All rows of all texts, in ``order`` of their ``rising`` lengths."""

    def __init__(self, texts: Sequence[TokenRows], pad_id: int) -> None:
        self._texts, self._pad_id = texts, pad_id
        self._owner = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        self._row = np.concatenate([np.arange(len(text)) for text in texts])
        self._lengths = np.concatenate([text.lengths for text in texts])
        self.order = np.argsort(self._lengths, kind="stable")
        self.rising = self._lengths[self.order]

    def batch(self, places: npt.NDArray[np.intp]) -> Batch:
        """The rows at ``places``, filled up to the longest."""
        owner, row, lengths = self._owner[places], self._row[places], self._lengths[places]
        shape = (len(places), int(lengths.max()))
        ids = np.full(shape, self._pad_id, dtype=np.int64)
        positions, types = np.zeros((2, *shape), dtype=np.int64)
        for index in np.unique(owner):
            text, mine = self._texts[index], np.flatnonzero(owner == index)
            width = min(shape[1], text.ids.shape[1])
            ids[mine, :width] = text.ids[row[mine], :width]
            positions[mine, :width] = text.positions[row[mine], :width]
            types[mine, text.first_body_place :] = text.body_type
        padded = int(lengths.min()) < shape[1]
        visible = (np.arange(shape[1]) < lengths[:, None]).astype(np.int64) if padded else None
        return Batch(places, ids, positions, types, visible)

"""Batches of rows of similar length, filled by number of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranmask.classifiers.encoding import Ids, TokenRows


@dataclass(frozen=True, eq=False)
class Batch:
    """Token arrays of shape (rows, width), and the place of each row among all rows.

    ``visible`` is None where no row is padded.
    """

    places: npt.NDArray[np.intp]
    ids: Ids
    positions: Ids
    types: Ids
    visible: Ids | None


def batches(
    texts: Sequence[TokenRows], *, tokens: int, least_rows: int, pad_id: int
) -> Iterator[Batch]:
    """All rows of all texts, shortest first, in batches of at most ``tokens`` tokens.

    A batch also ends where the length changes, once it has ``least_rows`` rows: most batches
    then need no padding at all.  A row longer than ``tokens`` is a batch of its own.
    """
    owner = np.repeat(np.arange(len(texts)), [len(text.lengths) for text in texts])
    row = np.concatenate([np.arange(len(text.lengths)) for text in texts])
    lengths = np.concatenate([text.lengths for text in texts])
    order = np.argsort(lengths, kind="stable")
    for start, stop in _cuts(lengths[order], tokens, least_rows):
        places = order[start:stop]
        yield _gather(texts, owner[places], row[places], lengths[places], places, pad_id)


def _cuts(rising: Ids, tokens: int, least_rows: int) -> Iterator[tuple[int, int]]:
    """Where to cut rows of rising length into batches."""
    total = len(rising)
    start = 0
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
        yield start, stop
        start = stop


def _gather(
    texts: Sequence[TokenRows],
    owner: npt.NDArray[np.intp],
    row: npt.NDArray[np.intp],
    lengths: Ids,
    places: npt.NDArray[np.intp],
    pad_id: int,
) -> Batch:
    shape = (len(places), int(lengths.max()))
    ids = np.full(shape, pad_id, dtype=np.int64)
    positions = np.zeros(shape, dtype=np.int64)
    types = np.zeros(shape, dtype=np.int64)
    for index in np.unique(owner):
        text, mine = texts[index], np.flatnonzero(owner == index)
        width = min(shape[1], text.ids.shape[1])
        ids[mine, :width] = text.ids[row[mine], :width]
        positions[mine, :width] = text.positions[row[mine], :width]
        types[mine, text.first_body_place :] = text.body_type
    columns = np.arange(shape[1])
    padded = int(lengths.min()) < shape[1]
    visible = (columns < lengths[:, None]).astype(np.int64) if padded else None
    return Batch(places, ids, positions, types, visible)

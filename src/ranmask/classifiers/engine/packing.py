"""Rows of a batch one after another, shortest first, with nothing between them.

A packed batch has no padding: what a layer does to each token by itself is one product over all
tokens.  Only attention needs to know where rows begin.  For it rows are gathered into *groups*:
whole rows of one length that have a few dozen tokens together, or one longer row.

What is added up for a row, and in which order, follows from its length alone, never from the rows
beside it: a group has as many columns as the longest row of its batch asks for, `cut` puts no two
rows that ask for different numbers into one batch, and within a group each row has a *slot* of its
own, a power of two of columns, so that a sum of its columns is the same tree in every slot.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from ranmask.classifiers.encoding import Ids

_GROUPS = (16, 32, 64)  # columns of a group: the first that a row fits into


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the rows of a batch lie, on the device.

    ``starts`` has the first token of each row, ``owner`` the row of each token.  ``groups`` holds
    (first row, end of rows, first token, end of tokens, length of a row, binary logarithm of the
    columns of its slot) a group; ``tiles`` the same with tokens instead of rows, where a row longer
    than ``at_once`` is several tiles that see all of its tokens.  No tile has more than ``at_once``
    tokens, the slots of a group of several rows no more columns, and no group more than half as
    many rows.  ``runs`` are the lengths that occur, each with its number of rows.
    """

    rows: torch.Tensor
    lengths: torch.Tensor
    starts: torch.Tensor
    owner: torch.Tensor
    groups: torch.Tensor
    tiles: torch.Tensor
    runs: tuple[tuple[int, int], ...]
    tokens: int
    longest: int
    at_once: int

    @property
    def has_slots(self) -> bool:
        """Whether rows may share a group: where groups are larger, `cut` gives each its own."""
        return self.at_once == _GROUPS[0]


def pack(rows: npt.NDArray[np.intp], lengths: Ids, device: torch.device) -> Packing:
    """The packing of ``rows`` of a list, whose lengths rise."""
    first = np.flatnonzero(np.diff(lengths, prepend=0))  # no row is empty
    sizes, counts = lengths[first], np.diff(first, append=len(lengths))
    total = int((sizes * counts).sum())
    at_once = _columns(int(lengths[-1]))
    groups = _groups(sizes, counts, at_once)
    there = to_device([rows, sizes, counts, groups, _tiles(groups, at_once)], device)
    of_rows = torch.repeat_interleave(there[1], there[2], output_size=len(rows))
    everyone = torch.arange(len(rows), dtype=torch.int32, device=device)
    return Packing(
        rows=there[0],
        lengths=of_rows,
        starts=of_rows.cumsum(0) - of_rows,
        owner=torch.repeat_interleave(everyone, of_rows, output_size=total),
        groups=there[3],
        tiles=there[4],
        runs=tuple(zip(sizes.tolist(), counts.tolist(), strict=True)),
        tokens=total,
        longest=int(lengths[-1]),
        at_once=at_once,
    )


def cut(lengths: Ids, tokens: int) -> Iterator[tuple[npt.NDArray[np.intp], Ids]]:
    """Rows in even batches of at most ``tokens`` tokens, or of one row, with their lengths.

    The rows of a batch have groups of as many columns.
    """
    # Numbers of 16 bits are sorted several times as fast.
    order = np.argsort(
        lengths.astype(np.uint16 if lengths.max() < 1 << 16 else np.int64), kind="stable"
    )
    rising = lengths[order]
    bounds = [0, *np.searchsorted(rising, _GROUPS[:-1], side="right").tolist(), len(rising)]
    for first, last in itertools.pairwise(bounds):
        for start, stop in _even_parts(rising[first:last], tokens):
            yield order[first + start : first + stop], rising[first + start : first + stop]


def _even_parts(rising: Ids, tokens: int) -> Iterator[tuple[int, int]]:
    """Where to cut rows of rising length into even parts."""
    if not len(rising):
        return
    ends = np.cumsum(rising)
    batches = -(-int(ends[-1]) // tokens)
    most = min(tokens, -(-int(ends[-1]) // batches) + int(rising[-1]))
    start = 0
    while start < len(rising):
        done = ends[start] - rising[start]
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield start, stop
        start = stop


def _columns(length: int) -> int:
    """Columns of the group that a row is computed in."""
    return next((size for size in _GROUPS if length <= size), _GROUPS[-1])


def to_device(
    arrays: Sequence[npt.NDArray[np.integer]], device: torch.device
) -> list[torch.Tensor]:
    """Arrays on the device, in one go; the host does not wait for them to arrive."""
    ends = np.cumsum([array.size for array in arrays]).tolist()
    together = torch.empty(ends[-1], dtype=torch.int64, pin_memory=device.type == "cuda")
    np.concatenate([array.reshape(-1) for array in arrays], out=together.numpy())
    moved = together.to(device, non_blocking=True)
    return [
        moved[end - array.size : end].view(array.shape)
        for array, end in zip(arrays, ends, strict=True)
    ]


def _groups(sizes: Ids, counts: Ids, at_once: int) -> Ids:
    """The groups of all rows: ``counts`` rows of each of the ``sizes``."""
    slots = np.array([max(1, (size - 1).bit_length()) for size in sizes.tolist()])
    fit = np.maximum(at_once >> slots, 1)
    run, number = _numbered(-(-counts // fit))
    first_row = (np.cumsum(counts) - counts)[run]
    first_token = (np.cumsum(sizes * counts) - sizes * counts)[run]
    begin = number * fit[run]
    end = np.minimum(begin + fit[run], counts[run])
    size = sizes[run]
    tokens = first_token + begin * size, first_token + end * size
    return np.stack([first_row + begin, first_row + end, *tokens, size, slots[run]], axis=1)


def _tiles(groups: Ids, at_once: int) -> Ids:
    """The tiles of groups."""
    begin, end = groups[:, 2], groups[:, 3]
    group, number = _numbered(-(-(end - begin) // at_once))
    first = begin[group] + number * at_once
    stop = np.minimum(first + at_once, end[group])
    return np.concatenate([first[:, None], stop[:, None], groups[group, 2:]], axis=1)


def _numbered(counts: Ids) -> tuple[Ids, Ids]:
    """``counts`` items of each kind: the kind of each, and its number within it."""
    kind = np.repeat(np.arange(len(counts)), counts)
    return kind, np.arange(len(kind)) - (np.cumsum(counts) - counts)[kind]

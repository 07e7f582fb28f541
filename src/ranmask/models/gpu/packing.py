"""Rows of a batch one after another, shortest first, with nothing between them.

A packed batch has no padding: what a layer does to each token by itself is one product over all
tokens.  Only attention needs to know where rows begin.  For it rows are gathered into *groups*:
whole rows of one length that have a few dozen tokens together, or one longer row.

What is added up for a row, and in which order, follows from its length alone, never from the rows
beside it: its length says how many columns its group has, and within a group each row has a *slot*
of its own, a power of two of columns, so that a sum over them is the same tree in every slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from ranmask.models.flat import Ids, numbered

_COLUMNS = (16, 32, 64)  # of a group: the first that a row fits into


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of so many columns in a batch, on the device.

    ``groups`` holds (first row, end of rows, first token, end of tokens, length of a row, binary
    logarithm of the columns of its slot) a group; ``tiles`` the same with tokens instead of rows,
    where a row of more than ``columns`` tokens is several tiles that see all of its tokens.  No
    group has more than half as many rows.
    """

    columns: int
    groups: torch.Tensor
    tiles: torch.Tensor

    @property
    def shared(self) -> bool:
        """Whether several rows may be in a group: a row of more tokens fills its own."""
        return self.columns == _COLUMNS[0]


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the rows of a batch lie, on the device.

    ``starts`` has the first token of each row, ``owner`` the row of each token.  ``runs`` are the
    lengths that occur, each with its number of rows.
    """

    rows: torch.Tensor
    lengths: torch.Tensor
    starts: torch.Tensor
    owner: torch.Tensor
    groups: tuple[Groups, ...]
    runs: tuple[tuple[int, int], ...]
    tokens: int
    longest: int


def pack(rows: npt.NDArray[np.intp], lengths: Ids, device: torch.device) -> Packing:
    """The packing of ``rows`` of a list, whose lengths rise."""
    first = np.append(0, np.flatnonzero(lengths[1:] != lengths[:-1]) + 1)
    sizes, counts = lengths[first], np.diff(first, append=len(lengths))
    total = int((sizes * counts).sum())
    columns, groups = zip(*_groups(sizes, counts), strict=True)
    # A group is one tile, unless it is a row of more tokens than columns: those have the most.
    cut_up = [_tiles(groups[-1], columns[-1])] if lengths[-1] > columns[-1] else []
    there = to_device([rows, sizes, counts, *groups, *cut_up], device)
    grouped, tiles = there[3 : 3 + len(groups)], there[3 + len(groups) :]
    whole = grouped[: len(groups) - len(tiles)]
    tiles = [*(torch.cat([own[:, 2:4], own[:, 2:]], dim=1) for own in whole), *tiles]
    of_rows = torch.repeat_interleave(there[1], there[2], output_size=len(rows))
    everyone = torch.arange(len(rows), dtype=torch.int32, device=device)
    return Packing(
        rows=there[0],
        lengths=of_rows,
        starts=of_rows.cumsum(0) - of_rows,
        owner=torch.repeat_interleave(everyone, of_rows, output_size=total),
        groups=tuple(map(Groups, columns, grouped, tiles)),
        runs=tuple(zip(sizes.tolist(), counts.tolist(), strict=True)),
        tokens=total,
        longest=int(lengths[-1]),
    )


def cut(lengths: Ids, tokens: int) -> Iterator[tuple[npt.NDArray[np.intp], Ids]]:
    """Rows in even batches of at most ``tokens`` tokens, or of one row, with their lengths."""
    order = np.argsort(short(lengths), kind="stable")
    rising = lengths[order]
    ends = np.cumsum(rising)
    batches = -(-int(ends[-1]) // tokens)
    most = min(tokens, -(-int(ends[-1]) // batches) + int(rising[-1]))
    start = 0
    while start < len(order):
        done = ends[start] - rising[start]
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield order[start:stop], rising[start:stop]
        start = stop


def to_device(
    arrays: Sequence[npt.NDArray[np.integer]], device: torch.device
) -> list[torch.Tensor]:
    """Arrays on the device, in one go; the host does not wait for them to arrive.

    They hold numbers of 32 bits, and travel so.
    """
    ends = np.cumsum([array.size for array in arrays]).tolist()
    together = torch.empty(ends[-1], dtype=torch.int32, pin_memory=device.type == "cuda")
    np.concatenate([array.reshape(-1) for array in arrays], out=together.numpy())
    moved = together.to(device, non_blocking=True).long()
    return [
        moved[end - array.size : end].view(array.shape)
        for array, end in zip(arrays, ends, strict=True)
    ]


def _groups(sizes: Ids, counts: Ids) -> Iterator[tuple[int, npt.NDArray[np.int32]]]:
    """The groups of all rows, ``counts`` rows of each of the rising ``sizes``, by columns."""
    slots = np.array([max(1, (size - 1).bit_length()) for size in sizes.tolist()])
    end_rows = np.cumsum(counts)
    offsets = np.cumsum(sizes * counts) - sizes * end_rows  # of the first token of row 0, if it was
    bounds = [0, *np.searchsorted(sizes, _COLUMNS[:-1], side="right").tolist(), len(sizes)]
    for columns, (first, last) in zip(_COLUMNS, pairwise(bounds), strict=True):
        if first == last:
            continue
        runs = np.stack([end_rows - counts, end_rows, offsets, sizes, slots])[:, first:last]
        fit = np.maximum(columns >> runs[-1], 1)
        groups = -(-counts[first:last] // fit)
        runs[0] -= fit * (np.cumsum(groups) - groups)
        of_groups = np.repeat(np.stack([fit, *runs]).astype(np.int32), groups, axis=1)
        fits, start, most, offset, size, slot = of_groups
        begin = start + fits * np.arange(len(fits), dtype=np.int32)
        end = np.minimum(begin + fits, most)
        tokens = offset + begin * size, offset + end * size
        yield columns, np.stack([begin, end, *tokens, size, slot], axis=1)


def _tiles(groups: npt.NDArray[np.int32], columns: int) -> npt.NDArray[np.int32]:
    """The tiles of groups, some of which may have more tokens than columns."""
    begin, end = groups[:, 2], groups[:, 3]
    group, number = numbered(-(-(end - begin) // columns))
    first = begin[group] + number * columns
    stop = np.minimum(first + columns, end[group])
    return np.concatenate([first[:, None], stop[:, None], groups[group, 2:]], axis=1)


def short(numbers: Ids) -> npt.NDArray[np.integer]:
    """The same in 16 bits, where they fit in: sorted several times as fast, if by stable sort."""
    return numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers

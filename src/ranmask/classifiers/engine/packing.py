"""Rows of a batch one after another, shortest first, with nothing between them.

A packed batch has no padding: what a layer does to each token by itself is one product over all
tokens.  Only attention needs to know where rows begin.  For it rows are gathered into *groups*:
whole rows that together have at most `GROUP` tokens, or one longer row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from ranmask.classifiers.encoding import Ids

GROUP = 64
"""Tokens that one program of the attention kernel takes at a time."""

ROWS_IN_GROUP = 32
"""Most rows of a group."""


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the rows of a batch lie, on the device.

    ``starts`` has the first token of each row, ``owner`` the row of each token.  ``groups`` holds
    (first row, end of rows, first token, end of tokens) a group; ``tiles`` the same with tokens
    instead of rows, where a row longer than `GROUP` is several tiles over all of its tokens.
    ``runs`` are the lengths that occur, each with its number of rows.
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


def pack(rows: npt.NDArray[np.intp], lengths: Ids, device: torch.device) -> Packing:
    """The packing of ``rows`` of a list, whose lengths rise."""
    total = int(lengths.sum())
    starts = np.cumsum(lengths) - lengths
    groups, tiles = _groups(lengths, starts)
    sizes, counts = np.unique(lengths, return_counts=True)
    here = to_device(lengths, device)
    return Packing(
        rows=to_device(rows, device),
        lengths=here,
        starts=to_device(starts, device),
        owner=torch.repeat_interleave(
            torch.arange(len(rows), dtype=torch.int32, device=device), here, output_size=total
        ),
        groups=to_device(groups.astype(np.int32), device),
        tiles=to_device(tiles.astype(np.int32), device),
        runs=tuple(zip(sizes.tolist(), counts.tolist(), strict=True)),
        tokens=total,
        longest=int(lengths[-1]),
    )


def cut(lengths: Ids, tokens: int) -> Iterator[tuple[npt.NDArray[np.intp], Ids]]:
    """Rows in batches of at most ``tokens`` tokens, or of one row, with their lengths."""
    order = np.argsort(lengths, kind="stable")
    rising = lengths[order]
    ends = np.cumsum(rising)
    start = 0
    while start < len(order):
        done = ends[start] - rising[start]
        stop = max(start + 1, int(np.searchsorted(ends, done + tokens, side="right")))
        yield order[start:stop], rising[start:stop]
        start = stop


def to_device(array: npt.NDArray[np.integer], device: torch.device) -> torch.Tensor:
    """An array on the device; the host does not wait for it to arrive."""
    tensor = torch.from_numpy(array)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def _groups(lengths: Ids, starts: Ids) -> tuple[Ids, Ids]:
    """The groups of rows of rising length, and their tiles."""
    ends = starts + lengths
    among_equals = np.arange(len(lengths)) - np.searchsorted(lengths, lengths)
    fit = np.clip(GROUP // lengths, 1, ROWS_IN_GROUP)
    first = np.flatnonzero(among_equals % fit == 0)
    end = np.append(first[1:], len(lengths))
    from_token, to_token = starts[first], ends[end - 1]
    groups = np.stack([first, end, from_token, to_token], axis=1)
    pieces = -(-(to_token - from_token) // GROUP)
    piece = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins, stops = np.repeat(from_token, pieces), np.repeat(to_token, pieces)
    tile = begins + piece * GROUP
    tiles = np.stack([tile, np.minimum(tile + GROUP, stops), begins, stops], axis=1)
    return groups, tiles

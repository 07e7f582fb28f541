"""From rows to shards: so many consecutive rows each, streamed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ranmask.data.rows import Row


@dataclass(frozen=True)
class Shard:
    """Consecutive rows of an input; shards are numbered from 0."""

    number: int
    rows: tuple[Row, ...]


def shards(rows: Iterable[Row], size: int) -> Iterator[Shard]:
    """Rows in their order, ``size`` to a shard, as they are asked for; the last may have fewer."""
    left = iter(rows)
    for number in itertools.count():
        taken = tuple(itertools.islice(left, size))
        if not taken:
            return
        yield Shard(number, taken)


def part_name(number: int) -> str:
    """The name of a shard's file."""
    return f"part-{number:05d}.parquet"

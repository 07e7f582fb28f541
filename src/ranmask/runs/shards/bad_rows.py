"""Which rows of a shard kill whoever works on them, found by halving."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from ranmask.runs.shards.work import Piece

_DEATHS_OF_A_ROW = 2  # by itself, after those of the shard: no accident


class Isolation:
    """Trials of ever fewer rows of one shard, until what kills is known row by row.

    Hands out pieces by `take`; is told how each went.  When it is ``over``, ``poison`` has the
    places of the rows that killed their worker every time that they were tried alone.  Where only
    many rows together kill it (they may need more memory than there is), it is empty.
    """

    def __init__(self, shard: Piece) -> None:
        self.shard = shard
        self.poison: set[int] = set()
        self._waiting: deque[tuple[int, int]] = deque(_halves(0, len(shard.rows)))
        self._out: Counter[tuple[int, int]] = Counter()
        self._deaths: Counter[int] = Counter()

    @property
    def over(self) -> bool:
        """Whether no trial is left."""
        return not self._waiting and not self._out.total()

    def take(self) -> Iterator[Piece]:
        """The trials that can be made now."""
        while self._waiting:
            start, stop = self._waiting.popleft()
            self._out[start, stop] += 1
            yield Piece(self.shard.shard, self.shard.rows[start:stop], start, trial=True)

    def survived(self, piece: Piece) -> None:
        """These rows are harmless."""
        self._end(piece)

    def died(self, piece: Piece) -> None:
        """At least one of these rows is not, unless it was an accident."""
        start, stop = self._end(piece)
        if stop - start > 1:
            self._waiting += _halves(start, stop)
            return
        self._deaths[start] += 1
        if self._deaths[start] < _DEATHS_OF_A_ROW:
            self._waiting.append((start, stop))
        else:
            self.poison.add(start)

    def _end(self, piece: Piece) -> tuple[int, int]:
        place = (piece.start, piece.start + len(piece.rows))
        self._out[place] -= 1
        return place


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    middle = (start + stop) // 2
    return [half for half in ((start, middle), (middle, stop)) if half[0] < half[1]]

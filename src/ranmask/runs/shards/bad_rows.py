"""Which rows of a shard kill whoever works on them, found by halving."""

from __future__ import annotations

from collections import Counter

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
        self._waiting: list[Piece] = []
        self._out = 0
        self._deaths: Counter[int] = Counter()
        self._halve(shard)

    @property
    def over(self) -> bool:
        """Whether no trial is left."""
        return not self._waiting and not self._out

    def take(self) -> list[Piece]:
        """The trials that can be made now."""
        taken, self._waiting = self._waiting, []
        self._out += len(taken)
        return taken

    def survived(self) -> None:
        """The rows of a piece are harmless."""
        self._out -= 1

    def died(self, piece: Piece) -> None:
        """At least one of these rows is not, unless it was an accident."""
        self._out -= 1
        if len(piece.rows) > 1:
            self._halve(piece)
            return
        self._deaths[piece.start] += 1
        if self._deaths[piece.start] < _DEATHS_OF_A_ROW:
            self._waiting.append(piece)
        else:
            self.poison.add(piece.start)

    def _halve(self, piece: Piece) -> None:
        middle = len(piece.rows) // 2
        for start, rows in ((0, piece.rows[:middle]), (middle, piece.rows[middle:])):
            if rows:
                self._waiting.append(Piece(piece.shard, rows, piece.start + start, trial=True))

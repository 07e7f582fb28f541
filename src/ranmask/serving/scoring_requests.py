"""The copies of one call of `score`, and how they are cut into portions and put together again."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranmask.errors import ClassifierError
from ranmask.models.base import MaskedCopies, Scores


@dataclass(frozen=True, eq=False)
class Portion:
    """Some copies of one request that follow each other, from number ``start`` on."""

    request: ScoringRequest
    start: int
    copies: list[MaskedCopies]


class ScoringRequest:
    """All copies that one caller waits for.  Copies are numbered across its texts.

    ``left``: how many were not taken yet.  ``finished`` is set when `scores` has something to say;
    ``given_up`` says that nobody listens; ``background``, that all others come first; ``since``,
    when it came.
    """

    def __init__(self, copies: Sequence[MaskedCopies], *, background: bool = False) -> None:
        self.background, self.since = background, time.monotonic()
        self.total = self.left = sum(map(len, copies))
        self.finished = threading.Event()
        self.given_up = False
        self._ends = np.cumsum([len(text) for text in copies])
        self._waiting = deque(copies)
        self._dealt = 0
        self._table: Scores | None = None
        self._error: BaseException | None = None

    def take(self, most: int) -> Portion:
        """The next copies, at most ``most`` of them."""
        portion = Portion(self, self.total - self.left, [])
        most = min(most, self.left)
        while most > 0:
            text = self._waiting.popleft()
            if len(text) > most:
                first, rest = (
                    MaskedCopies(text.document, text.words_read, kept)
                    for kept in (text.kept[:most], text.kept[most:])
                )
                self._waiting.appendleft(rest)
                text = first
            if len(text):
                portion.copies.append(text)
            most -= len(text)
            self.left -= len(text)
        return portion

    def deal(self, start: int, rows: Scores) -> None:
        """Take the scores of copies from number ``start`` on; the last ones finish the request."""
        if self._table is None:
            self._table = np.empty((self.total, rows.shape[1]))
        if rows.shape[1] != self._table.shape[1]:
            raise ClassifierError(
                f"the base classifier returned {rows.shape[1]} classes, and before that "
                f"{self._table.shape[1]}, for copies of the same texts"
            )
        self._table[start : start + len(rows)] = rows
        self._dealt += len(rows)
        if self._dealt == self.total:
            self.finished.set()

    def fail(self, error: BaseException) -> None:
        """End the request with an error."""
        self._error = error
        self.finished.set()

    def scores(self) -> list[Scores] | None:
        """The scores of each text; None where some are missing.  Raises its error."""
        if self._error is not None:
            raise self._error
        if self._table is None or self._dealt < self.total:
            return None
        return np.split(self._table, self._ends[:-1])


def fair_shares(left: Mapping[ScoringRequest, int], room: int) -> dict[ScoringRequest, int]:
    """How many copies each request gives to a batch of at most ``room``; ``left`` is oldest first.

    Half of the batch goes to the requests with the fewest copies left, so that a short one is done
    in the next batch however long the others are.  The rest goes to the oldest, so that a long
    one moves on however many short ones come.
    """
    shares: dict[ScoringRequest, int] = {}
    shortest = sorted(left, key=left.__getitem__)
    given = 0
    for order, upto in ((shortest, room // 2), (list(left), room)):
        for request in order:
            had = shares.get(request, 0)
            more = min(left[request] - had, upto - given)
            if more > 0:
                shares[request] = had + more
                given += more
    return shares

"""Whose turn it is to compute."""

from __future__ import annotations

import threading


class Turns:
    """A lock for ``at_once`` threads, given in the order in which it was asked for.

    Models in one process compute in turns: what PyTorch is told about attention holds for all
    threads, and batches that compete for the same cores are no faster.  So do requests: threads
    that compete for the interpreter keep the event loop from answering anybody.
    """

    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once
        self._changed = threading.Condition()
        self._drawn = 0
        self._served = 0

    @property
    def wanted(self) -> bool:
        """Whether anybody waits for a turn."""
        return self._drawn - self._served > self._at_once

    def __enter__(self) -> None:
        with self._changed:
            mine = self._drawn
            self._drawn += 1
            self._changed.wait_for(lambda: mine < self._served + self._at_once)

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._served += 1
            self._changed.notify_all()

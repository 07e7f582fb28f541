"""Whose turn it is to compute."""

from __future__ import annotations

import threading


class Turns:
    """A lock that is given in the order in which it was asked for.

    Models in one process compute in turns: what PyTorch is told about attention holds for all
    threads, and batches that compete for the same cores are no faster.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._drawn = 0
        self._served = 0

    def __enter__(self) -> None:
        with self._changed:
            mine = self._drawn
            self._drawn += 1
            self._changed.wait_for(lambda: self._served == mine)

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._served += 1
            self._changed.notify_all()

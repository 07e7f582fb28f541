"""A request's right to be computed: until its deadline, and while somebody waits for it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ranmask.errors import interruptible
from ranmask.serving.problems import Cancelled, DeadlinePassed

_TURN_SECONDS = 0.05  # then others who wait for a turn have theirs


class FairSemaphore:
    """A FIFO semaphore: ``at_once`` threads hold it, the next is the one that waits longest.

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


class RequestContext:
    """One request, as the pools of copies know it.  Threads may share it, but for `at_work`.

    ``deadline``: when its time is over, on the clock of `time.monotonic`.  ``cancelled``: whether
    it was given up.  ``background``: whether all others come first.
    """

    background = False

    def __init__(self, deadline: float = math.inf) -> None:
        self.deadline = deadline
        self.cancelled = False
        self._lock = threading.Lock()
        self._sleeping: set[threading.Event] = set()
        self._turns: FairSemaphore | None = None
        self._turn_ends = 0.0

    def cancel(self) -> None:
        """Give the request up: whatever waits for its copies wakes and raises `Cancelled`."""
        with self._lock:
            self.cancelled = True
            for event in self._sleeping:
                event.set()

    def check(self) -> None:
        """Raise `Cancelled` or `DeadlinePassed` where the request is over."""
        if self.cancelled:
            raise Cancelled
        if time.monotonic() >= self.deadline:
            raise DeadlinePassed

    def wait(self, event: threading.Event) -> None:
        """Return when the event is set, or when the request is over, whichever comes first."""
        with self.resting():
            with self._lock:
                self._sleeping.add(event)
            try:
                while not (event.is_set() or self.cancelled):
                    left = self.deadline - time.monotonic()
                    if left <= 0:
                        return
                    event.wait(min(left, threading.TIMEOUT_MAX))
            finally:
                with self._lock:
                    self._sleeping.discard(event)

    @contextmanager
    def at_work(self, turns: FairSemaphore) -> Iterator[None]:
        """Compute for the request in this thread, in turns with others; stopped when it is over.

        The semaphore is passed on while this thread waits for copies, and where long
        computations check for it; one that is late or cancelled ends there with `DeadlinePassed`
        or `Cancelled`.
        """
        with turns, interruptible(self._pass_on):
            self._turns = turns
            self._turn_ends = time.monotonic() + _TURN_SECONDS
            try:
                self.check()
                yield
            finally:
                self._turns = None

    def _pass_on(self) -> None:
        self.check()
        if self._turns is not None and self._turns.wanted and time.monotonic() >= self._turn_ends:
            with self.resting():
                pass
            self.check()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Let others have their turn, then wait for the next."""
        turns, self._turns = self._turns, None  # there is none to pass on meanwhile
        if turns is None:
            yield
            return
        turns.__exit__()
        try:
            yield
        finally:
            turns.__enter__()
            self._turns, self._turn_ends = turns, time.monotonic() + _TURN_SECONDS

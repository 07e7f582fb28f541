"""A request's right to be computed: until its deadline, and while somebody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ranmask.errors import interruptible
from ranmask.serving.faults import Cancelled, DeadlinePassed

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

    Args:
        deadline: When its time is over, on the clock of `time.monotonic`; None for never.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self.deadline = deadline
        self._lock = threading.Lock()
        self._cancelled = False
        self._sleeping: set[threading.Event] = set()
        self._turns: FairSemaphore | None = None
        self._turn_ends = 0.0

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Give the request up: whatever waits for its copies wakes and raises `Cancelled`."""
        with self._lock:
            self._cancelled = True
            sleeping = list(self._sleeping)
        for event in sleeping:
            event.set()

    def check(self) -> None:
        """Raise `Cancelled` or `DeadlinePassed` where the request is over."""
        if self._cancelled:
            raise Cancelled
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise DeadlinePassed

    def wait(self, event: threading.Event) -> None:
        """Return when the event is set, or when the request is over, whichever comes first."""
        with self._resting(), self._woken_by_cancel(event):
            while not (event.is_set() or self._over()):
                left = threading.TIMEOUT_MAX
                if self.deadline is not None:
                    left = min(left, max(0.0, self.deadline - time.monotonic()))
                event.wait(left)

    @contextmanager
    def at_work(self, turns: FairSemaphore) -> Iterator[None]:
        """Compute for the request in this thread, in turns with others; stopped when it is over.

        The semaphore is passed on while this thread waits for copies, and where long
        computations check for it; one that is late or cancelled ends there with `DeadlinePassed`
        or `Cancelled`.
        """
        with turns, interruptible(self._pass_on):
            self._turns = turns
            self._begin_turn()
            try:
                self.check()
                yield
            finally:
                self._turns = None

    def _pass_on(self) -> None:
        self.check()
        if self._turns is not None and self._turns.wanted and time.monotonic() >= self._turn_ends:
            with self._resting():
                pass
            self.check()

    @contextmanager
    def _resting(self) -> Iterator[None]:
        """Let others have their turn, then wait for the next."""
        if self._turns is None:
            yield
            return
        self._turns.__exit__()
        try:
            yield
        finally:
            self._turns.__enter__()
            self._begin_turn()

    def _begin_turn(self) -> None:
        self._turn_ends = time.monotonic() + _TURN_SECONDS

    def _over(self) -> bool:
        late = self.deadline is not None and time.monotonic() >= self.deadline
        return self._cancelled or late

    @contextmanager
    def _woken_by_cancel(self, event: threading.Event) -> Iterator[None]:
        with self._lock:
            self._sleeping.add(event)
        try:
            yield
        finally:
            with self._lock:
                self._sleeping.discard(event)

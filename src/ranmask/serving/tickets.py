"""A request's right to be computed: until its deadline, and while somebody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ranmask.serving.faults import Cancelled, DeadlinePassed


class Ticket:
    """One request, as the pools of copies know it.  Threads may share it.

    Args:
        deadline: When its time is over, on the clock of `time.monotonic`; None for never.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self.deadline = deadline
        self._lock = threading.Lock()
        self._cancelled = False
        self._sleeping: set[threading.Event] = set()

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
        with self._woken_by_cancel(event):
            while not (event.is_set() or self._over()):
                left = threading.TIMEOUT_MAX
                if self.deadline is not None:
                    left = min(left, max(0.0, self.deadline - time.monotonic()))
                event.wait(left)

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

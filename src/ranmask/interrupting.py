"""Computations that take seconds can be stopped: they call `checkpoint` now and then.

What stops them is an exception of whoever began them, in the same thread.  Where nobody asked
for that, `checkpoint` does nothing: it never changes a result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_of_thread = threading.local()


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """In this block, and in this thread, `checkpoint` calls ``check``, which may raise."""
    before = getattr(_of_thread, "check", None)
    _of_thread.check = check
    try:
        yield
    finally:
        _of_thread.check = before


def checkpoint() -> None:
    """A place where a computation may be stopped."""
    check = getattr(_of_thread, "check", None)
    if check is not None:
        check()

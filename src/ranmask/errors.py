"""Every error that ranmask raises on purpose.

    RanmaskError
    ├── OptionError              an option is wrong, or two options mean nothing together
    ├── TextError                a text cannot be classified (no words, not a string, ...)
    ├── ClassifierError          the base classifier, or a language model beside it, failed, or
    │                            its answer is not usable
    ├── ModelError               a model cannot be loaded, or cannot hide words as asked
    ├── DataError                an input file or one of its rows cannot be read
    ├── OutputError              results cannot be written, or belong to another run
    ├── ServiceError             a service (`Client`) cannot be reached, or cannot answer
    └── MissingDependencyError   an optional part is not installed

Each message says what was wrong, with the value, and what to do about it.  Bugs in ranmask
itself are never wrapped: they surface as ordinary Python exceptions.

A computation that takes seconds calls `check_cancelled` now and then: whoever began it, in the same
thread, stops it by raising from a callback (`interruptible`).
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

_of_thread = threading.local()

# Where a word of a command or of a message begins with a folder; not the middle of an address.
_ABSOLUTE = re.compile(r"""(?<![\w./:~-])/(?:[^\s/'"]+/)+(?=[^\s/'"])""")


class RanmaskError(Exception):
    """Base of the tree: catch this to catch everything that ranmask raises on purpose."""


class OptionError(RanmaskError, ValueError):
    """An option has a wrong value, or does not go with another option.

    ``names``: options that the message names by a single word, which the command line shows as
    flags; where a message writes ``keep=3`` or ``mask_rate`` it sees that by itself.
    """

    def __init__(self, message: str, *names: str) -> None:
        super().__init__(message)
        self.names = names


class TextError(RanmaskError, ValueError):
    """A text cannot be used.  ``index`` is its place in the sequence that was passed in."""

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message if index is None else f"text {index}: {message}")
        self.reason = message
        self.index = index


class ClassifierError(RanmaskError, RuntimeError):
    """The base classifier raised, or its answer cannot be used.

    That is no table of scores, or another answer to the same question.  Likewise a language model
    that weighs the words for it.  ``index`` is the place of the text to blame in the sequence that
    was passed in; None where that is not known.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message if index is None else f"text {index}: {message}")
        self.reason = message
        self.index = index


@contextmanager
def blaming(places: Sequence[int | None]) -> Iterator[None]:
    """Texts that are passed on are counted as the caller's are.

    Where a `ClassifierError` blames text ``i``, the one that is raised blames ``places[i]``, or
    none where that is None.
    """
    try:
        yield
    except ClassifierError as error:
        if error.index is None:
            raise
        raise ClassifierError(error.reason, places[error.index]) from error.__cause__


class ModelError(RanmaskError):
    """A model cannot be loaded, or cannot be used the way it was asked to be."""


class DataError(RanmaskError, ValueError):
    """An input file, or one row of it, cannot be read.  ``row`` counts from 1."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message if row is None else f"row {row}: {message}")
        self.reason = message
        self.row = row


class OutputError(RanmaskError, OSError):
    """Results cannot be written, or the file there belongs to a different run."""


class ServiceError(RanmaskError, RuntimeError):
    """A service that was asked cannot be reached, refuses the key, is busy, or failed.

    ``status``: of its answer, None where there was none; ``code``: for programs; ``request_id``:
    by which its log has the request.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.request_id = status, code, request_id


class ReaderWarning(UserWarning):
    """A model that reads whole texts did not answer for some, which their copies decide alone."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class MissingDependencyError(RanmaskError, ImportError):
    """An optional part of ranmask is not installed; the message has the command."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed: pip install 'ranmask[{extra}]'")
        self._given = (what, extra)

    def __reduce__(self) -> tuple[type, tuple[str, str]]:  # pickled on its way between processes
        return type(self), self._given


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question, with a blank before it, where a wrong name is almost one known; else nothing.

    >>> suggestion("sst2-certifed", ["sst2-beta", "sst2-certified"]), suggestion("x", ["texts"])
    (" Did you mean 'sst2-certified'?", '')
    """
    near = difflib.get_close_matches(name, list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def shortened(text: str, most: int = 60) -> str:
    """A text for a message: its beginning, where it is long."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def folders_cut(text: str) -> str:
    """A command or a message, with the last part only of every absolute path in it.

    >>> folders_cut("ranmask train --base /home/me/models/minilm --output runs/m")
    'ranmask train --base minilm --output runs/m'
    """
    return _ABSOLUTE.sub("", text)


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """In this block, and in this thread, `check_cancelled` calls ``check``, which may raise."""
    before = getattr(_of_thread, "check", None)
    _of_thread.check = check
    try:
        yield
    finally:
        _of_thread.check = before


def check_cancelled() -> None:
    """A place where a computation may be stopped.  It never changes a result."""
    check = getattr(_of_thread, "check", None)
    if check is not None:
        check()

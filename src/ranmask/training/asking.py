"""What a model says of many texts, kept on the disk as it comes: no answer is paid for twice."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from ranmask.certificates.votes import Scores
from ranmask.errors import ModelError, OutputError, ReaderWarning
from ranmask.models.answer_cache import AnswerCache, CachedScores
from ranmask.models.readers import Reader
from ranmask.results.files import fingerprint
from ranmask.words import document

_TEXTS_AT_ONCE = 64  # what a killed run may have to ask again
_ASKED_TWICE = 8


class Answers:
    """A reader's answers about ``texts``, those in the file ``path`` among them.

    ``known``: how many it holds; ``problems``: why texts have no answer, as the reader says.
    """

    def __init__(self, reader: Reader, texts: Sequence[str], classes: int, path: Path) -> None:
        self._reader, self._texts, self._classes = reader, texts, classes
        self._file = AnswerCache(path)
        about = {"model": reader.description(), "classes": classes}
        self._keys = [fingerprint({**about, "text": text}) for text in texts]
        self._found: dict[str, CachedScores] = {}
        self._look_for(self._keys)
        self.problems: list[str] = []

    def _look_for(self, keys: Iterable[str]) -> None:
        answers = self._file.read()
        for key in keys:
            row = answers.get(key, ())
            if row is None or (len(row) == self._classes and all(0 <= x <= 1 for x in row)):
                self._found[key] = row

    @property
    def known(self) -> int:
        """How many of the texts have an answer."""
        return sum(key in self._found for key in self._keys)

    def cost(self) -> str:
        """What is still to be asked, and what that costs where the reader can say."""
        rest = [place for place, key in enumerate(self._keys) if key not in self._found]
        estimate = getattr(self._reader, "estimate", None)  # an endpoint has a price
        if estimate is not None:
            return str(estimate([self._texts[place] for place in rest]))
        calls = self._reader.calls(len(rest))
        return f"{calls:,} texts to read" + (f", {self.known:,} known" if self.known else "")

    def asked(self, progress: Callable[[int], None], *, check: bool = True) -> Scores:
        """The answers, shape (texts, classes), NaN where there is none; asks what is not known.

        ``progress`` is told how many more have been asked.  ``check``: whether those that are known
        may be another model's.
        """
        if check:
            self._check_known()
        keeping = getattr(self._reader, "keeping", None)  # an endpoint's answers come one by one
        with nullcontext() if keeping is None else keeping(self._file.path):
            self._ask_the_rest(progress)
        nothing = [np.nan] * self._classes
        return np.array([self._found.get(key) or nothing for key in self._keys])

    def _ask_the_rest(self, progress: Callable[[int], None]) -> None:
        rest = [place for place, key in enumerate(self._keys) if key not in self._found]
        for start in range(0, len(rest), _TEXTS_AT_ONCE):
            places = rest[start : start + _TEXTS_AT_ONCE]
            rows = self._read(places)
            silent = [bool(np.isnan(row).any()) for row in rows]
            self._file.add(
                {
                    self._keys[place]: row.tolist()
                    for place, row, none in zip(places, rows, silent, strict=True)
                    if not none
                }
            )
            if all(silent) and (len(places) == _TEXTS_AT_ONCE or not self.known):
                why = f": {self.problems[-1]}" if self.problems else ""
                if self.known:
                    why += f". {self.known:,} answers are kept: run it again to go on"
                raise ModelError(f"the model answered none of {len(places)} texts{why}")
            progress(len(places))
            self._look_for(self._keys[place] for place in places)

    def _read(self, places: Sequence[int]) -> Scores:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ReaderWarning)
            texts = [document(self._texts[place]) for place in places]
            rows = self._reader.read(texts, self._classes)
        for one in said:
            if issubclass(one.category, ReaderWarning):
                self.problems.append(str(one.message))
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return rows

    def _check_known(self) -> None:
        """Refuse answers of another model of the same name, where asking again costs nothing."""
        known = [place for place, key in enumerate(self._keys) if self._found.get(key)]
        if not known or not self._reader.repeatable:
            return
        places = known[:_ASKED_TWICE]
        before = np.array([self._found[self._keys[place]] for place in places])
        moved = np.abs(np.nan_to_num(self._read(places) - before)).max()
        if moved > 2 * self._reader.tolerance + 1e-9:
            raise OutputError(
                f"{self._file.path} holds answers of another model: this one differs from them by "
                f"{moved:.3g}. Name another folder, or delete this one"
            )

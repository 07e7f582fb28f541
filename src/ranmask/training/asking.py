"""What a model says of many texts, kept on the disk as it comes: no answer is paid for twice."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ranmask.certificates.votes import Scores
from ranmask.errors import ModelError, OutputError, ReaderWarning
from ranmask.models.answer_cache import AnswerCache, CachedScores
from ranmask.models.readers import Reader
from ranmask.results.files import fingerprint
from ranmask.smoothing.protected import segments_of
from ranmask.training.records import Report
from ranmask.words import document, join

_TEXTS_AT_ONCE = 64  # what a killed run may have to ask again
_ASKED_TWICE = 8


class Asking:
    """Asks a reader; what it said before is in the file ``path``.  ``report`` is told of it."""

    def __init__(self, reader: Reader, classes: int, path: Path, report: Report) -> None:
        self._reader, self._classes, self._report = reader, classes, report
        self._file = AnswerCache(path)
        self._found: dict[str, CachedScores] = {}
        self._problems: list[str] = []  # why texts have no answer, as the reader says

    def about_texts(self, texts: Sequence[str], other_texts: bool, segments: int) -> Scores:
        """What the model says of each text; ``segments`` are to be read later."""
        about = {"what": "texts", "other_texts": other_texts, "segments": segments}
        return self._asked(texts, about, check=True)

    def about_segments(self, texts: Sequence[str], levels: int) -> Scores:
        """What it says of halves, quarters, ..., shape (texts, segments, classes).

        NaN where there is no answer, and zeros for a segment without a word.
        """
        at: dict[str, int] = {}
        places = []
        for text in map(document, texts):
            for level in range(1, levels):
                for segment in segments_of(text, len(text.words), 2**level):
                    shown = None if segment is None else join(segment.words)
                    places.append(-1 if shown is None else at.setdefault(shown, len(at)))
        said = self._asked(list(at), {"what": "segments"}, check=False)
        rows = np.concatenate([said, np.zeros((1, self._classes))])[places]
        return rows.reshape(len(texts), -1, self._classes)

    def _asked(self, texts: Sequence[str], about: dict[str, Any], *, check: bool) -> Scores:
        """The answers, shape (texts, classes), NaN where there is none; asks what is not known.

        ``check``: whether those that are known may be another model's.
        """
        whose = {"model": self._reader.description(), "classes": self._classes}
        keys = [fingerprint({**whose, "text": text}) for text in texts]
        self._found, self._problems = {}, []
        self._look_for(keys)
        about = {**about, "texts": len(texts)}
        rest = [place for place, key in enumerate(keys) if key not in self._found]
        done = len(texts) - len(rest)
        cost = self._cost([texts[place] for place in rest], done)
        self._report({"phase": "asking", **about, "done": done, "cost": cost})
        if check:
            self._check_known(texts, keys)
        keeping = getattr(self._reader, "keeping", None)  # an endpoint's answers come one by one
        with nullcontext() if keeping is None else keeping(self._file.path):
            for start in range(0, len(rest), _TEXTS_AT_ONCE):
                places = rest[start : start + _TEXTS_AT_ONCE]
                self._ask([texts[place] for place in places], [keys[place] for place in places])
                done += len(places)
                self._report({"phase": "asked", **about, "done": done})
        if self._problems:
            self._report({"phase": "unanswered", "problem": self._problems[0]})
        nothing = [np.nan] * self._classes
        return np.array([self._found.get(key) or nothing for key in keys])

    def _look_for(self, keys: Iterable[str]) -> None:
        answers = self._file.read()
        for key in keys:
            row = answers.get(key, ())
            if row is None or (len(row) == self._classes and all(0 <= x <= 1 for x in row)):
                self._found[key] = row

    def _cost(self, rest: Sequence[str], known: int) -> str:
        """What is still to be asked, and what that costs where the reader can say."""
        estimate = getattr(self._reader, "estimate", None)  # an endpoint has a price
        if estimate is not None:
            return str(estimate(rest))
        calls = self._reader.calls(len(rest))
        return f"{calls:,} texts to read" + (f", {known:,} known" if known else "")

    def _ask(self, texts: Sequence[str], keys: Sequence[str]) -> None:
        rows = self._read(texts)
        silent = [bool(np.isnan(row).any()) for row in rows]
        answered = zip(keys, rows, silent, strict=True)
        self._file.add({key: row.tolist() for key, row, none in answered if not none})
        known = len(self._found)
        if all(silent) and (len(texts) == _TEXTS_AT_ONCE or not known):
            why = f": {self._problems[-1]}" if self._problems else ""
            if known:
                why += f". {known:,} answers are kept: run it again to go on"
            raise ModelError(f"the model answered none of {len(texts)} texts{why}")
        self._look_for(keys)

    def _read(self, texts: Sequence[str]) -> Scores:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ReaderWarning)
            rows = self._reader.read([document(text) for text in texts], self._classes)
        for one in said:
            if issubclass(one.category, ReaderWarning):
                self._problems.append(str(one.message))
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return rows

    def _check_known(self, texts: Sequence[str], keys: Sequence[str]) -> None:
        """Refuse answers of another model of the same name, where asking again costs nothing."""
        known = [place for place, key in enumerate(keys) if self._found.get(key)][:_ASKED_TWICE]
        if not known or not self._reader.repeatable:
            return
        before = np.array([self._found[keys[place]] for place in known])
        now = self._read([texts[place] for place in known])
        moved = np.abs(np.nan_to_num(now - before)).max()
        if moved > 2 * self._reader.tolerance + 1e-9:
            raise OutputError(
                f"{self._file.path} holds answers of another model: this one differs from them by "
                f"{moved:.3g}. Name another folder, or delete this one"
            )

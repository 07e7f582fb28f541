"""A model whose answers are kept on the disk, so that no text is asked about twice."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranmask.certificates.votes import Scores
from ranmask.errors import OptionError, OutputError
from ranmask.models.answer_cache import AnswerCache
from ranmask.results.files import fingerprint

_FEWEST_AT_ONCE = 16
_SECONDS_AT_ONCE = 2.0  # what a killed process may have to ask again


@dataclass(frozen=True)
class CachedModel:
    """A model, and the file that keeps its answers: see `cached`."""

    model: Any
    path: Path
    name: str


def cached(model: Any, path: str | Path, *, name: str) -> CachedModel:
    """A slow function, pipeline or estimator whose answers are kept in a file.

    It takes the place of the model, in `SmoothedClassifier`, `protect`, `FunctionReader`,
    `WindowDetector` or `attack`, and says what the model says; a text that the file knows is not
    asked about.  The file holds digests of texts and no text.  What was answered before a crash is
    kept, several processes may share the file, and so may several models.

    Args:
        model: A function, an estimator or a pipeline.
        path: The file, which is made where it is not there.
        name: Which model it is, as ``spam-2024-05``.  **Change it when the model changes.**  The
            answers of an estimator to a few texts are part of its name.

    >>> import tempfile
    >>> asked = []
    >>> def slow(texts):
    ...     asked.extend(texts)
    ...     return [["good" in text, "good" not in text] for text in texts]
    >>> from ranmask import FunctionClassifier, SmoothedClassifier
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = cached(slow, f"{folder}/answers.jsonl", name="slow 1")
    ...     smoothed = SmoothedClassifier(kept, keep=1, hide="drop", recheck=0)
    ...     first = smoothed.certify(["a good good film"])
    ...     first == smoothed.certify(["a good good film"])
    True
    >>> asked
    ['a', 'good', 'film']
    """
    if isinstance(model, CachedModel):
        raise OptionError(f"the model has a cache already, {model.path}")
    if not isinstance(name, str) or not name.strip():
        raise OptionError(f"name must say which model it is, as 'spam-2024-05', not {name!r}")
    AnswerCache(Path(path))  # says at once where there can be no such file
    return CachedModel(model, Path(path), name)


class Memory:
    """Answers of one model, in a file that it may share with others."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self._name = path, name
        self._file = AnswerCache(path)
        self._at_once = _FEWEST_AT_ONCE

    def answers(
        self, texts: Sequence[Any], about: dict[str, Any], ask: Callable[[list[Any]], Scores]
    ) -> Scores:
        """The table of what a model says of texts, which ``ask`` gives for those not known.

        ``about``: what else the answers depend on, as plain JSON values.
        """
        described = {"model": self._name, **about}
        keys = [fingerprint({**described, "text": text}) for text in texts]
        known = self._file.read()
        found = {key: row for key in keys if (row := known.get(key))}
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        rest = list(new.items())
        while rest:
            some, rest = rest[: self._at_once], rest[self._at_once :]
            started = time.monotonic()
            table = ask([text for _, text in some])
            self._pace(len(some), time.monotonic() - started)
            said = dict(zip((key for key, _ in some), table.tolist(), strict=True))
            found |= said
            self._file.add({key: row for key, row in said.items() if all(map(math.isfinite, row))})
        if len(sizes := {len(row) for row in found.values()}) != 1:
            raise OutputError(
                f"the cache {self.path} has answers for {' and '.join(map(str, sorted(sizes)))} "
                "classes: the model is another one, so name it, or the file, anew"
            )
        return np.array([found[key] for key in keys], dtype=np.float64)

    def _pace(self, texts: int, seconds: float) -> None:
        """Ask about as many at once as take about two seconds."""
        fitting = int(_SECONDS_AT_ONCE * texts / max(seconds, 1e-9))
        self._at_once = max(_FEWEST_AT_ONCE, min(fitting, 4 * self._at_once))

"""Answers that a model gave, kept on the disk, so that none is paid for twice.

    {"format": "ranmask-answers", "version": 1}
    {"key": "<digest of the question>", "scores": [0.9, 0.1]}
    {"key": "<digest of another>", "scores": null}      answered, with none of the labels

A line is written as soon as its answer comes; what a killed process left of one is cut off by the
next that writes.  Several processes may share a file: each sees what the others wrote.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TypeAlias

from ranmask.errors import OutputError
from ranmask.results.files import check_file, check_format, line_bytes, lock, writing

_FORMAT, _VERSION = "ranmask-answers", 1
_HEADER = line_bytes({"format": _FORMAT, "version": _VERSION})

CachedScores: TypeAlias = Sequence[float] | None
"""Outputs for the classes; None where the model answered with none of the labels."""


class AnswerCache:
    """A file of answers by the digests of their questions.  It holds no text."""

    def __init__(self, path: Path) -> None:
        check_file(path)
        self.path = path
        self._answers: dict[str, CachedScores] = {}
        self._end = 0
        self._mutex = threading.Lock()
        if path.exists():  # another file is told of at once, and not for every text
            with writing(path), path.open("rb") as file:
                if first := file.readline():
                    self._check_header(first)

    def read(self) -> Mapping[str, CachedScores]:
        """All answers, those that other processes have added among them."""
        with self._mutex:
            if self.path.exists():
                with writing(self.path), self.path.open("rb") as file:
                    self._catch_up(file)
            return self._answers

    def add(self, answers: Mapping[str, CachedScores]) -> None:
        """Append answers and hand them to the operating system at once."""
        with self._mutex, writing(self.path, resumed=True), self.path.open("a+b") as file:
            lock(file, self.path, wait=True)
            self._catch_up(file)
            file.truncate(self._end)
            new = {key: one for key, one in answers.items() if key not in self._answers}
            lines = [line_bytes({"key": key, "scores": scores}) for key, scores in new.items()]
            data = b"".join(lines if self._end else [_HEADER, *lines])
            file.write(data)
            file.flush()
            self._end += len(data)
            self._answers.update(new)

    def _catch_up(self, file: IO[bytes]) -> None:
        """Read the whole lines that came since; where the file was emptied, from its start."""
        if os.fstat(file.fileno()).st_size < self._end:
            self._end = 0
        file.seek(self._end)
        for line in file:
            if self._end == 0:
                self._check_header(line)
            if not line.endswith(b"\n"):
                return
            self._take(line)
            self._end += len(line)

    def _check_header(self, line: bytes) -> None:
        try:
            header = json.loads(_HEADER if _HEADER.startswith(line) else line)
        except ValueError:
            header = None
        if not isinstance(header, dict):
            raise OutputError(
                f"{self.path} exists and is no cache of ranmask's: choose another cache, or "
                "delete it"
            )
        check_format(header, _FORMAT, _VERSION, str(self.path), OutputError)

    def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line)
            scores = found["scores"]
            if scores is None or all(map(math.isfinite, scores)):
                self._answers[found["key"]] = scores
        except (ValueError, KeyError, TypeError):
            return  # the header, or a line that somebody broke: its question is asked again

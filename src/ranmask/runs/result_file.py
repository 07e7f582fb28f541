"""The file of a run: JSON lines, resumed where they stopped.

    {"format": "ranmask-results", "version": 1, "command": ..., "constants": {...}, ...}
    {"row": 1, "text": ..., "label": ..., "radius": ..., ...}
    ...
    {"finished": {"rows": ..., ...}}

The first line is the record of the run: everything that its results depend on, and in ``constants``
what is the same in every row and is not said again there.  Rows come in the order of the input.
The last line is there once all of them are.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ranmask.errors import DataError, OutputError, RanmaskError
from ranmask.results import CONSTANTS
from ranmask.results.files import (
    check_file,
    check_format,
    check_same_run,
    draft,
    line_bytes,
    lock,
    reading,
    writing,
)

RESULTS_FORMAT, RESULTS_VERSION = "ranmask-results", 1
_MOST_OF_A_SUMMARY = 1 << 24
_OTHER_FORMATS = (".csv", ".tsv", ".json", ".parquet", ".pq", ".xlsx", ".gz")


def check_result_file(path: Path) -> None:
    """Raise, before any work is done, where results cannot be appended to ``path``."""
    check_file(path)
    if path.suffix.lower() in _OTHER_FORMATS:
        raise OutputError(
            f"cannot write {path}: results are written as JSON lines, one for each row, not as "
            f"{path.suffix}; name it {path.with_suffix('.jsonl')}, and make CSV of it with ranmask "
            "runs merge"
        )


def constants_of(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the first result says of all results; None where no line has a result."""
    first = next((line for line in lines if "version" in line), None)
    return None if first is None else {key: first[key] for key in CONSTANTS if key in first}


def without(line: Mapping[str, Any], constants: Mapping[str, Any]) -> dict[str, Any]:
    """A line less what is constant; what differs from that comes last."""
    own = {key: value for key, value in line.items() if key not in constants}
    differing = {key: line[key] for key in constants if key in line and line[key] != constants[key]}
    return {**own, **differing}


def with_constants(row: Mapping[str, Any], constants: Mapping[str, Any]) -> dict[str, Any]:
    """The line that `without` made shorter; one without a result has no constants."""
    has_result = any(key in row for key in ("label_id", "status", "flagged"))
    return {**constants, **row} if has_result else dict(row)


def unread(line: Mapping[str, Any]) -> bool:
    """Whether a row has a result for which its reader gave no answer."""
    return line.get("reader") == "failed"


def result_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of results, whole; a line that was cut off ends them."""
    constants: Mapping[str, Any] = {}
    with reading(path), path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                found = json.loads(line)
            except ValueError as error:
                why = f"not valid JSON: {error}"
                raise DataError(f"{path}, line {number}: {why}") from error
            if not isinstance(found, dict):
                raise DataError(f"{path}, line {number}: it holds {found!r:.60}, not an object")
            if "row" in found:
                yield with_constants(found, constants)
            else:
                constants = found.get("constants", constants)


class ResultFile:
    """The output of a run: opened for one writer, resumed after its last complete line.

    Use as a context manager.  ``rows``: how many rows are in the file; ``done``: the number of the
    last one; ``unread``: the numbers of those whose reader did not answer, in their order;
    ``finished``: whether there are no more.
    """

    def __init__(self, path: Path, description: Mapping[str, Any]) -> None:
        check_result_file(path)
        self.path = path
        self.done = self.rows = 0
        self.unread: list[int] = []
        self.finished = False
        self.description = json.loads(json.dumps(description))
        self._constants: dict[str, Any] | None = None  # None: there is no first line
        self._rows_end = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ResultFile:
        with writing(self.path):
            self._file = self.path.open("a+b")
        try:
            lock(self._file, self.path)
            self._resume(self._file)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # reported when it was written
                self._file.close()

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Append rows and hand them to the operating system at once.

        The first result says what is constant: the first line is then written again, and with it
        the rows before, which have errors.
        """
        if self._file is not None and self.finished:  # rows were taken out of a finished file
            self._file.truncate(self._rows_end)
            self.finished = False
        constants = self._constants or constants_of(lines) or {}
        first: list[Mapping[str, Any]] = []
        if self._file is not None and constants != self._constants:
            first = [{**self.description, "constants": constants}, *self.lines()]
            self._file.truncate(0)
            self._constants = constants
        self._append([*first, *(without(line, constants) for line in lines)])

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Record that every input row is in the file."""
        if self._constants is None:
            self.write([])
        self._append([{"finished": dict(summary)}])
        self.finished = True

    def replace(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Put new lines in the place of those that are `unread`, in their order.

        The file changes in one step, when all of them are there; then it is not finished.
        """
        if self._file is None or self._constants is None:
            raise ValueError("the result file is not open, or empty")
        new, constants = iter(lines), self._constants
        with contextlib.ExitStack() as undone:
            with writing(self.path, resumed=True), draft(self.path) as place:
                file = undone.enter_context(place.open("a+b"))
                lock(file, self.path)
                file.truncate(0)  # of a run that was killed here
                file.write(line_bytes({**self.description, "constants": constants}))
                for line in self.lines():
                    found = next(new, line) if unread(line) else line
                    file.write(line_bytes(without(found, constants)))
                file.flush()
            undone.pop_all()
        self._file.close()
        self._file, self.unread, self.finished = file, [], False

    def lines(self) -> Iterator[dict[str, Any]]:
        """All rows in the file, in their order."""
        return result_rows(self.path)

    def _append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        if self._file is None:
            raise ValueError("the result file is not open")
        data = b"".join(map(line_bytes, lines))
        with writing(self.path, resumed=True):
            written = 0
            while written < len(data):
                written += os.write(self._file.fileno(), data[written:])

    def _resume(self, file: IO[bytes]) -> None:
        """Check that the file is this run's, cut off what is not whole, and find its last row."""
        file.seek(0)
        first = file.readline()
        start = line_bytes({"format": RESULTS_FORMAT})[:-2]
        if not first.endswith(b"\n") and start.startswith(first[: len(start)]):
            first = b""  # the first line of a run, which was cut off with it
        end = self._rows_end = len(first)
        if first:
            header = _header(first, self.path, OutputError)
            if header is None:
                raise OutputError(
                    f"{self.path} exists and was not written by ranmask: choose another output, "
                    "or delete it"
                )
            self._constants = header.pop("constants")
            check_same_run(header, self.description, self.path)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                end += len(line)
                self._note(line)
                if not self.finished:
                    self._rows_end = end
        with writing(self.path):
            file.truncate(end)

    def _note(self, line: bytes) -> None:
        """Take down a line that is in the file."""
        try:
            found = json.loads(line)
            if "finished" in found:
                self.finished = True
                return
            self.done = int(found["row"])
            if unread(with_constants(found, self._constants or {})):
                self.unread.append(self.done)
        except (ValueError, KeyError, TypeError) as error:
            raise OutputError(
                f"{self.path} has a broken line after row {self.done}: repair or delete it"
            ) from error
        self.rows += 1


def _header(
    line: bytes, path: Path, error: type[RanmaskError] = DataError
) -> dict[str, Any] | None:
    """The record of a run, from the first line of its file; None where that is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("format") != RESULTS_FORMAT:
        return None
    check_format(found, RESULTS_FORMAT, RESULTS_VERSION, str(path), error)
    if not isinstance(found.get("constants"), dict):
        raise error(f"{path} has a broken first line: there are no constants in it")
    return found


def record_of(path: Path) -> dict[str, Any]:
    """The record of the run that wrote a file, as `read_header`; refused where no run did."""
    found = read_header(path)
    if found is None:
        raise DataError(f"{path} was not written by a run of ranmask: it has no record of one")
    return found


def read_header(path: Path) -> dict[str, Any] | None:
    """The record of the run that wrote a file, with its ``finished``; None where no run did."""
    with reading(path), path.open("rb") as file:
        found = _header(file.readline(), path)
        file.seek(max(0, path.stat().st_size - _MOST_OF_A_SUMMARY))
        last = file.read().removesuffix(b"\n").rpartition(b"\n")[2]
    if found is not None and last.startswith(b'{"finished":'):
        with contextlib.suppress(ValueError):  # a run that was killed
            found |= json.loads(last)
    return found

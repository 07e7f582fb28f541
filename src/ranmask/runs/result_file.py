"""The file of a run: one JSON line for each row, in their order, resumed where it stopped."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ranmask.errors import OutputError
from ranmask.results.files import (
    check_file,
    check_same_run,
    line_bytes,
    lock,
    read_json,
    write_json,
    writing,
)

_OTHER_FORMATS = (".csv", ".tsv", ".json", ".parquet", ".pq", ".xlsx", ".gz")


def check_result_file(path: Path) -> None:
    """Raise, before any work is done, where results cannot be appended to ``path``."""
    check_file(path)
    if path.suffix.lower() in _OTHER_FORMATS:
        raise OutputError(
            f"cannot write {path}: results are written as JSON lines, one for each row, not as "
            f"{path.suffix}; name it {path.with_suffix('.jsonl')}"
        )


class ResultFile:
    """The output of a run: opened for one writer, resumed after its last complete line.

    Use as a context manager.  ``rows``: how many rows are in the file; ``done``: the number of the
    last one; ``finished``: whether there are no more.
    """

    def __init__(self, path: Path, description: Mapping[str, Any]) -> None:
        check_result_file(path)
        self.path = path
        self.record = path.with_name(path.name + ".run.json")
        self.done = self.rows = 0
        self.finished = False
        self.description = json.loads(json.dumps(description))
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ResultFile:
        with writing(self.path):
            self._file = self.path.open("a+b")
        try:
            lock(self._file, self.path)
            self._check_record()
            self._find_end()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # reported when it was written
                self._file.close()

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Append lines and hand them to the operating system at once."""
        if self._file is None:
            raise ValueError("the result file is not open")
        data = b"".join(map(line_bytes, lines))
        with writing(self.path, resumed=True):
            written = 0
            while written < len(data):
                written += os.write(self._file.fileno(), data[written:])

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Record that every input row is in the file."""
        write_json(self.record, {**self.description, "finished": dict(summary)})

    def lines(self) -> Iterator[dict[str, Any]]:
        """All lines in the file, in their order."""
        with writing(self.path), self.path.open("rb") as file:
            for line in file:
                yield json.loads(line)

    def _check_record(self) -> None:
        if self.record.exists():
            found = read_json(self.record, error=OutputError)
            check_same_run(found, self.description, self.path)
            self.finished = "finished" in found
        elif self.path.stat().st_size:
            raise OutputError(
                f"{self.path} exists and was not written by ranmask: "
                "choose another output, or delete it"
            )
        else:
            write_json(self.record, self.description)

    def _find_end(self) -> None:
        """Cut an unfinished last line off and find the last row that is complete."""
        assert self._file is not None
        self._file.seek(0)
        end = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                self.done = int(json.loads(line)["row"])
            except (ValueError, KeyError, TypeError) as error:
                raise OutputError(
                    f"{self.path} has a broken line after row {self.done}: repair or delete it"
                ) from error
            end += len(line)
            self.rows += 1
        with writing(self.path):
            self._file.truncate(end)

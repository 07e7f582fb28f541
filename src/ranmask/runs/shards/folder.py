"""The folder of a sharded run: files that are whole or absent, and a manifest that names them.

    manifest.json         what was run, and each part with its rows, errors and checksum
    part-00000.parquet    the results of the first shard, in the order of the rows
    parts.jsonl           while the run goes on: the parts that are done, as they come

A run that is killed at any moment leaves such a folder; the same command finishes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranmask.errors import DataError, OutputError
from ranmask.results.files import (
    DRAFT,
    check_same_run,
    lock,
    read_json,
    write_file,
    write_json,
    writing,
)
from ranmask.runs.shards.work import Part, PartRecord

MANIFEST, LOG = "manifest.json", "parts.jsonl"
FORMAT, VERSION = "ranmask-shards", 1

_IDENTITY = ("run", "sharding", "versions")


@dataclass(frozen=True)
class Manifest:
    """What `read_manifest` finds: a run, finished or not.

    ``identity``: ``run``, ``sharding`` and ``versions``, which a run that goes on must share.
    ``machines``: what numbers were computed on.
    """

    identity: Mapping[str, Any]
    expected_rows: int | None
    parts: tuple[PartRecord, ...]
    machines: tuple[Mapping[str, Any], ...]
    finished: bool

    @property
    def run(self) -> Mapping[str, Any]:
        """The record of the run, as one that was not sharded has it."""
        found: Mapping[str, Any] = self.identity["run"]
        return found

    @property
    def command(self) -> str:
        """The command whose results these are."""
        return str(self.run["command"])

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the classes, where the record of the run has them."""
        about = self.run["classifier"]
        names = about.get("smoothed", about).get("labels")  # that of a cascade
        return None if names is None else tuple(names)

    @property
    def rows(self) -> int:
        """Rows that are done."""
        return sum(part.rows for part in self.parts)


def check_folder(path: Path) -> None:
    """Raise, before any work is done, where ``path`` can be no folder of a run."""
    if path.exists() and not path.is_dir():
        raise OutputError(
            f"cannot write {path}: it is a file, and a sharded run writes a folder; name another"
        )


def read_manifest(folder: Path) -> Manifest:
    """What a folder says of itself; parts that an unfinished run logged are among its parts."""
    path = folder / MANIFEST
    if not path.exists():
        raise DataError(f"{folder} is no folder of a sharded run: there is no {MANIFEST} in it")
    content = read_json(path, format=FORMAT, version=VERSION)
    try:
        parts = {part["number"]: PartRecord(**part) for part in content["parts"]}
        machines = list(content["machines"])
        logged = (folder / LOG).read_bytes() if (folder / LOG).exists() else b""
        for line in logged.splitlines(keepends=True):
            if line.endswith(b"\n"):  # else it was cut off with the run that wrote it
                entry = json.loads(line)
                parts[entry["part"]["number"]] = PartRecord(**entry["part"])
                machines.append(entry["machine"])
        return Manifest(
            {key: content[key] for key in _IDENTITY},
            content["expected_rows"],
            tuple(parts[number] for number in sorted(parts)),
            _distinct(machines),
            bool(content["finished"]) and not (folder / LOG).exists(),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"cannot read {path}: {error!r}") from error


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ShardFolder:
    """A folder opened for one writer.  Use as a context manager.

    ``done``: the parts that are there as they were recorded, by the numbers of their shards.  Those
    with rows whose reader did not answer, ``unread`` in all, are not: they are done again.
    Refuses a folder that belongs to another run, and one that another run is writing.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], expected_rows: int) -> None:
        self.path = path
        self.done: dict[int, PartRecord] = {}
        self.unread = 0
        self._identity = json.loads(json.dumps(identity))
        self._expected_rows = expected_rows
        self._machines: list[Mapping[str, Any]] = []
        self._lock: int | None = None

    def __enter__(self) -> ShardFolder:
        check_folder(self.path)
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY)
        try:
            lock(self._lock, self.path)
            self._find_done()
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            os.close(self._lock)

    def add(self, part: Part) -> None:
        """Write a part; when this returns it is on the disk, whatever happens."""
        write_file(self.path / part.record.name, part.data, durable=True)
        line = json.dumps({"part": asdict(part.record), "machine": dict(part.machine)}) + "\n"
        with writing(self.path / LOG, resumed=True), (self.path / LOG).open("ab") as log:
            log.write(line.encode())
            log.flush()
            os.fsync(log.fileno())
        self.done[part.record.number] = part.record
        self._machines.append(part.machine)

    def finish(self, shards: int) -> None:
        """Every shard of the input is done: say so in the manifest."""
        if sorted(self.done) != list(range(shards)):
            raise OutputError(
                f"{self.path} has {len(self.done)} parts where the input has {shards} shards: "
                "choose another folder"
            )
        self._write_manifest(finished=True)
        self._remove_log()

    def _find_done(self) -> None:
        if not (self.path / MANIFEST).exists():
            if any(path.suffix != DRAFT for path in self.path.iterdir()):
                raise OutputError(
                    f"{self.path} is not empty and was not written by ranmask: choose another "
                    "folder, or empty it"
                )
            self._write_manifest(finished=False)
            return
        found = read_manifest(self.path)
        check_same_run(found.identity, self._identity, self.path)
        self._identity = dict(found.identity)  # as it was begun, in what may differ
        self._machines = list(found.machines)
        self.unread = sum(record.unread for record in found.parts)
        for record in found.parts:
            if record.unread:
                continue
            with contextlib.suppress(OSError):
                if checksum(self.path / record.name) == record.sha256:
                    self.done[record.number] = record
        if len(self.done) < len(found.parts):
            self._write_manifest(finished=False)  # without those that are to be done again
            self._remove_log()
        elif (self.path / LOG).exists():  # a line that was cut off goes: the next begins a line
            with writing(self.path / LOG), (self.path / LOG).open("r+b") as log:
                log.truncate(log.read().rfind(b"\n") + 1)

    def _remove_log(self) -> None:
        with writing(self.path / LOG):
            (self.path / LOG).unlink(missing_ok=True)

    def _write_manifest(self, *, finished: bool) -> None:
        content = {
            "format": FORMAT,
            "version": VERSION,
            **self._identity,
            "expected_rows": self._expected_rows,
            "machines": _distinct(self._machines),
            "parts": [asdict(self.done[number]) for number in sorted(self.done)],
            "finished": finished,
        }
        write_json(self.path / MANIFEST, content, durable=True)


def _distinct(machines: list[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    known = {json.dumps(machine, sort_keys=True): machine for machine in machines if machine}
    return tuple(known[key] for key in sorted(known))

"""What a worker does, wherever it runs: load a model once, then turn shards into Parquet files."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import itertools
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranmask.data.rows import Row
from ranmask.errors import RanmaskError, ReaderWarning
from ranmask.runs.result_file import unread
from ranmask.runs.shards.columns import encoded
from ranmask.runs.task import Task

_LIBRARIES = ("numpy", "pyarrow", "safetensors", "tokenizers", "torch", "transformers")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """What every worker of a run needs to begin: how to load, on how many threads, and where."""

    make: Callable[[], Task]
    threads: int = 1
    directory: str = field(default_factory=lambda: str(Path.cwd()))


@dataclass(frozen=True)
class Piece:
    """Rows of one shard to work on: all of them, or those from ``start`` as a ``trial``.

    A trial only shows whether a worker survives the rows.
    """

    shard: int
    rows: tuple[Row, ...]
    start: int = 0
    trial: bool = False


def pieces(rows: Iterable[Row], size: int) -> Iterator[Piece]:
    """Shards, numbered from 0: ``size`` rows each, in their order; the last may have fewer."""
    left = iter(rows)
    shards = iter(lambda: tuple(itertools.islice(left, size)), ())
    return (Piece(number, shard) for number, shard in enumerate(shards))


@dataclass(frozen=True)
class Report:
    """What a worker says of itself once its model is loaded.

    ``description`` and ``versions`` must be the same for all workers of a run; ``machine`` says
    what the numbers were computed on, where that matters.
    """

    description: Mapping[str, Any]
    versions: Mapping[str, str]
    machine: Mapping[str, Any]


@dataclass(frozen=True)
class PartRecord:
    """What the manifest says of a part: its shard, what is in it, and the checksum of its file.

    ``unread``: rows whose reader did not answer.
    """

    number: int
    rows: int
    errors: int
    first_row: int
    last_row: int
    bytes: int
    sha256: str
    unread: int = 0

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"part-{self.number:05d}.parquet"


@dataclass(frozen=True)
class Part:
    """A finished shard: its file, the machine that made it, the rows that ``failed``, warnings."""

    record: PartRecord
    data: bytes
    machine: Mapping[str, Any]
    failed: tuple[tuple[int, str], ...]
    warned: tuple[str, ...] = ()


class Worker:
    """A loaded model and what is done with it, used by one thread."""

    def __init__(self, job: Job) -> None:
        self._task = job.make()
        description = self._task.description(sharded=True)
        self.report = Report(description, _versions(), _machine(description))

    def answer(self, piece: Piece) -> Part | RanmaskError | None:
        """The shard, or why there is none; None for a trial, whose worker has survived it."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ReaderWarning)
                lines = list(self._task.lines(piece.rows))
        except RanmaskError as error:
            return None if piece.trial else error
        if piece.trial:
            return None
        failed = tuple(
            (line["row"], line["error"]) for line in lines if line.get("error") is not None
        )
        data = encoded(lines, self._task.record)
        record = PartRecord(
            number=piece.shard,
            rows=len(lines),
            errors=len(failed),
            first_row=piece.rows[0].number,
            last_row=piece.rows[-1].number,
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            unread=sum(map(unread, lines)),
        )
        warned = tuple(dict.fromkeys(str(one.message) for one in caught))
        return Part(record, data, self.report.machine, failed, warned)


def prepare_process(job: Job) -> None:
    """Make this process a worker's, before any library that computes is imported."""
    with contextlib.suppress(OSError):  # on another machine it may not exist
        os.chdir(job.directory)  # names of models and modules are relative to the driver's
    os.environ.update(thread_limits(job.threads))


def thread_limits(threads: int) -> dict[str, str]:
    """What keeps numerical libraries to so many threads, if it is set before they are imported."""
    return dict.fromkeys(_THREADS, str(threads))


def _versions() -> dict[str, str]:
    """Versions of whatever the bytes of a result may depend on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _machine(description: Mapping[str, Any]) -> dict[str, Any]:
    """What decides a model's last bits; nothing for classifiers that compute in integers."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    return {
        "processor": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "tolerance": description.get("classifier", {}).get("tolerance"),
    }

"""What a worker does, wherever it runs: load a model once, then turn shards into Parquet files.

This module knows no processes and no cluster.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranmask import errors
from ranmask.data.rows import Row
from ranmask.errors import RanmaskError
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
    for number in itertools.count():
        taken = tuple(itertools.islice(left, size))
        if not taken:
            return
        yield Piece(number, taken)


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
class Part:
    """A finished shard: the bytes of its file, what is in it, and the machine that made it.

    ``failed``: the numbers of rows with an error, and why.
    """

    data: bytes
    rows: int
    failed: tuple[tuple[int, str], ...]
    first_row: int
    last_row: int
    machine: Mapping[str, Any]


@dataclass(frozen=True)
class Survived:
    """A trial that did its worker no harm."""


@dataclass(frozen=True)
class Refusal:
    """An error on purpose, on its way from a worker to the driver, which raises it."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: RanmaskError) -> Refusal:
        """From what was raised in the worker."""
        return cls(type(error).__name__, str(error))

    def error(self) -> RanmaskError:
        """The same error again."""
        kind: type[RanmaskError] = getattr(errors, self.kind, RanmaskError)
        # Not by calling it: some take other arguments than a message.
        return kind.__new__(kind, self.message)


class Worker:
    """A loaded model and what is done with it, used by one thread."""

    def __init__(self, job: Job) -> None:
        self._task = job.make()
        description = self._task.description(sharded=True)
        self.report = Report(description, _versions(), _machine(description))

    def answer(self, piece: Piece) -> Part | Refusal | Survived:
        """The file of a shard; of a trial, that it is over."""
        try:
            lines = list(self._task.lines(piece.rows))
        except RanmaskError as error:
            return Survived() if piece.trial else Refusal.of(error)
        if piece.trial:
            return Survived()
        failed = tuple(
            (line["row"], line["error"]) for line in lines if line.get("error") is not None
        )
        data = encoded(lines, self._task.record)
        first, last = piece.rows[0].number, piece.rows[-1].number
        return Part(data, len(lines), failed, first, last, self.report.machine)


def prepare_process(job: Job) -> None:
    """Make this process a worker's, before any library that computes is imported."""
    with contextlib.suppress(OSError):  # on another machine it may not exist
        os.chdir(job.directory)  # names of models and modules are relative to the driver's
    os.environ.update(thread_limits(job.threads))


def thread_limits(threads: int) -> dict[str, str]:
    """Environment variables that keep numerical libraries to so many threads.

    They are read when the libraries are imported.
    """
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
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "processor": torch.backends.cpu.get_cpu_capability(),
        "gpu": gpu,
        "tolerance": description.get("classifier", {}).get("tolerance"),
    }

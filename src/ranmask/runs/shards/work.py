"""What a worker does, wherever it runs: load a model once, then turn shards into Parquet files.

This module knows no processes and no cluster.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ranmask import errors
from ranmask.data.rows import Row
from ranmask.errors import RanmaskError
from ranmask.runs.run import Classify, Trouble, classify_rows
from ranmask.runs.shards.columns import Line, encoded

ROWS_AT_ONCE = 1024
"""Rows of a shard that are classified together.  Fixed, because a model's last bits depend on the
company that a text is computed in; part of every manifest."""

_LIBRARIES = ("numpy", "pyarrow", "safetensors", "tokenizers", "torch", "transformers")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class RowWork(Protocol):
    """What a command does with rows: one line for each, in their order.

    A line must depend on the rows that it is computed with and on nothing else.
    """

    @property
    def command(self) -> str:
        """The command's name."""

    @property
    def description(self) -> Mapping[str, Any]:
        """What its results depend on, as `run_description` has it; the ``input`` may be empty."""

    def lines(self, rows: Sequence[Row]) -> Iterable[Line]:
        """Lines for rows; a row with an error becomes a line with that error."""


MakeWork: TypeAlias = Callable[[], RowWork]
"""Loads the model.  Called in the worker; must be picklable, as a function of a module is."""


@dataclass(frozen=True)
class ClassifyWork:
    """Rows to predictions or certificates."""

    command: str
    labels: tuple[str, ...] | None
    classify: Classify
    description: Mapping[str, Any]
    trouble: Trouble = lambda why: None

    def lines(self, rows: Sequence[Row]) -> Iterable[Line]:
        """One line for each row."""
        outcomes = classify_rows(rows, self.classify, at_once=ROWS_AT_ONCE, trouble=self.trouble)
        return (outcome.to_dict(self.labels) for outcome in outcomes)


@dataclass(frozen=True)
class Job:
    """What every worker of a run needs to begin: how to load, on how many threads, and where."""

    make: MakeWork
    threads: int = 1
    directory: str = field(default_factory=lambda: str(Path.cwd()))


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
    """A finished shard: the bytes of its file, what is in it, and the machine that made it."""

    data: bytes
    rows: int
    errors: int
    first_row: int
    last_row: int
    machine: Mapping[str, Any]


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


class Workshop:
    """A loaded model and what is done with it.  One for each worker, used by one thread."""

    def __init__(self, make: MakeWork) -> None:
        self._work = make()
        self.report = Report(self._work.description, _versions(), _machine(self._work.description))

    def part(self, rows: Sequence[Row]) -> Part | Refusal:
        """The file of a shard."""
        try:
            lines = list(self._work.lines(rows))
        except RanmaskError as error:
            return Refusal.of(error)
        failed = sum(line.get("error") is not None for line in lines)
        data = encoded(lines, self._work.command)
        first, last = rows[0].number, rows[-1].number
        return Part(data, len(lines), failed, first, last, self.report.machine)

    def survives(self, rows: Sequence[Row]) -> None:
        """Work on rows for nothing but to see whether that can be done."""
        with contextlib.suppress(RanmaskError):
            for _ in self._work.lines(rows):
                pass


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
    classifier = description.get("classifier", {})
    return {
        "processor": torch.backends.cpu.get_cpu_capability(),
        "gpu": gpu,
        "tolerance": classifier.get("tolerance"),
    }

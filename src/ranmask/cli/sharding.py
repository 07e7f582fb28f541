"""``--shard-rows`` and what goes with it: runs over shards, from options to a summary."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ranmask.cli.inputs import Source
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from ranmask.runs.run import Result
    from ranmask.runs.shards.folder import Manifest
    from ranmask.runs.shards.work import Job, MakeWork
    from ranmask.runs.shards.workers import Engine

_TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Sharding:
    """How a run is cut and who computes it."""

    rows: int
    engine: str = "local"
    workers: int | None = None
    address: str | None = None
    cpus: int = 1
    gpus: float = 0

    def open(self, job: Job) -> AbstractContextManager[Engine]:
        """The engine, with its workers started."""
        if self.engine == "local":
            from ranmask.runs.shards.local import LocalEngine

            return LocalEngine(job, 1 if self.workers is None else self.workers)
        from ranmask.runs.shards.ray import Cluster, RayEngine

        return RayEngine(job, Cluster(self.address, self.workers, self.cpus, self.gpus))


def sharding_from(
    rows: int | None,
    engine: str | None,
    workers: int | None,
    address: str | None,
    cpus: int | None,
    gpus: float | None,
    *,
    output: Path | None,
) -> Sharding | None:
    """What was asked for; None for a run without shards."""
    others = {
        "--engine": engine,
        "--workers": workers,
        "--address": address,
        "--cpus-per-worker": cpus,
        "--gpus-per-worker": gpus,
    }
    if rows is None:
        for flag, value in others.items():
            if value is not None:
                raise OptionError(f"{flag} {value} goes with --shard-rows")
        return None
    if engine not in (None, "local", "ray"):
        raise OptionError(f"--engine must be local or ray, not {engine!r}")
    for flag, value in (
        ("--shard-rows", rows),
        ("--workers", workers),
        ("--cpus-per-worker", cpus),
    ):
        if value is not None and value < 1:
            raise OptionError(f"{flag} must be at least 1, not {value}")
    if gpus is not None and gpus < 0:
        raise OptionError(f"--gpus-per-worker must be at least 0, not {gpus}")
    if output is None:
        raise OptionError("--shard-rows needs --output: the folder for its files")
    if engine != "ray":
        for flag in ("--address", "--gpus-per-worker"):
            if others[flag] is not None:
                raise OptionError(f"{flag} {others[flag]} goes with --engine ray")
    return Sharding(rows, engine or "local", workers, address, cpus or 1, gpus or 0)


def run_sharded(
    sharding: Sharding,
    make: MakeWork,
    source: Source,
    output: Path,
    finish: Callable[[Console, Path, Manifest], bool],
) -> bool:
    """Work on every row of a file or corpus, shard by shard.  Returns whether a row failed.

    ``finish`` is called at the end: it prints a summary.
    """
    from rich.console import Console

    from ranmask.cli.terminal import progress
    from ranmask.runs.shards.folder import read_manifest
    from ranmask.runs.shards.run import Events, run_shards
    from ranmask.runs.shards.work import Job

    notes = Console(stderr=True)

    def say(words: str) -> None:
        notes.print(words, markup=False, highlight=False, soft_wrap=True)

    try:
        with (
            sharding.open(Job(make, sharding.cpus)) as engine,
            _ended_by_sigterm(),  # after Ray has set a handler of its own
            progress(source.total) as advance,
        ):

            def begun(rows: int) -> None:
                if rows:
                    say(f"resuming {output}: {rows} rows are done")
                    advance(rows)

            run_shards(
                source.rows,
                engine,
                output,
                origin=source.origin or {},
                shard_rows=sharding.rows,
                threads=sharding.cpus,
                expected_rows=source.total,
                events=Events(begun, advance, say),
            )
    except (KeyboardInterrupt, SystemExit):
        say(f"interrupted: the same command resumes {output}")
        raise
    return finish(notes, output, read_manifest(output))


def print_results(console: Console, folder: Path, manifest: Manifest) -> bool:
    """The summary of a run of certify or predict.  Returns whether a row failed."""
    from ranmask.cli import printing
    from ranmask.runs.shards.merging import summarise, summarise_compared

    summary, counts = summarise(folder, manifest)
    certified = manifest.command == "certify"
    printing.print_summary(console, summary, counts, certified, class_names(manifest))
    printing.print_kinds(console, summarise_compared(folder, manifest))
    example = _example(folder, manifest)
    if example is not None and printing.needs_words(example):
        printing.explain(console, example)
    return counts["errors"] > 0


def print_attacked(console: Console, folder: Path, manifest: Manifest) -> bool:
    """The summary of a run of attack.  Returns whether a row failed."""
    from ranmask.attacks.runs import summarise_shards
    from ranmask.cli.attack_printing import print_attack_summary

    summary = summarise_shards(folder, manifest)
    recipe = str(manifest.run["recipe"]["name"])
    print_attack_summary(console, recipe, summary, class_names(manifest))
    return summary.errors > 0


def result_values(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """The same summary as plain JSON values, as the record of a run has it."""
    from ranmask.cli import printing
    from ranmask.runs.shards.merging import summarise, summarise_compared

    summary, counts = summarise(folder, manifest)
    names = class_names(manifest)
    values = printing.summary_values(summary, counts, manifest.command == "certify", names)
    return {**values, **printing.kind_values(summarise_compared(folder, manifest), names)}


def class_names(manifest: Manifest) -> list[str] | None:
    """The names of the classes, where the record of the run has them."""
    about = manifest.run["classifier"]
    names: list[str] | None = about.get("smoothed", about).get("labels")  # that of a cascade
    return names


def _example(folder: Path, manifest: Manifest) -> Result | None:
    """The first result of a run: all of them are of one kind."""
    from ranmask import results
    from ranmask.runs.shards.merging import lines

    line = next((one for one in lines(folder, manifest) if "version" in one), None)
    if line is None:
        return None
    cascade = "suspicion" in line
    if manifest.command == "certify":
        kind = results.CascadeCertificate if cascade else results.Certificate
        return kind.from_dict(line)
    return (results.CascadePrediction if cascade else results.Prediction).from_dict(line)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """A polite request to end is an exception, so that workers are ended too."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

"""``reproduction.json``: what a reproduction is, on what it ran, and what became of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ranmask.results.files import write_json, writing

FORMAT, VERSION = "ranmask-reproduction", 1
FILE_NAME = "reproduction.json"

Kind: TypeAlias = Literal["certified", "empirical", "beta", "rates", "entropy", "arithmetic"]
Measures: TypeAlias = Literal["training", "certified", "attack", "predict", "beta", "examples"]
Size: TypeAlias = Literal["default", "smoke", "paper"]
State: TypeAlias = Literal["done", "failed", "todo"]


@dataclass(frozen=True)
class StepRecord:
    """One step: its command as one would type it, its file in the folder, and how it went."""

    name: str
    measures: Measures
    command: str
    output: str
    place: Mapping[str, Any]
    state: State = "todo"
    seconds: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class ReproductionRecord:
    """What ``reproduction.json`` holds.

    ``recipe``: name, title, kind, paper and about.  ``settings``: those of the size.
    ``machine``: versions and hardware of the step that was done last.
    """

    recipe: Mapping[str, str]
    size: Size
    settings: Mapping[str, Any]
    machine: Mapping[str, str]
    steps: tuple[StepRecord, ...]

    def with_step(self, changed: StepRecord, machine: Mapping[str, str]) -> ReproductionRecord:
        """This record after one of its steps was worked on."""
        steps = tuple(changed if step.name == changed.name else step for step in self.steps)
        return replace(self, steps=steps, machine=machine or self.machine)


def write_record(folder: Path, record: ReproductionRecord) -> None:
    """Write ``reproduction.json`` so that a reader finds the old one or the new one, whole."""
    content = {"format": FORMAT, "version": VERSION, **asdict(record)}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE_NAME, content, shared=True)

"""``reproduction.json``: what a reproduction is, on what it ran, and what became of its steps."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ranmask.errors import DataError
from ranmask.runs.run import reported

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
    write_json(folder / FILE_NAME, content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """A JSON file that is there as a whole or not at all."""
    with reported(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = draft_of(path)
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)


def draft_of(path: Path) -> Path:
    """Where a file is written before it takes its place; two runs at once have two drafts."""
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} holds no JSON object")
    return content

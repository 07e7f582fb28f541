"""``reproduction.json``: what a reproduction is, on what it ran, and what became of its steps."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranmask.paper.reading import INDEX, INDEX_FORMAT, INDEX_VERSION
from ranmask.paper.run_data import Measures, Reproduction
from ranmask.paper.run_data_file import content
from ranmask.paper.typed_json import to_json
from ranmask.runs.run import reported


def result_name(name: str, measures: Measures) -> str:
    """The file of a step's result, inside the folder of a reproduction."""
    ending = "training.json" if measures == "training" else "jsonl"
    return f"results/{name}.{ending}"


def write_record(folder: Path, run: Reproduction) -> None:
    """Write ``reproduction.json`` so that a reader finds the old one or the new one, whole."""
    steps = [
        {
            **{key: value for key, value in to_json(step).items() if key not in ("data", "result")},
            "output": result_name(step.name, step.measures),
        }
        for step in run.steps
    ]
    head = {"format": INDEX_FORMAT, "version": INDEX_VERSION}
    write_json(folder / INDEX, {**head, **content(run, steps)})


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

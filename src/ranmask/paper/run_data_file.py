"""The condensed file of a reproduction: versioned JSON, one list a line, small enough to commit.

Guarantee: what `write` wrote `read_condensed` reads back, equal in every field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranmask.errors import DataError
from ranmask.paper.run_data import (
    Attacked,
    Betas,
    Certified,
    Examples,
    Measures,
    Predicted,
    Reproduction,
    Result,
    Step,
    Trained,
)
from ranmask.paper.typed_json import JsonObject, from_json, read_object, to_json
from ranmask.results.files import write_file

FORMAT, VERSION = "ranmask-condensed", 1

RESULTS: dict[Measures, type[Result]] = {
    "training": Trained,
    "certified": Certified,
    "attack": Attacked,
    "predict": Predicted,
    "beta": Betas,
    "examples": Examples,
}
"""What a step that measures something results in."""

_RECIPE = ("name", "title", "kind", "paper", "about")
_SPREAD = 5  # levels with a line for each entry: the whole, steps, a step, its result, readings


def content(run: Reproduction, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """What every file says of a reproduction in the same words."""
    return {
        "recipe": {key: getattr(run, key) for key in _RECIPE},
        "size": run.size,
        "settings": run.settings,
        "machine": run.machine,
        "steps": steps,
    }


def from_content(found: JsonObject, read_step: Callable[[Step, JsonObject], Step]) -> Reproduction:
    """The reproduction that a file describes; ``read_step`` adds the result of a step."""
    if not isinstance(found["steps"], list):
        raise DataError(f"{found.where}: steps is a {type(found['steps']).__name__}, not a list")
    steps = []
    for number, values in enumerate(found["steps"], 1):
        entry = JsonObject(values, f"{found.where}: step {number}")
        without = {key: value for key, value in entry.items() if key != "result"}
        steps.append(read_step(from_json(Step, without, entry.where), entry))
    recipe = found.inner("recipe")
    for key in _RECIPE:
        recipe[key]  # says what is missing there, and not in the whole
    values = {**{key: found[key] for key in ("size", "settings", "machine")}, **recipe}
    return from_json(Reproduction, {**values, "steps": tuple(steps)}, f"{found.where}: recipe")


def write(run: Reproduction, path: Path) -> None:
    """Write the condensed file of a reproduction, whole or not at all."""
    values = content(run, [to_json(step) for step in run.steps])
    text = _text({"format": FORMAT, "version": VERSION, **values}, _SPREAD)
    write_file(path, text + "\n")


def read_condensed(path: Path) -> Reproduction:
    """The reproduction that `write` wrote."""

    def with_result(step: Step, entry: JsonObject) -> Step:
        if entry["result"] is None:
            return step
        where = f"{path}: result of {step.name}"
        return replace(step, result=from_json(RESULTS[step.measures], entry["result"], where))

    return from_content(read_object(path, FORMAT, VERSION), with_result)


def _text(value: Any, levels: int) -> str:
    """JSON with a line for each entry of the uppermost levels, and without blanks below them."""
    if levels and value and isinstance(value, Mapping):
        lines = [f"{json.dumps(key)}: {_text(entry, levels - 1)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(lines) + "\n}"
    if levels and value and isinstance(value, list) and isinstance(value[0], Mapping):
        return "[\n" + ",\n".join(_text(entry, levels - 1) for entry in value) + "\n]"
    return json.dumps(value, separators=(",", ":"))

"""Where the steps of recipes lie on disk: equal commands share one place, so none is done twice.

    RUNS/steps/NAME-FINGERPRINT/    what a step made, its log, and step.json once it is done
    RUNS/RECIPE-SIZE/               reproduction.json, and a copy of each result

A fingerprint belongs to a command and to all that it builds on, in one version of ranmask; where
the result is written, on which device, and where ranmask is installed do not count.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ranmask import __version__
from ranmask.models import SHIPPED_FOLDER
from ranmask.paper.reproduction.recipe import FOLDER, OUTPUT, Recipe, RecipeStep
from ranmask.paper.run_data import Reproduction, Step
from ranmask.paper.typed_json import without_folders

_CALLED = "ranmask"
_TABLE = ("--kind", "words")  # a table of words is trained and asked on no device


@dataclass(frozen=True)
class Planned:
    """A step with its place.  ``words``: its command, ready to run.  ``needs``: other keys."""

    step: RecipeStep
    key: str
    folder: Path
    words: tuple[str, ...]
    needs: tuple[str, ...]

    @property
    def made(self) -> Path:
        """What the step makes: the folder of a model, or a file with a line for each text."""
        return _made(self.folder, self.step)

    @property
    def texts(self) -> int | None:
        """How many texts it goes through, where its command says so."""
        for flag, value in itertools.pairwise(self.words):
            if flag == "--rows" and value.isdecimal():
                return int(value)
        return None


def plan(recipe: Recipe, runs: Path, device: str | None = None) -> tuple[Planned, ...]:
    """The steps of a recipe with their places under ``runs``, in an order that can be followed."""
    planned: dict[str, Planned] = {}
    tables: set[str] = set()
    for step in recipe.steps:
        key = f"{step.name}-{_fingerprint(step, planned)}"
        folder = runs / "steps" / key
        places = {f"@{name}": str(before.made) for name, before in planned.items()}
        places[OUTPUT] = str(_made(folder, step))
        words = tuple(places.get(word, word) for word in step.words)
        if _TABLE in itertools.pairwise(words) or not tables.isdisjoint(step.needs):
            tables.add(step.name)
        elif device is not None:
            words += ("--device", device)
        needs = tuple(planned[name].key for name in step.needs)
        planned[step.name] = Planned(step, key, folder, words, needs)
    return tuple(planned.values())


def _made(folder: Path, step: RecipeStep) -> Path:
    return folder / ("model" if step.measures == "training" else "result.jsonl")


def _fingerprint(step: RecipeStep, before: Mapping[str, Planned]) -> str:
    keys = {f"@{name}": planned.key for name, planned in before.items()}
    words = [keys.get(word, _wherever_it_lies(word)) for word in step.words]
    if words[0] == "attack":  # as its flag was called when results/reproduced was made
        words = ["--texts" if word == "--rows" else word for word in words]
    spelt = json.dumps([__version__, words])
    return hashlib.sha256(spelt.encode()).hexdigest()[:10]


def _wherever_it_lies(word: str) -> str:
    """A word of a command, without the folder that ranmask is installed in."""
    for folder, called in ((FOLDER, "recipes"), (SHIPPED_FOLDER, "models")):
        word = word.replace(str(folder), f"{_CALLED}/{called}")
    return word


def run_folder(recipe: Recipe, runs: Path) -> Path:
    """Where the reproduction of a recipe in its size lies."""
    ending = "" if recipe.size == "default" else f"-{recipe.size}"
    return runs / f"{recipe.name}{ending}"


def result_name(step: RecipeStep | Step) -> str:
    """The file of a step's result, inside the folder of a reproduction."""
    ending = "training.json" if step.measures == "training" else "jsonl"
    return f"results/{step.name}.{ending}"


def shown_command(step: RecipeStep) -> str:
    """The command as one would type it, without the places of this machine."""
    shown = [
        step.name if word == OUTPUT else without_folders(word).removeprefix("@")
        for word in step.words
    ]
    return shlex.join((_CALLED, *shown))


def new_record(recipe: Recipe) -> Reproduction:
    """The record of a recipe of which nothing is done yet."""
    return Reproduction(
        name=recipe.name,
        title=recipe.title,
        kind=recipe.kind,
        paper=recipe.paper,
        about=recipe.about,
        size=recipe.size,
        settings=without_folders(recipe.sizes),
        machine={},
        steps=tuple(
            Step(step.name, step.measures, shown_command(step), dict(step.place), "todo")
            for step in recipe.steps
        ),
    )

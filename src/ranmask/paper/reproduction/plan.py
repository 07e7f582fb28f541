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
from ranmask.paper.reproduction.recipe import FOLDER, OUTPUT, Recipe, Step
from ranmask.paper.reproduction.record import ReproductionRecord, StepRecord

_RESULT, _MODEL = "result.jsonl", "model"
_CALLED = "ranmask"
_TABLE = ("--kind", "words")  # a table of words is trained and asked on no device


@dataclass(frozen=True)
class Planned:
    """A step with its place.  ``words``: its command, ready to run.  ``needs``: other keys."""

    step: Step
    key: str
    folder: Path
    words: tuple[str, ...]
    needs: tuple[str, ...]

    @property
    def made(self) -> Path:
        """What the step makes: the folder of a model, or a file with a line for each text."""
        return self.folder / (_MODEL if self.step.measures == "training" else _RESULT)

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
        made = Planned(step, key, folder, (), ()).made
        places = {f"@{name}": str(one.made) for name, one in planned.items()}
        places[OUTPUT] = str(made)
        words = tuple(places.get(word, word) for word in step.words)
        if _TABLE in itertools.pairwise(words) or not tables.isdisjoint(step.needs):
            tables.add(step.name)
        elif device is not None:
            words += ("--device", device)
        needs = tuple(planned[name].key for name in step.needs)
        planned[step.name] = Planned(step, key, folder, words, needs)
    return tuple(planned.values())


def _fingerprint(step: Step, before: Mapping[str, Planned]) -> str:
    keys = {f"@{name}": one.key for name, one in before.items()}
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


def result_name(step: Step) -> str:
    """The file of a step's result, inside the folder of a reproduction."""
    ending = "training.json" if step.measures == "training" else "jsonl"
    return f"results/{step.name}.{ending}"


def shown_command(step: Step) -> str:
    """The command as one would type it, without the places of this machine."""
    return shlex.join((_CALLED, *(_shown(word, step) for word in step.words)))


def _shown(word: str, step: Step) -> str:
    if word == OUTPUT:
        return step.name
    return Path(word).name if Path(word).is_absolute() else word.removeprefix("@")


def new_record(recipe: Recipe) -> ReproductionRecord:
    """The record of a recipe of which nothing is done yet."""
    steps = tuple(
        StepRecord(
            step.name, step.measures, shown_command(step), result_name(step), dict(step.place)
        )
        for step in recipe.steps
    )
    about = {
        "name": recipe.name,
        "title": recipe.title,
        "kind": recipe.kind,
        "paper": recipe.paper,
        "about": recipe.about,
    }
    settings = {key: _without_folders(value) for key, value in recipe.sizes.items()}
    return ReproductionRecord(about, recipe.size, settings, {}, steps)


def _without_folders(value: object) -> object:
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name
    return value

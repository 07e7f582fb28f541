"""Where the steps of recipes lie on disk: equal commands share one place, so none is done twice.

    RUNS/steps/NAME-FINGERPRINT/    what a step made, its log, and step.json once it is done
    RUNS/RECIPE-SIZE-VARIANT/       reproduction.json, and a copy of each result

A fingerprint belongs to a command and to all that it builds on, in one version of ranmask; where
the result is written, on which device, and where ranmask is installed do not count.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ranmask import __version__
from ranmask.errors import OptionError, suggestion
from ranmask.models import SHIPPED_FOLDER
from ranmask.paper.reproduction.recipe import FOLDER, OUTPUT, Recipe, RecipeStep
from ranmask.paper.run_data import Step

_SHOWN_STEPS = 12
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
        return self._number("--rows")

    @property
    def copies(self) -> int:
        """Masked copies that it asks of a text: in all, or for each query of an attack."""
        asked = [self._number(option) for option in ("--masks", "--selection-masks")]
        return sum(filter(None, asked)) or 1

    @property
    def title(self) -> str:
        """What people are told of it: its name, and its seed where that is not 0."""
        seed = self._number("--seed")
        return f"{self.step.name}, seed {seed}" if seed else self.step.name

    def _number(self, option: str) -> int | None:
        for flag, value in itertools.pairwise(self.words):
            if flag == option and value.isdecimal():
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


def chosen(steps: Sequence[Planned], names: str | None) -> set[str]:
    """Keys of the steps whose names match ``names``, patterns between commas, and of their needs.

    None: of all steps.
    """
    by_key = {step.key: step for step in steps}
    if names is None:
        return set(by_key)
    patterns = [pattern.strip() for pattern in names.split(",")]
    for pattern in patterns:
        if not any(fnmatchcase(step.step.name, pattern) for step in steps):
            known = list(dict.fromkeys(step.step.name for step in steps))
            shown = known if len(known) <= _SHOWN_STEPS else [*known[:_SHOWN_STEPS], "..."]
            raise OptionError(
                f"no step of these recipes is called {pattern!r}.{suggestion(pattern, known)} "
                f"There are {', '.join(shown) or 'none'}"
            )
    waiting = [
        step.key
        for step in steps
        if any(fnmatchcase(step.step.name, pattern) for pattern in patterns)
    ]
    found: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += by_key[key].needs
    return found


def workload(steps: Iterable[Planned]) -> str:
    """What steps will take, as far as their commands say: trainings, texts, copies of each."""
    trainings = 0
    runs: dict[tuple[str, int], list[int]] = {}
    for step in steps:
        if step.step.measures == "training":
            trainings += 1
        elif step.texts:
            runs.setdefault((step.words[0], step.copies), []).append(step.texts)
    parts = [f"{trainings} training{'s' * (trainings > 1)}"] if trainings else []
    for (command, copies), texts in runs.items():
        each = "a query" if command == "attack" else "each"
        asked = f"{copies:,} copies" if copies > 1 else "1 copy"
        parts.append(f"{command} {sum(texts):,} texts, {asked} {each}")
    return "; ".join(parts)


def _made(folder: Path, step: RecipeStep) -> Path:
    return folder / ("model" if step.measures == "training" else "result.jsonl")


def _fingerprint(step: RecipeStep, before: Mapping[str, Planned]) -> str:
    places = {str(FOLDER): "ranmask/recipes", str(SHIPPED_FOLDER): "ranmask/models"}
    keys = {f"@{name}": planned.key for name, planned in before.items()}
    words = []
    for word in step.words:
        for folder, called in places.items():  # wherever ranmask is installed
            word = word.replace(folder, called)
        words.append(keys.get(word, word))
    if words[0] == "attack":  # as its flag was called when results/reproduced was made
        words = ["--texts" if word == "--rows" else word for word in words]
    spelt = json.dumps([__version__, words])
    return hashlib.sha256(spelt.encode()).hexdigest()[:10]


def run_folder(recipe: Recipe, runs: Path) -> Path:
    """Where the reproduction of a recipe in its size and variant lies."""
    return runs / recipe.folder_name


def result_name(step: Step) -> str:
    """The file of a step's result, inside the folder of a reproduction."""
    ending = "training.json" if step.measures == "training" else "jsonl"
    return f"results/{step.name}.{ending}"

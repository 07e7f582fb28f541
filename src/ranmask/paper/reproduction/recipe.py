"""A recipe: the ranmask commands that make one table or figure of the paper, as a TOML file.

    format = "ranmask-recipe"
    version = 1
    title = "Certified robustness on SST2"
    kind = "certified"              # how a report shows it
    paper = "tb-sst2-certified"     # the table or figure, as the paper labels it
    corpus = "sst2"
    about = "What it shows."

    [settings]                      # of every size
    rates = [0.2, 0.3]

    [sizes.default]                 # of one size; beside it [sizes.smoke] and [sizes.paper]
    texts = 1000

    [[steps]]
    name = "sst2-mask{rate}"
    measures = "training"
    each = { rate = "rates" }       # one step for each value of a setting
    command = "train --data {corpus} {train} --mask-rate {rate} --output {output}"

    [[steps]]
    name = "sst2-mask{rate}-certified"
    measures = "certified"
    each = { rate = "rates" }
    place = { rate = "{rate}" }     # where its result belongs in the table
    command = "certify --model @sst2-mask{rate} --data {corpus} --rows {texts} --output {output}"

``{setting}`` stands for a setting, ``{output}`` for the step's own place, ``@name`` for what the
step of that name made, which is then done first.  A word that is one setting only, and that
setting a list, becomes as many words; an item of a list may name settings itself.  Settings
that all recipes share are in ``shared.toml`` beside them: of a size, and of a corpus in it.
"""

from __future__ import annotations

import itertools
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from ranmask.errors import DataError, OptionError
from ranmask.models import SHIPPED_FOLDER
from ranmask.paper.reproduction.filling import Filled
from ranmask.paper.reproduction.record import Kind, Measures, Size
from ranmask.results.files import check_format

FORMAT, VERSION = "ranmask-recipe", 1
FOLDER = Path(__file__).parents[1] / "recipes"
OUTPUT = "\0output"  # what stands for {output} until a step has its place

_SHARED = "shared.toml"
_NO_SIZES = (  # settings that tell a reader nothing
    *("recipes", "shipped", "together", "validation_masks"),
    *("model", "example_model", "trained_rates"),
)
_NAME = re.compile(r"\w[\w.-]*")  # it becomes the name of a folder
_TOP = {"format", "version", "title", "kind", "paper", "corpus", "about", "sizes"}
_MAYBE = {"settings", "steps"}
_SHAPES: dict[type, str] = {str: "a string", dict: "a table", list: "a list"}
_TEXTS = ("title", "kind", "paper", "corpus", "about")
_OF_STEP = {"name": str, "measures": str, "command": str, "each": dict, "place": dict}
_COMMANDS = {
    "training": "train",
    "certified": "certify",
    "examples": "certify",
    "attack": "attack",
    "predict": "predict",
    "beta": "beta",
}


@dataclass(frozen=True)
class Step:
    """One ranmask command.  ``words`` of it may be `OUTPUT`, or ``@name`` for another step."""

    name: str
    measures: Measures
    words: tuple[str, ...]
    place: Mapping[str, Any]

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the steps that must be done before."""
        return tuple(word[1:] for word in self.words if word.startswith("@"))


@dataclass(frozen=True)
class Recipe:
    """A recipe in one size; each step follows what it needs.

    ``settings``: as they are written.  ``sizes``: those among them that are numbers, words, or
    lists of such, filled in: what a reader wants to know.
    """

    name: str
    title: str
    kind: Kind
    paper: str
    about: str
    size: Size
    settings: Mapping[str, Any]
    sizes: Mapping[str, Any]
    steps: tuple[Step, ...]


def recipe_names() -> list[str]:
    """The recipes that come with ranmask."""
    return sorted(path.stem for path in FOLDER.glob("*.toml") if path.name != _SHARED)


def load_recipe(
    name: str, size: Size = "default", overrides: Mapping[str, Any] | None = None
) -> Recipe:
    """A recipe that comes with ranmask, by its name, or another one by the path of its file.

    ``overrides`` replace settings; one that the recipe does not have is refused.
    """
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if name.endswith(".toml"):
        if not path.is_file():
            raise OptionError(f"there is no recipe file {name}")
    elif name not in recipe_names():
        raise OptionError(
            f"there is no recipe {name!r}; there are {', '.join(recipe_names())}; or give the "
            "path of a .toml file"
        )
    read = _parsed(path)
    _check(read, path)
    settings = _settings(read, size, path)
    for key, value in (overrides or {}).items():
        if key not in settings:
            raise OptionError(
                f"the recipe {path.stem} has no setting {key!r}; it has {', '.join(settings)}"
            )
        settings[key] = value
    steps = tuple(_steps(read.get("steps", []), settings, path))
    _check_steps(steps, path)
    filled = Filled(settings, path)
    sizes = {
        key: filled.value(value)
        for key, value in settings.items()
        if key not in _NO_SIZES and _plain(value)
    }
    return Recipe(
        path.stem,
        read["title"],
        read["kind"],
        read["paper"],
        " ".join(read["about"].split()),
        size,
        settings,
        sizes,
        steps,
    )


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, int | float) for item in value)
    return isinstance(value, str | int | float)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the recipe {path}: {error}") from error


def _check(read: Mapping[str, Any], path: Path) -> None:
    check_format(read, FORMAT, VERSION, str(path))
    unknown, missing = set(read) - _TOP - _MAYBE, _TOP - set(read)
    if unknown or missing:
        wrong = [f"unknown {key!r}" for key in sorted(unknown)]
        wrong += [f"no {key!r}" for key in sorted(missing)]
        raise DataError(f"the recipe {path} has {', '.join(wrong)}")
    shapes = {**dict.fromkeys(_TEXTS, str), "sizes": dict, "settings": dict, "steps": list}
    _check_shapes(read, shapes, f"the recipe {path}")
    _check_shapes(read["sizes"], dict.fromkeys(read["sizes"], dict), f"sizes of the recipe {path}")
    if read["kind"] not in get_args(Kind):
        raise DataError(
            f"the recipe {path} has the kind {read['kind']!r}; kinds are "
            f"{', '.join(get_args(Kind))}"
        )


def _check_shapes(read: Mapping[str, Any], shapes: Mapping[str, type], whose: str) -> None:
    for key, shape in shapes.items():
        if key in read and not isinstance(read[key], shape):
            raise DataError(f"{whose}: {key!r} must be {_SHAPES[shape]}, not {read[key]!r}")


def _settings(read: Mapping[str, Any], size: Size, path: Path) -> dict[str, Any]:
    """Settings of a size: the shared ones, those of its corpus, then the recipe's own."""
    if size not in read["sizes"]:
        raise OptionError(
            f"the recipe {path.stem} has no size {size!r}: {', '.join(read['sizes'])}"
        )
    shared = _parsed(FOLDER / _SHARED).get(size, {})
    of_corpus = shared.get("corpora", {}).get(read["corpus"], {})
    general = {key: value for key, value in shared.items() if key != "corpora"}
    own = {
        "corpus": read["corpus"],
        "recipes": str(FOLDER),
        "shipped": str(SHIPPED_FOLDER),
    }
    return {**own, **general, **of_corpus, **read.get("settings", {}), **read["sizes"][size]}


def _steps(
    templates: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], path: Path
) -> Iterator[Step]:
    for number, template in enumerate(templates, 1):
        whose = f"step {number} of the recipe {path}"
        if not isinstance(template, Mapping):
            raise DataError(f"{whose} must be a table, not {template!r}")
        unknown = set(template) - set(_OF_STEP)
        missing = {"name", "measures", "command"} - set(template)
        if unknown or missing:
            wrong = ", ".join(sorted(unknown | missing))
            raise DataError(f"{whose} has unknown or missing keys: {wrong}")
        _check_shapes(template, _OF_STEP, whose)
        each = template.get("each", {})
        for key, setting in each.items():
            if not isinstance(settings.get(setting) if isinstance(setting, str) else None, list):
                raise DataError(
                    f"{whose} takes each {key!r} from {setting!r}, which is no setting that is a "
                    "list, as [0.3, 0.9]"
                )
        for values in itertools.product(*(settings[setting] for setting in each.values())):
            known = {**settings, **dict(zip(each, values, strict=True)), "output": OUTPUT}
            filled = Filled(known, path)
            yield Step(
                filled.text(template["name"]),
                template["measures"],
                tuple(filled.words(_split(template["command"], whose))),
                {key: filled.value(value) for key, value in template.get("place", {}).items()},
            )


def _split(command: str, whose: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise DataError(f"{whose} has a command that cannot be read: {error}") from error


def _check_steps(steps: Sequence[Step], path: Path) -> None:
    names: set[str] = set()
    for step in steps:
        if not _NAME.fullmatch(step.name):
            raise DataError(
                f"the step {step.name!r} of {path} cannot have that name: letters, digits and _.- "
                "only, and no . or - in front"
            )
        if step.name in names:
            raise DataError(f"the recipe {path} has two steps {step.name!r}")
        command = step.words[0] if step.words else ""
        if _COMMANDS.get(step.measures) != command:
            known = ", ".join(f"{measured!r} by {by}" for measured, by in _COMMANDS.items())
            raise DataError(
                f"the step {step.name!r} of {path} measures {step.measures!r} by {command!r}; it "
                f"can measure {known}"
            )
        if step.words.count(OUTPUT) != 1:
            raise DataError(f"the step {step.name!r} of {path} must name {{output}} once")
        for needed in step.needs:
            if needed not in names:
                raise DataError(
                    f"the step {step.name!r} of {path} needs {needed!r}, which is no step before it"
                )
        names.add(step.name)

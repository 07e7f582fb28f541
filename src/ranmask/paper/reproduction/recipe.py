"""A recipe: the ranmask commands that make one table or figure of the paper, as a TOML file.

docs/reproduction.md describes the format ("Your own recipe").
"""

from __future__ import annotations

import itertools
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ranmask.errors import DataError, OptionError
from ranmask.models import SHIPPED_FOLDER
from ranmask.paper.reproduction.templating import Template
from ranmask.paper.result_lines import COMMANDS
from ranmask.paper.run_data import Kind, Measures
from ranmask.paper.typed_json import check_entries, from_json

FORMAT, VERSION = "ranmask-recipe", 1
FOLDER = Path(__file__).parents[1] / "recipes"
OUTPUT = "\0output"  # what stands for {output} until a step has its place

Size: TypeAlias = Literal["default", "smoke", "paper"]

_SHARED = "shared.toml"
_NO_SIZES = (  # settings that tell a reader nothing
    *("recipes", "shipped", "together", "validation_masks"),
    *("model", "example_model", "trained_rates"),
)
_NAME = re.compile(r"\w[\w.-]*")  # it becomes the name of a folder
_COMMANDS: dict[str, str] = {"training": "train"} | dict(COMMANDS)


@dataclass(frozen=True)
class RecipeStep:
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
    steps: tuple[RecipeStep, ...]


@dataclass(frozen=True)
class _StepFile:
    """A step as a recipe writes it."""

    name: str
    measures: str
    command: str
    each: Mapping[str, Any] = field(default_factory=dict)
    place: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _RecipeFile:
    """A recipe as it is written."""

    format: str
    version: int
    title: str
    kind: Kind
    paper: str
    corpus: str
    about: str
    sizes: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[_StepFile, ...] = ()

    def check(self, where: str) -> None:
        tables: dict[str, object] = dict.fromkeys(self.sizes, Mapping[str, Any])
        check_entries(self.sizes, tables, f"{where}: sizes", by_hand=True)


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
    values = _parsed(path)
    if values.get("format") != FORMAT or values.get("version") != VERSION:
        raise DataError(
            f"{path} is no recipe that this ranmask reads: format {values.get('format')!r} version "
            f"{values.get('version')!r}, expected {FORMAT!r} version {VERSION}"
        )
    read = from_json(_RecipeFile, values, f"the recipe {path}", by_hand=True)
    settings = _settings(read, size, path)
    for key, value in (overrides or {}).items():
        if key not in settings:
            raise OptionError(
                f"the recipe {path.stem} has no setting {key!r}; it has {', '.join(settings)}"
            )
        settings[key] = value
    template = Template(settings, path)
    steps = tuple(_steps(read.steps, settings, path))
    _check_steps(steps, path)
    return Recipe(
        name=path.stem,
        title=read.title,
        kind=read.kind,
        paper=read.paper,
        about=" ".join(read.about.split()),
        size=size,
        settings=settings,
        sizes={
            key: template.value(value)
            for key, value in settings.items()
            if key not in _NO_SIZES and _plain(value)
        },
        steps=steps,
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


def _settings(read: _RecipeFile, size: Size, path: Path) -> dict[str, Any]:
    if size not in read.sizes:
        raise OptionError(f"the recipe {path.stem} has no size {size!r}: {', '.join(read.sizes)}")
    shared = _parsed(FOLDER / _SHARED).get(size, {})
    of_corpus = shared.pop("corpora", {}).get(read.corpus, {})
    own = {"corpus": read.corpus, "recipes": str(FOLDER), "shipped": str(SHIPPED_FOLDER)}
    return {**own, **shared, **of_corpus, **read.settings, **read.sizes[size]}


def _steps(
    written: Sequence[_StepFile], settings: Mapping[str, Any], path: Path
) -> Iterator[RecipeStep]:
    """The steps that are written, each as often as it says."""
    for number, step in enumerate(written, 1):
        whose = f"step {number} of the recipe {path}"
        for key, setting in step.each.items():
            if not isinstance(settings.get(setting) if isinstance(setting, str) else None, list):
                raise DataError(
                    f"{whose} takes each {key!r} from {setting!r}, which is no setting that is a "
                    "list, as [0.3, 0.9]"
                )
        try:
            words = shlex.split(step.command)
        except ValueError as error:
            raise DataError(f"{whose} has a command that cannot be read: {error}") from error
        for values in itertools.product(*(settings[setting] for setting in step.each.values())):
            known = {**settings, **dict(zip(step.each, values, strict=True)), "output": OUTPUT}
            template = Template(known, path)
            name, filled = template.text(step.name), tuple(template.words(words))
            whose = f"the step {name!r} of {path}"
            command = filled[0] if filled else ""
            if _COMMANDS.get(step.measures) != command:
                can = ", ".join(f"{measured!r} by {by}" for measured, by in _COMMANDS.items())
                raise DataError(
                    f"{whose} measures {step.measures!r} by {command!r}; it can measure {can}"
                )
            place = {key: template.value(value) for key, value in step.place.items()}
            yield RecipeStep(name, step.measures, filled, place)  # type: ignore[arg-type]


def _check_steps(steps: Sequence[RecipeStep], path: Path) -> None:
    names: set[str] = set()
    for step in steps:
        whose = f"the step {step.name!r} of {path}"
        if not _NAME.fullmatch(step.name):
            raise DataError(
                f"{whose} cannot have that name: letters, digits and _.- only, and no . or - in "
                "front"
            )
        if step.name in names:
            raise DataError(f"the recipe {path} has two steps {step.name!r}")
        if step.words.count(OUTPUT) != 1:
            raise DataError(f"{whose} must name {{output}} once")
        for needed in step.needs:
            if needed not in names:
                raise DataError(f"{whose} needs {needed!r}, which is no step before it")
        names.add(step.name)

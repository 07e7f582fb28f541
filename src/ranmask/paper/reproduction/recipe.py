"""A recipe: the ranmask commands that make one table or figure of the paper, as a TOML file.

docs/reproduction.md describes the format ("Your own recipe").
"""

from __future__ import annotations

import itertools
import re
import shlex
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ranmask.errors import DataError, OptionError, suggestion
from ranmask.models import SHIPPED_FOLDER
from ranmask.paper.result_lines import COMMANDS
from ranmask.paper.run_data import Kind, Reproduction, Step, model_name
from ranmask.paper.typed_json import check_entries, from_json, without_folders
from ranmask.results.files import check_format

FORMAT, VERSION = "ranmask-recipe", 1
FOLDER = Path(__file__).parents[1] / "recipes"
OUTPUT = "\0output"  # what stands for {output} until a step has its place

MODELS = frozenset({"base", "attack_base"})
"""Settings that name a model, by its folder or its hub id."""

Size: TypeAlias = Literal["default", "smoke", "paper"]

_SHARED = "shared.toml"
_NAMED = re.compile(r"\{[^{}]+\}")
_DEEPEST = 20  # settings that name settings; deeper, they name each other in a circle
_NO_SIZES = (  # settings that tell a reader nothing
    *("recipes", "shipped", "together", "validation_masks"),
    *("model", "example_model", "trained_rates"),
)
_NAME = re.compile(r"\w[\w.-]*")  # it becomes the name of a folder
_COMMANDS: dict[str, str] = {"training": "train"} | dict(COMMANDS)


@dataclass(frozen=True)
class RecipeStep(Step):
    """One ranmask command.  ``words`` of it may be `OUTPUT`, or ``@name`` for another step."""

    words: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the steps that must be done before."""
        return tuple(word[1:] for word in self.words if word.startswith("@"))


@dataclass(frozen=True)
class Recipe(Reproduction):
    """A recipe in one size: its reproduction, of which nothing is done yet.

    Each step follows what it needs.  ``settings``: those that are numbers, words, or lists of
    such, filled in: what a reader wants to know.  ``written``: all of them, as they are written;
    ``used``: those that some step depends on.
    """

    steps: tuple[RecipeStep, ...]
    written: Mapping[str, Any] = field(default_factory=dict)
    used: frozenset[str] = frozenset()


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
            f"there is no recipe {name!r}.{suggestion(name, recipe_names())} There are "
            f"{', '.join(recipe_names())}; or give the path of a .toml file"
        )
    values = _parsed(path)
    check_format(values, FORMAT, VERSION, f"the recipe {path}")
    extended = values.pop("extends", None)
    if extended is not None:
        if extended not in recipe_names():
            raise DataError(f"the recipe {path} extends {extended!r}, which is none that we have")
        values = _over(_parsed(FOLDER / f"{extended}.toml"), values)
    read = from_json(_RecipeFile, values, f"the recipe {path}", by_hand=True)
    own = _settings(read, size, path)
    seed = own.get("seed", 0)
    if type(seed) is not int or seed < 0:
        raise DataError(
            f"the recipe {path}: its setting seed is {seed!r}, not a whole number of at least 0"
        )
    for key in overrides or {}:
        if key not in own:
            raise OptionError(
                f"the recipe {path.stem} has no setting {key!r}.{suggestion(key, own)} It has "
                f"{', '.join(own)}"
            )
    for key, value in (overrides or {}).items():
        kinds = {int: "a whole number", list: "a list"}
        if (kind := type(own[key])) in kinds and type(value) is not kind:
            raise OptionError(f"the setting {key} is {kinds[kind]}, as {own[key]}; not {value!r}")
        if kind is int and value < 0:
            raise OptionError(f"the setting {key} is at least 0, not {value}")
    settings = {**own, **(overrides or {})}
    template = Template(settings, path)
    found, used_by = _steps(read.steps, settings, path)
    each = {setting for step in read.steps for setting in step.each.values()}  # of an empty one too
    used = each.union(*used_by.values())
    variant = without_folders(_changed(Template(own, path), template, used))
    steps = tuple(
        replace(step, uses=tuple(key for key in variant if key in used_by[step.name]))
        for step in found
    )
    plain = {
        key: template.value(value)
        for key, value in settings.items()
        if (key in used or (key == "base" and steps)) and key not in _NO_SIZES and _plain(value)
    }
    return Recipe(
        name=path.stem,
        title=read.title,
        kind=read.kind,
        paper=read.paper,
        about=" ".join(read.about.split()),
        size=size,
        settings=without_folders(plain),
        machine={},
        steps=steps,
        variant=variant,
        written=settings,
        used=frozenset(used),
    )


def _changed(own: Template, template: Template, used: set[str]) -> dict[str, Any]:
    """Settings that steps use, and that are not the recipe's own once they are filled in."""
    found = {}
    for key in template.settings:
        if key in used and key not in _NO_SIZES:
            before, value = (each.value(each.settings[key]) for each in (own, template))
            if key in MODELS:  # a folder is the model of the hub that it is called after
                before, value = model_name(str(before)), model_name(str(value))
            if value != before:
                found[key] = value
    return found


def _over(values: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Entries with others over them, tables entry by entry."""
    merged = dict(values)
    for key, value in own.items():
        tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _over(merged[key], value) if tables else value
    return merged


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
) -> tuple[list[RecipeStep], dict[str, set[str]]]:
    """The steps that are written, each as often as it says, and the settings behind each."""
    found: dict[str, RecipeStep] = {}
    used: dict[str, set[str]] = {}
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
            place = {key: template.value(value) for key, value in step.place.items()}
            planned = RecipeStep(
                name,
                step.measures,  # type: ignore[arg-type]
                _shown_command(name, filled),
                place,
                "todo",
                words=filled,
            )
            _check_step(planned, found.keys(), path)
            found[name] = planned
            needed = (used[before] for before in planned.needs)
            used[name] = template.used.union(step.each.values(), *needed)
    return list(found.values()), used


def _shown_command(name: str, words: Sequence[str]) -> str:
    """The command as one would type it, without the places of this machine."""
    shown = [name if word == OUTPUT else without_folders(word).removeprefix("@") for word in words]
    return shlex.join(("ranmask", *shown))


def _check_step(step: RecipeStep, before: Collection[str], path: Path) -> None:
    whose = f"the step {step.name!r} of {path}"
    command = step.words[0] if step.words else ""
    if _COMMANDS.get(step.measures) != command:
        can = ", ".join(f"{measured!r} by {by}" for measured, by in _COMMANDS.items())
        raise DataError(f"{whose} measures {step.measures!r} by {command!r}; it can measure {can}")
    if not _NAME.fullmatch(step.name):
        raise DataError(
            f"{whose} cannot have that name: letters, digits and _.- only, and no . or - in front"
        )
    if step.name in before:
        raise DataError(f"the recipe {path} has two steps {step.name!r}")
    if step.words.count(OUTPUT) != 1:
        raise DataError(f"{whose} must name {{output}} once")
    for needed in step.needs:
        if needed not in before:
            raise DataError(
                f"{whose} needs {needed!r}, which is no step before it: where a setting was "
                "changed, change with it what is trained"
            )


class Template:
    """Fills settings, as ``{texts}`` or ``{rival.options}``, into the words of a recipe.

    ``used``: the names of the settings that were filled in.

    >>> template = Template({"rate": 0.9, "fit": ["--rows", "{rows}"], "rows": 8}, Path("my.toml"))
    >>> template.text("mask{rate}"), template.value("{rate}")
    ('mask0.9', 0.9)
    >>> list(template.words(["train", "{fit}"]))
    ['train', '--rows', '8']
    """

    def __init__(self, settings: Mapping[str, Any], path: Path) -> None:
        self.settings = settings
        self.used: set[str] = set()
        self._whose = f"the recipe {path}"

    def value(self, given: Any, depth: int = 0) -> Any:
        """A setting itself where ``given`` names one and nothing else, with its type."""
        if not isinstance(given, str):
            return given
        if not _NAMED.fullmatch(given):
            return _NAMED.sub(lambda match: self.text(match.group(), given, depth + 1), given)
        if depth > _DEEPEST:
            raise DataError(f"{self._whose} has settings that name each other: {given}")
        found: Any = self.settings
        self.used.add(given[1:-1].partition(".")[0])
        for part in given[1:-1].split("."):
            if not isinstance(found, Mapping) or part not in found:
                raise DataError(f"{self._whose} names a setting {given[1:-1]!r} that is not there")
            found = found[part]
        return self.value(found, depth + 1)

    def words(self, given: Sequence[Any], depth: int = 0) -> Iterator[str]:
        """Words with their settings; one that is a list becomes as many words."""
        for word in given:
            found = self.value(word, depth)
            if isinstance(found, list):
                yield from self.words(found, depth + 1)
            elif isinstance(found, Mapping):
                raise DataError(f"{self._whose} has a table as a word of a command: {word!r}")
            else:
                yield str(found)

    def text(self, given: str, whole: str = "", depth: int = 0) -> str:
        """A name with its settings; ``whole``: what it is a part of."""
        found = self.value(given, depth)
        if isinstance(found, list | Mapping):
            raise DataError(
                f"{self._whose} has a list or a table inside of {whole or given!r}: only a word "
                "of a command that is nothing else can be a list"
            )
        return str(found)

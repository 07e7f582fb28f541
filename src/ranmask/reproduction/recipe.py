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
from ranmask.reproduction.record import Kind, Measures, Size

FORMAT, VERSION = "ranmask-recipe", 1
FOLDER = Path(__file__).parents[1] / "recipes"
OUTPUT = "\0output"  # what stands for {output} until a step has its place

_SHARED = "shared.toml"
_NO_SIZES = ("recipes", "shipped", "together", "validation_masks")
_ALONE = re.compile(r"\{[^{}]+\}")
_TOP = {"format", "version", "title", "kind", "paper", "corpus", "about", "sizes"}
_MAYBE = {"settings", "steps"}
_OF_STEP = {"name", "measures", "each", "place", "command"}
_COMMANDS = {
    "training": ("train",),
    "certified": ("certify",),
    "examples": ("certify",),
    "attack": ("attack",),
    "predict": ("predict",),
    "beta": ("beta",),
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
    if not path.is_file():
        if name.endswith(".toml"):
            raise OptionError(f"there is no recipe file {name}")
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
    filled = _Filled(settings, path)
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
    if read.get("format") != FORMAT or read.get("version") != VERSION:
        raise DataError(
            f"{path} is no recipe that this ranmask reads: format {read.get('format')!r} version "
            f"{read.get('version')!r}, expected {FORMAT!r} version {VERSION}"
        )
    unknown, missing = set(read) - _TOP - _MAYBE, _TOP - set(read)
    if unknown or missing:
        wrong = [f"unknown {key!r}" for key in sorted(unknown)]
        wrong += [f"no {key!r}" for key in sorted(missing)]
        raise DataError(f"the recipe {path} has {', '.join(wrong)}")
    if read["kind"] not in get_args(Kind):
        raise DataError(
            f"the recipe {path} has the kind {read['kind']!r}; kinds are "
            f"{', '.join(get_args(Kind))}"
        )


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
        "shipped": str(FOLDER.parent / "models"),
    }
    return {**own, **general, **of_corpus, **read.get("settings", {}), **read["sizes"][size]}


def _steps(
    templates: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], path: Path
) -> Iterator[Step]:
    for template in templates:
        unknown = set(template) - _OF_STEP
        missing = {"name", "measures", "command"} - set(template)
        if unknown or missing:
            wrong = ", ".join(sorted(unknown | missing))
            raise DataError(f"a step of the recipe {path} has unknown or missing keys: {wrong}")
        each = template.get("each", {})
        for key, setting in each.items():
            if not isinstance(settings.get(setting), list):
                raise DataError(f"the recipe {path} has no list {setting!r} for {key!r}")
        for values in itertools.product(*(settings[setting] for setting in each.values())):
            known = {**settings, **dict(zip(each, values, strict=True)), "output": OUTPUT}
            filled = _Filled(known, path)
            yield Step(
                filled.text(template["name"]),
                template["measures"],
                tuple(filled.words(shlex.split(template["command"]))),
                {key: filled.value(value) for key, value in template.get("place", {}).items()},
            )


class _Filled:
    """Fills settings into what a recipe says."""

    def __init__(self, known: Mapping[str, Any], path: Path) -> None:
        self._known = known
        self._path = path

    def value(self, given: Any) -> Any:
        """A setting itself where ``given`` names one and nothing else, with its type."""
        if isinstance(given, str) and _ALONE.fullmatch(given):
            found = self._lookup(given[1:-1])
            return self.text(found) if isinstance(found, str) else found
        return self.text(given) if isinstance(given, str) else given

    def words(self, given: Sequence[str]) -> Iterator[str]:
        for word in given:
            found = self.value(word)
            if isinstance(found, list):
                yield from self.words([str(item) for item in found])
            else:
                yield str(found)

    def text(self, given: str) -> str:
        return re.sub(_ALONE, lambda match: str(self.value(match.group())), given)

    def _lookup(self, name: str) -> Any:
        found: Any = self._known
        for part in name.split("."):
            if not isinstance(found, Mapping) or part not in found:
                raise DataError(
                    f"the recipe {self._path} names a setting {name!r} that is not there"
                )
            found = found[part]
        return found


def _check_steps(steps: Sequence[Step], path: Path) -> None:
    names: set[str] = set()
    for step in steps:
        if step.name in names:
            raise DataError(f"the recipe {path} has two steps {step.name!r}")
        if step.measures not in _COMMANDS or step.words[0] not in _COMMANDS[step.measures]:
            raise DataError(
                f"the step {step.name!r} of {path} measures {step.measures!r} by {step.words[0]!r}"
            )
        if step.words.count(OUTPUT) != 1:
            raise DataError(f"the step {step.name!r} of {path} must name {{output}} once")
        for needed in step.needs:
            if needed not in names:
                raise DataError(
                    f"the step {step.name!r} of {path} needs {needed!r}, which is no step before it"
                )
        names.add(step.name)

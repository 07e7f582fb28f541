"""The recipes, one short file each; to add one, write a file and name it below.

Plausible texts, as the field attacks (each with a preset):

`textfooler`     synonyms of the same part of speech, similar sentences
`bert-attack`    words that a masked language model finds likely
`deepwordbug`    typing errors
`several-words`  synonyms, several at a time: for victims whose votes move in steps
`labels-only`    synonyms, found without seeing any score

Any words, to test certificates:

`anywords`       whatever does most harm, within a budget of words
`critical`       the same, at the words that the certificate itself names as the worst
"""

from __future__ import annotations

from typing import Any

from ranmask.attacks.recipe import Recipe
from ranmask.attacks.recipes import (
    anywords,
    bert_attack,
    critical,
    deepwordbug,
    labels_only,
    several_words,
    textfooler,
)
from ranmask.attacks.supplies import PRESETS, Preset, Supplies
from ranmask.errors import OptionError

_MODULES: dict[str, Any] = {
    "textfooler": textfooler,
    "bert-attack": bert_attack,
    "deepwordbug": deepwordbug,
    "several-words": several_words,
    "labels-only": labels_only,
    "anywords": anywords,
    "critical": critical,
}
"""Each module has ``build(supplies, preset)`` and ``USES``, the supplies that it takes."""

RECIPES = tuple(_MODULES)


def uses(name: str) -> tuple[str, ...]:
    """The supplies that a recipe takes: names of fields of `Supplies`."""
    used: tuple[str, ...] = _MODULES[name].USES
    return used


def build_recipe(
    name: str, supplies: Supplies | None = None, preset: Preset = "ranmask-2021"
) -> Recipe:
    """A recipe by name, made with these resources."""
    check_names(name, preset)
    recipe: Recipe = _MODULES[name].build(supplies or Supplies(), preset)
    return recipe


def check_names(name: str, preset: str) -> None:
    """Refuse a recipe or a preset that does not exist."""
    if name not in RECIPES:
        raise OptionError(f"recipe must be one of {', '.join(RECIPES)}; not {name!r}")
    if preset not in PRESETS:
        raise OptionError(f"preset must be one of {', '.join(PRESETS)}; not {preset!r}")

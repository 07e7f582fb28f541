"""A defence by its name: which class it is, and what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ranmask.attacks.resources.neighbours import DEFAULT_NEIGHBOURS, NeighbourTable, load_neighbours
from ranmask.errors import OptionError
from ranmask.training.defence import Defence

_CLASSES = {
    "none": "ranmask.training.defence:Defence",
    "pgd": "ranmask.training.defences.pgd:Pgd",
    "freelb": "ranmask.training.defences.freelb:FreeLb",
    "hotflip": "ranmask.training.defences.hotflip:HotFlip",
    "dne": "ranmask.training.defences.dne:Dne",
    "augment": "ranmask.training.defences.augment:Augment",
    "safer": "ranmask.training.defences.safer:Safer",
}
_MASKED = "ranmask"
NAMES = (
    "none",
    _MASKED,
    *(name for name in _CLASSES if name != "none"),
    *(f"{_MASKED}+{name}" for name in _CLASSES if name not in ("none", "safer")),
)
"""All defences, and those that go together with masking."""


def parts_of(name: str) -> tuple[bool, str]:
    """Whether a defence hides words, and what else it does: ``none`` or another name."""
    if name not in NAMES:
        raise OptionError(f"--defence must be one of {', '.join(NAMES)}; not {name!r}")
    masked, _, other = name.rpartition("+")
    if name == _MASKED:
        return True, "none"
    return masked == _MASKED, other


def build(name: str, given: Mapping[str, Any]) -> Defence:
    """The defence ``name``, without its masking; ``given`` are its own options.

    ``neighbours`` is the name or the file of a table; one that is needed and not given is
    `DEFAULT_NEIGHBOURS`.  Options that the defence does not have are refused by name.
    """
    _, own = parts_of(name)
    module, _, attribute = _CLASSES[own].partition(":")
    kind = getattr(importlib.import_module(module), attribute)
    known = {one.name for one in fields(kind) if one.init} if kind is not Defence else set()
    for option in given:
        if option not in known:
            flag = "--" + option.replace("_", "-")
            raise OptionError(f"{flag} means nothing with --defence {name}: leave it out")
    options = dict(given)
    if "neighbours" in options or own in ("dne", "safer") or options.get("flips") == "synonyms":
        options["neighbours"] = _table(options.get("neighbours") or DEFAULT_NEIGHBOURS)
    defence: Defence = kind(**options)
    return defence


def _table(source: str) -> NeighbourTable:
    found = load_neighbours(source)
    if not isinstance(found, NeighbourTable):
        raise OptionError(
            f"--neighbours {source} holds word vectors: training needs a table of neighbours, a "
            ".json file of words and lists"
        )
    return found

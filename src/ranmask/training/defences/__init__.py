"""The defences that the paper compares, trained by one command: ``ranmask train --defence NAME``.

Each overrides what it changes of `training.defence.Defence`, and its file holds nothing else:

============  =====================================================================
``none``      `training.defence`: plain training, on whole texts
``ranmask``   `training.masking`: words are hidden; the smoothed label is certified
``pgd``       `perturbation`: the loss at the worst point that ascent finds near the embeddings
``freelb``    `perturbation`: the mean loss along such an ascent, at the price of the ascent alone
``hotflip``   `hotflip`: half of the loss on copies whose words were flipped by the gradient
``dne``       `dne`: the loss at the worst point in the convex hulls of the words' synonyms
``augment``   `augment`: texts that were attacked are added to the training set
``safer``     `safer`: words are replaced by random synonyms; the smoothed label is certified
============  =====================================================================

``ranmask+pgd``, ``ranmask+freelb``, ``ranmask+hotflip``, ``ranmask+dne`` and ``ranmask+augment``
do both: what they learn from is masked, and the certificate is that of ``ranmask``.
**None of them but** ``ranmask`` **and** ``safer`` **proves anything.**
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ranmask.attacks.resources.neighbours import DEFAULT_NEIGHBOURS, NeighbourTable, load_neighbours
from ranmask.errors import OptionError
from ranmask.options.fields import check_choice
from ranmask.training.defence import Defence
from ranmask.training.defences.augment import Augment
from ranmask.training.defences.dne import Dne
from ranmask.training.defences.hotflip import HotFlip
from ranmask.training.defences.perturbation import FreeLb, Pgd
from ranmask.training.defences.safer import Safer

_CLASSES: dict[str, Any] = {kind.name: kind for kind in (Pgd, FreeLb, HotFlip, Dne, Augment, Safer)}
_MASKED = "ranmask"
NAMES = (
    *("none", _MASKED, *_CLASSES),
    *(f"{_MASKED}+{name}" for name in _CLASSES if name != "safer"),
)
"""All defences, and those that go together with masking."""


def parts_of(name: str) -> tuple[bool, str]:
    """Whether a defence hides words, and what else it does: ``none`` or another name."""
    check_choice("defence", name, NAMES)
    masked, _, other = name.rpartition("+")
    return (True, "none") if name == _MASKED else (masked == _MASKED, other)


def option_names(name: str) -> list[str]:
    """The options that the defence ``name`` has, beside those of training."""
    kind = _CLASSES.get(parts_of(name)[1])
    return [] if kind is None else [field.name for field in fields(kind) if field.init]


def build(name: str, given: Mapping[str, Any]) -> Defence:
    """The defence ``name``, without its masking; ``given`` are its own options.

    ``neighbours`` is the name or the file of a table; one that is needed and not given is
    `DEFAULT_NEIGHBOURS`.
    """
    for option in given.keys() - set(option_names(name)):
        raise OptionError(f"{option} means nothing with defence={name!r}: leave it out")
    options = dict(given)
    needs_table = parts_of(name)[1] in ("dne", "safer") or options.get("flips") == "synonyms"
    if needs_table or "neighbours" in options:
        source = options.get("neighbours") or DEFAULT_NEIGHBOURS
        options["neighbours"] = load_neighbours(source)
        if not isinstance(options["neighbours"], NeighbourTable):
            raise OptionError(
                f"neighbours={source!r} holds word vectors: training needs a table of neighbours, "
                "a .json file of words and lists"
            )
    defence: Defence = _CLASSES.get(parts_of(name)[1], Defence)(**options)
    return defence

"""Synonyms, found by an attacker who sees labels and never a score."""

from __future__ import annotations

from dataclasses import replace

from ranmask.attacks.ranking import AtRandom
from ranmask.attacks.recipe import Recipe
from ranmask.attacks.recipes import textfooler
from ranmask.attacks.search import LabelsOnly
from ranmask.attacks.supplies import Preset, Supplies

USES = textfooler.USES


def build(supplies: Supplies, preset: Preset) -> Recipe:
    """TextFooler's words and constraints; words are put back in a random order."""
    like = textfooler.build(supplies, preset, "labels-only")
    return replace(like, ranking=AtRandom(), search=LabelsOnly())

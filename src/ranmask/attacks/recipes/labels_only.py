"""Synonyms, found by an attacker who sees labels and never a score."""

from __future__ import annotations

from dataclasses import replace

from ranmask.attacks.ranking import AtRandom
from ranmask.attacks.recipe import Recipe
from ranmask.attacks.recipes import textfooler
from ranmask.attacks.search import LabelsOnly
from ranmask.attacks.supplies import Preset, Supplies


def build(supplies: Supplies, preset: Preset) -> Recipe:
    """TextFooler's words and constraints; words are put back in a random order."""
    like = textfooler.build(supplies, preset)
    name = like.name.replace("textfooler", "labels-only")
    return replace(like, name=name, ranking=AtRandom(), search=LabelsOnly())

"""Synonyms, several words at a time, for victims whose votes move in steps.

The paper argues that one word alone hardly moves a vote, so that greedy searches get stuck.  This
one does not ask whether one word alone helps.
"""

from __future__ import annotations

from dataclasses import replace

from ranmask.attacks.recipe import Recipe
from ranmask.attacks.recipes import textfooler
from ranmask.attacks.search import Together
from ranmask.attacks.supplies import Preset, Supplies

USES = textfooler.USES


def build(supplies: Supplies, preset: Preset) -> Recipe:
    """TextFooler's words and constraints, another search."""
    return replace(textfooler.build(supplies, preset, "several-words"), search=Together())

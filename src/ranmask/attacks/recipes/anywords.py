"""Any word of a vocabulary in any place: exactly what a certificate says is harmless."""

from __future__ import annotations

from ranmask.attacks.candidates import AnyWord
from ranmask.attacks.ranking import ByUnknown
from ranmask.attacks.recipe import Recipe
from ranmask.attacks.search import AnyWords
from ranmask.attacks.supplies import Preset, Supplies

HOW = "words that may be put anywhere, as vocabulary_of(texts) (--vocabulary)"


USES = ("vocabulary",)


def build(supplies: Supplies, preset: Preset, name: str = "anywords") -> Recipe:
    """Needs a vocabulary; presets change nothing."""
    vocabulary = supplies.need(name, "vocabulary", HOW)
    return Recipe(
        name=name,
        preset=None,
        cutting="words",
        ranking=ByUnknown(),
        candidates=AnyWord(vocabulary.words),
        search=AnyWords(),
        budget="radius+1",
        resources=supplies.describe("vocabulary"),
    )

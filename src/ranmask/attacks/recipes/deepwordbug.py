"""DeepWordBug (Gao et al. 2018): one typing error a word, 30 characters a text at most."""

from __future__ import annotations

from ranmask.attacks.candidates import TypingErrors
from ranmask.attacks.constraints import EditDistance
from ranmask.attacks.ranking import ByUnknown
from ranmask.attacks.recipe import Recipe
from ranmask.attacks.resources.stop_words import load_stop_words
from ranmask.attacks.search import Greedy
from ranmask.attacks.supplies import CUTTINGS, Preset, Supplies

USES = ("stop_words",)


def build(supplies: Supplies, preset: Preset) -> Recipe:
    """Needs nothing but stop words."""
    stop_words = supplies.stop_words or load_stop_words("nltk")
    return Recipe(
        name="deepwordbug",
        preset=preset,
        cutting=CUTTINGS[preset],
        stop_words=stop_words.words,
        ranking=ByUnknown(),
        candidates=TypingErrors(),
        constraints=(EditDistance(30),),
        search=Greedy(),
        frozen_premise=False,
        resources={"stop_words": stop_words.description()},
    )

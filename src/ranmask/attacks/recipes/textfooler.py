"""TextFooler (Jin et al. 2020): synonyms of the same part of speech in similar sentences."""

from __future__ import annotations

from ranmask.attacks.candidates import Synonyms
from ranmask.attacks.constraints import (
    Constraint,
    SamePartOfSpeech,
    SimilarSentence,
    SimilarWord,
)
from ranmask.attacks.ranking import ByDeletion
from ranmask.attacks.recipe import Recipe
from ranmask.attacks.resources.stop_words import load_stop_words
from ranmask.attacks.search import Greedy
from ranmask.attacks.supplies import CUTTINGS, Preset, Supplies, name_with

HOW = "a table of synonyms or word vectors, as load_neighbours('jia2019') (--neighbours)"


USES = ("neighbours", "tagger", "sentence_encoder", "stop_words")


def build(supplies: Supplies, preset: Preset, name: str = "textfooler") -> Recipe:
    """Needs neighbours; uses a tagger and a sentence encoder where they are given."""
    neighbours = supplies.need(name, "neighbours", HOW)
    constraints: list[Constraint] = [SimilarWord(neighbours, least=0.5)]
    if supplies.tagger is not None:
        constraints.append(SamePartOfSpeech(supplies.tagger))
    if supplies.sentence_encoder is not None:
        constraints.append(
            SimilarSentence(
                0.840845057, metric="angular", against="current", window=15, skip_short=True
            )
        )
    stop_words = supplies.stop_words or load_stop_words("textfooler")
    return Recipe(
        name=name_with(name, supplies, "tagger", "sentence_encoder"),
        preset=preset,
        cutting=CUTTINGS[preset],
        stop_words=stop_words.words,
        ranking=ByDeletion(),
        candidates=Synonyms(neighbours, count=50),
        constraints=tuple(constraints),
        search=Greedy(),
        frozen_premise=True,
        sentence_encoder=supplies.sentence_encoder,
        resources={
            **supplies.describe("neighbours", "tagger", "sentence_encoder"),
            "stop_words": stop_words.description(),
        },
    )

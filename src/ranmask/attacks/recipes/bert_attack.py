"""BERT-Attack (Li et al. 2020): words that a masked language model finds likely there."""

from __future__ import annotations

from ranmask.attacks.candidates import LikelyWords
from ranmask.attacks.constraints import Constraint, MostWords, SimilarSentence
from ranmask.attacks.ranking import ByUnknown
from ranmask.attacks.recipe import Recipe
from ranmask.attacks.resources.stop_words import load_stop_words
from ranmask.attacks.search import Greedy
from ranmask.attacks.supplies import CUTTINGS, Preset, Supplies, name_with

HOW = (
    "a masked language model, as MaskedLM.from_pretrained(folder) (--attack-lm); "
    "`ranmask train --kind mlm` trains one"
)
USES = ("masked_lm", "sentence_encoder", "stop_words")
COUNTS: dict[Preset, int] = {"ranmask-2021": 48, "textattack-0.3.11": 8}


def build(supplies: Supplies, preset: Preset) -> Recipe:
    """Needs a masked language model; uses a sentence encoder where one is given."""
    model = supplies.need("bert-attack", "masked_lm", HOW)
    constraints: list[Constraint] = [MostWords(0.4)]
    if supplies.sentence_encoder is not None:
        constraints.append(SimilarSentence(0.2, metric="cosine", against="original"))
    stop_words = supplies.stop_words or load_stop_words("nltk")
    return Recipe(
        name=name_with("bert-attack", supplies, "sentence_encoder"),
        preset=preset,
        cutting=CUTTINGS[preset],
        stop_words=stop_words.words,
        ranking=ByUnknown(),
        candidates=LikelyWords(model, COUNTS[preset]),
        constraints=tuple(constraints),
        search=Greedy(),
        frozen_premise=False,
        sentence_encoder=supplies.sentence_encoder,
        masked_lm=model,
        resources={
            **supplies.describe("masked_lm", "sentence_encoder"),
            "stop_words": stop_words.description(),
        },
    )

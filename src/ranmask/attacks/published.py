"""The parts of recipes that others published, each with the settings that TextAttack 0.3.11 has.

Constraints whose resource is not given are None, and left out of the recipe.
"""

from __future__ import annotations

from typing import Any

from ranmask.attacks import edits, search
from ranmask.attacks.constraints import (
    EditDistance,
    MostWords,
    SamePartOfSpeech,
    SimilarSentence,
    SimilarWord,
)
from ranmask.attacks.population import Genetic, Swarm
from ranmask.attacks.replacements import AnyOf, Candidates, LikelyWords, Synonyms, TypingErrors
from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.attacks.resources.neighbours import Neighbours
from ranmask.attacks.resources.sentence_encoders import SentenceEncoder
from ranmask.attacks.resources.tagging import Tagger

LIKELY_WORDS = {"ranmask-2021": 48, "textattack-0.3.11": 8}
"""BERT-Attack's candidates, by preset."""

_ALL = 10**6


def textfooler(
    preset: str,
    neighbours: Neighbours,
    tagger: Tagger | None,
    sentence_encoder: SentenceEncoder | None,
) -> dict[str, Any]:
    """TextFooler (Jin et al. 2020)."""
    similar = SimilarSentence(0.840845057, "angular", "current", 15, skip_short=True)
    return {
        "ranking": search.ByDeletion(),
        "candidates": Synonyms(neighbours, count=50),
        "constraints": (
            SimilarWord(neighbours, least=0.5),
            None if tagger is None else SamePartOfSpeech(tagger),
            None if sentence_encoder is None else similar,
        ),
    }


def bert_attack(
    preset: str, masked_lm: MaskedLM, sentence_encoder: SentenceEncoder | None
) -> dict[str, Any]:
    """BERT-Attack (Li et al. 2020)."""
    return {
        "ranking": search.ByUnknown(),
        "candidates": LikelyWords(masked_lm, LIKELY_WORDS[preset]),
        "constraints": (
            MostWords(0.4),
            None if sentence_encoder is None else SimilarSentence(0.2),
        ),
        "frozen_premise": False,
    }


def deepwordbug(preset: str) -> dict[str, Any]:
    """DeepWordBug (Gao et al. 2018): one typing error a word, 30 characters a text at most."""
    return {
        "ranking": search.ByUnknown(),
        "candidates": TypingErrors(),
        "constraints": (EditDistance(30),),
        "frozen_premise": False,
    }


def bae(
    preset: str,
    masked_lm: MaskedLM,
    tagger: Tagger | None,
    sentence_encoder: SentenceEncoder | None,
) -> dict[str, Any]:
    """BAE-R (Garg and Ramakrishnan 2020)."""
    similar = SimilarSentence(0.936338023, window=15, skip_short=True)
    return {
        "ranking": search.ByDeletion(),
        "candidates": edits.MaskedWords(masked_lm, 50),
        "constraints": (
            None if tagger is None else SamePartOfSpeech(tagger),
            None if sentence_encoder is None else similar,
        ),
        "frozen_premise": False,
    }


def pwws(preset: str, neighbours: Neighbours) -> dict[str, Any]:
    """PWWS (Ren et al. 2019), without its exchange of named entities, as TextAttack has it."""
    return {
        "ranking": search.ByUnknown(),
        "candidates": Synonyms(neighbours, count=_ALL, in_case=False),
        "search": search.BySaliency(),
        "frozen_premise": False,
    }


def a2t(
    preset: str,
    tagger: Tagger | None,
    sentence_encoder: SentenceEncoder | None,
    neighbours: Neighbours | None = None,
    masked_lm: MaskedLM | None = None,
) -> dict[str, Any]:
    """A2T and A2T-MLM (Yoo and Qi 2021)."""
    candidates: Candidates
    if neighbours is not None:
        candidates = Synonyms(neighbours, count=20)
    else:
        assert masked_lm is not None
        candidates = edits.MaskedWords(masked_lm, 20)
    return {
        "ranking": search.ByGradient(),
        "candidates": candidates,
        "constraints": (
            MostWords(0.1, least=4),
            None if tagger is None else SamePartOfSpeech(tagger, verbs_for_nouns=False),
            None if sentence_encoder is None else SimilarSentence(0.9),
            None if neighbours is None else SimilarWord(neighbours, least=0.8),
        ),
        "white_box": True,
    }


def hotflip(preset: str, neighbours: Neighbours, tagger: Tagger | None) -> dict[str, Any]:
    """HotFlip (Ebrahimi et al. 2018), of words."""
    return {
        "ranking": search.ByGradient(),
        "candidates": Synonyms(neighbours, count=50),
        "constraints": (
            MostWords(0, least=2),
            SimilarWord(neighbours, least=0.8),
            None if tagger is None else SamePartOfSpeech(tagger),
        ),
        "search": search.Beam(10, steepest=1),
        "frozen_premise": False,
        "white_box": True,
    }


def textbugger(
    preset: str, neighbours: Neighbours, sentence_encoder: SentenceEncoder | None
) -> dict[str, Any]:
    """TextBugger (Li et al. 2018)."""
    ways = (edits.Bugs(), edits.LookAlikes(), Synonyms(neighbours, count=5))
    return {
        "ranking": search.ByDeletion(),
        "candidates": AnyOf(ways),
        "constraints": (None if sentence_encoder is None else SimilarSentence(0.8, "angular"),),
        "frozen_premise": False,
        "unit": "edits",
    }


def clare(
    preset: str,
    masked_lm: MaskedLM,
    tagger: Tagger | None,
    sentence_encoder: SentenceEncoder | None,
) -> dict[str, Any]:
    """CLARE (Li et al. 2020); without a tagger no words are merged."""
    ways = (
        edits.MaskedWords(masked_lm, 50, 5e-4),
        edits.InsertedWords(masked_lm, 50, 0.0),
        edits.MergedWords(masked_lm, 50, 5e-3, tagger),
    )
    similar = SimilarSentence(0.7, window=15, skip_short=True)
    return {
        "ranking": search.AtRandom(),
        "candidates": AnyOf(ways),
        "constraints": (None if sentence_encoder is None else similar,),
        "search": search.Beam(1),
        "frozen_premise": False,
        "unit": "edits",
    }


def bad_characters(preset: str) -> dict[str, Any]:
    """Bad Characters (Boucher et al. 2021), searched word by word; presets change nothing."""
    return {
        "preset": None,
        "tokenization": "words",
        "ranking": search.ByUnknown(),
        "candidates": AnyOf((edits.LookAlikes(), edits.Invisible())),
        "frozen_premise": False,
        "unit": "characters",
    }


def alzantot(preset: str, neighbours: Neighbours) -> dict[str, Any]:
    """Alzantot et al. 2018, without a language model.

    Of vectors of length 1, a squared distance of 0.5 is a cosine of 0.75.
    """
    return {
        "ranking": search.AtRandom(),
        "candidates": Synonyms(neighbours, count=8),
        "constraints": (MostWords(0.2), SimilarWord(neighbours, least=0.75)),
        "search": Genetic(members=60, generations=20),
    }


def faster_alzantot(preset: str, neighbours: Neighbours) -> dict[str, Any]:
    """Jia et al. 2019, without a language model."""
    searched = {"search": Genetic(members=60, generations=40), "frozen_premise": False}
    return {**alzantot(preset, neighbours), **searched}


def pso(preset: str, neighbours: Neighbours) -> dict[str, Any]:
    """Zang et al. 2020; WordNet's synonyms stand in for words of the same sememes of HowNet."""
    return {
        "ranking": search.AtRandom(),
        "candidates": Synonyms(neighbours, count=_ALL),
        "search": Swarm(members=60, generations=20),
    }

"""The recipes by name, and the resources that they are made with.

Plausible texts, as the field attacks (each with a preset):

`textfooler`     synonyms of the same part of speech, similar sentences
`bert-attack`    words that a masked language model finds likely
`deepwordbug`    typing errors
`several-words`  synonyms, several at a time: for victims whose votes move in steps
`labels-only`    synonyms, found without seeing any score

Any words, to test certificates:

`anywords`       whatever does most harm, within a budget of words
`critical`       the same, at the words that the certificate itself names as the worst

To add one, write a function that chooses its parts and name it in `_RECIPES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ranmask.attacks import search
from ranmask.attacks.recipe import AttackRecipe
from ranmask.attacks.replacements import (
    AnyWord,
    Constraint,
    EditDistance,
    LikelyWords,
    MostWords,
    SamePartOfSpeech,
    SimilarSentence,
    SimilarWord,
    Synonyms,
    TypingErrors,
)
from ranmask.attacks.resources.word_lists import StopWords, Vocabulary, load_stop_words
from ranmask.attacks.tokenization import Tokenization
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.attacks.resources.masked_lm import MaskedLM
    from ranmask.attacks.resources.neighbours import Neighbours
    from ranmask.attacks.resources.sentence_encoders import SentenceEncoder
    from ranmask.attacks.resources.tagging import Tagger

Preset: TypeAlias = Literal["ranmask-2021", "textattack-0.3.11"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
"""``ranmask-2021``: the settings of the paper's runs.  ``textattack-0.3.11``: the library's now."""

_TOKENIZATIONS: dict[Preset, Tokenization] = {
    "ranmask-2021": "textattack-2021",
    "textattack-0.3.11": "textattack-0.3.11",
}
_LIKELY_WORDS: dict[Preset, int] = {"ranmask-2021": 48, "textattack-0.3.11": 8}
_NEEDED = {
    "neighbours": "a table of synonyms or word vectors, as load_neighbours('jia2019')",
    "masked_lm": "a masked language model, as MaskedLM.from_pretrained(folder); "
    "`ranmask train --kind mlm` trains one",
    "vocabulary": "words that may be put anywhere, as vocabulary_of(texts)",
}


@dataclass(frozen=True)
class AttackResources:
    """What recipes know of language; nothing is fetched that is not given.

    Args:
        neighbours: Synonyms, or word vectors (`load_neighbours`).
        sentence_encoder: Compares sentences (`load_sentence_encoder`); without one a recipe leaves
            that constraint out and says so in its name.
        masked_lm: A masked language model (`MaskedLM.from_pretrained`).
        tagger: Parts of speech (`load_tagger`); left out as the sentence encoder is.
        stop_words: Words that are never replaced, instead of the recipe's own list.
        vocabulary: Words for ``anywords`` and ``critical``.
    """

    neighbours: Neighbours | None = None
    sentence_encoder: SentenceEncoder | None = None
    masked_lm: MaskedLM | None = None
    tagger: Tagger | None = None
    stop_words: StopWords | None = None
    vocabulary: Vocabulary | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not callable(getattr(value, "description", None)):
                raise OptionError(
                    f"{field.name} must be a resource that a loader made, not a "
                    f"{type(value).__name__}"
                )


def check_names(name: str, preset: str) -> None:
    """Refuse a recipe or a preset that does not exist."""
    if name not in RECIPES:
        raise OptionError(f"recipe must be one of {', '.join(RECIPES)}; not {name!r}")
    if preset not in PRESETS:
        raise OptionError(f"preset must be one of {', '.join(PRESETS)}; not {preset!r}")


def uses(name: str) -> tuple[str, ...]:
    """The resources that a recipe takes: names of fields of `AttackResources`."""
    return _RECIPES[name][1]


def build_recipe(
    name: str, resources: AttackResources | None = None, preset: Preset = "ranmask-2021"
) -> AttackRecipe:
    """A recipe by name, made with these resources; its name says what it had to do without."""
    check_names(name, preset)
    build, used, other_parts = _RECIPES[name]
    given: dict[str, Any] = {use: getattr(resources, use, None) for use in used}
    missing = [use for use in used if given[use] is None and use != "stop_words"]
    for use in missing:
        if use in _NEEDED:
            raise OptionError(f"the recipe {name} needs {use}: {_NEEDED[use]}")
    if "stop_words" in used and given["stop_words"] is None:
        given["stop_words"] = load_stop_words("textfooler" if "neighbours" in used else "nltk")
    without = " and ".join(missing).replace("_", " ")
    parts: dict[str, Any] = {
        "preset": preset,
        "tokenization": _TOKENIZATIONS[preset],
        "search": search.Greedy(),
        **build(preset, **{use: given[use] for use in used if use != "stop_words"}),
        **other_parts,
    }
    return AttackRecipe(
        name=f"{name} without {without}" if missing else name,
        stop_words=given["stop_words"].words if "stop_words" in used else frozenset(),
        sentence_encoder=given.get("sentence_encoder"),
        masked_lm=given.get("masked_lm"),
        resources={
            use: None if value is None else value.description() for use, value in given.items()
        },
        **parts,
    )


def _textfooler(
    preset: Preset,
    neighbours: Neighbours,
    tagger: Tagger | None,
    sentence_encoder: SentenceEncoder | None,
) -> dict[str, Any]:
    """TextFooler (Jin et al. 2020)."""
    constraints: list[Constraint] = [SimilarWord(neighbours, least=0.5)]
    if tagger is not None:
        constraints.append(SamePartOfSpeech(tagger))
    if sentence_encoder is not None:
        constraints.append(SimilarSentence(0.840845057, "angular", "current", 15, skip_short=True))
    candidates = Synonyms(neighbours, count=50)
    ranking = search.ByDeletion()
    return {"ranking": ranking, "candidates": candidates, "constraints": tuple(constraints)}


def _bert_attack(
    preset: Preset, masked_lm: MaskedLM, sentence_encoder: SentenceEncoder | None
) -> dict[str, Any]:
    """BERT-Attack (Li et al. 2020)."""
    similar = [] if sentence_encoder is None else [SimilarSentence(0.2, "cosine", "original")]
    return {
        "ranking": search.ByUnknown(),
        "candidates": LikelyWords(masked_lm, _LIKELY_WORDS[preset]),
        "constraints": (MostWords(0.4), *similar),
        "frozen_premise": False,
    }


def _deepwordbug(preset: Preset) -> dict[str, Any]:
    """DeepWordBug (Gao et al. 2018): one typing error a word, 30 characters a text at most."""
    return {
        "ranking": search.ByUnknown(),
        "candidates": TypingErrors(),
        "constraints": (EditDistance(30),),
        "frozen_premise": False,
    }


def _anywords(preset: Preset, vocabulary: Vocabulary) -> dict[str, Any]:
    """What a certificate says is harmless; presets change nothing."""
    return {
        "preset": None,
        "tokenization": "words",
        "ranking": search.ByUnknown(),
        "candidates": AnyWord(vocabulary.words),
        "search": search.AnyWords(),
        "budget": "radius+1",
    }


_SYNONYMS = ("neighbours", "tagger", "sentence_encoder", "stop_words")
_RECIPES: dict[str, tuple[Callable[..., dict[str, Any]], tuple[str, ...], dict[str, Any]]] = {
    "textfooler": (_textfooler, _SYNONYMS, {}),
    "bert-attack": (_bert_attack, ("masked_lm", "sentence_encoder", "stop_words"), {}),
    "deepwordbug": (_deepwordbug, ("stop_words",), {}),
    "several-words": (_textfooler, _SYNONYMS, {"search": search.Together()}),
    "labels-only": (
        *(_textfooler, _SYNONYMS),
        {"ranking": search.AtRandom(), "search": search.LabelsOnly()},
    ),
    "anywords": (_anywords, ("vocabulary",), {}),
    "critical": (_anywords, ("vocabulary",), {"ranking": search.ByCertificate()}),
}
"""What chooses the parts of each recipe, the resources that it takes, and which parts are others.
Where nothing is chosen, a recipe searches greedily and reads texts as its preset does."""

RECIPES = tuple(_RECIPES)

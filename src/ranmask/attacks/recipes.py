"""The recipes by name, and the resources that they are made with.

Plausible texts, as the field attacks (each with a preset); words are replaced:

`textfooler`     synonyms of the same part of speech, similar sentences
`bert-attack`    words that a masked language model finds likely
`bae`            the same, with the word masked
`pwws`           synonyms of WordNet, first those that can do most
`a2t`, `a2t-mlm` synonyms, or words of a masked LM, in an order that the victim's gradient gives
`hotflip`        synonyms, those by which the gradient falls most
`alzantot`, `faster-alzantot`, `pso`  synonyms, by searches with many texts at a time
`deepwordbug`    typing errors
`several-words`  synonyms, several at a time: for victims whose votes move in steps
`labels-only`    synonyms, found without seeing any score

Plausible texts of another number of words:

`textbugger`     typing errors, words split, characters that look alike, synonyms
`clare`          a masked language model replaces, inserts and merges words
`bad-characters` characters that nobody sees, or that look alike

Anything that a threat allows, to test its certificate:

`anywords`       whatever does most harm, within a budget of words
`critical`       the same, at the words that the certificate itself names as the worst
`insertions`, `deletions`, `edits`, `characters`  the same for these threats
`appending`      insertions before and after the text only: padding

To add one, write a function that chooses its parts (`published` has those of others) and name it in
`_RECIPES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from ranmask.attacks import edits, published, search
from ranmask.attacks.directed import Directed
from ranmask.attacks.recipe import AttackRecipe
from ranmask.attacks.replacements import Candidates, OpposingWords
from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.attacks.resources.neighbours import Neighbours
from ranmask.attacks.resources.sentence_encoders import SentenceEncoder
from ranmask.attacks.resources.tagging import Tagger
from ranmask.attacks.resources.word_lists import StopWords, Vocabulary, load_stop_words
from ranmask.attacks.tokenization import Tokenization
from ranmask.certificates.threats import Threat
from ranmask.errors import OptionError

Preset: TypeAlias = Literal["ranmask-2021", "textattack-0.3.11"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
"""``ranmask-2021``: the settings of the paper's runs.  ``textattack-0.3.11``: the library's now."""

_Build: TypeAlias = Callable[..., dict[str, Any]]
"""Chooses the parts of a recipe, for a preset and the resources that it takes."""

_TOKENIZATIONS: dict[Preset, Tokenization] = {
    "ranmask-2021": "textattack-2021",
    "textattack-0.3.11": "textattack-0.3.11",
}
_NEEDED = {
    "neighbours": "a table of synonyms or word vectors, as load_neighbours('jia2019')",
    "masked_lm": "a masked language model, as MaskedLM.from_pretrained(folder); "
    "`ranmask train --kind mlm` trains one",
    "vocabulary": "words that may be put anywhere, as vocabulary_of(texts)",
}
OWN_NEIGHBOURS = {"pwws": "wordnet", "pso": "wordnet"}
"""Recipes that take their synonyms from elsewhere than the others; for `load_neighbours`."""


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
        vocabulary: Words for recipes that put any word anywhere.
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
        given["stop_words"] = load_stop_words(
            "textfooler" if build is published.textfooler else "nltk"
        )
    without = " and ".join(missing).replace("_", " ")
    parts: dict[str, Any] = {
        "preset": preset,
        "tokenization": _TOKENIZATIONS[preset],
        "search": search.Greedy(),
        **build(preset, **{use: given[use] for use in used if use != "stop_words"}),
        **other_parts,
    }
    constraints = parts.get("constraints", ())
    parts["constraints"] = tuple(one for one in constraints if one is not None)
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


_OF_CERTIFICATES: dict[str, Any] = {
    "preset": None,
    "tokenization": "words",
    "ranking": search.ByUnknown(),
    "budget": "radius+1",
}
"""Parts of recipes that do what a certificate says is harmless; presets change nothing."""


def _anywords(preset: Preset, vocabulary: Vocabulary) -> dict[str, Any]:
    """What the certificate of replaced words says is harmless."""
    candidates = OpposingWords(vocabulary.words)
    return {**_OF_CERTIFICATES, "candidates": candidates, "search": Directed()}


def _any_edits(unit: Threat, candidates: Candidates, places: int = 12) -> dict[str, Any]:
    """What the certificate of a threat says is harmless."""
    searched = {"candidates": candidates, "search": edits.AnyEdits(places), "again": True}
    return {**_OF_CERTIFICATES, **searched, "unit": unit}


def _word_edits(unit: Threat, *sorts: edits.Sort, places: int = 12) -> _Build:
    """`_any_edits` of these sorts, with the worst words of a vocabulary where there is one."""

    def build(preset: Preset, vocabulary: Vocabulary | None = None) -> dict[str, Any]:
        worst = OpposingWords(() if vocabulary is None else vocabulary.words, each=2)
        return _any_edits(unit, edits.WordEdits(worst, sorts), places)

    return build


def _characters(preset: Preset) -> dict[str, Any]:
    return _any_edits("characters", edits.CharacterEdits())


_SYNONYMS = ("neighbours", "tagger", "sentence_encoder", "stop_words")
_RECIPES: dict[str, tuple[_Build, tuple[str, ...], dict[str, Any]]] = {
    "textfooler": (published.textfooler, _SYNONYMS, {}),
    "bert-attack": (published.bert_attack, ("masked_lm", "sentence_encoder", "stop_words"), {}),
    "bae": (published.bae, ("masked_lm", "tagger", "sentence_encoder", "stop_words"), {}),
    "pwws": (published.pwws, ("neighbours", "stop_words"), {}),
    "deepwordbug": (published.deepwordbug, ("stop_words",), {}),
    "a2t": (published.a2t, ("neighbours", "tagger", "sentence_encoder", "stop_words"), {}),
    "a2t-mlm": (published.a2t, ("masked_lm", "tagger", "sentence_encoder", "stop_words"), {}),
    "hotflip": (published.hotflip, ("neighbours", "tagger", "stop_words"), {}),
    "alzantot": (published.alzantot, ("neighbours", "stop_words"), {}),
    "faster-alzantot": (published.faster_alzantot, ("neighbours", "stop_words"), {}),
    "pso": (published.pso, ("neighbours", "stop_words"), {}),
    "textbugger": (published.textbugger, ("neighbours", "sentence_encoder", "stop_words"), {}),
    "clare": (published.clare, ("masked_lm", "tagger", "sentence_encoder", "stop_words"), {}),
    "bad-characters": (published.bad_characters, (), {}),
    "several-words": (published.textfooler, _SYNONYMS, {"search": search.Together()}),
    "labels-only": (
        *(published.textfooler, _SYNONYMS),
        {"ranking": search.AtRandom(), "search": search.LabelsOnly()},
    ),
    "anywords": (_anywords, ("vocabulary",), {}),
    "critical": (_anywords, ("vocabulary",), {"ranking": search.ByCertificate()}),
    "insertions": (_word_edits("insertions", "insert", places=4), ("vocabulary",), {}),
    "appending": (_word_edits("insertions", "before", "after"), ("vocabulary",), {}),
    "deletions": (_word_edits("deletions", "delete"), (), {}),
    "edits": (_word_edits("edits", "replace", "insert", "delete"), ("vocabulary",), {}),
    "characters": (_characters, (), {}),
}
"""What chooses the parts of each recipe, the resources that it takes, and which parts are others.
Where nothing is chosen, a recipe searches greedily and reads texts as its preset does."""

RECIPES = tuple(_RECIPES)

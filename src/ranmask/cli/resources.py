"""The resources of a recipe, from the names that were given on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ranmask.cli.command import Given
from ranmask.cli.options import ResourceOptions
from ranmask.options.fields import option_fields

if TYPE_CHECKING:
    from ranmask.attacks.recipes import AttackResources
    from ranmask.data.rows import Row

_USED_AS = {"attack_lm": "masked_lm"}  # how recipes call it, where that is not its option's name


def resources_for(
    recipe: str, rows: Iterable[Row], given: Given, device: str | None = None
) -> AttackResources:
    """The resources that the recipe uses; those that it does not use are refused by name."""
    from ranmask.attacks import resources
    from ranmask.attacks.recipes import AttackResources, uses
    from ranmask.attacks.resources.neighbours import DEFAULT_NEIGHBOURS
    from ranmask.attacks.resources.word_lists import read_vocabulary
    from ranmask.words import usable

    used = uses(recipe)
    known = (*option_fields(ResourceOptions), "vocabulary")
    unused = (name for name in known if _USED_AS.get(name, name) not in used)
    given.refuse(unused, f"with --recipe {recipe}")
    found: dict[str, Any] = {}
    if "neighbours" in used:
        found["neighbours"] = resources.load_neighbours(given.get("neighbours", DEFAULT_NEIGHBOURS))
    if "tagger" in used and (tagger := given.get("tagger", "nltk")) != "none":
        found["tagger"] = resources.load_tagger(None if tagger == "nltk" else tagger)
    if "sentence_encoder" in given:
        found["sentence_encoder"] = resources.load_sentence_encoder(
            given["sentence_encoder"], device=device
        )
    if "attack_lm" in given:
        lm = given["attack_lm"]
        found["masked_lm"] = resources.MaskedLM.from_pretrained(lm, device=device)
    if "stop_words" in given:
        found["stop_words"] = resources.load_stop_words(given["stop_words"])
    if "vocabulary" in given:
        found["vocabulary"] = read_vocabulary(given["vocabulary"])
    elif "vocabulary" in used:
        texts = (row.text for row in rows if row.text is not None and usable(row.text))
        found["vocabulary"] = resources.vocabulary_of(texts, "the attacked texts")
    return AttackResources(**found)

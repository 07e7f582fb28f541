"""What a recipe attacks with, from the names that were given on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ranmask.cli.command import Given
from ranmask.cli.options import ResourceOptions
from ranmask.options import option_fields

if TYPE_CHECKING:
    from ranmask.attacks.supplies import Supplies
    from ranmask.data.rows import Row

_USED_AS = {"attack_lm": "masked_lm"}  # how recipes call it, where that is not its option's name


def supplies_for(
    recipe: str, rows: Iterable[Row], given: Given, device: str | None = None
) -> Supplies:
    """The resources that the recipe uses; those that it does not use are refused by name."""
    from ranmask.attacks.recipes import uses
    from ranmask.attacks.resources.neighbours import DEFAULT_NEIGHBOURS, load_neighbours
    from ranmask.attacks.resources.sentence_encoder import load_sentence_encoder
    from ranmask.attacks.resources.stop_words import load_stop_words
    from ranmask.attacks.resources.tagging import load_tagger
    from ranmask.attacks.supplies import Supplies

    used = uses(recipe)
    known = (*option_fields(ResourceOptions), "vocabulary")
    unused = (name for name in known if _USED_AS.get(name, name) not in used)
    given.refuse(unused, f"with --recipe {recipe}")
    found: dict[str, Any] = {}
    if "neighbours" in used:
        found["neighbours"] = load_neighbours(given.get("neighbours") or DEFAULT_NEIGHBOURS)
    if "tagger" in used and (tagger := given.get("tagger", "nltk")) != "none":
        found["tagger"] = load_tagger(None if tagger == "nltk" else tagger)
    if "sentence_encoder" in given:
        found["sentence_encoder"] = load_sentence_encoder(given["sentence_encoder"], device=device)
    if "attack_lm" in given:
        from ranmask.attacks.resources.masked_lm import MaskedLM

        found["masked_lm"] = MaskedLM.from_pretrained(given["attack_lm"], device=device)
    if "stop_words" in given:
        found["stop_words"] = load_stop_words(given["stop_words"])
    if "vocabulary" in used:
        from ranmask.attacks.vocabulary import read_vocabulary, vocabulary_of
        from ranmask.words import usable

        if "vocabulary" in given:
            found["vocabulary"] = read_vocabulary(given["vocabulary"])
        else:
            texts = (row.text for row in rows if row.text is not None and usable(row.text))
            found["vocabulary"] = vocabulary_of(texts, "the attacked texts")
    return Supplies(**found)

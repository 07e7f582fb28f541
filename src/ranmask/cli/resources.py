"""The resources of a recipe, from the names that were given on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.attacks.recipes import AttackResources
    from ranmask.data.rows import Row


def resources_for(
    recipe: str,
    rows: Iterable[Row],
    *,
    vocabulary: Path | None = None,
    device: str | None = None,
    **named: str | None,
) -> AttackResources:
    """The resources that the recipe uses; those that it does not use are refused by name."""
    from ranmask.attacks import resources
    from ranmask.attacks.recipes import AttackResources, uses
    from ranmask.attacks.resources.neighbours import DEFAULT_NEIGHBOURS
    from ranmask.attacks.resources.word_lists import read_vocabulary
    from ranmask.words import usable

    used = uses(recipe)
    for option, value in {**named, "vocabulary": vocabulary}.items():
        if value is not None and option.replace("attack_lm", "masked_lm") not in used:
            flag = "--" + option.replace("_", "-")
            raise OptionError(f"{flag} means nothing with --recipe {recipe}: leave it out")
    given: dict[str, Any] = {}
    if "neighbours" in used:
        given["neighbours"] = resources.load_neighbours(
            named.get("neighbours") or DEFAULT_NEIGHBOURS
        )
    folder = named.get("tagger")
    if "tagger" in used and folder != "none":
        given["tagger"] = resources.load_tagger(None if folder in (None, "nltk") else folder)
    if (encoder := named.get("sentence_encoder")) is not None:
        given["sentence_encoder"] = resources.load_sentence_encoder(encoder, device=device)
    if (attack_lm := named.get("attack_lm")) is not None:
        given["masked_lm"] = resources.MaskedLM.from_pretrained(attack_lm, device=device)
    if (stop_words := named.get("stop_words")) is not None:
        given["stop_words"] = resources.load_stop_words(stop_words)
    if "vocabulary" in used and vocabulary is not None:
        given["vocabulary"] = read_vocabulary(vocabulary)
    elif "vocabulary" in used:
        texts = (row.text for row in rows if row.text is not None and usable(row.text))
        given["vocabulary"] = resources.vocabulary_of(texts, "the attacked texts")
    return AttackResources(**given)

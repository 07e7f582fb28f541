"""What a recipe attacks with, from the names that were given on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.attacks.supplies import Supplies
    from ranmask.attacks.vocabulary import Vocabulary
    from ranmask.data.rows import Row


def supplies_for(
    recipe: str,
    rows: Iterable[Row],
    *,
    neighbours: str | None = None,
    tagger: str | None = None,
    sentence_encoder: str | None = None,
    attack_lm: str | None = None,
    stop_words: str | None = None,
    vocabulary: Path | None = None,
    device: str | None = None,
) -> Supplies:
    """The resources that the recipe uses; those that it does not use are refused by name."""
    from ranmask.attacks.recipes import uses
    from ranmask.attacks.resources.neighbours import DEFAULT_NEIGHBOURS, load_neighbours
    from ranmask.attacks.resources.sentence_encoder import load_sentence_encoder
    from ranmask.attacks.resources.stop_words import load_stop_words
    from ranmask.attacks.resources.tagging import load_tagger
    from ranmask.attacks.supplies import Supplies

    used = uses(recipe)
    for name, flag, value in (
        ("neighbours", "--neighbours", neighbours),
        ("tagger", "--tagger", tagger),
        ("sentence_encoder", "--sentence-encoder", sentence_encoder),
        ("masked_lm", "--attack-lm", attack_lm),
        ("stop_words", "--stop-words", stop_words),
        ("vocabulary", "--vocabulary", vocabulary),
    ):
        if value is not None and name not in used:
            raise OptionError(f"{flag} means nothing with --recipe {recipe}: leave it out")
    given: dict[str, Any] = {}
    if "neighbours" in used:
        given["neighbours"] = load_neighbours(neighbours or DEFAULT_NEIGHBOURS)
    if "tagger" in used and tagger != "none":
        given["tagger"] = load_tagger(None if tagger in (None, "nltk") else tagger)
    if sentence_encoder is not None:
        given["sentence_encoder"] = load_sentence_encoder(sentence_encoder, device=device)
    if attack_lm is not None:
        from ranmask.attacks.resources.masked_lm import MaskedLM

        given["masked_lm"] = MaskedLM.from_pretrained(attack_lm, device=device)
    if stop_words is not None:
        given["stop_words"] = load_stop_words(stop_words)
    if "vocabulary" in used:
        given["vocabulary"] = _vocabulary(rows, vocabulary)
    return Supplies(**given)


def _vocabulary(rows: Iterable[Row], path: Path | None) -> Vocabulary:
    from ranmask.attacks.vocabulary import read_vocabulary, vocabulary_of
    from ranmask.words import usable

    if path is not None:
        return read_vocabulary(path)
    texts = (row.text for row in rows if row.text is not None and usable(row.text))
    return vocabulary_of(texts, "the attacked texts")

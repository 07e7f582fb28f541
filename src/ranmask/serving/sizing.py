"""How large a request is: its texts, their words, and the copies that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ranmask.errors import OptionError, TextError
from ranmask.options import SmoothingOptions, SynonymOptions
from ranmask.serving.problems import Problem
from ranmask.smoothing import masks
from ranmask.words import Document, Text, document, split

ReadText: TypeAlias = Document | TextError
"""A text that was sent, read once; or why it cannot be used."""

MOST_KEPT = 12_000_000
"""Most visible words in all copies of one text: about 100 MB, and what defaults never exceed."""

MOST_DRAWN = 200_000_000
"""Most words, visible or not, in all copies of one text that are drawn at random: about 10 s."""


def read_texts(texts: Sequence[Text], most_texts: int, most_words: int) -> list[ReadText]:
    """The texts of a request; more of them, or longer ones, than one may hold are refused."""
    if len(texts) > most_texts:
        message = f"{len(texts)} texts are more than {most_texts}: send them in several requests"
        raise Problem(422, "too_many_texts", message)
    read: list[ReadText] = []
    for index, sent in enumerate(texts):
        try:
            text = document(sent)
            words = len(text.words) + len(split(text.premise or ""))
            read.append(text)
        except TextError as error:
            words = sum(len(split(part)) for part in ([sent] if isinstance(sent, str) else sent))
            read.append(error)
        if words > most_words:
            message = f"text {index} has {words} words, more than {most_words}: cut it"
            raise Problem(422, "too_many_words", message)
    return read


def copies_of_one(options: SmoothingOptions | SynonymOptions, words: int) -> int:
    """How many copies a text of so many words has, at most; too many for the memory are refused.

    The few that a function is asked about again (`recheck`) are not counted.
    """
    if isinstance(options, SmoothingOptions):
        copies, kept = masks.copies_of(options, words)
    else:
        drawn = options.resolved()
        copies, kept = drawn["estimation_masks"] + drawn["selection_masks"], words
    if copies * kept > MOST_KEPT or copies * words > MOST_DRAWN:
        raise OptionError(
            f"{copies} copies that show {kept} of {words} words each are more than the service "
            "computes for one text: ask for fewer masks, or keep fewer words"
        )
    return copies

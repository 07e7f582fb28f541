"""How large a request is: its texts, their words, and the copies that it asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ranmask.errors import OptionError
from ranmask.families import Retention
from ranmask.interface import TextClassifier
from ranmask.serving.problems import Problem
from ranmask.smoothing import SmoothedClassifier
from ranmask.synonym_smoothing import SynonymSmoothedClassifier
from ranmask.words import Text, split

MOST_KEPT = 5_000_000
"""Most visible words in all copies of one text: about 40 MB."""


def check_size(texts: Sequence[Text], most_texts: int, most_words: int) -> None:
    """Refuse more texts, or longer ones, than one request may hold."""
    if len(texts) > most_texts:
        raise Problem(
            422,
            "too_many_texts",
            f"{len(texts)} texts are more than {most_texts}: send them in several requests",
        )
    for index, text in enumerate(texts):
        words = sum(len(split(part)) for part in ([text] if isinstance(text, str) else text))
        if words > most_words:
            raise Problem(
                422,
                "too_many_words",
                f"text {index} has {words} words, more than {most_words}: cut it",
            )


def copies_of(smoothed: TextClassifier, texts: Sequence[Text]) -> int:
    """How many copies a request asks for, at most; too many for the memory are refused."""
    if isinstance(smoothed, SynonymSmoothedClassifier):
        resolved = smoothed.options.resolved()
        each: int = resolved["estimation_masks"] + resolved["selection_masks"]
        return len(texts) * each
    if not isinstance(smoothed, SmoothedClassifier):
        return len(texts)
    options = smoothed.options.resolved()
    retention = Retention(options.keep, options.mask_rate)
    total = 0
    for text in texts:
        words = len(split(text if isinstance(text, str) else text[1]))
        if not words:
            continue
        kept = retention.count(words)
        copies = min(options.masks or 1, math.comb(words, kept))
        if copies * kept > MOST_KEPT:
            raise OptionError(
                f"{copies} copies that show {kept} words each are more than the service computes "
                "for one text: ask for fewer masks, or keep fewer words"
            )
        total += copies + (options.selection_masks or 0)
    return total

"""How large a request is: its texts, their words, and the copies that it asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ranmask.certificates.families import Retention
from ranmask.errors import OptionError
from ranmask.options import SmoothingOptions
from ranmask.serving.problems import Problem
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
from ranmask.words import Text, split

MOST_KEPT = 12_000_000
"""Most visible words in all copies of one text: about 100 MB, and what defaults never exceed."""

MOST_DRAWN = 200_000_000
"""Most words, visible or not, in all copies of one text that are drawn at random: about 10 s."""


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


def copies_of(smoothed: CertifiedClassifier, texts: Sequence[Text]) -> int:
    """How many copies a request asks for, at most; too many for the memory are refused.

    The few that a function is asked about again (`recheck`) are not counted.
    """
    if not isinstance(smoothed, SmoothedClassifier | SynonymSmoothedClassifier):
        return len(texts)
    total = 0
    for text in texts:
        words = len(split(text if isinstance(text, str) else text[1]))
        if not words:
            continue
        if isinstance(smoothed, SmoothedClassifier):
            kept, copies = _masked(smoothed.options.resolved(), words)
        else:
            options = smoothed.options.resolved()
            kept, copies = words, options["estimation_masks"] + options["selection_masks"]
        if copies * kept > MOST_KEPT or copies * words > MOST_DRAWN:
            raise OptionError(
                f"{copies} copies that show {kept} of {words} words each are more than the service "
                "computes for one text: ask for fewer masks, or keep fewer words"
            )
        total += copies
    return total


def _masked(options: SmoothingOptions, words: int) -> tuple[int, int]:
    """How many words each copy of a text shows, and how many copies there are, at most."""
    kept = Retention(options.keep, options.mask_rate).count(words)
    masks = options.masks or 1
    if options.certificate != "exact":
        return kept, masks + (options.selection_masks or 0)
    if options.family == "sampled":  # however many different ones there are
        return kept, masks
    return kept, min(masks, words if options.family == "windows" else math.comb(words, kept))

"""The attack that people report first: harmless words are appended until a text is not flagged.

No word of the text is changed.  `harmless_words` finds what to append in labelled data, as anybody
can who knows what such data look like; `append_words` asks the victim which of these words help
most, and appends more and more of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ranmask.errors import OptionError
from ranmask.words import join, split

Scores: TypeAlias = Callable[[list[str]], Any]
"""Texts to their scores for the class that is flagged: the higher, the more suspicious."""

_ASKED_ABOUT = 20  # texts that candidates are ranked on


@dataclass(frozen=True)
class Appended:
    """What became of a flagged text: which words were appended, and whether they undid the flag."""

    text: str
    words: tuple[str, ...]
    succeeded: bool


def harmless_words(
    texts: Sequence[str], flagged: Sequence[bool], count: int = 100
) -> tuple[str, ...]:
    """The words that speak most clearly against a flag, by how many texts of each side have them.

    >>> harmless_words(["see you", "win cash", "see cash"], [False, True, False], 1)
    ('see',)
    """
    sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    numbers = [0, 0]
    for text, flag in zip(texts, flagged, strict=True):
        sides[bool(flag)].update(set(split(text)))
        numbers[bool(flag)] += 1

    def odds(word: str) -> float:
        shares = ((sides[side][word] + 0.5) / (numbers[side] + 1) for side in (0, 1))
        harmless, suspicious = shares
        # Frequent words count more: what is in one text of one side says little.
        return math.log(harmless / suspicious) * math.log1p(sides[0][word])

    ranked = sorted(sides[0], key=lambda word: (-odds(word), word))
    return tuple(ranked[:count])


def append_words(
    scores: Scores,
    texts: Sequence[str],
    threshold: float,
    words: Sequence[str],
    *,
    most: int = 100,
) -> list[Appended]:
    """Append at most ``most`` of the ``words`` to each flagged text, as few as undo the flag.

    A text is flagged where its score reaches the threshold.  Words are ranked by how far each alone
    lowers the scores of a few texts; then 1, 2, 4, ... of them are appended, the best first, and
    the fewest that do are found by halving.
    """
    if not words or most < 1:
        raise OptionError(f"nothing can be appended: {len(words)} words, at most {most}")
    if not texts:
        return []
    for place, score in enumerate(_asked(scores, list(texts))):
        if score < threshold:
            raise OptionError(f"text {place} is not flagged: it scores {score:.6g}")
    ranked = _ranked(scores, texts[:: max(1, len(texts) // _ASKED_ABOUT)][:_ASKED_ABOUT], words)
    ranked = (ranked * -(-most // len(ranked)))[:most]
    # For each text: so many words do not undo it, and so many do (None: not known of any).
    too_few = [0] * len(texts)
    enough: list[int | None] = [None] * len(texts)
    while True:
        tried = [_next(few, many, len(ranked)) for few, many in zip(too_few, enough, strict=True)]
        asked = [place for place, number in enumerate(tried) if number is not None]
        if not asked:
            break
        shown = [join([texts[place], *ranked[: tried[place]]]) for place in asked]
        for place, score in zip(asked, _asked(scores, shown), strict=True):
            number = tried[place]
            if number is not None and score < threshold:
                enough[place] = number
            elif number is not None:
                too_few[place] = number
    return [
        Appended(text, tuple(ranked[: len(ranked) if many is None else many]), many is not None)
        for text, many in zip(texts, enough, strict=True)
    ]


def _next(too_few: int, enough: int | None, most: int) -> int | None:
    """How many words to try next; None where nothing is left to find out."""
    if enough is None:
        return None if too_few == most else min(2 * too_few or 1, most)
    return None if enough - too_few == 1 else (too_few + enough) // 2


def _ranked(scores: Scores, texts: Sequence[str], words: Sequence[str]) -> list[str]:
    shown = [join([text, word]) for word in words for text in texts]
    found = np.reshape(_asked(scores, shown), (len(words), len(texts))).mean(axis=1)
    return [words[place] for place in np.argsort(found, kind="stable").tolist()]


def _asked(scores: Scores, texts: list[str]) -> list[float]:
    found = np.asarray(scores(texts), dtype=np.float64)
    if found.shape != (len(texts),):
        raise OptionError(
            f"scores must return one number a text; it returned shape {found.shape} for "
            f"{len(texts)} texts"
        )
    listed: list[float] = found.tolist()
    return listed

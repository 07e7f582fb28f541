"""How far one class leads, and the least that it leads by after any ``d`` changed words.

Guarantee.  Let ``lead`` be a class's total less that of its strongest rival.  Then the lead of
every text with the same number of words that differs in at most ``d`` of them is at least
``least[d]``.  So *whatever the threshold*: a text whose ``least[d]`` lies above it stays above
it.  ``scale``, in whose parts scores are told, depends on the number of words alone, so that
changing words does not move it.

Proof.  That of `exact`: against each rival, ``d`` words cost the lead no more than the weight of
the sets that they meet; for words that count once and with a reader, see `distinct` and `pyramid`.
The class need not be the winner, for nothing there depends on the sign of the lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import dearest_first
from ranmask.certificates.families import Family
from ranmask.certificates.margins import least_leads
from ranmask.certificates.votes import Votes

MOST_CHANGED = 10
"""Up to how many changed words the least lead is worked out."""


@dataclass(frozen=True)
class ClassMargin:
    """``lead`` and ``least`` in parts of ``scale``; ``least`` has an entry for each ``d``."""

    lead: int
    least: tuple[int, ...]
    scale: int


def class_margins(
    votes: Votes, families: Sequence[Family], radii: Sequence[int | None], label: int
) -> list[ClassMargin]:
    """The margins of a class in each text, over its own fixed family; ``radii`` are the winners'.

    There must be another class.
    """
    rivals = np.delete(votes.totals, label, axis=1)
    leads = (votes.totals[:, label] - rivals.max(axis=1)).tolist()
    if votes.readings is None and all(family.single for family in set(families)):
        least = [found for part in votes.parts() for found in _single_words(part, label)]
    else:
        winners = votes.winners.tolist()
        least = [
            _searched(votes.part(place, place + 1), family, label, own if won == label else None)
            for place, (family, own, won) in enumerate(zip(families, radii, winners, strict=True))
        ]
    return [
        ClassMargin(lead, found, _scale(votes, family))
        for lead, found, family in zip(leads, least, families, strict=True)
    ]


def _scale(votes: Votes, family: Family) -> int:
    # Words that count once are fewer or more after a change; all words are as many as before.
    copies = len(family) if family.places is None else family.words
    read = 0 if votes.readings is None else int(votes.readings.bounds.sum())
    return votes.bound * copies + read


def _single_words(votes: Votes, label: int) -> list[tuple[int, ...]]:
    """Where each copy shows one word, for all texts from one sort."""
    words, starts = votes.copies, votes.starts
    differences = votes.differences(np.full(len(words), label))
    order = dearest_first(differences, words, starts)
    leads = np.add.reduceat(differences, starts, axis=1)
    ranks = np.arange(MOST_CHANGED)
    places = starts[:, None] + np.minimum(ranks, words[:, None] - 1)
    weights = differences[np.arange(len(differences))[:, None, None], order[:, places]]
    costs: Ints = np.cumsum(weights + votes.bound, axis=2)
    left = np.concatenate([leads[:, :, None], leads[:, :, None] - costs], axis=2).min(axis=0)
    return [tuple(row[: size + 1]) for row, size in zip(left.tolist(), words.tolist(), strict=True)]


def _searched(votes: Votes, family: Family, label: int, radius: int | None) -> tuple[int, ...]:
    """Over any family, and beside a reader."""
    shown = min(family.words, MOST_CHANGED) + 1
    left, _ = least_leads(votes, family, label, radius, shown)
    if votes.readings is None:
        return tuple(left)
    readings, labels = votes.readings, np.array([label])
    against = [lead - readings.reserve for lead in left]
    if not readings.sure[0]:  # the same text may be read otherwise
        return tuple(against)
    copies = votes.differences(labels).sum(axis=1)
    unchanged = copies + readings.differences(labels)[:, 0].sum(axis=1)
    return (int(unchanged.min()), *against[1:])

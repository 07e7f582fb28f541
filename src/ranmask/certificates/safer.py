"""SAFER (Ye, Gong & Liu 2020): certificates of votes over random synonyms, in a sound form.

A table gives each word ``x`` its replacements ``S_x``, the attacker's moves, and a perturbation
set ``P_x``; ``x`` is in both.  A copy of a text puts a word of ``P_x``, drawn uniformly and
independently, in place of every word ``x``; ``g`` is the class that the base classifier names
most often for a random copy.

Guarantee.  With probability at least ``1 - alpha`` over the draw of the *estimation* sample,
``g`` gives ``label`` to every text in which at most ``radius`` words ``x`` are replaced, each
**by a word of its** ``S_x``, where ``label`` was chosen from a separate *selection* sample.  It
says nothing of any other word, nor of words that are inserted or deleted.

Assumptions.  The two samples are independent of each other; what is said of a copy is a function
of the copy.  Votes that rounding in the model could turn are counted by the caller against the
label and for every rival.

Proof: docs/certificates.md, "SAFER, in a sound form".  Chances are bounded as for ablation
(`label_and_rivals`); from there on fractions decide.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction

from ranmask.certificates.exact import Radius
from ranmask.certificates.sampled import label_and_rivals, largest_passing


def overlap(one: Collection[object], other: Collection[object]) -> Fraction:
    """The greatest chance with which uniform draws from two sets can be made equal."""
    first, second = set(one), set(other)
    return Fraction(len(first & second), max(len(first), len(second)))


def synonym_radius(
    counts: Sequence[int],
    label: int,
    samples: int,
    overlaps: Sequence[Fraction],
    *,
    alpha: float = 0.05,
) -> Radius:
    """Certified while the label's lower bound stays above every rival's upper bound.

    Args:
        counts: Votes of each class in the estimation sample, uncertain ones against the label.
        label: The class that the selection sample chose.
        samples: Size of the estimation sample.
        overlaps: ``q_x`` of each word of the text, from 0 to 1.
        alpha: The probability that the certificate may be wrong.
    """
    low, high = label_and_rivals(counts, label, samples, alpha=alpha)
    moves = _moves(overlaps)  # asked for one after another: products of many are long fractions
    largest = largest_passing(len(overlaps), lambda changed: low - high > 2 * next(moves))
    if largest is None or largest == len(overlaps):
        return Radius(largest, tight=largest is not None)  # there are no more words to replace
    weakest = sorted(range(len(overlaps)), key=overlaps.__getitem__)[: largest + 1]
    return Radius(largest, tight=False, worst=tuple(sorted(weakest)))


def _moves(overlaps: Sequence[Fraction]) -> Iterator[Fraction]:
    """For no, one, two ... replaced words, one less the product of so many smallest overlaps."""
    for value in overlaps:
        if not 0 <= value <= 1:
            raise ValueError(f"an overlap is a share from 0 to 1, not {value}")
    same = itertools.accumulate(sorted(overlaps), operator.mul, initial=Fraction(1))
    return (1 - product for product in same)

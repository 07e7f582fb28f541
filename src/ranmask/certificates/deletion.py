"""CERT-ED and AdaptDel (Huang et al. 2024, 2025): votes over copies with words deleted at random.

A copy of a text lacks each word with the chance ``rate``, independently; ``g`` is the class that
the base classifier names most often for a random copy.  The rate is the same for all texts
(CERT-ED), or follows from the number of words (AdaptDel; `DeletionRates`).

Guarantee.  With probability at least ``1 - alpha`` over the draw of the *estimation* sample, ``g``
gives ``label`` to every text within an edit distance of ``radius``: so many words replaced,
inserted or deleted, the others in their order; where ``label`` was chosen from a separate
*selection* sample.

Assumptions.  The two samples are independent of each other and of the text; what is said of a copy
is a function of the words that are left, in their order, and not of where they stood.  Votes that
rounding in the model could turn are counted by the caller against the label and for every rival.

Proof, of one rate.  Let ``x'`` be ``x`` with ``a`` of its words gone and ``b`` new ones, a
replaced word being both, so that ``a <= r`` and ``b <= r``; and let ``z`` be the words that they
share.  A copy of
``x`` lacks all ``a`` words with the chance ``rate**a``, and is then a copy of ``z``; so for every
class

    rate**a q  <=  p  <=  rate**a q + 1 - rate**a,        the same for p' and b,

where ``p``, ``p'`` and ``q`` are its chances for ``x``, ``x'`` and ``z``.  Let ``m`` be the
difference of ``p`` between label and rival.  With ``q`` eliminated, the difference for ``x'`` is at
least ``rate**(b-a) (m - 1 + rate**a) - 1 + rate**b``.  Times ``rate**(a-b)``, that is

    m - 1 + rate**a (2 - rate**-b)  >=  m - 1 + u (2 - 1/u)  =  m - 2 + 2 u,      u = rate**r,

for ``u > 1/2``.  So the label wins while ``u > 1 - m/2``, which is above 1/2, as ``m <= 1``.  This
is the radius of CERT-ED, ``floor(log(1 - m/2) / log(rate))``, found without logarithms.

Proof, of rates by length: docs/certificates.md, section 6.  In short, the copies of ``z`` are
drawn at one rate from ``x`` and at another from ``x'``, whose length differs; how many words a copy
has decides how much likelier it is in one than in the other, and the worst that a share of the
copies of ``z`` can become is a sum over these numbers (`_moved`, by Neyman and Pearson).

``deletion`` bounds ``m`` by ``2 p - 1``: no majority, no certificate.  ``deletion-runner-up``
bounds the label and each rival, and shares ``alpha`` among them (`label_and_rivals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.exact import Radius
from ranmask.certificates.kept import DeletionRates
from ranmask.certificates.sampled import label_and_rivals, lower_bound
from ranmask.errors import check_cancelled

Stream: TypeAlias = Literal["selection", "estimation"]
_STREAMS: dict[Stream, int] = {"selection": 1, "estimation": 2}
_DIGITS = 128  # binary, of shares; they are rounded against the label
_AT_ONCE = 1 << 22  # random numbers drawn at a time: bounds memory for long texts


def kept_words(
    words: int, rate: Fraction, copies: int, seed: int, stream: Stream
) -> npt.NDArray[np.bool_]:
    """Which words each copy keeps, (copies, words): independent draws, the same every time."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, _STREAMS[stream], words]))
    stays = np.empty((copies, words), dtype=bool)
    for start in range(0, copies, step := max(1, _AT_ONCE // words)):
        check_cancelled()
        rows = stays[start : start + step]
        rows[:] = drawn(bits, rows.size, rate).reshape(rows.shape)
    return stays


def drawn(bits: np.random.PCG64, words: int, rate: Fraction) -> npt.NDArray[np.bool_]:
    """Which of so many words stay; a rate of `DeletionRates` is met exactly."""
    return np.asarray(bits.random_raw(words) >= np.uint64(int(rate * 2**64)))


def deletion_radius(
    kind: str,
    counts: Sequence[int],
    label: int,
    samples: int,
    words: int,
    rates: DeletionRates,
    *,
    alpha: float,
) -> Radius:
    """The radius of a label of a text of so many words, from the votes of each class.

    They are those of the estimation sample.
    """
    if kind == "deletion-runner-up":
        low, high = label_and_rivals(counts, label, samples, alpha=alpha)
    else:
        low = Fraction(lower_bound(counts[label], samples, alpha))
        high = 1 - low
    return Radius(edit_radius(low, high, words, rates), tight=False)


def edit_radius(low: Fraction, high: Fraction, words: int, rates: DeletionRates) -> int | None:
    """How many edits leave a label whose chance is at least ``low``, its rivals' at most ``high``.

    >>> edit_radius(Fraction(999, 1000), Fraction(1, 1000), 40, DeletionRates(0.9))
    6
    """
    rate = rates.of(words)
    needed = 1 - (low - high) / 2
    if needed >= 1:
        return None
    radius, same = 0, rate
    while same > needed:
        radius, same = radius + 1, same * rate
    # That is for texts of as many words; now for those that are longer or shorter.
    longer = 1
    while rates.keep is not None and longer <= radius:
        for change in (longer, -longer):
            while longer <= radius and not _stays(low, high, words, change, radius, rates):
                check_cancelled()
                radius -= 1
        longer += 1
    return radius


def _stays(
    low: Fraction, high: Fraction, words: int, change: int, radius: int, rates: DeletionRates
) -> bool:
    """Whether a label stays in all texts within the radius that have ``change`` words more.

    Of all ways to get there, the worst takes out and puts in as many words as it may.
    """
    if words + change < 1:
        return True  # no text
    rate, other = rates.of(words), rates.of(words + change)
    if rate == other:
        return True  # as of texts of as many words
    gone = min(words, radius, radius - change)
    left, same, there = words - gone, rate**gone, other ** (gone + change)
    # Shares of the copies of what both texts have: the label's at least, a rival's at most.
    least = _floor((low - 1 + same) / same)
    most = -_floor(-min(high / same, Fraction(1)))
    if least <= 0:
        return False
    one, parts = 1 << _DIGITS, rates.parts
    moved = partial(_moved, left, int(rate * parts), int(other * parts), parts)
    if other < rate:
        label, rival = moved(least, up=False), one - moved(one - most, up=False)
    else:
        label, rival = one - moved(one - least, up=True), moved(most, up=True)
    return there * (label - rival) > (1 - there) * one


def _floor(share: Fraction) -> int:
    return share.numerator * (1 << _DIGITS) // share.denominator


def _moved(words: int, rate: int, other: int, parts: int, share: int, *, up: bool) -> int:
    """The chance, at another rate, of those copies with the fewest words that have ``share`` now.

    Of a text of so many ``words``; rates are in so many ``parts``, shares in steps of 2**-128.  The
    sum is exact, and rounded ``up`` or down at the end.
    """
    bits = words * (parts.bit_length() - 1)
    now, then = rate**words << _DIGITS, other**words << _DIGITS
    left, total = share << bits, 0
    for kept in range(words + 1):
        if now >= left:
            total += -(-left * then // now) if up else left * then // now
            break
        left, total = left - now, total + then
        more, one_more = words - kept, kept + 1
        now = now * (more * (parts - rate)) // (one_more * rate)
        then = then * (more * (parts - other)) // (one_more * other)
    return -(-total >> bits) if up else total >> bits

"""CERT-ED (Huang et al. 2024): certificates of votes over copies with words deleted at random.

A copy of a text lacks each word with the chance ``rate``, independently; ``g`` is the class that
the base classifier names most often for a random copy.

Guarantee.  With probability at least ``1 - alpha`` over the draw of the *estimation* sample, ``g``
gives ``label`` to every text within an edit distance of ``radius``: so many words replaced,
inserted or deleted, the others in their order; where ``label`` was chosen from a separate
*selection* sample.

Assumptions.  The two samples are independent of each other and of the text; what is said of a copy
is a function of the words that are left, in their order, and not of where they stood.  Votes that
rounding in the model could turn are counted by the caller against the label and for every rival.

Proof.  Let ``x'`` be ``x`` with ``a`` of its words gone and ``b`` new ones, a replaced word being
both, so that ``a <= r`` and ``b <= r``; and let ``z`` be the words that they share.  A copy of
``x`` lacks all ``a`` words with the chance ``rate**a``, and is then a copy of ``z``; so for every
class

    rate**a q  <=  p  <=  rate**a q + 1 - rate**a,        the same for p' and b,

where ``p``, ``p'`` and ``q`` are its chances for ``x``, ``x'`` and ``z``.  Let ``m`` be the
difference of ``p`` between label and rival.  With ``q`` eliminated, the difference for ``x'`` is at
least ``rate**(b-a) (m - 1 + rate**a) - 1 + rate**b``.  Times ``rate**(a-b)``, that is

    m - 1 + rate**a (2 - rate**-b)  >=  m - 1 + u (2 - 1/u)  =  m - 2 + 2 u,      u = rate**r,

for ``u > 1/2``.  So the label wins while ``u > 1 - m/2``, which is above 1/2, as ``m <= 1``.  This
is the radius of CERT-ED, ``floor(log(1 - m/2) / log(rate))``, found without logarithms.

``deletion`` bounds ``m`` by ``2 p - 1``: no majority, no certificate.  ``deletion-runner-up``
bounds the label and each rival, and shares ``alpha`` among them (`label_and_rivals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.exact import Radius
from ranmask.certificates.kept import as_written
from ranmask.certificates.sampled import label_and_rivals, lower_bound
from ranmask.errors import check_cancelled

Stream: TypeAlias = Literal["selection", "estimation"]
_STREAMS: dict[Stream, int] = {"selection": 1, "estimation": 2}
_BITS = 64
_AT_ONCE = 1 << 22  # random numbers drawn at a time: bounds memory for long texts


def deletion_rate(rate: float) -> Fraction:
    """The chance with which words are deleted: the multiple of 2**-64 just below ``rate``."""
    return Fraction(_limit(rate), 2**_BITS)


def _limit(rate: float) -> int:
    return int(as_written(rate) * 2**_BITS)


def kept_words(
    words: int, rate: float, copies: int, seed: int, stream: Stream
) -> npt.NDArray[np.bool_]:
    """Which words each copy keeps, (copies, words): independent draws, the same every time."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, _STREAMS[stream], words]))
    stays = np.empty((copies, words), dtype=bool)
    for start in range(0, copies, step := max(1, _AT_ONCE // words)):
        check_cancelled()
        rows = stays[start : start + step]
        rows[:] = bits.random_raw(rows.size).reshape(rows.shape) >= np.uint64(_limit(rate))
    return stays


def deletion_radius(
    kind: str, counts: Sequence[int], label: int, samples: int, rate: Fraction, *, alpha: float
) -> Radius:
    """The radius of a label, from the votes of each class in the estimation sample."""
    if kind == "deletion-runner-up":
        low, high = label_and_rivals(counts, label, samples, alpha=alpha)
    else:
        low = Fraction(lower_bound(counts[label], samples, alpha))
        high = 1 - low
    return Radius(edit_radius(low, high, rate), tight=False)


def edit_radius(low: Fraction, high: Fraction, rate: Fraction) -> int | None:
    """How many edits leave a label whose chance is at least ``low``, its rivals' at most ``high``.

    >>> edit_radius(Fraction(999, 1000), Fraction(1, 1000), Fraction(9, 10))
    6
    """
    needed = 1 - (low - high) / 2
    if needed >= 1:
        return None
    radius, same = 0, rate
    while same > needed:
        radius, same = radius + 1, same * rate
    return radius

"""How sure a measured share is, and whether two runs over the same texts differ significantly.

All of this speaks of *texts drawn at random*: how far a share measured on some texts may be from
the share on all such texts.  It says nothing about certificates, which are proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

from ranmask.certificates.sampled import lower_bound, upper_bound

_DRAWS = 9_999
_NUMBERS_AT_ONCE = 1 << 20
NORMAL = 1.959963984540054
"""The normal quantile of 0.975."""
_HALVINGS = 60  # of an interval no longer than 2: beyond what a double can tell apart


@dataclass(frozen=True)
class Paired:
    """Two runs over the same texts: ``difference`` is the first's mean less the second's.

    ``interval``: of the difference; both are None for radii, which have no mean.
    ``higher_first``, ``higher_second``: texts on which the one is right or larger, and the other
    is not.  ``p_value``: how likely a difference so far from none is if neither run is better.
    """

    difference: float | None
    interval: tuple[float, float] | None
    higher_first: int
    higher_second: int
    p_value: float


def proportion_interval(
    successes: int, trials: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Clopper-Pearson: holds the true share with probability at least ``confidence``.

    >>> low, high = proportion_interval(8, 10)
    >>> f"{low:.3f} to {high:.3f}"
    '0.444 to 0.975'
    """
    tail = (1 - confidence) / 2
    return lower_bound(successes, trials, tail), upper_bound(successes, trials, tail)


def wilson_interval(part: float, whole: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, for independent draws; (0, 1) of nothing."""
    if whole == 0:
        return 0.0, 1.0
    share = part / whole
    middle = share + NORMAL**2 / (2 * whole)
    spread = NORMAL * math.sqrt(share * (1 - share) / whole + NORMAL**2 / (4 * whole**2))
    scale = 1 + NORMAL**2 / whole
    # At the ends the formula gives 0 and 1, but for rounding.
    low = 0.0 if part == 0 else (middle - spread) / scale
    high = 1.0 if part == whole else (middle + spread) / scale
    return low, high


def mean_interval(shares: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """A 95 % interval of the mean of independent shares, as those of classes, each part of a whole.

    From Wilson's intervals by the method of variance estimates recovery (Zou and Donner 2008).

    >>> low, high = mean_interval([(80, 100), (9, 10)])
    >>> f"{low:.3f} to {high:.3f}"
    '0.692 to 0.903'
    """
    middles = [part / whole for part, whole in shares]
    ends = [wilson_interval(part, whole) for part, whole in shares]
    below = math.hypot(*(share - low for share, (low, _) in zip(middles, ends, strict=True)))
    above = math.hypot(*(high - share for share, (_, high) in zip(middles, ends, strict=True)))
    mean = sum(middles) / len(shares)
    return mean - below / len(shares), mean + above / len(shares)


def area_interval(area: float, negatives: int, positives: int) -> tuple[float, float]:
    """A 95 % interval of the area under a ROC curve: Newcombe's fifth method (2006).

    The areas that a score test with Hanley and McNeil's variance does not reject; it keeps its
    width where the two kinds are wholly apart.

    >>> low, high = area_interval(0.9, 100, 50)
    >>> f"{low:.3f} to {high:.3f}"
    '0.830 to 0.942'
    """
    more = (negatives + positives) / 2 - 1

    def rejects(value: float) -> bool:
        spread = 1 + more * ((1 - value) / (2 - value) + value / (1 + value))
        variance = value * (1 - value) * spread / (negatives * positives)
        return (area - value) ** 2 > NORMAL**2 * variance

    return last_kept(area, 0.0, rejects), last_kept(area, 1.0, rejects)


def last_kept(inside: float, outside: float, rejects: Callable[[float], bool]) -> float:
    """The value farthest from ``inside`` that a test does not reject."""
    if not rejects(outside):
        return outside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if rejects(middle):
            outside = middle
        else:
            inside = middle
    return outside


def paired_difference(
    first: Sequence[bool], second: Sequence[bool], confidence: float = 0.95
) -> Paired:
    """McNemar's exact test and Tango's score interval; entry i of both belongs to text i.

    Tango's interval (Statistics in Medicine 17, 1998) is asymptotic: the differences that a score
    test does not reject.  It keeps its width where the runs never disagree.

    >>> first = [True] * 83 + [False] * 17
    >>> second = [True] * 80 + [False] * 3 + [True] * 12 + [False] * 5
    >>> result = paired_difference(first, second)
    >>> low, high = result.interval
    >>> f"{result.difference:+.3f} ({low:+.3f} to {high:+.3f}), p = {result.p_value:.3f}"
    '-0.090 (-0.174 to -0.016), p = 0.035'
    """
    signs = sign_test(first, second)
    plus, minus, texts = signs.higher_first, signs.higher_second, len(first)
    deviation = NormalDist().inv_cdf(1 - (1 - confidence) / 2)
    low = -_tango_upper(minus, plus, texts, deviation)
    high = _tango_upper(plus, minus, texts, deviation)
    return replace(signs, difference=(plus - minus) / texts, interval=(low, high))


def sign_test(first: Sequence[float | None], second: Sequence[float | None]) -> Paired:
    """The sign test, exact and two-sided; entry i of both belongs to text i, and ties are dropped.

    ``None`` is less than every number: a text that is not certified at all.

    >>> sign_test([3, 2, None, 1], [1, 2, 0, None])
    Paired(difference=None, interval=None, higher_first=2, higher_second=1, p_value=1.0)
    """
    numbers = ([-math.inf if value is None else value for value in run] for run in (first, second))
    pairs = list(zip(*numbers, strict=True))
    higher = sum(1 for a, b in pairs if a > b)
    lower = sum(1 for a, b in pairs if a < b)
    # Twice the smaller tail of a fair coin's binomial distribution, at most 1; in integers.
    tail = term = 1
    for heads in range(1, min(higher, lower) + 1):
        term = term * (higher + lower - heads + 1) // heads
        tail += term
    p_value = min(Fraction(1), Fraction(2 * tail, 2 ** (higher + lower)))
    return Paired(None, None, higher, lower, float(p_value))


def mean_difference(first: Sequence[float], second: Sequence[float]) -> Paired:
    """A 95 % interval of the mean difference, and a two-sided p-value of its being 0.

    The interval is a percentile bootstrap's.  The test flips the sign of each text's difference
    at random: exact if a text's two values could as well be exchanged, up to its draws.  The same
    values always give the same answer.

    >>> mean_difference([1.0, 2.0], [1.0, 2.0])
    Paired(difference=0.0, interval=(0.0, 0.0), higher_first=0, higher_second=0, p_value=1.0)
    """
    import numpy as np

    gaps = np.subtract(first, second, dtype=np.float64)
    generator = np.random.default_rng(0)
    at_once = max(1, _NUMBERS_AT_ONCE // len(gaps))
    means, as_far = [], 1  # the signs as they are count as one draw
    for start in range(0, _DRAWS, at_once):
        shape = (min(at_once, _DRAWS - start), len(gaps))
        means.append(gaps[generator.integers(len(gaps), size=shape)].mean(axis=1))
        flipped = np.where(generator.integers(2, size=shape) == 1, gaps, -gaps).sum(axis=1)
        # Sums in another order differ by a rounding error.
        as_far += int((np.abs(flipped) >= abs(gaps.sum()) - 1e-9).sum())
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return replace(
        sign_test(first, second),
        difference=sum(first) / len(first) - sum(second) / len(second),
        interval=(float(low), float(high)),
        p_value=as_far / (_DRAWS + 1),
    )


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given.

    Calling every comparison real whose adjusted value is at most ``a`` calls even one unreal one
    so with probability at most ``a``, however the comparisons hang together.

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    ranked = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(ranked):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def _tango_upper(plus: int, minus: int, texts: int, deviation: float) -> float:
    """The largest difference that Tango's score test does not reject."""

    def rejects(difference: float) -> bool:
        # The likeliest chance of a minus, given that a plus is likelier by the difference: the
        # larger root of a x^2 + b x + c.  It is real, for a likelihood has a maximum; only
        # rounding could take the discriminant below 0.
        a = 2 * texts
        b = (2 * texts - plus + minus) * difference - plus - minus
        c = -minus * difference * (1 - difference)
        chance = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
        spread = 2 * chance + difference * (1 - difference)
        return (plus - minus - texts * difference) ** 2 > deviation**2 * texts * spread

    return last_kept((plus - minus) / texts, 1.0, rejects)  # 1.0: every text is a plus

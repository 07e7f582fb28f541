"""How sure a measured proportion is, and whether two measured differences are more than luck.

All of this speaks of *texts drawn at random*: it says how far a share measured on some texts may
be from the share on all such texts.  It says nothing about certificates, which need no luck.

* `proportion_interval`: Clopper and Pearson's interval; its confidence is never below what it says.
* `paired_difference`: two runs over the same texts, right or wrong: McNemar's exact test, and
  Tango's interval for the difference.
* `sign_test`: two runs over the same texts with a radius each: how often either is larger.
* `mean_difference`: two runs over the same texts with a number each: the mean difference.
* `holm`: p-values of several comparisons, so that all of them can be believed together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from ranmask.certificates.sampled import lower_bound, upper_bound
from ranmask.errors import OptionError

_DRAWS = 9_999
_NUMBERS_AT_ONCE = 1 << 20
_HALVINGS = 60  # of an interval no longer than 2: beyond what a double can tell apart


@dataclass(frozen=True)
class Paired:
    """Two runs over the same texts: ``difference`` is the first's share less the second's.

    ``only_first``, ``only_second``: texts that only one of the runs has right.  ``p_value``:
    how likely so uneven a split of them is, or a more uneven one, if neither run is better.
    """

    difference: float
    interval: tuple[float, float]
    only_first: int
    only_second: int
    p_value: float


@dataclass(frozen=True)
class SignTest:
    """``wins``: texts where the first is larger; ``losses``: smaller; ``ties`` count for nothing.

    ``p_value``: how likely so uneven a split of wins and losses is, or a more uneven one, if
    neither is more likely than the other.
    """

    wins: int
    losses: int
    ties: int
    p_value: float


def proportion_interval(
    successes: int, trials: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Clopper-Pearson: holds the true share with probability at least ``confidence``.

    >>> low, high = proportion_interval(8, 10)
    >>> f"{low:.3f} to {high:.3f}"
    '0.444 to 0.975'
    """
    if not (trials >= 1 and 0 <= successes <= trials):
        raise OptionError(
            f"{successes} of {trials} is no proportion: give at least one trial, and no more "
            "successes than trials"
        )
    tail = _outside(confidence) / 2
    return lower_bound(successes, trials, tail), upper_bound(successes, trials, tail)


def paired_difference(
    first: Sequence[bool], second: Sequence[bool], confidence: float = 0.95
) -> Paired:
    """McNemar's exact test and Tango's score interval; entry i of both belongs to text i.

    The test is exact: given the texts that only one run has right, their split is binomial with
    chance 1/2, and the p-value is twice its smaller tail.  The interval is asymptotic (Tango,
    Statistics in Medicine 17, 1998): the differences that a score test does not reject.  It
    keeps its width where the runs never disagree.

    >>> first = [True] * 83 + [False] * 17
    >>> second = [True] * 80 + [False] * 3 + [True] * 12 + [False] * 5
    >>> result = paired_difference(first, second)
    >>> low, high = result.interval
    >>> f"{result.difference:+.3f} ({low:+.3f} to {high:+.3f}), p = {result.p_value:.3f}"
    '-0.090 (-0.174 to -0.016), p = 0.035'
    """
    _check_pairs(first, second)
    only_first = sum(1 for a, b in zip(first, second, strict=True) if a and not b)
    only_second = sum(1 for a, b in zip(first, second, strict=True) if b and not a)
    texts = len(first)
    deviation = NormalDist().inv_cdf(1 - _outside(confidence) / 2)
    return Paired(
        difference=(only_first - only_second) / texts,
        interval=(
            -_tango_upper(only_second, only_first, texts, deviation),
            _tango_upper(only_first, only_second, texts, deviation),
        ),
        only_first=only_first,
        only_second=only_second,
        p_value=_even_split(only_first, only_second),
    )


def sign_test(first: Sequence[float | None], second: Sequence[float | None]) -> SignTest:
    """The sign test, exact and two-sided; entry i of both belongs to text i, and ties are dropped.

    ``None`` is less than every number: a text that is not certified at all.

    >>> sign_test([3, 2, None, 1], [1, 2, 0, None])
    SignTest(wins=2, losses=1, ties=1, p_value=1.0)
    """
    _check_pairs(first, second)
    pairs = [(_or_below_all(a), _or_below_all(b)) for a, b in zip(first, second, strict=True)]
    wins = sum(1 for a, b in pairs if a > b)
    losses = sum(1 for a, b in pairs if a < b)
    return SignTest(wins, losses, len(pairs) - wins - losses, _even_split(wins, losses))


def mean_difference(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """A 95 % interval of the mean of ``a - b``, and a two-sided p-value of its being 0.

    The interval is a percentile bootstrap's.  The test flips the sign of each text's difference
    at random: exact if a text's two values could as well be exchanged, up to its draws.  The same
    values always give the same answer.

    >>> mean_difference([1.0, 2.0], [1.0, 2.0])
    (0.0, 0.0, 1.0)
    """
    import numpy as np

    gaps = np.subtract(a, b, dtype=np.float64)
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
    return float(low), float(high), as_far / (_DRAWS + 1)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given.

    Calling every comparison real whose adjusted value is at most ``a`` calls even one unreal one
    so with probability at most ``a``, however the comparisons hang together.

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    for p_value in p_values:
        if not 0 <= p_value <= 1:
            raise OptionError(f"a p-value lies between 0 and 1, and {p_value!r} does not")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    ranked = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(ranked):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def _even_split(one: int, other: int) -> float:
    """Twice the smaller tail of a fair coin's binomial distribution, at most 1; in integers."""
    tosses = one + other
    tail = term = 1  # the binomial coefficient of 0
    for heads in range(1, min(one, other) + 1):
        term = term * (tosses - heads + 1) // heads
        tail += term
    return float(min(Fraction(1), Fraction(2 * tail, 2**tosses)))


def _tango_upper(plus: int, minus: int, texts: int, deviation: float) -> float:
    """The largest difference that Tango's score test does not reject."""

    def rejects(difference: float) -> bool:
        spread = 2 * _minus_chance(plus, minus, texts, difference) + difference * (1 - difference)
        return (plus - minus - texts * difference) ** 2 > deviation**2 * texts * spread

    inside, outside = (plus - minus) / texts, 1.0
    if not rejects(outside):
        return outside  # every text is a plus
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if rejects(middle):
            outside = middle
        else:
            inside = middle
    return outside


def _minus_chance(plus: int, minus: int, texts: int, difference: float) -> float:
    """The likeliest chance of a minus, given that a plus is likelier by ``difference``."""
    # The larger root of a x^2 + b x + c.  It is real, for a likelihood has a maximum; only
    # rounding could take the discriminant below 0.
    a = 2 * texts
    b = (2 * texts - plus + minus) * difference - plus - minus
    c = -minus * difference * (1 - difference)
    return (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)


def _or_below_all(value: float | None) -> float:
    return -math.inf if value is None else value


def _outside(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie between 0 and 1, not {confidence!r}: try 0.95")
    return 1 - confidence


def _check_pairs(first: Sequence[object], second: Sequence[object]) -> None:
    if len(first) != len(second):
        raise OptionError(
            f"{len(first)} and {len(second)} results cannot be paired: give one of each run for "
            "each text"
        )
    if len(first) == 0:
        raise OptionError("there are no pairs to compare: give at least one text")

"""Certificates from a random sample of kept sets: Levine & Feizi's, and the paper's to compare.

Guarantee of ``ablation`` (Levine & Feizi 2020) and ``ablation-runner-up``.  ``g`` is the class
that the base classifier names most often when ``k`` of ``h`` positions are kept uniformly at
random.  With probability at least ``1 - alpha`` over the draw of the *estimation* sample, ``g``
gives ``label`` to every text that differs in at most ``radius`` words, where ``label`` was chosen
from a separate *selection* sample.  Proof: docs/certificates.md, section 6.

Assumptions.  The two samples are independent of each other and of the text, so that it was not
chosen by someone who knows the seed that they are drawn from; a copy's vote is a function of its
kept words and their positions.  Votes that rounding in the model could turn count against the
label.

**The paper's certificates have no guarantee**, and everything that shows them must say so.  Two
faults make their radii untrue (docs/certificates.md, section 7):

* ``beta``, the chance that a copy which shows a changed word still votes for the label, is
  averaged over random positions (Algorithm 1, ``paper-estimated-beta``) or replaced by ``p_c``
  (Algorithm 2, ``paper``); the attacker chooses the positions, so neither bounds it.
* Algorithm 2 returns the first number of words that *fails* its own test (``paper-as-printed``);
  ``paper`` returns the last that passes.

Bounds on probabilities are doubles pushed outwards until the binomial tail, computed from above to
30 digits, agrees; from there on fractions decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

from ranmask.certificates.exact import Radius
from ranmask.certificates.families import Family
from ranmask.certificates.kept import check_fixed, sets_met
from ranmask.certificates.paper import estimated_beta
from ranmask.certificates.votes import Votes
from ranmask.errors import OptionError

Margin: TypeAlias = Callable[[int], Fraction]
"""What is left after a number of changed words: certified while it is above zero."""

_HALF = Fraction(1, 2)
_ROUNDING = 1e-12  # far less than matters
_DIGITS = 40
_NEGLIGIBLE = Decimal("1e-30")  # more than a million operations round away
_MOST_STEPS = 100


def delta(words: int, kept: int, changed: int) -> Fraction:
    """The paper's ``Delta``: the chance that ``kept`` random positions meet ``changed`` ones."""
    return Fraction(sets_met(words, kept, changed), math.comb(words, kept))


@lru_cache(maxsize=4096)
def lower_bound(successes: int, trials: int, alpha: float) -> float:
    """Clopper-Pearson: with probability at least ``1 - alpha``, not above the true chance."""
    if not (0 <= successes <= trials and trials >= 1):
        raise ValueError(f"{successes} successes in {trials} trials")
    if not 0 < alpha < 1:
        raise OptionError(f"alpha must lie between 0 and 1, not {alpha!r}")
    if successes == 0:
        return 0.0
    # Newton's steps for the logarithm of the tail over that of the chance.  It is concave, so from
    # below the bound they stay below: the tail is at most the coefficient times chance^successes.
    goal = math.log(alpha)
    low = math.exp((goal - float(_choices(trials, successes).ln())) / successes)
    for _ in range(_MOST_STEPS):
        tail, slope = _tail(successes, trials, low)
        step = (goal - float(tail.ln())) / slope
        low *= math.exp(step)
        if step <= _ROUNDING:
            break
    low *= 1 - _ROUNDING
    while low > 0 and _tail(successes, trials, low)[0] > Decimal(alpha):
        low *= 1 - _ROUNDING
    return low


def _tail(successes: int, trials: int, chance: float) -> tuple[Decimal, float]:
    """Above the chance of so many successes or more; and its slope, both on a logarithmic scale.

    Terms are added until the rest, bounded by a geometric series, is below the rounding of 40
    digits, for which the sum is enlarged.
    """
    with localcontext(Context(prec=_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        hit = Decimal(chance)
        miss = 1 - hit
        first = _choices(trials, successes) * hit**successes * miss ** (trials - successes)
        total = term = first
        for count in range(successes, trials):
            ratio = (trials - count) * hit / ((count + 1) * miss)
            term *= ratio
            total += term
            if ratio < 1 and term * ratio < total * (1 - ratio) * _NEGLIGIBLE:
                break
        return total * (1 + 2 * _NEGLIGIBLE), float(successes * first / total)


@lru_cache(maxsize=64)
def _choices(trials: int, successes: int) -> Decimal:
    """The binomial coefficient, to as many digits as are computed with."""
    with localcontext(Context(prec=_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        product = Decimal(1)
        for number in range(1, min(successes, trials - successes) + 1):
            product = product * (trials + 1 - number) / number
        return product


def upper_bound(successes: int, trials: int, alpha: float) -> float:
    """Clopper-Pearson: with probability at least ``1 - alpha``, not below the true chance."""
    return min(1.0, (1.0 - lower_bound(trials - successes, trials, alpha)) * (1 + _ROUNDING))


def label_and_rivals(
    counts: Sequence[int], label: int, samples: int, *, alpha: float
) -> tuple[Fraction, Fraction]:
    """Below the label's chance, and above that of every rival, both at once.

    Right with probability at least ``1 - alpha``.  That is split evenly over all the bounds: one
    lower bound and an upper bound for *each* rival, since which of them is second is not known
    before the sample is seen.
    """
    share = alpha / max(len(counts), 1)
    low = Fraction(lower_bound(counts[label], samples, share))
    rivals = [count for index, count in enumerate(counts) if index != label]
    high = max((Fraction(upper_bound(count, samples, share)) for count in rivals), default=_HALF)
    return low, min(high, 1 - low)  # the chances of all classes add up to one


def largest_passing(words: int, passes: Callable[[int], bool]) -> int | None:
    """The largest number of changed words up to ``words`` that passes, given that fewer do."""
    radius = None
    for changed in range(words + 1):
        if not passes(changed):
            break
        radius = changed
    return radius


def margin_from_counts(
    kind: str,
    counts: Sequence[int],
    label: int,
    samples: int,
    words: int,
    kept: int,
    *,
    alpha: float = 0.05,
    beta: Margin | None = None,
) -> Margin:
    """The margin of a certificate, from the votes of each class in the estimation sample.

    ``beta`` is the paper's, for a number of changed words; by default the label's share of votes.
    """
    if kind == "ablation-runner-up":
        low, high = label_and_rivals(counts, label, samples, alpha=alpha)
        start = (low - high) / 2
    else:
        start = Fraction(lower_bound(counts[label], samples, alpha)) - _HALF

    def margin(changed: int) -> Fraction:
        lost = Fraction(1)  # of the copies that meet a changed word, how many vote otherwise
        if kind.startswith("paper"):
            lost = beta(changed) if beta and changed else Fraction(counts[label], samples)
        return start - lost * delta(words, kept, changed)

    return margin


def sampled_margin(
    kind: str, votes: Votes, family: Family, label: int, *, alpha: float, seed: int
) -> Margin:
    """The margin of one text's ``label`` over an estimation sample that did not select it.

    Ablation counts uncertain votes against the label; the paper knows of none.
    """
    check_fixed(family.kind)
    counts = votes.against([label])[0].tolist()
    beta = None
    if kind.startswith("paper"):
        for_label = votes.best == label
        counts[label] = int(for_label.sum())
        if kind == "paper-estimated-beta":
            beta = partial(estimated_beta, family.sets, for_label, family.words, seed=seed)
    sizes = (len(family), family.words, family.kept)
    return margin_from_counts(kind, counts, label, *sizes, alpha=alpha, beta=beta)


def radius_of(kind: str, words: int, margin: Margin) -> Radius:
    """The largest number of changed words of which a margin is left; as printed, one more.

    Where even the unchanged text fails the test, Algorithm 2 returns 0 and calls it certified at
    0; here that is None, as for every other certificate.
    """
    largest = largest_passing(words, lambda changed: margin(changed) > 0)
    if kind == "paper-as-printed" and largest is not None:
        # The printed loop runs d from 0 to the number of words and cannot return more than that.
        largest = min(largest + 1, words)
    return Radius(largest, tight=False)

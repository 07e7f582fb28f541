"""Randomised ablation (Levine & Feizi 2020): certificates from a random sample of kept sets.

Guarantee.  ``g`` is the class that the base classifier names most often when ``k`` of ``h``
positions are kept uniformly at random.  With probability at least ``1 - alpha`` over the draw of
the *estimation* sample, ``g`` gives ``label`` to every text that differs in at most ``radius``
words, where ``label`` was chosen from a separate *selection* sample.

Assumptions.  The two samples are independent of each other and of the text, so that it was not
chosen by someone who knows the seed that they are drawn from; a copy's vote is a
function of its kept words and their positions.  Votes that rounding in the model could turn are
counted by the caller as votes against the label.

Proof.  ``Delta(d)`` is the chance that the kept set meets one of ``d`` changed positions; votes
of sets that meet none are the same for both texts, so ``p_c`` falls, and each ``p_c'`` rises, by
at most ``Delta(d)``.

Bounds on probabilities are doubles pushed outwards until the binomial tail, computed anew,
agrees; from there on fractions decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from ranmask.certificates.exact import Radius, sets_met
from ranmask.errors import OptionError

_HALF = Fraction(1, 2)
_ROUNDING = 1e-12  # far more than the quantile function is off by, far less than matters


def delta(words: int, kept: int, changed: int) -> Fraction:
    """The paper's ``Delta``: the chance that ``kept`` random positions meet ``changed`` ones."""
    return Fraction(sets_met(words, kept, changed), math.comb(words, kept))


def lower_bound(successes: int, trials: int, alpha: float) -> float:
    """Clopper-Pearson: with probability at least ``1 - alpha``, not above the true chance."""
    _check_binomial(successes, trials, alpha)
    if successes == 0:
        return 0.0
    from scipy.special import betainc, betaincinv

    low = float(betaincinv(successes, trials - successes + 1, alpha)) * (1 - _ROUNDING)
    # P(at least `successes` | low) = betainc(successes, trials - successes + 1, low) <= alpha
    while low > 0 and float(betainc(successes, trials - successes + 1, low)) > alpha:
        low *= 1 - _ROUNDING
    return low


def upper_bound(successes: int, trials: int, alpha: float) -> float:
    """Clopper-Pearson: with probability at least ``1 - alpha``, not below the true chance."""
    return min(1.0, (1.0 - lower_bound(trials - successes, trials, alpha)) * (1 + _ROUNDING))


def ablation_radius(
    votes: int, samples: int, words: int, kept: int, *, alpha: float = 0.05
) -> Radius:
    """Levine-Feizi: certified while the lower bound on the label's chance, less Delta, is > 1/2.

    Args:
        votes: Votes for the label in the estimation sample.
        samples: Size of that sample.
        words: How many words the text has.
        kept: How many of them are kept.
        alpha: The probability that the certificate may be wrong.
    """
    low = Fraction(lower_bound(votes, samples, alpha))
    largest = largest_passing(words, lambda changed: low - delta(words, kept, changed) > _HALF)
    return Radius(largest, tight=False)


def runner_up_radius(
    counts: Sequence[int], label: int, samples: int, words: int, kept: int, *, alpha: float = 0.05
) -> Radius:
    """The runner-up form: the label's lower bound stays above every rival's upper bound.

    `label_and_rivals` splits the error budget over all these bounds.
    """
    low, high = label_and_rivals(counts, label, samples, alpha=alpha)
    largest = largest_passing(words, lambda changed: low - high > 2 * delta(words, kept, changed))
    return Radius(largest, tight=False)


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


def _check_binomial(successes: int, trials: int, alpha: float) -> None:
    if not (0 <= successes <= trials and trials >= 1):
        raise ValueError(f"{successes} successes in {trials} trials")
    if not 0 < alpha < 1:
        raise OptionError(f"alpha must lie between 0 and 1, not {alpha!r}")

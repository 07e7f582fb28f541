"""How many words stay visible, and which choices of kept sets there are.

The only place that computes ``k``, the number of kept words: sampling, training and certification
all call `kept_count`.  It imports no numpy, so that `ranmask.options` does not either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Literal, TypeAlias, get_args

from ranmask.errors import OptionError

FamilyChoice: TypeAlias = Literal["auto", "all", "sampled", "windows", "distinct"]
FAMILY_CHOICES: tuple[str, ...] = get_args(FamilyChoice)

Sampling: TypeAlias = Literal["fixed", "fresh", "lm"]
"""Whether kept sets follow from the number of words, or are drawn for each text."""

_FINE, _COARSE = 1 << 64, 1 << 16  # parts that a rate of deletion is a multiple of


@dataclass(frozen=True)
class Retention:
    """How many words stay visible: a fixed number, or a share of the text.

    Exactly one of the two is given.  ``keep`` words are kept of every text (all of them, where
    the text is shorter); or a share ``mask_rate`` is hidden, as in the paper.
    """

    keep: int | None = None
    mask_rate: float | None = None

    def __post_init__(self) -> None:
        if (self.keep is None) == (self.mask_rate is None):
            raise OptionError(
                "give exactly one of keep and mask_rate"
                + (
                    ", not both"
                    if self.mask_rate is not None
                    else ": how many words each copy shows, as keep=2, or what share is hidden, as "
                    "mask_rate=0.9"
                ),
                "keep",
            )
        keep, rate = self.keep, self.mask_rate
        whole = isinstance(keep, Integral) and not isinstance(keep, bool)
        if keep is not None and not (whole and keep >= 1):
            raise OptionError(f"keep must be a whole number of at least 1, not {keep!r}", "keep")
        number = isinstance(rate, int | float | Fraction) and not isinstance(rate, bool)
        if rate is not None and not (number and 0 <= rate < 1):
            raise OptionError(
                f"mask_rate must be a number from 0 up to, but not including, 1; not {rate!r}"
            )

    def count(self, words: int) -> int:
        """``k`` for a text of ``words`` words; see `kept_count`."""
        return kept_count(words, keep=self.keep, mask_rate=self.mask_rate)


@dataclass(frozen=True)
class DeletionRates:
    """The chance with which each word of a text is deleted, by the number of its words.

    ``least`` for all texts; with ``keep`` it is larger in longer ones, so that a copy has so many
    words on average: ``max(least, 1 - keep / words)``, AdaptDel's.  Rates are rounded down to
    multiples of 2**-64, with ``keep`` of 2**-16, by which sums over them stay small integers.

    >>> rates = DeletionRates(0.75, keep=10)
    >>> float(rates.of(20)), float(rates.of(80))
    (0.75, 0.875)
    """

    least: float
    keep: int | None = None

    def of(self, words: int) -> Fraction:
        """The rate of texts of so many words."""
        rate = as_written(self.least)
        if self.keep is not None:
            rate = max(rate, 1 - Fraction(self.keep, words))
        return Fraction(int(rate * self.parts), self.parts)

    @property
    def parts(self) -> int:
        """What all rates times are whole numbers."""
        return _FINE if self.keep is None else _COARSE


@lru_cache(maxsize=1 << 16, typed=True)  # 0.9 and Fraction(0.9) are equal, and keep other numbers
def kept_count(words: int, *, keep: int | None = None, mask_rate: float | None = None) -> int:
    """``k``: how many of ``words`` words stay visible.  At least 1, at most ``words``.

    With ``mask_rate`` (the paper's rho) it is the integer nearest to ``words - rho * words``,
    and **a half is rounded up**, towards one more visible word.  The rate is taken as the
    decimal number that was written (0.9 is nine tenths), so that no binary rounding decides
    a half.
    """
    if words < 1:
        raise OptionError(f"a text of {words} words has no word to keep")
    if keep is not None:
        return min(keep, words)
    if mask_rate is None:
        raise OptionError("give keep or mask_rate")
    visible = (1 - as_written(mask_rate)) * words
    return min(words, max(1, round_half_up(visible)))


def sets_met(words: int, kept: int, changed: int) -> int:
    """How many of all ``C(words, kept)`` sets meet ``changed`` given positions."""
    return math.comb(words, kept) - math.comb(max(words - changed, 0), kept)


def ramped_count(words: int, kept: int, share: Fraction) -> int:
    """How many words stay visible when only a ``share`` of those to hide is hidden yet."""
    return words - round_half_up(share * (words - kept))


def round_half_up(value: Fraction) -> int:
    """The nearest integer; a half goes up.  The one rounding rule of this package."""
    return math.floor(value + Fraction(1, 2))


def as_written(number: float) -> Fraction:
    """A number as its decimals say: 0.9 is nine tenths."""
    return number if isinstance(number, Fraction) else Fraction(str(number))


def check_fixed(kind: str) -> None:
    """Refuse to certify over kept sets (`FamilyKind` or `Sampling`) that are drawn by the words."""
    if kind in ("fresh", "lm"):
        raise OptionError(
            f"sampling={kind!r} cannot be certified: its kept sets depend on the words, so whoever "
            "changes words changes which copies vote, and the votes prove nothing. Use "
            "sampling='fixed'; or predict, which claims nothing"
        )

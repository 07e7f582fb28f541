"""Axes: where a value lies on a picture, and which values are written beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)
_ALIKE = 1e-6  # values closer than that get an axis around them
_FEW_DECADES = 2  # below that, a logarithmic axis gets the ticks 2 and 5 as well


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high``, with ticks; ``log``: by powers of ten."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, value: float) -> float:
        """Where the value lies: 0 at ``low``, 1 at ``high``; values beyond are put at the end."""
        low, high = self.low, self.high
        if self.log:
            if value <= 0:
                return 0.0
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return min(1.0, max(0.0, (value - low) / (high - low)))


def share_axis(title: str) -> Axis:
    """All of 0 to 1, written as the project writes shares."""
    return Axis(title, 0, 1, ((0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1, "1")))


def percent_axis(title: str) -> Axis:
    """All of 0 to 100."""
    return Axis(title, 0, 100, tuple((value, str(value)) for value in range(0, 101, 25)))


def words_axis(title: str, most: int) -> Axis:
    """Numbers of words, from 0; at most nine ticks."""
    step = max(1, math.ceil(most / 8))
    ticks = tuple((float(value), str(value)) for value in range(0, max(most, 1) + 1, step))
    return Axis(title, 0, max(most, 1), ticks)


def fitted_axis(title: str, values: Iterable[float], *, within: tuple[float, float]) -> Axis:
    """Round numbers around the values, no further than ``within``; about five ticks.

    >>> fitted_axis("x", [0.83, 0.91], within=(0, 1)).ticks[0]
    (0.82, '.82')
    """
    known = list(values) or [within[0]]
    low, high = min(known), max(known)
    if high - low < _ALIKE:
        low, high = low - 0.05 * max(abs(low), 1), high + 0.05 * max(abs(low), 1)
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    lead = next(lead for lead in _STEPS if lead * power >= (high - low) / 4 * (1 - 1e-9))
    step = lead * power
    first, last = math.floor(low / step), math.ceil(high / step)
    low, high = max(within[0], first * step), min(within[1], last * step)
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) + (lead == 2.5)
    ticks = [
        (round(place * step, 10), _plain(place * step, digits))
        for place in range(first, last + 1)
        if low - 1e-9 <= place * step <= high + 1e-9
    ]
    return Axis(title, low, high, tuple(ticks))


def log_axis(title: str, values: Iterable[float]) -> Axis:
    """Powers of ten around the values that are above 0."""
    known = [value for value in values if value > 0] or [1.0]
    first = math.floor(math.log10(min(known)) + 1e-9)
    last = math.ceil(math.log10(max(known)) - 1e-9)
    last = max(last, first + 1)
    leading = (1, 2, 5) if last - first <= _FEW_DECADES else (1,)
    ticks = [
        (lead * 10.0**power, power_of_ten(lead, power))
        for power in range(first, last + 1)
        for lead in leading
        if power < last or lead == 1
    ]
    return Axis(title, 10.0**first, 10.0**last, tuple(ticks), log=True)


def _plain(value: float, digits: int) -> str:
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return "0"
    return ("−" if value < 0 else "") + text.removeprefix("0")


def power_of_ten(lead: float, power: int) -> str:
    """A number by its power of ten.

    >>> power_of_ten(2.5, -5)
    '2.5·10⁻⁵'
    """
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if lead == 1 else f"{lead:g}·10{raised}"

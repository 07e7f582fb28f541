"""Figures of two runs over the same texts, each with a paired test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ranmask.evaluation.intervals import mean_difference, paired_difference, sign_test
from ranmask.metrics import ClassCounts, class_table, class_values, median_certified_robustness
from ranmask.paper.run_data import Attacked, Certified, Predicted

LEVEL = 0.05
"""A difference is called one where its adjusted p-value is at most this."""


def p_digits(p_value: float, least: int) -> int:
    """With how many digits a p value stands on its side of `LEVEL`; at least so many.

    >>> p_digits(0.0123, 3), p_digits(0.0496, 3), p_digits(0.0504, 3)
    (3, 3, 4)
    """
    digits = least
    while (float(f"{p_value:.{digits}f}") > LEVEL) != (p_value > LEVEL):
        digits += 1
    return digits


Measured: TypeAlias = Certified | Attacked | Predicted

_Values: TypeAlias = Sequence[Any]
_CHANGED = range(1, 6)  # CR@1 to CR@5


@dataclass(frozen=True)
class Difference:
    """One figure of A and of B, over the same ``texts``.

    ``step``: what was measured, in words.  ``certificate``: whose figure it is; a star means that
    it guarantees nothing.  ``a`` and ``b``: the figure; for ``radius`` the median, None being N/A.
    ``difference``: A's less B's, with its 95 % ``interval``; None for ``radius``.  ``higher_a``
    and ``higher_b``: texts on which the one is right or larger, and the other is not.
    ``p_value``: of this test alone; ``adjusted``: for all tests of a comparison together.
    """

    step: str
    certificate: str | None
    figure: str
    texts: int
    a: float | None
    b: float | None
    difference: float | None
    interval: tuple[float, float] | None
    higher_a: int
    higher_b: int
    p_value: float
    adjusted: float

    @property
    def verdict(self) -> str:
        """What can be said, in words."""
        if self.adjusted > LEVEL:
            return "no difference found"
        lead = self.higher_a - self.higher_b if self.difference is None else self.difference
        return "A higher" if lead > 0 else "B higher"


@dataclass(frozen=True)
class ByClass:
    """What A and B get right of each true class, over the texts that are compared.

    ``majority``: the share of the largest class, the accuracy of naming it for every text.
    ``balanced_a`` and ``balanced_b``: the mean recall of the classes.  ``classes``: for each, by
    its number, its texts, and the figures of A and of B.
    """

    step: str
    majority: float
    balanced_a: float
    balanced_b: float
    classes: tuple[dict[str, Any], ...]

    def lines(self) -> list[str]:
        """The same in words, a line for a class."""
        head = (
            f"{self.step}: naming the largest class for every text is right for "
            f"{self.majority:.3f}; balanced accuracy {self.balanced_a:.3f} of A, "
            f"{self.balanced_b:.3f} of B"
        )
        titles, rows, left_out = class_table(self.classes)
        lines = [
            f"{self.step}, class {name} ({texts} texts): "
            + ", ".join(f"{title} {cell}" for title, cell in zip(titles[2:], cells, strict=True))
            for name, texts, *cells in rows
        ]
        return [head, *lines, *([f"{self.step}: {left_out}"] if left_out else [])]


def same_radii(a: Measured, b: Measured) -> bool:
    """Whether a radius, where there is one, counts the same changes in both."""
    return getattr(a, "threat", None) == getattr(b, "threat", None)


def _figures(result: Measured, *, radii: bool) -> dict[tuple[str | None, str], _Values]:
    """What can be compared, by certificate and name: an entry for each text.

    A success is None where a text was not attacked, a radius where it does not count.  ``radii``:
    whether there are figures of them.
    """
    if isinstance(result, Attacked):
        attacked = zip(result.clean, result.robust, strict=True)
        success = [not robust if clean else None for clean, robust in attacked]
        return {
            (None, "Cln"): result.clean,
            (None, "Boa"): result.robust,
            (None, "Succ (attacked in both)"): success,
        }
    if isinstance(result, Predicted):
        scores = result.score_entropy
        return {
            (None, "accuracy"): result.correct,
            (None, "entropy of votes"): result.vote_entropy,
            **({} if scores is None else {(None, "entropy of scores"): scores}),
        }
    found: dict[tuple[str | None, str], _Values] = {}
    for reading in result.readings:
        name = reading.certificate
        found[name, "accuracy"] = reading.correct
        if not radii:
            continue
        counted = reading.counted
        for changed in _CHANGED:
            found[name, f"CR@{changed}"] = [
                radius is not None and radius >= changed for radius in counted
            ]
        found[name, "radius"] = counted
    return found


def differences(step: str, a: Measured, b: Measured) -> list[Difference]:
    """The figures that two results share, not yet adjusted for each other."""
    radii = same_radii(a, b)
    of_a, of_b = _figures(a, radii=radii), _figures(b, radii=radii)
    shared = [key for key in of_a if key in of_b]
    if not shared:  # other certificates: their labels are still labels of the same texts
        return [
            _difference(step, None, "accuracy", *(next(iter(x.values())) for x in (of_a, of_b)))
        ]
    both = [reading for result in (a, b) for reading in getattr(result, "readings", ())]
    starred = {reading.certificate for reading in both if not reading.guarantee}
    found = []
    for name, figure in shared:
        values_a, values_b = of_a[name, figure], of_b[name, figure]
        if figure.startswith("Succ"):
            # It has another denominator in A and in B; paired, only these texts have both.
            pairs = zip(values_a, values_b, strict=True)
            kept = [pair for pair in pairs if None not in pair]
            if not kept:
                continue
            values_a, values_b = zip(*kept, strict=True)
        shown = f"{name}*" if name in starred else name
        found.append(_difference(step, shown, figure, values_a, values_b))
    return found


def _difference(
    step: str, certificate: str | None, figure: str, a: _Values, b: _Values
) -> Difference:
    """One figure: the median and the sign test of radii, the mean and its test of the others."""
    first: float | None
    second: float | None
    if figure == "radius":
        test = sign_test(a, b)
        first, second = median_certified_robustness(a), median_certified_robustness(b)
    else:
        test = (mean_difference if figure.startswith("entropy") else paired_difference)(a, b)
        first, second = (float(sum(values) / len(values)) for values in (a, b))
    higher = test.higher_first, test.higher_second
    tested = test.difference, test.interval, *higher, test.p_value
    return Difference(step, certificate, figure, len(a), first, second, *tested, test.p_value)


def by_class(step: str, a: Measured, b: Measured) -> ByClass:
    """Figures by true class: the label first, then under changes."""
    columns: dict[str, ClassCounts] = {}
    labels: _Values = a.expected
    radii = same_radii(a, b)
    firsts = []
    for name, result in (("A", a), ("B", b)):
        shown = [
            ("recall" if figure == "accuracy" else figure, right)
            for (_, figure), right in list(_figures(result, radii=radii).items())[: 1 + radii]
            if not figure.startswith("entropy")
        ]
        for figure, right in shown:
            columns[f"{figure} {name}"] = counts = ClassCounts()
            for label, found in zip(labels, right, strict=True):
                counts.add(label, right=found)
        firsts.append(columns[f"{shown[0][0]} {name}"])
    first, other = firsts
    return ByClass(
        step,
        float(first.majority),
        float(first.balanced),
        float(other.balanced),
        tuple(class_values(columns, None)),
    )

"""Figures of two runs over the same texts, each with a paired test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ranmask.errors import DataError
from ranmask.evaluation.intervals import paired_difference, sign_test
from ranmask.metrics import ClassCounts, class_table, class_values, median_certified_robustness
from ranmask.paper.report.condensed import Attacked, Certified, Predicted, Result

LEVEL = 0.05
"""A difference is called one where its adjusted p-value is at most this."""

Places: TypeAlias = Sequence[int]
"""Where the texts to compare stand in a result, in the same order for both."""

_CHANGED = range(1, 6)  # CR@1 to CR@5
_DRAWS = 9_999
_NUMBERS_AT_ONCE = 1 << 20


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


def differences(
    step: str, a: Result | None, b: Result | None, at_a: Places, at_b: Places
) -> list[Difference]:
    """The figures that two results of the same kind share, not yet adjusted for each other."""
    if isinstance(a, Certified) and isinstance(b, Certified):
        return _certified(step, a, b, at_a, at_b)
    if isinstance(a, Attacked) and isinstance(b, Attacked):
        return _attacked(step, a, b, at_a, at_b)
    if isinstance(a, Predicted) and isinstance(b, Predicted):
        return _predicted(step, a, b, at_a, at_b)
    raise DataError(f"{step}: {type(a).__name__} and {type(b).__name__} have no figure in common")


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


def by_class(
    step: str, a: Result | None, b: Result | None, at_a: Places, at_b: Places
) -> ByClass | None:
    """Figures by class of two results over the same texts; None where classes are not known."""
    measured = Certified | Attacked | Predicted
    if not isinstance(a, measured) or not isinstance(b, measured) or not a.expected:
        return None
    columns: dict[str, ClassCounts] = {}
    expected = _at(a.expected, at_a)
    for name, result, places in (("A", a, at_a), ("B", b, at_b)):
        for figure, right in _right(result, places).items():
            columns[f"{figure} {name}"] = counts = ClassCounts()
            for one, found in zip(expected, right, strict=True):
                counts.add(one, right=found)
    first, other = (next(_counts(columns, name)) for name in ("A", "B"))
    return ByClass(
        step,
        float(first.majority),
        float(first.balanced),
        float(other.balanced),
        tuple(class_values(columns, None)),
    )


def _counts(columns: Mapping[str, Any], name: str) -> Iterator[ClassCounts]:
    return (counts for key, counts in columns.items() if key.endswith(f" {name}"))


def _right(result: Certified | Attacked | Predicted, places: Places) -> dict[str, list[bool]]:
    """What is right in each sense that a result has: the label first, then under changes."""
    if isinstance(result, Attacked):
        statuses = _at(result.statuses, places)
        return {
            "Cln": [status != "skipped" for status in statuses],
            "Boa": [status == "failed" for status in statuses],
        }
    if isinstance(result, Predicted):
        return {"recall": _at(result.correct, places)}
    of = result.readings[0]
    radii = [of.radius[place] if of.correct[place] else None for place in places]
    return {"recall": _at(of.correct, places), "CR@1": _reached(radii, 1)}


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


def _certified(
    step: str, a: Certified, b: Certified, at_a: Places, at_b: Places
) -> list[Difference]:
    found = []
    of_b = {reading.certificate: reading for reading in b.readings}
    for one in a.readings:
        other = of_b.get(one.certificate)
        if other is None:
            continue
        name = one.certificate if one.guarantee and other.guarantee else f"{one.certificate}*"
        radii_a = [one.radius[place] if one.correct[place] else None for place in at_a]
        radii_b = [other.radius[place] if other.correct[place] else None for place in at_b]
        right = _at(one.correct, at_a), _at(other.correct, at_b)
        found.append(_shares(step, name, "accuracy", *right))
        for changed in _CHANGED:
            reached = _reached(radii_a, changed), _reached(radii_b, changed)
            found.append(_shares(step, name, f"CR@{changed}", *reached))
        found.append(_radii(step, name, radii_a, radii_b))
    if not found:  # their labels are still labels of the same texts
        labels = _at(a.readings[0].correct, at_a), _at(b.readings[0].correct, at_b)
        found.append(_shares(step, None, "accuracy", *labels))
    return found


def _reached(radii: Sequence[int | None], changed: int) -> list[bool]:
    return [radius is not None and radius >= changed for radius in radii]


def _attacked(step: str, a: Attacked, b: Attacked, at_a: Places, at_b: Places) -> list[Difference]:
    statuses = list(zip(_at(a.statuses, at_a), _at(b.statuses, at_b), strict=True))
    attacked = [pair for pair in statuses if "skipped" not in pair]
    found = [
        _shares(
            step,
            None,
            "Cln",
            [one != "skipped" for one, _ in statuses],
            [other != "skipped" for _, other in statuses],
        ),
        _shares(
            step,
            None,
            "Boa",
            [one == "failed" for one, _ in statuses],
            [other == "failed" for _, other in statuses],
        ),
    ]
    if attacked:  # Succ has another denominator in A and in B; paired, only these texts have both
        found.append(
            _shares(
                step,
                None,
                "Succ (attacked in both)",
                [one == "succeeded" for one, _ in attacked],
                [other == "succeeded" for _, other in attacked],
            )
        )
    return found


def _predicted(
    step: str, a: Predicted, b: Predicted, at_a: Places, at_b: Places
) -> list[Difference]:
    votes = _at(a.vote_entropy, at_a), _at(b.vote_entropy, at_b)
    found = [
        _shares(step, None, "accuracy", _at(a.correct, at_a), _at(b.correct, at_b)),
        _means(step, "entropy of votes", *votes),
    ]
    if a.score_entropy is not None and b.score_entropy is not None:
        scores = _at(a.score_entropy, at_a), _at(b.score_entropy, at_b)
        found.append(_means(step, "entropy of scores", *scores))
    return found


def _at(values: Sequence[Any], places: Places) -> list[Any]:
    return [values[place] for place in places]


def _shares(
    step: str, certificate: str | None, figure: str, a: Sequence[bool], b: Sequence[bool]
) -> Difference:
    paired = paired_difference(a, b)
    return Difference(
        step,
        certificate,
        figure,
        texts=len(a),
        a=sum(a) / len(a),
        b=sum(b) / len(b),
        difference=paired.difference,
        interval=paired.interval,
        higher_a=paired.only_first,
        higher_b=paired.only_second,
        p_value=paired.p_value,
        adjusted=paired.p_value,
    )


def _radii(
    step: str, certificate: str, a: Sequence[int | None], b: Sequence[int | None]
) -> Difference:
    signs = sign_test(a, b)
    return Difference(
        step,
        certificate,
        "radius",
        texts=len(a),
        a=median_certified_robustness(a),
        b=median_certified_robustness(b),
        difference=None,
        interval=None,
        higher_a=signs.wins,
        higher_b=signs.losses,
        p_value=signs.p_value,
        adjusted=signs.p_value,
    )


def _means(step: str, figure: str, a: Sequence[float], b: Sequence[float]) -> Difference:
    low, high, p_value = mean_difference(a, b)
    signs = sign_test(a, b)
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    return Difference(
        step,
        None,
        figure,
        texts=len(a),
        a=mean_a,
        b=mean_b,
        difference=mean_a - mean_b,
        interval=(low, high),
        higher_a=signs.wins,
        higher_b=signs.losses,
        p_value=p_value,
        adjusted=p_value,
    )

"""What a set of certificates is worth: accuracy, CR@d, MCB and MCR, as the paper defines them.

A text whose label is wrong, or that is not certified even unchanged, counts as minus infinity
(``None`` here, the paper's N/A).  This module reads radii only; it knows nothing of models.

A classifier that always names one class is right as often as that class occurs, and is certified
at any number of words wherever it is right.  `ClassCounts` tells it from one that has learned, and
every summary shows its figures in one form: the share of the largest class and balanced accuracy
beside the accuracy, and below it the recall and certified recall of each class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

_MOST_RADII = 10  # of a class, in JSON
_SHOWN_RADII = 5
_SHOWN_CLASSES, _WORST = 6, 3
_TITLES = {"certified_recall": "CR", "clean_accuracy": "Cln", "robust_accuracy": "Boa"}


@dataclass
class ClassCounts:
    """How many texts each true class has, and how many of them are right in some sense.

    Only classes that occur are counted: a class without a text has no recall.
    """

    texts: Counter[int] = field(default_factory=Counter)
    right: Counter[int] = field(default_factory=Counter)

    def add(self, expected: int, *, right: bool, texts: int = 1) -> None:
        """Count a text of the class ``expected``; ``texts``: how many such texts there are."""
        self.texts[expected] += texts
        self.right[expected] += texts * right

    @property
    def majority(self) -> Fraction:
        """The share of the largest class: the accuracy of naming that class for every text."""
        return _share(max(self.texts.values(), default=0), self.texts.total())

    def recall(self, expected: int) -> Fraction:
        """The share of right texts among those of a class."""
        return _share(self.right[expected], self.texts[expected])

    @property
    def balanced(self) -> Fraction:
        """The mean recall of the classes: each counts the same, however many texts it has.

        Whoever names one class for every text gets 1 / the number of classes.
        """
        recalls = [self.recall(one) for one in self.texts]
        return sum(recalls, Fraction(0)) / len(recalls) if recalls else Fraction(0)


@dataclass
class CertifiedSummary:
    """Counts over labelled texts, added one by one; memory does not grow with their number."""

    texts: int = 0
    correct: int = 0
    classes: ClassCounts = field(default_factory=ClassCounts)
    """Right labels by class: of all texts, or of none where classes are not known."""
    _certified: Counter[tuple[int | None, int, int]] = field(default_factory=Counter)

    def add(
        self,
        *,
        correct: bool,
        radius: int | None,
        words: int,
        expected: int | None = None,
        texts: int = 1,
    ) -> None:
        """Count a text: is the label right, and how many of how many words are certified?

        ``expected``: the number of its true class, where that is known.  ``texts``: how many such
        texts there are.
        """
        self.texts += texts
        self.correct += texts * correct
        if expected is not None:
            self.classes.add(expected, right=correct, texts=texts)
        if correct and radius is not None:
            self._certified[expected, radius, words] += texts

    @property
    def accuracy(self) -> Fraction:
        """Share of texts with the right label, certified or not."""
        return _share(self.correct, self.texts)

    def certified_accuracy(self, changed: int) -> Fraction:
        """CR@d: share of *all* texts that are right and certified at ``changed`` words."""
        reached = sum(n for (_, radius, _), n in self._certified.items() if radius >= changed)
        return _share(reached, self.texts)

    def certified_classes(self, changed: int) -> ClassCounts:
        """By class, what is right and certified at ``changed`` words."""
        counts = ClassCounts(texts=self.classes.texts)
        for (expected, radius, _), n in self._certified.items():
            if expected is not None and radius >= changed:
                counts.right[expected] += n
        return counts

    def beats_majority(self, *, balanced: bool = False) -> bool:
        """Whether labels are right more often than those of naming the largest class always.

        ``balanced`` compares balanced accuracies.  True where there are not two classes.
        """
        if len(self.classes.texts) < 2:
            return True
        if balanced:
            return self.classes.balanced > Fraction(1, len(self.classes.texts))
        return self.accuracy > self.classes.majority

    @property
    def median_radius(self) -> int | None:
        """MCB: the lower median of the radii; None is the paper's N/A."""
        counts: Counter[Fraction] = Counter()
        for (_, radius, _), n in self._certified.items():
            counts[Fraction(radius)] += n
        median = _lower_median(counts, self.texts)
        return None if median is None else int(median)

    @property
    def median_rate(self) -> Fraction | None:
        """MCR: the lower median of radius / words; None is the paper's N/A."""
        counts: Counter[Fraction] = Counter()
        for (_, radius, words), n in self._certified.items():
            counts[Fraction(radius, words)] += n
        return _lower_median(counts, self.texts)

    @property
    def largest_radius(self) -> int:
        """The largest radius among right labels; 0 where there is none."""
        return max((radius for _, radius, _ in self._certified), default=0)


def median_certified_robustness(radii: Iterable[int | None]) -> int | None:
    """MCB of a list in which None stands for N/A: of N/A, N/A, 1, 2, 3 it is 1."""
    summary = CertifiedSummary()
    for radius in radii:
        summary.add(correct=radius is not None, radius=radius, words=1)
    return summary.median_radius


def _lower_median(counts: Counter[Fraction], total: int) -> Fraction | None:
    """The lower median of ``total`` values, of which those not counted are minus infinity."""
    if not total:
        return None
    place = (total - 1) // 2 - (total - sum(counts.values()))
    if place < 0:
        return None
    for value in sorted(counts):
        place -= counts[value]
        if place < 0:
            return value
    raise AssertionError("more values counted than texts")


def _share(part: int, total: int) -> Fraction:
    return Fraction(part, total) if total else Fraction(0)


def certified_values(
    summary: CertifiedSummary, names: Sequence[str] | None, *, certified: bool = True
) -> dict[str, Any]:
    """``majority``, ``balanced_accuracy`` and ``classes`` of a summary.

    A class has its ``recall`` and, entry ``d`` being that at ``d`` changed words, its
    ``certified_recall``.  Nothing where the classes of the texts are not known.
    """
    counts = summary.classes
    if not counts.texts:
        return {}
    columns: dict[str, ClassCounts | list[ClassCounts]] = {"recall": counts}
    if certified:
        most = min(max(summary.largest_radius, 1), _MOST_RADII)
        columns["certified_recall"] = [summary.certified_classes(d) for d in range(most + 1)]
    return {
        "majority": float(counts.majority),
        "balanced_accuracy": float(counts.balanced),
        "classes": class_values(columns, names),
    }


def class_values(
    columns: Mapping[str, ClassCounts | list[ClassCounts]], names: Sequence[str] | None
) -> list[dict[str, Any]]:
    """For each class its name, its number of texts, and its recall in each of the counts."""
    [first, *_] = columns.values()
    counts = first[0] if isinstance(first, list) else first
    return [
        {
            "name": class_name(one, names),
            "texts": counts.texts[one],
            **{
                name: [float(each.recall(one)) for each in column]
                if isinstance(column, list)
                else float(column.recall(one))
                for name, column in columns.items()
            },
        }
        for one in sorted(counts.texts)
    ]


def class_name(number: int, names: Sequence[str] | None) -> str:
    """The name of a class; its number where it has none."""
    return names[number] if names is not None and number < len(names) else str(number)


def headline(values: Mapping[str, Any]) -> str:
    """What stands beside an accuracy: the baseline, and what is left with classes made equal."""
    return (
        f"(majority class alone {values['majority']:.3f})  "
        f"balanced accuracy {values['balanced_accuracy']:.3f}"
    )


def class_table(
    classes: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[list[str]], str | None]:
    """The classes as cells: a head, a row for each, and what was left out.

    Of many classes the worst are shown, by their first figure.
    """
    figure = next(key for key in classes[0] if key not in ("name", "texts"))
    shown, left_out = list(classes), None
    if len(classes) > _SHOWN_CLASSES:
        shown = sorted(classes, key=lambda one: one[figure])[:_WORST]
        left_out = f"the {_WORST} worst of {len(classes)} classes"
    head = ["class", "texts"]
    for key, value in classes[0].items():
        if isinstance(value, list):
            radii = range(1, min(len(value) - 1, _SHOWN_RADII) + 1)
            head += [f"{_TITLES.get(key, key)}@{changed}" for changed in radii]
        elif key not in ("name", "texts"):
            head.append(_TITLES.get(key, key))
    return head, [_cells(one) for one in shown], left_out


def _cells(one: Mapping[str, Any]) -> list[str]:
    cells = [str(one["name"]), f"{one['texts']:,}"]
    for key, value in one.items():
        if isinstance(value, list):
            cells += [f"{share:.3f}" for share in value[1 : _SHOWN_RADII + 1]]
        elif key not in ("name", "texts"):
            cells.append(f"{value:.3f}")
    return cells


def class_lines(classes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same as lines of text, in columns."""
    head, rows, left_out = class_table(classes)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        lines.append("  ".join(cells).rstrip())
    return [*lines, *([left_out] if left_out else [])]

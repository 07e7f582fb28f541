"""What a set of certificates is worth: accuracy, CR@d, MCB and MCR, as the paper defines them.

A text whose label is wrong, or that is not certified even unchanged, counts as minus infinity
(``None`` here, the paper's N/A).  This module reads radii only; it knows nothing of models.

A classifier that always names one class looks good where that class is large, and is certified
wherever it is right.  So every summary shows, beside the accuracy, the share of the largest class
and the balanced accuracy, and below it the recall and certified recall of each class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

_Value = TypeVar("_Value", int, Fraction)
_MOST_RADII = 10  # of a class, in JSON
_SHOWN_RADII = 5
_SHOWN_CLASSES, _WORST = 6, 3
_TITLES = {"certified_recall": "CR", "f1": "F1", "clean_accuracy": "Cln", "robust_accuracy": "Boa"}


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
        recalls = [self.recall(number) for number in self.texts]
        return sum(recalls, Fraction(0)) / len(recalls) if recalls else Fraction(0)


@dataclass
class CertifiedSummary:
    """Counts over labelled texts, added one by one; memory does not grow with their number.

    ``counts``: texts by true class (None: not known), right label or not, radius, and words.
    ``named``: texts by the class that they are said to be, where that is known.
    """

    counts: Counter[tuple[int | None, bool, int | None, int]] = field(default_factory=Counter)
    named: Counter[int] = field(default_factory=Counter)

    def add(
        self,
        *,
        correct: bool,
        radius: int | None,
        words: int,
        expected: int | None = None,
        named: int | None = None,
        texts: int = 1,
    ) -> None:
        """Count a text: is the label right, and how many of how many words are certified?

        ``expected``: the number of its true class, where that is known; ``named``: of the class
        that it was said to be.  ``texts``: how many such texts there are.
        """
        self.counts[expected, correct, radius, words] += texts
        if named is not None:
            self.named[named] += texts

    def radii(self, *, correct: bool = True) -> list[tuple[int | None, int, int, int]]:
        """Class, radius, words and number of the certified texts with a right or a wrong label."""
        return [
            (expected, radius, words, texts)
            for (expected, right, radius, words), texts in self.counts.items()
            if right == correct and radius is not None
        ]

    @property
    def texts(self) -> int:
        """How many were counted."""
        return self.counts.total()

    @property
    def correct(self) -> int:
        """Texts with the right label, certified or not."""
        return sum(texts for (_, right, _, _), texts in self.counts.items() if right)

    @property
    def classes(self) -> ClassCounts:
        """Right labels by class: of all texts, or of none where classes are not known."""
        return self.certified_classes(None)

    @property
    def accuracy(self) -> Fraction:
        """Share of texts with the right label, certified or not."""
        return _share(self.correct, self.texts)

    def certified_accuracy(self, changed: int) -> Fraction:
        """CR@d: share of *all* texts that are right and certified at ``changed`` words."""
        reached = sum(texts for _, radius, _, texts in self.radii() if radius >= changed)
        return _share(reached, self.texts)

    def curve(self) -> list[float]:
        """CR@0, CR@1 and so on, up to the largest radius."""
        return [float(self.certified_accuracy(words)) for words in range(self.largest_radius + 1)]

    def certified_classes(self, changed: int | None) -> ClassCounts:
        """By class, what is right, and certified at ``changed`` words unless that is None."""
        counts = ClassCounts()
        for (expected, right, radius, _), texts in self.counts.items():
            if expected is not None:
                reached = changed is None or (radius is not None and radius >= changed)
                counts.add(expected, right=right and reached, texts=texts)
        return counts

    def beats_majority(self, *, balanced: bool = False) -> bool:
        """Whether labels are right more often than those of naming the largest class always.

        ``balanced`` compares balanced accuracies.  True where there are not two classes.
        """
        classes = self.classes
        if len(classes.texts) < 2:
            return True
        if balanced:
            return classes.balanced > Fraction(1, len(classes.texts))
        return self.accuracy > classes.majority

    @property
    def median_radius(self) -> int | None:
        """MCB: the lower median of the radii; None is the paper's N/A."""
        return self._lower_median([(radius, texts) for _, radius, _, texts in self.radii()])

    @property
    def median_rate(self) -> Fraction | None:
        """MCR: the lower median of radius / words; None is the paper's N/A."""
        rates = [(Fraction(radius, words), texts) for _, radius, words, texts in self.radii()]
        return self._lower_median(rates)

    def _lower_median(self, values: Sequence[tuple[_Value, int]]) -> _Value | None:
        """Of values and how many texts have each; texts beside them count as minus infinity."""
        place = (self.texts - 1) // 2 - (self.texts - sum(texts for _, texts in values))
        for found, texts in sorted(values):
            if 0 <= place < texts:
                return found
            place -= texts
        return None

    @property
    def largest_radius(self) -> int:
        """The largest radius among right labels; 0 where there is none."""
        return max((radius for _, radius, _, _ in self.radii()), default=0)


def median_certified_robustness(radii: Iterable[int | None]) -> int | None:
    """MCB of a list in which None stands for N/A: of N/A, N/A, 1, 2, 3 it is 1."""
    summary = CertifiedSummary()
    for radius in radii:
        summary.add(correct=radius is not None, radius=radius, words=1)
    return summary.median_radius


def _share(part: int, total: int) -> Fraction:
    return Fraction(part, total) if total else Fraction(0)


def certified_values(
    summary: CertifiedSummary, names: Sequence[str] | None, *, certified: bool = True
) -> dict[str, Any]:
    """``majority``, ``balanced_accuracy`` and ``classes`` of a summary.

    A class has its ``recall``; its ``precision`` and ``f1`` where it is known what the texts were
    said to be; and, entry ``d`` being that at ``d`` changed words, its ``certified_recall``.
    Nothing where the classes of the texts are not known.
    """
    counts = summary.classes
    if not counts.texts:
        return {}
    classes = class_values({"recall": counts}, names)
    if summary.named.total() == summary.texts == counts.texts.total():
        for number, entry in zip(sorted(counts.texts), classes, strict=True):
            right, named, texts = (of[number] for of in (counts.right, summary.named, counts.texts))
            entry["precision"] = float(_share(right, named))
            entry["f1"] = float(_share(2 * right, named + texts))
    if certified:
        most = min(max(summary.largest_radius, 1), _MOST_RADII)
        by_radius = [summary.certified_classes(changed) for changed in range(most + 1)]
        for number, entry in zip(sorted(counts.texts), classes, strict=True):
            entry["certified_recall"] = [float(at.recall(number)) for at in by_radius]
    return {
        "majority": float(counts.majority),
        "balanced_accuracy": float(counts.balanced),
        "classes": classes,
    }


def class_values(
    columns: Mapping[str, ClassCounts], names: Sequence[str] | None
) -> list[dict[str, Any]]:
    """For each class its name, its number of texts, and its recall in each of the counts."""
    [first, *_] = columns.values()
    return [
        {
            "name": class_name(number, names),
            "texts": first.texts[number],
            **{title: float(counts.recall(number)) for title, counts in columns.items()},
        }
        for number in sorted(first.texts)
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
    head, *_ = rows = [_cells(entry) for entry in classes]
    left_out = None
    if len(classes) > _SHOWN_CLASSES:
        figure = next(key for key in classes[0] if key not in ("name", "texts"))
        worst = sorted(range(len(classes)), key=lambda place: classes[place][figure])
        rows = [rows[place] for place in worst[:_WORST]]
        left_out = f"the {_WORST} worst of {len(classes)} classes"
    return list(head), [list(row.values()) for row in rows], left_out


def _cells(entry: Mapping[str, Any]) -> dict[str, str]:
    """What is shown of a class, by the titles of columns."""
    cells = {"class": str(entry["name"]), "texts": f"{entry['texts']:,}"}
    for key, value in entry.items():
        title = _TITLES.get(key, key)
        if isinstance(value, list):
            shown = enumerate(value[1 : _SHOWN_RADII + 1], 1)
            cells |= {f"{title}@{changed}": f"{share:.3f}" for changed, share in shown}
        elif key not in ("name", "texts"):
            cells[title] = f"{value:.3f}"
    return cells


def words_beside(poisoned: Sequence[int], texts: int) -> int | None:
    """How many words may be changed beside so many poisoned texts.

    ``poisoned``: how many may be beside 0, 1, 2, ... changed words.
    None: not even the unchanged text keeps its label for sure.

    >>> [words_beside((7, 3, 1), texts) for texts in (0, 1, 2, 7, 8)]
    [2, 2, 1, 0, None]
    """
    proved = sum(most >= texts for most in poisoned)
    return proved - 1 if proved else None


def poisoned_table(
    poisoned: Mapping[str, Sequence[float]],
) -> tuple[list[str], list[list[str]]]:
    """Certified accuracies by poisoned training texts and changed words: a head, and rows."""
    most = min(max(map(len, poisoned.values()), default=1), _SHOWN_RADII + 1)
    head = ["poisoned texts", *(f"CR@{changed}" for changed in range(most))]
    rows = [
        [texts, *(f"{share:.3f}" for share in [*shares, *[0.0] * most][:most])]
        for texts, shares in poisoned.items()
    ]
    return head, rows


def class_lines(classes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same as lines of text, in columns."""
    head, rows, left_out = class_table(classes)
    return [*aligned(head, rows), *([left_out] if left_out else [])]


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells as lines of text, the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        lines.append("  ".join(cells).rstrip())
    return lines

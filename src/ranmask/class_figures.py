"""Figures by class, as plain JSON values and as lines of text: one form for every summary.

The share of the largest class and balanced accuracy stand beside every accuracy, and recall and
certified recall of the classes below: without them a classifier that always says the same looks
like a good one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranmask.metrics import CertifiedSummary, ClassCounts

_MOST_RADII = 10  # of a class, in JSON
_SHOWN_RADII = 5
_SHOWN_CLASSES, _WORST = 6, 3
_TITLES = {"certified_recall": "CR"}


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

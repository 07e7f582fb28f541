"""What several settings make of a positive class, as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ranmask.cli.terminal import print_table
from ranmask.evaluation.tuning import Measured

_FIGURES = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "auc": "AUC",
    "average_precision": "AP",
}


def print_positive(measured: Sequence[Measured], name: str, at: int) -> None:
    """A row for each setting: its own decision, its curve, and recall at rates of false positives.

    ``at``: changed words that certified recall is shown for.
    """
    rows = []
    for entry in measured:
        values = entry.positive or {}
        row = [_share(values.get(key)) for key in _FIGURES]
        for point in values.get("at_rates", ()):
            row += [_share(point["recall"]), _certified(point, at)]
        rows.append([entry.setting.name, *row])
    rates = [point["rate"] for point in (measured[0].positive or {}).get("at_rates", ())]
    columns = [title for rate in rates for title in (f"@{rate:.1%}", f"CR@{at}")]
    print(f"\nPositive class {name}:")
    print_table(["setting", *_FIGURES.values(), *columns], rows)
    if rates:
        print(
            f"AP: average precision.  @{rates[0]:.1%}: recall where the threshold is set so that "
            f"{rates[0]:.1%} of the other texts here are flagged;\nCR@{at} after it: the same, "
            f"proved whichever {at} words are changed."
        )


def _share(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.3f}"


def _certified(point: dict[str, Any], at: int) -> str:
    shares = point.get("certified_recall")
    if shares is None:
        return "N/A"
    return _share(shares[at] if at < len(shares) else 0.0)

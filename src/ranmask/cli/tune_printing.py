"""A sweep over settings as people read it: tables, what was picked, and commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ranmask.cli.terminal import print_table
from ranmask.evaluation.tuning import Measured
from ranmask.metrics import class_lines

_FIGURES = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "auc": "AUC",
    "average_precision": "AP",
}


def show(measured: Sequence[Measured], picked: Measured | None, found: Mapping[str, Any]) -> None:
    """Print what was measured, by class for the setting that was picked; ``found``: its figures."""
    at, entries = found["at"], found["measured"]
    certified = [f"CR@{changed}" for changed in range(1, at + 1)]
    print_table(
        ["setting", "accuracy", "balanced", "MCB", *certified, "s/text", "frontier"],
        [
            [
                setting.setting.name,
                *_shares(entry["accuracy"], entry["balanced_accuracy"]),
                _median(setting),
                *_shares(*entry["certified_accuracy"][1:]),
                f"{setting.seconds:.2g}",
                "*" if entry["frontier"] else "",
            ]
            for setting, entry in zip(measured, entries, strict=True)
        ],
    )
    print(
        f"MCB: median radius.  CR@d: right, and proved to stay so whichever d words are changed.\n"
        f"*: nothing here has more accuracy without less CR@{at}, or the other way round.\n"
        f"balanced: mean recall of the classes.  Naming the largest class for every text has "
        f"accuracy {entries[0]['majority']:.3f}."
    )
    if picked is None:
        return
    name, entry = picked.setting.name, entries[measured.index(picked)]
    print(f"\n{name}, by class:", *class_lines(entry["classes"]), sep="\n")
    if not picked.summary.beats_majority():
        print(
            "warning: it is no more accurate than naming the largest class for every text: "
            "its radii say nothing of what it has learned"
        )
    print(f"\nIf {name} answers only where the radius reaches a threshold:")
    print_table(
        ["threshold", "answered", "right of those", f"stays@{at}", f"never wrong@{at}"],
        [
            [
                str(answer["threshold"]),
                *_shares(answer["coverage"], answer["accuracy"]),
                *_shares(answer["certified_accuracy"][at], answer["never_wrong"][at]),
            ]
            for answer in entry["thresholds"]
        ],
    )
    # Outputs that move when they are computed again may cost an answer, though never a label.
    but = ", but for votes as near as the tolerance" if picked.tolerance else ""
    print(
        f"stays@{at}: of all texts, answered right whichever {at} words are changed{but}.\n"
        f"never wrong@{at}: answered right, or not at all."
    )


def print_positive(measured: Sequence[Measured], name: str, at: int) -> None:
    """A row for each setting: its own decision, its curve, and recall at rates of false positives.

    ``at``: changed words that certified recall is shown for.
    """
    rows = []
    for entry in measured:
        values = entry.positive or {}
        row = _shares(*map(values.get, _FIGURES))
        for point in values.get("at_rates", ()):
            row += _shares(point["recall"], _certified(point, at))
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


def advise(
    model: str, options: Mapping[str, Any], chosen: Sequence[Measured], found: Mapping[str, Any]
) -> None:
    """The settings that were chosen as commands: one that was picked, or those of the frontier."""
    at, rule = found["at"], found["rule"]
    if rule == "frontier":
        print("\nOn the frontier:")
    else:
        figure = f"mean of CR@0 to CR@{at}, {float(chosen[0].score(at)):.3f}"
        if rule == "paper":
            figure = f"median radius, {_median(chosen[0])}"
        print(f"\nPicked by --rule {rule} (largest {figure}):")
    more = [
        part
        for name, value in options.items()
        for part in (f"--{name}", ",".join(value) if isinstance(value, tuple) else str(value))
    ]
    for one in chosen:
        print(shlex.join(["ranmask", "certify", "--model", model, *one.setting.flags, *more]))


def _certified(point: Mapping[str, Any], at: int) -> float | None:
    shares = point.get("certified_recall")
    if shares is None:
        return None
    return shares[at] if at < len(shares) else 0.0


def _shares(*values: float | None) -> list[str]:
    return ["N/A" if value is None else f"{value:.3f}" for value in values]


def _median(found: Measured) -> str:
    return "N/A" if found.summary.median_radius is None else str(found.summary.median_radius)

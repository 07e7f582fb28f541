"""What a cascade is worth, as people read it on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ranmask.evaluation.cascade_report import CascadeReport
from ranmask.evaluation.roc import wilson_interval
from ranmask.metrics import class_lines, class_values


def print_report(console: Console, report: CascadeReport) -> None:
    """Accuracies with their intervals, the paths taken, the detector, what is proved."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("", style="bold")
    table.add_column("clean accuracy", justify="right")
    table.add_column("balanced", justify="right")
    table.add_column("under the transferred attack", justify="right")
    for name in ("plain", "smoothed", "cascade"):
        accuracy = getattr(report, name)
        table.add_row(
            name,
            _share(accuracy.clean, report.texts),
            f"{float(100 * report.clean_classes(name).balanced):.1f}%",
            _share(accuracy.robust, report.texts),
        )
    console.print(table)
    shown = report.clean_classes("cascade")
    by_class = {"clean": shown, "attacked": report.robust_classes("cascade")}
    lines = [
        f"majority class alone {float(100 * shown.majority):.1f}%; the cascade's recall by class:",
        *class_lines(class_values(by_class, report.class_names)),
        f"{report.texts} texts: {report.succeeded} attacked with success, {report.failed} without, "
        f"{report.skipped} wrong before (counted as wrong under the attack)",
        f"smoothed path, above {report.threshold:g}: of clean texts "
        f"{_share(report.clean_paths.smoothed, report.clean_paths.texts)}, of attacked texts "
        f"{_share(report.attacked_paths.smoothed, report.attacked_paths.texts)}",
    ]
    if report.roc is not None:
        lines.append(f"detector: AUC {float(report.roc.area):.3f}")
    if report.proved is not None:
        lines.append(
            f"certified variant: label right {_share(report.proved.right, report.texts)}; proved "
            f"harmless {_share(report.proved.harmless, report.succeeded)} of the successful attacks"
        )
    lines += [
        "the cascade as a whole carries no certificate; against an attacker who asks it: "
        "ranmask attack --model CASCADE",
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _share(part: int, whole: int) -> str:
    if not whole:
        return "none"
    low, high = (100 * end for end in wilson_interval(part, whole))
    return f"{100 * part / whole:.1f}% ({low:.1f} to {high:.1f})"

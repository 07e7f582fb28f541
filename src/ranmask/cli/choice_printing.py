"""The choice of a protected model's weights, as people see it: a table and a picture."""

from __future__ import annotations

import shlex
from pathlib import Path

from ranmask.cli.terminal import print_table
from ranmask.metrics import class_lines
from ranmask.paper.report.axes import fitted_axis, share_axis
from ranmask.paper.report.charts import Plot, Point, Series, standalone
from ranmask.results.files import write_file
from ranmask.smoothing import reader_store
from ranmask.training.choosing import Weighed
from ranmask.training.protect_card import SHOWN_WORDS, calls_line, curve_rows, learning_line
from ranmask.training.protection import Protection

PICTURE = "protect.svg"


def show_choice(protection: Protection, folder: str, *, saved: bool = True) -> None:
    """Print the curve, what was chosen, and what to do next."""
    best = protection.at()
    against = "labels" if protection.measure == "accuracy" else "labels of the model alone"
    print_table(*curve_rows(protection))
    print("", *class_lines(best.classes(protection.run["labels"])), "", sep="\n")
    lines = [
        f"On {sum(best.texts):,} texts that nothing was learned from, against the {against}.",
        "CR@d: right, and proved to stay so whichever d words are replaced.",
        f"*: weight {best.name} is chosen for {_listed(protection.words)}, giving up "
        f"{protection.given_up:.1f} points here (--give-up {protection.give_up:g}).",
        f"{calls_line(protection)}.",
        learning_line(protection)[:1].upper() + learning_line(protection)[1:] + ".",
    ]
    if not protection.reached:
        lines.insert(
            3,
            f"warning: no weight gives up only {protection.give_up:g} points; this one is nearest.",
        )
    if saved:
        lines.append(f"Picture: {Path(folder) / PICTURE}")
    else:
        lines.append("Nothing is saved: --save gives the model this weight.")
    reader = reader_store.again(Path(folder))
    named = [] if reader is None else ["--reader", reader]
    lines.append(
        shlex.join(["ranmask", "certify", "--model", folder, *named, "--input", "texts.txt"])
    )
    print("\n".join(lines))


def write_picture(path: Path, protection: Protection) -> None:
    """Draw certified shares over accuracy, a line for each number of changed words."""
    write_file(path, standalone(_chart(protection)))


def _chart(protection: Protection) -> Plot:
    best, balanced = protection.at(), protection.balanced
    model = float(protection.alone[1].accuracy(balanced))
    chosen = [_point(best, words, balanced) for words in SHOWN_WORDS]
    # The first series lies on top.
    series = [Series(f"chosen: weight {best.name}", chosen, 5, shape="points")]
    for look, words in enumerate(SHOWN_WORDS, 1):
        name = f"{words} word{'s' * (words > 1)}"
        series.append(Series(name, _frontier(protection, words), look))
    reached = [point.x for one in series for point in one.points]
    return Plot(
        "Proved, and what it costs",
        f"Share of {sum(best.texts):,} texts that is proved at 1, 2, 5 and 10 changed words, "
        f"against {protection.measure_name}; the model alone has {model:.3f}. Weight "
        f"{best.name} is chosen."
        + (" Lines are those of the whole text alone." if protection.levels > 1 else ""),
        fitted_axis(protection.measure_name, [*reached, model], within=(0.0, 1.0)),
        share_axis("proved"),
        series,
    )


def _frontier(protection: Protection, words: int) -> list[Point]:
    """The weights of whole texts that no other beats in both figures."""
    whole = [one for one in protection.figures if len(one.weights) == 1]
    ordered = [_point(one, words, protection.balanced) for one in whole]
    points: list[Point] = []
    for one in sorted(ordered, key=lambda point: (point.x, point.y), reverse=True):
        if not points or one.y > points[-1].y:
            points.append(one)
    return points[::-1]


def _point(one: Weighed, words: int, balanced: bool) -> Point:
    return Point(float(one.accuracy(balanced)), float(one.share(words, balanced)))


def _listed(words: tuple[int, ...]) -> str:
    return ", ".join(map(str, words)) + (" word" if words == (1,) else " words")

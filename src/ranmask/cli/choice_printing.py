"""The choice of a protected model's weight, as people see it: a table and a picture."""

from __future__ import annotations

import shlex
from pathlib import Path

from ranmask.paper.report.axes import fitted_axis, share_axis
from ranmask.paper.report.charts import Plot, Point, Series, standalone
from ranmask.results.files import write_file
from ranmask.training.protect_card import SHOWN_WORDS, curve_rows, learning_line
from ranmask.training.protection import Protection

PICTURE = "protect.svg"


def show_choice(protection: Protection, folder: str, *, saved: bool = True) -> None:
    """Print the curve, what was chosen, and what to do next."""
    from ranmask.cli.tune import print_table

    best, alone = protection.at(), protection.alone[1]
    against = "labels" if protection.measure == "accuracy" else "labels of the model alone"
    print_table(*curve_rows(protection))
    given = 100 * float(alone - best.accuracy)
    lines = [
        f"On {best.texts:,} texts that nothing was learned from, against the {against}.",
        "CR@d: right, and proved to stay so whichever d words are replaced.",
        f"*: weight {best.weight:g} is chosen for {_listed(protection.words)} words, giving up "
        f"{given:.1f} points here (--give-up {protection.give_up:g}).",
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
    lines.append(shlex.join(["ranmask", "certify", "--model", folder, "--input", "texts.txt"]))
    print("\n".join(lines))


def write_picture(path: Path, protection: Protection) -> None:
    """Draw certified shares over accuracy, a line for each number of changed words."""
    write_file(path, standalone(_chart(protection)))


def _chart(protection: Protection) -> Plot:
    best = protection.at()
    series = [
        Series(
            f"{words} word{'s' if words > 1 else ''}",
            [Point(float(one.accuracy), float(one.share(words))) for one in protection.figures],
            look,
        )
        for look, words in enumerate(SHOWN_WORDS, 1)
    ]
    chosen = [
        Point(
            float(best.accuracy), float(best.share(words)), label=f"{best.weight:g}" * (not place)
        )
        for place, words in enumerate(SHOWN_WORDS)
    ]
    series.append(
        Series(f"chosen: weight {best.weight:g}", chosen, len(series) + 1, shape="points")
    )
    reached = [float(one.accuracy) for one in protection.figures]
    return Plot(
        "Proved, and what it costs",
        f"Share of {best.texts:,} texts that is proved at 1, 2, 5 and 10 changed words, against "
        f"{protection.measure}; the model alone has {float(protection.alone[1]):.3f}. Weight "
        f"{best.weight:g} is chosen.",
        fitted_axis(protection.measure, [*reached, float(protection.alone[1])], within=(0.0, 1.0)),
        share_axis("proved"),
        series,
    )


def _listed(words: tuple[int, ...]) -> str:
    return ", ".join(map(str, words))

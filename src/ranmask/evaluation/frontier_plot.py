"""The picture of a sweep: accuracy against certified accuracy, one numbered marker a setting.

The same measurements give the same bytes of SVG (with the same matplotlib).  Text stays text, and
the background is white, so that the picture reads on light and dark pages alike.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import MissingDependencyError
from ranmask.evaluation.tuning import Measured, frontier
from ranmask.results.files import check_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK, _QUIET, _BEST = "#1a1a1a", "#7a7a7a", "#0b62a4"
_INCHES, _DPI = (8.5, 4.5), 72  # an SVG has 72 dots an inch, whatever is asked for
_AXES = (0.08, 0.11, 0.56, 0.81)  # left, bottom, width and height, as shares
_FONT_POINTS = 8
_AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0))
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "ranmask",  # names of clip paths are random otherwise
    "svg.fonttype": "none",
    "figure.dpi": _DPI,
    "font.family": "sans-serif",
    "font.size": _FONT_POINTS + 1,
    "text.color": _INK,
    "text.parse_math": False,  # a dollar in a file's name is a dollar
    "axes.edgecolor": _QUIET,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def check_plot(path: Path) -> None:
    """Raise, before any work is done, where a picture could not be drawn or written."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingDependencyError("matplotlib", "plots") from None
    check_file(path)


def plot_svg(
    measured: Sequence[Measured], *, at: int, picked: Measured | None, title: str
) -> bytes:
    """The settings and their frontier, drawn."""
    from matplotlib import rc_context, rcParamsDefault
    from matplotlib.figure import Figure

    # A user's own style must not change the picture.  To set the backend, even to its default,
    # loads a window toolkit.
    plain: dict[Any, Any] = {
        key: value for key, value in rcParamsDefault.items() if not key.startswith("backend")
    }
    with rc_context({**plain, **_STYLE}):
        figure = Figure(figsize=_INCHES, facecolor="white")
        axes = figure.add_axes(_AXES)
        axes.set_title(title, loc="left", fontsize=_FONT_POINTS + 2)
        _draw(axes, measured, at, picked)
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "ranmask"})
    return out.getvalue()


def _draw(axes: Axes, measured: Sequence[Measured], at: int, picked: Measured | None) -> None:
    points = [
        (float(entry.summary.accuracy), float(entry.summary.certified_accuracy(at)))
        for entry in measured
    ]
    best = frontier(measured, at)
    on_frontier = [entry in best for entry in measured]
    line = sorted({point for point, is_best in zip(points, on_frontier, strict=True) if is_best})
    axes.plot(*zip(*line, strict=True), color=_BEST, linewidth=1.2, zorder=1)
    for point, is_best in zip(points, on_frontier, strict=True):
        axes.plot(*point, "o", color=_BEST if is_best else _QUIET, markersize=5, zorder=2)
    if picked is not None:
        ring = axes.plot(*points[measured.index(picked)], "o", color=_BEST, markersize=12)
        ring[0].set_markerfacecolor("none")
    axes.margins(0.1)
    axes.set_xlabel("accuracy")
    axes.set_ylabel(f"certified accuracy at {at} changed word{'s' if at > 1 else ''} (CR@{at})")
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    _number(axes, points)
    step = min(0.05, 1 / (len(measured) + 2))
    lines: list[tuple[float, str, bool]] = []
    for number, (entry, is_best) in enumerate(zip(measured, on_frontier, strict=True), 1):
        marks = " *" * is_best + " (picked)" * (entry is picked)
        lines.append((number, f"{number}  {entry.setting.name}{marks}", is_best))
    lines.append((len(measured) + 1.4, "* on the frontier", True))
    for place, text, is_best in lines:
        axes.text(
            1.03,
            1 - place * step,
            text,
            transform=axes.transAxes,
            fontsize=min(_FONT_POINTS, step * 160),
            color=_BEST if is_best else _INK,
        )


def _number(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    """Put each setting's number beside its marker, where it covers nothing if there is room."""
    from matplotlib.transforms import Bbox

    numbers: dict[tuple[float, float], list[str]] = {}
    for number, point in enumerate(points, 1):
        numbers.setdefault(point, []).append(str(number))
    axes.get_xlim(), axes.get_ylim()  # settles the scale, which places depend on
    places = {point: axes.transData.transform(point) * 72 / _DPI for point in numbers}
    taken = [Bbox.from_bounds(x - 3, y - 3, 6, 6) for x, y in places.values()]
    for point, (x, y) in places.items():
        label = ", ".join(numbers[point])
        width, height = 0.6 * _FONT_POINTS * len(label), 1.1 * _FONT_POINTS
        for across, up in _AROUND:
            right, higher = across * (9 + width / 2), up * 12
            box = Bbox.from_bounds(x + right - width / 2, y + higher - height / 2, width, height)
            if not box.count_overlaps(taken):
                break
        taken.append(box)
        axes.annotate(
            label,
            point,
            xytext=(right, higher),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=_FONT_POINTS,
        )

"""Charts as SVG, written by hand: the same data give the same bytes.

A chart works inside a page, which has the style sheet already, and as a file of its own, which
brings it along with a key; both follow the reader's light or dark theme.  Colour is never the
only sign: each series has its own dashes and markers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, TypeAlias

from ranmask.paper.report.axes import Axis
from ranmask.paper.report.svg import LOOKS, element, escaped, line, marker, number, points, text

_WIDTH, _HEIGHT = 360.0, 270.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 50.0, 19.0, 34.0, 44.0
_ROW = 24.0  # height of one row of a dot chart
_CHARACTER = 6.8  # average width of a character at the key's size


@dataclass(frozen=True)
class Point:
    """A measured point; its interval; what is written beside it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass(frozen=True)
class Series:
    """Points that belong together.

    ``look``: from 1, its colour, dashes and marker.  ``shape``: joined by a line, by steps whose
    treads lie around whole numbers, or not at all.  ``band``: intervals as a shaded band instead
    of bars.
    """

    name: str
    points: Sequence[Point]
    look: int
    shape: Literal["line", "step", "points"] = "line"
    band: bool = False


@dataclass(frozen=True)
class Plot:
    """Series over two axes.  ``description``: what someone who cannot see it should know.

    ``rules``: level lines across the chart, each with a few words on it.
    """

    title: str
    description: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    rules: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True)
class Dot:
    """A row of a dot chart: a value with its interval, and another value beside it."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    other: float | None = None


@dataclass(frozen=True)
class Dots:
    """Named rows with one or two values each: ``names`` says what the two are."""

    title: str
    description: str
    x: Axis
    rows: Sequence[Dot]
    names: tuple[str, str]


Chart: TypeAlias = Plot | Dots


def lines(named: Mapping[str, Sequence[Point]]) -> list[Series]:
    """A line for each list of points, each with its own look."""
    numbered = enumerate(named.items(), 1)
    return [Series(name, points, look) for look, (name, points) in numbered]


def inline(chart: Chart) -> str:
    """The chart for a page that has the style sheet and shows the key itself."""
    return _svg(chart, *_body(chart))


def standalone(chart: Chart) -> str:
    """The chart as a file: with style sheet, background and key."""
    body, height = _body(chart)
    keyed, below = _key(key(chart), height)
    style = element("style", style_sheet())
    sheet = element("rect", class_="sheet", width=_WIDTH, height=height + below)
    drawn = _svg(chart, style + sheet + body + keyed, height + below)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def key(chart: Chart) -> tuple[tuple[str, str], ...]:
    """What the lines are: pairs of a little drawing and a name.  Empty where there is one line."""
    if isinstance(chart, Dots):
        shown = [
            ("look1", marker(17, 7, 1), chart.names[0]),
            ("other", marker(17, 7, 4), chart.names[1]),
        ]
    else:
        shown = []
        for series in chart.series if len(chart.series) > 1 else ():
            through = "" if series.shape == "points" else line(1, 7, 33, 7, "line")
            shown.append((_look(series), through + marker(17, 7, series.look), series.name))
    return tuple(
        (
            element(
                "svg",
                element("g", drawn, class_=look),
                class_="swatch",
                viewBox="0 0 34 14",
                width=34,
                height=14,
                aria_hidden="true",
            ),
            name,
        )
        for look, drawn, name in shown
    )


@cache
def style_sheet() -> str:
    """The style of every chart."""
    sheet = resources.files("ranmask.paper.report") / "templates" / "chart.css"
    return sheet.read_text(encoding="utf-8")


def _svg(chart: Chart, body: str, height: float) -> str:
    return element(
        "svg",
        element("title", escaped(chart.title)) + body,
        class_="chart",
        viewBox=f"0 0 {number(_WIDTH)} {number(height)}",
        role="img",
        aria_label=f"{chart.title}. {chart.description}",
    )


def _body(chart: Chart) -> tuple[str, float]:
    return _dots(chart) if isinstance(chart, Dots) else (_plot(chart), _HEIGHT)


def _plot(chart: Plot) -> str:
    bottom, left, right = _HEIGHT - _BOTTOM, _left(chart), _WIDTH - _RIGHT
    parts = [text(chart.title, left, 16, "title")]
    for value, label in chart.y.ticks:
        y = _y(chart, value)
        parts += [line(left, y, right, y, "grid"), text(label, left - 7, y + 4, "tick end")]
    for value, label in chart.x.ticks:
        x = _x(chart, value)
        parts += [
            line(x, bottom, x, bottom + 4, "axis"),
            text(label, x, bottom + 17, "tick middle"),
        ]
    parts.append(line(left, bottom, right, bottom, "axis"))
    parts.append(text(chart.x.title, (left + right) / 2, _HEIGHT - 8, "name middle"))
    parts.append(text(chart.y.title, 13, (_TOP + bottom) / 2, "name middle", turned=True))
    for level, label in chart.rules:
        y = _y(chart, level)
        parts += [line(left, y, right, y, "rule"), text(label, right, y - 4, "tick end")]
    parts += [_band(chart, series) for series in chart.series]
    # The first series is the one that matters: nothing is drawn over it.
    parts += [_series(chart, series) for series in reversed(chart.series)]
    return "".join(parts)


def _left(chart: Plot) -> float:
    """Where the y axis stands: its title and its longest tick label have room beside it."""
    return max(_LEFT, 27 + _CHARACTER * max((len(label) for _, label in chart.y.ticks), default=0))


def _x(chart: Plot, value: float) -> float:
    left = _left(chart)
    return left + chart.x.place(value) * (_WIDTH - left - _RIGHT)


def _y(chart: Plot, value: float) -> float:
    return _HEIGHT - _BOTTOM - chart.y.place(value) * (_HEIGHT - _TOP - _BOTTOM)


def _band(chart: Plot, series: Series) -> str:
    """Intervals, below every line."""
    known = [point for point in series.points if point.low is not None and point.high is not None]
    if not series.band or not known:
        return ""
    upper = _track(chart, series, [(point.x, point.high or 0.0) for point in known])
    lower = _track(chart, series, [(point.x, point.low or 0.0) for point in known])
    outline = points([*upper, *reversed(lower)])
    return element("polygon", class_=f"band {_look(series)}", points=outline)


def _series(chart: Plot, series: Series) -> str:
    parts: list[str] = []
    if series.shape != "points":
        track = _track(chart, series, [(point.x, point.y) for point in series.points])
        parts.append(element("polyline", class_="line", points=points(track)))
    for point in series.points:
        x, y = _x(chart, point.x), _y(chart, point.y)
        if not series.band and point.low is not None and point.high is not None:
            parts.append(line(x, _y(chart, point.low), x, _y(chart, point.high), "bar"))
        parts += [marker(x, y, series.look), _label(point, x, y) if point.label else ""]
    return element("g", "".join(parts), class_=_look(series))


def _label(point: Point, x: float, y: float) -> str:
    """The label to the right of its point, or to the left where the picture ends."""
    if x + 7 + len(point.label) * _CHARACTER > _WIDTH:
        return text(point.label, x - 7, y - 6, "label end")
    return text(point.label, x + 7, y - 6, "label")


def _track(
    chart: Plot, series: Series, corners: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Corners of the line through some points, in the picture's units."""
    if series.shape == "step":
        low, high = chart.x.low, chart.x.high
        corners = [(min(high, max(low, x + half)), y) for x, y in corners for half in (-0.5, 0.5)]
    return [(_x(chart, x), _y(chart, y)) for x, y in corners]


def _dots(chart: Dots) -> tuple[str, float]:
    longest = max((len(dot.label) for dot in chart.rows), default=0)
    left = min(215.0, longest * _CHARACTER + 12)
    right, top = _WIDTH - _RIGHT, 30.0
    bottom = top + _ROW * len(chart.rows)
    fitting = int((left - 8) / _CHARACTER) + 1

    def place(value: float) -> float:
        return left + chart.x.place(value) * (right - left)

    parts = [text(chart.title, 0, 16, "title")]
    for value, label in chart.x.ticks:
        x = place(value)
        parts += [line(x, top, x, bottom, "grid"), text(label, x, bottom + 15, "tick middle")]
    parts.append(text(chart.x.title, (left + right) / 2, bottom + 33, "name middle"))
    for index, dot in enumerate(chart.rows):
        y = top + _ROW * (index + 0.5)
        label = dot.label if len(dot.label) <= fitting else dot.label[: fitting - 1] + "…"
        parts.append(text(label, left - 8, y + 4, "tick end"))
        if dot.other is not None:
            parts.append(element("g", marker(place(dot.other), y, 4), class_="other"))
        if dot.value is None:
            free = left + 8 if dot.other is not None and chart.x.place(dot.other) > 0.5 else None
            parts.append(text("not run", free or right, y + 4, "tick" if free else "tick end"))
            continue
        drawn = marker(place(dot.value), y, 1)
        if dot.low is not None and dot.high is not None:
            drawn = line(place(dot.low), y, place(dot.high), y, "bar") + drawn
        parts.append(element("g", drawn, class_="look1"))
    return "".join(parts), bottom + 42


def _key(entries: Sequence[tuple[str, str]], top: float) -> tuple[str, float]:
    """The key below the chart, in as many lines as it takes; and how high it is."""
    parts, x, y = [], 8.0, top + 8
    for swatch, name in entries:
        width = 40 + len(name) * _CHARACTER + 14
        if x > 8 and x + width > _WIDTH:
            x, y = 8.0, y + 20
        placed = swatch.replace("<svg ", f'<svg x="{number(x)}" y="{number(y - 7)}" ', 1)
        parts += [placed, text(name, x + 40, y + 4, "tick")]
        x += width
    return "".join(parts), (y + 14 - top) if entries else 0.0


def _look(series: Series) -> str:
    return f"look{(series.look - 1) % LOOKS + 1}"

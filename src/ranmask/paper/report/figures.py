"""Which chart shows what: results in, charts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ranmask.evaluation.intervals import proportion_interval
from ranmask.paper.report.charts import Dot, Dots, Plot, Point, Rule, Series
from ranmask.paper.report.condensed import Certified, Reading
from ranmask.paper.report.counting import (
    Attacks,
    certificate_name,
    certified_at,
    length_bins,
    masked,
    rate_name,
    summary,
)
from ranmask.paper.report.scales import (
    Axis,
    fitted_axis,
    log_axis,
    percent_axis,
    share_axis,
    words_axis,
)
from ranmask.paper.report.symbols import BETA, DASH
from ranmask.paper.report.tables import interval, share

_LOOKS = {"exact": 1, "ablation": 2, "paper": 3, "paper-as-printed": 4}
_MOST_WORDS = 12  # changed words that a curve shows


def certified_curves(rate: float | None, result: Certified) -> Plot:
    """Certified accuracy against changed words, for every certificate of the same texts."""
    furthest = max(summary(result, one).largest_radius for one in result.readings)
    most = min(_MOST_WORDS, furthest + 1)
    series = tuple(
        _curve(one, len(result.rows), most, band=one is result.readings[0])
        for one in result.readings
    )
    exact = result.readings[0]
    reached = share(Fraction(certified_at(exact, 1), max(1, len(result.rows))))
    return Plot(
        title=masked(rate),
        description=(
            f"Share of texts certified at 0 to {most} changed words; "
            f"by the {certificate_name(exact.certificate)} certificate {reached} at 1 word."
        ),
        x=words_axis("changed words", most),
        y=share_axis("right and certified"),
        series=series,
    )


def frontier(results: Mapping[float | None, Certified]) -> Plot:
    """Accuracy against the share certified at one word, one marker a masking rate."""
    points = []
    for rate, result in results.items():
        exact, texts = result.readings[0], len(result.rows)
        right, proved = sum(exact.correct), certified_at(exact, 1)
        left, farther = proportion_interval(right, texts)
        low, high = proportion_interval(proved, texts)
        points.append(
            Point(right / texts, proved / texts, low, high, left, farther, rate_name(rate))
        )
    ends = [value for point in points for value in (point.left, point.right) if value is not None]
    return Plot(
        title="What a masking rate buys",
        description="Accuracy to the right, share certified at one changed word upwards.",
        x=fitted_axis("accuracy", ends, within=(0, 1)),
        y=share_axis("certified at 1 word (CR@1)"),
        series=(Series("exact", tuple(points), 1),),
    )


def by_length(rate: float | None, result: Certified) -> Plot:
    """Share right, and share certified at one word, for shorter and longer texts."""
    exact = result.readings[0]
    right, proved, ticks = [], [], []
    for place, (least, most) in enumerate(length_bins(result.words)):
        inside = [index for index, words in enumerate(result.words) if least <= words <= most]
        correct = [exact.correct[index] for index in inside]
        radii = [exact.radius[index] for index in inside]
        part = Reading(exact.certificate, exact.guarantee, tuple(correct), tuple(radii))
        right.append(_point(place - 0.06, sum(correct), len(inside)))
        proved.append(_point(place + 0.06, certified_at(part, 1), len(inside)))
        ticks.append((float(place), _range(least, most)))
    return Plot(
        title=f"By length, {masked(rate)}",
        description="Share right, and share certified at one word, in quarters by length.",
        x=Axis("words of the text", -0.5, max(len(ticks), 1) - 0.5, tuple(ticks)),
        y=share_axis("share of texts"),
        series=(
            Series("right", tuple(right), 6),
            Series("certified at 1 word", tuple(proved), 1),
        ),
    )


def method_dots(title: str, rows: Sequence[tuple[str, Attacks | None, float | None]]) -> Dots:
    """Robust accuracy of each method: ours with its interval, and the paper's."""
    dots = []
    for method, counts, printed in rows:
        if counts is None or not counts.texts:
            dots.append(Dot(method, None, other=printed))
            continue
        low, high = interval(counts.held, counts.texts, counts.runs)
        ours = 100 * counts.held / counts.texts
        dots.append(Dot(method, ours, 100 * low, 100 * high, printed))
    return Dots(
        title=title,
        description="Robust accuracy of each method, in percent; the table has the figures.",
        x=percent_axis("robust accuracy (Boa), %"),
        rows=tuple(dots),
        names=("this run, 95 % interval", "paper"),
    )


def divergences(title: str, lines: Mapping[str, Sequence[tuple[int, float]]], bound: float) -> Plot:
    """Jensen-Shannon divergence against changed words, one line a masking rate."""
    most = max((changed for line in lines.values() for changed, _ in line), default=1)
    values = [value for line in lines.values() for _, value in line]
    return Plot(
        title=title,
        description=f"All divergences lie between {min(values):.1e} and {max(values):.1e}.",
        x=words_axis("changed words", most),
        y=log_axis(f"Jensen{DASH}Shannon, nats", [*values, bound]),
        series=_lines(lines),
        rules=(Rule(bound, "the paper's bound"),),
    )


def hidden_gaps(title: str, lines: Mapping[str, Sequence[tuple[int, float]]]) -> Plot:
    """What an attacker gains by choosing positions: beta less p_c, averaged over the texts."""
    most = max((changed for line in lines.values() for changed, _ in line), default=1)
    values = [value for line in lines.values() for _, value in line]
    return Plot(
        title=title,
        description=f"Mean gap, at most {max(values):.3f}.",
        x=words_axis("changed words", most),
        y=fitted_axis(f"chosen {BETA} less p_c", [0, *values], within=(-1, 1)),
        series=_lines(lines),
    )


def rates_plot(title: str, lines: Mapping[str, Sequence[tuple[float, Attacks]]]) -> Plot:
    """Robust accuracy against the masking rate, one line an attack."""
    series = []
    for look, (name, line) in enumerate(lines.items(), 1):
        points = []
        for rate, counts in line:
            low, high = interval(counts.held, counts.texts, counts.runs)
            height = 100 * counts.held / counts.texts
            points.append(Point(100 * rate, height, 100 * low, 100 * high))
        series.append(Series(name, tuple(points), look))
    return Plot(
        title=title,
        description="Robust accuracy in percent; the table has the figures.",
        x=percent_axis("masking rate, %"),
        y=percent_axis("robust accuracy (Boa), %"),
        series=tuple(series),
    )


def _lines(lines: Mapping[str, Sequence[tuple[int, float]]]) -> tuple[Series, ...]:
    return tuple(
        Series(name, tuple(Point(float(changed), value) for changed, value in line), look)
        for look, (name, line) in enumerate(lines.items(), 1)
    )


def _curve(of: Reading, texts: int, most: int, band: bool) -> Series:
    points = tuple(_point(changed, certified_at(of, changed), texts) for changed in range(most + 1))
    if not band:
        # One band is enough: they are the same texts.
        points = tuple(Point(point.x, point.y) for point in points)
    name = certificate_name(of.certificate) + ("" if of.guarantee else " (no guarantee)")
    return Series(name, points, _LOOKS.get(of.certificate, 5), shape="step", band=band)


def _point(x: float, part: int, total: int) -> Point:
    if not total:
        return Point(x, 0.0)
    return Point(x, part / total, *proportion_interval(part, total))


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least}{DASH}{most}"

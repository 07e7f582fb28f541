"""Which chart shows what: results in, charts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from ranmask.evaluation.intervals import proportion_interval
from ranmask.paper.report.axes import (
    Axis,
    fitted_axis,
    log_axis,
    percent_axis,
    share_axis,
    words_axis,
)
from ranmask.paper.report.charts import Dot, Dots, Plot, Point, Rule, Series
from ranmask.paper.report.counting import (
    Attacks,
    certificate_name,
    certified_at,
    length_bins,
    masked,
    rate_name,
    summary,
)
from ranmask.paper.report.tables import interval, share
from ranmask.paper.run_data import Certified, Reading

Lines: TypeAlias = Mapping[str, Sequence[tuple[int, float]]]
"""By name: numbers of changed words, each with a value."""

_LOOKS = {"exact": 1, "ablation": 2, "paper": 3, "paper-as-printed": 4}
_MOST_WORDS = 12  # changed words that a curve shows


def certified_curves(rate: float | None, result: Certified) -> Plot:
    """Certified accuracy against changed words, for every certificate of the same texts."""
    furthest = max(summary(result, of).largest_radius for of in result.readings)
    most = min(_MOST_WORDS, furthest + 1)
    exact, texts = result.readings[0], len(result.rows)
    series = []
    for of in result.readings:
        reached = [certified_at(of, changed) for changed in range(most + 1)]
        band = of is exact  # one band is enough: they are the same texts
        points = [_point(changed, part, texts, bars=band) for changed, part in enumerate(reached)]
        name = certificate_name(of.certificate) + ("" if of.guarantee else " (no guarantee)")
        series.append(Series(name, points, _LOOKS.get(of.certificate, 5), "step", band))
    return Plot(
        title=masked(rate),
        description=(
            f"Share of texts certified at 0 to {most} changed words; by the "
            f"{certificate_name(exact.certificate)} certificate "
            f"{share(Fraction(certified_at(exact, 1), max(1, texts)))} at 1 word."
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
        ends = *proportion_interval(proved, texts), *proportion_interval(right, texts)
        points.append(Point(right / texts, proved / texts, *ends, rate_name(rate)))
    sides = [value for point in points for value in (point.left, point.right) if value is not None]
    return Plot(
        title="What a masking rate buys",
        description="Accuracy to the right, share certified at one changed word upwards.",
        x=fitted_axis("accuracy", sides, within=(0, 1)),
        y=share_axis("certified at 1 word (CR@1)"),
        series=[Series("exact", points, 1)],
    )


def by_length(rate: float | None, result: Certified) -> Plot:
    """Share right, and share certified at one word, for shorter and longer texts."""
    exact = result.readings[0]
    right, proved, ticks = [], [], []
    for place, (least, most) in enumerate(length_bins(result.words)):
        inside = [index for index, words in enumerate(result.words) if least <= words <= most]
        correct = tuple(exact.correct[index] for index in inside)
        radii = tuple(exact.radius[index] for index in inside)
        part = Reading(exact.certificate, exact.guarantee, correct, radii)
        right.append(_point(place - 0.06, sum(correct), len(inside)))
        proved.append(_point(place + 0.06, certified_at(part, 1), len(inside)))
        ticks.append((float(place), str(least) if least == most else f"{least}–{most}"))
    return Plot(
        title=f"By length, {masked(rate)}",
        description="Share right, and share certified at one word, in quarters by length.",
        x=Axis("words of the text", -0.5, max(len(ticks), 1) - 0.5, tuple(ticks)),
        y=share_axis("share of texts"),
        series=[Series("right", right, 6), Series("certified at 1 word", proved, 1)],
    )


def method_dots(title: str, rows: Sequence[tuple[str, Attacks | None, float | None]]) -> Dots:
    """Robust accuracy of each method: ours with its interval, and the paper's."""
    dots = []
    for method, counts, printed in rows:
        ours: tuple[float | None, float | None, float | None] = (None, None, None)
        if counts is not None and counts.texts:
            ours = _robust(counts)
        dots.append(Dot(method, *ours, printed))
    return Dots(
        title=title,
        description="Robust accuracy of each method, in percent; the table has the figures.",
        x=percent_axis("robust accuracy (Boa), %"),
        rows=dots,
        names=("this run, 95 % interval", "paper"),
    )


def divergences(title: str, lines: Lines, bound: float) -> Plot:
    """Jensen-Shannon divergence against changed words, one line a masking rate."""
    values = [value for line in lines.values() for _, value in line]
    return Plot(
        title=title,
        description=f"All divergences lie between {min(values):.1e} and {max(values):.1e}.",
        x=_changed_words(lines),
        y=log_axis("Jensen–Shannon, nats", [*values, bound]),
        series=_series(lines),
        rules=[Rule(bound, "the paper's bound")],
    )


def hidden_gaps(title: str, lines: Lines) -> Plot:
    """What an attacker gains by choosing positions: beta less p_c, averaged over the texts."""
    values = [value for line in lines.values() for _, value in line]
    return Plot(
        title=title,
        description=f"Mean gap, at most {max(values):.3f}.",
        x=_changed_words(lines),
        y=fitted_axis("chosen β less p_c", [0, *values], within=(-1, 1)),
        series=_series(lines),
    )


def rates_plot(title: str, lines: Mapping[str, Sequence[tuple[float, Attacks]]]) -> Plot:
    """Robust accuracy against the masking rate, one line an attack."""
    return Plot(
        title=title,
        description="Robust accuracy in percent; the table has the figures.",
        x=percent_axis("masking rate, %"),
        y=percent_axis("robust accuracy (Boa), %"),
        series=[
            Series(name, [Point(100 * rate, *_robust(counts)) for rate, counts in line], look)
            for look, (name, line) in enumerate(lines.items(), 1)
        ],
    )


def _changed_words(lines: Lines) -> Axis:
    most = max((changed for line in lines.values() for changed, _ in line), default=1)
    return words_axis("changed words", most)


def _series(lines: Lines) -> list[Series]:
    return [
        Series(name, [Point(float(changed), value) for changed, value in line], look)
        for look, (name, line) in enumerate(lines.items(), 1)
    ]


def _robust(counts: Attacks) -> tuple[float, float, float]:
    """Robust accuracy with its interval, in percent."""
    low, high = interval(counts.held, counts.texts, counts.runs)
    return 100 * counts.held / counts.texts, 100 * low, 100 * high


def _point(x: float, part: int, total: int, bars: bool = True) -> Point:
    if not total:
        return Point(x, 0.0)
    ends = proportion_interval(part, total) if bars else ()
    return Point(x, part / total, *ends)

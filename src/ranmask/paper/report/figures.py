"""Charts of certified runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ranmask.evaluation.intervals import proportion_interval
from ranmask.paper.report.axes import Axis, percent_axis, share_axis, words_axis
from ranmask.paper.report.charts import Plot, Point, Series
from ranmask.paper.report.names import certificate_name, rate_name
from ranmask.paper.report.tables import share
from ranmask.paper.run_data import Certified

_LOOKS = {"exact": 1, "ablation": 2, "paper": 3, "paper-as-printed": 4}
_MOST_WORDS = 12  # changed words that a curve shows
_MOST_DRAWN = 3  # of them, lines over the masking rate


def certified_curves(rate: float | None, result: Certified) -> Plot:
    """Certified accuracy against changed words, for every certificate of the same texts."""
    furthest = max(result.summary(of).largest_radius for of in result.readings)
    most = min(_MOST_WORDS, furthest + 1)
    exact, texts = result.readings[0], len(result.rows)
    series = []
    for of in result.readings:
        band = of is exact  # one band is enough: they are the same texts
        points = [
            _point(changed, of.certified_at(changed), texts, bars=band)
            for changed in range(most + 1)
        ]
        name, look = certificate_name(of, warned=True), _LOOKS.get(of.certificate, 5)
        series.append(Series(name, points, look, "step", band))
    return Plot(
        title=rate_name(rate, " masked"),
        description=(
            f"Share of texts certified at 0 to {most} changed words; by the "
            f"{certificate_name(exact)} certificate "
            f"{share(Fraction(exact.certified_at(1), texts))} at 1 word."
        ),
        x=words_axis("changed words", most),
        y=share_axis("right and certified"),
        series=series,
    )


def by_rate(results: Mapping[float, Certified]) -> Plot:
    """Share right, and shares certified, against the masking rate."""
    runs = [(100 * rate, result.readings[0], len(result.rows)) for rate, result in results.items()]
    right = [_point(rate, sum(of.correct), texts) for rate, of, texts in runs]
    proved = {
        changed: [_point(rate, of.certified_at(changed), texts) for rate, of, texts in runs]
        for changed in range(1, _MOST_DRAWN + 1)
    }
    series = [
        Series(f"certified at {changed} word{'s' if changed > 1 else ''}", points, changed)
        for changed, points in proved.items()
        if any(point.y for point in points)
    ]
    return Plot(
        title="What a masking rate buys",
        description="Share right, and shares certified, against the masking rate.",
        x=percent_axis("masking rate, %"),
        y=share_axis("share of texts"),
        series=[Series("right", right, 6), *series],
    )


def by_length(rate: float | None, result: Certified) -> Plot:
    """Share right, and share certified at one word, for shorter and longer texts."""
    exact = result.readings[0]
    texts = list(zip(result.words, exact.correct, exact.counted, strict=True))
    right, proved, ticks = [], [], []
    for place, (least, most) in enumerate(length_bins(result.words)):
        inside = [text for text in texts if least <= text[0] <= most]
        certified = sum(radius is not None and radius >= 1 for _, _, radius in inside)
        right.append(_point(place - 0.06, sum(text[1] for text in inside), len(inside)))
        proved.append(_point(place + 0.06, certified, len(inside)))
        ticks.append((float(place), str(least) if least == most else f"{least}–{most}"))
    return Plot(
        title=f"By length, {rate_name(rate, ' masked')}",
        description="Share right, and share certified at one word, in quarters by length.",
        x=Axis("words of the text", -0.5, max(len(ticks), 1) - 0.5, tuple(ticks)),
        y=share_axis("share of texts"),
        series=[Series("right", right, 6), Series("certified at 1 word", proved, 1)],
    )


def length_bins(words: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Up to four ranges of lengths with about as many texts in each: least and most words."""
    ordered = sorted(words)
    cuts = sorted({ordered[len(ordered) * part // 4] for part in (1, 2, 3)} - {ordered[0]})
    ends = [*(cut - 1 for cut in cuts), ordered[-1]]
    return tuple(zip([ordered[0], *cuts], ends, strict=True))


def _point(x: float, part: int, total: int, bars: bool = True) -> Point:
    return Point(x, part / total, *(proportion_interval(part, total) if bars else ()))

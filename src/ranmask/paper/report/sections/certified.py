"""The certified tables: the paper's, ours counted the same way, and what is proved."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.paper.published import CertifiedTable, published
from ranmask.paper.report.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Paragraph,
    Picture,
    Prose,
    Section,
    prose,
)
from ranmask.paper.report.condensed import Certified, Reproduction
from ranmask.paper.report.counting import (
    certificate_name,
    certified_at,
    finished,
    masked,
    reading,
    summary,
)
from ranmask.paper.report.figures import by_length, certified_curves, frontier
from ranmask.paper.report.sections.certified_tables import (
    ByRate,
    against_paper,
    also,
    levels,
    proved,
)

_HALF = 0.5


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All certified reproductions; None where there is none."""
    chosen = [one for one in reproductions if one.kind == "certified"]
    if not chosen:
        return None
    blocks: list[Block] = [*_glossary()]
    for one in chosen:
        blocks.append(Heading(one.title))
        blocks += _reproduction(one)
    return Section("Certified robustness", "certified", tuple(blocks))


def results_by_rate(reproduction: Reproduction) -> ByRate:
    """Finished runs with texts, by masking rate; None for a run without one."""
    found = {
        float(step.place["rate"]) if "rate" in step.place else None: result
        for step, result in finished(reproduction, Certified)
        if result.rows and result.readings
    }
    return dict(sorted(found.items(), key=lambda pair: -1 if pair[0] is None else pair[0]))


def best_rate(results: ByRate) -> float | None:
    """The rate at which most is certified: the largest median, then the most texts there."""

    def worth(rate: float | None) -> tuple[int, float, float]:
        result = results[rate]
        exact = result.readings[0]
        median = summary(result, exact).median_radius
        reached = -1 if median is None else median
        # A median of 0 words says nothing of one word: that decides between such rates.
        return reached, certified_at(exact, max(reached, 1)) / len(result.rows), rate or 0.0

    return max(results, key=worth)


def _glossary() -> list[Block]:
    return [
        Bullets(
            (
                prose("**Accuracy**: share of texts with the right label, nothing changed."),
                prose(
                    "**CR@d**: share of all texts that are right *and* certified when any d words "
                    "are changed."
                ),
                prose(
                    "**MCB**: the median radius; a wrong label counts as less than none. **MCR**: "
                    "the same as a share of the text's words. **N/A**: at least half of the texts "
                    "have a wrong label, or one that is not certified even with nothing changed."
                ),
                prose(
                    "**Exact** counts the votes of a fixed list of copies: a proof, without luck. "
                    "**Levine{dash}Feizi** draws copies at random; for each text it is right with "
                    "probability at least 1 {minus} {alpha}."
                ),
                prose(
                    "**No guarantee** marks the paper's ways of counting, as printed and with its "
                    "off-by-one removed. They are here to compare with its tables: an attacker may "
                    "need fewer words than they say."
                ),
            )
        )
    ]


def _reproduction(one: Reproduction) -> list[Block]:
    results = results_by_rate(one)
    table = published().certified.get(one.paper)
    if not results:
        return [Paragraph(prose("No certified run is finished, so there is nothing to show."))]
    blocks: list[Block] = []
    if table is not None:
        blocks += [against_paper(table, results), Paragraph(_agreement(table, results))]
    blocks.append(proved(results))
    blocks.append(_curves(one, results))
    blocks.append(_aside(one, results))
    blocks.append(Fold("CR@1 to CR@5 with intervals", (levels(results),)))
    return blocks


def _agreement(table: CertifiedTable, results: ByRate) -> Prose:
    """In one sentence: at how many rates is the median the paper's?"""
    same = compared = 0
    for rate, result in results.items():
        printed = None if rate is None else table.row(rate)
        ours = reading(result, "paper-as-printed")
        if printed is not None and ours is not None:
            compared += 1
            same += summary(result, ours).median_radius == printed.mcb
    said = prose("No masking rate of the paper's table was counted as the paper counts. ")
    if compared:
        said = prose(
            "Counted as the paper counts, the median is the paper's at **{same} of {compared}** "
            "masking rates that were run. ",
            same=same,
            compared=compared,
        )
    return said + _what_is_proved(results)


def _what_is_proved(results: ByRate) -> Prose:
    """The largest median of certificates that hold, and where there can be none."""
    medians = [
        summary(result, result.readings[0]).median_radius
        for result in results.values()
        if result.readings[0].guarantee
    ]
    if not medians:
        return prose("Nothing here is *proved*.")
    best = max((-1 if one is None else one) for one in medians)
    said = prose(
        "What is *proved* is in the next table: there the largest median is {best}.",
        best="N/A" if best < 0 else "1 word" if best == 1 else f"{best} words",
    )
    if any(rate is not None and rate <= _HALF for rate in results):
        said += prose(
            " At 50 % masked or less none of these certificates can prove a single word, however "
            "good the model: some word stands in at least half of the copies."
        )
    return said


def _curves(one: Reproduction, results: ByRate) -> Picture:
    first = certificate_name(next(iter(results.values())).readings[0].certificate)
    caption = prose(
        "Certified accuracy against the number of changed words. The band is the 95 % interval of "
        "the first certificate, {first}.",
        first=first,
    )
    if any(also(result, "paper-as-printed") for result in results.values()):
        caption += prose(
            " Where the paper's lines lie above the others, more is claimed than is proved. The "
            "exact label is the vote of all copies; the other certificates choose theirs by a "
            "smaller sample, so they may start lower or higher."
        )
    charts = tuple(certified_curves(rate, result) for rate, result in results.items())
    return Picture(f"{one.name}-curves", charts, caption)


def _aside(one: Reproduction, results: ByRate) -> Picture:
    """Lengths at the rate that certifies most; the frontier, where there are several rates."""
    best = best_rate(results)
    lengths = by_length(best, results[best])
    caption = prose(
        "shorter and longer texts, about a quarter in each group ({rate}). Bars are 95 % "
        "intervals.",
        rate=masked(best),
    )
    if len(results) == 1:
        return Picture(f"{one.name}-lengths", (lengths,), prose("By length: ") + caption)
    before = prose(
        "First: each masking rate by its accuracy, and by the share that is certified at one "
        "word. Second: "
    )
    return Picture(f"{one.name}-frontier", (frontier(results), lengths), before + caption)

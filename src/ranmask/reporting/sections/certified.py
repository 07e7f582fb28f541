"""The certified tables: the paper's, ours counted the same way, and what is proved."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.published import CertifiedTable, published
from ranmask.reporting.blocks import (
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
from ranmask.reporting.condensed import Certified, Reproduction
from ranmask.reporting.counting import (
    certificate_name,
    certified_at,
    finished,
    masked,
    reading,
    summary,
)
from ranmask.reporting.figures import by_length, certified_curves, frontier
from ranmask.reporting.sections.certified_tables import ByRate, against_paper, also, levels, proved

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
    """The rate at which most texts are certified at one word."""
    return max(
        results,
        key=lambda rate: (
            certified_at(results[rate].readings[0], 1) / len(results[rate].rows),
            rate or 0.0,
        ),
    )


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
                    "the same as a share of the text's words. N/A: half of the texts are wrong, or "
                    "not certified even unchanged."
                ),
                prose(
                    "**Exact** counts the votes of a fixed list of copies: a proof, without luck. "
                    "**Levine{dash}Feizi** draws copies at random and is right with probability "
                    "1 {minus} {alpha}."
                ),
                prose(
                    "**No guarantee** marks the paper's two ways of counting. They are here to "
                    "compare with its tables, not to be relied on."
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
    exact = [summary(result, result.readings[0]).median_radius for result in results.values()]
    best = max((-1 if one is None else one) for one in exact)
    below = ""
    if any(rate is not None and rate < _HALF for rate in results):
        below = " Below 50 % masked, none of these can prove a single word, however good the model."
    return prose(
        "Counted as the paper counts, the median is the paper's at **{same} of {compared}** "
        "masking rates that were run. What is *proved* is the next table: there the largest "
        "median is {best}.{below}",
        same=same,
        compared=compared,
        below=below,
        best="N/A" if best < 0 else "1 word" if best == 1 else f"{best} words",
    )


def _curves(one: Reproduction, results: ByRate) -> Picture:
    first = certificate_name(next(iter(results.values())).readings[0].certificate)
    caption = prose(
        "Certified accuracy against the number of changed words. The band is the 95 % interval of "
        "the first certificate, {first}.",
        first=first,
    )
    if any(also(result, "paper-as-printed") for result in results.values()):
        caption += prose(
            " All certificates read the same votes: where the paper's lines lie above the others, "
            "more is claimed than is proved."
        )
    charts = tuple(certified_curves(rate, result) for rate, result in results.items())
    return Picture(f"{one.name}-curves", charts, caption)


def _aside(one: Reproduction, results: ByRate) -> Picture:
    """Lengths at the rate that certifies most; the frontier, where there are several rates."""
    best = best_rate(results)
    lengths = by_length(best, results[best])
    caption = prose(
        "Shorter and longer texts, about a quarter in each group ({rate}). Bars are 95 % "
        "intervals.",
        rate=masked(best),
    )
    if len(results) == 1:
        return Picture(f"{one.name}-lengths", (lengths,), caption)
    before = prose("Masking more words costs accuracy and buys certificates. ")
    return Picture(f"{one.name}-frontier", (frontier(results), lengths), before + caption)

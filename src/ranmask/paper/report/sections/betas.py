"""The Jensen-Shannon figure, and beside it what a divergence over texts cannot show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ranmask.paper.divergence import jensen_shannon
from ranmask.paper.published import published
from ranmask.paper.report.axes import Axis, fitted_axis, log_axis, power_of_ten, words_axis
from ranmask.paper.report.blocks import Block, Heading, Picture, Section, prose, text
from ranmask.paper.report.charts import Plot, Point, Series, lines
from ranmask.paper.report.counting import CORPORA, rate_name
from ranmask.paper.report.experiments import experiments, variant_label
from ranmask.paper.report.sections.coverage import unlike, verdict
from ranmask.paper.report.tables import Table, share, table
from ranmask.paper.run_data import Betas, Reproduction

Line: TypeAlias = list[tuple[int, float]]

_INTRODUCTION = """
    The paper sets β, how often a copy that shows a changed word still votes for the label, to p_c,
    how often any copy does. Its reason is a figure: the Jensen–Shannon divergence between the two
    is tiny. But that divergence is taken between two lists with one entry for each *text*, scaled
    to sum to 1. A factor that all texts share is lost, and one text is lost among the others: it
    cannot show that the two are equal for any text.
    """


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The figure for each corpus; None where beta was not asked for."""
    chosen = experiments(run for run in reproductions if run.kind == "beta")
    blocks = text(_INTRODUCTION)
    for experiment in chosen:
        blocks += unlike(experiment)
        for run in experiment.runs:
            by_corpus = results(run)
            if not by_corpus:
                blocks += text("No estimate is finished, so there is nothing to show.")
            beside = "" if run is experiment.run else f", {variant_label(run)}"
            for corpus, rates in by_corpus.items():
                blocks.append(Heading(f"{CORPORA.get(corpus, corpus)}{beside}"))
                blocks += _corpus(run.folder_name, corpus, rates)
    return Section("Is beta close to p_c?", "beta", blocks) if chosen else None


def results(run: Reproduction) -> dict[str, dict[float, Betas]]:
    """Finished estimates with texts, by corpus and masking rate."""
    found: dict[str, dict[float, Betas]] = {}
    for step, result in run.finished(Betas):
        if {"corpus", "rate"} <= step.place.keys() and result.rows:
            rates = found.setdefault(str(step.place["corpus"]), {})
            rates[float(step.place["rate"])] = result
    return {corpus: dict(sorted(rates.items())) for corpus, rates in found.items()}


def divergence_line(result: Betas) -> Line:
    """The divergence for each number of changed words, over the texts that have so many."""
    line = []
    for changed, average in zip(result.changed, result.average, strict=True):
        known = _known(result, average)
        if any(p > 0 for p, _ in known) and any(beta > 0 for _, beta in known):
            line.append((changed, jensen_shannon(*zip(*known, strict=True))))
    return line


def gap_line(result: Betas, chosen: bool) -> Line:
    """Mean distance of beta from p_c: random positions, or beta less p_c at chosen ones."""
    line = []
    values = result.largest if chosen else result.average
    for changed, betas in zip(result.changed, values, strict=True):
        gaps = [beta - p if chosen else abs(beta - p) for p, beta in _known(result, betas)]
        if gaps:
            line.append((changed, sum(gaps) / len(gaps)))
    return line


def largest_gap(result: Betas) -> float:
    """The largest beta less p_c of any text and any number of changed words."""
    gaps = (beta - p for betas in result.largest for p, beta in _known(result, betas))
    return max(gaps, default=0.0)


def _known(result: Betas, betas: Sequence[float | None]) -> list[tuple[float, float]]:
    """p_c and beta of the texts that have one."""
    pairs = zip(result.share, betas, strict=True)
    return [(p, beta) for p, beta in pairs if beta is not None]


def _corpus(name: str, corpus: str, rates: dict[float, Betas]) -> list[Block]:
    named = {rate_name(rate): divergence_line(result) for rate, result in rates.items()}
    divergences = {rate: line for rate, line in named.items() if line}
    gaps = {rate_name(rate): gap_line(result, chosen=True) for rate, result in rates.items()}
    bound = published().beta["below"].get(corpus)
    if not divergences or not any(gaps.values()) or bound is None:
        return [_table(rates)]
    values = [value for line in divergences.values() for _, value in line]
    shown = Plot(
        title=f"{CORPORA[corpus]}: what the paper shows",
        description=f"All divergences lie between {min(values):.1e} and {max(values):.1e}.",
        x=_changed_words(divergences),
        y=log_axis("Jensen–Shannon, nats", [*values, bound]),
        series=_series(divergences),
        rules=[(bound, "the paper's bound")],
    )
    values = [value for line in gaps.values() for _, value in line]
    hidden = Plot(
        title="What it hides",
        description=f"Mean gap, at most {max(values):.3f}.",
        x=_changed_words(gaps),
        y=fitted_axis("chosen β less p_c", [0, *values], within=(-1, 1)),
        series=_series(gaps),
    )
    caption = prose(
        """First: divergence against changed words, one line a masking rate; logarithmic. Second: β
        less p_c when the positions are *chosen*, averaged over the texts. An attacker chooses, so
        a certificate has to reckon with the second."""
    )
    most, changed = max((value, at) for line in divergences.values() for at, value in line)
    said = (
        f"Divergences reach {_scientific(most)}, at {changed} changed "
        f"word{'s' if changed > 1 else ''}; the paper has all below {_scientific(bound, 2)}."
    )
    return [
        _table(rates),
        *verdict([said] if most >= bound else []),
        Picture(f"{name}-{corpus}", (shown, hidden), caption),
    ]


def _changed_words(lines: dict[str, Line]) -> Axis:
    return words_axis(
        "changed words", max(changed for line in lines.values() for changed, _ in line)
    )


def _series(by_rate: dict[str, Line]) -> list[Series]:
    return lines({name: [Point(float(x), y) for x, y in line] for name, line in by_rate.items()})


def _table(rates: dict[float, Betas]) -> Table:
    rows = []
    for rate, result in rates.items():
        line = divergence_line(result)
        gaps = [dict(gap_line(result, chosen=chosen)) for chosen in (False, True)]
        rows.append(
            (
                rate_name(rate),
                str(len(result.rows)),
                _scientific(line[0][1]) if line else "–",
                _scientific(line[-1][1]) if line else "–",
                *(share(gap[1]) if 1 in gap else "–" for gap in gaps),
                share(largest_gap(result)),
            )
        )
    return table(
        "Divergence, and distance",
        [
            "masked",
            "texts",
            ("divergence, changed words", ("fewest", "most")),
            ("one changed word, mean", ("|β − p_c|", "chosen")),
            ("β − p_c", ("largest",)),
        ],
        rows,
        [
            "Chosen: beta less p_c at the worst positions that were tried, so the true worst may "
            "be larger."
        ],
    )


def _scientific(value: float, digits: int = 1) -> str:
    """A few digits and a power of ten."""
    lead, power = f"{value:.{digits}e}".split("e")
    return power_of_ten(float(lead), int(power)) if value else "0"

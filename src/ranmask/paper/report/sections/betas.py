"""The Jensen-Shannon figure, and beside it what a divergence over texts cannot show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ranmask.paper.divergence import jensen_shannon
from ranmask.paper.published import published
from ranmask.paper.report.axes import Axis, fitted_axis, log_axis, power_of_ten, words_axis
from ranmask.paper.report.beside import SAME, Finding, unlike, verdict
from ranmask.paper.report.blocks import Block, Heading, Picture, Section, prose, text
from ranmask.paper.report.charts import Plot, Point, Series, lines
from ranmask.paper.report.experiments import Experiment, experiments, variant_label
from ranmask.paper.report.names import CORPORA, corpus_name, rate_name
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
        for run in experiment.runs:
            by_corpus = results(run)
            if not by_corpus:
                blocks += text("No estimate is finished, so there is nothing to show.")
            first = run is experiment.run
            beside = "" if first else f", {variant_label(run)}"
            for corpus, rates in by_corpus.items():
                blocks.append(Heading(f"{corpus_name(corpus)}{beside}"))
                blocks += unlike(experiment) if first else []
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


def in_short(experiment: Experiment) -> list[Finding]:
    """The largest divergence, and the largest gap that it hides."""
    found = []
    for corpus, rates in results(experiment.run).items():
        name = corpus_name(corpus)
        gap = max(map(largest_gap, rates.values()))
        bound = published().beta["below"].get(corpus)
        lines = [line for result in rates.values() if (line := divergence_line(result))]
        if bound is not None and lines:
            most, changed = _most(lines)
            said = SAME if most < bound else f"above its bound at {_words(changed)}"
            paper = f"below {_scientific(bound, 2)}"
            what = f"{name}: largest divergence of β from p_c, nats"
            found.append(Finding(what, _scientific(most), paper, said))
        what = f"{name}: largest β − p_c at chosen positions"
        hidden = "hidden by a divergence over texts" if bound is not None else ""
        found.append(Finding(what, share(gap), "assumed 0" if hidden else "", hidden))
    return found


def _most(lines: Iterable[Line]) -> tuple[float, int]:
    """The largest divergence, and at how many changed words."""
    return max((value, at) for line in lines for at, value in line)


def _words(changed: int) -> str:
    return f"{changed} changed word{'s' if changed > 1 else ''}"


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
        title=f"{CORPORA[corpus]}: what the paper looks at",
        description=f"All divergences lie between {min(values):.1e} and {max(values):.1e}.",
        x=_changed_words(divergences),
        y=log_axis("Jensen–Shannon, nats", [*values, bound]),
        series=_series({rate: [at for at in line if at[1]] for rate, line in divergences.items()}),
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
    most, changed = _most(divergences.values())
    said = (
        f"Divergences reach {_scientific(most)}, at {_words(changed)}; by its figure all are below "
        f'{_scientific(bound, 2)} (its text adds "when the number of perturbed words is large '
        'enough").'
    )
    bits = most / math.log(2)
    base = ""
    if most < bound <= bits:
        base = (
            f" In bits the largest is {_scientific(bits)}, above its bound of "
            f"{_scientific(bound, 2)}."
        )
    caption = prose(
        """First: divergence against changed words, one line a masking rate; logarithmic, and in
        nats: the paper does not say the base of its logarithm.{bits} Zeros are left out. Second: β
        less p_c when the positions are *chosen*, averaged over the texts. An attacker chooses, so
        a certificate has to reckon with the second.""",
        bits=base,
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
    lines = {rate: dict(divergence_line(result)) for rate, result in rates.items()}
    counts = sorted({changed for line in lines.values() for changed in line})
    ends = counts if len(counts) < 2 else [counts[0], counts[-1]]
    for rate, result in rates.items():
        line = lines[rate]
        gaps = [dict(gap_line(result, chosen=chosen)) for chosen in (False, True)]
        rows.append(
            (
                rate_name(rate),
                str(len(result.rows)),
                *(_scientific(line[changed]) if changed in line else "–" for changed in ends),
                *(share(gap[1]) if 1 in gap else "–" for gap in gaps),
                share(largest_gap(result)),
            )
        )
    return table(
        "Divergence, and distance",
        [
            "masked",
            "texts",
            *([("divergence by changed words", [f"at {at}" for at in ends])] if ends else []),
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

"""Accuracy under attack against the masking rate, for both ensembles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ranmask.paper.published import published
from ranmask.paper.report.axes import percent_axis
from ranmask.paper.report.beside import SAME, Finding, unlike, verdict
from ranmask.paper.report.blocks import Block, Fold, Heading, Picture, Section, prose, text
from ranmask.paper.report.charts import Plot, Point, lines
from ranmask.paper.report.counting import (
    Attacks,
    attacks_by_seed,
    mean_robust,
    noise,
    robust_accuracy,
)
from ranmask.paper.report.experiments import Configuration, Experiment, experiments
from ranmask.paper.report.names import ATTACKS, attack_name, rate_name
from ranmask.paper.report.tables import NOT_RUN, NOTHING, SPREAD, Cell, percent, seeds_cell, table
from ranmask.paper.run_data import Reproduction

Lines: TypeAlias = dict[tuple[str, str], dict[float, tuple[Attacks, ...]]]
"""Counts by ensemble and attack, then by masking rate, one for each seed."""

_ENSEMBLES = {"logit": "Summed logits", "vote": "Majority vote"}
_INTRODUCTION = """
    The paper varies the masking rate on AG News and finds two shapes. With summed logits, robust
    accuracy rises with the rate and jumps at the end. With votes it is high at very small rates,
    falls, and rises again: at a small rate nearly all copies vote alike, and the attacker, who
    climbs the scores, has nothing to climb.
    """
_PICKED = (
    "Significant: p ≤ .05 in a paired sign test, p times the other rates of the curve, among which "
    "the peak was found."
)


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The figure; None where rates were not varied."""
    chosen = experiments(run for run in reproductions if run.kind == "rates")
    blocks = text(_INTRODUCTION)
    for experiment in chosen:
        blocks += unlike(experiment)
        for configuration in experiment.configurations:
            blocks += [Heading(configuration.label)] if configuration.label else []
            blocks += _configuration(configuration)
    return Section("The masking rate under attack", "rates", blocks) if chosen else None


def counts(configuration: Configuration) -> Lines:
    """By ensemble and attack, then by rate: counts of each seed, where there are texts."""
    found: Lines = {}
    by_place = attacks_by_seed(configuration, "ensemble", "attack", "rate")
    for (ensemble, attack, rate), seeds in by_place.items():
        found.setdefault((ensemble, attack), {})[float(rate)] = seeds
    return {key: dict(sorted(line.items())) for key, line in found.items()}


def _configuration(configuration: Configuration) -> list[Block]:
    found = counts(configuration)
    if not found:
        return text("No attack is finished, so there is nothing to show.")
    ensembles = {key: _ENSEMBLES.get(key, key) for key in sorted({key for key, _ in found})}
    asked = {attack for _, attack in found}
    attacks = [attack for attack in ATTACKS if attack in asked]
    attacks += sorted(asked - set(attacks))
    names = {attack: attack_name(attack) for attack in attacks}
    charts = [
        Plot(
            title=title,
            description="Robust accuracy in percent; the table has the figures.",
            x=percent_axis("masking rate, %"),
            y=percent_axis("robust accuracy (Boa), %"),
            series=lines(
                {
                    name: [
                        Point(100 * rate, *robust_accuracy(counted))
                        for rate, counted in line.items()
                    ]
                    for attack, name in names.items()
                    if (line := found.get((ensemble, attack)))
                }
            ),
        )
        for ensemble, title in ensembles.items()
    ]
    seeds = max(len(counted) for line in found.values() for counted in line.values())
    averaged = f"Up to {seeds} seeds are averaged; the intervals allow for their shared texts. "
    caption = prose(
        """Robust accuracy against the masking rate. Bars are 95 % intervals over texts. {seeds}The
        paper prints its figure without numbers.""",
        seeds=averaged if seeds > 1 else "",
    )
    columns = [found.get((ensemble, attack), {}) for ensemble in ensembles for attack in attacks]
    figures = table(
        "Robust accuracy (Boa), in percent",
        ["masked", *((title, list(names.values())) for title in ensembles.values())],
        [
            (
                rate_name(rate),
                *(
                    seeds_cell([(one.held, one.texts) for one in line[rate]], percent)
                    if rate in line
                    else NOTHING
                    if configuration.label
                    else NOT_RUN
                    for line in columns
                ),
            )
            for rate in sorted({rate for line in columns for rate in line})
        ],
        [SPREAD] if seeds > 1 else [],
    )
    return [
        *_compared(found),
        Picture(configuration.runs[0].folder_name, charts, caption),
        Fold("The figures", [figures]),
    ]


@dataclass(frozen=True)
class _Peak:
    """Where a curve is highest, and what it has there and at the paper's peak, the last rate.

    ``noise``: the adjusted p value of that difference where it is not significant.
    """

    rate: float
    here: float
    last: float
    elsewhere: bool
    noise: str


def _peaks(found: Lines) -> dict[tuple[str, str], _Peak]:
    """By ensemble and attack; of curves that reach the last rate."""
    last = max(published().rates["named"]) / 100
    peaks = {}
    for key, line in found.items():
        if last in line:
            robust = {rate: mean_robust(counted) for rate, counted in line.items()}
            peak = max(robust, key=lambda rate: (robust[rate], rate))
            others = len(line) - 1  # any of which could have been the peak
            close = noise(line[peak], line[last], among=others) if peak != last else ""
            peaks[key] = _Peak(peak, robust[peak], robust[last], peak != last, close)
    return peaks


def in_short(experiment: Experiment) -> list[Finding]:
    """At which rate each ensemble keeps most, here and in the paper."""
    named = {rate / 100 for rate in published().rates["named"]}
    last = max(named)
    curves = counts(experiment.main)
    found = []
    for ensemble, name in _ENSEMBLES.items():
        peaks = {
            attack_name(attack): peak
            for (key, attack), peak in _peaks(curves).items()
            if key == ensemble
        }
        if not peaks:
            continue
        rates = {rate_name(peak.rate) for peak in peaks.values()}
        ours = ", ".join(f"{rate_name(peak.rate)} ({attack})" for attack, peak in peaks.items())
        elsewhere = [peak for peak in peaks.values() if peak.elsewhere]
        sure = sum(not peak.noise for peak in elsewhere)
        mine = [line for (key, _), line in curves.items() if key == ensemble]
        missing = max(len(named - line.keys()) for line in mine)
        said = f"{missing} of {len(named)} rates not run" if missing else SAME
        if elsewhere:
            said = f"{'contradicts the paper: ' if sure else ''}other rate in {len(elsewhere)} of "
            said += f"{len(peaks)} attacks, significant in {sure}"
        ours = f"{min(rates)} (all attacks)" if len(rates) == 1 < len(peaks) else ours
        what = f"{name.lower()}: most robust masking rate"
        found.append(Finding(what, ours, rate_name(last), said))
    return found


def _compared(found: Lines) -> list[Block]:
    """Where our curves have their peaks; the paper's all have it at the last rate."""
    last = rate_name(max(published().rates["named"]) / 100)
    peaks = _peaks(found)
    if not peaks:
        return []
    sure = [name for name, peak in peaks.items() if peak.elsewhere and not peak.noise]
    said = (
        f"Its curves all peak at {last} masked; {len(sure)} of our {len(peaks)} are significantly "
        "higher elsewhere."
    )
    rows: list[Sequence[Cell | str]] = [
        (
            f"{_ENSEMBLES.get(ensemble, ensemble)}, {attack_name(attack)}",
            Cell(rate_name(peak.rate), strong=(ensemble, attack) in sure),
            f"{peak.here:.1f}",
            f"{peak.last:.1f}",
            (peak.noise or "yes") if peak.elsewhere else NOTHING,
            _end(found[ensemble, attack]),
        )
        for (ensemble, attack), peak in sorted(peaks.items(), key=lambda pair: pair[0][0])
    ]
    titles = [
        *("<curve", "our peak", "Boa there"),
        *(f"Boa at {last}", "<significant?", "<at the end ours"),
    ]
    return [
        *verdict([said] if sure else []),
        table("Where robust accuracy peaks", titles, rows, [_PICKED]),
    ]


def _end(line: Mapping[float, tuple[Attacks, ...]]) -> str:
    """How a curve goes on over its last two rates."""
    if len(line) < 2:
        return ""
    *_, before, last = sorted(line)
    first, second = (f"{mean_robust(line[rate]):.1f}" for rate in (before, last))
    ends = "rises" if float(second) > float(first) else "falls"
    ends = "stays" if first == second else ends
    return f"{ends}, from {first} at {rate_name(before)}"

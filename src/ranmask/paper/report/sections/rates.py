"""Accuracy under attack against the masking rate, for both ensembles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ranmask.paper.published import published
from ranmask.paper.report.axes import percent_axis
from ranmask.paper.report.blocks import Block, Fold, Heading, Picture, Section, prose, text
from ranmask.paper.report.charts import Plot, Point, lines
from ranmask.paper.report.counting import (
    ATTACKS,
    Attacks,
    attacks_by_seed,
    luck,
    mean_robust,
    rate_name,
    robust_accuracy,
)
from ranmask.paper.report.experiments import Configuration, experiments
from ranmask.paper.report.sections.coverage import unlike, verdict
from ranmask.paper.report.tables import NOT_RUN, NOTHING, SPREAD, percent, seeds_cell, table
from ranmask.paper.run_data import Reproduction

Lines: TypeAlias = dict[tuple[str, str], dict[float, tuple[Attacks, ...]]]
"""Counts by ensemble and attack, then by masking rate, one for each seed."""

_ENSEMBLES = {"logit": "Logits summed", "vote": "Majority vote"}
_INTRODUCTION = """
    The paper varies the masking rate on AGNEWS and finds two shapes. With summed logits, robust
    accuracy rises with the rate and jumps at the end. With votes it is high at very small rates,
    falls, and rises again: at a small rate nearly all copies vote alike, and the attacker, who
    climbs the scores, has nothing to climb.
    """


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
    names = {attack: ATTACKS.get(attack, attack) for attack in attacks}
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
    averaged = (
        f"Runs with different seeds, {seeds} at most, are averaged; the intervals know that they "
        "share their texts. "
    )
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
        *verdict(_faults(found)),
        Picture(configuration.first.folder_name, charts, caption),
        Fold("The figures", [figures]),
    ]


def _faults(found: Lines) -> list[str]:
    """Curves that have their peak elsewhere than the paper's, which all have it at the end."""
    faults = []
    last = max(published().rates["named"]) / 100
    for (ensemble, attack), line in found.items():
        robust = {rate: mean_robust(counted) for rate, counted in line.items()}
        peak = max(robust, key=lambda rate: (robust[rate], rate), default=last)
        if last in robust and robust[peak] > robust[last]:
            faults.append(
                f"{_ENSEMBLES.get(ensemble, ensemble)}, {ATTACKS.get(attack, attack)}: the paper's "
                f"peak is at {rate_name(last)} masked, ours at {rate_name(peak)} "
                f"({robust[peak]:.1f} against {robust[last]:.1f}"
                f"{luck(line[peak], line[last])})."
            )
    return faults

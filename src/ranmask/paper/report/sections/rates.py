"""Accuracy under attack against the masking rate, for both ensembles."""

from __future__ import annotations

from collections.abc import Sequence

from ranmask.paper.report.blocks import Block, Fold, Paragraph, Picture, Section, prose
from ranmask.paper.report.condensed import Attacked, Reproduction
from ranmask.paper.report.counting import (
    ATTACKS,
    Attacks,
    attack_name,
    count_attacks,
    finished,
    rate_name,
)
from ranmask.paper.report.figures import rates_plot
from ranmask.paper.report.tables import Column, Table, columns, not_run, percent_cell, row

_ENSEMBLES = {"logit": "Logits summed", "vote": "Majority vote"}


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The figure; None where rates were not varied."""
    chosen = [one for one in reproductions if one.kind == "rates"]
    if not chosen:
        return None
    blocks: list[Block] = [
        Paragraph(
            prose(
                "The paper varies the masking rate on AGNEWS and finds two shapes. With summed "
                "logits, robust accuracy rises with the rate and jumps at the end. With votes it "
                "is high at very small rates, falls, and rises again: at a small rate nearly all "
                "copies vote alike, and the attacker, who climbs the scores, has nothing to climb."
            )
        )
    ]
    for one in chosen:
        blocks += _reproduction(one)
    return Section("The masking rate under attack", "rates", tuple(blocks))


def counts(one: Reproduction) -> dict[tuple[str, str], dict[float, Attacks]]:
    """By ensemble and attack, then by rate: counts over all seeds."""
    runs: dict[tuple[str, str], dict[float, list[Attacked]]] = {}
    for step, result in finished(one, Attacked):
        place = step.place
        if {"rate", "ensemble", "attack"} <= place.keys() and result.rows:
            line = runs.setdefault((str(place["ensemble"]), str(place["attack"])), {})
            line.setdefault(float(place["rate"]), []).append(result)
    return {
        key: {rate: count_attacks(found) for rate, found in sorted(line.items())}
        for key, line in runs.items()
    }


def _reproduction(one: Reproduction) -> list[Block]:
    found = {
        key: {rate: counted for rate, counted in line.items() if counted.texts}
        for key, line in counts(one).items()
    }
    if not any(found.values()):
        return [Paragraph(prose("No attack is finished, so there is nothing to show."))]
    ensembles = sorted({ensemble for ensemble, _ in found})
    attacks = [attack for attack in ATTACKS if any(attack == other for _, other in found)]
    attacks += sorted({attack for _, attack in found} - set(attacks))
    charts = tuple(
        rates_plot(
            _ENSEMBLES.get(ensemble, ensemble),
            {
                attack_name(attack): list(found[ensemble, attack].items())
                for attack in attacks
                if found.get((ensemble, attack))
            },
        )
        for ensemble in ensembles
    )
    seeds = max(counted.runs for line in found.values() for counted in line.values())
    return [
        Picture(
            one.name,
            charts,
            prose(
                "Robust accuracy against the masking rate. Bars are 95 % intervals over texts. "
                "{seeds}The paper prints its figure without numbers.",
                seeds=_seeds(seeds),
            ),
        ),
        Fold("The figures", (_table(found, ensembles, attacks),)),
    ]


def _seeds(seeds: int) -> str:
    if seeds == 1:
        return ""
    return (
        f"Runs with different seeds, {seeds} at most, are averaged; the intervals know that they "
        "share their texts. "
    )


def _table(
    found: dict[tuple[str, str], dict[float, Attacks]],
    ensembles: Sequence[str],
    attacks: Sequence[str],
) -> Table:
    rates = sorted({rate for line in found.values() for rate in line})
    rows = []
    for rate in rates:
        cells = []
        for ensemble in ensembles:
            for attack in attacks:
                one = found.get((ensemble, attack), {}).get(rate)
                cells.append(percent_cell(one.held, one.texts, one.runs) if one else not_run())
        rows.append(row(rate_name(rate), *cells))
    names = [attack_name(attack) for attack in attacks]
    return Table(
        caption="Robust accuracy (Boa), in percent",
        columns=(
            Column("masked"),
            *(
                column
                for ensemble in ensembles
                for column in columns(_ENSEMBLES.get(ensemble, ensemble), names)
            ),
        ),
        rows=tuple(rows),
    )

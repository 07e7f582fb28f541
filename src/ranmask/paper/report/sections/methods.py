"""One method under one attack, and whether the order of the methods is the paper's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ranmask.paper.published import Cell as Printed
from ranmask.paper.report.blocks import Block, Bullets, Heading, Paragraph, Prose, prose
from ranmask.paper.report.counting import Attacks, attack_name, pairs_in_order, rank_correlation
from ranmask.paper.report.tables import share


@dataclass(frozen=True)
class Measured:
    """One method under one attack: our counts, the paper's figures; None where there are none."""

    method: str
    counts: Attacks | None
    printed: Printed | None

    @property
    def robust(self) -> float | None:
        """Boa in percent."""
        if self.counts is None or not self.counts.texts:
            return None
        return 100 * self.counts.held / self.counts.texts

    @property
    def printed_robust(self) -> float | None:
        """The paper's."""
        return None if self.printed is None else self.printed.boa


def order_of_methods(rows: Sequence[Measured]) -> tuple[float | None, int, int, int]:
    """Rank correlation of Boa with the paper's; pairs in its order, pairs compared, methods."""
    both = [one for one in rows if one.robust is not None and one.printed is not None]
    ours = [one.robust or 0.0 for one in both]
    paper = [one.printed.boa for one in both if one.printed is not None]
    return rank_correlation(ours, paper), *pairs_in_order(ours, paper), len(both)


def order(by_attack: dict[str, list[Measured]]) -> list[Block]:
    """Sentences on where the order of the methods is the paper's."""
    items = [item for attack, rows in by_attack.items() for item in _order_item(attack, rows)]
    if not items:
        return []
    return [
        Heading("Is the order of the methods the paper's?", 4),
        Bullets(tuple(items)),
        Paragraph(
            prose(
                "Where intervals overlap, an order may be luck: `ranmask compare` tests two "
                "methods on the same texts."
            ),
            tone="quiet",
        ),
    ]


def _order_item(attack: str, rows: Sequence[Measured]) -> list[Prose]:
    correlation, same, compared, methods = order_of_methods(rows)
    if methods < 2:
        return []
    both = [one for one in rows if one.robust is not None and one.printed is not None]
    ours = _leaders(both, [one.robust for one in both])
    paper = _leaders(both, [one.printed_robust for one in both])
    if ours == paper:
        top = prose("Most robust: {methods} in both.", methods=ours)
    else:
        top = prose("Most robust: {methods} here, {other} in the paper.", methods=ours, other=paper)
    rank = ""
    if correlation is not None:
        rank = f", rank correlation {share(correlation, 2)}"
    ties = math.comb(methods, 2) - compared
    said = f"{same} of {compared} pairs {'is' if same == 1 else 'are'} in the paper's order{rank}"
    if not compared:
        said = "no pair can be compared"
    return [
        (
            *prose(
                "**{attack}**, {methods} methods: {said}{ties}. ",
                attack=attack_name(attack),
                methods=methods,
                said=said,
                ties=f"; in {ties} more, the two are equal in one of them" if ties else "",
            ),
            *top,
        )
    ]


def _leaders(rows: Sequence[Measured], values: Sequence[float | None]) -> str:
    """All that have the largest value."""
    largest = max(value for value in values if value is not None)
    return " and ".join(
        one.method for one, value in zip(rows, values, strict=True) if value == largest
    )

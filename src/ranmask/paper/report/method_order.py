"""Is the order of the methods under attack the paper's, and who is first?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ranmask.metrics.ranking import pairs_in_order, ranks
from ranmask.paper.published import EmpiricalTable
from ranmask.paper.report.beside import verdict
from ranmask.paper.report.blocks import Block, Heading
from ranmask.paper.report.experiments import Experiment
from ranmask.paper.report.methods import ByAttack, Ranking, measured, ranking
from ranmask.paper.report.names import attack_name, either, several
from ranmask.paper.report.tables import NOTHING, Cell, difference, share, table

_TITLES = (
    "methods compared",
    "pairs in the paper's order",
    "rank correlation",
    "most robust here",
    "most robust in the paper",
    "is the lead here significant?",
    "furthest from the paper's rank",
    "Boa less the paper's",
)
_NOTE = (
    "Pairs that tie here or in the paper are left out. Lead: p by a sign test, see above. To test "
    "two other methods: ranmask compare."
)


def contradictions(main: ByAttack) -> list[Block]:
    """Where another method than the paper's is first, by more than noise."""
    found = []
    for attack, rows in main.items():
        one = ranking(rows)
        if one is not None and one.contradiction:
            robust = {row.method: row.robust for row in one.compared}
            (ours, *_), (its, boa) = one.leaders, one.contradiction
            found.append(
                f"Under {attack_name(attack)} {ours} is the most robust ({robust[ours]:.1f} %); "
                f"{its}, the most robust in the paper ({boa:.1f} %), has {robust[its]:.1f} %."
            )
    return verdict(found)


def order(experiment: Experiment, printed: EmpiricalTable | None) -> list[Block]:
    """How far the order of the methods is the paper's: a column for each attack.

    Of other configurations only where enough methods were run for a correlation.
    """
    if printed is None:
        return []
    columns: dict[str, list[Cell | str]] = {}
    for configuration in experiment.configurations:
        label = configuration.label and f", {configuration.label}"
        for attack, rows in measured(experiment, configuration).items():
            one = ranking(rows)
            if one and (one.correlation is not None or (not label and len(one.both[0]) > 1)):
                columns[attack_name(attack) + label] = _column(one, len(printed.methods))
    if not columns:
        return []
    lines: list[Sequence[Cell | str]] = list(zip(_TITLES, *columns.values(), strict=True))
    titles = ["<", *(f"<{title}" for title in columns)]
    heading = Heading("Is the order of the methods the paper's?", 4)
    return [heading, table("Ranked by robust accuracy", titles, lines, [_NOTE])]


def _column(one: Ranking, methods: int) -> list[Cell | str]:
    """What is said of one attack, in the order of the titles."""
    ours, paper = one.both
    same, compared = pairs_in_order(ours, paper)
    ties = math.comb(len(ours), 2) - compared
    texts = either(counts.texts for row in one.compared for counts in row.counts)
    rank, its = one.correlation, one.paper_leader
    first = none_named(one) if one.missing else several(one.leaders)
    names = [row.method for row in one.rows]
    gains = [(row.robust or 0) - boa for row, boa in zip(one.rows, paper, strict=True)]
    ends = [names[gains.index(end)] for end in (min(gains), max(gains))]
    return [
        Cell(f"{len(ours)} of {methods}", beside=f"over {texts} texts"),
        Cell(f"{same} of {compared}", beside=f"{ties} tied" if ties else ""),
        NOTHING if rank is None else share(rank, 2),
        Cell(first, strong=bool(one.contradiction)),
        its[0] if its else NOTHING,
        NOTHING if one.missing else _lead(one),
        _furthest(names, ours, paper),
        Cell(f"{difference(min(gains))} to {difference(max(gains))}", beside=" to ".join(ends)),
    ]


def none_named(one: Ranking) -> str:
    """What is said in place of the most robust where a method is missing."""
    return f"none named: {', '.join(one.missing)} not run"


def _lead(one: Ranking) -> str:
    """Over which methods the lead is not significant; or that it is."""
    close = several([f"{name} ({p})" for name, p in one.close.items()]) if one.close else ""
    said = [*(["tied"] if len(one.leaders) > 1 else []), *([f"not over {close}"] if close else [])]
    return "; ".join(said) or "yes"


def _furthest(names: Sequence[str], ours: Sequence[float], paper: Sequence[float]) -> str:
    """The methods that are furthest from their rank in the paper."""
    moves = [abs(here - there) for here, there in zip(ranks(ours), ranks(paper), strict=True)]
    most = max(moves)
    if most <= 1:
        return "none by more than 1" if most else "none"
    far = [name for name, move in zip(names, moves, strict=True) if move == most]
    return f"{several(far)}, by {most:g}"

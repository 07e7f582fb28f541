"""Tables of methods under attack: all figures at a glance, and each with its interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from ranmask.paper.published import EmpiricalTable
from ranmask.paper.report.counting import Attacks, mean_robust, shared_texts
from ranmask.paper.report.methods import ByAttack, Measured, Rows, ranking
from ranmask.paper.report.names import attack_name, either
from ranmask.paper.report.tables import (
    NOT_RUN,
    NOTHING,
    Cell,
    Table,
    difference,
    percent,
    seeds_cell,
    table,
)

_BEST = {"Cln": max, "Boa": max, "Succ": min}
_Parts: TypeAlias = list[tuple[int, int]]
"""A part and a total for each seed."""


def _shares(seeds: Sequence[Attacks]) -> dict[str, _Parts]:
    """Each figure as parts of wholes; Succ only where something was attacked."""
    return {
        "Cln": [(one.attempted, one.texts) for one in seeds],
        "Boa": [(one.held, one.texts) for one in seeds],
        "Succ": [(one.succeeded, one.attempted) for one in seeds if one.attempted],
    }


def _mean(parts: _Parts) -> float:
    return float(statistics.mean(Fraction(*pair) for pair in parts))


def all_figures(by_attack: ByAttack, main: ByAttack, printed: EmpiricalTable | None) -> Table:
    """Cln, Boa and Succ of every method, with the paper's; the best of ``main`` in bold."""
    best = {attack: _best(rows) for attack, rows in main.items()}
    rows = [
        (
            under[0].name,
            *(
                cell
                for attack, row in zip(by_attack, under, strict=True)
                for cell in _three(row, best[attack])
            ),
        )
        for under in zip(*by_attack.values(), strict=True)
    ]
    texts = [one.texts for some in by_attack.values() for row in some for one in row.counts]
    size, over = f"{min(texts):,} texts each. ", ""
    if min(texts) != max(texts):
        size = f"{min(texts):,} to {max(texts):,} texts. "
        over = ", over the texts that all of them met"
    beside = f"Beside ours: the paper's figure ({printed.base}). " if printed else ""
    bold = ""
    if any(best.values()):
        of = " of the paper's methods, where all of them were run" if printed else ""
        bold = f"Bold: the best{of}{over}. "
    return table(
        "Cln, Boa and Succ, in percent",
        ["<method", *((attack_name(name), list(_BEST)) for name in by_attack)],
        rows,
        [f"{beside}{bold}{size}{_seeds(by_attack)}Intervals are in the folded tables below."],
    )


def _seeds(by_attack: ByAttack) -> str:
    """Of how many seeds cells are the mean, where any are."""
    counts = {len(row.counts) for rows in by_attack.values() for row in rows} - {0, 1}
    if not counts:
        return ""
    return (
        f"Rows with ±: means of {either(counts)} seeds, with the sample standard "
        "deviation of Boa; other rows: one seed. "
    )


def _best(rows: Rows) -> set[tuple[str, str]]:
    """Methods with the best figures, over the same texts; one alone is not the best of any."""
    one = ranking(rows)
    if one is None or len(one.rows) < 2 or one.missing:
        return set()
    shares = {row.method: _shares(row.counts) for row in one.compared}
    best = set()
    for figure, choose in _BEST.items():
        means = {method: _mean(found[figure]) for method, found in shares.items() if found[figure]}
        best |= {(method, figure) for method in means if means[method] == choose(means.values())}
    return best


def _three(row: Measured, best: set[tuple[str, str]]) -> list[Cell]:
    printed = row.printed
    paper = {
        figure: f"{getattr(printed, figure.lower()):.1f}" if printed else "" for figure in _BEST
    }
    if not row.counts:
        empty = "–" if row.configuration else "not run"
        return [Cell(empty, beside=value, quiet=True) for value in paper.values()]
    shares = _shares(row.counts)
    said = {figure: percent(_mean(parts)) if parts else "–" for figure, parts in shares.items()}
    if len(row.counts) > 1:
        said["Boa"] += f" ± {percent(statistics.stdev(Fraction(*pair) for pair in shares['Boa']))}"
    strong = {figure for method, figure in best if method == row.method and not row.configuration}
    return [Cell(said[figure], beside=paper[figure], strong=figure in strong) for figure in _BEST]


def with_intervals(attack: str, rows: Rows) -> Table:
    """Every method with its intervals; columns that say nothing here are left out."""
    met = shared_texts([one for row in rows for one in row.counts])
    differ = bool(met) and any(one.texts > len(met) for row in rows for one in row.counts)
    printed = any(row.printed is not None for row in rows)
    titles = ["<method", "texts", "Cln", "Boa"]
    titles += [f"Boa, {len(met):,} shared texts"] if differ else []
    titles += ["Boa less the paper's"] if printed else []
    titles += ["Succ", "not confirmed"]
    shown: list[Sequence[Cell | str]] = []
    for row in (row for row in rows if row.counts or not row.configuration):
        cells = [NOT_RUN] * (len(titles) - 1)
        if row.counts:
            cells = _detail(row, met if differ else None, printed)
        shown.append((row.name, *cells))
    return table(attack_name(attack), titles, shown)


def _detail(row: Measured, met: Sequence[int] | None, printed: bool) -> list[Cell]:
    seeds = row.counts
    moved = unconfirmed = NOTHING
    if row.printed is not None and row.robust is not None:
        moved = Cell(difference(row.robust - row.printed.boa))
    rechecked = [(one.vanished, one.rechecked) for one in seeds if one.rechecked]
    if rechecked:
        unconfirmed = seeds_cell(rechecked, percent)
    errors = sum(one.errors for one in seeds)
    texts = either(one.texts for one in seeds)
    texts += f" (+{errors} errors)" if errors else ""
    of = f"{len(seeds)} seeds" if len(seeds) > 1 else ""
    clean, robust, success = (seeds_cell(parts, percent) for parts in _shares(seeds).values())
    of_all = [] if met is None else [Cell(f"{mean_robust(seeds, met):.1f}")]
    less = [moved] if printed else []
    return [Cell(texts, interval=of), clean, robust, *of_all, *less, success, unconfirmed]

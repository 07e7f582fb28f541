"""Tables of methods under attack: all figures at a glance, and each with its interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from ranmask.paper.published import EmpiricalTable
from ranmask.paper.report.counting import Attacks, mean_robust, shared_texts
from ranmask.paper.report.methods import (
    ByAttack,
    Measured,
    Rows,
    ranking,
)
from ranmask.paper.report.names import attack_name
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

_Parts: TypeAlias = list[tuple[int, int]]
"""A part and a total for each seed."""

_Best: TypeAlias = tuple[set[str], set[str], set[str]]
"""The methods with the best Cln, Boa and Succ."""


def _shares(seeds: Sequence[Attacks]) -> tuple[_Parts, _Parts, _Parts]:
    """Cln, Boa and Succ, each as parts of wholes; of Succ only where something was attacked."""
    return (
        [(one.attempted, one.texts) for one in seeds],
        [(one.held, one.texts) for one in seeds],
        [(one.succeeded, one.attempted) for one in seeds if one.attempted],
    )


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
    if any(method for attack in best.values() for method in attack):
        of = " of the paper's methods, where all of them were run" if printed else ""
        bold = f"Bold: the best{of}{over}. "
    return table(
        "Cln, Boa and Succ, in percent",
        ["<method", *((attack_name(name), ("Cln", "Boa", "Succ")) for name in by_attack)],
        rows,
        [f"{beside}{bold}{size}{_seeds(by_attack)}Intervals are in the folded tables below."],
    )


def _seeds(by_attack: ByAttack) -> str:
    """Of how many seeds cells are the mean, where any are."""
    counts = sorted({len(row.counts) for rows in by_attack.values() for row in rows} - {0, 1})
    if not counts:
        return ""
    return (
        f"Rows with ±: means of {' or '.join(map(str, counts))} seeds, with the sample standard "
        "deviation of Boa; other rows: one seed. "
    )


def _best(rows: Rows) -> _Best:
    """Of those that were run, over the same texts; one alone is not the best of anything."""
    best: _Best = set(), set(), set()
    one = ranking(rows)
    if one is None or len(one.rows) < 2 or one.missing:
        return best
    for place, (found, choose) in enumerate(zip(best, (max, max, min), strict=True)):
        means = {
            row.method: _mean(parts)
            for row in one.compared
            if (parts := _shares(row.counts)[place])
        }
        found |= {method for method in means if means[method] == choose(means.values())}
    return best


def _three(row: Measured, best: _Best) -> list[Cell]:
    paper = ["", "", ""]
    if row.printed is not None:
        paper = [f"{value:.1f}" for value in (row.printed.cln, row.printed.boa, row.printed.succ)]
    if not row.counts:
        empty = "–" if row.configuration else "not run"
        return [Cell(empty, beside=value, quiet=True) for value in paper]
    shares = _shares(row.counts)
    robust = [Fraction(*pair) for pair in shares[1]]
    spread = f" ± {percent(statistics.stdev(robust))}" if len(robust) > 1 else ""
    return [
        Cell(
            percent(_mean(parts)) + (spread if place == 1 else "") if parts else "–",
            beside=paper[place],
            strong=not row.configuration and row.method in best[place],
        )
        for place, parts in enumerate(shares)
    ]


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
    texts = " or ".join(f"{count:,}" for count in sorted({one.texts for one in seeds}))
    texts += f" (+{errors} errors)" if errors else ""
    of = f"{len(seeds)} seeds" if len(seeds) > 1 else ""
    clean, robust, success = (seeds_cell(parts, percent) for parts in _shares(seeds))
    of_all = [] if met is None else [Cell(f"{mean_robust(seeds, met):.1f}")]
    less = [moved] if printed else []
    return [Cell(texts, interval=of), clean, robust, *of_all, *less, success, unconfirmed]

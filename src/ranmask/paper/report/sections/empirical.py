"""Accuracy under attack: our tables with the paper's beside them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from ranmask.paper.published import Cell as Printed
from ranmask.paper.published import EmpiricalTable, published
from ranmask.paper.report.axes import percent_axis
from ranmask.paper.report.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Picture,
    Prose,
    Section,
    prose,
    text,
)
from ranmask.paper.report.charts import Dot, Dots
from ranmask.paper.report.counting import ATTACKS, Attacks, count_attacks, robust_accuracy
from ranmask.paper.report.sections.coverage import unlike, verdict
from ranmask.paper.report.tables import (
    NOT_RUN,
    NOTHING,
    Cell,
    Table,
    difference,
    percent_cell,
    share,
    table,
)
from ranmask.paper.run_data import Attacked, Reproduction

_GLOSSARY = """
    - **Cln**: accuracy before the attack. **Boa**: accuracy after it, the *robust accuracy*; both
      of all texts.
    - **Succ**: successful attacks, of the texts that were right before, for only those are
      attacked.
    - **Gone**: successes that are none when other copies are drawn. Against a vote over random
      copies an attacker asks hundreds of times and stops at the first lucky draw. A dash: nothing
      is drawn, so there is nothing to draw again.

    ~ A robust accuracy says what one search found. It is no bound on what another could find; that
    is what certificates are for. All figures in percent.
    """


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


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """All reproductions of attack tables; None where there is none."""
    chosen = [run for run in reproductions if run.kind == "empirical"]
    blocks = [*text(_GLOSSARY), *_correlations(chosen)]
    for run in chosen:
        blocks += [Heading(run.title), *_reproduction(run)]
    return Section("Accuracy under attack", "attacks", blocks) if chosen else None


def measured(run: Reproduction) -> dict[str, list[Measured]]:
    """By attack: every method of the paper's table or of ours, the paper's order first."""
    printed = published().empirical.get(run.paper)
    methods: dict[str, None] = dict.fromkeys(printed.methods if printed else ())
    attacks: dict[str, None] = dict.fromkeys(printed.attacks if printed else ())
    results: dict[tuple[str, str], list[Attacked]] = {}
    for step in run.steps:
        if step.measures == "attack" and {"method", "attack"} <= step.place.keys():
            method, attack = str(step.place["method"]), str(step.place["attack"])
            methods.setdefault(method)
            attacks.setdefault(attack)
            if step.state == "done" and isinstance(step.result, Attacked):
                results.setdefault((method, attack), []).append(step.result)
    return {
        attack: [
            Measured(
                method,
                count_attacks(results[method, attack]) if (method, attack) in results else None,
                printed.cell(method, attack) if printed else None,
            )
            for method in methods
        ]
        for attack in attacks
    }


def complete(rows: Sequence[Measured]) -> bool:
    """Whether every method that the paper has was run: else none is the best."""
    return all(row.robust is not None for row in rows if row.printed is not None)


def _reproduction(run: Reproduction) -> list[Block]:
    by_attack = measured(run)
    printed = published().empirical.get(run.paper)
    ran = {attack: rows for attack, rows in by_attack.items() if any(row.counts for row in rows)}
    if not ran:
        return text("No attack is finished, so there is nothing to show.")
    caption = prose(
        "Robust accuracy of each method. Filled: this run, with its 95 % interval{paper}.",
        paper="; hollow: the paper" if printed else "",
    )
    charts = [_dots(attack, rows) for attack, rows in ran.items()]
    return [
        *unlike(run, *([printed.base] if printed else [])),
        _whole_table(by_attack, printed),
        *verdict([line for attack, rows in by_attack.items() if (line := _first(attack, rows))]),
        *_order(by_attack),
        Picture(f"{run.name}-methods", charts, caption),
        Fold(
            "Intervals, differences, and successes that vanish",
            [_details(attack, rows) for attack, rows in ran.items()],
        ),
    ]


def _dots(attack: str, rows: Sequence[Measured]) -> Dots:
    """Robust accuracy of each method: ours with its interval, and the paper's."""
    dots = []
    for row in rows:
        ours: tuple[float | None, float | None, float | None] = (None, None, None)
        if row.counts is not None and row.counts.texts:
            ours = robust_accuracy(row.counts)
        dots.append(Dot(row.method, *ours, row.printed.boa if row.printed else None))
    return Dots(
        title=ATTACKS.get(attack, attack),
        description="Robust accuracy of each method, in percent; the table has the figures.",
        x=percent_axis("robust accuracy (Boa), %"),
        rows=dots,
        names=("this run, 95 % interval", "paper"),
    )


# -- the order of the methods ------------------------------------------------------------------


def _order(by_attack: dict[str, list[Measured]]) -> list[Block]:
    """Sentences on where the order of the methods is the paper's."""
    said = [line for attack, rows in by_attack.items() if (line := _order_line(attack, rows))]
    if not said:
        return []
    quiet = """~ Where intervals overlap, an order may be luck: `ranmask compare` tests two methods
        on the same texts."""
    heading = Heading("Is the order of the methods the paper's?", 4)
    return [heading, Bullets(said), *text(quiet)]


def _both(rows: Sequence[Measured]) -> list[tuple[str, float, float]]:
    """Methods that both have, with our robust accuracy and the paper's."""
    return [
        (row.method, row.robust, row.printed.boa)
        for row in rows
        if row.robust is not None and row.printed is not None
    ]


def _correlations(runs: Sequence[Reproduction]) -> list[Block]:
    """How far the order of the methods is the paper's, of every table and attack at a glance."""
    rows: list[Sequence[Cell | str]] = []
    for run in runs:
        printed = published().empirical.get(run.paper)
        if printed is not None:
            cells = []
            for attack in printed.attacks:
                both = _both(measured(run)[attack])
                found = rank_correlation([one for _, one, _ in both], [one for *_, one in both])
                of = f"{len(both)} of {len(printed.methods)} methods"
                cells.append(NOTHING if found is None else Cell(share(found, 2), beside=of))
            rows.append((run.title, *cells))
    titles = ["<table", *ATTACKS.values()]
    caption = "Rank correlation of the methods' robust accuracies with the paper's"
    return [table(caption, titles, rows)] if len(rows) > 1 else []


def _first(attack: str, rows: Sequence[Measured]) -> str:
    """Who is first here and not in the paper; nothing where that agrees, or a method is missing."""
    both = _both(rows)
    if len(both) < 2 or not complete(rows):
        return ""
    ours = max(both, key=lambda one: one[1])
    theirs = max(both, key=lambda one: one[2])
    if ours[1] == theirs[1]:
        return ""
    return (
        f"Under {ATTACKS.get(attack, attack)} {ours[0]} is first with {ours[1]:.1f} %, and "
        f"{theirs[0]}, the paper's first ({theirs[2]:.1f} %), has {theirs[1]:.1f}."
    )


def _order_line(attack: str, rows: Sequence[Measured]) -> Prose:
    both = _both(rows)
    if len(both) < 2:
        return ()
    methods, ours, paper = zip(*both, strict=True)
    leaders, theirs = (
        " and ".join(
            method for method, value in zip(methods, values, strict=True) if value == max(values)
        )
        for values in (ours, paper)
    )
    top = f"{leaders} in both" if leaders == theirs else f"{leaders} here, {theirs} in the paper"
    correlation = rank_correlation(ours, paper)
    rank = "" if correlation is None else f", rank correlation {share(correlation, 2)}"
    same, compared = pairs_in_order(ours, paper)
    ties = math.comb(len(both), 2) - compared
    said = f"{same} of {compared} pairs {'is' if same == 1 else 'are'} in the paper's order{rank}"
    return prose(
        "**{attack}**, {methods} methods: {said}{ties}. {top}{moved}.",
        attack=ATTACKS.get(attack, attack),
        methods=len(both),
        said=said if compared else "no pair can be compared",
        ties=f"; in {ties} more, the two are equal in one of them" if ties else "",
        top=f"Most robust: {top}" if complete(rows) else f"Not run: {_listed(rows)}",
        moved=_moved(methods, ours, paper),
    )


def _listed(rows: Sequence[Measured]) -> str:
    missing = [row.method for row in rows if row.printed is not None and row.robust is None]
    return f"{', '.join(missing)}, so none is called the best"


def _moved(methods: Sequence[str], ours: Sequence[float], paper: Sequence[float]) -> str:
    """The method that is furthest from its place in the paper's order, where one is."""
    here, there = _ranks(ours), _ranks(paper)
    far = max(range(len(methods)), key=lambda place: abs(here[place] - there[place]))
    if abs(here[far] - there[far]) < 1:
        return ""
    last = len(methods) + 1
    return (
        f". Furthest from its place: {methods[far]}, {last - here[far]:g} of {len(methods)} here, "
        f"{last - there[far]:g} in the paper"
    )


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1 up, ties sharing theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's, ties sharing their ranks; None below three pairs, or where all are alike.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return statistics.correlation(_ranks(first), _ranks(second))


def pairs_in_order(first: Sequence[float], second: Sequence[float]) -> tuple[int, int]:
    """Pairs that both lists put in the same order, of those that neither ties.

    >>> pairs_in_order([1, 2, 3], [1, 3, 2])
    (2, 3)
    """
    pairs = combinations(zip(first, second, strict=True), 2)
    same = [(a < c) == (b < d) for (a, b), (c, d) in pairs if a != c and b != d]
    return sum(same), len(same)


# -- tables ------------------------------------------------------------------------------------


def _shares(counts: Attacks) -> list[tuple[int, int]]:
    """Cln, Boa and Succ, each as a part of a whole."""
    attempted = (counts.attempted, counts.texts)
    return [attempted, (counts.held, counts.texts), (counts.succeeded, counts.attempted)]


def _whole_table(by_attack: dict[str, list[Measured]], printed: EmpiricalTable | None) -> Table:
    best = {attack: _best(rows) for attack, rows in by_attack.items()}
    rows = [
        (
            under[0].method,
            *(
                cell
                for attack, row in zip(by_attack, under, strict=True)
                for cell in _three(row, best[attack])
            ),
        )
        for under in zip(*by_attack.values(), strict=True)
    ]
    beside = f"Small: the paper's figure ({printed.base}). " if printed else ""
    bold = (
        "Bold: the best, under attacks that all methods of the paper met. "
        if max(best.values()) > (0,)
        else ""
    )
    texts = [row.counts.texts for some in by_attack.values() for row in some if row.counts]
    size = f"{min(texts):,} texts each. "
    if min(texts) != max(texts):
        size = f"{min(texts):,} to {max(texts):,} texts: figures over other texts compare badly. "
    return table(
        "Cln, Boa and Succ, in percent",
        ["<method", *((ATTACKS.get(name, name), ("Cln", "Boa", "Succ")) for name in by_attack)],
        rows,
        [f"{beside}{bold}{size}Intervals are in the folded tables below."],
    )


def _best(rows: Sequence[Measured]) -> tuple[float, ...]:
    """The best Cln, Boa and Succ that were run; one alone is not the best of anything."""
    counted = [_shares(row.counts) for row in rows if row.counts is not None and row.counts.texts]
    if len(counted) < 2 or not complete(rows):
        return -1.0, -1.0, -1.0
    clean, robust, success = (
        [part / total for part, total in figure if total] for figure in zip(*counted, strict=True)
    )
    return max(clean), max(robust), min(success, default=-1.0)


def _three(row: Measured, best: tuple[float, ...]) -> list[Cell]:
    paper = ["", "", ""]
    if row.printed is not None:
        paper = [f"{value:.1f}" for value in (row.printed.cln, row.printed.boa, row.printed.succ)]
    if row.counts is None or not row.counts.texts:
        return [Cell("not run", beside=value, quiet=True) for value in paper]
    return [
        Cell(
            f"{100 * part / total:.1f}" if total else "–",
            beside=value,
            strong=bool(total) and part / total == top,
        )
        for (part, total), value, top in zip(_shares(row.counts), paper, best, strict=True)
    ]


def _details(attack: str, rows: Sequence[Measured]) -> Table:
    titles = ["<method", "texts", "Cln", "Boa", "Boa less paper's", "Succ", "gone"]
    return table(ATTACKS.get(attack, attack), titles, [(row.method, *_detail(row)) for row in rows])


def _detail(row: Measured) -> list[Cell]:
    counts = row.counts
    if counts is None:
        return [NOT_RUN] * 6
    moved = gone = NOTHING
    if row.printed is not None and row.robust is not None:
        moved = Cell(difference(row.robust - row.printed.boa))
    if counts.rechecked:
        gone = percent_cell(counts.vanished, counts.rechecked, counts.runs)
    runs = f" in {counts.runs} runs" if counts.runs > 1 else ""
    errors = f" (+{counts.errors} errors)" if counts.errors else ""
    clean, robust, success = (percent_cell(*part, counts.runs) for part in _shares(counts))
    return [Cell(f"{counts.texts}{runs}{errors}"), clean, robust, moved, success, gone]

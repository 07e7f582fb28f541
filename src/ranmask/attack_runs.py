"""Attacks over files: outcomes written as they come, resumed where they stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ranmask import __version__
from ranmask.attacks.engine import Engine, Target
from ranmask.attacks.outcome import AttackOutcome
from ranmask.attacks.summary import AttackSummary, summarise
from ranmask.data import Row
from ranmask.runs import ResultFile, label_id, run_description

_UNKNOWN_CLASSES = 10**6  # a function does not say how many classes it has before it is asked


def targets(rows: Iterable[Row], labels: tuple[str, ...] | None) -> Iterator[Target]:
    """Rows as texts to attack; one that cannot be used carries its error along."""
    for row in rows:
        label, error = None, row.error
        if error is None and row.label is None:
            error = "no label: an attack needs to know the right one"
        elif error is None:
            classes = _UNKNOWN_CLASSES if labels is None else len(labels)
            label = label_id(row.label, labels, classes)
            if label is None:
                names = ", ".join(labels) if labels else "numbers from 0"
                error = f"unknown label {row.label!r}: the classes are {names}"
        yield Target(row.number, row.text, label, error)


def attack_description(engine: Engine, source: dict[str, Any]) -> dict[str, Any]:
    """What the record of a run holds: everything that its outcomes depend on."""
    victim = engine.victim.description()
    return {
        **run_description("attack", source, victim, __version__),
        "recipe": engine.recipe.description(),
        "budget": engine.budget,
        "most_queries": engine.most_queries,
        "seed": engine.seed,
    }


def run_to_file(
    engine: Engine,
    rows: Iterable[Row],
    source: dict[str, Any],
    path: Path,
    *,
    started: Callable[[int], None] = lambda done: None,
    advance: Callable[[AttackOutcome], None] = lambda outcome: None,
) -> AttackSummary:
    """Attack rows and append each outcome to ``path``; the same call again goes on.

    ``started`` is told the last row that is in the file already, ``advance`` each new outcome.
    """
    with ResultFile(path, attack_description(engine, source)) as results:
        started(results.done)
        start = time.monotonic()
        todo = (row for row in rows if row.number > results.done)
        for outcome in engine.run(targets(todo, engine.victim.labels)):
            results.write([outcome.to_dict()])
            advance(outcome)
        summary = summarise(AttackOutcome.from_dict(line) for line in results.lines())
        # The pace of this sitting, which may be the last of several.
        seconds = time.monotonic() - start
        pace = {"copies_scored": engine.victim.copies_scored, "seconds": round(seconds, 1)}
        results.finish({**summary.values(), **pace})
    return summary

"""Attacks over files: outcomes written as they come, resumed where they stopped."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask import __version__
from ranmask.attacks.loop import AttackLoop, Target
from ranmask.attacks.outcome import AttackOutcome
from ranmask.attacks.summary import AttackSummary, summarise
from ranmask.data.rows import Row
from ranmask.runs.run import ResultFile, fingerprint, label_id, reported, run_description
from ranmask.runs.shards.folder import Manifest
from ranmask.runs.shards.merging import lines

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


def attack_description(engine: AttackLoop, source: dict[str, Any]) -> dict[str, Any]:
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
    engine: AttackLoop,
    rows: Iterable[Row],
    source: dict[str, Any],
    path: Path,
    *,
    labels: tuple[str, ...] | None = None,
    started: Callable[[int], None] = lambda done: None,
    advance: Callable[[AttackOutcome], None] = lambda outcome: None,
) -> AttackSummary:
    """Attack rows and append each outcome to ``path``, in their order; the same call again goes on.

    Texts attacked together finish in any order: those that are early wait in a file beside
    ``path``, so that a run that is killed loses only texts whose attack was not over.

    Args:
        engine: What attacks them.
        rows: The rows, each with its label.
        source: What the run's record says of them.
        path: The file of outcomes.
        labels: The names that rows give classes; by default the victim's.
        started: Told how many rows were done before.
        advance: Told each new outcome.
    """
    description = attack_description(engine, source)
    with ResultFile(path, description) as results:
        early = _Early(path, description)
        waiting = {row: one for row, one in early.read().items() if row > results.done}
        start = time.monotonic()
        all_rows = list(rows)
        todo = [row for row in all_rows if row.number > results.done]
        started(len(all_rows) - len(todo) + len(waiting))
        order = iter([row.number for row in todo])
        next_row = next(order, None)
        left = (row for row in todo if row.number not in waiting)
        fresh = engine.run(targets(left, labels or engine.victim.labels), in_order=False)
        for outcome in itertools.chain([None], fresh):
            if outcome is not None:
                waiting[outcome.number] = outcome
                if outcome.number != next_row:
                    early.write(outcome)
                advance(outcome)
            while next_row in waiting:
                results.write([waiting.pop(next_row).to_dict()])
                next_row = next(order, None)
        summary = summarise(AttackOutcome.from_dict(line) for line in results.lines())
        if todo:
            # The pace of this sitting, which may be the last of several.
            seconds = time.monotonic() - start
            pace = {"copies_scored": engine.victim.copies_scored, "seconds": round(seconds, 1)}
            results.finish({**summary.values(labels or engine.victim.labels), **pace})
        early.remove()
    return summary


@dataclass(frozen=True)
class AttackWork:
    """Rows of a shard to outcomes, in their order.

    The attacks of a shard run in lock-step with each other and with no others, so that an outcome
    depends on its shard and on nothing else.
    """

    engine: AttackLoop
    labels: tuple[str, ...] | None = None
    command: str = "attack"

    @property
    def description(self) -> Mapping[str, Any]:
        """What outcomes depend on; a model's last bits depend on who is attacked together."""
        return {**attack_description(self.engine, {}), "together": self.engine.together}

    def lines(self, rows: Sequence[Row]) -> Iterable[Mapping[str, Any]]:
        """One line for each row."""
        attacked = self.engine.run(targets(rows, self.labels or self.engine.victim.labels))
        return (outcome.to_dict() for outcome in attacked)


def summarise_shards(folder: Path, manifest: Manifest) -> AttackSummary:
    """The summary of a sharded run."""
    return summarise(AttackOutcome.from_dict(line) for line in lines(folder, manifest))


class _Early:
    """Outcomes that came before their turn, kept until the run is over."""

    def __init__(self, path: Path, description: Mapping[str, Any]) -> None:
        self.path = path.with_name(path.name + ".early")
        self._header = json.dumps({"run": fingerprint(description)}) + "\n"

    def read(self) -> dict[int, AttackOutcome]:
        """What an interrupted run left; nothing where it was another run's."""
        if not self.path.exists():
            return {}
        with reported(self.path):
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            if lines[:1] != [self._header]:
                self.path.unlink()
                return {}
            if not lines[-1].endswith("\n"):  # cut off with the run that wrote it
                lines.pop()
                self.path.write_text("".join(lines), encoding="utf-8")
        found = [AttackOutcome.from_dict(json.loads(line)) for line in lines[1:]]
        return {outcome.number: outcome for outcome in found}

    def write(self, outcome: AttackOutcome) -> None:
        """Append one, and hand it to the operating system at once."""
        with reported(self.path):
            new = not self.path.exists()
            with self.path.open("a", encoding="utf-8") as file:
                file.write((self._header if new else "") + json.dumps(outcome.to_dict()) + "\n")

    def remove(self) -> None:
        """Everything is in its place."""
        with reported(self.path):
            self.path.unlink(missing_ok=True)

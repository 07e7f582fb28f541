"""Attacks over files: outcomes written as they come, resumed where they stopped."""

from __future__ import annotations

import functools
import gc
import hashlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.attacks.api import AnyVictim, attack_loop
from ranmask.attacks.loop import Asking, AttackLoop, Target
from ranmask.attacks.outcome import AttackOutcome, AttackSummary
from ranmask.attacks.recipe import AttackRecipe
from ranmask.attacks.victims import GRID, Answers, Question
from ranmask.data.rows import Columns, Row, RowSource, file_rows
from ranmask.results.files import fingerprint, write_file, writing
from ranmask.runs.api import run
from ranmask.runs.result_file import ResultFile
from ranmask.runs.shards.folder import read_manifest
from ranmask.runs.shards.reading import folder_lines
from ranmask.runs.shards.run import Sharding
from ranmask.runs.stored import stored_lines
from ranmask.runs.task import Line, RunEvents, label_id, run_description, tell
from ranmask.words import Document

MakeLoop: TypeAlias = Callable[[], AttackLoop]

_FIRST = 8  # texts that are attacked before the others, and tell what those will take
_ASKED_AT_ONCE = 4096  # texts, between which a run that is killed loses nothing
_GARBAGE = 1 << 18  # objects, more than a round of attacks makes
_collecting = threading.Lock()
_before: list[tuple[int, int, int]] = []  # thresholds that runs have found: the first is the user's
_MOST_SAID = 1 << 26  # characters, before the file is tidied
_UNKNOWN_CLASSES = 10**6  # a function does not say how many classes it has before it is asked


def attack_file(
    victim: AnyVictim | Callable[[], AnyVictim],
    input: str | Path | RowSource,
    output: str | Path,
    recipe: str | AttackRecipe,
    *,
    columns: Columns | None = None,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
    **settings: Any,
) -> AttackSummary:
    """Attack every row of a file.  The same call again goes on where it stopped.

    Args:
        victim: As for `attack`.  Shards need a function without arguments that can be pickled and
            loads it: each worker calls it.
        input: A csv, tsv, jsonl or parquet file; or rows, each with its label.
        output: The file of outcomes, JSON lines; for shards, a folder.
        recipe: As for `attack`.
        columns: Where texts and labels stand in the file.
        sharding: Cut the input into shards for worker processes; docs/scale.md.
        events: Who is told of the cost, of progress and of rows that failed.
        settings: Those of `attack`: ``resources``, ``preset``, ``budget``, ``most_queries``,
            ``together`` and ``seed``.
    """
    make = functools.partial(_engine, victim, sharding is not None, recipe, **settings)
    source = input if isinstance(input, RowSource) else file_rows(input, columns)
    return attack_rows(make, source, Path(output), sharding=sharding, events=events)


def _engine(victim: Any, called: bool, recipe: str | AttackRecipe, **settings: Any) -> AttackLoop:
    return attack_loop(victim() if called else victim, recipe, **settings)


def attack_rows(
    engine: AttackLoop | MakeLoop,
    source: RowSource,
    output: Path,
    *,
    labels: Sequence[str] | None = None,
    sharding: Sharding | None = None,
    events: RunEvents | None = None,
) -> AttackSummary:
    """As `attack_file`, with an engine, or a function that makes one.

    ``labels``: the names that rows give classes; by default the victim's, else the data's.
    """
    make = functools.partial(_task, engine, tuple(labels or ()), tuple(source.label_names or ()))
    with rare_collections():
        summary = run(make, source, output, sharding=sharding, events=events)
    return summary if isinstance(summary, AttackSummary) else summarise_folder(output)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Search for garbage seldom: a round makes many objects that live on, and hardly any cycle.

    For the whole process; the last to leave, of several threads too, puts back what was before.
    """
    with _collecting:
        _before.append(gc.get_threshold())
        gc.set_threshold(_GARBAGE)
    try:
        yield
    finally:
        with _collecting:
            before = _before.pop()
            if not _before:
                gc.set_threshold(*before)


def _task(
    engine: AttackLoop | MakeLoop, labels: tuple[str, ...], of_data: tuple[str, ...]
) -> AttackTask:
    made = engine if isinstance(engine, AttackLoop) else engine()
    return AttackTask(made, labels or made.victim.labels or of_data or None)


class AttackTask:
    """Rows to outcomes, in their order.

    The attacks of a shard run in lock-step with each other and with no others, so that an outcome
    depends on its shard and on nothing else.  ``labels``: the names that rows give classes.
    """

    command = "attack"
    record = AttackOutcome
    measured_rows = _FIRST

    def __init__(self, engine: AttackLoop, labels: tuple[str, ...] | None = None) -> None:
        self.engine = engine
        self.labels = labels or engine.victim.labels
        self._seconds = 0.0

    def description(self, *, sharded: bool = False) -> dict[str, Any]:
        """What outcomes depend on; in shards last bits depend on who is attacked together."""
        engine, surrogate = self.engine, self.engine.surrogate
        return {
            **run_description("attack", engine.victim.description()),
            "recipe": engine.recipe.description(),
            **({} if surrogate is None else {"surrogate": surrogate.description()}),
            "budget": engine.budget,
            "most_queries": engine.most_queries,
            "seed": engine.seed,
            **({"together": engine.together} if sharded else {}),
        }

    def summary(self) -> AttackSummary:
        """An empty summary."""
        return AttackSummary(labels=self.labels)

    def lines(self, rows: Sequence[Row]) -> Iterable[Line]:
        """One line for each row of a shard."""
        with rare_collections():  # in a worker
            outcomes = list(self.engine.run(targets(rows, self.labels)))
        pairs = zip(rows, outcomes, strict=True)
        return ({**outcome.to_dict(), **row.kept_values()} for row, outcome in pairs)

    def groups(
        self, rows: Iterable[Row], results: ResultFile, events: RunEvents
    ) -> Iterator[list[Line]]:
        """Outcomes as their turns come.

        Texts attacked together finish in any order: those that are early wait in a file beside
        that of the results, and what the victim said of those under attack in another, so that a
        run that is killed loses a moment's work.
        """
        start, todo = time.monotonic(), list(rows)
        early = _Early(results.path, results.description)
        said = _Said(results.path, results.description)
        kept = {row.number: row.kept_values() for row in todo}
        waiting = {row: line for row, line in early.read().items() if row in kept}
        events.progress(len(waiting))
        order = iter([row.number for row in todo])
        next_row = next(order, None)
        left = [row for row in todo if row.number not in waiting]
        said.read(row.number for row in left)
        self.engine.recalling = said.answers
        first = _FIRST if len(left) > 2 * _FIRST else None
        fresh = self.engine.run(targets(left, self.labels), in_order=False, first=first)
        for outcome in itertools.chain([None], fresh):
            if outcome is not None:
                line = {**outcome.to_dict(), **kept[outcome.number]}
                waiting[outcome.number] = line
                said.left.discard(outcome.number)
                if outcome.number != next_row:
                    early.write(line)
                tell(events, [line])
            while next_row in waiting:
                yield [waiting.pop(next_row)]
                next_row = next(order, None)
        early.remove()
        said.remove()
        self.engine.recalling = None
        self._seconds = time.monotonic() - start

    def effort(self) -> dict[str, Any]:
        """The pace of this sitting, which may be the last of several."""
        scored = self.engine.victim.copies_scored
        return {"copies_scored": scored, "seconds": round(self._seconds, 1)}


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


def summarise_folder(folder: Path) -> AttackSummary:
    """The summary of a sharded run."""
    manifest = read_manifest(folder)
    summary = AttackSummary(labels=manifest.labels)
    summary.add(folder_lines(folder, manifest))
    return summary


def read_outcomes(path: Path) -> Iterator[AttackOutcome]:
    """What became of each row, in their order, from the file or the folder of a run."""
    return map(AttackOutcome.from_dict, stored_lines(path))


class _Beside:
    """A file beside that of the results, of one run only, kept until that is over."""

    suffix: ClassVar[str]

    def __init__(self, path: Path, description: Mapping[str, Any]) -> None:
        self.path = path.with_name(path.name + self.suffix)
        self._header = json.dumps({"run": fingerprint(description)})

    def lines(self) -> list[str]:
        """What an interrupted run left; nothing where it was another run's."""
        if not self.path.exists():
            return []
        with writing(self.path):
            *lines, cut_off = self.path.read_text(encoding="utf-8").split("\n")
            if lines[:1] != [self._header]:
                self.path.unlink()
                return []
            if cut_off:  # with the run that wrote it
                self.path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return lines[1:]

    def append(self, lines: Iterable[str]) -> None:
        """Write lines, and hand them to the operating system at once."""
        with writing(self.path, resumed=True):
            begun = [] if self.path.exists() else [self._header]
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n".join([*begun, *lines, ""]))

    def remove(self) -> None:
        """Everything is in its place."""
        with writing(self.path):
            self.path.unlink(missing_ok=True)


class _Early(_Beside):
    """Lines that came before their turn."""

    suffix = ".early"

    def read(self) -> dict[int, Line]:
        """By their rows."""
        return {line["row"]: line for line in map(json.loads, self.lines())}

    def write(self, line: Line) -> None:
        """Keep one."""
        self.append([json.dumps(line)])


class _Said(_Beside):
    """What the victim said of texts under attack: a search that begins again need not ask again."""

    suffix = ".said"

    def read(self, rows: Iterable[int]) -> None:
        """Recall what was said for some rows, those that are left."""
        self.left, self._room = set(rows), _MOST_SAID
        self._known: dict[tuple[int, str], list[float]] = {}
        for row, text, *said in map(json.loads, self.lines()):
            if row in self.left:
                self._known[row, text] = said

    def _write(self, lines: Sequence[str]) -> None:
        """Append; what was said of rows that are done is left out when there is much of it."""
        self._room -= sum(map(len, lines))
        if self._room >= 0:
            self.append(lines)
            return
        kept = [line for line in self.lines() if json.loads(line)[0] in self.left]
        self._room = max(_MOST_SAID, sum(map(len, kept)))
        write_file(self.path, "\n".join([self._header, *kept, *lines, ""]))

    def answers(self, ask: Asking, questions: Sequence[Question]) -> Answers:
        """All answers; the victim is asked only about what is new, so much at a time."""
        keys = [(asked.attempt, _digest(asked.text)) for asked in questions]
        said = [self._known.get(key) for key in keys]
        new = [place for place, known in enumerate(said) if known is None]
        for start in range(0, len(new), _ASKED_AT_ONCE):
            some = new[start : start + _ASKED_AT_ONCE]
            labels, shares = ask([questions[place] for place in some])
            points: npt.NDArray[Any] = shares / GRID
            if (points == np.rint(points)).all():
                points = points.astype(np.int64)  # shorter to write
            lines = []
            for place, label, own in zip(some, labels.tolist(), points.tolist(), strict=True):
                said[place] = [label, *own]
                row, digest = keys[place]
                lines.append(f'[{row},"{digest}",{label},{str(own)[1:]}')
            self._write(lines)
        table = np.array(said, dtype=np.float64)
        return Answers(table[:, 0].astype(np.int64), table[:, 1:] * GRID)


def _digest(text: Document) -> str:
    spelt = "\0".join((text.premise or "", *text.words)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(spelt, digest_size=9).hexdigest()

"""A sharded run from start to end: shards out, files in, whatever happens to workers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranmask.data.rows import Row
from ranmask.errors import ClassifierError, OptionError
from ranmask.runs.shards.bad_rows import Isolation
from ranmask.runs.shards.folder import RunFolder
from ranmask.runs.shards.plan import Shard, shards
from ranmask.runs.shards.work import ROWS_AT_ONCE, Part, Refusal
from ranmask.runs.shards.workers import Answer, Engine, Lost, Piece, Survived

POISON = (
    "worker processes end whenever they work on this row, most likely for want of memory or by a "
    "crash of a library; the other rows of its shard are not affected"
)
"""What the line of such a row says."""

_DEATHS_OF_A_SHARD = 3
_DEATHS_IN_A_ROW = 20


@dataclass(frozen=True)
class Events:
    """Who is told how a run goes on.

    ``begun``: rows that were done before.  ``done``: rows that were finished now.  ``trouble``:
    what happened to a worker, in words.
    """

    begun: Callable[[int], None] = lambda rows: None
    done: Callable[[int], None] = lambda rows: None
    trouble: Callable[[str], None] = lambda why: None


def run_shards(
    rows: Iterable[Row],
    engine: Engine,
    path: Path,
    *,
    origin: Mapping[str, Any],
    shard_rows: int,
    threads: int = 1,
    expected_rows: int | None = None,
    events: Events | None = None,
) -> None:
    """Work on all rows, one Parquet file a shard, in the folder ``path``; the same call goes on.

    Shards that are there with the checksum that was recorded are not done again.  A worker's death
    costs the shard that it was working on, which is tried again; where that happens several times
    the rows that cause it are found and get a line with an error.

    Args:
        rows: The input, streamed; at most one shard for each worker and one more are in memory.
        engine: Who computes.
        path: The folder; made where it is missing.
        origin: What the manifest says of the input.
        shard_rows: Rows of a shard.
        threads: Threads of each worker; bytes may depend on it.
        expected_rows: How many rows there are at most.
        events: Who is told how it goes.
    """
    if shard_rows < 1:
        raise OptionError(f"shard_rows must be at least 1, not {shard_rows}")
    told = events or Events()
    report = engine.report()
    sharding = {"shard_rows": shard_rows, "rows_at_once": ROWS_AT_ONCE, "threads": threads}
    identity = {
        "run": {**report.description, "input": dict(origin)},
        "sharding": sharding,
        "versions": dict(report.versions),
    }
    with RunFolder(path, identity, expected_rows) as folder:
        told.begun(sum(part.rows for part in folder.done.values()))
        todo = _Todo(folder.done, shards(rows, shard_rows))
        _Run(engine, folder, told).finish(iter(todo))
        folder.finish(todo.seen)


class _Todo:
    """The shards that are not done; counts all of them."""

    def __init__(self, done: Mapping[int, object], cut: Iterator[Shard]) -> None:
        self._done = frozenset(done)
        self._cut = cut
        self.seen = 0

    def __iter__(self) -> Iterator[Shard]:
        for shard in self._cut:
            self.seen += 1
            if shard.number not in self._done:
                yield shard


class _Run:
    def __init__(self, engine: Engine, folder: RunFolder, told: Events) -> None:
        self._engine, self._folder, self._told = engine, folder, told
        self._again: deque[Piece] = deque()
        self._out = 0
        self._deaths: Counter[int] = Counter()
        self._deaths_in_a_row = 0
        self._isolations: dict[int, Isolation] = {}
        self._hopeless: list[int] = []

    def finish(self, todo: Iterator[Shard]) -> None:
        """Work until every shard is done, or nothing more can be done."""
        ahead = next(todo, None)
        while ahead is not None or self._again or self._out:
            while self._engine.idle and (self._again or ahead is not None):
                if self._again:
                    self._submit(self._again.popleft())
                elif ahead is not None:
                    self._submit(Piece(ahead.number, ahead.rows))
                    ahead = next(todo, None)  # read while the workers work
            answer = self._engine.wait()
            if answer is not None:
                self._out -= 1
                self._take(answer)
        if self._hopeless:
            names = ", ".join(map(str, sorted(self._hopeless)))
            raise ClassifierError(
                f"shards not done: {names}. Workers end when they work on all rows of such a "
                "shard, though on none of them alone, most likely for want of memory: use fewer "
                "workers, or another folder with fewer --shard-rows. The same command tries again"
            )

    def _submit(self, piece: Piece) -> None:
        self._out += 1
        self._engine.submit(piece)

    def _take(self, answer: Answer) -> None:
        piece, result = answer.piece, answer.result
        if isinstance(result, Refusal):
            raise result.error()
        if isinstance(result, Lost):
            self._lost(piece, result)
            return
        self._deaths_in_a_row = 0
        if isinstance(result, Part):
            self._isolations.pop(piece.shard, None)
            self._folder.add(piece.shard, result)
            self._told.done(result.rows)
        elif isinstance(result, Survived):
            self._isolations[piece.shard].survived(piece)
            self._go_on(self._isolations[piece.shard])

    def _lost(self, piece: Piece, lost: Lost) -> None:
        self._told.trouble(f"shard {piece.shard}: {lost.why}")
        if not lost.blamed:
            self._again.appendleft(piece)
            return
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _DEATHS_IN_A_ROW:
            raise ClassifierError(
                f"stopped: workers ended {_DEATHS_IN_A_ROW} times in a row before they were done, "
                f"last with: {lost.why}"
            )
        number = piece.shard
        if piece.trial:
            self._isolations[number].died(piece)
            self._go_on(self._isolations[number])
            return
        self._deaths[number] += 1
        if self._deaths[number] < _DEATHS_OF_A_SHARD:
            self._again.append(piece)
        elif number not in self._isolations:
            self._isolations[number] = Isolation(Shard(number, piece.rows))
            self._go_on(self._isolations[number])
        else:
            del self._isolations[number]
            self._hopeless.append(number)

    def _go_on(self, isolation: Isolation) -> None:
        self._again += isolation.take()
        if isolation.over:
            number, rows = isolation.shard.number, isolation.shard.rows
            marked = tuple(
                replace(row, error=POISON) if place in isolation.poison else row
                for place, row in enumerate(rows)
            )
            # Whole again: what the others are computed with is what it would be without trials.
            self._deaths[number] = 0
            self._again.append(Piece(number, marked))

"""A sharded run from start to end: shards out, files in, whatever happens to workers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranmask.data.rows import Row, RowSource
from ranmask.errors import ClassifierError, OptionError
from ranmask.runs.shards.bad_rows import Isolation
from ranmask.runs.shards.folder import ShardFolder
from ranmask.runs.shards.work import Job, Part, Piece, Refusal, Survived, pieces
from ranmask.runs.shards.workers import Answer, Lost, WorkerPool
from ranmask.runs.task import ROWS_AT_ONCE, RunEvents, Task

POISON = (
    "worker processes end whenever they work on this row, most likely for want of memory or by a "
    "crash of a library; the other rows of its shard are not affected"
)
"""What the line of such a row says."""

_DEATHS_OF_A_SHARD = 3
_DEATHS_IN_A_ROW = 20


@dataclass(frozen=True)
class Sharding:
    """How a run is cut into shards, and who computes them.

    ``rows``: of a shard.  ``engine``: ``local``, processes of this machine, or ``ray``.
    ``workers`` None: one process; with Ray as many as fit.  ``address``: of a Ray cluster; None:
    that of RAY_ADDRESS, else one on this machine.  ``cpus``: threads of each worker, on which its
    last bits may depend.  ``gpus``: of each Ray worker.
    """

    rows: int
    engine: str = "local"
    workers: int | None = None
    address: str | None = None
    cpus: int = 1
    gpus: float = 0

    def __post_init__(self) -> None:
        if self.engine not in ("local", "ray"):
            raise OptionError(f"engine must be local or ray, not {self.engine!r}")
        for name in ("rows", "workers", "cpus"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name} must be at least 1, not {value}")
        if self.gpus < 0:
            raise OptionError(f"gpus must be at least 0, not {self.gpus}")
        for name in ("address", "gpus"):
            if self.engine == "local" and getattr(self, name):
                raise OptionError(f"{name}={getattr(self, name)!r} goes with engine='ray'")

    def open(self, job: Job) -> WorkerPool:
        """The workers, started."""
        if self.engine == "local":
            from ranmask.runs.shards.local import LocalPool

            return LocalPool(job, self.workers or 1)
        from ranmask.runs.shards.ray import RayPool

        return RayPool(
            job, address=self.address, workers=self.workers, cpus=self.cpus, gpus=self.gpus
        )


def run_shards(
    make: Callable[[], Task],
    source: RowSource,
    path: Path,
    sharding: Sharding,
    events: RunEvents,
) -> None:
    """Work on all rows, one Parquet file a shard, in the folder ``path``; the same call goes on."""
    with sharding.open(Job(make, sharding.cpus)) as workers:
        run_with(
            workers,
            source.rows,
            path,
            origin=source.description,
            shard_rows=sharding.rows,
            threads=sharding.cpus,
            expected_rows=source.total,
            events=events,
        )


def run_with(
    workers: WorkerPool,
    rows: Iterable[Row],
    path: Path,
    *,
    origin: Mapping[str, Any],
    shard_rows: int,
    threads: int = 1,
    expected_rows: int | None = None,
    events: RunEvents | None = None,
) -> None:
    """As `run_shards`, with workers that are there.

    Shards that are there with the checksum that was recorded are not done again.  A worker's death
    costs the shard that it was working on, which is tried again; where that happens several times
    the rows that cause it are found and get a line with an error.  At most one shard for each
    worker, and one more, is in memory.
    """
    told = events or RunEvents()
    report = workers.report()
    sharding = {"shard_rows": shard_rows, "rows_at_once": ROWS_AT_ONCE, "threads": threads}
    identity = {
        "run": {**report.description, "input": dict(origin)},
        "sharding": sharding,
        "versions": dict(report.versions),
    }
    with ShardFolder(path, identity, expected_rows) as folder:
        told.started(expected_rows or 0, sum(part.rows for part in folder.done.values()))
        seen = 0

        def todo() -> Iterator[Piece]:
            nonlocal seen
            done = frozenset(folder.done)
            for shard in pieces(rows, shard_rows):
                seen += 1
                if shard.shard not in done:
                    yield shard

        _Run(workers, folder, told).finish(todo())
        folder.finish(seen)


class _Run:
    def __init__(self, workers: WorkerPool, folder: ShardFolder, told: RunEvents) -> None:
        self._workers, self._folder, self._told = workers, folder, told
        self._again: deque[Piece] = deque()
        self._out = 0
        self._deaths: Counter[int] = Counter()
        self._deaths_in_a_row = 0
        self._isolations: dict[int, Isolation] = {}
        self._hopeless: list[int] = []

    def finish(self, todo: Iterator[Piece]) -> None:
        """Work until every shard is done, or nothing more can be done."""
        ahead = next(todo, None)
        while ahead is not None or self._again or self._out:
            while self._workers.idle and (self._again or ahead is not None):
                if self._again:
                    self._submit(self._again.popleft())
                elif ahead is not None:
                    self._submit(ahead)
                    ahead = next(todo, None)  # read while the workers work
            answer = self._workers.wait()
            if answer is not None:
                self._out -= 1
                self._take(answer)
        if self._hopeless:
            names = ", ".join(map(str, sorted(self._hopeless)))
            raise ClassifierError(
                f"shards not done: {names}. Workers end when they work on all rows of such a "
                "shard, though on none of them alone, most likely for want of memory: use fewer "
                "workers, or another folder with fewer rows to a shard. Run it again to try again"
            )

    def _submit(self, piece: Piece) -> None:
        self._out += 1
        self._workers.submit(piece)

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
            for row, why in result.failed:
                self._told.failed(row, why)
            self._told.progress(result.rows)
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
            self._isolations[number] = Isolation(piece)
            self._go_on(self._isolations[number])
        else:
            del self._isolations[number]
            self._hopeless.append(number)

    def _go_on(self, isolation: Isolation) -> None:
        self._again += isolation.take()
        if isolation.over:
            marked = tuple(
                replace(row, error=POISON) if place in isolation.poison else row
                for place, row in enumerate(isolation.shard.rows)
            )
            # Whole again: what the others are computed with is what it would be without trials.
            self._deaths[isolation.shard.shard] = 0
            self._again.append(Piece(isolation.shard.shard, marked))

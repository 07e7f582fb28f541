"""A sharded run from start to end: shards out, files in, whatever happens to workers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ranmask.data.rows import RowSource, arrow
from ranmask.errors import ClassifierError, OptionError, RanmaskError
from ranmask.runs.cost import endpoint_cost
from ranmask.runs.shards.bad_rows import Isolation
from ranmask.runs.shards.folder import ShardFolder
from ranmask.runs.shards.work import Job, Piece, pieces
from ranmask.runs.shards.workers import Answer, Lost, WorkerPool
from ranmask.runs.task import ASKED_AGAIN, ROWS_AT_ONCE, RunEvents, Task

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


def run_shards(
    make: Callable[[], Task], source: RowSource, path: Path, sharding: Sharding, events: RunEvents
) -> None:
    """Work on all rows, one Parquet file a shard, in the folder ``path``; the same call goes on."""
    arrow()  # or it would be missed when the first shard is done
    job = Job(make, sharding.cpus)
    workers: WorkerPool
    if sharding.engine == "local":
        from ranmask.runs.shards.local import LocalPool

        workers = LocalPool(job, sharding.workers or 1)
    else:
        from ranmask.runs.shards.ray import RayPool

        workers = RayPool(
            job,
            address=sharding.address,
            workers=sharding.workers,
            cpus=sharding.cpus,
            gpus=sharding.gpus,
        )
    with workers:
        run_with(workers, source, path, sharding, events)


def run_with(
    workers: WorkerPool, source: RowSource, path: Path, sharding: Sharding, events: RunEvents
) -> None:
    """As `run_shards`, with workers that are there.

    Shards that are there with the checksum that was recorded are not done again.  A worker's death
    costs the shard that it was working on, which is tried again; where that happens several times
    the rows that cause it are found and get a line with an error.  At most one shard for each
    worker, and one more, is in memory.
    """
    report = workers.report()
    identity = {
        "run": {**report.description, "input": source.description},
        "sharding": {
            "shard_rows": sharding.rows,
            "rows_at_once": ROWS_AT_ONCE,
            "threads": sharding.cpus,
        },
        "versions": dict(report.versions),
    }
    with ShardFolder(path, identity, source.total) as folder:
        done = sum(part.rows for part in folder.done.values())
        events.started(source.total, done)
        sent = endpoint_cost(report.description["classifier"], source.total - done)
        if sent is not None:
            events.cost(sent)
        if folder.unread:
            events.trouble(ASKED_AGAIN.format(rows=folder.unread))
        seen = 0

        def todo() -> Iterator[Piece]:
            nonlocal seen
            known = frozenset(folder.done)
            for shard in pieces(source.rows, sharding.rows):
                seen += 1
                if shard.shard not in known:
                    yield shard

        _Run(workers, folder, events).finish(todo())
        folder.finish(seen)


class _Run:
    def __init__(self, workers: WorkerPool, folder: ShardFolder, events: RunEvents) -> None:
        self._workers, self._folder, self._events = workers, folder, events
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
                self._out += 1
                if self._again:
                    self._workers.submit(self._again.popleft())
                elif ahead is not None:
                    self._workers.submit(ahead)
                    ahead = next(todo, None)  # read while the workers work
            if (heard := self._workers.wait()) is not None:
                self._out -= 1
                self._take(*heard)
        if self._hopeless:
            names = ", ".join(map(str, sorted(self._hopeless)))
            raise ClassifierError(
                f"shards not done: {names}. Workers end when they work on all rows of such a "
                "shard, though on none of them alone, most likely for want of memory: use fewer "
                "workers, or another folder with fewer rows to a shard. Run it again to try again"
            )

    def _take(self, piece: Piece, answer: Answer) -> None:
        if isinstance(answer, RanmaskError):
            raise answer
        if isinstance(answer, Lost):
            self._lost(piece, answer)
            return
        self._deaths_in_a_row = 0
        if answer is None:
            self._isolations[piece.shard].survived()
            self._go_on(self._isolations[piece.shard])
            return
        self._isolations.pop(piece.shard, None)
        self._folder.add(answer)
        if answer.warned:
            first, *others = answer.warned
            more = f" (and {len(others)} more warnings)" if others else ""
            self._events.trouble(f"shard {piece.shard}: {first}{more}")
        for row, why in answer.failed:
            self._events.failed(row, why)
        self._events.progress(answer.record.rows)

    def _lost(self, piece: Piece, lost: Lost) -> None:
        self._events.trouble(f"shard {piece.shard}: {lost.why}")
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

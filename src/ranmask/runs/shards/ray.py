"""Workers as actors of a Ray cluster: a protocol for `run`, and nothing of its own to compute.

The driver reads the input and writes the files; actors get rows and return the bytes of a file,
so that machines need no folder in common.  An actor on a machine that went away costs nothing but
time: its shard is done by another, and its place waits until the cluster has room again.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ranmask.data.rows import Row
from ranmask.errors import MissingDependencyError, ModelError, OptionError, RanmaskError
from ranmask.runs.shards.work import (
    Job,
    Part,
    Refusal,
    Report,
    Workshop,
    prepare_process,
    thread_limits,
)
from ranmask.runs.shards.workers import Answer, Lost, Piece, Survived, check_alike

_FAILED_STARTS = 3
_SECONDS_TO_CONNECT = 10.0


@dataclass(frozen=True)
class Cluster:
    """Which Ray cluster, and what each of its workers needs.

    ``address`` None: the cluster in ``RAY_ADDRESS``, else one that is started on this machine.
    ``workers`` None: as many as fit when the run begins.
    """

    address: str | None = None
    workers: int | None = None
    cpus: int = 1
    gpus: float = 0


@dataclass(frozen=True)
class _Begun:
    report: Report
    node: str


class _Actor:
    """What runs on the cluster."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._workshop: Workshop | None = None

    def load(self) -> _Begun | Refusal:
        import ray

        prepare_process(self._job)
        try:
            self._workshop = Workshop(self._job.make)
        except RanmaskError as error:
            return Refusal.of(error)
        return _Begun(self._workshop.report, ray.get_runtime_context().get_node_id())

    def part(self, rows: Sequence[Row]) -> Part | Refusal:
        assert self._workshop is not None
        return self._workshop.part(rows)

    def survives(self, rows: Sequence[Row]) -> Survived:
        assert self._workshop is not None
        self._workshop.survives(rows)
        return Survived()


class _Place:
    """One place for an actor, and what was asked of the actor in it."""

    def __init__(self) -> None:
        self.actor: Any = None
        self.asked: Any = None
        self.node: str | None = None
        self.piece: Piece | None = None


class RayEngine:
    """Actors on a Ray cluster.  Close it, or use it as a context manager."""

    def __init__(self, job: Job, cluster: Cluster) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingDependencyError("Ray", "ray") from error
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            self._connect(cluster.address)
        self._first: Report | None = None
        self._failed_starts = 0
        self._places: list[_Place] = []
        try:
            self._start(job, cluster)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _connect(self, address: str | None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Without GPUs, an actor sees none: what Ray will do by itself, and warns about.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        named = address or os.environ.get("RAY_ADDRESS")
        if not named:
            self._ray.init(address="local", include_dashboard=False, **quiet)
            return
        try:
            _knock(named)
            self._ray.init(address=named, **quiet)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise OptionError(f"cannot reach the Ray cluster at {named}: {error}") from error

    def _start(self, job: Job, cluster: Cluster) -> None:
        workers = cluster.workers or self._room(cluster)
        if workers < 1:
            raise OptionError(
                f"no worker with {cluster.cpus} CPUs and {cluster.gpus:g} GPUs fits into the Ray "
                "cluster as it is: ask for less, or give --workers to wait for machines"
            )
        # Environment variables, because libraries are loaded before an actor's first line.
        self._kind = self._ray.remote(
            num_cpus=cluster.cpus,
            num_gpus=cluster.gpus,
            max_restarts=0,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": thread_limits(job.threads)},
        )(_Actor)
        self._job = self._ray.put(job)
        self._places = [_Place() for _ in range(workers)]
        for place in self._places:
            self._fill(place)

    def _room(self, cluster: Cluster) -> int:
        """How many workers fit, machine by machine."""
        fitting = 0
        for node in self._ray.nodes():
            if node["Alive"]:
                has = node["Resources"]
                room = [int(has.get("CPU", 0) // cluster.cpus)]
                if cluster.gpus:
                    room.append(int(has.get("GPU", 0) / cluster.gpus))
                fitting += min(room)
        return fitting

    def report(self) -> Report:
        """What the first worker says of itself; waits for it."""
        while self._first is None:
            answer = self.wait()
            assert answer is None, "nothing was submitted"
        return self._first

    @property
    def idle(self) -> int:
        """Workers that wait for a piece."""
        return sum(place.asked is None for place in self._places)

    def submit(self, piece: Piece) -> None:
        """Hand a piece to an idle worker."""
        place = next(one for one in self._places if one.asked is None)
        place.piece = piece
        method = place.actor.survives if piece.trial else place.actor.part
        place.asked = method.remote(piece.rows)

    def wait(self) -> Answer | None:
        """Wait for an answer, or (None) until the number of idle workers may have changed."""
        asked = {place.asked: place for place in self._places if place.asked is not None}
        [heard], _ = self._ray.wait(list(asked), num_returns=1)
        place = asked[heard]
        piece, place.asked, place.piece = place.piece, None, None
        try:
            said = self._ray.get(heard)
        except self._ray.exceptions.RayTaskError as error:
            # A bug, or a GPU in an unknown state: a new process begins afresh.
            return self._lost(place, piece, f"its worker ended with an error\n{error}")
        except self._ray.exceptions.RayError as error:
            # The actor is gone, or what it returned is, with the machine that held it.
            return self._lost(place, piece, str(error).strip().splitlines()[-1].strip())
        if piece is not None:
            return Answer(piece, said)
        if isinstance(said, Refusal):
            raise said.error()
        if self._first is None:
            self._first = said.report
        check_alike(self._first, said.report)
        place.node, self._failed_starts = said.node, 0
        return None

    def close(self) -> None:
        """End all workers, and the cluster where it was started here."""
        for place in self._places:
            with contextlib.suppress(Exception):  # gone already, or the cluster is
                self._ray.kill(place.actor)
        if self._ours:
            self._ray.shutdown()

    def _fill(self, place: _Place) -> None:
        place.actor = self._kind.remote(self._job)
        place.asked, place.node = place.actor.load.remote(), None

    def _lost(self, place: _Place, piece: Piece | None, why: str) -> Answer | None:
        blamed = place.node is None or self._alive(place.node)
        if piece is None and blamed:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise ModelError(
                    f"{_FAILED_STARTS} workers in a row ended while they loaded the model, most "
                    f"likely for want of memory: use fewer workers. The last: {why}"
                )
        with contextlib.suppress(Exception):  # most often it is gone already
            self._ray.kill(place.actor)
        self._fill(place)
        return None if piece is None else Answer(piece, Lost(why, blamed))

    def _alive(self, node: str) -> bool:
        return any(one["NodeID"] == node and one["Alive"] for one in self._ray.nodes())


def _knock(address: str) -> None:
    """Raise `OSError` where nobody listens: Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()

"""Workers as actors of a Ray cluster.

The driver reads the input and writes the files; actors get rows and return the bytes of a file,
so that machines need no folder in common.  An actor on a machine that went away costs nothing but
time: its shard is done by another, and its place waits until the cluster has room again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from typing import Any

from ranmask.errors import MissingDependencyError, OptionError, RanmaskError
from ranmask.runs.shards.work import (
    Job,
    Part,
    Piece,
    Report,
    Worker,
    prepare_process,
    thread_limits,
)
from ranmask.runs.shards.workers import Lost, Place, WorkerPool

_SECONDS_TO_CONNECT = 10.0
_NO_LIMIT = 10**9


class _Actor:
    """What runs on the cluster."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._worker: Worker | None = None

    def load(self) -> tuple[Report | RanmaskError, str]:
        """What a worker says of itself, and the machine that it is on."""
        import ray

        prepare_process(self._job)
        node = ray.get_runtime_context().get_node_id()
        try:
            self._worker = Worker(self._job)
        except RanmaskError as error:
            return error, node
        return self._worker.report, node

    def answer(self, piece: Piece) -> Part | RanmaskError | None:
        assert self._worker is not None
        return self._worker.answer(piece)


class _ActorPlace(Place):
    """A place for an actor, and what was asked of the actor in it."""

    actor: Any = None
    asked: Any = None
    node: str | None = None


class RayPool(WorkerPool):
    """Actors on a Ray cluster.

    ``address`` None: the cluster in ``RAY_ADDRESS``, else one that is started on this machine.
    ``workers`` None: as many as fit when the run begins.
    """

    def __init__(
        self, job: Job, *, address: str | None, workers: int | None, cpus: int = 1, gpus: float = 0
    ) -> None:
        super().__init__()
        try:
            import ray
        except ImportError as error:
            raise MissingDependencyError("Ray", "ray") from error
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            with _own_sigterm():
                self._connect(address)
        try:
            workers = workers or self._room(cpus, gpus)
            if workers < 1:
                raise OptionError(
                    f"no worker with {cpus} CPUs and {gpus:g} GPUs fits into the Ray cluster as it "
                    "is: ask for less, or give workers to wait for machines"
                )
            # Environment variables, because libraries are loaded before an actor's first line.
            self._kind = ray.remote(
                num_cpus=cpus,
                num_gpus=gpus,
                max_restarts=0,
                scheduling_strategy="SPREAD",
                runtime_env={"env_vars": thread_limits(job.threads)},
            )(_Actor)
            self._job = ray.put(job)
            self.places = [_ActorPlace(number) for number in range(workers)]
            for place in self.places:
                self._start(place)
        except BaseException:
            self.close()
            raise

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

    def _room(self, cpus: int, gpus: float) -> int:
        """How many workers fit, machine by machine."""
        return sum(
            min(
                int(node["Resources"].get("CPU", 0) // cpus),
                int(node["Resources"].get("GPU", 0) / gpus) if gpus else _NO_LIMIT,
            )
            for node in self._ray.nodes()
            if node["Alive"]
        )

    def _start(self, place: _ActorPlace) -> None:
        with contextlib.suppress(Exception):  # most often it is gone already
            self._ray.kill(place.actor)
        place.actor = self._kind.remote(self._job)
        place.asked, place.node = place.actor.load.remote(), None

    def _ask(self, place: _ActorPlace) -> None:
        place.asked = place.actor.answer.remote(place.piece)

    def _hear(self) -> tuple[_ActorPlace, Any]:
        asked = {place.asked: place for place in self.places if place.asked is not None}
        [heard], _ = self._ray.wait(list(asked), num_returns=1)
        place = asked[heard]
        place.asked = None
        try:
            said = self._ray.get(heard)
        except self._ray.exceptions.RayTaskError as error:
            # A bug, or a GPU in an unknown state: a new process begins afresh.
            return place, self._lost(place, f"its worker ended with an error\n{error}")
        except self._ray.exceptions.RayError as error:
            # The actor is gone, or what it returned is, with the machine that held it.
            return place, self._lost(place, str(error).strip().splitlines()[-1].strip())
        if not place.ready:
            said, place.node = said
        return place, said

    def close(self) -> None:
        """End all actors, and the cluster where it was started here."""
        for place in self.places:
            with contextlib.suppress(Exception):  # gone already, or the cluster is
                self._ray.kill(place.actor)
        if self._ours:
            self._ray.shutdown()

    def _lost(self, place: _ActorPlace, why: str) -> Lost:
        alive = any(node["NodeID"] == place.node and node["Alive"] for node in self._ray.nodes())
        return Lost(why, blamed=place.node is None or alive)


@contextlib.contextmanager
def _own_sigterm() -> Any:
    """Ray replaces the handler of SIGTERM: put back what was there."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if main else None
    yield
    if before is not None:
        signal.signal(signal.SIGTERM, before)


def _knock(address: str) -> None:
    """Raise `OSError` where nobody listens: Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()

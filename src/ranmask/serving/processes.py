"""Several processes behind one port: each a whole service, started and watched by this one.

A process answers with one core and a half at most, for Python runs one thread at a time.  On a CPU
with more of them, several processes answer more; each loads the models for itself.  The operating
system deals out the connections evenly (``SO_REUSEPORT``), which it does not where processes accept
from one socket, as with uvicorn's own supervisor; that one also ends the whole service where the
replacement of a process cannot start.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any

from ranmask.errors import ModelError, OptionError, RanmaskError
from ranmask.serving.keys import read_keys
from ranmask.serving.running import listener_on, serve_on, shown_url
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.telemetry import RESTARTS, SHARED_FIGURES, forget_process, log, log_to

_RESTART_SECONDS = 2.0
_LOOK_SECONDS = 0.5
_AFTER_DEADLINE_SECONDS = 20.0  # a process that has not ended by then is killed


class Supervisor:
    """Keeps processes at work, a thread for each, and ends them all when it is told to."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._ending = threading.Event()
        self._lock = threading.RLock()  # signals come in between; it guards all that follows
        self._children: list[SpawnProcess] = []
        self._ready: list[SpawnProcess] = []
        self._outdated: set[SpawnProcess] = set()  # to read keys and models again, once ready
        self._listening = False
        self._replaced = 0

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; raises what keeps the first processes from starting."""
        kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = [signal.signal(kind, self._told) for kind in kinds]
        settings = self._settings
        patience = settings.deadline_seconds + settings.drain_seconds + _AFTER_DEADLINE_SECONDS
        try:
            with ThreadPoolExecutor(settings.processes) as threads:
                kept = [threads.submit(self._keep) for _ in range(settings.processes)]
                # Python hears a signal that comes just before a thread waits only when it wakes.
                while not self._ending.wait(_LOOK_SECONDS):
                    pass
                # Nothing new, unless one of them could not start.
                self._send(signal.SIGTERM, self._children)
                if wait(kept, patience).not_done:
                    log("processes killed", processes=[child.pid for child in self._children])
                    self._send(signal.SIGKILL, self._children)
            for done in kept:
                done.result()
        finally:
            for kind, handler in zip(kinds, before, strict=True):
                signal.signal(kind, handler)
        log("ended")

    def _keep(self) -> None:
        """Start a process, and another when it has died, until all are to end."""
        try:
            while (child := self._started()) is not None:
                failure = self._news_of(*child)
                self._bury(child[0], failure)
                self._ending.wait(_RESTART_SECONDS)
        finally:
            self._ending.set()

    def _started(self) -> tuple[SpawnProcess, connection.Connection[Any, Any]] | None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_serve_one, args=(self._settings, theirs))
        with self._lock, theirs:
            if self._ending.is_set():
                return None
            child.start()
            self._children.append(child)
        return child, ours

    def _news_of(
        self, child: SpawnProcess, news: connection.Connection[Any, Any]
    ) -> RanmaskError | None:
        """Wait until a process has ended; what it said if it could not start."""
        with news:
            try:
                said = news.recv()
            except EOFError:  # it died
                said = None
        if isinstance(said, list):
            log("process ready", pid=child.pid)
            with self._lock:
                self._ready.append(child)
                if child in self._outdated:
                    self._send(signal.SIGHUP, [child])
                if len(self._ready) == self._settings.processes and not self._listening:
                    self._listening = True
                    url = shown_url(self._settings.host, self._settings.port)
                    pids = [one.pid for one in self._ready]
                    log("listening", url=url, models=said, processes=pids)
        connection.wait([child.sentinel])
        return said if isinstance(said, RanmaskError) else None

    def _bury(self, child: SpawnProcess, failure: RanmaskError | None) -> None:
        with self._lock:
            child.join()
            self._children.remove(child)
            self._outdated.discard(child)
            if child in self._ready:
                self._ready.remove(child)
            forget_process(child.pid)
            if self._ending.is_set():
                return
            code = child.exitcode
            if not self._listening:
                raise failure or ModelError(
                    f"a process of the service ended with {code} before it was ready: see the log; "
                    "fewer --processes need less memory"
                )
            reason = None if failure is None else str(failure)
            log("process died", logging.ERROR, pid=child.pid, exit_code=code, reason=reason)
            self._replaced += 1
            os.environ[RESTARTS] = str(self._replaced)

    def _told(self, kind: int, _: FrameType | None) -> None:
        with self._lock:
            if kind == signal.SIGHUP:
                self._outdated.update(self._children)
                self._send(kind, self._ready)
            else:
                self._send(kind, self._children)
                self._ending.set()

    def _send(self, kind: int, children: Sequence[SpawnProcess]) -> None:
        with self._lock:  # none of them is forgotten by the system meanwhile
            for child in children:
                if child.pid is not None:
                    os.kill(child.pid, kind)


def serve(settings: ServiceSettings) -> None:
    """Serve until SIGTERM or SIGINT; every request that was accepted by then is answered.

    In this process, or in several of its own, which share the cores, unless ``OMP_NUM_THREADS``
    says otherwise.  The log goes to standard error, one JSON object a line; ``listening`` has the
    address.
    """
    log_to(texts=settings.log_texts)
    read_keys(settings)  # what is wrong with them, or with the port, is told before models load
    number = settings.processes
    if number > 1 and not hasattr(socket, "SO_REUSEPORT"):
        raise OptionError(f"this system cannot share a port: leave --processes {number} out")
    with listener_on(settings.host, settings.port) as listener:
        if number == 1:
            url = shown_url(*listener.getsockname()[:2])
            serve_on(listener, settings, lambda names: log("listening", url=url, models=names))
            log("ended")
            return
    with (
        tempfile.TemporaryDirectory() as figures,
        # Held, but not listened on, for the others.
        listener_on(settings.host, settings.port, shared=True) as held,
    ):
        os.environ[SHARED_FIGURES] = figures
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // number)))
        try:
            Supervisor(replace(settings, port=held.getsockname()[1])).run()
        finally:
            del os.environ[SHARED_FIGURES]
            os.environ.pop(RESTARTS, None)


def _serve_one(settings: ServiceSettings, news: connection.Connection[Any, Any]) -> None:
    """The work of one process."""
    os.setpgid(0, 0)  # what is typed at a terminal reaches the first process, which passes it on
    threading.Thread(target=_end_with_parent, daemon=True).start()
    log_to(texts=settings.log_texts)
    with listener_on(settings.host, settings.port, shared=True) as listener:
        try:
            serve_on(listener, settings, news.send)
        except RanmaskError as error:
            news.send(error)


def _end_with_parent() -> None:
    """End, answering what was accepted, where the first process was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)

"""Several processes behind one port: each a whole service, started and watched by this one.

A process answers with one core and a half at most, for Python runs one thread at a time.  On a CPU
with more of them, several processes answer more; each loads the models for itself.  The operating
system deals out the connections (``SO_REUSEPORT``).  A process that dies is started again.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any

from ranmask.errors import ModelError, OptionError, RanmaskError
from ranmask.serving.keys import read_keys
from ranmask.serving.running import listener_on, serve_on, shown_url
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.telemetry import (
    RESTARTS,
    SHARED_FIGURES,
    forget_process,
    log,
    log_to,
)

_TICK_SECONDS = 0.2
_RESTART_SECONDS = 2.0
_AFTER_DEADLINE_SECONDS = 20.0  # a process that has not ended by then is killed


@dataclass
class _Child:
    """One process; ``news`` says when it is ready, or why it is not; ``heard`` counts signals.

    ``reload``: it is to read keys and models again, once it is ready.
    """

    process: SpawnProcess
    news: connection.Connection[Any, Any]
    ready: bool = False
    failure: RanmaskError | None = None
    heard: int = 0
    reload: bool = False

    def send(self, kind: int) -> None:
        """Send a signal, where the process lives."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, kind)


class Supervisor:
    """Starts processes, restarts those that die, and ends them all when it is told to."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._children: list[_Child] = []
        self._restarts: list[float] = []  # when processes are to be started again
        self._names: list[str] = []
        self._signals: list[int] = []  # that came, in their order; each tells all to end
        self._ending: float | None = None  # when it is no longer waited for
        self._replaced = 0

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; raises what keeps the first processes from starting."""
        kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = [signal.signal(kind, self._told) for kind in kinds]
        try:
            self._children = [self._start() for _ in range(self._settings.processes)]
            self._watch()
        finally:
            for child in self._children:
                child.process.kill()
                child.process.join()
            for kind, handler in zip(kinds, before, strict=True):
                signal.signal(kind, handler)

    def _start(self) -> _Child:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_serve_one, args=(self._settings, os.getpid(), theirs))
        process.start()
        theirs.close()
        return _Child(process, ours)

    def _watch(self) -> None:
        listening = False
        while self._children or self._restarts:
            self._wait()
            for child in list(self._children):
                self._pass_on(child)
                ended = child.process.exitcode is not None  # asked first: it may speak until then
                self._hear(child)
                if ended:
                    self._bury(child, first=not listening)
            ready = all(child.ready for child in self._children)
            if ready and not listening and self._ending is None:
                listening = True
                url = shown_url(self._settings.host, self._settings.port)
                log("listening", url=url, models=self._names, processes=self._pids())
            if self._ending is not None and time.monotonic() > self._ending:
                log("processes killed", processes=self._pids())
                return
        log("ended")

    def _pids(self) -> list[int | None]:
        return [child.process.pid for child in self._children]

    def _wait(self) -> None:
        """Until something may have happened; processes that are due are started."""
        ends = [child.process.sentinel for child in self._children]
        news = [child.news for child in self._children if not child.ready]
        connection.wait([*ends, *news], _TICK_SECONDS)
        if self._ending is not None:
            self._restarts.clear()
        while self._restarts and time.monotonic() >= self._restarts[0]:
            self._restarts.pop(0)
            self._children.append(self._start())

    def _pass_on(self, child: _Child) -> None:
        """Signals that came, also before the process did; it knows what to do with them."""
        for kind in self._signals[child.heard :]:
            child.heard += 1
            child.send(kind)
        if child.reload and child.ready:
            child.reload = False
            child.send(signal.SIGHUP)

    def _hear(self, child: _Child) -> None:
        """What a process says while it starts: that it is ready, or why it cannot be."""
        if child.ready or child.failure is not None or not child.news.poll():
            return
        try:
            said = child.news.recv()
        except EOFError:  # it died
            return
        if isinstance(said, RanmaskError):
            child.failure = said
        else:
            child.ready, self._names = True, said
            log("process ready", pid=child.process.pid)

    def _bury(self, child: _Child, *, first: bool) -> None:
        """Go on without a process that has ended, or with another in its place."""
        code = child.process.exitcode
        child.news.close()
        self._children.remove(child)
        forget_process(child.process.pid)
        if self._ending is not None:
            return
        if first:
            raise child.failure or ModelError(
                f"a process of the service ended with {code} before it was ready: see the log; "
                "fewer --processes need less memory"
            )
        reason = None if child.failure is None else str(child.failure)
        log("process died", logging.ERROR, pid=child.process.pid, exit_code=code, reason=reason)
        self._replaced += 1
        os.environ[RESTARTS] = str(self._replaced)
        self._restarts.append(time.monotonic() + _RESTART_SECONDS)

    def _told(self, kind: int, _: FrameType | None) -> None:
        if kind == signal.SIGHUP:
            for child in self._children:
                child.reload = True
            return
        self._signals.append(kind)
        patience = self._settings.deadline_seconds + self._settings.drain_seconds
        self._ending = time.monotonic() + patience + _AFTER_DEADLINE_SECONDS


def serve(settings: ServiceSettings) -> None:
    """Serve until SIGTERM or SIGINT; every request that was accepted by then is answered.

    In this process, or in several of its own, which share the cores, unless ``OMP_NUM_THREADS``
    says otherwise.  The log goes to standard error, one JSON object a line; ``listening`` has the
    address.
    """
    log_to(texts=settings.log_texts)
    logging.captureWarnings(True)
    read_keys(settings)  # what is wrong with them is told before models load
    number = settings.processes
    if number > 1 and not hasattr(socket, "SO_REUSEPORT"):
        raise OptionError(f"this system cannot share a port: leave --processes {number} out")
    # A taken port is told before models load.
    listener = listener_on(settings.host, settings.port)
    if number == 1:
        with listener:
            url = shown_url(*listener.getsockname()[:2])
            serve_on(listener, settings, lambda names: log("listening", url=url, models=names))
        log("ended")
        return
    listener.close()
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


def _serve_one(
    settings: ServiceSettings, parent: int, news: connection.Connection[Any, Any]
) -> None:
    """The work of one process."""
    os.setpgid(0, 0)  # what is typed at a terminal reaches the first process, which passes it on
    _end_with(parent)
    log_to(texts=settings.log_texts)
    logging.captureWarnings(True)
    with listener_on(settings.host, settings.port, shared=True) as listener:
        try:
            serve_on(listener, settings, news.send)
        except RanmaskError as error:
            news.send(error)


def _end_with(parent: int) -> None:
    """End, answering what was accepted, where the first process was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_TICK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()

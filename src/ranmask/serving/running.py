"""One process of the service: load, listen, answer; on SIGTERM answer what came, and end."""

from __future__ import annotations

import asyncio
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn

from ranmask.attacks.resources.neighbours import load_synonyms
from ranmask.errors import OptionError
from ranmask.serving.app import Service, create_app
from ranmask.serving.connections import BoundedConnection
from ranmask.serving.registry import ModelRegistry, models_of
from ranmask.serving.settings import ServiceSettings

_KEEP_ALIVE_SECONDS = 15
_AFTER_DEADLINE_SECONDS = 10  # for answers to be sent, when the service ends
_TICK_SECONDS = 0.05
_LOOK_SECONDS = 0.5
_BACKLOG = 1024


def serve_on(
    listener: socket.socket, settings: ServiceSettings, ready: Callable[[list[str]], None]
) -> None:
    """Load the models, say that they are ready, and serve on a socket that is bound."""
    reloads = _Reloads(settings.deadline_seconds)
    host = ModelRegistry(
        models_of(settings),
        batch_copies=settings.batch_copies,
        waiting_copies=settings.waiting_copies,
        keep=settings.keep,
        mask_rate=settings.mask_rate,
        hide=settings.hide,
        labels=settings.labels,
        reader=settings.reader,
        synonyms=None if settings.synonyms is None else load_synonyms(settings.synonyms),
        device=settings.device,
    )
    try:
        app = create_app(host, settings)
        reloads.begin(app.state.service)
        config = uvicorn.Config(
            app,
            http=cast(Any, partial(BoundedConnection, most=settings.connections)),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(settings.deadline_seconds) + _AFTER_DEADLINE_SECONDS,
        )
        listener.listen(_BACKLOG)
        ready(list(host.names()))
        _Server(config, app.state.service, settings).run([listener])
    finally:
        reloads.end()
        host.close(timeout=settings.deadline_seconds)


def shown_url(host: str, port: int) -> str:
    """The address as a browser takes it."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Reloads:
    """Reads keys and models again on SIGHUP, in a thread, one time after another.

    Made before they are read for the first time: a signal that comes meanwhile is not lost.
    ``seconds``: how long requests may take with a model that was replaced.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, lambda *_: self._asked.put(True))

    def begin(self, service: Service) -> None:
        threading.Thread(target=self._work, args=(service,), daemon=True).start()

    def end(self) -> None:
        self._asked.put(False)

    def _work(self, service: Service) -> None:
        while self._asked.get():
            closing = threading.Timer(self._seconds, service.reload())
            closing.daemon = True
            closing.start()


class _Server(uvicorn.Server):
    """A server that ends with exit code 0, after ``/readyz`` has said no for a while.

    It closes connections of clients that take for ever.
    """

    def __init__(self, config: uvicorn.Config, service: Service, settings: ServiceSettings) -> None:
        super().__init__(config)
        self._service = service
        self._arrival_seconds = settings.arrival_seconds
        self._drain_seconds = settings.drain_seconds
        self._end_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Signals are not raised again: this is a normal end.  At a terminal nobody balances load:
        # Ctrl-C closes the port at once, and a second one does not wait for answers either.
        interrupted = sig == signal.SIGINT
        if interrupted and self._service.draining:
            self.should_exit = self.force_exit = True
        elif not self._service.draining:
            self._service.draining = True
            if interrupted:
                self._drain_seconds = 0.0
            self._end_at = time.monotonic() + self._drain_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._looking = asyncio.create_task(self._close_late())  # also while it shuts down

    async def _close_late(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for connection in list(self.server_state.connections):
                cast(BoundedConnection, connection).close_if_late(self._arrival_seconds)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Who is connected may be about to ask, and is answered; then the connection is closed.
        for server in self.servers:
            server.close()
        self._service.closing = True
        end = time.monotonic() + self._drain_seconds
        while self.server_state.connections and time.monotonic() < end:
            await asyncio.sleep(_TICK_SECONDS)
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        if self._end_at is not None and time.monotonic() >= self._end_at:
            self.should_exit = True
        return await super().on_tick(counter)


def listener_on(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket that is bound, and not listened on yet; other sockets may ``share`` its port."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, number)
    except OSError as error:
        raise OptionError(f"cannot listen on {host!r}: {error.strerror or error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise OptionError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --port"
        ) from error
    return listener

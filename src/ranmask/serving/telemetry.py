"""What operators see: metrics of one service, and a log of one JSON object a line.

Texts are in neither, unless the log was asked for them.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import PurePath
from typing import Any, TextIO

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

from ranmask.serving.scorer import PoolFigures

LOG = logging.getLogger("ranmask.serving")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SHARED_FIGURES = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder in which processes keep their figures for each other, before they start."""

_COUNT_SECONDS = 0.2  # between two looks at the pools, for other processes
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Telemetry:
    """The metrics of one service, in a registry of their own.

    ``pools`` gives the figures of the models' pools, by the names of the models, at any moment.
    """

    def __init__(self, pools: Callable[[], Mapping[str, PoolFigures]]) -> None:
        self._pools = pools
        self._shared = SHARED_FIGURES in os.environ
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "ranmask_requests",
            "Requests that were answered.",
            ("route", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "ranmask_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._texts = Counter(
            "ranmask_texts",
            "Texts that were classified, or could not be.",
            ("model", "outcome"),
            registry=registry,
        )
        self._open = self._gauge("ranmask_open_requests", "Requests not yet answered.")
        self._count_at = 0.0
        self._counted: dict[tuple[str, str], float] = {}
        self._of_pools: dict[str, Counter | Gauge] = {}
        for field in fields(PoolFigures):
            name, said = f"ranmask_pool_{field.name}", field.name.replace("_", " ")
            said = f"{said} of the pool of a model.".capitalize()
            self._of_pools[field.name] = (
                self._gauge(name, said, "model")
                if field.name.startswith("waiting")
                else Counter(name, said, ("model",), registry=registry)
            )

    def _gauge(self, name: str, said: str, *labels: str) -> Gauge:
        """What may fall; of several processes, the sum over those that live."""
        return Gauge(name, said, labels, registry=self._registry, multiprocess_mode="livesum")

    def begun(self) -> None:
        """A request came in."""
        self._open.inc()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """A request is done with."""
        self._open.dec()
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if self._shared and time.monotonic() >= self._count_at:  # another may be asked for them
            self._count_at = time.monotonic() + _COUNT_SECONDS
            self._count_pools()

    def classified(self, model: str, done: int, failed: int) -> None:
        """Texts of one request have their results."""
        self._texts.labels(model, "done").inc(done)
        self._texts.labels(model, "failed").inc(failed)

    def exposition(self) -> bytes:
        """The metrics as Prometheus reads them, of all processes of the service."""
        self._count_pools()
        if not self._shared:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        multiprocess.MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def _count_pools(self) -> None:
        for model, figures in self._pools().items():
            for name, metric in self._of_pools.items():
                now = getattr(figures, name)
                if isinstance(metric, Gauge):
                    metric.labels(model).set(now)
                else:
                    metric.labels(model).inc(now - self._counted.get((model, name), 0))
                    self._counted[model, name] = now


def forget_process(pid: int | None) -> None:
    """What a process that has ended counted stays; what was open or waited in it does not."""
    if pid is not None and SHARED_FIGURES in os.environ:
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


class JsonLines(logging.Formatter):
    """One JSON object a line.

    Of an exception: its type and places in the code.  Its message may quote a text, and is there
    only with ``texts``.
    """

    def __init__(self, texts: bool = False) -> None:
        super().__init__()
        self._texts = texts

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        # Of libraries, what follows the first line may quote anything: objects, folders, texts.
        said = record.getMessage()
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": said if self._texts else said.partition("\n")[0],
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["exception"] = type(error).__name__
            line["at"] = [
                f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(error.__traceback__)
            ]
            if self._texts:
                line["exception_message"] = str(error)
        return json.dumps(line)


def log(event: str, level: int = logging.INFO, **facts: Any) -> None:
    """One event, with facts that are plain JSON values."""
    LOG.log(level, event, extra={"facts": facts})


def log_failure(event: str, error: BaseException, **facts: Any) -> None:
    """An exception that nobody expected."""
    LOG.error(event, exc_info=error, extra={"facts": facts})


def log_to(stream: TextIO | None = None, texts: bool = False) -> None:
    """Write the log of service, server and event loop to a stream, by default standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(texts))
    for name, level in (
        ("ranmask.serving", logging.INFO),
        ("uvicorn.error", logging.WARNING),
        ("asyncio", logging.WARNING),
    ):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False

"""What operators see: metrics of one service, and a log of one JSON object a line.

Texts are in neither, unless the log was asked for them.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import PurePath
from typing import Any, TextIO, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ranmask.serving.pool import PoolFigures

LOG = logging.getLogger("ranmask.serving")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

Figures: TypeAlias = Mapping[str, PoolFigures]
"""By the name of a model, what its pool counted."""


class Telemetry:
    """The metrics of one service, in a registry of their own.

    ``pools`` gives the figures of the models' pools when metrics are read.
    """

    def __init__(self, pools: Callable[[], Figures]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "ranmask_requests",
            "Requests that were answered.",
            ("route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "ranmask_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._texts = Counter(
            "ranmask_texts",
            "Texts that were classified, or could not be.",
            ("model", "outcome"),
            registry=self._registry,
        )
        self._open = Gauge(
            "ranmask_open_requests", "Requests not yet answered.", registry=self._registry
        )
        self._registry.register(_Pools(pools))

    def begun(self) -> None:
        """A request came in."""
        self._open.inc()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """A request is done with."""
        self._open.dec()
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def classified(self, model: str, done: int, failed: int) -> None:
        """Texts of one request have their results."""
        self._texts.labels(model, "done").inc(done)
        self._texts.labels(model, "failed").inc(failed)

    def exposition(self) -> bytes:
        """The metrics as Prometheus reads them."""
        return generate_latest(self._registry)


class _Pools(Collector):
    """Reads the pools whenever metrics are read; what waits may fall, the rest only grows."""

    def __init__(self, pools: Callable[[], Figures]) -> None:
        self._pools = pools

    def collect(self) -> Iterable[Metric]:
        pools = {model: asdict(figures) for model, figures in self._pools().items()}
        for field in fields(PoolFigures):
            kind = GaugeMetricFamily if field.name.startswith("waiting") else CounterMetricFamily
            said = f"{field.name.replace('_', ' ')} of the pool of a model.".capitalize()
            family = kind(f"ranmask_pool_{field.name}", said, labels=["model"])
            for model, figures in pools.items():
                family.add_metric([model], figures[field.name])
            yield family


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
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": self._said(record),
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

    def _said(self, record: logging.LogRecord) -> str:
        # Of libraries, what follows the first line may quote anything: objects, folders, texts.
        said = record.getMessage()
        return said if self._texts else said.partition("\n")[0]


def log(event: str, level: int = logging.INFO, **facts: Any) -> None:
    """One event, with facts that are plain JSON values."""
    LOG.log(level, event, extra={"facts": facts})


def log_failure(event: str, error: BaseException, **facts: Any) -> None:
    """An exception that nobody expected."""
    LOG.error(event, exc_info=error, extra={"facts": facts})


def log_to(stream: TextIO | None = None, texts: bool = False) -> None:
    """Write the log of the service, of its server and of its event loop to a stream.

    Standard error by default.
    """
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

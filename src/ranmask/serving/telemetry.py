"""What operators see: metrics of one service, and a log of one JSON object a line.

Texts are in neither, unless the log was asked for them.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path, PurePath
from typing import Any, TextIO

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

from ranmask import __version__
from ranmask.serving.scorer import PoolFigures

LOG = logging.getLogger("ranmask.serving")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SHARED_FIGURES = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder in which processes keep their figures for each other, before they start."""

RESTARTS = "RANMASK_RESTARTS"
"""In the environment of a process of several: how many had to be replaced before it began."""

_COUNT_SECONDS = 0.2  # between two looks at the pools, for other processes
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Telemetry:
    """The metrics of one service, in a registry of their own.

    ``pools`` gives the figures of the models' pools, by the names of the models, at any moment;
    ``admitted`` how many requests are worked on or wait for it; ``jobs``, how many jobs there are,
    by their status.
    """

    def __init__(
        self, pools: Callable[[], Mapping[str, PoolFigures]], admitted: Callable[[], int]
    ) -> None:
        self._pools, self._admitted_now = pools, admitted
        self.jobs: Callable[[], Mapping[str, int]] = dict
        self._lock = threading.Lock()
        self._shared = SHARED_FIGURES in os.environ
        self._registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry, "namespace": "ranmask"}

        def counter(name: str, said: str, *labels: str) -> Counter:
            return Counter(name, said, labels, **own)

        def gauge(name: str, said: str, *labels: str, processes: Any = "livesum") -> Gauge:
            """Of several processes, the sum over those that live."""
            return Gauge(name, said, labels, **own, multiprocess_mode=processes)

        self._requests = counter("requests", "Requests that were answered.", "route", "status")
        self._seconds = Histogram(
            "request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ("route",),
            buckets=_SECONDS,
            **own,
        )
        self._texts = counter(
            "texts", "Texts that were classified, or could not be.", "model", "outcome"
        )
        self._open = gauge("open_requests", "Requests not yet answered.")
        self._admitted = gauge(
            "admitted_requests", "Requests that are worked on, or wait for a thread."
        )
        self._by_key = counter(
            "key_requests",
            "Requests that were answered, by the name of their API key.",
            "key",
            "status",
        )
        self._reloads = counter(
            "reloads", "Reloads of keys and models, by whether they worked.", "outcome"
        )
        # All processes see the same folder: the one that is asked has looked last.
        self._jobs = gauge(
            "jobs", "Jobs that are kept, by their status.", "status", processes="mostrecent"
        )
        self._job_rows = counter(
            "job_rows", "Rows of jobs that were classified, or could not be.", "model", "outcome"
        )
        self._job_seconds = counter(
            "job_seconds", "Time in which jobs were worked on, or gave way to requests.", "model"
        )
        self._job_runs = counter(
            "job_runs",
            "Times that a process has worked on a job, by what became of it.",
            "model",
            "status",
        )
        self._memory = gauge("memory_bytes", "Resident memory of the service.")
        gauge("processes", "Processes that answer.").set(1)
        restarts = gauge("restarts", "Processes that died and were replaced.", processes="max")
        restarts.set(float(os.environ.get(RESTARTS, "0")))
        said = "The version of ranmask and of Python."
        versions = gauge("build_info", said, "version", "python", processes="max")
        versions.labels(__version__, platform.python_version()).set(1)
        self._count_at = 0.0
        self._counted: dict[tuple[str, str], float] = {}
        self._of_pools: dict[str, Counter | Gauge] = {}
        for field in fields(PoolFigures):
            name, said = f"pool_{field.name}", field.name.replace("_", " ").capitalize()
            made = gauge if field.name.startswith("waiting") else counter
            self._of_pools[field.name] = made(name, f"{said} of the pool of a model.", "model")

    def begun(self) -> None:
        """A request came in."""
        self._open.inc()

    def answered(self, route: str, status: int, seconds: float, key: str | None) -> None:
        """A request is done with; ``key`` is the name of its API key."""
        self._open.dec()
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if key is not None:
            self._by_key.labels(key, str(status)).inc()
        if self._shared and time.monotonic() >= self._count_at:  # another may be asked for them
            self._count_at = time.monotonic() + _COUNT_SECONDS
            self._count()

    def reloaded(self, outcome: str) -> None:
        """Keys and models were read again, or could not be."""
        self._reloads.labels(outcome).inc()

    def classified(self, model: str, done: int, failed: int) -> None:
        """Texts of one request have their results."""
        self._texts.labels(model, "done").inc(done)
        self._texts.labels(model, "failed").inc(failed)

    def job_worked(self, model: str, done: int, failed: int, seconds: float) -> None:
        """Rows of a job have their results."""
        self._job_rows.labels(model, "done").inc(done)
        self._job_rows.labels(model, "failed").inc(failed)
        self._job_seconds.labels(model).inc(seconds)

    def job_left(self, model: str, status: str) -> None:
        """A job is over, or was left to be gone on with."""
        self._job_runs.labels(model, status).inc()

    def exposition(self) -> bytes:
        """The metrics as Prometheus reads them, of all processes of the service."""
        for status, number in self.jobs().items():
            self._jobs.labels(status).set(number)
        self._count()
        if not self._shared:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        multiprocess.MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def _count(self) -> None:
        self._memory.set(resident_bytes())
        self._admitted.set(self._admitted_now())
        with self._lock:
            for model, figures in self._pools().items():
                for name, metric in self._of_pools.items():
                    now = getattr(figures, name)
                    if isinstance(metric, Gauge):
                        metric.labels(model).set(now)
                        continue
                    before = self._counted.get((model, name), 0)
                    # Less than before is the count of another pool: the model was replaced.
                    metric.labels(model).inc(now - before if now >= before else now)
                    self._counted[model, name] = now


def resident_bytes() -> int:
    """The memory that this process holds; where the system does not say so, the most it held."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError):
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


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
    logging.captureWarnings(True)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(texts))
    for name, level in (
        ("ranmask.serving", logging.INFO),
        ("uvicorn.error", logging.WARNING),
        ("asyncio", logging.WARNING),
        ("py.warnings", logging.WARNING),
    ):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False

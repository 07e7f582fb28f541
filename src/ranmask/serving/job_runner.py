"""Works on jobs in the background of one process of a service, one job at a time.

A job is a run (`runs.api`) over its rows, with the model that requests share.  It gives way to
them: it computes a few milliseconds at a time, and where requests come all the while it rests most
of the time.  Where the process ends, even by SIGKILL, the next one goes on after the last row that
was written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ranmask.data.rows import Row, RowSource, file_rows
from ranmask.errors import (
    ClassifierError,
    ModelError,
    OptionError,
    OutputError,
    RanmaskError,
    TextError,
    blaming,
    interruptible,
)
from ranmask.results.files import differences
from ranmask.runs.api import classify_task, run
from ranmask.runs.detect import DetectTask
from ranmask.runs.result_file import read_header, result_rows
from ranmask.runs.task import ClassifyTask, RunEvents
from ranmask.serving.cards import public
from ranmask.serving.classifying import MODEL_FAILED
from ranmask.serving.context import RequestContext
from ranmask.serving.detecting import DETECT
from ranmask.serving.jobs import Job, JobRequest, JobStore
from ranmask.serving.problems import Cancelled, Closing, Problem, is_callers, problem_of, shown
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.telemetry import Telemetry, log, log_failure
from ranmask.words import Text, document, split

_LOOK_SECONDS = 1.0  # for jobs that other processes took in, or left
_SWEEP_SECONDS = 600.0
_TELLING_ROWS = 20  # fewer do not tell how long the others take
_TOLD_SECONDS = 0.5  # between two words on how far a job is
_SLICE_SECONDS = 0.01  # of computing, then requests come first
_RESTS = 19.0  # times as long as it computed, where requests never end: it has 5 % of the time
_MOST_REST_SECONDS = 5.0
_GLANCE_SECONDS = 0.005
_MOST_STARTS = 5


class BackgroundContext(RequestContext):
    """A job's right to be computed: until it is deleted, and when no request is in its way.

    ``rested``: seconds in which it gave way.  ``at_once``: texts that take `_SLICE_SECONDS`.
    """

    background = True

    def __init__(self, job: Job, busy: Callable[[], bool]) -> None:
        super().__init__()
        self._job, self._busy = job, busy
        self._looked = 0.0
        self._resumed = time.monotonic()
        self.rested = 0.0
        self.at_once = 1

    def check(self) -> None:
        """Give way to requests; raise `Cancelled` where the job was deleted or the service ends.

        Where they never end it goes on after a rest, `_RESTS` times as long as it computed.
        """
        begun = time.monotonic()
        until = begun + min(_RESTS * (begun - self._resumed), _MOST_REST_SECONDS)
        while not self.cancelled and self._busy() and time.monotonic() < until:
            time.sleep(_GLANCE_SECONDS)
        super().check()
        now = self._resumed = time.monotonic()
        self.rested += now - begun
        if now - self._looked > _TOLD_SECONDS:
            self._looked = now
            if not self._job.folder.is_dir():
                raise Cancelled


class JobRunner:
    """A thread that works on the jobs of a store.

    Args:
        store: The jobs.
        host: The models.
        most_words: Longer texts are rows with an error.
        busy: Whether requests are being answered, or were a moment ago.
        telemetry: Counts rows, seconds and ends.
    """

    def __init__(
        self,
        store: JobStore,
        host: ModelRegistry,
        most_words: int,
        busy: Callable[[], bool],
        telemetry: Telemetry,
    ) -> None:
        self._store, self._host, self._most_words, self._busy = store, host, most_words, busy
        self._telemetry = telemetry
        self._woken = threading.Event()
        self._ended = False
        self._context: RequestContext | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, with what is left from before."""
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="ranmask-jobs", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is a new job."""
        self._woken.set()

    def stop(self) -> None:
        """End soon; the job that is being worked on stays queued."""
        self._ended = True
        self._woken.set()
        if self._context is not None:
            self._context.cancel()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        swept = -_SWEEP_SECONDS
        while not self._ended:
            try:
                if time.monotonic() - swept > _SWEEP_SECONDS:
                    swept = time.monotonic()
                    self._store.sweep()
                if self.work_once():
                    continue
            except Exception as error:  # a full disk, a folder that is gone: others may be well
                log_failure("jobs cannot be worked on", error)
            self._woken.wait(_LOOK_SECONDS)
            self._woken.clear()

    def work_once(self) -> bool:
        """Work on the oldest job that nobody works on; False where there is none."""
        with self._store.claimed() as job:
            if job is not None:
                self._do(job)
            return job is not None

    def _do(self, job: Job) -> None:
        context = self._context = BackgroundContext(job, self._busy)
        told = _Told(job, self._telemetry)
        end: dict[str, Any]
        try:
            told.begin()
            log("job begun", job=job.request.id, rows_done=told.state.rows)
            with interruptible(context.check):
                summary = self._run(job, context, told)
            end = {"status": "finished", "summary": summary}
        except (Cancelled, Closing):
            end = {"status": "queued"}
        except Exception as error:
            problem = problem_of(error)
            message = problem.message
            if problem.code == "internal" and isinstance(error, RanmaskError):
                message = shown(str(error).replace(f"{job.folder}/", ""))
            elif problem.code == "internal":
                message = "something went wrong here; the log has it by the job's id"
                log_failure("job failed", error, job=job.request.id)
            end = {"status": "failed", "error": message}
        finally:
            self._context = None
        try:
            told.end(**end)
        except OutputError:
            if job.folder.is_dir():
                raise
            end = {"status": "deleted"}
        log("job left", job=job.request.id, status=end["status"], rows_done=told.state.rows)

    def _run(self, job: Job, context: BackgroundContext, told: _Told) -> dict[str, Any]:
        source = file_rows(job.input, job.request.columns)
        description = {**source.description, "path": job.request.name}
        rows = within_limits(source.rows, job.request, self._host, self._most_words)
        task = job_task(self._host, job.request, context)
        task = replace(task, classify=partial(in_slices, task.classify, context))
        begun = read_header(job.results) if job.results.is_file() else None
        if begun is not None and any(differences(begun["classifier"], dict(task.classifier))):
            raise ModelError(
                f"the model {job.request.model!r} is another one than when the job was begun: "
                "delete the job, and send it again"
            )
        summary = run(
            lambda: task,
            RowSource(rows, source.total, description),
            job.results,
            events=RunEvents(told.started, told.progress, told.failed, told.trouble),
        )
        assert summary is not None  # it is of shards alone
        return summary.values()


def _check_plain(asked: JobRequest) -> None:
    """Refuse what goes with labels alone."""
    given = {"positive": asked.positive, "options": asked.options, "pair": asked.columns.pair}
    for name, value in given.items():
        if value:
            raise OptionError(
                f"{name} means nothing for kind=detect: a detector reads single texts, and has its "
                "own class and options; leave it out"
            )


def job_task(
    host: ModelRegistry, asked: JobRequest, context: RequestContext
) -> ClassifyTask | DetectTask:
    """What `ranmask certify`, ``predict`` or ``detect`` does with rows; raises where it cannot."""
    task: ClassifyTask | DetectTask
    if asked.kind == DETECT:
        _check_plain(asked)
        task = DetectTask.of(host.detector(asked.model, context))
    else:
        smoothed = host.smoothed(asked.model, context, **asked.options)
        task = classify_task(asked.kind, smoothed, asked.positive)

    def classify(texts: Sequence[Text]) -> Sequence[Any]:
        try:
            return task.classify(texts)
        except (ClassifierError, ModelError) as error:  # what callers may read, as in answers
            index = error.index if isinstance(error, ClassifierError) else None
            if is_callers(error):
                reason = error.reason if isinstance(error, ClassifierError) else str(error)
                raise ClassifierError(shown(reason), index) from None
            log_failure(MODEL_FAILED, error, job=asked.id)
            raise ClassifierError(MODEL_FAILED, index) from None

    return replace(task, classify=classify, classifier=public(task.classifier))


def in_slices(
    classify: Callable[[Sequence[Text]], Sequence[Any]],
    context: BackgroundContext,
    texts: Sequence[Text],
) -> Sequence[Any]:
    """Classify as many texts at a time as take `_SLICE_SECONDS`: requests come in between."""
    results: list[Any] = []
    while some := texts[len(results) : len(results) + context.at_once]:
        context.check()
        begun = time.monotonic() - context.rested
        with blaming(range(len(results), len(texts))):
            results += classify(some)
        seconds = time.monotonic() - context.rested - begun
        aimed = int(len(some) * _SLICE_SECONDS / max(seconds, 1e-9))
        context.at_once = max(1, min(4 * context.at_once, aimed))
    return results


def within_limits(
    rows: Iterable[Row], asked: JobRequest, host: ModelRegistry, most_words: int
) -> Iterator[Row]:
    """The rows; a text that a request could not hold either becomes an error."""
    for row in rows:
        if row.text is None:
            yield row
            continue
        parts = (row.text,) if isinstance(row.text, str) else row.text
        words = sum(len(split(part)) for part in parts)
        try:
            if words > most_words:
                raise TextError(f"{words} words are more than {most_words}: cut the text")
            try:
                text = document(row.text)
            except TextError:  # told by the run
                yield row
                continue
            host.copies(asked.model, [text], **asked.options)
            yield row
        except (TextError, OptionError) as error:
            yield Row(row.number, None, row.label, str(error), row.kept)


class _Told:
    """How far a job is, written down now and then."""

    def __init__(self, job: Job, telemetry: Telemetry) -> None:
        self._job, self._telemetry = job, telemetry
        self.state = job.state()
        self._begun = self._counted = time.monotonic()
        self._written = 0.0
        self._total = self._new = self._failed = 0

    def begin(self) -> None:
        """Note that it is begun; raises where that was so often, and nothing came of it."""
        if self.state.starts >= _MOST_STARTS:
            raise Problem(
                500,
                "job_breaks",
                f"the service ended {_MOST_STARTS} times while it worked on the rows after "
                f"{self.state.rows}: look at them, or ask its operator",
            )
        failed = 0
        if self._job.results.is_file():
            failed = sum("error" in line for line in result_rows(self._job.results))
        started = self.state.started or round(time.time(), 3)
        starts = self.state.starts + 1
        self._put(status="running", started=started, failed=failed, starts=starts, ended=None)

    def started(self, rows: int, done: int) -> None:
        """The run knows how many rows there are, and how many are done."""
        self._total = rows
        self.state = replace(self.state, rows=done)

    def progress(self, rows: int) -> None:
        """So many more are done."""
        self._new += rows
        done = self.state.rows + rows
        left = None
        if self._new >= _TELLING_ROWS:
            each = (time.monotonic() - self._begun) / self._new
            left = round(max(0, self._total - done) * each, 1)
        self.state = replace(self.state, rows=done, left_seconds=left, starts=0)
        self._count(rows)
        if time.monotonic() - self._written > _TOLD_SECONDS:
            self._put()

    def failed(self, row: int, why: str) -> None:
        """A row became a line with an error."""
        self.state = replace(self.state, failed=self.state.failed + 1)
        self._failed += 1

    def trouble(self, why: str) -> None:
        """Something went wrong, and did no harm."""
        # What follows a colon may quote a text.
        log("job trouble", job=self._job.request.id, reason=shown(why.partition(":")[0]))

    def end(self, status: Any, **more: Any) -> None:
        """It is over, or left."""
        over = status in ("finished", "failed")
        left = 0.0 if status == "finished" else None
        ended = round(time.time(), 3) if over else None
        starts = self.state.starts if over else 0  # it was not broken off by a death
        self._count(0)
        self._telemetry.job_left(self._job.request.model, status)
        self._put(status=status, left_seconds=left, ended=ended, starts=starts, **more)

    def _count(self, rows: int) -> None:
        """For metrics: rows that are done, those that failed among them, and the time since."""
        before, self._counted = self._counted, time.monotonic()
        failed, self._failed = self._failed, 0
        seconds = self._counted - before
        self._telemetry.job_worked(self._job.request.model, rows - failed, failed, seconds)

    def _put(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        self._job.write_state(self.state)
        self._written = time.monotonic()

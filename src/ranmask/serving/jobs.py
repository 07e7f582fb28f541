"""Batch jobs on disk: one folder a job, which any process of a service reads and one works on.

    DIR/ID/job.json       what was asked for; never changes
           input.csv      the rows, or .tsv, .jsonl, .txt, .parquet
           results.jsonl  the file of a run (`runs.result_file`), resumed where it stopped
           state.json     how far it is
           lock           locked by the process that works on it

A job is deleted by deleting its folder.  Texts lie in it as they were sent: only the user whose
service it is may read the folder.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from ranmask.data.rows import Columns
from ranmask.errors import DataError, OptionError, OutputError
from ranmask.results.files import lock, read_json, write_json
from ranmask.serving.problems import Problem

JOB_FORMAT, JOB_VERSION = "ranmask-job", 1
Kind: TypeAlias = Literal["certify", "predict", "detect"]
Status: TypeAlias = Literal["queued", "running", "finished", "failed"]

_ID = re.compile(r"[0-9a-f]{32}")
_NEW, _OLD = ".new-", ".old-"  # folders that are not jobs yet, or no more
_STALE_SECONDS = 24 * 3600.0
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What a job is to do.  ``owner``: a digest of whose it is; ``name``: of its file."""

    id: str
    owner: str
    kind: Kind
    model: str
    name: str
    input: str
    options: Mapping[str, Any]
    columns: Columns
    positive: str | None
    rows: int
    bytes: int
    created: float

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """What was written to ``job.json``."""
        values = {key: found[key] for key in cls.__dataclass_fields__}
        columns = values.pop("columns")
        pair = columns["pair"] and tuple(columns["pair"])
        columns = Columns(columns["text"], pair, columns["label"], tuple(columns["keep"]))
        options = {k: tuple(v) if isinstance(v, list) else v for k, v in values["options"].items()}
        return cls(**{**values, "options": options, "columns": columns})


@dataclass(frozen=True)
class JobState:
    """How far a job is.

    ``rows``: those that are done, of which ``failed`` have an error.  ``left_seconds``: an
    estimate.  ``starts``: how often it was begun since a row was last done.
    """

    status: Status = "queued"
    rows: int = 0
    failed: int = 0
    left_seconds: float | None = None
    started: float | None = None
    ended: float | None = None
    error: str | None = None
    starts: int = 0
    summary: Mapping[str, Any] | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will be done."""
        return self.status in ("finished", "failed")


class Job:
    """One job: its folder, and what is written there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results.jsonl"
        found = read_json(folder / "job.json", format=JOB_FORMAT, version=JOB_VERSION)
        self.request = JobRequest.from_dict(found)

    @property
    def input(self) -> Path:
        """The rows."""
        return self.folder / self.request.input

    def state(self) -> JobState:
        """How far it is; one whose process died is queued, and goes on."""
        path = self.folder / "state.json"
        try:
            state = JobState(**read_json(path))
        except (DataError, TypeError):
            return JobState()
        if state.status == "running" and not self._locked():
            return replace(state, status="queued", left_seconds=None)
        return state

    def write_state(self, state: JobState) -> None:
        """Put down how far it is; raises `OutputError` where it was deleted."""
        write_json(self.folder / "state.json", asdict(state))

    def to_dict(self) -> dict[str, Any]:
        """What its owner is told."""
        asked, state = self.request, self.state()
        return {
            "id": asked.id,
            "name": asked.name,
            "kind": asked.kind,
            "model": asked.model,
            "options": dict(asked.options),
            "status": state.status,
            "rows": asked.rows,
            "rows_done": state.rows,
            "rows_failed": state.failed,
            "bytes": asked.bytes,
            "created": _shown_time(asked.created),
            "started": _shown_time(state.started),
            "ended": _shown_time(state.ended),
            "seconds_left": state.left_seconds,
            "error": state.error,
            "summary": state.summary,
        }

    def _locked(self) -> bool:
        try:
            with (self.folder / "lock").open("ab") as file:
                lock(file, self.folder)
        except OutputError:
            return True
        except OSError:
            pass
        return False


class NoSuchJob(Problem):
    """No job of that id is the caller's; others' are not told from none."""

    def __init__(self, id: str) -> None:
        message = f"there is no job {id[:40]!r}: GET /v1/jobs lists yours"
        super().__init__(404, "no_such_job", message)


class JobStore:
    """The jobs of a service, in one folder, which its processes share.

    ``most``: jobs that are kept for one owner.  ``days``: a job that is over is kept so long.
    """

    def __init__(self, folder: Path, most: int, days: float) -> None:
        self.folder, self._most, self._days = folder, most, days
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / "lock").touch(mode=0o600)
        except OSError as error:
            raise OptionError(
                f"cannot keep jobs in {folder}: {error.strerror}; name a folder that can be written"
            ) from error

    @contextlib.contextmanager
    def draft(self) -> Iterator[Path]:
        """A folder to put the files of a job into; gone afterwards unless it was admitted."""
        folder = self.folder / (_NEW + secrets.token_hex(16))
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def admit(self, draft: Path, **asked: Any) -> Job:
        """Make a job of a draft that holds its input; raises `Problem` where there are too many."""
        request = JobRequest(id=draft.name.removeprefix(_NEW), created=time.time(), **asked)
        record = {"format": JOB_FORMAT, "version": JOB_VERSION, **asdict(request)}
        write_json(draft / "job.json", record)
        with (self.folder / "lock").open("ab") as file:
            lock(file, self.folder, wait=True)
            kept = sum(job.request.owner == request.owner for job in self._jobs())
            if kept >= self._most:
                message = (
                    f"{kept} jobs are kept for you already: delete some, with DELETE /v1/jobs/ID"
                )
                raise Problem(429, "too_many_jobs", message, {"Retry-After": "60"})
            return Job(draft.rename(self.folder / request.id))

    def of(self, owner: str) -> list[Job]:
        """All jobs of an owner, the newest first."""
        jobs = [job for job in self._jobs() if job.request.owner == owner]
        return sorted(jobs, key=lambda job: -job.request.created)

    def get(self, id: str, owner: str) -> Job:
        """A job by its id; raises `NoSuchJob`, also for what is no id and for others' jobs."""
        if _ID.fullmatch(id):
            with contextlib.suppress(DataError, KeyError, TypeError):
                job = Job(self.folder / id)
                if job.request.owner == owner:
                    return job
        raise NoSuchJob(id)

    def delete(self, job: Job) -> None:
        """End a job, and delete all that there is of it."""
        gone = self.folder / (_OLD + secrets.token_hex(16))
        try:
            job.folder.rename(gone)
        except FileNotFoundError:
            raise NoSuchJob(job.request.id) from None
        shutil.rmtree(gone, ignore_errors=True)

    @contextlib.contextmanager
    def claimed(self) -> Iterator[Job | None]:
        """The oldest job that is to be done and that no process works on; ours in this block."""
        for job in sorted(self._jobs(), key=lambda job: job.request.created):
            if job.state().over:
                continue
            with contextlib.ExitStack() as held:
                try:
                    file = held.enter_context((job.folder / "lock").open("ab"))
                    lock(file, job.folder)
                except OSError:  # another process has it, or it was deleted
                    continue
                if not job.state().over:
                    yield job
                    return
        yield None

    def sweep(self) -> None:
        """Delete jobs that have been over for long, and what uploads that broke off left."""
        now = time.time()
        for job in self._jobs():
            ended = job.state().ended
            if ended is not None and now - ended > self._days * _DAY_SECONDS:
                with contextlib.suppress(NoSuchJob):
                    self.delete(job)
        for prefix in (_NEW, _OLD):
            for left in self.folder.glob(prefix + "*"):
                with contextlib.suppress(OSError):
                    if now - left.stat().st_mtime > _STALE_SECONDS:
                        shutil.rmtree(left, ignore_errors=True)

    def _jobs(self) -> Iterator[Job]:
        for folder in self.folder.iterdir():
            if _ID.fullmatch(folder.name):
                with contextlib.suppress(DataError, KeyError, TypeError):  # deleted meanwhile
                    yield Job(folder)


def _shown_time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

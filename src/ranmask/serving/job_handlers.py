"""What the routes of jobs answer: files and texts in, results out."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fastapi import Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import TypeAdapter, ValidationError
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect

from ranmask.data.rows import PAIR, SUFFIXES, Columns, file_rows, text_line
from ranmask.errors import DataError
from ranmask.runs.stored import file_as_parquet
from ranmask.serving import schemas
from ranmask.serving.auth import FACTS
from ranmask.serving.context import RequestContext
from ranmask.serving.dispatch import read_json
from ranmask.serving.job_runner import JobRunner, job_task
from ranmask.serving.jobs import Job, JobRequest, JobStore, NoSuchJob
from ranmask.serving.problems import Cancelled, Problem, invalid, shown
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.telemetry import Telemetry

JSON_LINES, PARQUET = "application/x-ndjson", "application/vnd.apache.parquet"
FORMATS = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    JSON_LINES: "jsonl",
    "application/jsonl": "jsonl",
    "text/plain": "txt",
    PARQUET: "parquet",
}
"""What files are sent as, with the format that each is."""

_SLOWEST = 32 << 10  # bytes a second that an upload must reach, after the time for a body
_BLOCK = 1 << 20
_LISTS = ("pair_columns", "keep_columns")  # in an address: names, separated by commas


class Jobs:
    """The handlers of the routes; ``runner`` is None where no jobs are taken."""

    def __init__(
        self,
        host: ModelRegistry,
        settings: ServiceSettings,
        busy: Callable[[], bool],
        telemetry: Telemetry,
    ) -> None:
        self._host, self._settings = host, settings
        self._store: JobStore | None = None
        self.runner: JobRunner | None = None
        if settings.jobs is not None:
            self._store = JobStore(Path(settings.jobs), settings.most_jobs, settings.job_days)
            self.runner = JobRunner(self._store, host, settings.most_words, busy, telemetry)
            telemetry.jobs = self._store.counts

    @contextmanager
    def running(self) -> Iterator[None]:
        """Work on jobs meanwhile."""
        if self.runner is None:
            yield
            return
        self.runner.start()
        try:
            yield
        finally:
            self.runner.stop()

    async def submit(self, request: Request) -> Response:
        """Take a file of rows, or a list of texts, to be worked on in the background.

        A file is the body, with its options in the address; texts are JSON.
        """
        store = self._kept()
        with store.draft() as draft:
            if _media(request) == "application/json":
                asked, path, columns = await self._texts(request, draft)
            else:
                asked, path, columns = await self._file(request, draft)
            owner = self._owner(request)
            job = await asyncio.to_thread(self._admit, store, path, asked, columns, owner)
        assert self.runner is not None
        self.runner.wake()
        request.scope[FACTS]["job"] = job.request.id
        where = {"Location": f"jobs/{job.request.id}"}
        return JSONResponse(job.to_dict(), 201, where)

    async def list(self, request: Request) -> Response:
        """The jobs of this key, the newest first."""
        store, owner = self._kept(), self._owner(request)
        found = await asyncio.to_thread(lambda: [job.to_dict() for job in store.of(owner)])
        return JSONResponse({"jobs": found})

    async def show(self, request: Request) -> Response:
        """How far a job is, and how long it will take."""
        job = self._job(request)
        return JSONResponse(await asyncio.to_thread(job.to_dict))

    async def result(self, request: Request) -> Response:
        """The results of a job, those so far where it is not finished.

        JSON lines are the file that `ranmask certify`, `predict` or `detect` writes: first the
        record of the run, then a line for each row, in the end a summary.
        """
        job = self._job(request)
        given = request.query_params.get("format", "jsonl")
        if given not in ("jsonl", "parquet"):
            raise _wrong(f"format must be jsonl or parquet, not {given!r}")
        if not job.results.is_file() or not job.results.stat().st_size:
            message = "the job has no result yet: ask again when rows_done is above 0"
            raise Problem(409, "no_result_yet", message)
        status = (await asyncio.to_thread(job.state)).status
        name = f"{job.request.name.rpartition('.')[0] or 'results'}.results.{given}"
        headers = {
            "X-Job-Status": status,
            "Content-Disposition": f'attachment; filename="{_ascii(name)}"',
        }
        if given == "jsonl":
            file = await asyncio.to_thread(job.results.open, "rb")
            if status == "finished":  # else it grows
                headers["Content-Length"] = str(os.fstat(file.fileno()).st_size)
            return StreamingResponse(_whole_lines(file), media_type=JSON_LINES, headers=headers)
        path, after = job.folder / "finished.parquet", None
        if status != "finished" or not path.is_file():
            made = job.folder / f"{secrets.token_hex(8)}.parquet"
            try:
                await asyncio.to_thread(file_as_parquet, job.results, made)
            except (DataError, OSError) as error:
                if not job.folder.is_dir():
                    raise NoSuchJob(job.request.id) from error
                raise
            if status == "finished":
                made.replace(path)
            else:
                path, after = made, BackgroundTask(made.unlink, missing_ok=True)
        return FileResponse(path, media_type=PARQUET, headers=headers, background=after)

    async def delete(self, request: Request) -> Response:
        """End a job where it is not over, and delete its file and its results."""
        job = self._job(request)
        before = await asyncio.to_thread(job.to_dict)
        await asyncio.to_thread(self._kept().delete, job)
        return JSONResponse({**before, "status": "deleted"})

    # -- what they share -----------------------------------------------------------------------

    def _kept(self) -> JobStore:
        if self._store is None:
            raise Problem(
                404,
                "no_jobs",
                "this service takes no jobs, for it has no folder to keep them in: its operator "
                "starts it with --jobs DIR",
            )
        return self._store

    def _owner(self, request: Request) -> str:
        """Whose jobs they are: those of the name of the key, which was checked."""
        name = request.scope[FACTS].get("key")
        if name is None:
            return ""
        return hashlib.sha256(f"ranmask job {name}".encode()).hexdigest()[:32]

    def _job(self, request: Request) -> Job:
        job = self._kept().get(request.path_params["id"], self._owner(request))
        request.scope[FACTS]["job"] = job.request.id
        return job

    async def _texts(
        self, request: Request, draft: Path
    ) -> tuple[schemas.JobQuestion, Path, Columns]:
        """The texts of a JSON body, as a file of JSON lines."""
        body = read_json(await request.body(), _JOB_TEXTS)
        for name in request.query_params:
            raise _wrong(f"{name} in the address goes with a file: say it in the JSON of the texts")
        path = draft / "input.jsonl"
        pairs = [isinstance(text, list) for text in body.texts]
        if any(pairs) and not all(pairs):
            place = pairs.index(not pairs[0])
            raise _wrong(f"texts[{place}] must be what texts[0] is: pairs, or single texts")
        with path.open("wb") as file:
            for text in body.texts:
                file.write(text_line(text))
        columns = Columns(pair=PAIR) if any(pairs) else Columns("text")
        return body, path, columns

    async def _file(
        self, request: Request, draft: Path
    ) -> tuple[schemas.JobQuestion, Path, Columns]:
        given = dict(request.query_params)
        for name in given:
            if len(request.query_params.getlist(name)) > 1:
                raise _wrong(f"{name} stands twice in the address: say it once")
        kind = given.pop("format", None) or FORMATS.get(_media(request))
        if kind not in SUFFIXES.values():
            kinds = ", ".join(SUFFIXES.values())
            sent = f"format={kind}" if kind else f"Content-Type {_media(request) or 'none'}"
            message = (
                f"{sent} is no kind of file that is read: send {', '.join(FORMATS)}, or say which "
                f"format it is with ?format= ({kinds}); or texts as application/json"
            )
            raise Problem(415, "unknown_format", shown(message))
        try:
            asked = _JOB_FILE.validate_python(_from_address(given))
        except ValidationError as error:
            raise invalid(error.errors()) from None
        path = draft / f"input.{kind}"
        with path.open("wb") as file:
            await self._store_body(request, file)
        return asked, path, asked.columns()

    async def _store_body(self, request: Request, file: IO[bytes]) -> None:
        most, begun, size = self._settings.job_bytes, time.monotonic(), 0
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise _too_large(most)
        parts = bytearray()
        stream = request.stream()
        while True:
            left = begun + self._settings.arrival_seconds + size / _SLOWEST - time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, left)):
                    block = await anext(stream, None)
            except ClientDisconnect:
                raise Cancelled from None
            except TimeoutError:
                late = f"the file did not arrive at {_SLOWEST:,} bytes a second: send it again"
                raise Problem(408, "slow_body", late, {"Connection": "close"}) from None
            size += len(block or b"")
            if size > most:
                raise _too_large(most)
            parts += block or b""
            if block is None or len(parts) >= _BLOCK:
                await asyncio.to_thread(_write, file, bytes(parts))
                parts.clear()
            if block is None:
                return

    def _admit(
        self,
        store: JobStore,
        path: Path,
        asked: schemas.JobQuestion,
        columns: Columns,
        owner: str,
    ) -> Job:
        """A job whose file can be read, and whose options go together; in a thread."""
        try:
            rows = file_rows(path, columns).total
        except DataError as error:
            message = str(error).replace(f"{path.parent}/", "")
            raise Problem(422, "unusable_file", shown(message)) from None
        if rows > self._settings.job_rows:
            message = f"{rows:,} rows are more than {self._settings.job_rows:,}: send several files"
            raise Problem(422, "too_many_rows", message)
        about: dict[str, Any] = {
            "owner": owner,
            "kind": asked.kind,
            "model": self._host.answering(asked.kind, asked.model),
            "name": asked.name or path.name,
            "input": path.name,
            "options": asked.options.given(),
            "columns": columns,
            "positive": asked.positive,
            "rows": rows,
            "bytes": path.stat().st_size,
        }
        # Refused now where it would be refused then.
        job_task(self._host, JobRequest(id="", created=0.0, **about), RequestContext())
        return store.admit(path.parent, **about)


_JOB_TEXTS: TypeAdapter[schemas.JobTexts] = TypeAdapter(schemas.JobTexts)
_JOB_FILE: TypeAdapter[schemas.JobFile] = TypeAdapter(schemas.JobFile)


def _from_address(given: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = dict(given)
    for name in _LISTS:
        if name in found:
            found[name] = found[name].split(",")
    if "options" in found:
        try:
            found["options"] = json.loads(found["options"])
        except (ValueError, RecursionError):
            raise _wrong(
                'options must be a JSON object, as {"keep": 2}, not ' + repr(found["options"][:40])
            ) from None
    return found


def _wrong(message: str) -> Problem:
    return Problem(422, "invalid_request", shown(message))


def _too_large(most: int) -> Problem:
    message = f"the file is larger than {most:,} bytes: send several"
    return Problem(413, "body_too_large", message, {"Connection": "close"})


def _media(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _ascii(name: str) -> str:
    return "".join(
        char if char.isalnum() or char in ".-_" else "_" for char in name if char.isascii()
    )


def _write(file: IO[bytes], data: bytes) -> None:
    try:
        file.write(data)
    except OSError as error:
        message = "the service cannot store the file now: try again later"
        raise Problem(503, "no_room", message, {"Retry-After": "60"}) from error


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Blocks of a file that may be growing, up to the end of its last line."""
    with file:
        while lines := file.readlines(_BLOCK):
            cut_off = not lines[-1].endswith(b"\n")
            yield b"".join(lines[:-1] if cut_off else lines)
            if cut_off:
                return

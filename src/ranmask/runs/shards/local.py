"""Workers as processes of this machine.

Each holds a model of its own and answers through a pipe.  A worker ends with the driver, even
where that one is killed; the driver ends all of them, and replaces one that ended by itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError, OptionError, RanmaskError
from ranmask.runs.shards.work import Job, Refusal, Report, Workshop, prepare_process
from ranmask.runs.shards.workers import Answer, Lost, Piece, Survived, check_alike

_FAILED_STARTS = 3
_SECONDS_TO_END = 5.0
_VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class _Raised:
    """What surprised a worker, which ends after it has said so."""

    trace: str


class _Worker:
    """One place for a process, and the process in it."""

    def __init__(self, job: Job, place: int) -> None:
        self._job, self._place = job, place
        self.ready = False
        self.piece: Piece | None = None
        self.start()

    def start(self) -> None:
        """A new process in this place."""
        context = multiprocessing.get_context("spawn")  # a forked process cannot use a GPU
        self.ready, self.piece = False, None
        self.pipe, theirs = context.Pipe()
        self.process: Any = context.Process(
            target=_serve, args=(theirs, self._job, self._place, os.getpid())
        )
        self.process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    def end(self) -> str:
        """End the process; returns what it died of, in words."""
        self.pipe.close()
        self.process.join(_SECONDS_TO_END)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        code = self.process.exitcode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"its worker was ended by {signal.Signals(-code).name}"
        return f"its worker ended with exit code {code}"


class LocalEngine:
    """So many worker processes.  Close it, or use it as a context manager."""

    def __init__(self, job: Job, workers: int = 1) -> None:
        if workers < 1:
            raise OptionError(f"workers must be at least 1, not {workers}")
        self._workers = [_Worker(job, place) for place in range(workers)]
        self._first: Report | None = None
        self._failed_starts = 0

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def report(self) -> Report:
        """What the first worker says of itself; waits for it."""
        while self._first is None:
            answer = self.wait()
            assert answer is None, "nothing was submitted"
        return self._first

    @property
    def idle(self) -> int:
        """Workers that wait for a piece."""
        return sum(worker.ready and worker.piece is None for worker in self._workers)

    def submit(self, piece: Piece) -> None:
        """Hand a piece to an idle worker."""
        worker = next(one for one in self._workers if one.ready and one.piece is None)
        worker.piece = piece
        with contextlib.suppress(OSError):  # it has just died, as `wait` will find
            worker.pipe.send(piece)

    def wait(self) -> Answer | None:
        """Wait for an answer, or (None) until the number of idle workers may have changed."""
        pipes = {worker.pipe: worker for worker in self._workers}
        heard: Any = wait(list(pipes))[0]
        worker = pipes[heard]
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            return self._replace(worker, None)
        if isinstance(message, _Raised):
            return self._replace(worker, message.trace)
        if not worker.ready:
            self._begun(worker, message)
            return None
        piece, worker.piece = worker.piece, None
        assert piece is not None, "an answer to a question"
        return Answer(piece, message)

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            if worker.process.is_alive():
                worker.process.terminate()
        for worker in self._workers:
            worker.end()

    def _begun(self, worker: _Worker, said: Report | Refusal) -> None:
        if isinstance(said, Refusal):
            raise said.error()
        if self._first is None:
            self._first = said
        check_alike(self._first, said)
        worker.ready, self._failed_starts = True, 0

    def _replace(self, worker: _Worker, trace: str | None) -> Answer | None:
        piece, ready = worker.piece, worker.ready
        why = worker.end()
        why = why if trace is None else f"its worker ended with an error\n{trace.rstrip()}"
        if not ready:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise ModelError(
                    f"{_FAILED_STARTS} workers in a row ended while they loaded the model, most "
                    f"likely for want of memory: use fewer workers. The last: {why}"
                )
        worker.start()
        return None if piece is None else Answer(piece, Lost(why, blamed=True))


def _serve(pipe: Connection, job: Job, place: int, parent: int) -> None:
    """The life of a worker: load, then answer until the driver is gone."""
    # Ctrl-C reaches every process of a terminal: the driver hears it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    multiprocessing.set_start_method(None, force=True)  # the platform's own, not this one's
    prepare_process(job)
    _choose_gpu(place)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        for message in _messages(pipe, job):
            pipe.send(message)


def _messages(pipe: Connection, job: Job) -> Iterator[object]:
    try:
        try:
            workshop = Workshop(job.make)
        except RanmaskError as error:
            yield Refusal.of(error)
            return
        yield workshop.report
        while True:
            piece: Piece = pipe.recv()
            if piece.trial:
                workshop.survives(piece.rows)
                yield Survived()
            else:
                yield workshop.part(piece.rows)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except Exception:  # a bug, or a GPU in an unknown state: a new process begins afresh
        yield _Raised(traceback.format_exc())


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _choose_gpu(place: int) -> None:
    """One GPU for each worker, in turn, where there are several; before any library is loaded."""
    given = os.environ.get(_VISIBLE_GPUS)
    if given is not None:
        gpus = [one for one in given.split(",") if one]
    else:
        folder = Path("/proc/driver/nvidia/gpus")
        count = len(list(folder.iterdir())) if folder.is_dir() else 0
        gpus = [str(number) for number in range(count)]
    if len(gpus) > 1:
        os.environ[_VISIBLE_GPUS] = gpus[place % len(gpus)]

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
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ranmask.errors import RanmaskError
from ranmask.runs.shards.work import Job, Worker, prepare_process
from ranmask.runs.shards.workers import Lost, Place, WorkerPool

_SECONDS_TO_END = 5.0
_VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
_DRIVER_GONE = (EOFError, BrokenPipeError, ConnectionResetError)


class _Process(Place):
    """A place for a process, and the process in it."""

    pipe: Any
    process: Any

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


class LocalPool(WorkerPool):
    """So many worker processes."""

    def __init__(self, job: Job, workers: int = 1) -> None:
        super().__init__()
        self._job = job
        self.places = [_Process(number) for number in range(workers)]
        for place in self.places:
            self._start(place)

    def _start(self, place: _Process) -> None:
        context = multiprocessing.get_context("spawn")  # a forked process cannot use a GPU
        place.pipe, theirs = context.Pipe()
        place.process = context.Process(
            target=_serve, args=(theirs, self._job, place.number, os.getpid())
        )
        place.process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    def _ask(self, place: _Process) -> None:
        with contextlib.suppress(OSError):  # it has just died, as `_hear` will find
            place.pipe.send(place.piece)

    def _hear(self) -> tuple[_Process, Any]:
        pipes = {place.pipe: place for place in self.places}
        heard: Any = wait(list(pipes))[0]
        place = pipes[heard]
        try:
            said = place.pipe.recv()
        except (EOFError, OSError):
            return place, Lost(place.end(), blamed=True)
        if isinstance(said, Lost):
            place.end()
        return place, said

    def close(self) -> None:
        """End all processes."""
        for place in self.places:
            if place.process.is_alive():
                place.process.terminate()
        for place in self.places:
            place.end()


def _serve(pipe: Connection, job: Job, place: int, parent: int) -> None:
    """The life of a worker: load, then answer until the driver is gone."""
    # Ctrl-C reaches every process of a terminal: the driver hears it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    multiprocessing.set_start_method(None, force=True)  # the platform's own, not this one's
    prepare_process(job)
    _choose_gpu(place)
    with contextlib.suppress(*_DRIVER_GONE):
        try:
            worker = Worker(job)
            pipe.send(worker.report)
            while True:
                pipe.send(worker.answer(pipe.recv()))
        except RanmaskError as error:
            pipe.send(error)
        except _DRIVER_GONE:
            raise
        except Exception:  # a bug, or a GPU in an unknown state: a new process begins afresh
            trace = traceback.format_exc().rstrip()
            pipe.send(Lost(f"its worker ended with an error\n{trace}", blamed=True))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _choose_gpu(place: int) -> None:
    """One GPU for each worker, in turn, where there are several; before any library is loaded."""
    given = os.environ.get(_VISIBLE_GPUS)
    if given is not None:
        gpus = [gpu for gpu in given.split(",") if gpu]
    else:
        folder = Path("/proc/driver/nvidia/gpus")
        count = len(list(folder.iterdir())) if folder.is_dir() else 0
        gpus = [str(number) for number in range(count)]
    if len(gpus) > 1:
        os.environ[_VISIBLE_GPUS] = gpus[place % len(gpus)]

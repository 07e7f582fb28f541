"""Recipes from start to end: one step after the other, or several at once.

Whatever is done is written before the next step begins, so that a run that is killed loses no
finished step; the same call goes on.  A step that fails takes down only those that need it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Protocol

from ranmask.errors import OutputError
from ranmask.paper.reading import INDEX, INDEX_FORMAT, INDEX_VERSION, content
from ranmask.paper.reproduction.perform import Performed, RunCommand, finished, perform
from ranmask.paper.reproduction.plan import Planned, chosen, plan, result_name, run_folder
from ranmask.paper.reproduction.recipe import Recipe
from ranmask.paper.typed_json import to_json
from ranmask.results.files import draft, write_json, writing

_LEFT_OUT = ("data", "result", "words")  # of a step: its own files have them


class Display(Protocol):
    """What is told how the run goes on."""

    def begin(self, steps: int, done: int) -> None:
        """So many steps in all; so many were done before."""

    def started(self, planned: Planned) -> None:
        """A step begins."""

    def ended(self, planned: Planned, performed: Performed) -> None:
        """A step is done, or has failed; or it never began, as one that it needs failed."""


def reproduce(
    recipes: Sequence[Recipe],
    runs: Path,
    run_command: RunCommand,
    *,
    steps: str | None = None,
    jobs: int = 1,
    device: str | None = None,
    display: Display,
) -> dict[str, Performed]:
    """Run recipes and keep their results under ``runs``; returns what was not done, with why.

    Steps that several recipes share are done once.  ``steps``: only those that are `chosen`.
    ``jobs`` above 1 runs that many steps at once, each in a process of its own.
    """
    books = [
        _Book(recipe, run_folder(recipe, runs), plan(recipe, runs, device)) for recipe in recipes
    ]
    every = {key: step for book in books for key, step in book.steps.items()}
    wanted = chosen(list(every.values()), steps)
    known = {key: done for key, step in every.items() if (done := finished(step)) is not None}
    for book in books:
        for done in known.values():
            book.enter(done)
        book.write()
    display.begin(len(wanted), len(wanted & known.keys()))
    failed: dict[str, Performed] = {}
    todo = {key: every[key] for key in every if key in wanted and key not in known}
    if jobs > 1:
        performed = _parallel(todo, failed, run_command, display, jobs)
    else:
        performed = _serial(todo, failed, run_command, display)
    with (
        _interrupts() as interrupted,
        contextlib.closing(performed),  # where a record cannot be written, no process stays
    ):
        for done in performed:
            if done.error is not None:
                failed[done.key] = done
            for book in books:
                if book.enter(done):
                    book.write()
            display.ended(every[done.key], done)
            if interrupted.is_set():
                raise KeyboardInterrupt
    return failed


@contextlib.contextmanager
def _interrupts() -> Generator[threading.Event, None, None]:
    """Takes down that Ctrl-C was pressed, which also raises as ever.

    A library may swallow what is raised (a bare ``except``, a finalizer): the step goes on then,
    and the run must end after it.
    """
    pressed = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        pressed.set()
        signal.default_int_handler(number, frame)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed  # somebody else hears Ctrl-C
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _Book:
    """Keeps the record of one reproduction, and copies of its results."""

    def __init__(self, recipe: Recipe, folder: Path, steps: Sequence[Planned]) -> None:
        self._folder = folder
        self.steps = {step.key: step for step in steps}
        self._record = recipe

    def enter(self, performed: Performed) -> bool:
        """Take down how a step went; False where it is none of this reproduction's."""
        planned = self.steps.get(performed.key)
        if planned is None:
            return False
        if performed.error is None:
            target = self._folder / result_name(planned.step)
            training = planned.step.measures == "training"
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                with draft(target, shared=True) as copied:
                    source = planned.made / "training.json" if training else planned.made
                    shutil.copyfile(source, copied)
        steps = tuple(
            replace(
                step,
                state="done" if performed.error is None else "failed",
                seconds=performed.seconds,
                error=performed.error,
            )
            if step.name == planned.step.name
            else step
            for step in self._record.steps
        )
        machine = performed.machine or self._record.machine
        self._record = replace(self._record, steps=steps, machine=machine)
        return True

    def write(self) -> None:
        """Write ``reproduction.json``: what is run, on what, and what became of each step."""
        steps = [
            {
                **{key: value for key, value in to_json(step).items() if key not in _LEFT_OUT},
                "output": result_name(step),
            }
            for step in self._record.steps
        ]
        head = {"format": INDEX_FORMAT, "version": INDEX_VERSION}
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        write_json(self._folder / INDEX, {**head, **content(self._record, steps)}, shared=True)


def _serial(
    todo: Mapping[str, Planned],
    failed: Mapping[str, Performed],
    run_command: RunCommand,
    display: Display,
) -> Generator[Performed, None, None]:
    for planned in todo.values():
        blocked = _blocked(planned, failed)
        if blocked is None:
            display.started(planned)
        yield blocked or perform(planned, run_command)


def _parallel(
    todo: dict[str, Planned],
    failed: Mapping[str, Performed],
    run_command: RunCommand,
    display: Display,
    jobs: int,
) -> Generator[Performed, None, None]:
    """Several steps at once; first those for which the longest chains of others wait."""
    waiting = _most_awaited_first(todo)
    over = {key for step in todo.values() for key in step.needs} - set(todo)
    running: dict[Future[Performed], Planned] = {}
    context = multiprocessing.get_context("spawn")  # a forked process cannot use a GPU
    with ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_follow, initargs=(os.getpid(), jobs)
    ) as pool:
        try:
            while waiting or running:
                for key, planned in list(waiting.items()):
                    blocked = _blocked(planned, failed)
                    if blocked is not None:
                        del waiting[key]
                        yield blocked
                    elif len(running) < jobs and over.issuperset(planned.needs):
                        del waiting[key]
                        display.started(planned)
                        running[pool.submit(perform, planned, run_command)] = planned
                if not running:
                    continue
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    over.add(running.pop(future).key)
                    yield future.result()
        except BrokenProcessPool as error:
            raise OutputError(
                "a process ended before its step did, most likely for want of memory: the same "
                f"command goes on, and needs less with fewer --jobs than {jobs}"
            ) from error
        except BaseException:  # also where nobody asks for the rest
            for process in list(getattr(pool, "_processes", {}).values()):
                process.terminate()
            raise


def _most_awaited_first(todo: dict[str, Planned]) -> dict[str, Planned]:
    """Steps by how long a chain of others waits for each; of equals, in the order of recipes."""
    chains = dict.fromkeys(todo, 0)
    for key, planned in reversed(todo.items()):  # what a step needs stands before it
        for need in planned.needs:
            if need in chains:
                chains[need] = max(chains[need], chains[key] + 1)
    return dict(sorted(todo.items(), key=lambda item: -chains[item[0]]))


def _blocked(planned: Planned, failed: Mapping[str, Performed]) -> Performed | None:
    """What becomes of a step that needs one which failed; None where there is no such need."""
    for key in planned.needs:
        if key in failed:
            said = f"it needs {key}, which failed"
            return Performed(planned.key, 0.0, {}, said, blocked=True)
    return None


def _follow(parent: int, jobs: int) -> None:
    """Prepare a process: it ends with the one that started it, even where that one was killed.

    A spawned process would spawn its own, too, and hand them all of a model: what a command
    starts here is started as it is everywhere else.  The processes share the cores.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    multiprocessing.set_start_method(None, force=True)  # the platform's own
    # Ctrl-C reaches every process of a terminal: the first one hears it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

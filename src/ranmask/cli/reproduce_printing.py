"""A reproduction as people follow it: one display on a terminal, one line a step elsewhere."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ranmask.cli.terminal import error_console, print_lines
from ranmask.paper.reproduction.perform import Performed, log_path
from ranmask.paper.reproduction.plan import Planned

_REFRESH_SECONDS = 1.0


class ReproductionDisplay:
    """Shows how far the steps are, on standard error.  Use as a context manager.

    How far a step is inside is read from what it writes, so that it may run in any process.
    """

    def __init__(self) -> None:
        # Bound to the stream that is there now: commands print into logs while they run.
        self._console = error_console(bound=True)
        self._lively = self._console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            console=self._console,
            transient=True,
            disable=not self._lively,
        )
        self._all: Any = None
        self._watched: dict[str, tuple[Any, _Watched]] = {}
        self._total = self._done = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ReproductionDisplay:
        self._bar.start()
        if self._lively:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._bar.stop()

    def begin(self, steps: int, done: int) -> None:
        """So many steps in all; so many were done before."""
        self._total, self._done = steps, done
        if done:
            print_lines(self._console, f"{done} of {steps} steps are done")
        self._all = self._bar.add_task("steps", total=steps, completed=done, detail="")

    def started(self, planned: Planned) -> None:
        """A step begins."""
        total = planned.texts if planned.step.measures != "training" else None
        task = self._bar.add_task(planned.title, total=total, detail="")
        self._watched[planned.key] = task, _Watched(planned)
        if not self._lively:
            print_lines(self._console, f"{planned.title}: begins")

    def ended(self, planned: Planned, performed: Performed) -> None:
        """A step is done, or has failed."""
        begun = self._watched.pop(planned.key, None)
        if begun is not None:
            self._bar.remove_task(begun[0])
        self._done += 1
        self._bar.advance(self._all)
        place = f"[{self._done}/{self._total}] {planned.title}"
        if performed.error is None:
            print_lines(self._console, f"{place}: done in {performed.seconds:.0f} s")
        elif performed.blocked:
            print_lines(self._console, f"{place}: not begun: {performed.error}")
        else:
            print_lines(self._console, f"{place}: failed: {performed.error}")
            if begun is not None:
                print_lines(self._console, f"    its log: {log_path(planned)}")

    def _watch(self) -> None:
        while not self._stop.wait(_REFRESH_SECONDS):
            for task, watched in list(self._watched.values()):
                done, total, detail = watched.look()
                with contextlib.suppress(KeyError):  # it ended meanwhile
                    self._bar.update(task, completed=done, total=total, detail=detail)


class _Watched:
    """How far one step is, by the file that it writes."""

    def __init__(self, planned: Planned) -> None:
        self._training = planned.step.measures == "training"
        self._file: Path = planned.made / "training.jsonl" if self._training else planned.made
        self._texts = planned.texts
        self._read = self._lines = 0
        self._last = b""

    def look(self) -> tuple[int, int | None, str]:
        """What is done, of how much, and a word about it."""
        with contextlib.suppress(OSError), self._file.open("rb") as file:
            file.seek(self._read)
            fresh = file.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self._read += len(whole)
            self._lines += whole.count(b"\n")
            self._last = whole.splitlines()[-1] if whole else self._last
        if not self._training:
            return self._lines, self._texts, "texts"
        with contextlib.suppress(ValueError, KeyError, TypeError):  # not such a line
            line = json.loads(self._last)
            return int(line["step"]), int(line["steps"]), f"{line['phase']} training"
        return 0, None, "training"

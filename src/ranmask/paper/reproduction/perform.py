"""One step: run its command, keep what it prints, and mark it as done.

A step that was interrupted goes on where it stopped, for every ranmask command resumes.  Of two
runs that need the same step the second waits for the first.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

from ranmask import __version__
from ranmask.errors import DataError
from ranmask.paper.reproduction.plan import Planned
from ranmask.results.files import lock, read_json, write_json, writing

FORMAT, VERSION = "ranmask-step", 1

RunCommand: TypeAlias = Callable[[Sequence[str]], int]
"""Runs one ranmask command in this process and returns its exit code."""

_DONE = "step.json"
_GOOD = (0, 3)  # 3: all rows are done, and some have errors, which their lines name
_INTERRUPTED = 130


@dataclass(frozen=True)
class Performed:
    """How a step went.

    ``error``: what the command said, where it failed.  ``blocked``: it was not even begun, because
    a step that it needs failed.
    """

    key: str
    seconds: float
    machine: Mapping[str, str]
    error: str | None = None
    blocked: bool = False


def log_path(planned: Planned) -> Path:
    """Where a step's command prints to."""
    return planned.folder / "log.txt"


def finished(planned: Planned) -> Performed | None:
    """How a step went that is done; None where it is not, or where what it made is gone."""
    path = planned.folder / _DONE
    if not (path.is_file() and planned.made.exists()):
        return None
    try:
        content = read_json(path, format=FORMAT, version=VERSION)
        return Performed(planned.key, float(content["seconds"]), dict(content["machine"]))
    except (DataError, KeyError, TypeError, ValueError):
        return None  # a broken file: the step's own command finds out what is left to do


def perform(planned: Planned, run_command: RunCommand) -> Performed:
    """Do a step, unless it is done; raises `KeyboardInterrupt` where it is interrupted."""
    place = planned.folder / "lock"
    with contextlib.ExitStack() as opened:
        with writing(place):  # only one process at a time, where the system can lock files
            planned.folder.mkdir(parents=True, exist_ok=True)
            file = opened.enter_context(place.open("a"))
            lock(file, place, wait=True)
        done = finished(planned)
        if done is not None:
            return done
        start = time.monotonic()
        code, said = _run(planned, run_command)
        seconds = round(time.monotonic() - start, 1)
        here = machine(gpu="cpu" not in planned.words)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        error = None
        if code not in _GOOD:
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            last = lines[-1].removeprefix("error: ") if lines else ""
            error = last or f"its command ended with exit code {code}"
        elif not planned.made.exists():
            error = f"its command made no {planned.made.name}"
        else:
            head = {"format": FORMAT, "version": VERSION, "command": list(planned.words)}
            record = {**head, "seconds": seconds, "machine": here}
            write_json(planned.folder / _DONE, record, shared=True)
        return Performed(planned.key, seconds, here, error)


def _run(planned: Planned, run_command: RunCommand) -> tuple[int, str]:
    """The exit code of a step's command, and what it printed, which its log keeps."""
    path = log_path(planned)
    with writing(path), path.open("a+", encoding="utf-8", errors="backslashreplace") as log:
        before = log.seek(0, os.SEEK_END)  # a log also holds what earlier attempts said
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            try:
                code = run_command(planned.words)
            except Exception:  # a bug, or no memory: the other steps can still be done
                traceback.print_exc(file=log)
                code = 1
            finally:  # what a step leaves on a GPU, other steps that share it may need
                torch: Any = sys.modules.get("torch")
                if torch is not None and torch.cuda.is_available():
                    gc.collect()
                    torch.cuda.empty_cache()
        log.seek(before)
        return code, log.read()


def machine(*, gpu: bool) -> dict[str, str]:
    """Versions and hardware, as the figures that depend on them should name them.

    ``gpu`` False: it was not used, even if there is one.
    """
    found = {"ranmask": __version__, "python": platform.python_version()}
    for package in ("torch", "transformers"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    torch: Any = sys.modules.get("torch")  # not loaded: nothing ran on a GPU
    hardware = f"{os.cpu_count()} CPU cores ({platform.machine()})"
    if gpu and torch is not None and torch.cuda.is_available():
        hardware = f"one {torch.cuda.get_device_name(0)}"
    return {**found, "hardware": hardware}

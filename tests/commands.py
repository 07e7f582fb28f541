"""Runs a ranmask command in this process."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

from ranmask.cli.main import run_command


@dataclass
class Done:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def run_cli(*words: object) -> Done:
    """An exception that is none of ours is raised, and so fails the test that did not expect it."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command([str(word) for word in words])
    return Done(code, out.getvalue(), err.getvalue())

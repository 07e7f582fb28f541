"""The command line: parse, call, print.

Exit codes: 0 all rows done; 1 the run could not be done or finished; 2 wrong usage or options;
3 finished, but some rows have errors; 4 trained, but no better than the largest class
(``train --fail-below-majority``); 130 interrupted.  Heavy libraries are imported when a
command needs them, so that ``ranmask --help`` answers at once.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ranmask import __version__
from ranmask.cli import cascade, runs
from ranmask.cli.attack import attack
from ranmask.cli.beta import beta
from ranmask.cli.certify import certify, predict
from ranmask.cli.compare import compare
from ranmask.cli.options import tame_libraries
from ranmask.cli.report import report
from ranmask.cli.reproduce import reproduce_by
from ranmask.cli.serve import serve
from ranmask.cli.train import train
from ranmask.cli.tune import tune
from ranmask.errors import OptionError, RanmaskError

FAILED, WRONG_USAGE, SOME_ROWS_FAILED, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Certified robustness for text classifiers: labels with a proved radius, in words.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some rows have errors, 4 trained but "
    "not better than the largest class (on request), 130 interrupted.",
)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", show_default=False)
    ] = False,
) -> None:
    if version:
        typer.echo(f"ranmask {__version__}")
        raise typer.Exit
    del context


def _register(group: typer.Typer, *commands: Callable[..., bool | None]) -> None:
    """Add commands that return whether a row failed, or nothing."""
    for command in commands:
        group.command(command.__name__, help=command.__doc__)(_with_exit_codes(command))


def _with_exit_codes(command: Callable[..., bool | None]) -> Callable[..., None]:
    @functools.wraps(command)
    def called(*args: Any, **kwargs: Any) -> None:
        with _errors_as_exit_codes():
            if command(*args, **kwargs):
                raise typer.Exit(SOME_ROWS_FAILED)

    return called


def blend(
    parts: Annotated[
        list[str], typer.Argument(help="Folders of two or more models of the same classes.")
    ],
    output: Annotated[Path, typer.Option(help="Folder for the blend.", show_default=False)],
) -> None:
    """Make one classifier of several: the mean of their scores, certified as one."""
    tame_libraries()
    from ranmask.smoothing.store import blend_folders

    blend_folders(parts, output)
    typer.echo(f"{output}: {len(parts)} parts", err=True)


def run_command(words: Sequence[str]) -> int:
    """Run a ranmask command in this process, and return its exit code."""
    try:
        app(list(words))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    return 0


cascade_group = typer.Typer(
    no_args_is_help=True,
    help="Plain for clean texts, smoothed for suspicious ones: build a cascade and look at it.",
)
app.add_typer(cascade_group, name="cascade")
runs_group = typer.Typer(
    no_args_is_help=True,
    help="Folders of sharded runs (--shard-rows): how far, in order or not, one file of them.",
)
app.add_typer(runs_group, name="runs")


_register(app, certify, predict, blend, attack, beta, train, tune)
_register(app, reproduce_by(run_command), report, compare, serve)
_register(runs_group, runs.show, runs.verify, runs.merge)
_register(cascade_group, cascade.detector, cascade.build, cascade.report)


@contextmanager
def _errors_as_exit_codes() -> Iterator[None]:
    """Every error on purpose becomes one line on standard error and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader went away, as `head` does.  Nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
    except RanmaskError as error:
        typer.echo(f"error: {error}", err=True)
        code = WRONG_USAGE if isinstance(error, OptionError) else FAILED
        raise typer.Exit(code) from None


def main() -> None:
    """The ``ranmask`` command."""
    app()

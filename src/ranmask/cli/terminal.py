"""What people see of a command while it works, on standard error: lines, and a bar; no more."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ranmask.metrics import aligned
from ranmask.runs.csv_lines import CsvLines

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[
    bool,
    Parameter(name="--json", negative=(), show_default=False, help="JSON, also on a terminal."),
]

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """A text that anyone may have written, without what a terminal would take for a command."""
    return _CONTROLS.sub("\ufffd", text)


_quiet = False  # of the command that runs


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """In this block, say nothing but errors, or say all."""
    global _quiet
    before, _quiet = _quiet, quiet
    try:
        yield
    finally:
        _quiet = before


def say(*lines: str) -> None:
    """Lines on standard error, apart from results."""
    for line in () if _quiet else lines:
        print(line, file=sys.stderr, flush=True)


def error_console(*, bound: bool = False) -> Console:
    """Standard error for tables and colours; ``bound``: the stream that it is now, for good."""
    from rich.console import Console

    return Console(file=sys.stderr if bound else None, stderr=True, quiet=_quiet)


@contextmanager
def printed_lines(
    kind: Literal["json", "csv"] | None,
) -> Iterator[Callable[[Mapping[str, Any]], None] | None]:
    """Yields a function that prints a line on standard output as soon as it comes; or None."""
    if kind is None:
        yield None
        return
    if kind == "json":
        yield lambda line: print(json.dumps(line), flush=True)
        return
    table = CsvLines(sys.stdout)
    yield table.write
    table.flush()
    sys.stdout.flush()


@contextmanager
def resumed_later(output: Path | None) -> Iterator[None]:
    """Say, where a command is interrupted, that the same one goes on."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if output is not None:
            say(f"interrupted: the same command resumes {output}")
        raise


@contextmanager
def progress(total: int, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Yields a function that moves the bar on; silent where standard error is not a terminal."""
    from rich import progress as bars

    console = error_console()
    with bars.Progress(
        *(bars.TextColumn("texts"), bars.BarColumn(), bars.MofNCompleteColumn()),
        *(bars.TimeElapsedColumn(), bars.TimeRemainingColumn()),
        console=console,
        transient=True,
        disable=_quiet or not console.is_terminal,
    ) as bar:
        task = bar.add_task("texts", total=total, completed=done)
        yield lambda count: bar.advance(task, count)


def untie_libraries() -> None:
    """Have libraries say what they do, whatever `tame_libraries` would have them."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "info")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "0")
    os.environ.setdefault("TQDM_DISABLE", "")


def tame_libraries() -> None:
    """Have libraries say little, and keep little.  Call it before they are imported."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Batches have ever other shapes: kernels that are made for each and kept, up to a thousand,
    # are memory that grows for minutes, and looking them up takes longer than making them.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")


def print_lines(console: Console, *lines: str) -> None:
    """Lines as they are: no colours, no markup, no breaks."""
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns, the first to the left and the others to the right; coloured on a terminal."""
    if not sys.stdout.isatty():
        print(*aligned(head, rows), sep="\n")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left", no_wrap=not place)
    for row in rows:
        table.add_row(*row, style="bold" if row[-1] == "*" else None)
    Console().print(table)

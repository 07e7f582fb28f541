"""``ranmask runs``: look at the folder of a sharded run, check it, make one file of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranmask.attacks.outcome import AttackSummary
from ranmask.cli.terminal import AsJson
from ranmask.errors import DataError
from ranmask.runs.summary import RunSummary

if TYPE_CHECKING:
    from ranmask.runs.detect import DetectionSummary

Folder = Annotated[Path, Parameter(help="Folder of a run with --shard-rows.")]


def verify(folder: Folder, /) -> None:
    """Check a sharded run: every checksum, every row once, none missing."""
    from ranmask.runs.shards.reading import verify as check

    found = check(folder)
    if found.problems:
        raise DataError(f"{folder} is not in order:\n" + "\n".join(found.problems))
    print(
        f"{folder}: {found.parts} parts, {found.rows} rows, {found.errors} with errors, all whole"
    )


def merge(
    run: Annotated[Path, Parameter(help="Folder of a run with --shard-rows, or its .jsonl file.")],
    output: Annotated[Path, Parameter(help="One .jsonl, .parquet or .csv file.")],
    /,
) -> None:
    """Make one file of a finished sharded run, in the order of its rows; or CSV of any run.

    A .jsonl file is what the same command without --shard-rows writes, with its record.
    """
    from ranmask.runs.shards.reading import merge as merge_parts
    from ranmask.runs.stored import file_as_csv

    if run.is_file():
        rows = file_as_csv(run, output)
    else:
        rows = merge_parts(run, output, _summary(run).values())
    print(f"{output}: {rows} rows")


def show(folder: Folder, /, *, as_json: AsJson = False) -> None:
    """Show how far a sharded run is, and the summary of its results so far."""
    from ranmask.runs.shards.folder import read_manifest

    manifest, summary = read_manifest(folder), _summary(folder)
    if as_json:
        about = {
            "command": manifest.command,
            "finished": manifest.finished,
            "parts": len(manifest.parts),
            "expected_rows": manifest.expected_rows,
            "summary": summary.values(),
        }
        print(json.dumps(about))
        return
    known = manifest.expected_rows is None or manifest.finished
    at_most = "" if known else f" of at most {manifest.expected_rows}"
    state = "finished" if manifest.finished else "not finished: the same command resumes it"
    print(f"{folder}: ranmask {manifest.command}, {state}")
    print(f"{len(manifest.parts)} parts, {manifest.rows}{at_most} rows")
    from rich.console import Console

    from ranmask.cli.attack_printing import print_attack_summary
    from ranmask.cli.detect_printing import summary_lines
    from ranmask.cli.printing import print_run
    from ranmask.runs.detect import DetectionSummary

    if isinstance(summary, RunSummary):
        print_run(Console(), summary, folder)
    elif isinstance(summary, DetectionSummary):
        print(*summary_lines(summary.values()), sep="\n")
    else:
        print_attack_summary(Console(), str(manifest.run["recipe"]["name"]), summary)


def _summary(folder: Path) -> RunSummary | AttackSummary | DetectionSummary:
    from ranmask.attacks import runs
    from ranmask.runs import detect
    from ranmask.runs.shards.folder import read_manifest
    from ranmask.runs.shards.reading import summarise_folder

    command = read_manifest(folder).command
    if command == detect.COMMAND:
        return detect.summarise_folder(folder)
    attacked = command == "attack"
    return runs.summarise_folder(folder) if attacked else summarise_folder(folder)

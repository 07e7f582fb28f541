"""``ranmask runs``: look at the folder of a sharded run, check it, make one file of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranmask.cli.sharding import class_names, print_attacked, print_results, result_values
from ranmask.cli.terminal import AsJson
from ranmask.errors import DataError

if TYPE_CHECKING:
    from ranmask.runs.shards.folder import Manifest

Folder = Annotated[Path, Parameter(help="Folder of a run with --shard-rows.")]


def verify(folder: Folder, /) -> None:
    """Check a sharded run: every checksum, every row once, none missing."""
    from ranmask.runs.shards.checking import verify as check

    found = check(folder)
    if found.problems:
        raise DataError(f"{folder} is not in order:\n" + "\n".join(found.problems))
    _say(f"{folder}: {found.parts} parts, {found.rows} rows, {found.errors} with errors, all whole")


def merge(
    folder: Folder,
    output: Annotated[Path, Parameter(help="One .jsonl or .parquet file.")],
    /,
) -> None:
    """Make one file of a finished sharded run, in the order of its rows.

    A .jsonl file is what the same command without --shard-rows writes, with its record.
    """
    from ranmask.runs.shards.folder import read_manifest
    from ranmask.runs.shards.merging import merge as merge_parts

    manifest = read_manifest(folder)
    rows = merge_parts(folder, output, _values(folder, manifest))
    _say(f"{output}: {rows} rows")


def show(
    folder: Folder,
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """How far a sharded run is, and what its results are worth so far."""
    from ranmask.runs.shards.folder import read_manifest

    manifest = read_manifest(folder)
    if as_json:
        about = {
            "command": manifest.command,
            "finished": manifest.finished,
            "parts": len(manifest.parts),
            "expected_rows": manifest.expected_rows,
            "summary": _values(folder, manifest),
        }
        sys.stdout.write(json.dumps(about) + "\n")
        return
    at_most = "" if manifest.expected_rows is None else f" of at most {manifest.expected_rows}"
    state = "finished" if manifest.finished else "not finished: the same command resumes it"
    _say(f"{folder}: ranmask {manifest.command}, {state}")
    _say(f"{len(manifest.parts)} parts, {manifest.rows}{at_most} rows")
    from rich.console import Console

    printed = print_attacked if manifest.command == "attack" else print_results
    printed(Console(), folder, manifest)


def _values(folder: Path, manifest: Manifest) -> dict[str, Any]:
    if manifest.command != "attack":
        return result_values(folder, manifest)
    from ranmask.attacks.runs import summarise_shards

    return summarise_shards(folder, manifest).values(class_names(manifest))


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")

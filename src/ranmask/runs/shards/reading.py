"""What a sharded run left: its lines, its summary, one file of it, and whether it is in order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask.data.rows import arrow
from ranmask.errors import DataError, OptionError
from ranmask.results.files import check_new_file, draft, writing
from ranmask.runs.csv_lines import write_csv
from ranmask.runs.result_file import ResultFile
from ranmask.runs.shards.columns import batches, decoded, with_constants_of
from ranmask.runs.shards.folder import Manifest, checksum, read_manifest
from ranmask.runs.shards.work import PartRecord
from ranmask.runs.summary import RunSummary

_SUMMARISED = ("expected_id", "label_id", "correct", "words")


def folder_lines(folder: Path, manifest: Manifest | None = None) -> Iterator[dict[str, Any]]:
    """The lines of all parts, in the order of the rows, as a run without shards has them."""
    known = manifest or read_manifest(folder)
    for part in known.parts:
        yield from decoded(folder / part.name)


def summarise_folder(folder: Path) -> RunSummary:
    """What all parts amount to; counted by columns, which is fast."""
    manifest = read_manifest(folder)
    options = manifest.run["classifier"].get("options", {})
    summary = RunSummary(manifest.command, manifest.labels, positive=options.get("positive"))
    if "compare" in options or summary.positive is not None:
        summary.add(folder_lines(folder, manifest))
        return summary
    pyarrow = arrow()
    results = (line for line in folder_lines(folder, manifest) if "label_id" in line)
    guarantee = next(results, {}).get("guarantee", False)  # the same in all
    names = (*_SUMMARISED, "radius") if summary.has_radii else _SUMMARISED
    for part in manifest.parts:
        for batch in batches(folder / part.name, names):
            table = pyarrow.Table.from_batches([batch])
            counted = table.group_by(list(names)).aggregate([([], "count_all")])
            for group in counted.to_pylist():
                if group["correct"] is not None:
                    summary.add_labelled(group, group["count_all"])
                elif group["label_id"] is not None:
                    summary.add_unlabelled({**group, "guarantee": guarantee}, group["count_all"])
    summary.rows = manifest.rows
    summary.errors = sum(part.errors for part in manifest.parts)
    summary.reader_failed = sum(part.unread for part in manifest.parts)
    return summary


def merge(folder: Path, output: Path, finished: dict[str, Any]) -> int:
    """Write all rows of a finished run, in their order, to one file; returns how many.

    ``.jsonl``: what a run without shards writes, ``finished`` being its summary.  ``.parquet``: the
    parts, one after the other.  ``.csv``: for people (`csv_lines`).  Each part's checksum is
    compared before it is used; the file appears when it is whole.
    """
    manifest = read_manifest(folder)
    if not manifest.finished:
        raise DataError(f"the run in {folder} is not finished: run it again to resume")
    check_new_file(output)
    if output.suffix not in (".jsonl", ".parquet", ".csv"):
        raise OptionError(
            f"cannot merge into {output}: its name must end in .jsonl, .parquet or .csv"
        )
    with writing(output), draft(output) as place:
        parts = _whole_parts(folder, manifest)
        if output.suffix == ".parquet":
            _merge_parquet(folder, manifest, place)
        elif output.suffix == ".csv":
            write_csv((line for part in parts for line in decoded(part)), place)
        else:
            with ResultFile(place, manifest.run) as results:
                for part in parts:
                    results.write(list(decoded(part)))
                results.finish(finished)
    return manifest.rows


def _merge_parquet(folder: Path, manifest: Manifest, place: Path) -> None:
    parquet = arrow().parquet
    writer: Any = None
    try:
        for part in _whole_parts(folder, manifest):
            table = parquet.read_table(part)
            if writer is None:
                writer = parquet.ParquetWriter(place, table.schema, compression="zstd")
            if table.schema.metadata != writer.schema.metadata:
                table = with_constants_of(table, writer.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise DataError(f"the run in {folder} has no rows to merge")


def _whole_parts(folder: Path, manifest: Manifest) -> Iterator[Path]:
    for part in manifest.parts:
        path = folder / part.name
        if not path.is_file() or checksum(path) != part.sha256:
            raise DataError(
                f"{path} is missing or has changed: the command that wrote it does it again"
            )
        yield path


@dataclass(frozen=True)
class Verified:
    """What `verify` found: how much there is, and what is wrong with it, in words."""

    parts: int
    rows: int
    errors: int
    problems: tuple[str, ...]


def verify(folder: Path) -> Verified:
    """Check every file of a folder: checksums, counts, no row missing, no row twice.

    Reads each file once.  Raises `DataError` where there is no manifest to check against.
    """
    manifest = read_manifest(folder)
    parts, problems = manifest.parts, []
    if not manifest.finished:
        of_all = f"{manifest.rows} of at most {manifest.expected_rows} rows"
        problems.append(f"the run is not finished: {of_all}; run it again to resume")
    else:
        numbers = {part.number for part in parts}
        if missing := sorted(set(range(max(numbers, default=0))) - numbers):
            problems.append(f"no part for the shards {', '.join(map(str, missing))}")
        strangers = {path.name for path in folder.glob("part-*")} - {part.name for part in parts}
        problems += [f"{name} is no part of the run" for name in sorted(strangers)]
    size = int(manifest.identity["sharding"]["shard_rows"])
    last = 0
    for part in parts:
        if part.rows > size or (part.rows < size and part != parts[-1]):
            problems.append(f"{part.name} has {part.rows} rows, a shard has {size}")
        problems += [f"{part.name}: {problem}" for problem in _wrong(folder, part, last)]
        last = max(last, part.last_row)
    errors = sum(part.errors for part in parts)
    return Verified(len(parts), manifest.rows, errors, tuple(problems))


def _wrong(folder: Path, part: PartRecord, last: int) -> Iterator[str]:
    path = folder / part.name
    if not path.is_file():
        yield "the file is missing"
        return
    if checksum(path) != part.sha256:
        yield "the file has changed: its checksum is another one"
        return
    numbers: list[int] = []
    errors = 0
    try:
        for batch in batches(path, ("row", "error")):
            errors += len(batch) - batch.column("error").null_count
            numbers += batch.column("row").to_pylist()
    except DataError as error:
        yield str(error)
        return
    for before, number in itertools.pairwise([last, *numbers]):
        if number <= before:
            yield f"row {number} comes after row {before}"
            return
    found = (len(numbers), errors, min(numbers, default=None), max(numbers, default=last))
    said = (part.rows, part.errors, part.first_row, part.last_row)
    if found != said:
        yield f"rows, errors, first and last row are {found}, in the manifest {said}"

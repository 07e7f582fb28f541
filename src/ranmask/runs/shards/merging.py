"""All parts of a run as one: its lines, its summary, one file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ranmask.errors import DataError, OptionError, OutputError
from ranmask.metrics import CertifiedSummary
from ranmask.runs.files import check_file
from ranmask.runs.run import KindSummary, line_bytes, reported, summarise_kinds
from ranmask.runs.shards.columns import batches, decoded
from ranmask.runs.shards.folder import Manifest, checksum, read_manifest

_SUMMARISED = ("expected_id", "correct", "words")


def lines(folder: Path, manifest: Manifest | None = None) -> Iterator[dict[str, Any]]:
    """The lines of all parts, in the order of the rows, as the command without shards has them."""
    known = manifest or read_manifest(folder)
    for part in known.parts:
        yield from decoded(folder / part.name, known.command)


def summarise(folder: Path, manifest: Manifest) -> tuple[CertifiedSummary, dict[str, int]]:
    """As `run.summarise`, of all parts; counted by columns, which is fast."""
    summary = CertifiedSummary()
    errors = sum(part.errors for part in manifest.parts)
    certified = manifest.command == "certify"
    names = (*_SUMMARISED, "radius") if certified else _SUMMARISED
    import pyarrow

    for part in manifest.parts:
        for batch in batches(folder / part.name, names):
            table = pyarrow.Table.from_batches([batch])
            counted = table.group_by(list(names)).aggregate([([], "count_all")])
            for one in counted.to_pylist():
                if one["correct"] is not None:
                    summary.add(
                        correct=one["correct"],
                        radius=one.get("radius"),
                        words=one["words"],
                        expected=one["expected_id"],
                        texts=one["count_all"],
                    )
    counts = {"rows": manifest.rows, "errors": errors, "labelled": summary.texts}
    return summary, counts


def summarise_compared(folder: Path, manifest: Manifest) -> dict[str, KindSummary]:
    """As `run.summarise_kinds`; nothing, and nothing read, where nothing was compared."""
    options = manifest.run["classifier"].get("options", {})
    return summarise_kinds(lines(folder, manifest)) if "compare" in options else {}


def merge(folder: Path, output: Path, finished: dict[str, Any]) -> int:
    """Write all rows of a finished run, in their order, to one file; returns how many.

    ``.jsonl``: what the command without shards writes, with its record (whose ``finished`` is
    ``finished``) beside it.  ``.parquet``: the parts, one after the other.  Each part's checksum is
    compared before it is used; the file appears when it is whole.
    """
    manifest = read_manifest(folder)
    if not manifest.finished:
        raise DataError(f"the run in {folder} is not finished: the same command resumes it")
    if output.is_file():
        raise OutputError(f"{output} exists: choose another output, or delete it")
    check_file(output)
    draft = output.with_name(output.name + ".tmp")
    if output.suffix == ".jsonl":
        record = output.with_name(output.name + ".run.json")
        with reported(output, begun=False):
            with draft.open("wb") as file:
                for part in _whole_parts(folder, manifest):
                    file.writelines(map(line_bytes, decoded(part, manifest.command)))
            content = json.dumps({**manifest.run, "finished": finished}, indent=2)
            record.write_text(content + "\n", encoding="utf-8")
            draft.replace(output)
    elif output.suffix == ".parquet":
        with reported(output, begun=False):
            _merge_parquet(folder, manifest, draft)
            draft.replace(output)
    else:
        raise OptionError(f"cannot merge into {output}: its name must end in .jsonl or .parquet")
    return manifest.rows


def _merge_parquet(folder: Path, manifest: Manifest, draft: Path) -> None:
    from pyarrow import parquet

    writer: Any = None
    try:
        for part in _whole_parts(folder, manifest):
            table = parquet.read_table(part)
            if writer is None:
                writer = parquet.ParquetWriter(draft, table.schema, compression="zstd")
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

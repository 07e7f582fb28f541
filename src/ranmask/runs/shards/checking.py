"""Whether the folder of a run is what its manifest says: every row once, every byte as written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ranmask.errors import DataError
from ranmask.runs.shards.columns import batches
from ranmask.runs.shards.folder import Manifest, PartRecord, checksum, read_manifest


@dataclass(frozen=True)
class Verified:
    """What was found: how much there is, and what is wrong with it, in words."""

    parts: int
    rows: int
    errors: int
    problems: tuple[str, ...]


def verify(folder: Path) -> Verified:
    """Check every file of a folder: checksums, counts, no row missing, no row twice.

    Reads each file once.  Raises `DataError` where there is no manifest to check against.
    """
    manifest = read_manifest(folder)
    problems = [] if manifest.finished else [_unfinished(manifest)]
    problems += _gaps(manifest)
    problems += _strangers(folder, manifest)
    last = 0
    for part in manifest.parts:
        found = list(_wrong(folder, part, last))
        problems += [f"{part.name}: {problem}" for problem in found]
        last = max(last, part.last_row)
    errors = sum(part.errors for part in manifest.parts)
    return Verified(len(manifest.parts), manifest.rows, errors, tuple(problems))


def _unfinished(manifest: Manifest) -> str:
    at_most = manifest.expected_rows
    of_all = "" if at_most is None else f" of at most {at_most}"
    return f"the run is not finished: {manifest.rows}{of_all} rows; the same command resumes it"


def _gaps(manifest: Manifest) -> Iterator[str]:
    """Shards that are missing, and parts that have not the rows of a whole shard."""
    numbers = {part.number for part in manifest.parts}
    if manifest.finished and numbers != set(range(len(numbers))):
        missing = sorted(set(range(max(numbers))) - numbers)
        yield f"no part for the shards {', '.join(map(str, missing))}"
    size = int(manifest.identity["sharding"]["shard_rows"])
    for part in manifest.parts:
        short = part.rows < size and part != manifest.parts[-1]
        if short or part.rows > size:
            yield f"{part.name} has {part.rows} rows, a shard has {size}"


def _strangers(folder: Path, manifest: Manifest) -> Iterator[str]:
    known = {part.name for part in manifest.parts}
    for path in sorted(folder.glob("part-*")):
        if manifest.finished and path.name not in known:
            yield f"{path.name} is no part of the run"


def _wrong(folder: Path, part: PartRecord, last: int) -> Iterator[str]:
    path = folder / part.name
    if not path.is_file():
        yield "the file is missing"
        return
    if checksum(path) != part.sha256:
        yield "the file has changed: its checksum is another one"
        return
    rows = errors = 0
    first = None
    try:
        for batch in batches(path, ("row", "error")):
            errors += len(batch) - batch.column("error").null_count
            for number in batch.column("row").to_pylist():
                first = number if first is None else first
                rows += 1
                if number <= last:
                    yield f"row {number} comes after row {last}"
                    return
                last = number
    except DataError as error:
        yield str(error)
        return
    found = (rows, errors, first, last)
    said = (part.rows, part.errors, part.first_row, part.last_row)
    if found != said:
        yield f"rows, errors, first and last row are {found}, in the manifest {said}"

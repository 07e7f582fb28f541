"""Which known corpora are here, what is missing, and getting it from the hub."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ranmask.data.known import KNOWN
from ranmask.data.origins import Part, data_folder, how_to_get, hub_parts, place_of
from ranmask.data.rows import arrow
from ranmask.errors import DataError, OptionError
from ranmask.results.files import writing


@dataclass(frozen=True)
class Holding:
    """A known corpus: where it is (None: nowhere), and which files its folder lacks."""

    name: str
    place: Path | None
    missing: tuple[str, ...] = ()

    @property
    def shipped(self) -> bool:
        """Whether it is read from the copy that comes with ranmask."""
        return self.place is not None and self.place.is_file()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        known = KNOWN[self.name]
        return {
            "name": self.name,
            "labels": list(known.label_names),
            "place": None if self.place is None else str(self.place),
            "shipped": self.shipped,
            "missing": list(self.missing),
            "files": dict(known.files),
            "columns": known.columns.wanted,
            "hub": known.hub,
            "source": known.source,
            "terms": known.terms,
        }


def holding(name: str) -> Holding:
    """Where a known corpus is."""
    if name not in KNOWN:
        raise OptionError(f"the name of a corpus must be one of {', '.join(KNOWN)}; not {name!r}")
    place = place_of(name)
    files = tuple(dict.fromkeys(KNOWN[name].files.values()))
    if place is None:
        return Holding(name, None, files)
    absent = [file for file in files if place.is_dir() and not (place / file).is_file()]
    return Holding(name, place, tuple(absent))


def lacking(parts: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Of splits of known corpora, as ``("sst2", "test")``: the files that are not here, by corpus.

    A corpus that is nowhere, and that a hub can be asked for, lacks none.
    """
    on_hub = find_spec("datasets") is not None
    found: dict[str, list[str]] = {}
    for name, split in parts:
        files, held = KNOWN[name].files, holding(name)
        file = files.get(split, files["train"])  # which a split without a file is carved from
        if file in held.missing and not (held.place is None and on_hub and KNOWN[name].hub):
            found.setdefault(name, []).append(f"{KNOWN[name].folder or name}/{file}")
    return {name: list(dict.fromkeys(files)) for name, files in found.items()}


def download(name: str, folder: Path | None = None) -> Path:
    """Write the hub's rows of a known corpus to its files in a data folder; its folder there.

    Rows that the hub has no label for are left out.  Nothing is there until all of it is.
    """
    known, inside = KNOWN[holding(name).name], KNOWN[name].folder or name
    if known.hub is None:
        raise DataError(f"{name} is on no hub: {how_to_get(name)}")
    folder = folder or data_folder()
    if folder is None:
        raise OptionError("there is no data folder: set RANMASK_DATA to one")
    target = folder / inside
    if target.exists():
        raise DataError(f"{target} is there already: remove it to get {name} again")
    parts = hub_parts(name)
    with writing(target):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{inside}-", dir=folder) as scratch:
            drafted = Path(scratch) / inside
            drafted.mkdir()
            for split, file in known.files.items():
                _write_part(parts[split], known.columns.wanted, drafted / file)
            drafted.replace(target)
    return target


def _write_part(part: Part, names: list[str], path: Path) -> None:
    pyarrow = arrow()
    rows = [row for row in part.rows() if part.unlabelled is None or row.label != part.unlabelled]
    texts = [row.text if isinstance(row.text, tuple) else (row.text,) for row in rows]
    columns = [*zip(*texts, strict=True), [row.label for row in rows]]
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(names, columns, strict=True))), path)

"""Where a corpus comes from: the data folder, a file, a folder, or the hub; no row is read yet."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranmask.data.corpus import one_note
from ranmask.data.known import KNOWN, NAMES
from ranmask.data.labelled_rows import Labels, Part
from ranmask.data.rows import Columns, Row, open_source, read_rows
from ranmask.errors import DataError, MissingDependencyError, OptionError

_log = logging.getLogger("ranmask")
_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq", ".txt")
_FILE_NAMES = {"train": ("train",), "validation": ("validation", "dev"), "test": ("test",)}
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


@dataclass(frozen=True)
class Origin:
    """Where a corpus comes from, before any row is read."""

    name: str
    parts: Mapping[str, Part]
    labels: Labels | None = None
    """None: to be found in the rows of train."""
    label_names: tuple[str, ...] | None = None
    carves_test: bool = False
    no_test: str = ""
    one_file: bool = False
    skip_bad_rows: bool = False


def find_origin(
    name_or_path: str, columns: Columns | None, label_names: Sequence[str] | None
) -> Origin:
    """What a name means: a known corpus, else a folder or file that is there, else the hub."""
    name = str(name_or_path)
    names = _checked_names(label_names)
    if name in KNOWN:
        if columns not in (None, Columns()):
            raise OptionError(f"{name} has its own columns: leave out {columns}")
        return _known_origin(name, names)
    columns = columns or Columns()
    columns = replace(columns, label="label" if columns.label is None else columns.label)
    path = Path(name).expanduser()
    if path.is_dir():
        return _folder_origin(name, path, columns, names)
    if path.exists():
        advice = (
            f"give the test file itself, or a folder with train{path.suffix} and test{path.suffix}"
        )
        parts = {"train": _file_part(path, columns)}
        return Origin(name, parts, label_names=names, no_test=advice, one_file=True)
    if path.suffix.lower() in _SUFFIXES or not _HUB_ID.fullmatch(name):
        raise DataError(f"there is no file or folder {name}")
    return _hub_origin(name, columns, names)


def data_folder() -> Path | None:
    """The folder with the datasets: RANMASK_DATA, else ``../shared/data``; None if not there.

    Without RANMASK_DATA it is looked for beside the project, then beside the current folder.
    """
    given = os.environ.get("RANMASK_DATA")
    project = Path(__file__).resolve().parents[3]
    beside = [place.parent / "shared" / "data" for place in (project, Path.cwd())]
    places = [Path(given)] if given else beside
    return next((place for place in places if place.is_dir()), None)


def _known_origin(name: str, names: tuple[str, ...] | None) -> Origin:
    known = KNOWN[name]
    folder = data_folder()
    given = os.environ.get("RANMASK_DATA")
    if given and folder is None:  # someone said where: never go and take other rows instead
        raise DataError(f"RANMASK_DATA={given} is not a folder: correct it or unset it")
    if folder is not None and (folder / known.folder).is_dir():
        _log.info("%s: reading the files in %s", name, folder / known.folder)
        parts = {
            split: _file_part(folder / known.folder / file, known.columns)
            for split, file in known.files.items()
        }
    elif known.hub is None:
        raise DataError(
            f"cannot find {name}: set RANMASK_DATA to a folder that holds {known.folder}/"
        )
    else:
        _log.info("%s: not in a data folder, reading the hub dataset %s", name, known.hub)
        try:
            splits = _load_from_hub(known.hub)
        except (DataError, MissingDependencyError) as error:
            raise DataError(
                f"cannot find {name}: set RANMASK_DATA to a folder that holds {known.folder}/, or "
                f"have the hub dataset {known.hub} read, with pip install 'ranmask[datasets]' and "
                f"a network ({error})"
            ) from error
        parts = {
            split: replace(
                _hub_part(known.hub, split, splits, known.hub_columns),
                note=f"hub dataset {known.hub}",  # its rows need not be those of the files
                unlabelled=known.hub_unlabelled,
            )
            for split in known.hub_splits
        }
    for split, part in parts.items():
        note = one_note(part.note, known.notes.get(split))
        parts[split] = replace(part, note=note, whole=known.whole.get(split))
    labels = _named_numbers(name, known.label_names, names)
    return Origin(name, parts, labels, carves_test=known.carves_test, no_test=known.no_test)


def _folder_origin(
    name: str, folder: Path, columns: Columns, names: tuple[str, ...] | None
) -> Origin:
    try:
        there = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in _SUFFIXES]
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror}") from error
    parts = {}
    for split, stems in _FILE_NAMES.items():
        files = [path for path in there if path.stem in stems]
        if len(files) > 1:
            shown = ", ".join(path.name for path in files)
            raise DataError(f"{folder} has more than one file for {split}: {shown}; keep one")
        if files:
            parts[split] = _file_part(files[0], columns)
    if "train" not in parts:
        raise DataError(
            f"{folder} has no train file: expected train{', train'.join(_SUFFIXES[:-1])}"
        )
    return Origin(name, parts, label_names=names, no_test=f"there is no test file in {folder}")


def _hub_origin(name: str, columns: Columns, names: tuple[str, ...] | None) -> Origin:
    try:
        splits = _load_from_hub(name)
    except MissingDependencyError:
        raise MissingDependencyError(
            f"{name} is not a file, a folder or one of {', '.join(NAMES)}, so it is looked for on "
            "the Hugging Face hub, and datasets",
            "datasets",
        ) from None
    _log.info("%s: reading the hub dataset", name)
    parts = {
        split: _hub_part(name, theirs[0], splits, columns)
        for split, those in _FILE_NAMES.items()
        if (theirs := [one for one in those if one in splits])
    }
    shown = ", ".join(splits)
    if "train" not in parts:
        raise DataError(f"the hub dataset {name} has no split train; it has {shown}")
    labels = None
    feature = splits["train"].features.get(columns.label)
    if class_names := getattr(feature, "names", None):
        labels = _named_numbers(name, class_names, names)
    return Origin(name, parts, labels, names, no_test=f"it has the splits {shown}")


def _checked_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or len(set(names)) < max(2, len(names)):
        raise OptionError(f"label_names must be at least two different names, not {names!r}")
    return tuple(names)


def _named_numbers(name: str, own: Sequence[str], given: tuple[str, ...] | None) -> Labels:
    """The labels of a corpus that knows their names, by other names if some are given."""
    if given is not None and len(given) != len(own):
        raise OptionError(
            f"{name} has {len(own)} labels ({', '.join(own)}), and label_names has {len(given)}"
        )
    return Labels(given or tuple(own), numbers=True)


def _file_part(path: Path, columns: Columns) -> Part:
    return Part(str(path), lambda: read_rows(open_source(path), columns))


def _load_from_hub(name: str) -> dict[str, Any]:
    """The splits of a hub dataset.  Code that comes with a dataset is never run."""
    try:
        from datasets import load_dataset
    except ImportError:
        raise MissingDependencyError("datasets", "datasets") from None
    try:
        return dict(load_dataset(name))
    except Exception as error:  # no network, no such dataset, a gated one: each has its own class
        raise DataError(f"cannot load the hub dataset {name}: {error}") from error


def _hub_part(name: str, split: str, splits: Mapping[str, Any], columns: Columns) -> Part:
    where = f"hub dataset {name}, split {split}"
    if split not in splits:
        raise DataError(f"the hub dataset {name} has no split {split}; it has {', '.join(splits)}")

    def rows() -> Iterator[Row]:
        dataset = splits[split]
        found = columns.found_in(list(dataset.column_names), where)
        read = (*(found.pair or (found.text,)), found.label)
        cells = zip(*(list(dataset[column]) for column in read), strict=True)
        for number, (*text, label) in enumerate(cells, 1):
            yield Row(number, tuple(text) if found.pair else text[0], label)

    return Part(where, rows)

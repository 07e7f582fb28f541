"""Where a corpus comes from: the data folder, ranmask itself, a file, a folder, or the hub.

No row is read yet.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranmask.data.corpus import one_note
from ranmask.data.known import KNOWN
from ranmask.data.rows import SUFFIXES, Columns, Row, file_rows
from ranmask.errors import DataError, MissingDependencyError, OptionError
from ranmask.results.files import reading

_log = logging.getLogger("ranmask")
_SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "dev"), "test": ("test",)}
_SHIPPED = Path(__file__).with_name("shipped")
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


@dataclass(frozen=True)
class Part:
    """Rows that come together: one file, or one split of a hub dataset."""

    where: str
    rows: Callable[[], Iterable[Row]]
    note: str | None = None
    whole: int | None = None
    unlabelled: int | None = None


@dataclass(frozen=True)
class Origin:
    """Where a corpus comes from, before any row is read.

    ``numbered``: its rows say numbers, of ``label_names``; else the rows of train decide.
    """

    name: str
    parts: Mapping[str, Part]
    label_names: tuple[str, ...] | None
    no_test: str
    numbered: bool = False
    carves_test: bool = False
    one_file: bool = False


def find_origin(
    name_or_path: str, columns: Columns | None, label_names: Sequence[str] | None
) -> Origin:
    """What a name means: a known corpus, else a folder or file that is there, else the hub."""
    name = str(name_or_path)
    names = None
    if label_names is not None:
        names = tuple(label_names)
        if isinstance(label_names, str) or len(set(names)) < max(2, len(names)):
            raise OptionError(
                f"label_names must be at least two different names, not {label_names!r}"
            )
    if name in KNOWN:
        keep = () if columns is None else columns.keep
        if columns not in (None, Columns(keep=keep)):
            raise OptionError(f"{name} has its own columns: leave out {columns}")
        return _known_origin(name, names, keep)
    columns = columns or Columns()
    columns = replace(columns, label="label" if columns.label is None else columns.label)
    path = Path(name).expanduser()
    if path.is_dir():
        return _folder_origin(name, path, columns, names)
    if path.exists():
        advice = (
            "take all its rows with split='all', or give a folder with "
            f"train{path.suffix} and test{path.suffix}"
        )
        return Origin(name, {"train": _file_part(path, columns)}, names, advice, one_file=True)
    if path.suffix.lower() in SUFFIXES or not _HUB_ID.fullmatch(name):
        raise DataError(f"there is no file or folder {name}")
    return _hub_origin(name, columns, names)


def data_places() -> list[Path]:
    """Where the folder with the datasets is looked for: RANMASK_DATA, else ``../shared/data``.

    Without RANMASK_DATA that is beside the project, then beside the current folder.
    """
    given = os.environ.get("RANMASK_DATA")
    project = Path(__file__).resolve().parents[3]
    beside = dict.fromkeys(place.parent / "shared" / "data" for place in (project, Path.cwd()))
    return [Path(given)] if given else list(beside)


def data_folder() -> Path | None:
    """The folder with the datasets, the first of `data_places` that is there; None if none is."""
    return next((place for place in data_places() if place.is_dir()), None)


def place_of(name: str) -> Path | None:
    """Where a known corpus is: its folder, else the file that comes with ranmask, else None."""
    known = KNOWN[name]
    folder = data_folder()
    given = os.environ.get("RANMASK_DATA")
    if given and folder is None:  # someone said where: never go and take other rows instead
        raise DataError(f"RANMASK_DATA={given} is not a folder: correct it or unset it")
    if folder is not None and (folder / (known.folder or name)).is_dir():
        return folder / (known.folder or name)
    return _SHIPPED / known.shipped if known.shipped else None


def how_to_get(name: str) -> str:
    """What to do where a known corpus is not here, in a sentence without its full stop."""
    known = KNOWN[name]
    files = ", ".join(dict.fromkeys(known.files.values()))
    return (
        f"set RANMASK_DATA to a folder that holds {known.folder or name}/ with {files} (columns "
        f"{', '.join(known.columns.wanted)}), from {known.source}"
    )


def _known_origin(name: str, names: tuple[str, ...] | None, keep: tuple[str, ...]) -> Origin:
    known = KNOWN[name]
    columns = replace(known.columns, keep=keep)
    place = place_of(name)
    advice = f"cannot find {name}: {how_to_get(name)}"
    if place is not None and place.is_dir():
        _log.info("%s: reading the files in %s", name, place)
        files = known.files.items()
        parts = {split: _file_part(place / file, columns) for split, file in files}
    elif place is not None:
        _log.info("%s: not in a data folder, reading the copy that comes with ranmask", name)
        parts = dict.fromkeys(known.files, _shipped_part(place, columns))
    elif known.hub is None:
        raise DataError(advice)
    else:
        _log.info("%s: not in a data folder, reading the hub dataset %s", name, known.hub)
        try:
            parts = hub_parts(name, keep)
        except (DataError, MissingDependencyError) as error:
            raise DataError(
                f"{advice}, or have the hub dataset {known.hub} read, with pip install "
                f"'ranmask[datasets]' and a network ({error})"
            ) from error
    for split, part in parts.items():
        note = one_note(part.note, known.notes.get(split))
        parts[split] = replace(part, note=note, whole=known.whole.get(split))
    names = _renamed(name, known.label_names, names)
    return Origin(name, parts, names, known.no_test, True, known.carves_test)


def hub_parts(name: str, keep: tuple[str, ...] = ()) -> dict[str, Part]:
    """The parts of a known corpus as the hub has them: not always the rows of the files."""
    known = KNOWN[name]
    assert known.hub is not None
    splits = _load_from_hub(known.hub)
    return {
        split: replace(
            _hub_part(known.hub, split, splits, replace(known.hub_columns, keep=keep)),
            note=f"hub dataset {known.hub}",
            unlabelled=known.hub_unlabelled,
        )
        for split in known.files
    }


def _folder_origin(
    name: str, folder: Path, columns: Columns, names: tuple[str, ...] | None
) -> Origin:
    with reading(folder):
        there = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES]
    parts = {}
    for split, stems in _SPLIT_NAMES.items():
        files = [path for path in there if path.stem in stems]
        if len(files) > 1:
            shown = ", ".join(path.name for path in files)
            raise DataError(f"{folder} has more than one file for {split}: {shown}; keep one")
        if files:
            parts[split] = _file_part(files[0], columns)
    if "train" not in parts:
        expected = ", ".join(f"train{suffix}" for suffix in SUFFIXES if suffix != ".txt")
        raise DataError(f"{folder} has no train file: expected {expected}")
    return Origin(name, parts, names, f"there is no test file in {folder}")


def _hub_origin(name: str, columns: Columns, names: tuple[str, ...] | None) -> Origin:
    try:
        splits = _load_from_hub(name)
    except MissingDependencyError:
        raise MissingDependencyError(
            f"{name} is not a file, a folder or one of {', '.join(KNOWN)}, so it is looked for on "
            "the Hugging Face hub, and datasets",
            "datasets",
        ) from None
    _log.info("%s: reading the hub dataset", name)
    parts = {
        split: _hub_part(name, theirs[0], splits, columns)
        for split, those in _SPLIT_NAMES.items()
        if (theirs := [their for their in those if their in splits])
    }
    shown = ", ".join(splits)
    if "train" not in parts:
        raise DataError(f"the hub dataset {name} has no split train; it has {shown}")
    own = getattr(splits["train"].features.get(columns.label), "names", None)
    names = _renamed(name, own, names) if own else names
    return Origin(name, parts, names, f"it has the splits {shown}", numbered=bool(own))


def _renamed(name: str, own: Sequence[str], given: tuple[str, ...] | None) -> tuple[str, ...]:
    """The names of a corpus that knows them, or as many others."""
    if given is not None and len(given) != len(own):
        raise OptionError(
            f"{name} has {len(own)} labels ({', '.join(own)}), and label_names has {len(given)}"
        )
    return given or tuple(own)


def _file_part(path: Path, columns: Columns) -> Part:
    return Part(str(path), lambda: file_rows(path, columns).rows)


def _shipped_part(path: Path, columns: Columns) -> Part:
    def rows() -> Iterator[Row]:
        columns.found_in(["text", "label"], str(path))
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                values = json.loads(line)
                yield Row(number, values["text"], values["label"])

    return Part(str(path), rows)


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
        kept = zip(*(list(dataset[column]) for column in found.keep), strict=True)
        for number, (*text, label) in enumerate(cells, 1):
            values = dict(zip(found.keep, next(kept, ()), strict=True))
            yield Row(number, tuple(text) if found.pair else text[0], label, kept=values)

    return Part(where, rows)

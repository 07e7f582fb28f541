"""Labelled texts by name, for training, tuning and evaluation: all of a split, or an error.

A name is one of `NAMES`, a local file (csv, tsv, jsonl, parquet), a local folder with ``train.*``
and perhaps ``validation.*`` (or ``dev.*``) and ``test.*``, or a dataset of the Hugging Face hub.
A known name wins over a file of that name: write ``./sst2`` for the file.

Unlike `ranmask.data`, nothing here passes over a bad row: a model that was trained on most of a
file is not the model that was asked for.

- **train** comes in the order of a fixed permutation, since files are often sorted.
- **validation** is the part that the corpus ships with, left whole.  Where there is none it is
  carved from train, the first of that permutation: a tenth of it, at most 2,000 rows.  A carved
  row whose exact text stays in train is left out, and the note says how many.
- **test** keeps the order of its file, except where that is label by label: the first rows would
  all be of one class.  It is carved only for corpora that come as one file (hate, sms_spam).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ranmask.data import Columns, Row, open_source, read_rows
from ranmask.errors import DataError, MissingDependencyError, OptionError, TextError
from ranmask.words import Text, document

SPLITS = ("train", "validation", "test")

_log = logging.getLogger("ranmask")
_SEED = 20_230_523  # fixed for good: another one makes other splits of every corpus
_MOST_VALIDATION_ROWS = 2000
_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq", ".txt")
_FILE_NAMES = {"train": ("train",), "validation": ("validation", "dev"), "test": ("test",)}
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled texts of one split; ``labels`` are places in ``label_names``."""

    name: str
    split: str
    texts: tuple[Text, ...]
    labels: tuple[int, ...]
    label_names: tuple[str, ...]
    note: str | None = None
    """What to know about these rows: partial files, rows carved or left out."""
    sha256: str = ""
    """Of the texts and labels in their order, so that a result can name its data."""

    def __post_init__(self) -> None:
        if not self.sha256:
            object.__setattr__(self, "sha256", _digest(self.texts, self.labels))

    def description(self) -> dict[str, Any]:
        """What a result has to say about its data, as plain JSON."""
        return {
            "name": self.name,
            "split": self.split,
            "rows": len(self.texts),
            "label_names": list(self.label_names),
            "note": self.note,
            "terms": self.terms,
            "sha256": self.sha256,
        }

    @property
    def terms(self) -> str | None:
        """What is known of the terms that the data is offered on."""
        return " ".join(TERMS[name] for name in self.name.split("+") if name in TERMS) or None

    def take(self, rows: int | None) -> Corpus:
        """The first ``rows`` rows, or all where there are not that many; None: all."""
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
            raise OptionError(f"rows must be a whole number of at least 1, not {rows!r}")
        if rows is None or rows >= len(self.texts):
            return self
        note = _joined(self.note, f"the first {rows:,} of {len(self.texts):,} rows")
        texts, labels = self.texts[:rows], self.labels[:rows]
        return replace(self, texts=texts, labels=labels, note=note, sha256="")


_TEXT = Columns("text", None, "label")
_PAIR = Columns(None, ("premise", "hypothesis"), "label")


@dataclass(frozen=True)
class _Known:
    """A corpus that is known by name: its files in the data folder, and its place on the hub."""

    label_names: tuple[str, ...]
    folder: str
    files: Mapping[str, str]
    hub: str
    hub_columns: Columns
    columns: Columns = _TEXT
    hub_splits: tuple[str, ...] = SPLITS
    hub_unlabelled: int | None = None
    whole: Mapping[str, int] = field(default_factory=dict)
    """Rows of the complete published parts, where a copy may be partial."""
    notes: Mapping[str, str] = field(default_factory=dict)
    carves_test: bool = False
    no_test: str = ""


_FILES = {"train": "train.parquet", "validation": "dev.parquet", "test": "test.parquet"}
_KNOWN = {
    "agnews": _Known(
        ("World", "Sports", "Business", "Sci/Tech"),
        "agnews",
        {"train": "train_subset.parquet", "test": "test.parquet"},
        "fancyzhx/ag_news",
        _TEXT,
        hub_splits=("train", "test"),
        whole={"train": 120_000, "test": 7_600},
    ),
    # Whole sentences; of the hub's copies this one has them too, with the labels of the test part.
    "sst2": _Known(
        ("negative", "positive"), "sst2", _FILES, "SetFit/sst2", _TEXT, whole={"test": 1_821}
    ),
    "sst2_glue": _Known(
        ("negative", "positive"),
        "sst2_glue",
        {"train": "train.parquet", "validation": "dev.parquet"},
        "stanfordnlp/sst2",
        Columns("sentence", None, "label"),
        hub_splits=("train", "validation"),
        notes={"validation": "GLUE hides its test labels, so this part stands in for test"},
        no_test="GLUE hides its labels; evaluate on validation and tune on a part of train, or "
        "take the test split of sst2",
    ),
    "imdb": _Known(
        ("negative", "positive"),
        "imdb",
        {"train": "train.parquet", "test": "test.parquet"},
        "stanfordnlp/imdb",
        _TEXT,
        hub_splits=("train", "test"),
        whole={"test": 25_000},
    ),
    "snli": _Known(
        ("entailment", "neutral", "contradiction"),
        "snli",
        _FILES | {"train": "train_subset.parquet"},
        "stanfordnlp/snli",
        _PAIR,
        columns=_PAIR,
        hub_unlabelled=-1,  # pairs that the annotators did not agree on
        whole={"train": 549_367, "test": 9_824},
    ),
    "hate": _Known(
        ("hate speech", "offensive", "neither"),
        "hate_davidson",
        {"train": "all.parquet"},
        "tdavidson/hate_speech_offensive",
        Columns("tweet", None, "class"),
        hub_splits=("train",),
        carves_test=True,
    ),
    "sms_spam": _Known(
        ("ham", "spam"),
        "sms_spam",
        {"train": "all.parquet"},
        "ucirvine/sms_spam",
        Columns("sms", None, "label"),
        hub_splits=("train",),
        carves_test=True,
    ),
}
NAMES = tuple(_KNOWN)
"""The corpora that are known by name."""

TERMS = {
    "agnews": "AG News (Zhang, Zhao and LeCun 2015, from A. Gulli's corpus) is offered for "
    "research and non-commercial use.",
    "sst2": "No licence is stated for SST2 (Socher et al. 2013).",
    "sst2_glue": "No licence is stated for the GLUE phrases of SST2 (Socher et al. 2013).",
    "imdb": "No licence is stated for the IMDB reviews (Maas et al. 2011).",
    "snli": "SNLI is offered under CC BY-SA 4.0 (Bowman et al. 2015).",
    "hate": "The tweets are offered under the MIT licence (Davidson et al. 2017).",
}
"""What is known of the terms that the data is offered on; a model's card repeats it."""


def load_corpus(
    name_or_path: str,
    split: str = "train",
    *,
    columns: Columns | None = None,
    label_names: Sequence[str] | None = None,
) -> Corpus:
    """One split of a corpus.

    The label column is "label" where ``columns`` does not say.  Labels are whole numbers from 0,
    or names, which are numbered in sorted order; ``label_names`` names the numbers, or gives the
    names another order.
    """
    if split not in SPLITS:
        raise OptionError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    return _read(_origin(name_or_path, columns, label_names), split)[split]


def load_splits(
    name_or_path: str,
    *,
    validation: str | None = None,
    columns: Columns | None = None,
    label_names: Sequence[str] | None = None,
    validation_rows: int | None = None,
) -> tuple[Corpus, Corpus]:
    """Train and validation, with one set of label names.

    ``validation`` is used instead of what the corpus has or would carve, and train is then whole:
    all rows of a file, or the validation part that another corpus ships with.
    ``validation_rows`` takes the first so many of them; train is the same whatever it is.
    """
    # Columns are those of the files: a known corpus that goes with a file keeps its own.
    mixed = validation is not None and (name_or_path in _KNOWN) != (validation in _KNOWN)
    given = {True: None if mixed else columns, False: columns}
    origin = _origin(name_or_path, given[name_or_path in _KNOWN], label_names)
    if validation is not None:
        other = _origin(validation, given[validation in _KNOWN], None)
        part = other.parts["train"] if other.one_file else other.parts.get("validation")
        if part is None:
            raise DataError(
                f"{validation} ships without a validation part: give a file with the rows"
            )
        origin = replace(origin, parts={**origin.parts, "validation": part})
    found = _read(origin, "train", "validation")
    train, held_out = found["train"], found["validation"]
    if validation is not None:
        held_out = replace(held_out, name=str(validation))
    in_train = set(train.texts)
    if shared := sum(text in in_train for text in held_out.texts):
        rows = f"{shared:,} of {len(held_out.texts):,}"
        _log.warning("%s: %s validation texts occur in train too", name_or_path, rows)
    return train, held_out.take(validation_rows)


def joined(first: Corpus, more: Corpus, *, without: Corpus) -> Corpus:
    """Both corpora as one to train on, in the fixed order, without the texts of ``without``."""
    if first.label_names != more.label_names:
        raise DataError(
            f"{first.name} has the classes {', '.join(first.label_names)}, {more.name} "
            f"{', '.join(more.label_names)}: they must be the same to be trained on together"
        )
    held_out = set(without.texts)
    rows = [*zip(first.texts, first.labels, strict=True)]
    added = [row for row in zip(more.texts, more.labels, strict=True) if row[0] not in held_out]
    rows += added
    rows = [rows[place] for place in permutation(len(rows))]
    note = _joined(first.note, f"with {len(added):,} rows of {more.name}", more.note)
    texts, labels = zip(*rows, strict=True)
    name = f"{first.name}+{more.name}"
    return replace(first, name=name, texts=texts, labels=labels, note=note, sha256="")


def data_folder() -> Path | None:
    """The folder with the datasets: RANMASK_DATA, else ``../shared/data``; None if not there.

    Without RANMASK_DATA it is looked for beside the project, then beside the current folder.
    """
    given = os.environ.get("RANMASK_DATA")
    project = Path(__file__).resolve().parents[2]
    beside = [place.parent / "shared" / "data" for place in (project, Path.cwd())]
    places = [Path(given)] if given else beside
    return next((place for place in places if place.is_dir()), None)


def permutation(rows: int) -> list[int]:
    """The numbers below ``rows`` in the order in which a corpus of so many rows is read.

    A pure function, pinned by a test: it uses only numpy's raw bit stream (whose values numpy
    promises to keep) and a stable sort, so the splits of today are those of ten years from now.
    """
    import numpy as np

    bits = np.random.PCG64(np.random.SeedSequence([_SEED, rows]))
    order: list[int] = np.argsort(bits.random_raw(rows), kind="stable").tolist()
    return order


# Reading: parts of a corpus, and how the missing ones are carved.


@dataclass(frozen=True)
class _Part:
    """Rows that come together: one file, or one split of a hub dataset."""

    where: str
    rows: Callable[[], Iterator[Row]]
    note: str | None = None
    whole: int | None = None
    unlabelled: int | None = None


@dataclass(frozen=True)
class _Labels:
    """What labels there are, and whether the rows say their numbers or their names."""

    names: tuple[str, ...]
    numbers: bool

    def id(self, value: str) -> int | None:
        """The place of a label among the names, None where it is none of them."""
        if not self.numbers:
            return self.names.index(value) if value in self.names else None
        number = int(value) if _WHOLE_NUMBER.fullmatch(value) else -1
        return number if 0 <= number < len(self.names) else None


@dataclass(frozen=True)
class _Origin:
    """Where a corpus comes from, before any row is read."""

    name: str
    parts: Mapping[str, _Part]
    labels: _Labels | None = None
    """None: to be found in the rows of train."""
    label_names: tuple[str, ...] | None = None
    carves_test: bool = False
    no_test: str = ""
    one_file: bool = False


@dataclass(frozen=True)
class _Labelled:
    """A row that can be used."""

    number: int
    text: Text
    value: str


def _read(origin: _Origin, *splits: str) -> dict[str, Corpus]:
    """These splits.  Train is read too where it decides the labels or is carved from."""
    if "test" in splits and "test" not in origin.parts and not origin.carves_test:
        raise DataError(f"{origin.name} has no test split: {origin.no_test}")
    found: dict[str, Corpus] = {}
    labels = origin.labels
    if labels is None or "train" in splits or any(one not in origin.parts for one in splits):
        found, labels = _read_train(origin)
    for split in splits:
        if split in origin.parts and split != "train":
            part = origin.parts[split]
            rows, note = _usable(part, split)
            ids = _ids(rows, labels, part.where)
            order: Sequence[int] = range(len(rows))
            if split == "validation":
                order = permutation(len(rows))
            elif _label_by_label(ids):
                order = permutation(len(rows))
                note = _joined(note, "shuffled by a fixed seed: the file is sorted by label")
            found[split] = _corpus(origin.name, split, rows, ids, order, labels, note)
    for split in splits:
        if split not in found or not found[split].texts:
            raise DataError(
                f"{origin.name} has too few different texts to carve {split} from them: "
                f"give a file with the rows for {split}"
            )
    return found


def _read_train(origin: _Origin) -> tuple[dict[str, Corpus], _Labels]:
    """Train, and what is carved from its rows."""
    part = origin.parts["train"]
    rows, note = _usable(part, "train")
    labels = origin.labels or _labels_of(rows, origin.label_names, part.where)
    ids = _ids(rows, labels, part.where)

    # Of the one permutation the first rows are test, the next validation, and the rest train.
    order = permutation(len(rows))
    tests = len(rows) // 5 if origin.carves_test else 0
    tenth = -(-(len(rows) - tests) // 10)
    carved = 0 if "validation" in origin.parts else min(_MOST_VALIDATION_ROWS, tenth)
    places = {"train": order[tests + carved :]}
    notes = {"train": note}
    seen = {rows[place].text for place in places["train"]}
    for split, chosen in (
        ("validation", order[tests : tests + carved]),
        ("test", sorted(order[:tests])),
    ):
        if not chosen:
            continue
        kept = [place for place in chosen if rows[place].text not in seen]
        notes[split] = _joined(note, f"{len(chosen):,} rows carved by a fixed seed")
        if left_out := len(chosen) - len(kept):
            those = "is in train" if split == "validation" else "is in train or validation"
            notes[split] = _joined(notes[split], f"{left_out:,} left out, whose text {those}")
        notes["train"] = _joined(notes["train"], f"without {len(chosen):,} carved for {split}")
        places[split] = kept
        seen.update(rows[place].text for place in kept)

    there = {ids[place] for place in places["train"]}
    if len(there) < len(labels.names):
        empty = next(name for place, name in enumerate(labels.names) if place not in there)
        elsewhere = sum(labels.names[one] == empty for one in ids)
        why = f": all its rows ({elsewhere}) are carved for other splits" if elsewhere else ""
        raise DataError(
            f"{part.where}: the class {empty!r} has no row in train{why}; add rows, or leave the "
            "class out"
        )
    found = {
        split: _corpus(origin.name, split, rows, ids, places[split], labels, notes[split])
        for split in places
    }
    return found, labels


def _corpus(
    name: str,
    split: str,
    rows: Sequence[_Labelled],
    ids: Sequence[int],
    order: Sequence[int],
    labels: _Labels,
    note: str | None,
) -> Corpus:
    texts = tuple(rows[place].text for place in order)
    return Corpus(name, split, texts, tuple(ids[place] for place in order), labels.names, note)


def _usable(part: _Part, split: str) -> tuple[list[_Labelled], str | None]:
    """All rows of a part and what to note of them; raises where one cannot be used."""
    rows: list[_Labelled] = []
    problems: list[tuple[int, str]] = []
    unlabelled = 0
    for row in part.rows():
        if part.unlabelled is not None and row.label == part.unlabelled:
            unlabelled += 1
            continue
        try:
            rows.append(_labelled(row))
        except (DataError, TextError) as error:
            problems.append((row.number, error.reason))
    if problems:
        raise _refusal(*problems[0], len(problems) - 1, part.where)
    if not rows:
        raise DataError(f"{part.where} has no rows")
    note = part.note
    if part.whole is not None and len(rows) < part.whole:
        kind = "training" if split == "train" else split
        note = _joined(note, f"{len(rows):,} of {part.whole:,} {kind} rows (partial)")
    if unlabelled:
        note = _joined(note, f"{unlabelled:,} rows without a label left out")
    return rows, note


def _labelled(row: Row) -> _Labelled:
    if row.error is not None or row.text is None:
        raise DataError(row.error or "it has no text")
    document(row.text)
    value = row.label
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None or value != value:  # NaN is how tables write a number that is missing
        raise DataError("it has no label")
    if not isinstance(value, str):
        kind = type(value).__name__
        raise DataError(f"its label {value!r} ({kind}) is neither a whole number nor a name")
    if not value.strip():
        raise DataError("it has no label")
    return _Labelled(row.number, row.text, value.strip())


def _labels_of(rows: Sequence[_Labelled], given: tuple[str, ...] | None, where: str) -> _Labels:
    """The labels of train: given names or their numbers; else numbers from 0, or sorted names."""
    values = {row.value for row in rows}
    whole = {value for value in values if _WHOLE_NUMBER.fullmatch(value)}
    if given is not None:
        return _Labels(given, numbers=not values <= set(given) and whole == values)
    if whole and whole != values:
        number, name = min(whole), min(values - whole)
        raise DataError(
            f"{where} labels some rows with numbers ({number}) and some with names ({name!r}): "
            "use one of them, or give label_names"
        )
    if len(values) == 1:
        raise DataError(
            f"{where} has one class only, {values.pop()!r}: a classifier needs at least two"
        )
    if not whole:
        return _Labels(tuple(sorted(values)), numbers=False)
    numbers = {int(value) for value in whole}
    if numbers != set(range(len(numbers))):
        first = next(number for number in range(len(numbers)) if number not in numbers)
        raise DataError(
            f"{where} has {len(numbers)} labels, from {min(numbers)} to {max(numbers)}, and none "
            f"of its rows has the label {first}, an empty class: number them from 0 without gaps, "
            "or give label_names"
        )
    return _Labels(tuple(str(number) for number in sorted(numbers)), numbers=True)


def _ids(rows: Sequence[_Labelled], labels: _Labels, where: str) -> list[int]:
    """The labels of rows as class ids; raises where one is no label of train."""
    readings = [labels]
    if labels.numbers:  # a second file may spell out what the first one numbers
        readings.append(replace(labels, numbers=False))
    values = {row.value for row in rows}
    for reading in readings:
        ids = {value: one for value in values if (one := reading.id(value)) is not None}
        if len(ids) == len(values):
            return [ids[row.value] for row in rows]
    expected = ", ".join(labels.names)
    if labels.numbers:
        expected = f"0 to {len(labels.names) - 1} ({expected})"
    outside = [row for row in rows if labels.id(row.value) is None]
    problem = f"its label {outside[0].value!r} is none of {expected}"
    raise _refusal(outside[0].number, problem, len(outside) - 1, where)


def _refusal(row: int, problem: str, others: int, where: str) -> DataError:
    more = f"; {others:,} more row{'s' * (others > 1)} cannot be used" if others else ""
    return DataError(f"{where}: {problem}{more}", row=row)


def _label_by_label(ids: Sequence[int]) -> bool:
    changes = sum(one != other for one, other in pairwise(ids))
    return 0 < changes == len(set(ids)) - 1


# Finding: what a name means.


def _origin(
    name_or_path: str, columns: Columns | None, label_names: Sequence[str] | None
) -> _Origin:
    name = str(name_or_path)
    names = _checked_names(label_names)
    if name in _KNOWN:
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
        return _Origin(name, parts, label_names=names, no_test=advice, one_file=True)
    if path.suffix.lower() in _SUFFIXES or not _HUB_ID.fullmatch(name):
        raise DataError(f"there is no file or folder {name}")
    return _hub_origin(name, columns, names)


def _checked_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or len(set(names)) < max(2, len(names)):
        raise OptionError(f"label_names must be at least two different names, not {names!r}")
    return tuple(names)


def _known_origin(name: str, names: tuple[str, ...] | None) -> _Origin:
    known = _KNOWN[name]
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
        note = _joined(part.note, known.notes.get(split))
        parts[split] = replace(part, note=note, whole=known.whole.get(split))
    labels = _named_numbers(name, known.label_names, names)
    return _Origin(name, parts, labels, carves_test=known.carves_test, no_test=known.no_test)


def _named_numbers(name: str, own: Sequence[str], given: tuple[str, ...] | None) -> _Labels:
    """The labels of a corpus that knows their names, by other names if some are given."""
    if given is not None and len(given) != len(own):
        raise OptionError(
            f"{name} has {len(own)} labels ({', '.join(own)}), and label_names has {len(given)}"
        )
    return _Labels(given or tuple(own), numbers=True)


def _folder_origin(
    name: str, folder: Path, columns: Columns, names: tuple[str, ...] | None
) -> _Origin:
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
    return _Origin(name, parts, label_names=names, no_test=f"there is no test file in {folder}")


def _file_part(path: Path, columns: Columns) -> _Part:
    return _Part(str(path), lambda: read_rows(open_source(path), columns))


def _hub_origin(name: str, columns: Columns, names: tuple[str, ...] | None) -> _Origin:
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
    return _Origin(name, parts, labels, names, no_test=f"it has the splits {shown}")


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


def _hub_part(name: str, split: str, splits: Mapping[str, Any], columns: Columns) -> _Part:
    where = f"hub dataset {name}, split {split}"
    if split not in splits:
        raise DataError(f"the hub dataset {name} has no split {split}; it has {', '.join(splits)}")

    def rows() -> Iterator[Row]:
        dataset = splits[split]
        found = columns.found_in(list(dataset.column_names), where)
        cells = zip(*(list(dataset[column]) for column in found.wanted), strict=True)
        for number, (*text, label) in enumerate(cells, 1):
            yield Row(number, tuple(text) if found.pair else text[0], label)

    return _Part(where, rows)


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None


def _digest(texts: Sequence[Text], labels: Sequence[int]) -> str:
    digest = hashlib.sha256()
    for text, label in zip(texts, labels, strict=True):
        digest.update(json.dumps([text, label]).encode() + b"\n")
    return digest.hexdigest()

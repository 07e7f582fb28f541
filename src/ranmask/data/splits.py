"""The splits of a corpus: those that it ships with, and those that are carved from train."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ranmask.data.corpus import Corpus, one_note, permutation
from ranmask.data.known import KNOWN, SPLITS
from ranmask.data.labelled_rows import LabelledRow, Labels, class_ids, labels_of, usable_rows
from ranmask.data.origins import Origin, find_origin
from ranmask.data.rows import Columns, Row, RowSource
from ranmask.errors import DataError, OptionError
from ranmask.words import Text

_log = logging.getLogger("ranmask")
_MOST_VALIDATION_ROWS = 2000
ALL = "all"
"""The split that is every row of a file."""


def load_corpus(
    name_or_path: str,
    split: str = "train",
    *,
    columns: Columns | None = None,
    label_names: Sequence[str] | None = None,
    skip_bad_rows: bool = False,
) -> Corpus:
    """One split of a corpus; ``all``: every row of a file, in the fixed order.

    The label column is "label" where ``columns`` does not say.  Labels are whole numbers from 0,
    or names, which are numbered in sorted order; ``label_names`` names the numbers, or gives the
    names another order.  ``skip_bad_rows`` leaves out rows without a usable text or label, which
    are an error otherwise.
    """
    if split not in (*SPLITS, ALL):
        raise OptionError(f"split must be one of {', '.join((*SPLITS, ALL))}, not {split!r}")
    origin = find_origin(name_or_path, columns, label_names)
    if split != ALL:
        return _read(origin, [split], skip_bad_rows)[split]
    if not origin.one_file:
        raise OptionError(
            f"{origin.name} has parts of its own: name one of {', '.join(SPLITS)}; {ALL} is for a "
            "file"
        )
    # As a validation part is read: whole, and in the fixed order.
    whole = replace(origin, parts={**origin.parts, "validation": origin.parts["train"]})
    return replace(_read(whole, ["validation"], skip_bad_rows)["validation"], split=ALL)


def load_splits(
    name_or_path: str,
    *,
    validation: str | None = None,
    columns: Columns | None = None,
    label_names: Sequence[str] | None = None,
    validation_rows: int | None = None,
    skip_bad_rows: bool = False,
    by_text: bool = False,
) -> tuple[Corpus, Corpus]:
    """Train and validation, with one set of label names.

    ``validation`` is used instead of what the corpus has or would carve, and train is then whole:
    all rows of a file, or the validation part that another corpus ships with.
    ``validation_rows`` takes the first so many of them; train is the same whatever it is.
    ``skip_bad_rows`` is that of `load_corpus`.  ``by_text``: no row has a say in what becomes of
    another.  Where validation is carved, a hash of each text decides; otherwise their number does.
    Names of the labels must be known, and rows for test are not carved.
    """
    # Columns are those of the files: a known corpus that goes with a file keeps its own.
    mixed = validation is not None and (name_or_path in KNOWN) != (validation in KNOWN)
    own = Columns(keep=columns.keep) if mixed and columns is not None else columns
    given = {True: own, False: columns}
    origin = find_origin(name_or_path, given[name_or_path in KNOWN], label_names)
    if validation is not None:
        other = find_origin(validation, given[validation in KNOWN], None)
        part = other.parts["train"] if other.one_file else other.parts.get("validation")
        if part is None:
            raise DataError(
                f"{validation} ships without a validation part: give a file with the rows"
            )
        origin = replace(origin, parts={**origin.parts, "validation": part})
    if by_text:
        _check_by_text(origin)
    found = _read(origin, ["train", "validation"], skip_bad_rows, by_text=by_text)
    train, held_out = found["train"], found["validation"]
    if validation is not None:
        held_out = replace(held_out, name=str(validation))
    in_train = set(train.texts)
    if shared := sum(text in in_train for text in held_out.texts):
        rows = f"{shared:,} of {len(held_out.texts):,}"
        _log.warning("%s: %s validation texts occur in train too", name_or_path, rows)
    return train, held_out.take(validation_rows)


def _check_by_text(origin: Origin) -> None:
    if origin.label_names is None:
        raise OptionError(
            f"the rows of {origin.name} decide which classes there are, where each row is to "
            "stand for itself: give labels, the names of the classes",
            "labels",
        )
    if origin.carves_test:
        raise OptionError(
            f"which rows of {origin.name} are test depends on how many there are, where each row "
            "is to stand for itself: give a folder with train and test files"
        )


def corpus_rows(
    name: str,
    split: str | None = None,
    rows: int | None = None,
    *,
    columns: Columns | None = None,
    skip_bad_rows: bool = False,
) -> RowSource:
    """The first ``rows`` rows of a corpus, with their labels; ``split`` is test by default."""
    split = split or "test"
    corpus = load_corpus(name, split, columns=columns, skip_bad_rows=skip_bad_rows).take(rows)
    labelled = enumerate(zip(corpus.texts, corpus.labels, strict=True), 1)
    found = [Row(number, text, corpus.label_names[label]) for number, (text, label) in labelled]
    if corpus.kept:
        pairs = zip(found, corpus.kept, strict=True)
        found = [replace(row, kept=kept) for row, kept in pairs]
    return RowSource(found, len(found), corpus.description())


def _read(
    origin: Origin, splits: Sequence[str], skip_bad_rows: bool, *, by_text: bool = False
) -> dict[str, Corpus]:
    """These splits.  Train is read too where it decides the labels or is carved from."""
    if "test" in splits and "test" not in origin.parts and not origin.carves_test:
        raise DataError(f"{origin.name} has no test split: {origin.no_test}")
    found: dict[str, Corpus] = {}
    labels = None
    if origin.numbered and origin.label_names is not None:
        labels = Labels(origin.label_names, numbers=True)
    if labels is None or "train" in splits or any(split not in origin.parts for split in splits):
        found, labels = _read_train(origin, labels, skip_bad_rows, by_text)
    for split in splits:
        if split in origin.parts and split != "train":
            part = origin.parts[split]
            rows, note = usable_rows(part, split, skip_bad_rows=skip_bad_rows)
            ids = class_ids(rows, labels, part.where)
            order: Sequence[int] = range(len(rows))
            if split == "validation":
                order = permutation(len(rows))
            elif _label_by_label(ids):
                order = permutation(len(rows))
                note = one_note(note, "shuffled by a fixed seed: the file is sorted by label")
            found[split] = _corpus(origin.name, split, rows, ids, order, labels, note)
    for split in splits:
        if split not in found or not found[split].texts:
            raise DataError(
                f"{origin.name} has too few different texts to carve {split} from them: "
                f"give a file with the rows for {split}"
            )
    return found


def _read_train(
    origin: Origin, labels: Labels | None, skip_bad_rows: bool, by_text: bool
) -> tuple[dict[str, Corpus], Labels]:
    """Train, and what is carved from its rows."""
    part = origin.parts["train"]
    rows, note = usable_rows(part, "train", skip_bad_rows=skip_bad_rows)
    labels = labels or labels_of(rows, origin.label_names, part.where, by_text=by_text)
    ids = class_ids(rows, labels, part.where)

    # Of the one permutation the first rows are test, the next validation, and the rest train.
    order = permutation(len(rows))
    tests = len(rows) // 5 if origin.carves_test else 0
    tenth = -(-(len(rows) - tests) // 10)
    carved = 0 if "validation" in origin.parts else min(_MOST_VALIDATION_ROWS, tenth)
    if carved and by_text:
        held_out = {place for place in order if _held_out(rows[place].text)}
        order.sort(key=lambda place: place not in held_out)
        carved = len(held_out)
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
        how = "a hash of each text" if by_text else "a fixed seed"
        notes[split] = one_note(note, f"{len(chosen):,} rows carved by {how}")
        if left_out := len(chosen) - len(kept):
            those = "is in train" if split == "validation" else "is in train or validation"
            notes[split] = one_note(notes[split], f"{left_out:,} left out, whose text {those}")
        notes["train"] = one_note(notes["train"], f"without {len(chosen):,} carved for {split}")
        places[split] = kept
        seen.update(rows[place].text for place in kept)

    there = {ids[place] for place in places["train"]}
    if len(there) < len(labels.names):
        empty = next(name for place, name in enumerate(labels.names) if place not in there)
        elsewhere = sum(labels.names[place] == empty for place in ids)
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


def _held_out(text: Text) -> bool:
    """Whether a text is one of the tenth of all texts that validation is carved from."""
    spelt = text if isinstance(text, str) else "\n".join(text)
    digest = hashlib.sha256(b"held out\n" + spelt.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % 10 == 0


def _corpus(
    name: str,
    split: str,
    rows: Sequence[LabelledRow],
    ids: Sequence[int],
    order: Sequence[int],
    labels: Labels,
    note: str | None,
) -> Corpus:
    texts = tuple(rows[place].text for place in order)
    chosen = tuple(ids[place] for place in order)
    kept = tuple(rows[place].kept or {} for place in order) if any(r.kept for r in rows) else ()
    return Corpus(name, split, texts, chosen, labels.names, note, source_rows=len(rows), kept=kept)


def _label_by_label(ids: Sequence[int]) -> bool:
    changes = sum(label != following for label, following in pairwise(ids))
    return 0 < changes == len(set(ids)) - 1

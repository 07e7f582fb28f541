"""Rows with their labels, as class ids: all rows of a part, or an error that names a bad one."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ranmask.data.corpus import one_note
from ranmask.data.origins import Part
from ranmask.data.rows import Row
from ranmask.errors import DataError, TextError
from ranmask.words import Text, document

_log = logging.getLogger("ranmask")
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


class LabelledRow(NamedTuple):
    """A row that can be used; ``kept``: columns that were asked for besides."""

    number: int
    text: Text
    value: str
    kept: Mapping[str, Any] | None = None


class Labels(NamedTuple):
    """What labels there are, and whether the rows say their numbers or their names."""

    names: tuple[str, ...]
    numbers: bool

    def id(self, value: str) -> int | None:
        """The place of a label among the names, None where it is none of them."""
        if not self.numbers:
            return self.names.index(value) if value in self.names else None
        number = int(value) if _WHOLE_NUMBER.fullmatch(value) else -1
        return number if 0 <= number < len(self.names) else None


def usable_rows(
    part: Part, split: str, *, skip_bad_rows: bool = False
) -> tuple[list[LabelledRow], str | None]:
    """All rows of a part and what to note of them.

    Raises where one has no usable text or label; ``skip_bad_rows`` leaves those out, counts them
    in the note, and warns.
    """
    rows: list[LabelledRow] = []
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
    left_out = None
    if problems:
        refusal = _refusal(problems, part.where)
        if not skip_bad_rows:
            advice = "Correct the data, or leave such rows out (skip_bad_rows)"
            raise DataError(f"{refusal.reason}. {advice}", refusal.row)
        left_out = f"left out {_counted(len(problems), 'row')} that cannot be used"
        _log.warning("%s: %s", left_out, refusal)
    if not rows:
        raise DataError(f"{part.where} has no rows")
    partial = None
    if part.whole is not None and len(rows) < part.whole:
        kind = "training" if split == "train" else split
        partial = f"{len(rows):,} of {part.whole:,} {kind} rows (partial)"
    missing = f"{unlabelled:,} rows without a label left out" if unlabelled else None
    return rows, one_note(part.note, partial, left_out, missing)


def labels_of(
    rows: Sequence[LabelledRow], given: tuple[str, ...] | None, where: str, *, by_text: bool = False
) -> Labels:
    """The labels of train: given names or their numbers; else numbers from 0, or sorted names.

    ``by_text``: no row has a say in how others are read.  Where names are numbers, rows say names;
    where none is, rows of both kinds are refused anyway.
    """
    if by_text and given is not None and any(map(_WHOLE_NUMBER.fullmatch, given)):
        return Labels(given, numbers=False)
    values = {row.value for row in rows}
    whole = {value for value in values if _WHOLE_NUMBER.fullmatch(value)}
    if given is not None:
        return Labels(given, numbers=not values <= set(given) and whole == values)
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
        return Labels(tuple(sorted(values)), numbers=False)
    numbers = {int(value) for value in whole}
    in_order = tuple(str(number) for number in sorted(numbers))
    if numbers == {-1, 1} or numbers == set(range(1, len(numbers) + 1)):
        return Labels(in_order, numbers=False)  # other habits of counting: names that are numbers
    if numbers != set(range(len(numbers))):
        first = next(number for number in range(len(numbers)) if number not in numbers)
        raise DataError(
            f"{where} has {len(numbers)} labels, from {min(numbers)} to {max(numbers)}, and none "
            f"of its rows has the label {first}, an empty class: number them from 0 or 1 without "
            "gaps, or give label_names"
        )
    return Labels(in_order, numbers=True)


def class_ids(rows: Sequence[LabelledRow], labels: Labels, where: str) -> list[int]:
    """The labels of rows as class ids; raises where one is no label of train."""
    values = {row.value for row in rows}
    # A second file may spell out what the first one numbers.
    for reading in (labels, Labels(labels.names, numbers=False)):
        ids = {value: place for value in values if (place := reading.id(value)) is not None}
        if len(ids) == len(values):
            return [ids[row.value] for row in rows]
    expected = ", ".join(labels.names)
    if labels.numbers:
        expected = f"0 to {len(labels.names) - 1} ({expected})"
    raise _refusal(
        [
            (row.number, f"its label {row.value!r} is none of {expected}")
            for row in rows
            if labels.id(row.value) is None
        ],
        where,
    )


def _labelled(row: Row) -> LabelledRow:
    if row.error is not None or row.text is None:
        raise DataError(row.error or "it has no text")
    document(row.text)
    value = row.label
    if isinstance(value, int):
        value = str(value).lower() if isinstance(value, bool) else str(value)
    if value is None or value != value:  # NaN is how tables write a number that is missing
        value = ""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise DataError(f"its label {value!r} ({kind}) is neither a whole number nor a name")
    if not value.strip():
        raise DataError("it has no label")
    kept = row.kept_values().get("columns")
    return LabelledRow(row.number, row.text, value.strip(), kept)


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'s' * (count > 1)}"


def _refusal(problems: Sequence[tuple[int, str]], where: str) -> DataError:
    (row, problem), *others = problems
    more = f"; {_counted(len(others), 'more row')} cannot be used" if others else ""
    return DataError(f"{where}: {problem}{more}", row=row)

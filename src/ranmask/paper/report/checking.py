"""Records from files that others may have touched: every entry is what its annotation says.

Guarantee: a record that `check` lets pass has no entry of a wrong type, no number that is
negative or not finite, and lists that fit each other.  Whoever shows it need not look again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ranmask.errors import DataError
from ranmask.paper.report.run_data import Betas, Certified, Examples, Reproduction, Step

_PLACES: dict[str, object] = {"rate": float}
_DATA: dict[str, object] = {"sha256": str, "rows": int}
_COPY: dict[str, object] = {"kept": list[int], "label_id": int}
_EXAMPLE: dict[str, object] = {
    **dict.fromkeys(("label_id", "words", "kept", "masks"), int),
    **dict.fromkeys(("votes", "critical_words"), list[int]),
    "radius": int | None,
    "copies": list[Mapping[str, Any]],
}
"""What a report reads of a line of our own sentences, where it is there at all."""


def check(record: object, where: str) -> None:
    """Raise `DataError`, with the entry and its value, where a record is not what it should be."""
    problem = next(_problems(record), None)
    if problem is not None:
        raise DataError(f"{where}: {problem}: the file was changed after it was written")


def _problems(record: Any) -> Iterator[str]:
    hints = get_type_hints(type(record))
    for field in fields(record):
        value = getattr(record, field.name)
        if not _fits(value, hints[field.name]):
            yield f"{field.name} is {_shown(value)}, not {_spelt(hints[field.name])}"
            return
        if is_dataclass(value):
            yield from _problems(value)
        for one in value if isinstance(value, tuple) else ():
            if is_dataclass(one):
                yield from _problems(one)
    yield from _more(record)


def _more(record: object) -> Iterator[str]:
    """What annotations do not say."""
    match record:
        case Step():
            yield from _entries("place", record.place, _PLACES)
            yield from _entries("data", record.data or {}, _DATA)
        case Certified():
            if 0 in record.words:
                yield "words is 0 for a certified text"
        case Betas():
            for name in ("average", "largest"):
                if len(getattr(record, name)) != len(record.changed):
                    yield f"{name} has not one list for each of the {len(record.changed)} changed"
        case Examples():
            for line in record.lines:
                yield from _example(line)
        case Reproduction():
            names = [key for key in (*record.settings, *record.machine) if not isinstance(key, str)]
            if names:
                yield f"a setting has the name {_shown(names[0])}"


def _example(line: Mapping[str, Any]) -> Iterator[str]:
    yield from _entries("a line", line, _EXAMPLE)
    votes, copies = line.get("votes"), line.get("copies", ())
    if votes is not None and line.get("label_id", 0) >= len(votes):
        yield f"label_id {line['label_id']} has no entry in votes"
    for copy in copies:
        if copy.keys() < _COPY.keys():
            yield f"a copy has only {', '.join(copy) or 'nothing'}"
        yield from _entries("a copy", copy, _COPY)


def _entries(name: str, values: Mapping[str, Any], expected: Mapping[str, object]) -> Iterator[str]:
    for key, hint in expected.items():
        if key in values and not _fits(values[key], hint):
            yield f"{key} of {name} is {_shown(values[key])}, not {_spelt(hint)}"


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if origin is Literal:
        return any(value is one or value == one for one in get_args(hint))
    if origin in (tuple, list):
        inner = get_args(hint)[0]
        return isinstance(value, origin) and _all_fit(value, inner)
    if origin is not None:  # a mapping: its names are those of a JSON object
        return isinstance(value, Mapping)
    if hint is float:
        return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]
    if hint is int:
        # True is an int to Python.  Shares, times and entropies have no sign either.
        return type(value) is int and 0 <= value < 10**15
    return value is None if hint is NoneType else isinstance(value, hint)


def _all_fit(values: Iterable[object], hint: Any) -> bool:
    return all(_fits(value, hint) for value in values)


def _spelt(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def _shown(value: object) -> str:
    """The first entry that is likely to be wrong is often in a long list: cut it."""
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."

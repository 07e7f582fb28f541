"""An option: a field of a dataclass that says what it is for and what it may be.

    epochs: Annotated[int, Option("Most epochs.", least=1)] = 20

Its checks, its flag on the command line, its place in the HTTP schema and in a model's file are
made of that field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ranmask.errors import ModelError, OptionError


@dataclass(frozen=True)
class Option:
    """What a field is for, and what it may be.

    ``unset``: what None stands for, in words.  ``least`` and ``most`` may be reached, ``above``
    and ``below`` may not; of a list, each item is checked.  On the command line: ``group`` is its
    heading in the help, where it is not its class's; ``flag`` its name, where that is another;
    ``short`` a letter beside it; ``variable`` an environment variable instead; ``positional``: it
    has no flag; ``repeated``: a list whose flag is given once an item, not once with commas.
    ``also``: another type of number that is read exactly.
    """

    help: str
    unset: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    group: str = ""
    flag: str = ""
    short: str = ""
    variable: str = ""
    positional: bool = False
    repeated: bool = False
    also: tuple[type, ...] = ()

    def allows(self, value: float) -> bool:
        """Whether a number lies within the bounds."""
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    @property
    def bounds(self) -> str:
        """The bounds in words, with a blank before them."""
        if self.least is not None and self.most is not None:
            return f" from {self.least:g} to {self.most:g}"
        if self.least is not None and self.below is not None:
            return f" from {self.least:g} up to, not including, {self.below:.10g}"
        if self.above is not None and self.below is not None:
            return f" between {self.above:g} and {self.below:g}"
        if self.above is not None:
            return f" above {self.above:g}"
        return "" if self.least is None else f" of at least {self.least:g}"


class OptionField(NamedTuple):
    """A field, read: ``kind`` is its type without None, of a list that of its items."""

    name: str
    kind: type
    listed: bool
    choices: tuple[str, ...]
    optional: bool
    default: Any
    about: Option

    def check(self, value: Any) -> None:
        """Refuse a value of the wrong type or out of bounds, by name."""
        if value is None and self.optional:
            return
        if self.listed:
            if not isinstance(value, tuple):
                raise self._wrong(f"a tuple of {_KINDS.get(self.kind, 'name')}s", value)
            for item in value:
                self._check_one(item)
        else:
            self._check_one(value)

    def _check_one(self, value: Any) -> None:
        if self.choices:
            check_choice(self.name, value, self.choices)
        elif self.kind is bool:
            if not isinstance(value, bool):
                raise self._wrong("True or False", value)
        elif self.kind in _KINDS:
            wanted = (int,) if self.kind is int else (int, float, *self.about.also)
            right = isinstance(value, wanted) and not isinstance(value, bool)
            if not right or not math.isfinite(value) or not self.about.allows(value):
                raise self._wrong(f"a {_KINDS[self.kind]}{self.about.bounds}", value)
        elif not isinstance(value, self.kind):
            raise self._wrong(f"a {self.kind.__name__}", value)

    def _wrong(self, wanted: str, value: object) -> OptionError:
        return OptionError(f"{self.name} must be {wanted}, not {value!r}", self.name)


_KINDS: dict[type, str] = {int: "whole number", float: "number"}


@lru_cache
def option_fields(options: type) -> dict[str, OptionField]:
    """The options of a dataclass by name; other fields are left out."""
    hints = get_type_hints(options, include_extras=True)
    found = {}
    for field in fields(options):
        notes = getattr(hints[field.name], "__metadata__", ())
        about = next((note for note in notes if isinstance(note, Option)), None)
        if about is not None:
            default = field.default if field.default_factory is MISSING else field.default_factory()
            found[field.name] = OptionField(field.name, *_parsed(hints[field.name]), default, about)
    return found


def _parsed(hint: Any) -> tuple[type, bool, tuple[str, ...], bool]:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional:
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    listed = get_origin(hint) is tuple
    if listed:
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal:
        return str, listed, get_args(hint), optional
    return hint, listed, (), optional


class Checked:
    """A dataclass of options, checked when built.  ``GROUP`` is their heading in the help."""

    GROUP: ClassVar[str] = "Settings"

    def __post_init__(self) -> None:
        kind: type = type(self)
        for name, field in option_fields(kind).items():
            field.check(getattr(self, name))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        values = asdict(self)  # type: ignore[call-overload]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a value that is not one of those allowed."""
    if value not in allowed:
        raise OptionError(f"{name} must be one of {', '.join(allowed)}; not {value!r}", name)


def check_saved(path: Path, saved: Mapping[str, Any], *known: type) -> None:
    """Refuse options in a model's file that no dataclass has, or of the wrong type.

    Whether their values are right is found out where the dataclass is built.
    """
    allowed = {name: field for kind in known for name, field in option_fields(kind).items()}
    for name, value in saved.items():
        if name not in allowed:
            raise ModelError(f"{path} has the option {name!r}, which this ranmask does not know")
        field = allowed[name]
        wanted = list if field.listed else int | float if field.kind is float else field.kind
        if not isinstance(value, wanted):
            raise ModelError(f"{path} has {name}={value!r}, which is of the wrong type")

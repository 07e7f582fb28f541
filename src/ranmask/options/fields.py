"""An option: a field of a dataclass that says what it is for and what it may be.

    epochs: int = option("Most epochs.", 20, least=1)

Its checks, its flag on the command line, its place in the HTTP schema and in a model's file are
made of that field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, cast, get_args, get_origin, get_type_hints

from ranmask.errors import ModelError, OptionError

REQUIRED: Any = MISSING
"""The default of an option that has none."""


def option(help: str, default: Any = None, **about: Any) -> Any:
    """A field that is an option; ``about`` is what else `Option` has."""
    return field(default=default, metadata={"help": help, **about})


@dataclass(frozen=True)
class Option:
    """What a field is for, and what it may be.

    ``owner`` is the kind of its class, ``kind`` its type without None, of a list that of its items.
    ``unset``: what None stands for, in words.  ``least`` and ``most`` may be reached, ``above``
    and ``below`` may not; of a list, each item is checked.  ``also``: another type of number that
    is read exactly.  On the command line: ``group`` is its heading in the help, by default its
    class's; ``flag`` its name, where that is another; ``short`` a letter beside it; ``variable``
    an environment variable instead; ``positional``: it has no flag; ``repeated``: a list whose
    flag is given once an item, not once with commas; ``several``: items may also follow one flag;
    ``after``: a list without a flag of its own, whose items follow that option's, after a comma.
    """

    name: str
    owner: str
    kind: type
    listed: bool
    choices: tuple[str, ...]
    optional: bool
    default: Any
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
    several: bool = False
    after: str = ""
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
            most = "" if self.most is None else f", at most {self.most:g}"
            return f" above {self.above:g}{most}"
        return "" if self.least is None else f" of at least {self.least:g}"

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
            wanted = (int,) if self.kind is int else (int, float, *self.also)
            right = isinstance(value, wanted) and not isinstance(value, bool)
            if not right or not math.isfinite(value) or not self.allows(value):
                raise self._wrong(f"a {_KINDS[self.kind]}{self.bounds}", value)
        elif not isinstance(value, self.kind):
            raise self._wrong(f"a {self.kind.__name__}", value)

    def _wrong(self, wanted: str, value: object) -> OptionError:
        return OptionError(f"{self.name} must be {wanted}, not {value!r}", self.name)


_KINDS: dict[type, str] = {int: "whole number", float: "number"}


@lru_cache
def option_fields(options: type) -> dict[str, Option]:
    """The options of a dataclass by name; other fields are left out."""
    hints = get_type_hints(options)
    found, owner = {}, cast("type[Checked]", options)
    for declared in fields(options):
        if declared.metadata:
            name, about = declared.name, {"group": owner.GROUP, **declared.metadata}
            known = (name, owner.KIND, *_parsed(hints[name]), declared.default)
            found[name] = Option(*known, **about)
    return found


def _parsed(hint: Any) -> tuple[type, bool, tuple[str, ...], bool]:
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
    """A dataclass of options, checked when built.

    ``group`` is their heading in the help; ``kind`` says which of several kinds has them.
    """

    GROUP: ClassVar[str] = "Settings"
    KIND: ClassVar[str] = ""

    def __init_subclass__(cls, group: str = "", kind: str = "") -> None:
        cls.GROUP, cls.KIND = group or cls.GROUP, kind or cls.KIND

    def __post_init__(self) -> None:
        kind: type = type(self)
        for name, known in option_fields(kind).items():
            known.check(getattr(self, name))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        values = asdict(self)  # type: ignore[call-overload]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a value that is not one of those allowed."""
    if value not in allowed:
        raise OptionError(f"{name} must be one of {', '.join(allowed)}; not {value!r}", name)


def check_saved(path: Path, saved: Mapping[str, Any], *known: type) -> None:
    """Refuse options in a model's file that no dataclass has, or of the wrong type, or missing.

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
    missing = [name for name in allowed if allowed[name].default is REQUIRED and name not in saved]
    if missing:
        raise ModelError(f"{path} does not say {', '.join(missing)}")

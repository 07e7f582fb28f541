"""Commands whose flags are fields of dataclasses.

    @command(TrainCommand, TrainingOptions, WordTableOptions)
    def train(given: Given) -> None: ...

A flag stands for every field of its name.  What was given comes back as `Given`, which builds any
of the dataclasses; what was left out is not in it, so that a default is said once, in its field.
Errors name options as arguments; here they become flags.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Group, Parameter, Token

from ranmask.errors import OptionError, RanmaskError
from ranmask.options.fields import REQUIRED, Option, option_fields

_T = TypeVar("_T")

_LISTS = {
    int: "whole numbers, as 2 or 1,2,3",
    float: "numbers, as 0.9 or 0.8,0.9",
}


class Given(dict[str, Any]):
    """The options that were given, by name."""

    def of(self, *options: type) -> dict[str, Any]:
        """Those that the dataclasses have."""
        names = {name for kind in options for name in option_fields(kind)}
        return {name: value for name, value in self.items() if name in names}

    def build(self, options: type[_T]) -> _T:
        """A dataclass of them; what was left out is its default."""
        return options(**self.of(options))

    def refuse(self, names: Iterable[str], because: str) -> None:
        """Refuse options that mean nothing here."""
        for name in sorted(names):  # first an option, then those that follow it after a comma
            if name in self:
                raise OptionError(f"{flag_of(name)} means nothing {because}: leave it out")

    def refuse_others(self, *known: type, because: str) -> None:
        """Refuse options that none of the dataclasses has."""
        self.refuse(self.keys() - self.of(*known).keys(), because)


def command(
    *options: type, without: Iterable[str] = ()
) -> Callable[[Callable[[Given], Any]], Callable[..., Any]]:
    """Make a function of `Given` a command with a flag for each field of the dataclasses.

    Its ``read`` checks what was given, option by option, and runs nothing.
    """
    named: dict[str, list[Option]] = {}
    for owner in options:
        for name, field in option_fields(owner).items():
            if name not in without:
                named.setdefault(name, []).append(field)
    following = {found[0].after: found for found in named.values() if found[0].after}
    named = {name: found for name, found in named.items() if not found[0].after}
    first_kind = next((found[0].owner for found in named.values() if found[0].owner), "")
    flags = {name: flag_of(name, found[0].flag) for name, found in named.items()}
    flags |= {found[0].name: flags[after] for after, found in following.items()}

    def made(function: Callable[[Given], Any]) -> Callable[..., Any]:
        def read(*positional: str, **values: Any) -> Given:
            given = Given()
            with _told_in_flags(flags):
                for name, value in values.items():
                    if value is None:
                        continue
                    if value == "":  # as of a variable that is not set, in a script
                        also = named[name][0].variable
                        called = f"{flags[name]}, or {also}," if also else flags[name]
                        raise OptionError(f"{called} is empty: give a value, or leave it out")
                    if name in following:
                        value, *more = value.split(",", 1)
                        listed = following[name]
                        if more:
                            given[listed[0].name] = _checked(flags[name], more[0], listed)
                    given[name] = _checked(flags[name], value, named[name])
            if positional:
                texts = next(name for name, found in named.items() if found[0].positional)
                given[texts] = positional
            return given

        def called(*positional: str, **values: Any) -> Any:
            given = read(*positional, **values)
            with _told_in_flags(flags):
                return function(given)

        groups: dict[str, Group] = {}
        parameters = [
            _parameter(flags[name], found, first_kind, groups) for name, found in named.items()
        ]
        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__module__ = function.__module__
        called.read = read  # type: ignore[attr-defined]
        called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            sorted(parameters, key=lambda parameter: parameter.kind)
        )
        return called

    return made


@contextmanager
def _told_in_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """In this block, errors speak of flags."""
    try:
        yield
    except RanmaskError as error:
        error.args = (in_flags(error, flags), *error.args[1:])
        raise


def in_flags(error: RanmaskError, flags: Mapping[str, str]) -> str:
    """A message that speaks of arguments as one that speaks of flags.

    Shown as flags are ``mask_rate``, ``keep=3``, ``keep must ...`` where a message begins so, and,
    once each, words that an `OptionError` names.

    >>> flags = {"keep": "--keep", "mask_rate": "--mask-rate"}
    >>> in_flags(OptionError("mask_rate goes with keep=1, not with keep='all'"), flags)
    '--mask-rate goes with --keep 1, not with --keep all'
    """
    message = str(error)
    named = {*getattr(error, "names", ()), *message.split(" must ", 1)[:1]}

    def shown(found: re.Match[str]) -> str:
        name, equals, text, word = found.groups()
        if name not in flags or not (equals or "_" in name or name in named):
            return found[0]
        named.discard(name)
        return flags[name] + (f" {word if text is None else text or repr(text)}" if equals else "")

    return re.sub(
        r"(?<![\w/.'\"-])([a-z][a-z_]*)(?:(=)(?:'([^']*)'|([\w.+-]*\w)))?(?![\w/'\"-]|\.\w)",
        shown,
        message,
    )


def flag_of(name: str, spelt: str = "") -> str:
    """The flag of an option."""
    return "--" + (spelt or name.replace("_", "-"))


def _parameter(
    flag: str, named: list[Option], first_kind: str, groups: dict[str, Group]
) -> inspect.Parameter:
    field = named[0]
    default = _joined([_default(one) for one in named], named)
    told = Parameter(
        name=None if field.positional else [flag, *([f"-{field.short}"] if field.short else [])],
        help=_help(named, first_kind),
        group=groups.setdefault(field.group, Group(field.group, sort_key=len(groups))),
        show_default=(lambda _: default) if default else False,
        negative=f"--no-{flag[2:]}" if field.default is True else (),
        env_var=field.variable or None,
        allow_leading_hyphen=not (field.positional or field.several)
        and field.kind in (str, int, float, Path),
        allow_repeating=True,
        consume_multiple=field.several,
        converter=None if field.listed else _CONVERTERS.get(field.kind),
    )
    hint: Any = str if field.listed else field.kind
    if field.positional:
        return inspect.Parameter(
            field.name, inspect.Parameter.VAR_POSITIONAL, annotation=Annotated[hint, told]
        )
    if field.repeated:
        hint = list[hint]
    required = field.default is REQUIRED
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[hint if required else hint | None, told],
    )


def _converter(kind: type[int] | type[float], called: str) -> Callable[[Any, Sequence[Token]], Any]:
    def converted(_: Any, tokens: Sequence[Token]) -> int | float:
        try:
            return kind(tokens[-1].value)
        except ValueError:
            raise ValueError(f"{tokens[-1].value!r} is not a {called}") from None

    return converted


_CONVERTERS = {int: _converter(int, "whole number"), float: _converter(float, "number")}
"""How options are read whose type cyclopts would read otherwise: it would round 1.5."""


def _help(named: list[Option], first_kind: str) -> str:
    """What the first field says, and others where they differ; whose they are, if not all's."""
    said = _joined([field.help.rstrip(".") for field in named], named)
    if named[0].owner not in ("", first_kind):
        said += f" ({', '.join(field.owner for field in named if field.owner)})"
    choices = dict.fromkeys(choice for field in named for choice in field.choices)
    return f"{said}. [choices: {', '.join(choices)}]" if choices else f"{said}."


def _joined(texts: list[str], named: list[Option]) -> str:
    """The first text, and those of other kinds that differ from it."""
    differ = [
        f"{field.owner}: {text}"
        for text, field in zip(texts, named, strict=True)
        if text != texts[0] and field.owner
    ]
    return "; ".join(part for part in (texts[0], *differ) if part)


def _default(field: Option) -> str:
    default = field.default
    if default is None or default is REQUIRED:
        return field.unset
    if isinstance(default, bool) or default == ():
        return ""
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return f"{default:g}" if isinstance(default, float) else str(default)


def _checked(flag: str, value: Any, named: list[Option]) -> Any:
    """A value as its field has it: one that some field of the name allows."""
    field = named[0]
    if field.listed:
        try:
            parts = value if isinstance(value, list) else value.split(",")
            value = tuple(field.kind(part.strip()) for part in parts)
        except ValueError:
            raise OptionError(f"{flag} takes {_LISTS[field.kind]}; not {value!r}") from None
    refused = []
    for field in named:
        try:
            field.check(value)
        except OptionError as error:
            refused.append(error)
    if len(refused) == len(named):
        raise refused[0]
    return value

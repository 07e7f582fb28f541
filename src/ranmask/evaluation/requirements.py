"""What a model must reach, as people write it: a small grammar, read strictly.

    requirement = figure  (">=" | ">" | "<=" | "<")  number
    figure      = name [ "@" argument { "," argument } ] [ "(" recipe ")" ]
    argument    = words | "fpr=" number
    number      = digits, with a point or a percent sign: 0.8, .8, 80%

`certified recall@2,fpr=1% >= .5`: at a threshold that flags 1 % of the other texts, half of the
positive ones are flagged, and proved to stay so whichever 2 words are changed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ranmask.certificates.class_margins import MOST_CHANGED
from ranmask.errors import OptionError


@dataclass(frozen=True)
class FigureKind:
    """What a figure is, and which arguments it takes.

    ``proof``: certificates are needed; ``positive``: a positive class.  ``changed``: a number of
    changed words must be named; ``rate``: a rate of false positives may be; ``recipe``: an attack
    must be.  ``share``: it lies between 0 and 1.
    """

    about: str
    proof: bool = False
    positive: bool = False
    changed: bool = False
    rate: bool = False
    recipe: bool = False
    share: bool = True


KINDS = {
    "accuracy": FigureKind("texts with the right label"),
    "balanced accuracy": FigureKind("the mean recall of the classes"),
    "errors": FigureKind("rows that could not be classified, of all"),
    "precision": FigureKind("positive texts among those flagged", positive=True, rate=True),
    "recall": FigureKind("flagged texts among the positive ones", positive=True, rate=True),
    "f1": FigureKind("harmonic mean of precision and recall", positive=True, rate=True),
    "false-positive rate": FigureKind("flagged texts among the others", positive=True, rate=True),
    "auc": FigureKind("area under the ROC curve", positive=True),
    "average precision": FigureKind("area under precision and recall", positive=True),
    "median radius": FigureKind("MCB, in words", proof=True, share=False),
    "certified accuracy": FigureKind(
        "texts that are right, and proved to stay so", proof=True, changed=True
    ),
    "certified recall": FigureKind(
        "positive texts that are flagged, and proved to stay so",
        proof=True,
        positive=True,
        changed=True,
        rate=True,
    ),
    "robust accuracy": FigureKind("texts that are right after an attack", recipe=True),
    "robust recall": FigureKind(
        "positive texts that are flagged after an attack", positive=True, recipe=True
    ),
}
"""The figures that can be required."""

COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
_TOKEN = re.compile(r"\s*(>=|<=|>|<|[@,=()]|(?:\d+\.?\d*|\.\d+)%?(?![\w.%])|[A-Za-z][\w-]*|\S+)")
_WORD, _NUMBER = re.compile(r"[A-Za-z][\w-]*\Z"), re.compile(r"(?:\d+\.?\d*|\.\d+)%?\Z")


@dataclass(frozen=True)
class FigureName:
    """A figure with its arguments."""

    name: str
    changed: int | None = None
    rate: Fraction | None = None
    recipe: str | None = None

    @property
    def kind(self) -> FigureKind:
        """What it is."""
        return KINDS[self.name]

    def __str__(self) -> str:
        arguments = [] if self.changed is None else [str(self.changed)]
        arguments += [] if self.rate is None else [f"fpr={_decimal(100 * self.rate)}%"]
        at = f"@{','.join(arguments)}" if arguments else ""
        return f"{self.name}{at}" + (f"({self.recipe})" if self.recipe else "")


@dataclass(frozen=True)
class Requirement:
    """A figure, and what it must reach or stay below."""

    figure: FigureName
    comparison: str
    bound: Fraction

    def __str__(self) -> str:
        return f"{self.figure} {self.comparison} {_decimal(self.bound)}"

    @property
    def least(self) -> bool:
        """Whether more is better."""
        return self.comparison.startswith(">")

    def holds(self, value: Fraction) -> bool:
        """Whether a value meets it."""
        return COMPARISONS[self.comparison](value, self.bound)


def parse_requirement(text: str, recipes: tuple[str, ...]) -> Requirement:
    """A requirement as it is written; an error names what is wrong, and what is known.

    >>> str(parse_requirement("recall @ fpr=1% >= .8", ()))
    'recall@fpr=1% >= 0.8'
    """
    return _Reader(text, recipes).requirement()


def _decimal(value: Fraction) -> str:
    return f"{float(value):.12f}".rstrip("0").rstrip(".")


class _Reader:
    """Reads the tokens of a requirement from the left."""

    def __init__(self, text: str, recipes: tuple[str, ...]) -> None:
        self._text, self._recipes = text, recipes
        self._tokens = _TOKEN.findall(text)

    def requirement(self) -> Requirement:
        name = self._name()
        kind = KINDS[name]
        changed, rate = self._arguments(name, kind) if self._next() == "@" else (None, None)
        if kind.changed and changed is None:
            raise self._wrong(f"{name} needs a number of changed words, as {name}@2")
        if rate is not None and changed is not None and changed > MOST_CHANGED:
            raise self._wrong(f"scores are certified at up to {MOST_CHANGED} words, not {changed}")
        recipe = self._recipe(name, kind)
        comparison = self._take()
        if comparison not in COMPARISONS:
            raise self._wrong(f"one of {', '.join(COMPARISONS)} is wanted, not {comparison!r}")
        bound = self._number("a number")
        if kind.share and bound > 1:
            raise self._wrong(f"{name} lies between 0 and 1: write 90% or 0.9, not {bound}")
        if kind.share and bound == 1 and comparison == "<=":
            raise self._wrong(f"{name} is never above 1, which is all: write 1% or 0.01")
        if self._tokens:
            raise self._wrong(f"{self._tokens[0]!r} is too much: a requirement ends with a number")
        return Requirement(FigureName(name, changed, rate, recipe), comparison, bound)

    def _name(self) -> str:
        words = []
        while self._tokens and _WORD.match(self._tokens[0]):
            words.append(self._tokens.pop(0))
        name = " ".join(words).lower()
        if name not in KINDS:
            shown = name or self._next() or ""
            raise self._wrong(f"{shown!r} is no figure; known are {', '.join(KINDS)}")
        return name

    def _arguments(self, name: str, kind: FigureKind) -> tuple[int | None, Fraction | None]:
        changed: int | None = None
        rate: Fraction | None = None
        while self._next() in ("@" if changed is None and rate is None else ",",):
            self._take()
            token = self._take()
            if token.isdecimal() and kind.changed and changed is None:
                changed = int(token)
            elif token.lower() == "fpr" and kind.rate and rate is None:
                equals = self._take()
                if equals != "=":
                    raise self._wrong(f"'=' is wanted after fpr, not {equals!r}")
                rate = self._number("a rate of false positives, as 1%")
                if rate >= 1:
                    raise self._wrong("a rate lies below 1: write 1% or 0.01")
            else:
                taken = [*(["changed words, as 2"] if kind.changed else [])]
                taken += ["fpr=RATE, as fpr=1%"] if kind.rate else []
                known = " and ".join(taken) or "no argument"
                raise self._wrong(f"{token!r} is no argument of {name}, which takes {known}")
        return changed, rate

    def _recipe(self, name: str, kind: FigureKind) -> str | None:
        if self._next() != "(":
            if kind.recipe:
                raise self._wrong(f"{name} needs an attack, as {name}(textfooler)")
            return None
        if not kind.recipe:
            raise self._wrong(f"'(' is too much: {name} needs no attack")
        self._take()
        recipe = self._take()
        if recipe not in self._recipes:
            raise self._wrong(f"{recipe!r} is no attack; known are {', '.join(self._recipes)}")
        closing = self._take()
        if closing != ")":
            raise self._wrong(f"')' is wanted after {recipe}, not {closing!r}")
        return recipe

    def _number(self, wanted: str) -> Fraction:
        token = self._take()
        if not _NUMBER.match(token):
            raise self._wrong(f"{wanted} is wanted, not {token!r}")
        value = Fraction(token.rstrip("%").rstrip(".") or "0")
        return value / 100 if token.endswith("%") else value

    def _next(self) -> str | None:
        return self._tokens[0] if self._tokens else None

    def _take(self) -> str:
        return self._tokens.pop(0) if self._tokens else ""

    def _wrong(self, why: str) -> OptionError:
        return OptionError(f"require={self._text!r} cannot be read: {why}")

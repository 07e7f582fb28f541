"""Tables before they are HTML or Markdown, and how numbers are written in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

from ranmask.evaluation.intervals import proportion_interval
from ranmask.paper.report.symbols import DASH, MINUS

NOT_RUN = "not run"
Number: TypeAlias = float | Fraction


@dataclass(frozen=True)
class Cell:
    """One entry.

    ``beside``: a second, quieter entry, such as the paper's figure.  ``interval``: how sure the
    first is.  ``quiet``: sets the whole entry back.  ``strong``: the best of its column.
    """

    text: str
    beside: str = ""
    interval: str = ""
    quiet: bool = False
    strong: bool = False


@dataclass(frozen=True)
class Column:
    """A column's title, and the title that it shares with its neighbours."""

    title: str
    group: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A table with its caption, and notes below it.  The first column names the rows."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells for {len(self.columns)} columns")

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """Neighbouring columns with the same group: its title, and how many they are."""
        groups: list[tuple[str, int]] = []
        for column in self.columns:
            if groups and column.group and groups[-1][0] == column.group:
                groups[-1] = (column.group, groups[-1][1] + 1)
            else:
                groups.append((column.group, 1))
        return tuple(groups)

    @property
    def starts(self) -> frozenset[int]:
        """Columns where a new group starts."""
        at, found = 0, []
        for _, count in self.groups:
            found.append(at)
            at += count
        return frozenset(found) - {0}


def share(value: Number, digits: int = 3) -> str:
    """A share as the project prints it: ``.884``; 1 is ``1.000``."""
    text = f"{abs(float(value)):.{digits}f}"
    sign = MINUS if float(value) < 0 and float(text) else ""
    return sign + (text.removeprefix("0") if text.startswith("0.") else text)


def percent(value: Number, digits: int = 1) -> str:
    """A share in percent, without the sign: ``55.1``."""
    return f"{100 * float(value):.{digits}f}"


def difference(value: Number, digits: int = 1) -> str:
    """A signed number; the sign of nothing is left out."""
    text = f"{abs(float(value)):.{digits}f}"
    if not float(text):
        return text
    return (MINUS if float(value) < 0 else "+") + text


def interval(part: int, total: int, runs: int = 1) -> tuple[float, float]:
    """95 % interval of a share; ``runs``: how many runs over the same texts were added up.

    A text that was asked five times is still one text: the share is that of all runs, and the
    interval that of the texts of one, its ends rounded outwards.
    """
    texts = max(1, total // runs)
    low, _ = proportion_interval(part * texts // total, texts)
    _, high = proportion_interval(-(-part * texts // total), texts)
    return low, high


def share_cell(part: int, total: int) -> Cell:
    """A share of texts with its 95 % interval."""
    if not total:
        return Cell("no texts", quiet=True)
    low, high = interval(part, total)
    return Cell(share(Fraction(part, total)), interval=f"{share(low)}{DASH}{share(high)}")


def percent_cell(part: int, total: int, runs: int = 1) -> Cell:
    """The same in percent, with one digit, as the paper's attack tables have it."""
    if not total:
        return Cell("no texts", quiet=True)
    low, high = interval(part, total, runs)
    return Cell(percent(Fraction(part, total)), interval=f"{percent(low)}{DASH}{percent(high)}")


def whole(value: int | None) -> str:
    """A number of words; the paper's N/A for None."""
    return "N/A" if value is None else str(value)


def not_run() -> Cell:
    """An entry that nobody measured."""
    return Cell(NOT_RUN, quiet=True)


def row(*entries: Cell | str) -> tuple[Cell, ...]:
    """Cells, some of them given as plain text."""
    return tuple(entry if isinstance(entry, Cell) else Cell(entry) for entry in entries)


def columns(group: str, titles: Sequence[str]) -> tuple[Column, ...]:
    """Numeric columns under one title."""
    return tuple(Column(title, group) for title in titles)

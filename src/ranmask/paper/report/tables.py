"""Tables before they are HTML or Markdown, and how numbers are written in them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import TypeAlias

from ranmask.evaluation.intervals import proportion_interval

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

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells for {len(self.columns)} columns")

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Neighbouring columns with the same group: its title, and how many they are."""
        keys = [column.group or place for place, column in enumerate(self.columns)]
        runs = [(key, len(list(same))) for key, same in groupby(keys)]
        return [(key if isinstance(key, str) else "", count) for key, count in runs]

    @property
    def starts(self) -> set[int]:
        """Columns where a new group starts."""
        counts = [count for _, count in self.groups]
        return {sum(counts[:place]) for place in range(1, len(counts))}


def table(
    caption: str,
    titles: Iterable[str | tuple[str, Sequence[str]]],
    rows: Iterable[Sequence[Cell | str]],
    notes: Sequence[str] = (),
) -> Table:
    """A table from plain text and cells.

    A title is that of a column of numbers, or of words where it begins with ``<``; a pair is a
    title above several columns, and theirs.
    """
    columns: list[Column] = []
    for title in titles:
        if isinstance(title, str):
            columns.append(Column(title.removeprefix("<"), numeric=not title.startswith("<")))
        else:
            columns += [Column(inner, title[0]) for inner in title[1]]
    cells = [[entry if isinstance(entry, Cell) else Cell(entry) for entry in row] for row in rows]
    return Table(caption, columns, cells, notes)


def quiet(text: str) -> Cell:
    """An entry that is set back."""
    return Cell(text, quiet=True)


NOT_RUN = quiet("not run")
NOTHING = quiet("–")


def share(value: Number, digits: int = 3) -> str:
    """A share as the project prints it: ``.884``; 1 is ``1.000``."""
    text = f"{abs(float(value)):.{digits}f}"
    sign = "−" if float(value) < 0 and float(text) else ""
    return sign + (text.removeprefix("0") if text.startswith("0.") else text)


def signed_share(value: Number) -> str:
    """A difference of shares: ``+.010``."""
    return ("+" if value > 0 else "") + share(value)


def percent(value: Number) -> str:
    """A share in percent, without the sign: ``55.1``."""
    return f"{100 * float(value):.1f}"


def difference(value: Number, digits: int = 1) -> str:
    """A signed number; the sign of nothing is left out."""
    text = f"{abs(float(value)):.{digits}f}"
    if not float(text):
        return text
    return ("−" if float(value) < 0 else "+") + text


def interval(part: int, total: int, runs: int = 1) -> tuple[float, float]:
    """95 % interval of a share; ``runs``: how many runs over the same texts were added up.

    A text that was asked five times is still one text: the share is that of all runs, and the
    interval that of the texts of one, its ends rounded outwards.
    """
    texts = max(1, total // runs)
    low, _ = proportion_interval(part * texts // total, texts)
    _, high = proportion_interval(-(-part * texts // total), texts)
    return low, high


def share_cell(part: int, total: int, spelt: Callable[[Number], str] = share) -> Cell:
    """A share of texts with its 95 % interval."""
    if not total:
        return quiet("no texts")
    low, high = interval(part, total)
    return Cell(spelt(Fraction(part, total)), interval=f"{spelt(low)}–{spelt(high)}")


def seeds_cell(parts: Sequence[tuple[int, int]], spelt: Callable[[Number], str] = share) -> Cell:
    """A share of texts, for each seed a part and a total: of several as `spread_cell`."""
    known = [(part, total) for part, total in parts if total]
    several = spread_cell([Fraction(*pair) for pair in known], spelt)
    return several or share_cell(*(known[0] if known else (0, 0)), spelt)


def spread_cell(values: Sequence[Number], spelt: Callable[[Number], str] = share) -> Cell | None:
    """The mean of seeds and its spread; None below two.

    The spread is the least and largest value, and from three on the sample standard deviation;
    nothing where all are written alike.
    """
    if len(values) < 2:
        return None
    found = [Fraction(value) for value in values]
    least, largest = spelt(min(found)), spelt(max(found))
    spread = f"{least} to {largest}" if least != largest else ""
    if spread and len(found) > 2:
        spread = f"{spread}, ± {spelt(statistics.stdev(found))}"
    return Cell(spelt(statistics.mean(found)), interval=spread)


SPREAD = (
    "Several seeds: their mean, with the range and, from three on, ± the sample standard "
    "deviation, over seeds and not over texts. One seed: with the 95 % interval over texts."
)
"""What stands beside the figures of `seeds_cell`."""


def whole(value: int | None) -> str:
    """A number of words; the paper's N/A for None."""
    return "N/A" if value is None else str(value)

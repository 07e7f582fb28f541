"""The figures that the paper prints, as data: its tables, averages, settings and statements.

They are transcribed in ``published.toml``, as printed, faults and all (a test compares each cell
with the paper's source).  `inconsistent_cells` lists the cells that contradict themselves.

>>> published().certified["tb-sst2-certified"].row(0.7)
CertifiedRow(rate=0.7, accuracy=83.3, mcb=2, mcr=8.0)
>>> published().empirical["tb-safer"].cell("SAFER (vote)", "textfooler")
Cell(cln=95.4, boa=78.6, succ=17.6)
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

Metric: TypeAlias = Literal["cln", "boa", "succ", "mcb", "share"]

_ROUNDING = Fraction("0.05")  # every percentage of the empirical tables has one decimal


@dataclass(frozen=True)
class CertifiedRow:
    """One masking rate: ``rate`` as a share, ``accuracy`` and ``mcr`` in percent.

    ``mcb`` and ``mcr`` are None where the paper prints N/A.
    """

    rate: float
    accuracy: float
    mcb: int | None
    mcr: float | None


@dataclass(frozen=True)
class CertifiedTable:
    """A table of certified robustness; ``chosen`` is the rate in bold, which is then attacked."""

    name: str
    corpus: str
    base: str
    chosen: float
    rows: tuple[CertifiedRow, ...]

    def row(self, rate: float) -> CertifiedRow | None:
        """The row of a masking rate (0.9 is 90 %), or None where the paper has none."""
        return next((row for row in self.rows if row.rate == rate), None)


@dataclass(frozen=True)
class Cell:
    """One method under one attack, in percent: clean and robust accuracy, and success rate."""

    cln: float
    boa: float
    succ: float


@dataclass(frozen=True)
class EmpiricalTable:
    """A table of accuracies under attack; methods are named without their base model.

    ``texts``: how many it seems to be of, where that is not what the paper says.
    """

    name: str
    corpus: str
    base: str
    methods: tuple[str, ...]
    attacks: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    texts: int | None = None

    def cell(self, method: str, attack: str) -> Cell | None:
        """What the paper prints for a method under an attack, or None where it has nothing."""
        return self.cells.get((method, attack))


@dataclass(frozen=True)
class Claim:
    """A single figure in the paper's text, and what of which tables it speaks of.

    ``against``: the row that is compared with; ``value`` is then a change, positive where up.
    """

    name: str
    text: str
    value: float
    metric: Metric
    tables: tuple[str, ...]
    against: str | None = None


@dataclass(frozen=True)
class RiskStatement:
    """What the paper says of the risk probability of an average text of a corpus."""

    corpus: str
    rate: float
    text: str
    value: float


@dataclass(frozen=True)
class Published:
    """Everything the paper prints; tables by their label.

    ``settings``, ``beta``, ``entropy``, ``rates`` and ``adversarial`` are as ``published.toml``
    explains them.
    """

    certified: Mapping[str, CertifiedTable]
    empirical: Mapping[str, EmpiricalTable]
    claims: Mapping[str, Claim]
    risk: Mapping[str, RiskStatement]
    adversarial: Sequence[Mapping[str, str]]
    settings: Mapping[str, Any]
    beta: Mapping[str, Any]
    entropy: Mapping[str, Any]
    rates: Mapping[str, Any]


@dataclass(frozen=True)
class InconsistentCell:
    """A cell whose success rate does not follow from its accuracies; ``succ`` is what does."""

    table: str
    method: str
    attack: str
    cell: Cell
    succ: float


@lru_cache(maxsize=1)
def published() -> Published:
    """The paper's figures, read once."""
    source = resources.files("ranmask.paper").joinpath("published.toml")
    document = tomllib.loads(source.read_text(encoding="utf-8"))
    claims = [Claim(**claim | {"tables": tuple(claim["tables"])}) for claim in document["claims"]]
    # The division of two whole numbers gives the double that the decimal is written as.
    risks = [RiskStatement(**risk | {"rate": risk["rate"] / 100}) for risk in document["risk"]]
    return Published(
        {table.name: table for table in map(_certified, document["certified"])},
        {table.name: table for table in map(_empirical, document["empirical"])},
        {claim.name: claim for claim in claims},
        {risk.corpus: risk for risk in risks},
        document["adversarial"],
        *(MappingProxyType(document[key]) for key in ("settings", "beta", "entropy", "rates")),
    )


def inconsistent_cells() -> tuple[InconsistentCell, ...]:
    """Cells of the paper where Succ is not (Cln - Boa) / Cln, however all three were rounded.

    An attack is tried on the texts that are classified right, so the share of these that falls
    follows from the two accuracies.
    """
    return tuple(
        InconsistentCell(table.name, method, attack, cell, round(float(success_rate(cell)), 1))
        for table in published().empirical.values()
        for (method, attack), cell in table.cells.items()
        if not _consistent(cell)
    )


def success_rate(cell: Cell) -> Fraction:
    """The success rate, in percent, that follows from the accuracies printed in a cell."""
    clean, robust = Fraction(str(cell.cln)), Fraction(str(cell.boa))
    return 100 * (clean - robust) / clean


def _certified(table: Mapping[str, Any]) -> CertifiedTable:
    rows = [
        CertifiedRow(rate / 100, accuracy, *(None if value == "N/A" else value for value in row))
        for rate, accuracy, *row in table["rows"]
    ]
    chosen = table["chosen"] / 100
    return CertifiedTable(table["table"], table["corpus"], table["base"], chosen, tuple(rows))


def _empirical(table: Mapping[str, Any]) -> EmpiricalTable:
    attacks = tuple(table["attacks"])
    cells = {
        (method, attack): Cell(*figures)
        for method, *row in table["rows"]
        for attack, figures in zip(attacks, row, strict=True)
    }
    methods = tuple(row[0] for row in table["rows"])
    name, corpus, base = (table[key] for key in ("table", "corpus", "base"))
    return EmpiricalTable(name, corpus, base, methods, attacks, cells, table.get("texts"))


def _consistent(cell: Cell) -> bool:
    clean, robust, success = (Fraction(str(value)) for value in (cell.cln, cell.boa, cell.succ))
    least = 100 * (1 - (robust + _ROUNDING) / (clean - _ROUNDING))
    most = 100 * (1 - (robust - _ROUNDING) / (clean + _ROUNDING))
    return least - _ROUNDING <= success <= most + _ROUNDING

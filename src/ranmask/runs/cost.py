"""What a run will take: what it sends to an endpoint, and its time, when the first rows show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ranmask.certificates.readings import levels_of

_MEASURED_SECONDS = 2.0
_LONG = 10.0  # less is not worth a word


@dataclass(frozen=True)
class RunCost:
    """What the rows that are left will take.

    ``queries``: copies that are scored, questions of an attack, or texts for an endpoint
    (``kind``); 0 where nobody counted them.  ``seconds``: as ``measured_rows`` rows took; None
    before the first row.
    """

    rows: int
    queries: int
    kind: str = "copies"
    seconds: float | None = None
    measured_rows: int = 0

    def __str__(self) -> str:
        if self.seconds is None:
            return f"{self.rows:,} rows: at most {self.queries:,} {self.kind}"
        asked = f"about {_rounded(self.queries):,} {self.kind}, " if self.queries else ""
        first = "row" if self.measured_rows == 1 else f"{self.measured_rows:,} rows"
        ahead = f"{asked}{about(self.seconds)}"
        return f"{self.rows:,} rows to go: {ahead}, as the first {first} took"


class CostMeter:
    """Watches the first rows of a run, and tells what the others will take where that is long.

    ``watched``: how many rows; None: as many as take two seconds.  ``clock``: for tests.
    """

    def __init__(
        self,
        tell: Callable[[RunCost], None],
        watched: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell, self._watched, self._clock = tell, watched, clock
        self._done = self._queries = 0
        self._told = True
        self._kind = "copies"

    def start(self, rows: int) -> None:
        """Begin, with so many rows to do."""
        self._rows, self._begun, self._told = rows, self._clock(), False

    def ask(self, queries: int, kind: str = "copies") -> None:
        """Count what the rows took that `advance` will name."""
        self._queries += queries
        self._kind = kind

    def advance(self, rows: int) -> None:
        """So many more rows are done."""
        if self._told:
            return
        self._done += rows
        seconds = self._clock() - self._begun
        if not self._done or self._rows < 1:
            return
        if self._watched is not None and self._done < min(self._watched, self._rows):
            return
        if self._watched is None and seconds < _MEASURED_SECONDS:
            return
        self._told = True
        left = self._rows - self._done
        ahead = seconds * left / self._done
        if ahead >= _LONG:
            queries = round(self._queries * left / self._done)
            self._tell(RunCost(left, queries, self._kind, ahead, self._done))


def endpoint_cost(classifier: Mapping[str, Any], rows: int) -> RunCost | None:
    """What so many rows send to an endpoint, by the description of what classifies them."""
    reader = classifier.get("reader")
    if not isinstance(reader, Mapping) or reader.get("kind") != "endpoint" or not rows:
        return None
    calls = sum(levels_of(classifier["options"]["reader_weights"]))
    return RunCost(rows, calls * rows, f"texts for {reader['url']}, less those that a cache knows")


def about(seconds: float) -> str:
    """A time that was estimated, as one."""
    said = duration(seconds)
    return said if said.startswith("less") else f"about {said}"


def duration(seconds: float) -> str:
    """A time that was estimated, in few digits."""
    if seconds < 1:
        return "1 second" if seconds > 0.5 else "less than a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    minutes = seconds / 60
    return f"{minutes:.1f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def _rounded(number: int) -> int:
    """A number that was estimated, in two digits."""
    return round(number, 2 - len(str(number))) if number > 99 else number

"""The seam between a run and whoever computes it: pieces in, answers out, in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

from ranmask.errors import ModelError, RanmaskError
from ranmask.results.files import differences
from ranmask.runs.shards.work import Part, Piece, Report

_FAILED_STARTS = 3


@dataclass(frozen=True)
class Lost:
    """The worker ended before it answered.

    ``blamed``: whether the rows may have caused it; not where the whole machine went away.
    """

    why: str
    blamed: bool


Answer: TypeAlias = Part | RanmaskError | Lost | None
"""What became of a piece; None for a trial that did its worker no harm."""


class Place:
    """A place for a worker.  ``ready``: it has loaded its model; ``piece``: what it works on."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.ready = False
        self.piece: Piece | None = None


class WorkerPool(ABC):
    """Workers that each hold a model.  Lost ones are replaced; their pieces come back `Lost`.

    Never holds more pieces than it has workers: whoever submits waits for ``idle``.  Close it, or
    use it as a context manager.
    """

    def __init__(self) -> None:
        self.places: list[Any] = []
        self._first: Report | None = None
        self._failed_starts = 0

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End all workers."""

    @abstractmethod
    def _start(self, place: Any) -> None:
        """Begin a worker in a place, which answers with a report or an error."""

    @abstractmethod
    def _ask(self, place: Any) -> None:
        """Send a worker the piece of its place."""

    @abstractmethod
    def _hear(self) -> tuple[Any, Any]:
        """Wait for what the next worker says: its place, and a `Report` or an `Answer`."""

    def report(self) -> Report:
        """What the first worker says of itself; waits for it."""
        while self._first is None:
            self.wait()
        return self._first

    @property
    def idle(self) -> int:
        """Workers that wait for a piece."""
        return sum(place.ready and place.piece is None for place in self.places)

    def submit(self, piece: Piece) -> None:
        """Hand a piece to an idle worker."""
        place = next(place for place in self.places if place.ready and place.piece is None)
        place.piece = piece
        self._ask(place)

    def wait(self) -> tuple[Piece, Answer] | None:
        """A piece and its `Answer`; None when the number of idle workers may have changed."""
        place, said = self._hear()
        piece, place.piece = place.piece, None
        if isinstance(said, Lost):
            self._replace(place, said)
        elif not place.ready:
            if isinstance(said, RanmaskError):
                raise said
            self._first = self._first or said
            check_alike(self._first, said)
            place.ready, self._failed_starts = True, 0
        return None if piece is None else (piece, said)

    def _replace(self, place: Place, lost: Lost) -> None:
        if not place.ready and lost.blamed:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise ModelError(
                    f"{_FAILED_STARTS} workers in a row ended while they loaded the model, most "
                    f"likely for want of memory: use fewer workers. The last: {lost.why}"
                )
        place.ready = False
        self._start(place)


def check_alike(first: Report, other: Report) -> None:
    """Refuse a worker that would compute something else than the first one did."""
    differing = {
        *differences(dict(first.description), dict(other.description)),
        *differences(dict(first.versions), dict(other.versions)),
    }
    if differing:
        raise ModelError(
            f"two workers differ in {', '.join(sorted(differing))}: every machine needs the same "
            "model, the same kind of device and the same library versions"
        )

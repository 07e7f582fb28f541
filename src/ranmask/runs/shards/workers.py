"""The seam between a run and whoever computes it: pieces in, answers out, in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ranmask.data.rows import Row
from ranmask.errors import ModelError
from ranmask.runs.run import differences
from ranmask.runs.shards.work import Part, Refusal, Report


@dataclass(frozen=True)
class Piece:
    """Rows of one shard to work on: all of them, or those from ``start`` as a ``trial``.

    A trial only shows whether a worker survives the rows.
    """

    shard: int
    rows: tuple[Row, ...]
    start: int = 0
    trial: bool = False


@dataclass(frozen=True)
class Survived:
    """A trial that did its worker no harm."""


@dataclass(frozen=True)
class Lost:
    """The worker ended before it answered.

    ``blamed``: whether the rows may have caused it; not where the whole machine went away.
    """

    why: str
    blamed: bool


@dataclass(frozen=True)
class Answer:
    """What became of a piece."""

    piece: Piece
    result: Part | Survived | Refusal | Lost


class Engine(Protocol):
    """Workers that each hold a model.  Lost ones are replaced; their pieces come back `Lost`.

    Never holds more pieces than it has workers: whoever submits waits for ``idle``.
    """

    def report(self) -> Report:
        """What the first worker says of itself; waits for it."""

    @property
    def idle(self) -> int:
        """Workers that wait for a piece."""

    def submit(self, piece: Piece) -> None:
        """Hand a piece to an idle worker."""

    def wait(self) -> Answer | None:
        """Wait for an answer, or (None) until the number of idle workers may have changed."""

    def close(self) -> None:
        """End all workers."""


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

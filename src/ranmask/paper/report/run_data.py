"""What a report needs of a reproduction: one small record for each step, without texts.

A reproduction's folder holds one line a text; condensed, it holds a few numbers a text, enough
for every table, curve, interval and paired test, and small enough to be committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ranmask.paper.reproduction.record import Kind, Measures, State

Status: TypeAlias = Literal["succeeded", "failed", "skipped", "error"]


@dataclass(frozen=True)
class Reading:
    """What one certificate makes of the votes: entry i belongs to text i.

    ``radius`` None: not certified even unchanged.  A radius counts only where ``correct``.
    """

    certificate: str
    guarantee: bool
    correct: tuple[bool, ...]
    radius: tuple[int | None, ...]


@dataclass(frozen=True)
class Certified:
    """A run of ``ranmask certify``: several certificates of the same texts, exact first.

    ``words``: words of each text.  ``rows``: number of each text's row in its source.
    ``masks``: the most copies that a text had.  ``errors``: rows with an error, which are left out.
    ``threat``: what a radius counts, as `ranmask.results.Certificate` has it.  ``expected``: the
    number of each text's true class, or nothing.
    """

    rows: tuple[int, ...]
    words: tuple[int, ...]
    masks: int
    readings: tuple[Reading, ...]
    errors: int = 0
    threat: str = "substitutions"
    expected: tuple[int, ...] = ()


@dataclass(frozen=True)
class Attacked:
    """A run of ``ranmask attack``.

    ``attack``: the recipe's full name, which says what it did without.  ``victim``: how it was
    smoothed, or None for a plain classifier.  ``changed``: words changed, where it succeeded.
    ``confirmed``: whether a success is still one on fresh masks; None elsewhere.  ``expected``: the
    number of each text's true class, or nothing.
    """

    attack: str
    victim: Mapping[str, Any] | None
    rows: tuple[int, ...]
    statuses: tuple[Status, ...]
    words: tuple[int, ...]
    changed: tuple[int, ...]
    queries: tuple[int, ...]
    confirmed: tuple[bool | None, ...]
    expected: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Predicted:
    """A run of ``ranmask predict``.

    Entropies in nats, of the shares of the votes and, where the ensemble has them, of the mean
    scores (of the softmax of the mean logits).
    ``words``: words of each text, or nothing.  ``errors``: rows with an error, which are left out.
    ``expected``: the number of each text's true class, or nothing.
    """

    rows: tuple[int, ...]
    correct: tuple[bool, ...]
    vote_entropy: tuple[float, ...]
    score_entropy: tuple[float, ...] | None
    words: tuple[int, ...] = ()
    errors: int = 0
    expected: tuple[int, ...] = ()


@dataclass(frozen=True)
class Betas:
    """A run of ``ranmask beta``.

    ``share``: p_c of each text.  ``average[i]`` and ``largest[i]``: for each text, beta for
    ``changed[i]`` changed words, as the paper averages it over random positions, and for the
    worst of the positions that were tried; None where a text has fewer words.  ``errors``: rows
    with an error, which are left out.
    """

    rows: tuple[int, ...]
    words: tuple[int, ...]
    changed: tuple[int, ...]
    share: tuple[float, ...]
    average: tuple[tuple[float | None, ...], ...]
    largest: tuple[tuple[float | None, ...], ...]
    errors: int = 0


@dataclass(frozen=True)
class Examples:
    """Our own sentences, certified: lines of ``ranmask certify --copies`` as they are.

    ``labels``: names of the run's classes, in their order; nothing where its record has none.
    """

    lines: tuple[Mapping[str, Any], ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trained:
    """What a training was: ``run`` and ``validation`` of its ``training.json``."""

    run: Mapping[str, Any]
    validation: Mapping[str, Any]


Result: TypeAlias = Certified | Attacked | Predicted | Betas | Examples | Trained


@dataclass(frozen=True)
class Step:
    """One step of a reproduction, and its result where it is done.

    ``place``: where its result belongs in the paper's table or figure.  ``data``: what the run's
    record says of its texts.  ``error``: why it failed, or why there is no result yet.
    """

    name: str
    measures: Measures
    command: str
    place: Mapping[str, Any]
    state: State
    seconds: float | None = None
    error: str | None = None
    data: Mapping[str, Any] | None = None
    result: Result | None = None


@dataclass(frozen=True)
class Reproduction:
    """One recipe as it was run: ``kind`` says how a report shows it."""

    name: str
    title: str
    kind: Kind
    paper: str
    about: str
    size: str
    settings: Mapping[str, Any]
    machine: Mapping[str, Any]
    steps: tuple[Step, ...]

    @property
    def missing(self) -> list[Step]:
        """Steps without a result."""
        return [step for step in self.steps if step.state != "done"]

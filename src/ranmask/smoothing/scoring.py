"""What every way of smoothing shares: a base classifier, how its scores are counted and named.

Whoever smooths decides which copies of a text are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeVar, cast

import numpy as np

from ranmask.errors import OptionError
from ranmask.models.base import BaseClassifier, MaskedCopies, Scores, check_gives_scores, whole_copy
from ranmask.models.function import FunctionClassifier
from ranmask.models.rechecking import DEFAULT_COPIES, Recheck
from ranmask.models.synonyms import DrawnCopies
from ranmask.options import Ensemble
from ranmask.smoothing.votes import BallotBox, Ballots, count_ballots
from ranmask.words import Hiding

_Item = TypeVar("_Item")


@dataclass(frozen=True, eq=False)
class Panel:
    """A base classifier and how what it says is read.  Build it by `of`, which checks.

    ``given_tolerance`` None: what the base classifier measures is in force.  ``given_recheck``
    None: a few copies are asked about again, unless the base classifier is ``repeatable``.
    """

    base: BaseClassifier
    ensemble: Ensemble
    labels: tuple[str, ...] | None
    given_tolerance: float | None
    given_recheck: int | None
    recheck: Recheck

    @classmethod
    def of(
        cls,
        base: BaseClassifier | Callable[[list[Any]], Any],
        ensemble: Ensemble,
        *,
        labels: Sequence[str] | None,
        tolerance: float | None,
        recheck: int | None = None,
        hide: Hiding | None = None,
        mask_token: str | None = None,
    ) -> Panel:
        """From what a user gives: a function is wrapped, labels and tolerance are checked."""
        wrapped = _as_base(base, hide, mask_token)
        if tolerance is not None and not (
            isinstance(tolerance, int | float) and 0 <= tolerance < float("inf")
        ):
            raise OptionError(f"tolerance must be a number of at least 0, not {tolerance!r}")
        if ensemble != "vote":
            check_gives_scores(wrapped, f"ensemble={ensemble!r}")
        if wrapped.votes_only and tolerance is not None:
            # What was not computed again is known to be certain within the measured one only.
            raise OptionError(
                f"tolerance={tolerance!r} cannot be given with dtype='screened', which decides by "
                "its own tolerance what to compute again: leave it out, or use dtype='float32'"
            )
        if wrapped.votes_only and recheck:
            raise OptionError(
                f"recheck={recheck!r} compares scores, but with dtype='screened' only votes are "
                "those of single precision: leave it out, or use dtype='float32'"
            )
        names = _checked_labels(labels, wrapped.labels)
        copies = 0 if wrapped.repeatable else DEFAULT_COPIES
        again = Recheck(wrapped, copies if recheck is None else recheck)
        return cls(wrapped, ensemble, names, tolerance, recheck, again)

    @property
    def tolerance(self) -> float:
        """The tolerance in force: what was given, else what the base classifier measured."""
        return self.base.tolerance if self.given_tolerance is None else self.given_tolerance

    @property
    def rechecked(self) -> int | None:
        """Most copies of those scored together that are asked about again; None: no need."""
        return None if self.base.repeatable and not self.recheck.copies else self.recheck.copies

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """The base classifier's scores of every copy of each text, and a few of them twice."""

        def one(text: int, row: int) -> MaskedCopies:
            asked = copies[text]
            return MaskedCopies(asked.document, asked.words_read, asked.kept[row : row + 1])

        return self._checked(self.base.score(copies), one)

    def score_drawn(self, drawn: Sequence[DrawnCopies]) -> list[Scores]:
        """The same of random copies, each of which shows all of its words."""

        def one(text: int, row: int) -> MaskedCopies:
            asked = drawn[text]
            [copy] = DrawnCopies(asked.premise, asked.sets, asked.choices[[row]]).documents
            return whole_copy(copy, len(asked.sets))

        return self._checked(self.base.score_drawn(drawn), one)

    def _checked(
        self, scored: list[Scores], copy: Callable[[int, int], MaskedCopies]
    ) -> list[Scores]:
        if self.recheck.copies:
            scored = [np.array(rows) for rows in scored]  # the next call may use the memory again
            self.recheck.check(scored, copy, self.tolerance)
        return scored

    def count_all(self, scored: Sequence[Scores]) -> BallotBox:
        """What the copies of several texts say, from a table of scores for each text."""
        copies = np.array([len(scores) for scores in scored])
        return BallotBox(self.count(np.concatenate(scored)), copies)

    def count(self, scores: Scores) -> Ballots:
        """What copies say, from the base classifier's scores of them."""
        ballots = count_ballots(scores, self.ensemble, self.base.outputs, self.tolerance)
        if self.labels is not None and len(self.labels) != ballots.classes:
            raise OptionError(
                f"labels names {len(self.labels)} classes ({', '.join(self.labels)}), but "
                f"the base classifier scores {ballots.classes}"
            )
        return ballots

    def answers(self, box: BallotBox, labels: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The fields of each text's result that follow from what its copies said."""
        names = self.labels or tuple(map(str, range(box.ballots.classes)))
        means = box.means()
        scores = repeat(None) if means is None else map(tuple, means.tolist())
        texts = zip(labels, box.counts.tolist(), scores, box.copies.tolist(), strict=False)
        for label, votes, mean, copies in texts:
            yield {
                "label": names[label],
                "label_id": label,
                "votes": tuple(votes),
                "scores": mean,
                "masks": copies,
                "ensemble": self.ensemble,
            }

    def description(self) -> dict[str, Any]:
        """What determines how copies are judged, as plain JSON values."""
        return {
            "base": self.base.description(),
            "labels": None if self.labels is None else list(self.labels),
            "given_tolerance": self.given_tolerance,
            "tolerance": self.tolerance,
            **({} if self.rechecked is None else {"recheck": self.rechecked}),
        }


def together(
    texts: Iterable[_Item], size: Callable[[_Item], int], most: int
) -> Iterator[list[_Item]]:
    """Texts in their order, in groups that are scored at once: ``most`` copies or just above."""
    waiting: list[_Item] = []
    copies = 0
    for one in texts:
        waiting.append(one)
        copies += size(one)
        if copies >= most:
            yield waiting
            waiting, copies = [], 0
    if waiting:
        yield waiting


def _as_base(base: object, hide: Hiding | None, mask_token: str | None) -> BaseClassifier:
    if isinstance(base, str):
        raise OptionError(f"{base!r} is no classifier: load a model with from_pretrained")
    if not isinstance(base, BaseClassifier):
        base = FunctionClassifier(cast("Callable[[list[Any]], Any]", base))  # checked there
    return base.configured(hide=hide, mask_token=mask_token) if hide or mask_token else base


def _checked_labels(
    labels: Sequence[str] | None, default: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    if labels is None:
        return default
    if (
        isinstance(labels, str)
        or not isinstance(labels, Sequence)
        or not all(isinstance(label, str) for label in labels)
    ):
        raise OptionError(f"labels must be a list of names, not {labels!r}")
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise OptionError(f"labels must be at least two different names, not {list(labels)!r}")
    return tuple(labels)

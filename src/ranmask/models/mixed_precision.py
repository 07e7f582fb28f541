"""The votes of single precision, most of them decided in half precision.

On a GPU half precision is faster, but too coarse for close votes: those are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.errors import ClassifierError
from ranmask.models.base import DrawnCopies, MaskedCopies, Scores, WrappedClassifier, by_text
from ranmask.models.encoding import WordEncoder
from ranmask.models.numerics import Probes
from ranmask.words import Hiding

if TYPE_CHECKING:
    from ranmask.models.huggingface import HuggingFaceClassifier

_Which: TypeAlias = npt.NDArray[np.bool_]

SCREENED = "screened"
"""The ``dtype`` that stands for this."""

_ASSUMES = "fewer bits move no difference of two outputs of the model by more than {:.3g}"


class MixedPrecisionClassifier(WrappedClassifier):
    """Votes as the exact model does: its vote for every copy, and certain only where its vote is.

    The fast model scores all copies.  A copy whose two best outputs are within the `screen`, or
    whose outputs are not finite, is scored again by the exact model, and that row is returned.

    Why the votes are right.  Let ``t`` be the exact model's `tolerance`, and ``d`` the
    `difference`: for no copy, however either model computes it, is a difference of two outputs of
    the fast model farther than ``d`` from that of the exact one.  The screen is ``d + t``.

    - A row that was computed again is the exact model's own.
    - Otherwise the fast model's best class is ahead of every other by more than ``d + t``, hence
      the exact model's lead of that class over every other is more than ``t``, in whatever batch.
      So it alone is the exact model's best class (no tie to break), and the vote is not uncertain.
      Neither is it by the returned row, whose lead is more than ``d + t > t``.

    Therefore votes may be counted with the exact model's tolerance.  That ``d`` is a bound is an
    assumption, as it is for ``t``: it is measured (`Probes.difference`), and every copy
    that both models compute is held against it; once one is beyond it, nothing is scored any more.
    Nothing else of a row is right: sums of scores would mix two precisions, so ``votes_only`` is
    True.

    Args:
        exact: The model whose votes are wanted.
        fast: The same model, with fewer bits and on the same device; a copy in float16 by default.
    """

    rechecked: int = 0
    """How many copies were computed again so far."""

    def __init__(
        self, exact: HuggingFaceClassifier, fast: HuggingFaceClassifier | None = None
    ) -> None:
        super().__init__(exact)
        self.votes_only = self.repeatable = True
        self.exact = exact
        self.fast = exact.in_dtype("float16") if fast is None else fast
        self._difference: float | None = None
        self._farthest_seen = 0.0

    @property
    def model(self) -> Any:
        """The exact model: what is saved."""
        return self.exact.model

    @property
    def encoder(self) -> WordEncoder:
        """What makes token rows, for both models."""
        return self.exact.encoder

    @property
    def difference(self) -> float:
        """How far a difference of two outputs may lie between the models; measured once."""
        if self._difference is None:
            probes = Probes(self.encoder, self.exact.batch_tokens)
            self._difference = probes.difference(
                self.fast.raw_rows, self.exact.score_rows, self.fast.epsilon
            )
        return self._difference

    @property
    def screen(self) -> float:
        """A lead of the fast model's best class that is not above this decides nothing."""
        return self.difference + self.tolerance

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> MixedPrecisionClassifier:
        exact = self.exact.configured(hide=hide, mask_token=mask_token)
        return MixedPrecisionClassifier(exact, exact.in_dtype(self.fast.dtype))

    @property
    def assumes(self) -> tuple[str, ...]:
        return (*self.exact.assumes, _ASSUMES.format(self.difference))

    def description(self) -> dict[str, object]:
        return {**self.exact.description(), "dtype": SCREENED}

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        def exactly(close: _Which) -> Scores:
            chosen = zip(copies, by_text(close, copies), strict=True)
            return self.exact.score_copies(
                [replace(text, kept=text.kept[part]) for text, part in chosen if part.any()]
            )

        self._check_difference()
        return by_text(self._corrected(self.fast.raw_copies(copies), exactly), copies)

    def score_drawn(self, texts: Sequence[DrawnCopies]) -> list[Scores]:
        rows = self.encoder.rows_of_drawn(texts)

        def exactly(close: _Which) -> Scores:
            chosen = zip(rows, by_text(close, rows), strict=True)
            return self.exact.score_rows([text.some(part) for text, part in chosen if part.any()])

        self._check_difference()
        return by_text(self._corrected(self.fast.raw_rows(rows), exactly), texts)

    def _corrected(self, scores: Scores, exactly: Callable[[_Which], Scores]) -> Scores:
        """The scores, with exact rows in place of those that are too close."""
        finite = np.asarray(np.isfinite(scores).all(axis=1))
        top_two = np.partition(np.where(finite[:, None], scores, 0.0), -2, axis=1)[:, -2:]
        close = ~(top_two[:, 1] - top_two[:, 0] > self.screen)  # as a row of zeros is
        if close.any():
            again = exactly(close)
            moved = (scores[close] - again)[finite[close]]
            farthest = float(np.ptp(moved, axis=1).max(initial=0.0))
            self._farthest_seen = max(self._farthest_seen, farthest)
            self._check_difference()
            scores[close] = again
            self.rechecked += len(again)
        return scores

    def _check_difference(self) -> None:
        # For good: whoever asks again, text by text, must not get what rests on a broken bound.
        if self._farthest_seen > self.difference:
            raise ClassifierError(
                f"half precision moves a difference of two outputs of a copy by "
                f"{self._farthest_seen:.3g}, and by at most {self.difference:.3g} was allowed for, "
                "on which all results so far rest: compute them again with dtype='float32'"
            )

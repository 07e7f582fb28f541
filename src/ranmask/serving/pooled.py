"""A model as one request sees it: all is the model's own, but its scores come from a pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ranmask.errors import ModelError, OptionError
from ranmask.models.base import (
    BaseClassifier,
    Hiding,
    MaskedCopies,
    Scores,
    WrappedClassifier,
)
from ranmask.words import Document


@dataclass(frozen=True, eq=False)
class Known:
    """A model, and what is asked of it before the first request.

    The answers take the model or its tokenizer, which belong to the pool's thread from then on.
    ``pair_refusal`` says why the model takes no pairs; None if it does, and it remembers how.
    """

    base: BaseClassifier
    tolerance: float
    pair_refusal: str | None

    @classmethod
    def of(cls, base: BaseClassifier) -> Known:
        """Ask the model now."""
        try:
            base.words_read(Document(("a",), "a"))
        except ModelError as error:
            return cls(base, base.tolerance, str(error))
        return cls(base, base.tolerance, None)


class PooledClassifier(WrappedClassifier):
    """Says what the model says; ``score`` may be computed in the company of other requests."""

    def __init__(
        self, known: Known, score: Callable[[Sequence[MaskedCopies]], list[Scores]]
    ) -> None:
        super().__init__(known.base)
        self._known = known
        self._score = score

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """As the model's own; waits for its turn, and raises `ServingFault` where it has none."""
        return self._score(copies)

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> BaseClassifier:
        """Refused: all requests share one way of hiding words."""
        raise OptionError(
            f"hide={hide!r} and mask_token={mask_token!r} are fixed when the service starts: leave "
            "them out"
        )

    def words_read(self, document: Document) -> int:
        """As the model's own."""
        if document.premise is not None and self._known.pair_refusal is not None:
            raise ModelError(self._known.pair_refusal)
        return self.inner.words_read(document)

    @property
    def tolerance(self) -> float:
        """As it was measured before the first request."""
        return self._known.tolerance

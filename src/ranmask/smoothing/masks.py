"""Which copies of a text vote: the kept sets that its options ask for.

A certificate rests on kept sets that follow from the number of words (``sampling="fixed"``): the
voting family, or the two random samples of the certificates that estimate.  (``family="distinct"``
follows the words too, and is proved otherwise: `certificates.distinct`.)  The other two ways to
draw them follow the *words*.  **They prove nothing**, since whoever changes a word changes which
copies there are; they are for measuring what an attack does, as the paper measures it:

``fresh``  a uniform draw for each text.
``lm``     likewise, but a word is the likelier to be hidden the worse a language model predicts it.

This module knows no scores: it ends where the base classifier begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates import families
from ranmask.certificates.families import Family
from ranmask.certificates.kept import Retention
from ranmask.errors import ClassifierError, OptionError, RanmaskError
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.options import (
    DEFAULT_ESTIMATION_MASKS,
    DEFAULT_FRESH_MASKS,
    DEFAULT_MASKS,
    DEFAULT_SELECTION_MASKS,
    SmoothingOptions,
)
from ranmask.smoothing.votes import BallotBox, Ballots
from ranmask.words import Document, text_seed

WordLosses: TypeAlias = Callable[[Sequence[Document]], Sequence[npt.NDArray[Any]]]
"""A language model's loss on every word of each document: an array of one number a word."""


@dataclass(frozen=True, eq=False)
class Voters:
    """The copies of one text that are asked: its first ``words_read`` words, and who sees which."""

    document: Document
    words_read: int
    family: Family

    @property
    def copies(self) -> MaskedCopies:
        """What a base classifier scores."""
        return MaskedCopies(self.document, self.words_read, self.family.sets)


@dataclass(frozen=True, eq=False)
class Poll(Voters):
    """One text after its copies were scored, with what each of them said."""

    ballots: Ballots

    @property
    def alone(self) -> Polls:
        """A poll of this text only."""
        return Polls([self], self.ballots.alone)


@dataclass(frozen=True, eq=False)
class Polls:
    """Several texts after their copies were scored and counted together."""

    voters: Sequence[Voters]
    box: BallotBox

    def each(self) -> Iterator[Poll]:
        """Every text by itself."""
        for one, ballots in zip(self.voters, self.box.each(), strict=True):
            yield Poll(one.document, one.words_read, one.family, ballots)


class Electorate:
    """Chooses the copies of texts, as ``options`` say.

    ``word_losses`` is needed for ``sampling="lm"``, and means nothing otherwise.
    """

    def __init__(
        self,
        options: SmoothingOptions,
        base: BaseClassifier,
        word_losses: WordLosses | None = None,
    ) -> None:
        if options.sampling == "lm" and word_losses is None:
            raise OptionError(
                "sampling='lm' needs word_losses, a language model's losses: pass "
                "word_losses=lm.word_losses of a MaskedLM, or use sampling='fresh' "
                "(on the command line: ranmask predict --sampling lm --lm FOLDER)"
            )
        if options.sampling != "lm" and word_losses is not None:
            raise OptionError(
                f"word_losses means nothing with sampling={options.sampling!r}: leave it out, or "
                "use sampling='lm'"
            )
        if word_losses is not None and not callable(word_losses):
            raise OptionError(
                f"word_losses must be a function of documents, as lm.word_losses is, not "
                f"{word_losses!r}"
            )
        self.word_losses = word_losses
        self._options = options
        self._base = base
        self._retention = Retention(options.keep, options.mask_rate)

    def voters(self, documents: Sequence[Document]) -> Iterator[Voters]:
        """The copies that decide a label, for each text; the exact certificate reads them too."""
        options = self._options
        if options.sampling != "fixed":
            return self._drawn(documents)
        if options.voting_family == "distinct":
            return self._distinct(documents)
        return self._fixed(
            documents, self._voting_family if options.certificate == "exact" else self._selection
        )

    def selection(self, documents: Sequence[Document]) -> Iterator[Voters]:
        """The sample that selects the label of a certificate that estimates."""
        return self._fixed(documents, self._selection)

    def estimation(self, documents: Sequence[Document]) -> Iterator[Voters]:
        """The sample that such a certificate is estimated from."""
        return self._fixed(documents, self._estimation)

    def estimates_from(self, family: Family) -> bool:
        """Whether a family of the same seed and number of kept words is that very sample."""
        masks = self._options.masks or DEFAULT_ESTIMATION_MASKS
        return family.kind == "sampled" and len(family) == masks

    def language_model(self) -> object:
        """What identifies the language model in a run's record: plain JSON values."""
        owner = getattr(self.word_losses, "__self__", None)
        if callable(getattr(owner, "description", None)):
            return owner.description()  # type: ignore[union-attr]
        named = self.word_losses if owner is None else type(owner)
        name = getattr(named, "__qualname__", type(named).__qualname__)
        return {"kind": "function", "function": f"{getattr(named, '__module__', None)}:{name}"}

    # -- kept sets that follow from the number of words ----------------------------------------

    def _fixed(
        self, documents: Sequence[Document], choose: Callable[[int, int], Family]
    ) -> Iterator[Voters]:
        known: dict[int, Family] = {}
        for document in documents:
            read = self._base.words_read(document)
            family = known.get(read)
            if family is None:
                family = known[read] = choose(read, self._retention.count(read))
            yield Voters(document, read, family)

    def _voting_family(self, words: int, kept: int) -> Family:
        return families.family(
            words,
            kept,
            choice=self._options.voting_family,
            masks=self._options.masks or DEFAULT_MASKS,
            seed=self._options.seed,
        )

    def _estimation(self, words: int, kept: int) -> Family:
        masks = self._options.masks or DEFAULT_ESTIMATION_MASKS
        return families.family(words, kept, choice="sampled", masks=masks, seed=self._options.seed)

    def _selection(self, words: int, kept: int) -> Family:
        masks = self._options.selection_masks or DEFAULT_SELECTION_MASKS
        sets = families.sampled_sets(words, kept, masks, self._options.seed, stream="selection")
        return Family("sampled", words, sets)

    # -- kept sets of one text -----------------------------------------------------------------

    def _distinct(self, documents: Sequence[Document]) -> Iterator[Voters]:
        masks = self._options.masks or DEFAULT_MASKS
        for document in documents:
            read = self._base.words_read(document)
            words = document.words[:read]
            family = families.distinct_family(words, masks, blank=self._base.blank)
            yield Voters(document, read, family)

    def _drawn(self, documents: Sequence[Document]) -> Iterator[Voters]:
        masks = self._options.masks or DEFAULT_FRESH_MASKS
        # What no copy can show has no say in which copies there are either.
        read = [
            Document(document.words[: self._base.words_read(document)], document.premise)
            for document in documents
        ]
        losses = None if self.word_losses is None else _checked_losses(self.word_losses, read)
        for index, (document, shown) in enumerate(zip(documents, read, strict=True)):
            words = len(shown.words)
            kept = self._retention.count(words)
            seed = text_seed(self._options.seed, shown.premise, shown.words)
            if losses is None:
                sets = families.sampled_sets(words, kept, masks, seed, stream="fresh")
                family = Family("fresh", words, sets)
            else:
                sets = families.weighted_sets(losses[index], kept, masks, seed)
                family = Family("lm", words, sets)
            yield Voters(document, words, family)


def _checked_losses(
    word_losses: WordLosses, documents: Sequence[Document]
) -> list[npt.NDArray[np.float64]]:
    """The losses of all words of all documents, asked for in one call."""
    if not documents:
        return []
    try:
        answer = word_losses(documents)
        # Copies: whoever returned them may use their memory again.
        losses = [np.asarray(one, dtype=np.float64).copy() for one in answer]
    except RanmaskError:
        raise
    except Exception as error:
        raise ClassifierError(f"word_losses raised {type(error).__name__}: {error}") from error
    if len(losses) != len(documents):
        raise ClassifierError(
            f"word_losses returned {len(losses)} arrays for {len(documents)} documents; expected "
            "one for each"
        )
    for document, one in zip(documents, losses, strict=True):
        if one.shape != (len(document.words),):
            raise ClassifierError(
                f"word_losses returned shape {one.shape} for a text of {len(document.words)} "
                "words; expected one loss a word"
            )
        usable = np.isfinite(one) & (one >= 0)
        if not usable.all():
            place = int(np.flatnonzero(~usable)[0])
            raise ClassifierError(
                f"word_losses returned {one[place]} for the word {document.words[place]!r}: a loss "
                "is a finite number of at least 0"
            )
    return losses

"""Which copies of a text vote: the kept sets that its options ask for.

A certificate rests on kept sets that follow from the number of words (``sampling="fixed"``): the
voting family, or the two random samples of the certificates that estimate.  Sets that are drawn
for each text **prove nothing**, since whoever changes a word changes which copies there are; they
are for measuring what an attack does, as the paper measures it: ``fresh``, uniform, and ``lm``,
where a word is the likelier to be hidden the worse a language model predicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates import families
from ranmask.certificates.families import Family, FamilyKind, KeptSets
from ranmask.certificates.kept import kept_count
from ranmask.errors import ClassifierError, OptionError, RanmaskError
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.models.synonyms import Sample
from ranmask.options import (
    DEFAULT_ESTIMATION_MASKS,
    DEFAULT_FRESH_MASKS,
    DEFAULT_MASKS,
    DEFAULT_SELECTION_MASKS,
    SmoothingOptions,
)
from ranmask.words import Document, text_seed

WordLosses: TypeAlias = Callable[[Sequence[Document]], Sequence[npt.NDArray[Any]]]
"""A language model's loss on every word of each document: an array of one number a word."""

_MOST_REMEMBERED = 1 << 18  # positions in a family that is kept for the next text: a megabyte
_MOST_DRAWN = 1 << 20  # positions that are drawn for several texts at once
_remembered: dict[tuple[SmoothingOptions, type, Sample, int], Family] = {}


@dataclass(frozen=True, eq=False)
class MaskedText(MaskedCopies):
    """A text with the copies of it that vote: ``kept`` are the sets of ``family``."""

    family: Family

    @property
    def described(self) -> dict[str, Any]:
        """The fields of a result that follow from the copies."""
        return {
            "words": len(self.document.words),
            "words_read": self.words_read,
            "kept": self.kept.shape[1],
            "family": self.family.kind,
        }


def check_word_losses(sampling: str, word_losses: WordLosses | None) -> None:
    """Refuse a language model's losses, or that there are none, where it does not fit."""
    if sampling == "lm" and word_losses is None:
        raise OptionError(
            "sampling='lm' needs word_losses, a language model's losses: pass "
            "word_losses=lm.word_losses of a MaskedLM (in float32), or use sampling='fresh' "
            "(on the command line: ranmask predict --sampling lm --lm FOLDER)"
        )
    if sampling != "lm" and word_losses is not None:
        raise OptionError(
            f"word_losses means nothing with sampling={sampling!r}: leave it out, or use "
            "sampling='lm'"
        )
    if word_losses is not None and not callable(word_losses):
        raise OptionError(
            f"word_losses must be a function of documents, as lm.word_losses is, not "
            f"{word_losses!r}"
        )


def drawn_copies(
    options: SmoothingOptions,
    base: BaseClassifier,
    documents: Sequence[Document],
    word_losses: WordLosses | None,
) -> Iterator[MaskedText]:
    """Copies that are drawn for each text: by a language model's losses, where there is one."""
    masks = options.masks or DEFAULT_FRESH_MASKS
    # What no copy can show has no say in which copies there are either.
    read = [_shown(document, base.words_read(document)) for document in documents]
    losses = None if word_losses is None else _checked_losses(word_losses, read)
    counts = [len(shown.words) for shown in read]
    kept_of = {
        words: kept_count(words, keep=options.keep, mask_rate=options.mask_rate)
        for words in set(counts)
    }

    def seed_of(place: int) -> int:
        return text_seed(options.seed, read[place].premise, read[place].words)

    kind: FamilyKind = "fresh" if losses is None else "lm"
    drawn: Iterable[KeptSets]
    if losses is None:
        drawn = _fresh_sets(counts, kept_of, masks, seed_of)
    else:
        drawn = (
            families.weighted_sets(own, kept_of[words], masks, seed_of(place))
            for place, (own, words) in enumerate(zip(losses, counts, strict=True))
        )
    for document, words, sets in zip(documents, counts, drawn, strict=True):
        yield MaskedText(document, words, sets, Family(kind, words, sets))


def _fresh_sets(
    counts: Sequence[int],
    kept_of: Mapping[int, int],
    masks: int,
    seed_of: Callable[[int], int],
) -> Iterator[KeptSets]:
    """Uniform sets for texts of so many words each, in their order.

    Texts of one length are drawn at once, among as many as have `_MOST_DRAWN` positions.
    """
    ends = np.cumsum([masks * kept_of[words] for words in counts])
    cuts = [0, *(np.flatnonzero(np.diff(ends // _MOST_DRAWN)) + 1).tolist(), len(counts)]
    for start, stop in pairwise(cuts):
        by_words: dict[int, list[int]] = {}
        for place in range(start, stop):
            by_words.setdefault(counts[place], []).append(place)
        found: dict[int, KeptSets] = {}
        for words, places in by_words.items():
            seeds = list(map(seed_of, places))
            sets = families.fresh_sets(words, kept_of[words], masks, seeds)
            found.update(zip(places, sets, strict=True))
        yield from (found[place] for place in range(start, stop))


def _shown(document: Document, words: int) -> Document:
    if words == len(document.words):
        return document
    return Document(document.words[:words], document.premise)


def function_description(function: Any) -> object:
    """What identifies a language model's function in a run's record: plain JSON values."""
    owner = getattr(function, "__self__", None)
    if callable(getattr(owner, "description", None)):
        return owner.description()  # type: ignore[union-attr]
    named = function if owner is None else type(owner)
    name = getattr(named, "__qualname__", type(named).__qualname__)
    return {"kind": "function", "function": f"{getattr(named, '__module__', None)}:{name}"}


def fixed_family(options: SmoothingOptions, sample: Sample, words: int) -> Family:
    """The kept sets of every text of ``words`` words, where the words have no say in them.

    Certificates that estimate select a label, and vote, by one sample, and estimate from another.
    """
    # A fraction is read exactly and a float as it is written: 0.9 is not what it equals.
    known = options, type(options.mask_rate), sample, words
    family = _remembered.get(known)
    if family is None:
        kept = kept_count(words, keep=options.keep, mask_rate=options.mask_rate)
        if sample == "estimation":
            masks = options.masks or DEFAULT_ESTIMATION_MASKS
            family = families.family(words, kept, choice="sampled", masks=masks, seed=options.seed)
        elif sample == "selection" or options.certificate != "exact":
            masks = options.selection_masks or DEFAULT_SELECTION_MASKS
            sets = families.sampled_sets(words, kept, masks, options.seed, stream="selection")
            family = Family("sampled", words, sets)
        else:
            masks, choice = options.masks or DEFAULT_MASKS, options.voting_family
            family = families.family(words, kept, choice=choice, masks=masks, seed=options.seed)
        if family.sets.size <= _MOST_REMEMBERED:
            if len(_remembered) >= 128:
                _remembered.clear()
            _remembered[known] = family
    return family


def copies_of(options: SmoothingOptions, words: int) -> tuple[int, int]:
    """How many copies a text of so many words has, at most, and how many words each shows.

    Those of a certificate, where there is one to have: both of its samples, where it draws two.
    """
    options = options.resolved()
    kept = kept_count(words, keep=options.keep, mask_rate=options.mask_rate)
    masks = options.masks or 1
    if options.certificate != "exact":
        return masks + (options.selection_masks or 0), kept
    drawn = options.sampling != "fixed"  # however many differ
    choice = "sampled" if drawn else options.voting_family
    return families.family_size(words, kept, choice=choice, masks=masks), kept


def _checked_losses(
    word_losses: WordLosses, documents: Sequence[Document]
) -> list[npt.NDArray[np.float64]]:
    """The losses of all words of all documents, asked for in one call."""
    if not documents:
        return []
    try:
        answer = word_losses(documents)
        # Copies: whoever returned them may use their memory again.
        losses = [np.asarray(row, dtype=np.float64).copy() for row in answer]
    except RanmaskError:
        raise
    except Exception as error:
        raise ClassifierError(f"word_losses raised {type(error).__name__}: {error}") from error
    if len(losses) != len(documents):
        raise ClassifierError(
            f"word_losses returned {len(losses)} arrays for {len(documents)} documents; expected "
            "one for each"
        )
    for document, own in zip(documents, losses, strict=True):
        if own.shape != (len(document.words),):
            raise ClassifierError(
                f"word_losses returned shape {own.shape} for a text of {len(document.words)} "
                "words; expected one loss a word"
            )
        usable = np.isfinite(own) & (own >= 0)
        if not usable.all():
            place = int(np.flatnonzero(~usable)[0])
            raise ClassifierError(
                f"word_losses returned {own[place]} for the word {document.words[place]!r}: a loss "
                "is a finite number of at least 0"
            )
    return losses

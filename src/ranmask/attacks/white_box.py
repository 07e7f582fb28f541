"""What an attacker knows who owns the victim: its weights, its masks, what each word says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranmask.attacks.victims import PlainVictim, Question, SmoothedVictim, Victim
from ranmask.certificates.votes import Scores, as_scores, count_votes
from ranmask.models.base import MaskedCopies, whole_copy
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.words import Document

_AMONG = 25  # words of a text of which a copy shows one


SLOPED = "a victim whose gradient can be computed: an encoder, by itself or smoothed by masks"
"""What `has_slopes`."""


def adds_up(victim: Victim) -> bool:
    """Whether each word of a text votes by itself, wherever it stands: gains of words add up.

    (But for a model that reads the whole text beside them.)
    """
    if not isinstance(victim, SmoothedVictim):
        return False
    smoothed = victim.smoothed
    masks = isinstance(smoothed, SmoothedClassifier) and smoothed.options.sampling == "fixed"
    return masks and smoothed.options.keep == 1 and smoothed.base.order_free


def word_scores(victim: Victim, words: Sequence[str], premise: str | None = None) -> Scores:
    """What is said of each word by itself: what its copy adds to each class, or its shares."""
    base = _base(victim)
    if isinstance(victim, SmoothedVictim) and base is not None:
        # As its copies show a word: among hidden ones, of which a word table sees nothing.
        texts = [Document((word,) * (1 if base.order_free else _AMONG), premise) for word in words]
        read = base.words_read(texts[0])
        kept = np.array([[read // 2]], dtype=np.int32)
        rows = np.concatenate(base.score([MaskedCopies(text, read, kept) for text in texts]))
        if not adds_up(victim):
            return as_scores(rows, base.outputs)
        ones = np.ones(len(rows), dtype=np.int64)
        votes = count_votes(rows, victim.smoothed.options.ensemble, base.outputs, 0.0, ones)
        means = votes.means()
        return np.asarray(votes.counts, dtype=np.float64) if means is None else means
    texts = [Document((word,), premise) for word in words]
    # A number that no attempt has: nothing that is remembered for one is of use here.
    return victim.answer([Question(-1, text, text) for text in texts]).shares


def surrogate_of(victim: Victim) -> Victim | None:
    """The same classifier as its owner computes it: mean scores, over masks that stay.

    None where the victim shows just that to everyone, or nothing is known of it.
    """
    if not isinstance(victim, SmoothedVictim) or victim.smoothed.base.votes_only:
        return None
    smoothed = victim.smoothed
    owned: dict[str, Any] = {"ensemble": "score"}
    if isinstance(smoothed, SmoothedClassifier) and smoothed.options.sampling != "fixed":
        owned |= {"sampling": "fixed", "word_losses": None}
    elif smoothed.options.ensemble != "vote":
        return None
    return SmoothedVictim(smoothed.with_options(**owned))


def has_slopes(victim: Victim) -> bool:
    """Whether the gradient of what the victim says can be computed."""
    base = _base(victim)  # what numpy computes has an encoder of texts, and no model
    return hasattr(base, "encoder") and hasattr(base, "model")


def first_order(victim: Victim, text: Document, others: Sequence[Document]) -> Scores:
    """How the shares of a text rise, to first order, when it becomes each of ``others``."""
    from ranmask.models.slopes import word_slopes, word_vectors

    base = _base(victim)
    copies = whole_copy(text, base.words_read(text))
    if isinstance(victim, SmoothedVictim):
        [copies] = victim.smoothed.copies([text])
    slopes = word_slopes(base, copies)
    changes = [_changes(text, other, slopes.shape[1]) for other in others]
    spelt = list(dict.fromkeys(word for found in changes for pair in found for word in pair[1:]))
    vectors = dict(zip(spelt, word_vectors(base, spelt), strict=True)) if spelt else {}
    rises = np.zeros((len(others), len(slopes)))
    for row, found in zip(rises, changes, strict=True):
        for place, old, new in found:
            row += slopes[:, place] @ (vectors[new] - vectors[old])
    return rises


def _changes(text: Document, other: Document, read: int) -> list[tuple[int, str, str]]:
    pairs = enumerate(zip(text.words[:read], other.words[:read], strict=True))
    return [(place, old, new) for place, (old, new) in pairs if old != new]


def _base(victim: Victim) -> Any:
    """What is shown the texts, or their masked copies; None where neither is."""
    if isinstance(victim, SmoothedVictim) and isinstance(victim.smoothed, SmoothedClassifier):
        return victim.smoothed.base
    return victim.base if isinstance(victim, PlainVictim) else None

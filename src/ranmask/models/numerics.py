"""What floating point does to a model: found out, because a proof needs one fixed function.

Libraries choose the order of a sum by the shape of a product.  So the logits of a copy may move in
their last bits with the batch that it is computed in, and sharp attention makes much of last bits:
how far they move on a few copies says little about others.  `Probes.steady_rows` looks for batches
in which rows get the same bits in any batch: rows of one length, in numbers that a library treats
alike.  That is a property of shapes, not of values, so a few rows of each shape decide it.

Where there is no such shape, `Probes.tolerance` bounds the movement that is seen, with a safety
factor; votes closer than that count as uncertain, against the label.  That bound is an assumption,
and results name it.

This module knows no framework: it is handed functions from token rows to logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from ranmask.certificates.families import sampled_sets
from ranmask.certificates.kept import kept_count
from ranmask.errors import ModelError
from ranmask.models.base import MaskedCopies, Scores, whole_copy
from ranmask.models.batching import Batch, RowCount, batches
from ranmask.models.encoding import TokenRows, WordEncoder
from ranmask.models.flat import Ids
from ranmask.words import Document

SAFETY_FACTOR = 8
"""How many times the largest movement that was seen is allowed for."""

SAME_LIMIT = 1e-4
"""Largest relative difference between two ways to compute one thing that is rounding."""

_NO_LIMIT = 1 << 30
_ROWS_OF_A_LENGTH = 6
_OTHER_SEEDS = range(3, 67)  # some 2,000 rows
_SMALLEST_SCALE = 1e-3  # for a model whose logits are all zero

_CopyScorer: TypeAlias = Callable[[list[MaskedCopies]], Scores]


class _RowScorer(Protocol):
    def __call__(self, rows: list[TokenRows], *, tokens: int | None = None) -> Scores: ...


class Probes:
    """Random rows and copies, on which ways to compute a model are compared.

    ``tokens``: most tokens of a batch.  Rows are the same for all encoders of one vocabulary.
    """

    def __init__(self, encoder: WordEncoder, tokens: int) -> None:
        self.encoder, self.tokens = encoder, tokens
        special = set(encoder.tokenizer.all_special_ids)
        ordinary = [token for token in range(len(encoder.tokenizer)) if token not in special]
        self._ordinary = np.array(ordinary, dtype=np.int64)

    # -- rows ----------------------------------------------------------------------------------

    def rows(self, seeds: Iterable[int] = (0,)) -> list[TokenRows]:
        """Rows of masked copies of texts of several lengths."""
        rows = []
        for seed in seeds:
            random = np.random.default_rng(seed)
            for words in (3, 10, 25, 50):
                count = min(words, self.encoder.most_words())
                pieces = self._words(count, random)
                sizes = sorted({1, min(2, count), kept_count(count, mask_rate=0.9)})
                sets = [sampled_sets(count, kept, 3, seed) for kept in sizes]
                rows += [self.encoder.lay_out(pieces, kept) for kept in sets]
        return rows

    def all_kinds(self) -> list[TokenRows]:
        """Masked copies, whole texts, as plain classifiers and synonyms show them, and pairs."""
        random = np.random.default_rng(1)
        return [*self.rows(), *(self._whole(words, random) for words in (10, 50)), *self._pairs()]

    def longest(self) -> TokenRows:
        """The longest row that the model takes."""
        return self._whole(self.encoder.most_words(), np.random.default_rng(0))

    def copies(self, seed: int = 3) -> MaskedCopies:
        """Copies of a text whose words have one token or more."""
        count = min(12, self.encoder.most_words())
        words = tuple(map(self._spelt, self._words(count, np.random.default_rng(seed))))
        return MaskedCopies(Document(words), count, sampled_sets(count, min(3, count), 256, seed))

    def _many_lengths(self) -> list[TokenRows]:
        """A few rows of every small length, and of some larger ones; and pairs."""
        random = np.random.default_rng(5)
        lengths = np.repeat((*range(1, 17), 19, 24, 29, 37, 50), _ROWS_OF_A_LENGTH)
        return [*(self._whole(words, random) for words in lengths.tolist()), *self._pairs()]

    def _whole(self, words: int, random: np.random.Generator) -> TokenRows:
        count = min(words, self.encoder.most_words())
        tokens = [(token,) for token in random.choice(self._ordinary, count).tolist()]
        return self.encoder.lay_out(tokens, np.arange(count, dtype=np.int32)[None])

    def _pairs(self) -> Iterator[TokenRows]:
        """Whole pairs, where the model takes any."""
        random = np.random.default_rng(2)
        for words in (5, 20):
            # Pieces of words, most of them: what matters is that the rows are long and filled.
            tokens = random.choice(self._ordinary, 2 * words).tolist()
            shown = [self._spelt([token]) for token in tokens]
            pair = Document(tuple(shown[:words]), " ".join(shown[words:]))
            try:
                read = self.encoder.words_read(pair)
            except ModelError:
                return  # no pair fits, or the tokenizer knows none
            yield self.encoder.rows(whole_copy(pair, read))

    def _words(self, count: int, random: np.random.Generator) -> list[tuple[int, ...]]:
        """Words of one token and of two, by turns."""
        tokens = random.choice(self._ordinary, 2 * count).tolist()
        return [tuple(tokens[2 * i : 2 * i + 1 + i % 2]) for i in range(count)]

    def _spelt(self, tokens: Sequence[int]) -> str:
        """A word that has about these tokens."""
        return str(self.encoder.tokenizer.decode(list(tokens))).strip().replace(" ", "") or "a"

    # -- the same bits -------------------------------------------------------------------------

    def steady_rows(
        self,
        score_rows: Callable[[list[TokenRows], int, RowCount], Scores],
        counts: Sequence[RowCount],
    ) -> RowCount | None:
        """The first of ``counts`` in which a row has the same bits whatever is computed beside it.

        ``score_rows`` takes rows, the most tokens of a batch, and a count.  Rows of many lengths
        are computed with as few others as possible, and at places all over full batches.
        """
        rows = self._many_lengths()
        for count in counts:
            times = max(self._times(rows), 2 * (count.most or 0) // _ROWS_OF_A_LENGTH + 1)
            alone = score_rows(rows, 1, count)
            if _all_alike(alone, score_rows(rows * times, self.tokens, count)):
                return count
        return None

    def same_everywhere(self, score_rows: _RowScorer, score_copies: _CopyScorer) -> bool:
        """Whether rows and copies have the same bits in any batch, where batches have no shape.

        Many rows, because rounding to a smaller dtype hides most of what there is to see.
        """
        rows = [*self._many_lengths(), *self.rows(_OTHER_SEEDS[:16])]
        first, crowd = score_rows(rows), score_rows(rows * self._times(rows))
        if not _all_alike(first, crowd) or not _all_alike(first, score_rows(rows, tokens=200)):
            return False
        alone, *others = self._copies_in_ways(score_rows, score_copies)
        return all(_all_alike(alone, other) for other in others)

    def _times(self, rows: Sequence[TokenRows]) -> int:
        """How often rows are repeated to fill a batch, and to stand at its beginning and end."""
        return 2 + self.tokens // sum(int(text.lengths.sum()) for text in rows)

    # -- how far logits move -------------------------------------------------------------------

    def tolerance(
        self, score_rows: _RowScorer, epsilon: float, score_copies: _CopyScorer | None = None
    ) -> float:
        """How far the difference of two logits of one copy may move between computations.

        A difference moves by at most twice what a logit does.  Never below the rounding step
        ``epsilon`` of the model's numbers, and rounded up to a power of two, so that small chance
        variations between runs do not show.  ``score_copies``: another way from copies to logits.
        """
        ways = self._in_many_ways(score_rows)
        moved = float(np.ptp(ways, axis=0).max())
        if score_copies is not None:
            copies = self._copies_in_ways(score_rows, score_copies)
            moved = max(moved, float(np.ptp(copies, axis=0).max()))
        return _allowed(moved, epsilon, ways[0])

    def difference(self, fast_rows: _RowScorer, exact_rows: _RowScorer, epsilon: float) -> float:
        """How far the difference of two logits of one copy may lie from one model to another.

        The rows of `tolerance`, every way of one model compared with every way of the other; and
        many more rows in ordinary batches, because how far the models are apart depends on the
        words, and on a few is several times what it is on most.  Rows that are not finite in
        ``fast_rows`` say nothing of the others and are left out; a model that overflows on more
        than half of them is refused.  ``epsilon``: the rounding step of the fast model's numbers.
        """
        others = self.rows(_OTHER_SEEDS)

        def in_many_ways(score_rows: _RowScorer) -> Scores:
            ways = self._in_many_ways(score_rows)
            more = np.repeat(score_rows(others)[None], len(ways), axis=0)
            return np.concatenate([ways, more], axis=1)

        fast, exact = in_many_ways(fast_rows), in_many_ways(exact_rows)
        finite = np.flatnonzero(np.isfinite(fast).all(axis=(0, 2)))
        rows = fast.shape[1]
        if 2 * len(finite) < rows:
            raise ModelError(
                f"{rows - len(finite)} of {rows} random copies overflow in half precision, too "
                "many for it to be of use with this model: use dtype='float32'"
            )
        fast, exact = fast[:, finite], exact[:, finite]
        above = float((fast.max(axis=0) - exact.min(axis=0)).max())
        below = float((exact.max(axis=0) - fast.min(axis=0)).max())
        return _allowed(max(above, below), epsilon, exact)

    def _in_many_ways(self, score_rows: _RowScorer) -> Scores:
        """Logits of the same rows in ordinary batches, small ones and full ones, a table a way."""
        rows = self.all_kinds()
        ways = [
            score_rows(rows),
            score_rows(rows, tokens=1),
            score_rows(rows, tokens=200),
            score_rows(rows * self._times(rows)),
        ]
        return np.stack([logits[-len(ways[0]) :] for logits in ways])

    def _copies_in_ways(self, score_rows: _RowScorer, score_copies: _CopyScorer) -> list[Scores]:
        """Logits of the same copies: as rows, by themselves, and beside others."""
        text, other = self.copies(3), self.copies(4)
        return [
            score_rows([self.encoder.rows(text)]),
            score_copies([text]),
            score_copies([*[other] * 15, text])[-len(text) :],
        ]

    # -- the same function ---------------------------------------------------------------------

    def padded_logits(
        self, forward: Callable[[Batch], Scores], rows: list[TokenRows] | None = None
    ) -> Scores:
        """Logits of rows, or of some masked copies, computed in one padded batch."""
        rows, pad_id = rows or self.rows(), self.encoder.pad_id
        [batch] = batches(rows, tokens=_NO_LIMIT, least_rows=_NO_LIMIT, pad_id=pad_id)
        return forward(batch)[np.argsort(batch.places)]

    def dropping_difference(self, forward: Callable[..., Scores]) -> float:
        """Relative difference between rows without hidden tokens and rows that only hide them.

        On rows up to the longest: with a window of attention, it shows in long rows only.
        """
        encoder, random = self.encoder, np.random.default_rng(0)
        frame = encoder.lay_out([(encoder.mask_id,)], np.zeros((1, 1), dtype=np.int32))
        first, after = frame.first_body_place, int(frame.lengths[0]) - frame.first_body_place - 1
        references, others = [], []
        for length in (24, 96, encoder.longest):
            size = min(length, encoder.longest)
            body = random.choice(self._ordinary, size - first - after)
            ids = np.concatenate([frame.ids[0, :first], body, frame.ids[0, first + 1 :]])
            shown = random.random(size) < 0.15
            shown[: first + 1] = True
            shown[size - after :] = True
            hidden = _one_row(ids, np.arange(size), shown[None].astype(np.int64))
            dropped = _one_row(ids[shown], np.flatnonzero(shown), None)
            references += [forward(hidden, positions=False)] * 2
            others += [forward(hidden, positions=True), forward(dropped, positions=True)]
        return relative_difference(np.concatenate(others), np.concatenate(references))


def relative_difference(found: Scores, expected: Scores) -> float:
    """The largest difference, as a share of the largest expected logit."""
    if found.shape != expected.shape:
        return math.inf
    return float(np.abs(found - expected).max()) / max(float(np.abs(expected).max()), 1e-30)


def _all_alike(once: Scores, often: Scores) -> bool:
    """Whether rows that were computed several times have the same bits every time."""
    again = often.reshape(-1, *once.shape)
    return np.array_equal(np.broadcast_to(once, again.shape), again, equal_nan=True)


def _allowed(moved: float, epsilon: float, logits: Scores) -> float:
    """What a difference of two logits may move by, where a logit was seen to move by ``moved``."""
    step = epsilon * max(float(np.abs(logits).max()), _SMALLEST_SCALE)
    return 2.0 ** math.ceil(math.log2(2 * max(SAFETY_FACTOR * moved, step)))


def _one_row(ids: Ids, positions: Ids, visible: Ids | None) -> Batch:
    types = np.zeros_like(ids)
    return Batch(np.zeros(1, np.intp), ids[None], positions[None], types[None], visible)

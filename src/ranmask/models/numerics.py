"""What floating point does to a model: found out, because a proof needs one fixed function.

Libraries choose the order of a sum by the shape of a product.  So the logits of a copy may move in
their last bits with the batch that it is computed in, and sharp attention makes much of last bits:
how far they move on a few copies says little about others.  `steady_rows` looks for batches in
which rows get the same bits in any batch: rows of one length, in numbers that a library treats
alike.  That is a property of shapes, not of values, so a few rows of each shape decide it.

Where there is no such shape, `measure_tolerance` bounds the movement that is seen, with a safety
factor; votes closer than that count as uncertain, against the label.  That bound is an assumption,
and results name it.  `measure_difference` bounds in the same way how far one model is from another,
computed with fewer bits.

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
from ranmask.models.encoding import Ids, TokenRows, WordEncoder
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
    """Rows of ordinary tokens, the same for every encoder of one vocabulary."""

    def __init__(self, encoder: WordEncoder) -> None:
        self._encoder = encoder
        special = set(encoder.tokenizer.all_special_ids)
        tokens = [token for token in range(len(encoder.tokenizer)) if token not in special]
        self._ordinary = np.array(tokens, dtype=np.int64)

    def tokens(self, count: int, random: np.random.Generator) -> Ids:
        """Tokens that are not special."""
        return random.choice(self._ordinary, size=count)

    def rows(self, seeds: Iterable[int] = (0,)) -> list[TokenRows]:
        """Rows of masked copies of texts of several lengths."""
        rows = []
        for seed in seeds:
            random = np.random.default_rng(seed)
            for words in (3, 10, 25, 50):
                count = min(words, self._encoder.most_words())
                pieces = self._words(count, random)
                sizes = sorted({1, min(2, count), kept_count(count, mask_rate=0.9)})
                sets = [sampled_sets(count, kept, 3, seed) for kept in sizes]
                rows += [self._encoder.lay_out(pieces, kept) for kept in sets]
        return rows

    def all_kinds(self) -> list[TokenRows]:
        """Masked copies, whole texts, as plain classifiers and synonyms show them, and pairs."""
        random = np.random.default_rng(1)
        return [*self.rows(), *(self._whole(words, random) for words in (10, 50)), *self._pairs()]

    def many_lengths(self) -> list[TokenRows]:
        """A few rows of every small length, and of some larger ones; and pairs."""
        random = np.random.default_rng(5)
        lengths = np.repeat((*range(1, 17), 19, 24, 29, 37, 50), _ROWS_OF_A_LENGTH)
        return [*(self._whole(words, random) for words in lengths.tolist()), *self._pairs()]

    def longest(self) -> TokenRows:
        """The longest row that the model takes."""
        return self._whole(self._encoder.most_words(), np.random.default_rng(0))

    def copies(self, seed: int = 3) -> MaskedCopies:
        """Copies of a text whose words have one token or more."""
        count = min(12, self._encoder.most_words())
        words = tuple(map(self._spelt, self._words(count, np.random.default_rng(seed))))
        return MaskedCopies(Document(words), count, sampled_sets(count, min(3, count), 256, seed))

    def _whole(self, words: int, random: np.random.Generator) -> TokenRows:
        count = min(words, self._encoder.most_words())
        tokens = [(token,) for token in self.tokens(count, random).tolist()]
        return self._encoder.lay_out(tokens, np.arange(count, dtype=np.int32)[None])

    def _pairs(self) -> Iterator[TokenRows]:
        """Whole pairs, where the model takes any."""
        random = np.random.default_rng(2)
        for words in (5, 20):
            # Pieces of words, most of them: what matters is that the rows are long and filled.
            shown = [self._spelt([token]) for token in self.tokens(2 * words, random).tolist()]
            pair = Document(tuple(shown[:words]), " ".join(shown[words:]))
            try:
                read = self._encoder.words_read(pair)
            except ModelError:
                return  # no pair fits, or the tokenizer knows none
            yield self._encoder.rows(whole_copy(pair, read))

    def _words(self, count: int, random: np.random.Generator) -> list[tuple[int, ...]]:
        """Words of one token and of two, by turns."""
        tokens = self.tokens(2 * count, random).tolist()
        return [tuple(tokens[2 * i : 2 * i + 1 + i % 2]) for i in range(count)]

    def _spelt(self, tokens: Sequence[int]) -> str:
        """A word that has about these tokens."""
        return str(self._encoder.tokenizer.decode(list(tokens))).strip().replace(" ", "") or "a"


def steady_rows(
    score_rows: Callable[[list[TokenRows], int, RowCount], Scores],
    encoder: WordEncoder,
    batch_tokens: int,
    counts: Sequence[RowCount],
) -> RowCount | None:
    """The first of ``counts`` in which a row has the same bits whatever is computed beside it.

    None where there is none.  ``score_rows`` takes rows, the most tokens of a batch, and a count.
    Rows of many lengths are computed with as few others as possible, and at places all over full
    batches.
    """
    rows = Probes(encoder).many_lengths()
    for count in counts:
        times = max(_times(rows, batch_tokens), 2 * (count.most or 0) // _ROWS_OF_A_LENGTH + 1)
        alone = score_rows(rows, 1, count)
        if _all_alike(alone, score_rows(rows * times, batch_tokens, count)):
            return count
    return None


def same_everywhere(
    score_rows: _RowScorer,
    score_copies: _CopyScorer,
    encoder: WordEncoder,
    batch_tokens: int,
) -> bool:
    """Whether rows and copies have the same bits in any batch, where batches have no shape.

    Many rows, because rounding to a smaller dtype hides most of what there is to see.
    """
    probes = Probes(encoder)
    rows = [*probes.many_lengths(), *probes.rows(_OTHER_SEEDS[:16])]
    first = score_rows(rows)
    crowd = score_rows(rows * _times(rows, batch_tokens))
    if not _all_alike(first, crowd) or not _all_alike(first, score_rows(rows, tokens=200)):
        return False
    alone, *others = _copies_in_ways(score_rows, score_copies, encoder)
    return all(_all_alike(alone, other) for other in others)


def _times(rows: Sequence[TokenRows], tokens: int) -> int:
    """How often rows are repeated to fill a batch, and to stand at its beginning and its end."""
    return 2 + tokens // sum(int(text.lengths.sum()) for text in rows)


def _all_alike(once: Scores, often: Scores) -> bool:
    """Whether rows that were computed several times have the same bits every time."""
    again = often.reshape(-1, *once.shape)
    return np.array_equal(np.broadcast_to(once, again.shape), again, equal_nan=True)


def measure_tolerance(
    score_rows: _RowScorer,
    encoder: WordEncoder,
    epsilon: float,
    batch_tokens: int,
    score_copies: _CopyScorer | None = None,
) -> float:
    """How far the difference of two logits of one copy may move between computations.

    Random copies of several lengths, whole texts and pairs are computed one by one, in small
    batches, in ordinary ones, and in batches as full as they get.  A difference moves by at most
    twice what a logit does.  Never below the rounding step ``epsilon`` of the model's numbers, and
    rounded up to a power of two, so that small chance variations between runs do not show.

    ``score_copies`` is another way from copies to logits, where there is one.  Copies of a text are
    computed by it, too: by themselves, beside others, and as rows.
    """
    ways = _in_many_ways(score_rows, encoder, batch_tokens)
    moved = float(np.ptp(ways, axis=0).max())
    if score_copies is not None:
        copies = _copies_in_ways(score_rows, score_copies, encoder)
        moved = max(moved, float(np.ptp(copies, axis=0).max()))
    return _allowed(moved, epsilon, ways[0])


def measure_difference(
    fast_rows: _RowScorer,
    exact_rows: _RowScorer,
    encoder: WordEncoder,
    epsilon: float,
    batch_tokens: int,
) -> float:
    """How far the difference of two logits of one copy may lie from one model to another.

    The rows of `measure_tolerance`, every way of one model compared with every way of the other;
    and many more rows in ordinary batches, because how far the models are apart depends on the
    words, and on a few is several times what it is on most.

    ``fast_rows`` may return rows that are not finite.  They say nothing of the others and are left
    out; a model that overflows on more than half of the rows is refused.  ``epsilon`` is the
    rounding step of the fast model's numbers.
    """
    others = Probes(encoder).rows(_OTHER_SEEDS)

    def in_many_ways(score_rows: _RowScorer) -> Scores:
        ways = _in_many_ways(score_rows, encoder, batch_tokens)
        more = np.repeat(score_rows(others)[None], len(ways), axis=0)
        return np.concatenate([ways, more], axis=1)

    fast, exact = in_many_ways(fast_rows), in_many_ways(exact_rows)
    finite = np.flatnonzero(np.isfinite(fast).all(axis=(0, 2)))
    rows = fast.shape[1]
    if 2 * len(finite) < rows:
        raise ModelError(
            f"{rows - len(finite)} of {rows} random copies overflow in half precision, too many "
            "for it to be of use with this model: use dtype='float32'"
        )
    fast, exact = fast[:, finite], exact[:, finite]
    above = float((fast.max(axis=0) - exact.min(axis=0)).max())
    below = float((exact.max(axis=0) - fast.min(axis=0)).max())
    return _allowed(max(above, below), epsilon, exact)


def _in_many_ways(score_rows: _RowScorer, encoder: WordEncoder, batch_tokens: int) -> Scores:
    """Logits of the same rows in ordinary batches and in other batches, a table a way."""
    rows = Probes(encoder).all_kinds()
    ways = [
        score_rows(rows),
        score_rows(rows, tokens=1),
        score_rows(rows, tokens=200),
        score_rows(rows * _times(rows, batch_tokens)),
    ]
    return np.stack([logits[-len(ways[0]) :] for logits in ways])


def _copies_in_ways(
    score_rows: _RowScorer, score_copies: _CopyScorer, encoder: WordEncoder
) -> list[Scores]:
    """Logits of the same copies: as rows, by themselves, and beside others."""
    text, other = map(Probes(encoder).copies, (3, 4))
    return [
        score_rows([encoder.rows(text)]),
        score_copies([text]),
        score_copies([*[other] * 15, text])[-len(text) :],
    ]


def _allowed(moved: float, epsilon: float, logits: Scores) -> float:
    """What a difference of two logits may move by, where a logit was seen to move by ``moved``."""
    step = epsilon * max(float(np.abs(logits).max()), _SMALLEST_SCALE)
    return 2.0 ** math.ceil(math.log2(2 * max(SAFETY_FACTOR * moved, step)))


def padded_logits(
    forward: Callable[[Batch], Scores], rows: list[TokenRows], encoder: WordEncoder
) -> Scores:
    """Logits of rows, computed in one padded batch."""
    [batch] = batches(rows, tokens=_NO_LIMIT, least_rows=_NO_LIMIT, pad_id=encoder.pad_id)
    return forward(batch)[np.argsort(batch.places)]


def relative_difference(found: Scores, expected: Scores) -> float:
    """The largest difference, as a share of the largest expected logit."""
    if found.shape != expected.shape:
        return math.inf
    return float(np.abs(found - expected).max()) / max(float(np.abs(expected).max()), 1e-30)


def dropping_difference(forward: Callable[..., Scores], encoder: WordEncoder) -> float:
    """Relative difference between rows without hidden tokens and rows that only hide them.

    On rows up to the longest: with a window of attention, it shows in long rows only.
    """
    random = np.random.default_rng(0)
    probes = Probes(encoder)
    frame = encoder.lay_out([(encoder.mask_id,)], np.zeros((1, 1), dtype=np.int32))
    first, after = frame.first_body_place, int(frame.lengths[0]) - frame.first_body_place - 1
    references, others = [], []
    for length in (24, 96, encoder.longest):
        size = min(length, encoder.longest)
        body = probes.tokens(size - first - after, random)
        ids = np.concatenate([frame.ids[0, :first], body, frame.ids[0, first + 1 :]])
        shown = random.random(size) < 0.15
        shown[: first + 1] = True
        shown[size - after :] = True
        hidden = _one_row(ids, np.arange(size), shown[None].astype(np.int64))
        dropped = _one_row(ids[shown], np.flatnonzero(shown), None)
        references += [forward(hidden, positions=False)] * 2
        others += [forward(hidden, positions=True), forward(dropped, positions=True)]
    return relative_difference(np.concatenate(others), np.concatenate(references))


def _one_row(ids: Ids, positions: Ids, visible: Ids | None) -> Batch:
    types = np.zeros_like(ids)
    return Batch(np.zeros(1, np.intp), ids[None], positions[None], types[None], visible)

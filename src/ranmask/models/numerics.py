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
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from ranmask.errors import ModelError
from ranmask.models.base import MaskedCopies, Scores
from ranmask.models.batching import Batch, RowCount, batches
from ranmask.models.encoding import Ids, TokenRows, WordEncoder
from ranmask.models.probes import ROWS_OF_A_LENGTH, Probes

SAFETY_FACTOR = 8
"""How many times the largest movement that was seen is allowed for."""

SAME_LIMIT = 1e-4
"""Largest relative difference between two ways to compute one thing that is rounding."""

_NO_LIMIT = 1 << 30
_OTHER_SEEDS = range(3, 67)  # some 2,000 rows
_SMALLEST_SCALE = 1e-3  # for a model whose logits are all zero

_CopyScorer: TypeAlias = Callable[[list[MaskedCopies]], Scores]


class _RowScorer(Protocol):
    def __call__(self, rows: list[TokenRows], *, tokens: int | None = None) -> Scores: ...


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
        times = max(_times(rows, batch_tokens), 2 * (count.most or 0) // ROWS_OF_A_LENGTH + 1)
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

"""The table of a detector, learned from labelled texts: numpy alone.

The loss is that of logistic regression on what a detector compares with its threshold.

``anywhere`` (`WordDetector`): the sum, over distinct words, of weights that are cut off at 0; a
word that was never seen weighs nothing, but for what its letters say.
``ends`` (`SegmentDetector`): the largest sum of neighbouring values, each bounded by a limit; in
the first epochs that of the whole text, for the largest segment begins as any.  Of a harmless text
every segment is pushed below the threshold, for its largest one is.  Some segment will fit any
training text, so words are dropped at random, and harmless texts, of which few may be flagged,
count more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranmask.errors import DataError
from ranmask.models.word_features import WHOLE
from ranmask.models.word_table import CURVE_END, CURVE_STEPS, ONE, WordTable
from ranmask.training.class_weights import class_weights
from ranmask.training.detector_options import DetectorTraining
from ranmask.training.table_learning import Adam, Progress, check_weights
from ranmask.training.table_loss import Floats, Ints, sigmoid, softplus
from ranmask.training.table_texts import Batch, TableTexts

_PLACES = 11  # binary places of an entry
_WARM_EPOCHS = 2
_FIRST_THRESHOLD = 2.0
_DROPPED = 0.3  # share of words, where segments are learned
_HARMLESS = 3.0  # what a harmless text counts there, of one that is to be flagged


class Parameters(NamedTuple):
    """What is learned, or its gradient."""

    features: Floats  # (buckets,)
    bias: Floats  # (1,)
    threshold: Floats  # (1,)


def train_detector_table(
    texts: Sequence[str],
    flagged: Sequence[bool],
    labels: tuple[str, str],
    *,
    options: DetectorTraining | None = None,
    progress: Progress | None = None,
) -> WordTable:
    """A table for a detector of the texts that are to be ``flagged``.

    ``labels``: a name for the others, and one for these.  The same texts and options give the same
    table, byte for byte, on one machine.
    """
    options = options or DetectorTraining()
    sides = [int(flag) for flag in flagged]
    if len(set(sides)) < 2:
        raise DataError(
            f"a detector needs texts of both sides; of {len(sides)} texts {sum(sides)} are "
            f"{labels[1]!r}"
        )
    corpus = TableTexts(texts, sides, 2, buckets=options.buckets, most_words=options.most_words)
    if options.additions == "anywhere":
        corpus.count_words_once()
    return _table(_learned(corpus, options, progress), labels, options)


def _learned(texts: TableTexts, options: DetectorTraining, progress: Progress | None) -> Parameters:
    rng = np.random.default_rng(options.seed)
    learned = Parameters(
        np.zeros(options.buckets, dtype=np.float32),
        np.zeros(1, dtype=np.float32),
        np.full(1, _FIRST_THRESHOLD, dtype=np.float32),
    )
    learners = [Adam(one) for one in learned]
    ends = options.additions == "ends"
    balanced = class_weights(texts.labels, 2, options.class_weights)
    counts = np.ones(2, dtype=np.float32) if balanced is None else balanced
    if ends:
        counts = counts * np.array([_HARMLESS, 1], dtype=np.float32)
    steps = options.epochs * -(-len(texts) // options.batch_size)
    done = 0
    for epoch in range(options.epochs):
        order = rng.permutation(len(texts))
        losses = []
        for start in range(0, len(order), options.batch_size):
            batch = texts.batch(order[start : start + options.batch_size])
            warm = epoch < min(_WARM_EPOCHS, options.epochs - 1)
            kept: Floats | float = 1.0
            if ends:
                left = rng.random(len(batch.words)) >= _DROPPED
                kept = left.astype(np.float32) / (1 - _DROPPED)
            loss, gradient = loss_and_gradient(
                learned, batch, options, counts[batch.labels], warm, kept
            )
            gradient.features[:] += 2 * options.weight_decay * learned.features
            if not ends:
                gradient.bias[:] = 0  # of a word that was never seen nothing is known
            rate = options.learning_rate * (1 + math.cos(math.pi * done / steps)) / 2
            for learner, one in zip(learners, gradient, strict=True):
                learner.step(one, rate)
            losses.append(loss)
            done += 1
        if progress is not None:
            progress(epoch + 1, options.epochs, float(np.mean(losses)))
        check_weights(learned, epoch, options.epochs, options.learning_rate)
    return learned


def loss_and_gradient(
    learned: Parameters,
    batch: Batch,
    options: DetectorTraining,
    counts: Floats | float = 1.0,
    warm: bool = False,
    kept: Floats | float = 1.0,
) -> tuple[float, Parameters]:
    """The mean loss of some texts, and its gradient; what each text and each word of them counts.

    ``kept`` is 0 for a word that is dropped.
    """
    additions, limit = options.additions, options.limit
    starts = np.cumsum(batch.counts) - batch.counts
    parts = learned.features[batch.buckets] * batch.weights
    sums = np.add.reduceat(parts, starts) + learned.bias
    if additions == "anywhere":
        values, slopes = np.maximum(sums, 0), (sums >= 0).astype(sums.dtype)
    else:
        bent = np.tanh(sums / (2 * limit))
        values, slopes = limit * bent, (1 - bent * bent) / 2
    shown = values[batch.words] * kept
    counted: Floats = np.broadcast_to(np.asarray(batch.shares, sums.dtype), shown.shape)
    if additions == "ends" and not warm:
        counted = in_largest_segments(shown, batch.lengths).astype(sums.dtype)
    text_starts = np.cumsum(batch.lengths) - batch.lengths
    lead = np.add.reduceat(shown * counted, text_starts) - learned.threshold
    sign = np.where(batch.labels == 1, 1, -1).astype(sums.dtype)
    losses = softplus(-sign * lead) * counts
    by_lead = -sign * sigmoid(-sign * lead) * counts / len(lead)
    by_shown = np.repeat(by_lead, batch.lengths) * counted * kept
    by_values = np.bincount(batch.words, by_shown, minlength=len(values))
    by_sums = (by_values * slopes).astype(sums.dtype)
    by_parts = np.repeat(by_sums, batch.counts) * batch.weights
    by_features = np.bincount(batch.buckets, by_parts, minlength=len(learned.features))
    gradient = Parameters(
        by_features.astype(np.float32), by_sums.sum(keepdims=True), -by_lead.sum(keepdims=True)
    )
    return float(losses.mean()), gradient


def in_largest_segments(values: Floats, lengths: Ints) -> npt.NDArray[np.bool_]:
    """Which words, of texts one after another, are in their text's segment of the largest sum."""
    texts, longest = len(lengths), int(lengths.max())
    places = np.arange(len(values)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = np.repeat(np.arange(texts), lengths)
    sums = np.zeros((texts, longest + 1))
    sums[rows, places + 1] = values
    np.cumsum(sums, axis=1, out=sums)
    lowest = np.minimum.accumulate(sums, axis=1)
    gains = sums - lowest
    gains[np.arange(longest + 1) > lengths[:, None]] = -1  # behind the last word
    stops = gains.argmax(axis=1)
    at_lowest = np.where(sums == lowest, np.arange(longest + 1), 0)
    first = np.maximum.accumulate(at_lowest, axis=1)[np.arange(texts), stops]
    chosen: npt.NDArray[np.bool_] = (places >= first[rows]) & (places < stops[rows])
    return chosen


def _table(learned: Parameters, labels: tuple[str, str], options: DetectorTraining) -> WordTable:
    """What was learned, in integers; the table's own curve makes the scores of sums."""
    anywhere = options.additions == "anywhere"
    sides = np.array([0, 1] if anywhere else [-1, 1])
    scale = 2.0**_PLACES / (1 if anywhere else options.limit)
    most = np.iinfo(np.int16).max
    entries = np.clip(np.rint(learned.features * scale), -most, most).astype(np.int16)
    bias = np.rint(learned.bias.astype(np.float64) * scale * WHOLE).astype(np.int64)
    # Entries count 2**-places and weights 1 / WHOLE; so many sums make one step of the curve.
    shift = (2**_PLACES * WHOLE // CURVE_STEPS).bit_length() - 1
    return WordTable(
        (entries[:, None] * sides).astype(np.int16),
        bias * sides,
        labels=labels,
        shift=shift,
        # Of a sigmoid, what speaks for a class less what speaks against it is tanh(sum / 2).
        curve=_cut_off() if anywhere else None,
    )


def _cut_off() -> npt.NDArray[np.int32]:
    """0 up to a sum of 0; from there a straight line."""
    steps = CURVE_END * CURVE_STEPS
    line = np.arange(1, steps + 1) * (ONE // steps)
    return np.concatenate([np.zeros(steps + 1), line]).astype(np.int32)

"""What a word table learns, by steps against the gradient of its loss: numpy alone.

The gradient is written out, from the loss back to the features.  ``by_x`` is the gradient by ``x``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from ranmask.errors import OptionError
from ranmask.training.class_weights import class_weights
from ranmask.training.options import MARGIN_WIDTH
from ranmask.training.table_loss import (
    JOINS,
    Floats,
    Ints,
    ahead,
    ahead_pullback,
    certified_loss,
    costs_of,
    label_first,
    logistic_loss,
    margin_loss,
    margins,
    sigmoid,
    whole_text,
)
from ranmask.training.table_options import TableThreat, WordTableOptions
from ranmask.training.table_texts import Batch, TableTexts

_Value = TypeVar("_Value", int, float)

Progress: TypeAlias = Callable[[int, int, float], None]
"""Called after every epoch: epochs done, epochs in all, mean loss of the last."""

_BLANK_RATE = 5  # times the learning rate of the others: one number against many
_MEAN, _SQUARE, _LEAST = 0.9, 0.999, 1e-8  # of Adam: two decays, and against division by 0
_LARGEST_WEIGHT = 2.0**20  # far above what is learned; a `WordTable` can hold twice as much


class Weights(NamedTuple):
    """What is learned, or its gradient.  ``blank`` is None where there is none."""

    features: Floats  # (classes, buckets)
    bias: Floats  # (classes,)
    blank: Floats | None  # (classes,)


class Objective(NamedTuple):
    """What is minimised for some texts: how, what each counts, and what the whole says of them."""

    options: WordTableOptions
    warm: bool
    counts: Floats | float
    whole: Floats | None  # (classes, texts)

    @property
    def threats(self) -> tuple[TableThreat, ...]:
        """What is trained for; while warm, the margin does for all."""
        return self.options.all_threats[:1] if self.warm else self.options.all_threats

    def margins(
        self,
        threat: TableThreat,
        differences: Floats,
        least: Floats | float,
        batch: Batch,
        order: Ints,
        blank: Floats | None,
    ) -> tuple[Floats, Callable[[Floats], tuple[Floats, Floats | None]]]:
        """What is left of the leads: those of mean scores, while warm; then of all that votes."""
        lengths, shares = batch.lengths, batch.shares
        if self.warm:
            return margins(differences, lengths, np.repeat(1 / lengths, lengths))
        joins = self.options.lexicon == "closed" and threat == "characters"
        most = self.options.target_of(threat)
        cost = costs_of(JOINS if joins else threat, lengths, shares, most)
        left, pullback = margins(differences, lengths, shares, cost, least)
        if blank is not None:
            left += ahead(sigmoid(blank)[order])
        if self.whole is not None:
            said = np.take_along_axis(self.whole, order, axis=0)
            left += whole_text(said, self.options.whole_weight, len(left) - 1)
        return left, pullback

    def losses(self, threat: TableThreat, left: Floats) -> tuple[Floats, Floats]:
        """Of each text, and their gradient by what is left."""
        options = self.options
        if self.warm:
            return margin_loss(left, options.margin, MARGIN_WIDTH)
        width, accuracy = resolved(options.temperature), resolved(options.accuracy_weight)
        if options.target_of(threat) is not None:
            return certified_loss(left, width, accuracy)
        losses, by_left = logistic_loss(left, width, accuracy)
        weight = options.synonym_weight if options.threats else 1.0
        return weight * losses, weight * by_left


def resolved(value: _Value | None) -> _Value:
    """A resolved option, which is never None."""
    assert value is not None
    return value


def learned(
    texts: TableTexts,
    classes: int,
    options: WordTableOptions,
    *,
    whole: Floats | None = None,
    progress: Progress | None = None,
) -> Weights:
    """The weights of a table; ``options`` are resolved, ``whole`` is (classes, texts)."""
    rng = np.random.default_rng(options.seed)
    weights = Weights(
        np.zeros((classes, options.buckets), dtype=np.float32),
        np.zeros(classes, dtype=np.float32),
        np.zeros(classes, dtype=np.float32) if options.family == "distinct" else None,
    )
    epochs, size = resolved(options.epochs), resolved(options.batch_size)
    decay, dropped = resolved(options.weight_decay), resolved(options.feature_dropout)
    learners = [Adam(one) for one in weights if one is not None]
    # Of a closed lexicon, an unknown synonym says nothing: no bias that it would share.
    shared = options.lexicon == "open" or options.synonyms is None
    rates = _rates(resolved(options.learning_rate), epochs * -(-len(texts) // size), shared)
    of_classes = class_weights(texts.labels, classes, options.class_weights)
    for epoch in range(epochs):
        order = rng.permutation(len(texts))
        losses = []
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            batch = texts.batch(rows)
            kept = rng.random(options.buckets, dtype=np.float32) >= dropped
            objective = Objective(
                options,
                warm=epoch < resolved(options.warm_epochs),
                counts=1.0 if of_classes is None else of_classes[batch.labels],
                whole=None if whole is None else whole[:, rows],
            )
            heard = kept.astype(np.float32) / np.float32(1 - dropped)
            loss, gradient = loss_and_gradient(weights, batch, objective, heard)
            if decay:
                loss += decay * float(np.square(weights.features).sum())
                gradient.features[:] += 2 * decay * weights.features
            for learner, one, rate in zip(learners, gradient, next(rates), strict=False):
                if one is not None:
                    learner.step(one, rate)
            losses.append(loss)
        if progress is not None:
            progress(epoch + 1, epochs, float(np.mean(losses)))
        check_weights(weights, epoch, epochs, resolved(options.learning_rate))
    return weights


def check_weights(
    weights: Iterable[Floats | None], epoch: int, epochs: int, learning_rate: float
) -> None:
    """Raise where a weight is no number, or too large for a table: training has diverged."""
    largest = float(np.max([np.abs(one).max() for one in weights if one is not None]))
    if not largest < _LARGEST_WEIGHT:
        raise OptionError(
            f"a weight has become {largest:g} in epoch {epoch + 1} of {epochs}: training diverged "
            f"with learning_rate={learning_rate:g}. Lower the learning rate"
        )


def _rates(largest: float, steps: int, bias: bool) -> Iterator[tuple[float, float, float]]:
    """The rates of each of `Weights` in each step: half a cosine, down to 0."""
    for step in range(steps):
        rate = largest * (1 + math.cos(math.pi * step / steps)) / 2
        yield rate, rate * bias, _BLANK_RATE * rate


def loss_and_gradient(
    weights: Weights, batch: Batch, objective: Objective, heard: Floats
) -> tuple[float, Weights]:
    """The mean loss of some texts; ``heard``: what features are multiplied by, 0 if dropped."""
    counted = batch.weights * heard[batch.buckets]
    starts = np.cumsum(batch.counts) - batch.counts
    parts = np.take(weights.features, batch.buckets, axis=1) * counted
    scores = sigmoid(np.add.reduceat(parts, starts, axis=1) + weights.bias[:, None])
    loss, by_scores, by_blank = _loss(scores, weights.blank, batch, objective)
    by_sums = by_scores * scores * (1 - scores)
    by_parts = np.repeat(by_sums, batch.counts, axis=1) * counted
    by_features = np.empty_like(weights.features)
    for one, by in zip(by_features, by_parts, strict=True):
        one[:] = _scattered(by, batch.buckets, len(one))
    return loss, Weights(by_features, by_sums.sum(axis=1), by_blank)


def _loss(
    scores: Floats, blank: Floats | None, batch: Batch, objective: Objective
) -> tuple[float, Floats, Floats | None]:
    """The loss from the scores of distinct words, (classes, words), and its gradients."""
    order = label_first(batch.labels, len(scores))
    classes = np.repeat(order, batch.lengths, axis=1)
    places = classes * scores.shape[1] + batch.words
    worst = None if batch.others is None or objective.warm else _worst(scores, batch, classes)
    least = -1.0 if worst is None else np.subtract(*np.take(scores, worst))
    differences, loss = ahead(np.take(scores, places)), 0.0
    by_scores = np.zeros(scores.size)
    by_blank = None if blank is None or objective.warm else np.zeros(len(blank))
    for threat in objective.threats:
        left, pullback = objective.margins(threat, differences, least, batch, order, blank)
        losses, by_left = objective.losses(threat, left)
        # Counts have a mean of 1 over all texts, not in each batch: divided by a batch's own sum,
        # a text would count by who else happens to be there.
        counts = objective.counts / len(objective.threats)
        by_left *= counts / len(losses)
        by_differences, by_least = pullback(by_left)
        by_scores += _scattered(ahead_pullback(by_differences), places, scores.size)
        if worst is not None and threat == "synonyms" and by_least is not None:
            by_scores += _scattered(np.stack([by_least, -by_least]), worst, scores.size)
        if blank is not None and by_blank is not None:
            says = sigmoid(blank)
            by_says = _scattered(ahead_pullback(by_left.sum(axis=0)), order, len(blank))
            by_blank += by_says * says * (1 - says)
        loss += float((losses * counts).mean())
    return loss, by_scores.reshape(scores.shape), by_blank


def _worst(scores: Floats, batch: Batch, classes: Ints) -> Ints:
    """Where the worst word that may take a word's place has its scores, for label and rival.

    ``classes`` of each word's text, its label first.  Returns (2, rivals, words).
    """
    others = batch.others
    assert others is not None
    found = np.empty((len(scores), len(scores) - 1, len(others)), dtype=np.int64)
    for label in range(len(scores)):
        apart = ahead(np.roll(scores, -label, axis=0))
        at = apart[:, others].argmin(axis=2)
        found[label] = others[np.arange(len(others)), at]
    numbers = found[classes[0], :, batch.words].T
    labels = np.broadcast_to(classes[:1], numbers.shape)
    places: Ints = np.stack([labels, classes[1:]]) * scores.shape[1] + numbers
    return places


def _scattered(values: Floats, places: Ints, size: int) -> Floats:
    """The sum of the values at each place: the pullback of taking them from there."""
    sums = np.bincount(places.ravel(), weights=values.ravel(), minlength=size)
    return sums.astype(np.float64, copy=False)


class Adam:
    """Adam (Kingma and Ba, 2015) for one ``parameter``, which is changed in place."""

    def __init__(self, parameter: Floats) -> None:
        self._parameter = parameter
        self._mean = np.zeros_like(parameter)
        self._square = np.zeros_like(parameter)
        self._steps = 0

    def step(self, gradient: Floats, rate: float) -> None:
        """One step against the gradient."""
        self._steps += 1
        self._mean *= _MEAN
        self._mean += (1 - _MEAN) * gradient
        self._square *= _SQUARE
        self._square += (1 - _SQUARE) * np.square(gradient)
        move = np.sqrt(self._square)
        move /= math.sqrt(1 - _SQUARE**self._steps)
        move += _LEAST
        np.divide(self._mean, move, out=move)
        move *= rate / (1 - _MEAN**self._steps)
        self._parameter -= move

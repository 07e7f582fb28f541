"""What the training of a word table minimises, and its gradient: numpy alone.

Each word of a text says something for the label and for each of its *rivals*:

    differences   what a word says for the label minus for the rival    (rivals, words)
    least         the same of the worst that may be put in its place    (rivals, words), or -1
    leads         sums of the differences over the words of a text      (rivals, texts)
    costs         what 0 to D changes take from a lead at most          (D + 1, rivals, texts)
    left          leads - costs: proved where all rivals have some left (D + 1, rivals, texts)

A *threat* is what one change may do (`certificates.threats`).

The words of all texts stand in one row, text after text; ``lengths`` says how many are whose.  What
is computed comes with its *pullback*: from the gradient by what came out, that by what went in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.threats import step_costs

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Ints: TypeAlias = npt.NDArray[np.int64]
Pullback: TypeAlias = Callable[[Floats], Floats]
Cost: TypeAlias = Callable[[Floats, Floats | float], tuple[Floats, Pullback]]
"""Costs from differences and what is least: all that the loss knows of what an attacker may do.
The pullback is by the differences; that by what is least is its negative."""


JOINS = "joins"
"""What `certificates.characters` comes to, but for the few new words that are known."""


def sigmoid(logits: Floats) -> Floats:
    """1 / (1 + exp(-logits)), exact at both ends."""
    small = np.exp(-np.abs(logits))
    value: Floats = np.where(logits < 0, small, np.ones((), small.dtype)) / (1 + small)
    return value


def softplus(logits: Floats) -> Floats:
    """log(1 + exp(logits)), whose slope is `sigmoid`."""
    return np.logaddexp(np.zeros((), logits.dtype), logits)


def label_first(labels: Ints, classes: int) -> Ints:
    """The classes as each text sees them, its label and then the rivals: (classes, texts)."""
    order: Ints = (labels + np.arange(classes)[:, None]) % classes
    return order


def ahead(said: Floats) -> Floats:
    """How far the first row, the label's, is ahead of each of the others."""
    leads: Floats = said[0] - said[1:]
    return leads


def ahead_pullback(by: Floats) -> Floats:
    """The pullback of `ahead`."""
    return np.concatenate([by.sum(axis=0, keepdims=True), -by])


def margins(
    differences: Floats,
    lengths: Ints,
    shares: Floats | float,
    cost: Cost | None = None,
    least: Floats | float = -1.0,
) -> tuple[Floats, Callable[[Floats], tuple[Floats, Floats | None]]]:
    """What is left of the leads; without a ``cost``, the leads alone.

    ``shares``: how much of a word each one is.  Where a word counts once, its occurrences share
    what it says.  The pullback is by the differences, and by what is least.
    """
    leads = np.add.reduceat(differences * shares, np.cumsum(lengths) - lengths, axis=1)
    if cost is None:
        return leads[None], lambda by: (np.repeat(by[0], lengths, axis=1) * shares, None)
    costs, cost_pullback = cost(differences, least)

    def pullback(by: Floats) -> tuple[Floats, Floats | None]:
        by_costs = cost_pullback(by)
        return np.repeat(by.sum(axis=0), lengths, axis=1) * shares - by_costs, by_costs

    return leads - costs, pullback


def costs_of(threat: str, lengths: Ints, shares: Floats | float, most: int | None) -> Cost:
    """What up to ``most`` changes cost (`step_costs`); None: none, and every word at once.

    Of words that count once, that is the knapsack of `certificates.distinct`, its words cut up.
    `JOINS`: of changed characters, where new words say nothing, the worst join two words.
    """

    def cost(differences: Floats, least: Floats | float) -> tuple[Floats, Pullback]:
        said = differences * shares
        if threat == JOINS:
            assert most is not None
            sums, pullback = largest_sums(said.clip(0), lengths, 2 * most)
            return sums[::2], lambda by: pullback(_every_other(by)) * shares * (said > 0)
        of_words = step_costs(threat, said, 1.0, least)
        slope = shares
        if threat not in ("substitutions", "synonyms"):
            slope = shares * ((said > 0) & (threat != "insertions"))
        if most is None:
            sums, pullback = all_sums(of_words, lengths)
        else:
            sums, pullback = largest_sums(of_words, lengths, most)
        return sums, lambda by: pullback(by) * slope

    return cost


def _every_other(by: Floats) -> Floats:
    found = np.zeros((2 * len(by) - 1, *by.shape[1:]), dtype=by.dtype)
    found[::2] = by
    return found


def all_sums(values: Floats, lengths: Ints) -> tuple[Floats, Pullback]:
    """Nothing, and the sum of all values of each text."""
    sums = np.add.reduceat(values, np.cumsum(lengths) - lengths, axis=1)
    return np.stack([np.zeros_like(sums), sums]), lambda by: np.repeat(by[1], lengths, axis=1)


def largest_sums(values: Floats, lengths: Ints, most: int) -> tuple[Floats, Pullback]:
    """Sums of the 0 to ``most`` largest values of each text; no value is below 0."""
    shape = len(values), len(lengths), max(int(lengths.max()), most)
    offsets = np.arange(len(lengths)) * shape[2] - (np.cumsum(lengths) - lengths)
    places = np.repeat(offsets, lengths) + np.arange(values.shape[1])
    untaken = np.zeros((shape[0], shape[1] * shape[2]), dtype=values.dtype)
    untaken[:, places] = values
    untaken = untaken.reshape(shape)
    sums = np.zeros((most + 1, *shape[:2]), dtype=values.dtype)
    found = np.empty((*shape[:2], most), dtype=np.int64)
    for rank in range(most):  # for a few, much faster than to sort
        found[..., rank] = untaken.argmax(axis=2)
        at = found[..., rank : rank + 1]
        sums[rank + 1] = sums[rank] + np.take_along_axis(untaken, at, axis=2)[..., 0]
        np.put_along_axis(untaken, at, -1, axis=2)

    def pullback(by: Floats) -> Floats:
        # What was found k-th is in every sum of k or more.
        of_ranks = np.cumsum(by[:0:-1], axis=0)[::-1]
        padded = np.zeros(shape, dtype=by.dtype)
        np.put_along_axis(padded, found, np.moveaxis(of_ranks, 0, 2), axis=2)
        return padded.reshape(shape[0], -1)[:, places]

    return sums, pullback


def whole_text(said: Floats, weight: float, changes: int) -> Floats:
    """What a model that reads the whole text adds to what is left.

    Its copy weighs ``weight``, and ``said`` (classes, texts), `label_first`, is what it says of the
    text as it stands.  Whoever changes a word owns that copy: from one changed word on it says -1.
    """
    lead = ahead(said)
    return weight * np.stack([lead, *[np.full_like(lead, -1)] * changes])


def certified_loss(
    left: Floats, temperature: float, accuracy_weight: float = 0.0
) -> tuple[Floats, Floats]:
    """The share of the numbers of changed words at which a text is not proved, and its gradient.

    A text is proved where the rival with the least left has something left.  That is
    `losses.certified_loss`, which says what ``temperature`` and ``accuracy_weight`` are for.

    Returns:
        (texts,) and, by what was left, (D + 1, rivals, texts).
    """
    margin, nearest = _nearest(left)
    logits = -margin / temperature
    lost = sigmoid(logits)
    slopes = lost * sigmoid(-logits)
    if accuracy_weight:
        slopes[0] = accuracy_weight * lost[0]
        lost[0] = accuracy_weight * softplus(logits[0])
    return lost.mean(axis=0), nearest * (slopes / (-temperature * len(left)))[:, None]


def logistic_loss(
    left: Floats, temperature: float, accuracy_weight: float
) -> tuple[Floats, Floats]:
    """The logistic loss of what is left with everything changed, and its gradient.

    That with nothing changed counts ``accuracy_weight``.  It gives up on no text: where all words
    may change at once there are no further ones to give up for.
    """
    margin, nearest = _nearest(left)
    logits = -margin / temperature
    counts = np.array([accuracy_weight, 1.0], dtype=left.dtype)[:, None]
    losses = (counts * softplus(logits)).sum(axis=0)
    return losses, nearest * (counts * sigmoid(logits) / -temperature)[:, None]


def margin_loss(left: Floats, target: float, width: float) -> tuple[Floats, Floats]:
    """A soft hinge that pushes mean leads past ``target``, and its gradient, of the same shapes."""
    margin, nearest = _nearest(left)
    logits = (target - margin[0]) / width
    return width * softplus(logits), nearest * -sigmoid(logits)


def _nearest(left: Floats) -> tuple[Floats, Floats]:
    """The least that is left against any rival, and its gradient.

    Rivals that tie share the gradient: before anything is learned all of them do.
    """
    least = left.min(axis=1, keepdims=True)
    tied = (left == least).astype(left.dtype)
    return least[:, 0], tied / tied.sum(axis=1, keepdims=True)

"""Training a word table: `train_word_table`, seconds on two cores.

The loss is the certificate itself: with one word a copy, the cost of ``d`` changed words is a sum
of the ``d`` largest weights, which has a gradient (`certified_loss`).  Trained on that from
nothing, a table for two classes ends as the constant classifier, which certifies half of the
texts at any ``d``; so the first epochs push the mean margin past a target instead
(`margin_loss`), and the certificate is trained from there.

For no changed word (``target_words=0``) there is nothing to certify: the loss is that of logistic
regression, on sums of words that count once, with a blank for its intercept and a penalty on
large weights.  Adam moves a feature that it sees once in a while as far as one that it sees
always, so that without the penalty rare words learn their texts by heart.

What was learned is then rounded to the small integers of a `WordTable`.  Nothing is claimed for
the floats: figures are those of the rounded table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ranmask.errors import DataError, MissingDependencyError
from ranmask.models.word_features import WHOLE, features
from ranmask.models.word_table import CURVE_STEPS, WordTable
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.evaluating import certified_score, certified_summary
from ranmask.training.options import WordTableOptions
from ranmask.words import document

try:
    import torch
    from torch import Tensor

    from ranmask.training.losses import MARGIN_WIDTH, certified_loss, class_weights, margin_loss
except ImportError as error:
    raise MissingDependencyError("PyTorch", "train") from error

_Number = TypeVar("_Number", int, float)

Progress: TypeAlias = Callable[[int, int, float], None]
"""Called after every epoch: epochs done, epochs in all, mean loss of the last."""

_SMALL_STEPS = (3, 4, 5)  # binary places of int8 entries that are tried
_FINE_STEPS = 11  # of int16 entries
_BLANK_RATE = 5  # times the learning rate of the others
_ROUNDING_TEXTS = 2000
_ROUNDING_LOSS = 0.003  # certified accuracy that int8 may cost


def train_word_table(
    texts: Sequence[str],
    labels: Sequence[int],
    label_names: Sequence[str],
    *,
    options: WordTableOptions | None = None,
    progress: Progress | None = None,
) -> WordTable:
    """A word table that certifies as many of ``texts`` as it can.

    On one machine the same texts and options give the same table, byte for byte.  One thread
    computes it: steps are so short that a second would gain little, and lose much where other work
    shares the cores.

    Args:
        texts: Single texts; a word table reads no pairs.
        labels: The class of each, an index into ``label_names``.
        label_names: Names of the classes.
        options: How it is trained.
        progress: Called after every epoch.
    """
    given = options or WordTableOptions()
    corpus = _Corpus(texts, labels, len(label_names), given)
    options = given.resolved(texts)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        weights = _trained(corpus, len(label_names), options, progress)
    finally:
        torch.set_num_threads(threads)
    return _rounded(weights, texts, labels, label_names, options)


def table_smoothing(options: WordTableOptions) -> dict[str, Any]:
    """How a table that was trained with these options, `resolved`, is smoothed."""
    return {**WordTable.smoothing, "family": options.family}


class _Corpus:
    """Texts as numbers of their distinct words, and the features of those, all in flat arrays."""

    def __init__(
        self, texts: Sequence[str], labels: Sequence[int], classes: int, options: WordTableOptions
    ) -> None:
        if not len(texts) or len(texts) != len(labels):
            raise DataError(f"{len(texts)} texts and {len(labels)} labels cannot be trained on")
        numbers: dict[str, int] = {}
        flat: list[npt.NDArray[np.int32]] = []
        for row, (text, label) in enumerate(zip(texts, labels, strict=True), 1):
            if not isinstance(text, str):
                raise DataError(f"a word table reads single texts, not {type(text).__name__}", row)
            if not 0 <= label < classes:
                raise DataError(f"label {label!r} is none of the {classes} classes", row)
            words = document(text, row - 1).words[: options.most_words]
            flat.append(
                np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.int32)
            )
        self.labels = torch.tensor([int(label) for label in labels])
        self._lengths = np.array([len(one) for one in flat])
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)[:-1]])
        self._words = np.concatenate(flat)
        self._shares = np.concatenate([_shares(one) for one in flat])
        hashes, weights, starts = features(numbers)
        self._buckets = (hashes % options.buckets).astype(np.int32)
        self._weights = (weights / WHOLE).astype(np.float32)
        self._feature_starts = np.append(starts, len(hashes))
        self._place = np.zeros(len(numbers), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: npt.NDArray[np.int64]) -> _Batch:
        lengths = self._lengths[rows]
        at = _runs(self._starts[rows], lengths)
        words = self._words[at]
        seen = np.zeros(len(self._place), dtype=bool)
        seen[words] = True
        distinct = np.flatnonzero(seen)
        self._place[distinct] = np.arange(len(distinct))
        present = np.arange(lengths.max()) < lengths[:, None]
        places = np.zeros(present.shape, dtype=np.int64)
        places[present] = self._place[words]
        shares = np.zeros(present.shape, dtype=np.float32)
        shares[present] = self._shares[at]
        first = self._feature_starts[distinct]
        counts = self._feature_starts[distinct + 1] - first
        of_words = _runs(first, counts)
        return _Batch(
            torch.from_numpy(self._buckets[of_words]),
            torch.from_numpy(self._weights[of_words]),
            torch.from_numpy((np.cumsum(counts) - counts).astype(np.int32)),
            torch.from_numpy(places),
            torch.from_numpy(present),
            torch.from_numpy(shares),
            torch.from_numpy(lengths),
            self.labels[torch.from_numpy(rows)],
        )


def _shares(words: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """For each word of a text, one over the number of its occurrences."""
    _, place, counts = np.unique(words, return_inverse=True, return_counts=True)
    return (1 / counts[place]).astype(np.float32)


def _runs(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Indices of several runs of neighbours, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


@dataclass(frozen=True, eq=False)
class _Batch:
    """Some texts: features of their distinct words, and where in the texts those stand."""

    buckets: Tensor
    weights: Tensor
    starts: Tensor
    places: Tensor
    present: Tensor
    shares: Tensor
    lengths: Tensor
    labels: Tensor


@dataclass(frozen=True, eq=False)
class _Weights:
    """What is learned: of each feature, of every word, and of the blank, if there is one."""

    features: Tensor
    bias: Tensor
    blank: Tensor | None

    @classmethod
    def zero(cls, classes: int, options: WordTableOptions) -> _Weights:
        features = torch.zeros(options.buckets, classes, requires_grad=True)
        bias = torch.zeros(classes, requires_grad=True)
        once = options.family == "distinct"
        return cls(features, bias, torch.zeros(classes, requires_grad=True) if once else None)

    def detached(self) -> _Weights:
        blank = None if self.blank is None else self.blank.detach()
        return _Weights(self.features.detach(), self.bias.detach(), blank)


def _trained(
    corpus: _Corpus, classes: int, options: WordTableOptions, progress: Progress | None
) -> _Weights:
    rng = np.random.default_rng(options.seed)
    weights = _Weights.zero(classes, options)
    rate, decay = _set(options.learning_rate), _set(options.weight_decay)
    epochs, warm = _set(options.epochs), _set(options.warm_epochs)
    groups = [{"params": [weights.features, weights.bias], "lr": rate}]
    if weights.blank is not None:  # one number against many: it has farther to go
        groups.append({"params": [weights.blank], "lr": _BLANK_RATE * rate})
    optimiser = torch.optim.Adam(groups, fused=True)
    size = _set(options.batch_size)
    steps = epochs * -(-len(corpus) // size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    of_classes = class_weights(corpus.labels.tolist(), classes, options.class_weights)
    for epoch in range(epochs):
        order = rng.permutation(len(corpus))
        losses = []
        for start in range(0, len(order), size):
            batch = corpus.batch(order[start : start + size])
            scores = _scores(weights, batch, _heard(rng, options))
            counts = None if of_classes is None else of_classes[batch.labels]
            loss = _loss(scores, batch, options, counts, weights.blank, warm=epoch < warm)
            if decay:
                loss = loss + decay * weights.features.square().sum()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
        if progress is not None:
            progress(epoch + 1, epochs, float(np.mean(losses)))
    return weights.detached()


def _set(value: _Number | None) -> _Number:
    """A resolved option, which is never None."""
    assert value is not None
    return value


def _heard(rng: np.random.Generator, options: WordTableOptions) -> Tensor:
    """What each feature is multiplied by: 0 where it is dropped."""
    dropped = _set(options.feature_dropout)
    kept = rng.random(options.buckets, dtype=np.float32) >= dropped
    return torch.from_numpy(kept.astype(np.float32) / (1 - dropped))


def _scores(weights: _Weights, batch: _Batch, heard: Tensor) -> Tensor:
    sums = torch.nn.functional.embedding_bag(
        batch.buckets,
        weights.features,
        batch.starts,
        mode="sum",
        per_sample_weights=batch.weights * heard[batch.buckets],
    )
    return torch.nn.functional.embedding(batch.places, torch.sigmoid(sums + weights.bias))


def _loss(
    scores: Tensor,
    batch: _Batch,
    options: WordTableOptions,
    counts: Tensor | None,
    blank: Tensor | None,
    *,
    warm: bool,
) -> Tensor:
    """``counts``: what each text counts."""
    if warm:
        target = options.margin
        return margin_loss(scores, batch.present, batch.labels, target, MARGIN_WIDTH, counts)
    changed = torch.arange(_set(options.target_words) + 1)
    met = torch.minimum(changed, batch.lengths[:, None])  # a word is one copy
    every = torch.ones(len(batch.labels))
    return certified_loss(
        scores,
        batch.present,
        batch.labels,
        met,
        every,
        _set(options.temperature),
        _set(options.accuracy_weight),
        counts,
        batch.shares if options.family == "distinct" else None,
        None if blank is None else torch.sigmoid(blank),
    )


def _rounded(
    weights: _Weights,
    texts: Sequence[str],
    labels: Sequence[int],
    label_names: Sequence[str],
    options: WordTableOptions,
) -> WordTable:
    """The smallest integers that certify about as much: int8, or int16 where that is not enough."""
    rows = np.random.default_rng(options.seed).permutation(len(texts))[:_ROUNDING_TEXTS]
    sample = [texts[row] for row in rows], [labels[row] for row in rows]

    def table(places: int, kind: type[np.int8] | type[np.int16]) -> tuple[float, WordTable]:
        limit = np.iinfo(kind).max
        fitted = np.clip(np.rint(weights.features.numpy() * 2.0**places), -limit, limit)
        entries: npt.NDArray[np.integer] = fitted.astype(kind)

        def sums(of: Tensor) -> npt.NDArray[np.int64]:
            return np.rint(of.numpy().astype(np.float64) * 2.0**places * WHOLE).astype(np.int64)

        # Entries count 2**-places and weights 1 / WHOLE; so many sums make one step of the curve.
        shift = (2**places * WHOLE // CURVE_STEPS).bit_length() - 1
        blank = None if weights.blank is None else sums(weights.blank)
        bias = sums(weights.bias)
        made = WordTable(entries, bias, labels=label_names, shift=shift, blank=blank)
        return _certified(made, *sample, options), made

    fine, best = table(_FINE_STEPS, np.int16)
    if not options.target_words:
        return best  # accuracy alone was asked for, not a small file
    smallest = max((table(places, np.int8) for places in _SMALL_STEPS), key=lambda one: one[0])
    return smallest[1] if fine - smallest[0] < _ROUNDING_LOSS else best


def _certified(
    table: WordTable, texts: list[str], labels: list[int], options: WordTableOptions
) -> float:
    """Share of texts that are right and certified, averaged over 0 to the target of words."""
    classifier = SmoothedClassifier(table, **table_smoothing(options))
    summary = certified_summary(classifier, texts, labels)
    return certified_score(summary, _set(options.target_words), options.class_weights)

"""Training a word table, seconds on two cores: `train_words`, and `train_word_table` for texts.

The loss is the certificate itself (`certified_loss`): with one word a copy, the cost of ``d``
changed words is a sum of the ``d`` largest weights, which has a gradient.  From nothing, a table
for two classes would end as the constant classifier, which certifies half of the texts at any
``d``; so the first epochs push the mean margin past a target instead (`margin_loss`).

A *threat* is what may be changed: words replaced by any others, by synonyms, and so on
(`certificates.threats`).  The loss is that of its certificate, and the saved table names it.

For no changed word (``target_words=0``) the loss is that of logistic regression, on sums of words
that count once, with a blank for its intercept and a penalty on large weights: Adam moves a rare
feature as far as a common one, so that without it rare words learn their texts by heart.

Gradients are written out, not found by a framework: the base install trains.

What was learned is then rounded to the small integers of a `WordTable`, which all figures are of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranmask.attacks.resources.neighbours import load_synonyms
from ranmask.data import Corpus
from ranmask.errors import DataError, OptionError
from ranmask.models.known_words import KnownWords
from ranmask.models.normalising import LETTERS, Normaliser, installed
from ranmask.models.synonyms import SynonymSets
from ranmask.models.word_features import WHOLE
from ranmask.models.word_table import CURVE_STEPS, WordTable, spelt
from ranmask.smoothing.partitioned import PartitionedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.evaluating import (
    certified_score,
    certified_summary,
    check_positive,
    measured_figures,
)
from ranmask.training.records import (
    Report,
    RunFolder,
    check_corpora,
    check_one_process,
    description,
    single_texts,
)
from ranmask.training.table_learning import Progress, Weights, learned
from ranmask.training.table_loss import Floats, Ints
from ranmask.training.table_options import WordTableOptions
from ranmask.training.table_texts import TableTexts, check_single, vocabulary

_SMALL_STEPS = (3, 4, 5)  # binary places of int8 entries that are tried
_FINE_STEPS = 11  # of int16 entries
_ROUNDING_TEXTS = 2000
_ROUNDING_LOSS = 0.003  # certified accuracy that int8 may cost


def train_words(
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: WordTableOptions,
    *,
    report: Report | None = None,
) -> SmoothedClassifier:
    """Train a word table on ``train`` and save it, smoothed, in the folder ``output``.

    The same call again, after an interruption, begins anew; a folder that holds another run is
    refused.  ``output`` ends with the table, ``ranmask.json``, a model card (README.md),
    ``training.json`` and the log ``training.jsonl``.
    """
    check_one_table(options)
    check_corpora(train, validation)
    check_positive(options.positive, train.label_names)
    texts = single_texts(train, "a word table")
    check_one_process("a word table is trained")
    options = options.resolved(texts)
    synonyms = None if options.synonyms is None else load_synonyms(options.synonyms)
    installed(options.normalise)  # what is missing is said before a folder is made
    about = description("words", None, train, validation, asdict(options))
    if synonyms is not None:
        about["synonyms"] = synonyms.description()
    run = RunFolder(output, about, report)
    run.begin()
    how: dict[str, Any] = {"options": options, "synonyms": synonyms, "progress": run.timed("words")}
    table = train_word_table(texts, train.labels, train.label_names, **how)
    classifier = SmoothedClassifier(table, **table_smoothing(options), synonyms=synonyms)
    finish(run, classifier, validation, train.label_names, options)
    return classifier


def finish(
    run: RunFolder,
    classifier: SmoothedClassifier | PartitionedClassifier,
    validation: Corpus,
    label_names: Sequence[str],
    options: WordTableOptions,
) -> None:
    """Measure a trained classifier and save it in the run's folder."""
    measured = measured_figures(
        classifier,
        validation.texts,
        validation.labels,
        label_names,
        class_weights=options.class_weights,
        positive=options.positive,
        threat=options.threat,
    )
    classifier.save_pretrained(str(run.folder))
    run.complete(measured)


def check_one_table(options: WordTableOptions) -> None:
    """Refuse options of several tables."""
    if options.partitions is not None:
        raise OptionError(
            f"partitions={options.partitions} are several tables: train them with "
            "ranmask.training.partitions",
            "partitions",
        )


def train_word_table(
    texts: Sequence[str],
    labels: Sequence[int],
    label_names: Sequence[str],
    *,
    options: WordTableOptions | None = None,
    whole: npt.ArrayLike | None = None,
    synonyms: SynonymSets | None = None,
    progress: Progress | None = None,
) -> WordTable:
    """A word table that certifies as many of ``texts`` as it can.

    On one machine the same texts and options give the same table, byte for byte.  One thread
    computes it.  Texts are single, not pairs; their labels are indices into ``label_names``.

    ``whole`` (texts, classes), each in [0, 1], is what another model says of each whole text, which
    it was not trained on: the table is trained to vote together with it, its copy weighing
    ``options.whole_weight`` words.

    ``synonyms`` are those that may take a word's place; by default ``options`` name their table.
    """
    given = options or WordTableOptions()
    check_one_table(given)
    classes = len(label_names)
    said = _whole_scores(whole, len(texts), classes, given.whole_weight)
    if synonyms is None and given.synonyms is not None:
        synonyms = load_synonyms(given.synonyms)
    check_single(texts)
    options = given.resolved(texts)
    known, normaliser = None, installed(given.normalise)
    if options.lexicon == "closed":
        known = vocabulary(texts, options.most_words, options.buckets)
        options, normaliser = replace(options, buckets=len(known.words)), Normaliser(LETTERS)
    corpus = TableTexts(
        texts,
        labels,
        classes,
        buckets=options.buckets,
        most_words=given.most_words,
        normaliser=normaliser,
        synonyms=synonyms,
        known=known,
    )
    if options.family == "distinct":
        corpus.count_words_once()
    weights = learned(corpus, classes, options, whole=said, progress=progress)
    rounding = _Rounding(weights, label_names, normaliser, known)
    return rounding.smallest(texts, labels, options, synonyms)


def table_smoothing(options: WordTableOptions) -> dict[str, Any]:
    """How a table that was trained with these options, `resolved`, is smoothed."""
    named = {"family": options.family, "threat": options.threat, "threats": options.threats}
    return {**WordTable.smoothing, **named}


def _whole_scores(
    whole: npt.ArrayLike | None, texts: int, classes: int, weight: float
) -> Floats | None:
    """What the whole-text model says, checked: (classes, texts)."""
    if whole is None:
        if weight:
            raise OptionError(
                f"whole_weight={weight} needs whole, what the whole-text model says of each text",
                "whole_weight",
            )
        return None
    said = np.asarray(whole, dtype=np.float32)
    if said.shape != (texts, classes):
        raise DataError(
            f"whole has the shape {said.shape}; {texts} texts of {classes} classes need "
            f"({texts}, {classes})"
        )
    bad = np.flatnonzero(~((said >= 0) & (said <= 1)).all(axis=1))
    if len(bad):
        raise DataError(
            f"whole must be scores from 0 to 1, not {said[bad[0]].tolist()}", int(bad[0]) + 1
        )
    return said.T


class _Rounding(NamedTuple):
    """Tables of what was learned, rounded to integers."""

    weights: Weights
    label_names: Sequence[str]
    normaliser: Normaliser
    known: KnownWords | None

    def smallest(
        self,
        texts: Sequence[str],
        labels: Sequence[int],
        options: WordTableOptions,
        synonyms: SynonymSets | None,
    ) -> WordTable:
        """The smallest that certifies about as much: int8, or int16 where that is not enough."""
        best = self.table(_FINE_STEPS, np.int16)
        if not options.target_words or options.threats:
            # Accuracy alone was asked for, or every word counts, or several threats: not a small
            # file, which is measured by one.
            return best
        target = options.target_words
        rows = np.random.default_rng(options.seed).permutation(len(texts))[:_ROUNDING_TEXTS]
        sample = [texts[row] for row in rows], [labels[row] for row in rows]

        def certified(table: WordTable) -> float:
            classifier = SmoothedClassifier(table, **table_smoothing(options), synonyms=synonyms)
            summary = certified_summary(classifier, *sample)
            return certified_score(summary, target, options.class_weights)

        tried = [self.table(places, np.int8) for places in _SMALL_STEPS]
        coarse, smallest = max(zip(map(certified, tried), tried, strict=True), key=itemgetter(0))
        return smallest if certified(best) - coarse < _ROUNDING_LOSS else best

    def table(self, places: int, kind: type[np.int8] | type[np.int16]) -> WordTable:
        """Entries count ``2**-places``."""
        weights, limit = self.weights, np.iinfo(kind).max
        if self.known is not None:  # what is said of every word is said of the known ones
            every = weights.features + weights.bias[:, None]
            weights = weights._replace(features=every, bias=np.zeros_like(weights.bias))
        fitted = np.clip(np.rint(weights.features.T * 2.0**places), -limit, limit)

        def sums(of: Floats) -> Ints:
            return np.rint(of.astype(np.float64) * 2.0**places * WHOLE).astype(np.int64)

        return WordTable(
            fitted.astype(kind),
            sums(weights.bias),
            labels=self.label_names,
            # Weights count 1 / WHOLE; so many sums make one step of the curve.
            shift=(2**places * WHOLE // CURVE_STEPS).bit_length() - 1,
            blank=None if weights.blank is None else sums(weights.blank),
            normaliser=self.normaliser,
            vocabulary=None if self.known is None else spelt(self.known.words),
        )

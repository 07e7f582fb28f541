"""Word tables that are trained apart, so that a poisoned training text reaches only one of them.

Guarantee.  What the table of a part is follows from the rows of that part alone, whatever their
order, and from options that were set beforehand: its vocabulary of features, its defaults (the
target by the length of a median text, the size of batches), its class weights, the order in which
it reads texts, and how it is rounded.  Which part a row is in follows from its text alone
(`part_of`).  `certificates.partitions` rests on it, and tests/guarantee/test_poisoning.py trains
again after every poisoning of small training sets.

What may look at all rows is what only measures: validation, the card.  A part without a row has a
table that says nothing, and so votes for the first class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ranmask.data import Corpus
from ranmask.errors import OptionError
from ranmask.models.normalising import installed
from ranmask.models.word_table import WordTable
from ranmask.smoothing.partitioned import PartitionedClassifier
from ranmask.training.evaluating import check_positive
from ranmask.training.records import (
    Report,
    RunFolder,
    check_corpora,
    check_one_process,
    description,
    single_texts,
)
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import finish, train_word_table

Trained: TypeAlias = Callable[[int, int], None]
"""Called after every part: parts done, parts in all."""


def part_of(text: str, parts: int) -> int:
    """Which of so many parts the rows with this text are in.

    >>> part_of("free entry", 10), part_of("free entry", 10), part_of("see you", 10)
    (4, 4, 2)
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % parts


def train_partition_tables(
    texts: Sequence[str],
    labels: Sequence[int],
    label_names: Sequence[str],
    options: WordTableOptions,
    trained: Trained | None = None,
) -> list[WordTable]:
    """``options.partitions`` tables, each of the rows of its part; in a fixed order of its own."""
    parts = options.partitions
    if parts is None:
        raise OptionError("partitions must be a whole number of at least 2, not None")
    rows: list[list[tuple[str, int]]] = [[] for _ in range(parts)]
    for text, label in zip(texts, labels, strict=True):
        rows[part_of(text, parts)].append((text, label))
    alone = replace(options, partitions=None)
    tables = []
    for part in rows:
        tables.append(_table(sorted(part), label_names, alone))
        if trained is not None:
            trained(len(tables), parts)
    return tables


def _table(
    rows: Sequence[tuple[str, int]], label_names: Sequence[str], options: WordTableOptions
) -> WordTable:
    if rows:
        texts, labels = zip(*rows, strict=True)
        return train_word_table(texts, labels, label_names, options=options)
    classes = len(label_names)
    nothing = np.zeros((1, classes), dtype=np.int8), np.zeros(classes, dtype=np.int64)
    return WordTable(*nothing, labels=label_names, shift=0, normaliser=installed(options.normalise))


def train_partitions(
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: WordTableOptions,
    *,
    report: Report | None = None,
) -> PartitionedClassifier:
    """Train tables that vote on ``train`` and save them in the folder ``output``.

    As `train_words`.  Poisoned texts are those of ``train``: how it was split from other rows must
    follow from each text alone (`load_splits` with ``by_text``), and its label names must have been
    given.
    """
    check_corpora(train, validation)
    check_positive(options.positive, train.label_names)
    texts = single_texts(train, "a word table")
    check_one_process("word tables are trained")
    installed(options.normalise)  # what is missing is said before a folder is made
    run = RunFolder(output, description("words", None, train, validation, asdict(options)), report)
    run.begin()
    names, log = train.label_names, run.timed("partitions")
    tables = train_partition_tables(texts, train.labels, names, options, log)
    classifier = PartitionedClassifier(tables, options.threat)
    finish(run, classifier, validation, names, options)
    return classifier

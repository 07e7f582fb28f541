"""A word table from corpora to a folder: training, measuring, saving."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ranmask.errors import DataError, OptionError
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.evaluating import certified_summary
from ranmask.training.options import WordTableOptions
from ranmask.training.records import Report, RunFolder, check_corpora, figures
from ranmask.training.word_table import table_smoothing, train_word_table

if TYPE_CHECKING:
    from ranmask.data import Corpus


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
    check_corpora(train, validation)
    texts = [text for text in train.texts if isinstance(text, str)]
    if len(texts) < len(train.texts):
        raise DataError(f"{train.name} holds pairs; a word table reads single texts only")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise OptionError("a word table is trained by one process: start it without torchrun")
    options = options.resolved(texts)
    run = RunFolder(
        output,
        {
            "kind": "words",
            "base": None,
            "train": train.description(),
            "validation": validation.description(),
            "options": asdict(options),
        },
        report,
    )
    run.begin()
    run.rewind("words", 0)
    started = time.monotonic()

    def told(done: int, total: int, loss: float) -> None:
        seconds = round(time.monotonic() - started, 1)
        run.log(
            {"phase": "words", "epoch": done, "epochs": total, "loss": loss, "seconds": seconds}
        )

    table = train_word_table(texts, train.labels, train.label_names, options=options, progress=told)
    classifier = SmoothedClassifier(table, **table_smoothing(options))
    summary = certified_summary(classifier, validation.texts, validation.labels)
    measured = figures(summary, train.label_names, options.class_weights)
    classifier.save_pretrained(str(output))
    run.complete(measured)
    return classifier

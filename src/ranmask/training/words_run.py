"""A word table from corpora to a folder: training, measuring, saving."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import DataError
from ranmask.smoothing import SmoothedClassifier
from ranmask.training.evaluating import certified_summary
from ranmask.training.records import Report, RunFolder, figures
from ranmask.training.word_table import WordTableOptions, train_word_table

if TYPE_CHECKING:
    from ranmask.corpora import Corpus


def train_words(
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: WordTableOptions,
    *,
    report: Report | None = None,
) -> SmoothedClassifier:
    """Train a word table on ``train`` and save it, smoothed, in the folder ``output``."""
    texts = [text for text in train.texts if isinstance(text, str)]
    if len(texts) < len(train.texts):
        raise DataError(f"{train.name} holds pairs; a word table reads single texts only")
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
    run.start()
    started = time.monotonic()

    def told(done: int, total: int, loss: float) -> None:
        seconds = round(time.monotonic() - started, 1)
        run.log(
            {"phase": "words", "epoch": done, "epochs": total, "loss": loss, "seconds": seconds}
        )

    table = train_word_table(texts, train.labels, train.label_names, options=options, progress=told)
    classifier = SmoothedClassifier(table, **table.smoothing)
    measured: dict[str, Any] = figures(
        certified_summary(classifier, validation.texts, validation.labels)
    )
    classifier.save_pretrained(str(output))
    run.complete(measured)
    return classifier

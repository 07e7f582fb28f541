"""Training a detector: a table on the training texts, its threshold on the validation texts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ranmask.data import Corpus
from ranmask.runs.flag_counts import counted
from ranmask.smoothing.detectors import (
    Detector,
    SegmentDetector,
    TableDetector,
    WordDetector,
    calibrated,
    positive_of,
    too_few,
)
from ranmask.training.detector_options import DetectorTraining, share_of
from ranmask.training.detector_tables import train_detector_table
from ranmask.training.records import (
    Report,
    RunFolder,
    check_corpora,
    check_one_process,
    description,
    single_texts,
)


def train_detector(
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: DetectorTraining,
    *,
    report: Report | None = None,
) -> Detector:
    """Train a detector on ``train``, set its threshold on ``validation``, and save it.

    The same call again, after an interruption, begins anew; a folder that holds another run is
    refused.  ``output`` ends with the detector, a card (README.md), ``training.json`` and the log
    ``training.jsonl``.  ``false_positives`` are those of whole validation texts.  ``by`` names a
    column that ``validation`` was read with.
    """
    check_corpora(train, validation)
    texts = single_texts(train, "a detector")
    check_one_process("a detector is trained")
    positive = positive_of(train.label_names, options.positive)
    groups = None if options.by is None else validation.column(options.by)
    about = description("detector", None, train, validation, asdict(options))
    run = RunFolder(output, about, report)
    run.begin()
    log = run.timed("words")
    run.settle(positive=positive)
    names = train.label_names
    other = next(name for name in names if name != positive)
    sides = (other if len(names) == 2 else f"not {positive}", positive)
    flags = [names[label] == positive for label in train.labels]
    table = train_detector_table(texts, flags, sides, options=options, progress=log)
    kind: type[TableDetector] = WordDetector if options.additions == "anywhere" else SegmentDetector
    raw = kind(table, threshold=1, positive=positive, labels=names)
    expected = [names[label] == positive for label in validation.labels]
    rate = share_of(options.false_positives)
    detector = calibrated(raw, validation.texts, expected, rate)
    found = detector.detect(validation.texts)
    measured = counted(found, expected, groups).values() | {"threshold": detector.threshold}
    if note := too_few(expected.count(False), rate):
        measured["too_few"] = note
    detector.save_pretrained(output)
    run.complete(measured)
    return detector

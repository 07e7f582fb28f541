"""Detectors beside free classifiers, before and after the attack that appends harmless words.

A quarter of the training rows sets thresholds, for 1 % false positives; the others train.  Figures
are of that quarter (``--part validation``, to tune by) or of the test parts.  Needs scikit-learn.

    python -m benchmarks.detectors sms_spam enron_spam --part test --output results/detectors.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.settings import data_folder
from ranmask import SegmentDetector, SmoothedClassifier, WindowDetector, WordDetector
from ranmask.attacks.appending import append_words, harmless_words
from ranmask.data import load_corpus
from ranmask.data.corpus import permutation
from ranmask.data.rows import Columns, file_rows
from ranmask.runs.flag_counts import FlagCounts, Share, counted
from ranmask.smoothing.detectors import Detector, calibrated
from ranmask.training.detector_options import DetectorTraining
from ranmask.training.detector_tables import train_detector_table
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table

RATE = Fraction(1, 100)
APPENDED = 100
TESTS = {
    "sms_spam": ("sms_spam",),
    "enron_spam": ("enron_spam", "spamassassin"),
    "spamassassin": ("spamassassin", "enron_spam"),
    "jigsaw_part": ("jigsaw_part",),
    "injection": ("injection", "injection_hardbenign", "injection_ood"),
}
LIMITS = {"jigsaw_part": 4.0, "injection": 4.0}
"""How much one word may count in a segment, chosen on validation rows; 2 elsewhere."""


@dataclass
class Texts:
    """Texts, and which of them are to be flagged."""

    texts: list[str]
    flags: list[bool]
    sources: list[str] = field(default_factory=list)


@dataclass
class Victim:
    """Something that flags texts by a score: a detector, or a free classifier."""

    name: str
    scores: Callable[[list[str]], Sequence[float]]
    threshold: float
    detector: Detector | None = None


def test_texts(name: str) -> Texts:
    """The test part of a set, with the column ``source`` where it has one."""
    if name == "sms_spam":
        corpus = load_corpus(name, "test")
        return Texts(list(corpus.texts), [bool(label) for label in corpus.labels])
    columns = Columns("text", None, "label", ("source",))
    rows = list(file_rows(data_folder() / name / "test.parquet", columns).rows)
    rows = [row for row in rows if row.text and row.text.split()]
    return Texts(
        [row.text for row in rows],
        [int(row.label) == 1 for row in rows],
        [row.kept["source"] for row in rows],
    )


def training_texts(name: str) -> tuple[Texts, Texts]:
    """What is learned from, and what sets thresholds."""
    parts = [load_corpus(name, part) for part in ("train", "validation")]
    texts = [text for part in parts for text in part.texts]
    flags = [bool(label) for part in parts for label in part.labels]
    order = permutation(len(texts))
    cut = len(order) // 4

    def taken(places: list[int]) -> Texts:
        return Texts([texts[place] for place in places], [flags[place] for place in places])

    return taken(order[cut:]), taken(order[:cut])


def free(name: str, scores: Callable[[list[str]], Any], held_out: Texts) -> Victim:
    """A classifier without a promise, with its threshold set as a detector's is."""
    harmless = [t for t, flag in zip(held_out.texts, held_out.flags, strict=True) if not flag]
    found = np.sort(np.asarray(scores(harmless), dtype=np.float64))[::-1]
    threshold = float(np.nextafter(found[int(RATE * len(found))], np.inf))
    return Victim(name, scores, threshold)


def pipeline(train: Texts) -> Any:
    return make_pipeline(
        TfidfVectorizer(sublinear_tf=True),
        LogisticRegression(C=10, class_weight="balanced", max_iter=1000),
    ).fit(train.texts, ["flag" if flag else "pass" for flag in train.flags])


def free_table(train: Texts) -> Callable[[list[str]], list[float]]:
    options = WordTableOptions(target_words=0)
    labels = [int(flag) for flag in train.flags]
    table = train_word_table(train.texts, labels, ("pass", "flag"), options=options)
    smoothed = SmoothedClassifier(table, **table_smoothing(options.resolved(train.texts)))

    def scores(texts: list[str]) -> list[float]:
        found = smoothed.predict(texts)
        return [one.scores[1] - one.scores[0] for one in found if one.scores is not None]

    return scores


def of_detector(name: str, raw: Detector, held_out: Texts) -> Victim:
    detector = calibrated(raw, held_out.texts, held_out.flags, RATE)
    unproved = detector.with_threshold(1 << 40)  # nothing is proved where scores are asked for

    def scores(texts: list[str]) -> list[float]:
        return [found.score for found in unproved.detect(texts)]

    return Victim(name, scores, detector.threshold, detector)


def victims(name: str, train: Texts, held_out: Texts, windows: bool) -> list[Victim]:
    model = pipeline(train)
    place = list(model.classes_).index("flag")
    found = [
        free("TF-IDF, free", lambda texts: model.predict_proba(texts)[:, place], held_out),
        free("word table, free", free_table(train), held_out),
    ]
    for kind, additions in ((WordDetector, "anywhere"), (SegmentDetector, "ends")):
        limit = LIMITS.get(name) if additions == "ends" else None
        options = DetectorTraining(additions=additions, word_limit=limit)
        table = train_detector_table(train.texts, train.flags, ("pass", "flag"), options=options)
        title = {"anywhere": "words, anywhere", "ends": "segments, ends"}[additions]
        found.append(of_detector(title, kind(table, threshold=1), held_out))
    if windows:
        raw = WindowDetector(model, sizes=(8, 16, 32), positive="flag")
        found.append(of_detector("windows of TF-IDF, ends", raw, held_out))
    return found


def measured(victim: Victim, texts: Texts, appended: Sequence[str]) -> dict[str, Any]:
    """Recall and false positives, certified recall, and recall after the attack."""
    if victim.detector is not None:
        counts = counted(victim.detector.detect(texts.texts), texts.flags)
        caught = [found.flagged for found in victim.detector.detect(texts.texts)]
    else:
        scores = victim.scores(texts.texts)
        caught = [score >= victim.threshold for score in scores]
        counts = FlagCounts()
        for text, found, flag in zip(texts.texts, caught, texts.flags, strict=True):
            counts.add(found, None, len(text.split()), flag)
    values = counts.values()
    pairs = zip(texts.texts, caught, texts.flags, strict=True)
    hits = [text for text, found, flag in pairs if found and flag]
    attacks = append_words(victim.scores, hits, victim.threshold, appended, most=APPENDED)
    undone = [len(attack.words) for attack in attacks if attack.succeeded]
    left = len(hits) - len(undone)
    values["recall_after"] = Share(left, counts.recall.whole).values()
    values["median_words_appended"] = float(np.median(undone)) if undone else None
    if texts.sources:
        values["by_source"] = by_source(texts, caught)
    return values


def by_source(texts: Texts, caught: Sequence[bool]) -> dict[str, dict[str, Any]]:
    """The share that is flagged of each source, and whether it should be."""
    shares: dict[tuple[str, bool], Share] = {}
    for source, flag, found in zip(texts.sources, texts.flags, caught, strict=True):
        shares.setdefault((source, flag), Share()).add(found)
    return {
        f"{source} ({'flag' if flag else 'pass'})": share.values()
        for (source, flag), share in sorted(shares.items())
    }


def report(name: str, part: str, windows: bool) -> list[dict[str, Any]]:
    train, held_out = training_texts(name)
    begun = time.monotonic()
    judged = victims(name, train, held_out, windows)
    print(f"{name}: {len(train.texts):,} rows, {time.monotonic() - begun:.0f} s", flush=True)
    appended = harmless_words(train.texts, train.flags)
    rows = []
    for test in TESTS[name] if part == "test" else (name,):
        texts = test_texts(test) if part == "test" else held_out
        for victim in judged:
            values = measured(victim, texts, appended)
            rows.append({"train": name, "test": test, "detector": victim.name, **values})
            print(line(rows[-1]), flush=True)
    return rows


def shown(share: dict[str, Any]) -> str:
    return f"{share['share']:.3f}".lstrip("0") if share.get("texts") else "-"


def line(row: dict[str, Any]) -> str:
    """A row of the table, in Markdown."""
    rate = row["false_positives"]
    low, high = rate.get("interval", (0.0, 0.0))
    alarms = f"{100 * rate['share']:.1f} ({100 * low:.1f} to {100 * high:.1f})" if rate else "-"
    certified = [shown(share) for share in row["certified_recall"].values()]
    if row["detector"].endswith("free"):
        certified = ["-"] * 4
    certified = certified or ["-"] * 4
    after = shown(row["recall_after"])
    cells = [f"{row['train']} -> {row['test']}", row["detector"], alarms, shown(row["recall"])]
    return f"| {' | '.join([*cells, after, *certified])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=list(TESTS))
    parser.add_argument("--part", choices=("validation", "test"), default="validation")
    parser.add_argument("--windows", action="store_true", help="also windows of the pipeline")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    rows = [row for name in given.corpora for row in report(name, given.part, given.windows)]
    if given.output is not None:
        given.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

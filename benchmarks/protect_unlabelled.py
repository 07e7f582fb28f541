"""A TF-IDF pipeline, protected by its own answers about texts that nobody labelled.

The pipeline learns from one half of the training texts; the other half is the pile, without its
labels.  Figures are of the test part, against true labels.  Needs scikit-learn.

    python benchmarks/protect_unlabelled.py sms_spam jigsaw_part [--give-up 1] [--balanced]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ranmask.data import load_corpus
from ranmask.training.protect_options import ProtectOptions
from ranmask.training.protecting import protect
from ranmask.training.protection import read_protection


def f1(found: np.ndarray, right: np.ndarray) -> float:
    """Of the second class: spam, toxic."""
    hits = ((found == 1) & (right == 1)).sum()
    return float(2 * hits / ((found == 1).sum() + (right == 1).sum()))


def report(name: str, options: ProtectOptions) -> None:
    train, test = load_corpus(name, "train"), load_corpus(name, "test")
    half = len(train.texts) // 2
    pipeline = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
        LogisticRegression(C=10, class_weight="balanced", max_iter=1000),
    ).fit(train.texts[:half], train.labels[:half])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "protected"
        begun = time.monotonic()
        protected = protect(
            pipeline, train.texts[half:], place, label_names=train.label_names, options=options
        )
        seconds = time.monotonic() - begun
        protection = read_protection(place)
    begun = time.monotonic()
    results = protected.certify(test.texts)
    certified_in = time.monotonic() - begun
    right = np.array(test.labels)
    alone = pipeline.predict_proba([" ".join(text.split()) for text in test.texts]).argmax(axis=1)
    found = np.array([result.label_id for result in results])
    radii = np.array([-1 if result.radius is None else result.radius for result in results])
    print(
        f"{name}: {half:,} texts for the pipeline, {protection.run['texts']['texts']:,} without "
        f"labels, {len(right):,} to test; weight {protection.at().name}; protected in "
        f"{seconds:.0f} s, tested in {certified_in:.1f} s"
    )
    print(f"  agreement {(found == alone).mean():.4f}")
    print(
        f"  accuracy  {(found == right).mean():.4f}  pipeline alone {(alone == right).mean():.4f}"
    )
    print(f"  F1        {f1(found, right):.4f}  pipeline alone {f1(alone, right):.4f}")
    positive = test.label_names[1]
    for words in options.words:
        proved = (found == right) & (radii >= words)
        print(
            f"  at {words} changed words: certified accuracy {proved.mean():.4f}, "
            f"certified recall of {positive} {proved[right == 1].mean():.4f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--words", default="1,2,5")
    parser.add_argument("--give-up", type=float, default=1.0)
    parser.add_argument("--balanced", action="store_true")
    given = parser.parse_args()
    words = tuple(int(word) for word in given.words.split(","))
    for name in given.corpora:
        report(name, ProtectOptions(words, given.give_up, balanced=given.balanced))


if __name__ == "__main__":
    main()

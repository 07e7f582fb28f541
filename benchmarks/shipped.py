"""The models that come with ranmask: processor time of a text, on AG News and IMDB test texts.

Labels are not looked at.  Loading a model and its first text are timed apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.settings import data_folder
from ranmask import ProtectedClassifier, load_default
from ranmask.data import load_corpus
from ranmask.words import document

CORPUS = {"news": "agnews", "news-words": "agnews", "reviews-words": "imdb"}
TEXTS = {"news": 2000, "news-words": 5000, "reviews-words": 2000}


def run(quick: bool) -> dict[str, Any]:
    data_folder()
    rows = []
    for name, corpus in CORPUS.items():
        texts = load_corpus(corpus, "test").take(100 if quick else TEXTS[name]).texts
        start = time.process_time()
        smoothed = load_default(name)
        smoothed.certify(texts[:1])
        loaded = time.process_time()
        slowest = 0.0
        for text in texts[:50]:  # one at a time, as a service would
            before = time.process_time()
            smoothed.certify([text])
            slowest = max(slowest, time.process_time() - before)
        spent = _milliseconds(lambda one=smoothed, some=texts: one.certify(some), len(texts))
        alone: dict[str, Any] = {}
        if isinstance(smoothed, ProtectedClassifier):
            read, given = smoothed.reader.read, [document(text) for text in texts]
            classes = len(smoothed.labels or ())
            asked = _milliseconds(lambda r=read, g=given, c=classes: r(g, c), len(texts))
            alone = {"reader_milliseconds": asked}
        rows.append(
            {
                "model": name,
                "texts": len(texts),
                "tolerance": smoothed.tolerance,
                "load_seconds": round(loaded - start, 2),
                "milliseconds_a_text": spent,
                **alone,
                "slowest_alone_milliseconds": round(1000 * slowest, 2),
            }
        )
    first, table = rows[0]["milliseconds_a_text"], rows[1]["milliseconds_a_text"]
    return {"models": rows, "table_faster": round(first / table, 1)}


def _milliseconds(call: Callable[[], object], texts: int) -> float:
    """Of one text, the best of five runs."""
    seconds = []
    for _ in range(5):
        before = time.process_time()
        call()
        seconds.append(time.process_time() - before)
    return round(1000 * min(seconds) / texts, 3)

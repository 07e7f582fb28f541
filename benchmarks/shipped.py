"""The models that come with ranmask: seconds a text, on AG News and IMDB test texts.

Labels are not looked at.  Loading a model and measuring its tolerance, once, are timed apart.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.settings import data_folder
from ranmask import load_default
from ranmask.data import load_corpus

CORPUS = {"news": "agnews", "news-words": "agnews", "reviews-words": "imdb"}
TEXTS = {"news": 500, "news-words": 5000, "reviews-words": 2000}


def run(quick: bool) -> dict[str, Any]:
    data_folder()
    rows = []
    for name, corpus in CORPUS.items():
        texts = load_corpus(corpus, "test").take(100 if quick else TEXTS[name]).texts
        start = time.perf_counter()
        smoothed = load_default(name)
        tolerance = smoothed.tolerance
        loaded = time.perf_counter()
        slowest = 0.0
        for text in texts[:50]:  # one at a time, as a service would
            before = time.perf_counter()
            smoothed.certify([text])
            slowest = max(slowest, time.perf_counter() - before)
        before = time.perf_counter()
        smoothed.certify(texts)
        seconds = (time.perf_counter() - before) / len(texts)
        rows.append(
            {
                "model": name,
                "texts": len(texts),
                "tolerance": tolerance,
                "load_seconds": round(loaded - start, 2),
                "milliseconds_a_text": round(1000 * seconds, 3),
                "slowest_alone_milliseconds": round(1000 * slowest, 2),
            }
        )
    first, table = rows[0]["milliseconds_a_text"], rows[1]["milliseconds_a_text"]
    return {"models": rows, "table_faster": round(first / table, 1)}

"""On a GPU, with trained models: what each number type costs, and all certificates side by side.

    python -m benchmarks.gpu KEEP_MODEL RATE_MODEL RESULTS.json

The models come from ``ranmask train --data agnews`` (``--keep 2`` and ``--mask-rate 0.9 --hide
mask``); the first rows of AG News test are certified.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ranmask import Certificate, SmoothedClassifier
from ranmask.data import load_corpus
from ranmask.metrics import CertifiedSummary
from ranmask.words import Text

TEXTS = 500
DTYPES = ("float32", "bfloat16", "float16", "screened")


def number_types(model: str, texts: Sequence[Text], labels: Sequence[int]) -> list[dict[str, Any]]:
    """The exact certificate in each dtype: tolerance, uncertain votes, certified accuracy."""
    rows = []
    for dtype in DTYPES:
        smoothed = SmoothedClassifier.from_pretrained(model, dtype=dtype)
        smoothed.certify(texts)  # warms up
        start = time.perf_counter()
        results = smoothed.certify(texts)
        seconds = time.perf_counter() - start
        copies = sum(result.masks for result in results)
        rows.append(
            {
                "dtype": dtype,
                "tolerance": smoothed.tolerance,
                "uncertain": sum(result.uncertain for result in results) / copies,
                "copies_per_second": round(copies / seconds),
                "tight": float(np.mean([result.tight for result in results])),
                **_figures(results, labels),
            }
        )
        print(rows[-1], flush=True)
    return rows


def certificates(model: str, texts: Sequence[Text], labels: Sequence[int]) -> list[dict[str, Any]]:
    """Every certificate on the same 5,000 votes a text."""
    smoothed = SmoothedClassifier.from_pretrained(model, masks=5000, family="sampled")
    compared = smoothed.compare(texts)
    rows = []
    for kind in compared[0]:
        figures = _figures([one[kind] for one in compared], labels)
        rows.append({"certificate": kind, "guarantee": compared[0][kind].guarantee, **figures})
        print(rows[-1], flush=True)
    return rows


def _figures(results: list[Certificate], labels: Sequence[int]) -> dict[str, Any]:
    summary = CertifiedSummary()
    for result, label in zip(results, labels, strict=True):
        summary.add(correct=result.label_id == label, radius=result.radius, words=result.words)
    return {
        "accuracy": float(summary.accuracy),
        "median_radius": summary.median_radius,
        "certified_accuracy": [round(float(summary.certified_accuracy(d)), 3) for d in range(1, 9)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("keep_model")
    parser.add_argument("rate_model")
    parser.add_argument("results", type=Path)
    parser.add_argument("--texts", type=int, default=TEXTS)
    options = parser.parse_args()
    corpus = load_corpus("agnews", "test").take(options.texts)
    texts, labels = corpus.texts, corpus.labels
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    results: dict[str, Any] = {"machine": where, "torch": torch.__version__, "texts": len(texts)}
    for name, work, model in (
        ("number_types", number_types, options.keep_model),
        ("certificates", certificates, options.rate_model),
    ):
        results[name] = work(model, texts, labels)
        options.results.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""On a GPU: the packed engine with relative positions beside MPNet's own forward, in one run.

    python -m benchmarks.mpnet_engine ENCODER [--device cpu --texts 2 --copies 10]

ENCODER is a folder of all-mpnet-base-v2, which gets a random head.  AG News test texts, the first
ones; copies a second in float16 (on a CPU float32), from kept sets to scores, hidden by ``drop``
and by ``mask``.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch
import transformers

from ranmask import HuggingFaceClassifier
from ranmask.certificates.families import sampled_sets
from ranmask.certificates.kept import kept_count
from ranmask.data import load_corpus
from ranmask.models.base import MaskedCopies
from ranmask.words import Document, documents

CLASSES = 4
FEWER = 5  # copies for the model's own forward, which takes longer for each: one in so many


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.mpnet_engine", description=__doc__)
    parser.add_argument("encoder")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--copies", type=int, default=1000)
    options = parser.parse_args()
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(options.encoder)
    auto: Any = transformers.AutoModelForSequenceClassification
    dtype = torch.float32 if options.device == "cpu" else torch.float16
    given = {"num_labels": CLASSES, "ignore_mismatched_sizes": True, "dtype": dtype}
    model = auto.from_pretrained(options.encoder, **given)
    model.to(options.device)
    texts = documents(load_corpus("agnews", "test").texts[: options.texts])
    for hide in ("drop", "mask"):
        for rate in (0.9, 0.4):
            figures: dict[str, Any] = {"hide": hide, "rate": rate}
            for backend, number in (("packed", options.copies), ("plain", options.copies // FEWER)):
                base = HuggingFaceClassifier(model, tokenizer, hide=hide, backend=backend)
                copies = [_copies(base, text, rate, number) for text in texts]
                figures |= {backend: _pace(base, copies), f"{backend}_tolerance": base.tolerance}
            print(json.dumps(figures), flush=True)


def _copies(base: HuggingFaceClassifier, text: Document, rate: float, number: int) -> MaskedCopies:
    words = base.words_read(text)
    kept = kept_count(words, mask_rate=rate)
    return MaskedCopies(text, words, sampled_sets(words, kept, number, seed=0))


def _pace(base: HuggingFaceClassifier, copies: list[MaskedCopies]) -> int:
    """Copies a second, after a few that warm up."""
    _ = base.tolerance  # found out first
    base.score(copies[:8])
    began = time.perf_counter()
    base.score(copies)  # ends with scores on the host
    return round(sum(map(len, copies)) / (time.perf_counter() - began))


if __name__ == "__main__":
    main()

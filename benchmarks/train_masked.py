"""A masked AG News classifier, for measuring: a plain loop, until ranmask trains by itself.

    python -m benchmarks.train_masked ENCODER TRAIN.jsonl.gz OUTPUT --keep 2 --hide drop

ENCODER is a folder with a headless encoder; TRAIN has one JSON list [text, label] a line.  Cross
entropy on randomly masked copies, AdamW, cosine schedule; the first 2,000 rows after shuffling
are left out, for validation.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from ranmask import SmoothedClassifier
from ranmask.classifiers.base import MaskedCopies
from ranmask.classifiers.batching import batches
from ranmask.classifiers.huggingface import HuggingFaceClassifier
from ranmask.families import Retention
from ranmask.words import Document, document

LABELS = ["World", "Sports", "Business", "Sci/Tech"]
ROWS_AT_ONCE = 64
LEARNING_RATE = 1e-4
VALIDATION_ROWS = 2000


def read(path: Path) -> list[tuple[Document, int]]:
    with gzip.open(path, "rt") as file:
        return [(document(text), label) for text, label in map(json.loads, file)]


def train(
    encoder: Path, rows: list[tuple[Document, int]], output: Path, options: argparse.Namespace
) -> None:
    torch.manual_seed(0)
    draw = np.random.default_rng(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        encoder,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        dtype=torch.float32,
    ).to(device)
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    base = HuggingFaceClassifier(model, tokenizer, hide=options.hide)
    retention = Retention(options.keep, options.mask_rate)
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=1e-6)
    steps = options.epochs * (len(rows) // ROWS_AT_ONCE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    model.train()
    for epoch in range(options.epochs):
        order = draw.permutation(len(rows))
        for start in range(0, len(rows) - ROWS_AT_ONCE + 1, ROWS_AT_ONCE):
            chosen = [rows[i] for i in order[start : start + ROWS_AT_ONCE]]
            loss = _loss(base, chosen, retention, options.copies, draw)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
        print(f"epoch {epoch + 1} of {options.epochs}: loss {float(loss):.3f}", flush=True)
    SmoothedClassifier(base, keep=options.keep, mask_rate=options.mask_rate).save_pretrained(
        str(output)
    )


def _loss(
    base: HuggingFaceClassifier,
    rows: list[tuple[Document, int]],
    retention: Retention,
    copies: int,
    draw: np.random.Generator,
) -> torch.Tensor:
    texts = []
    for text, _ in rows:
        words = base.words_read(text)
        kept = [draw.permutation(words)[: retention.count(words)] for _ in range(copies)]
        sets = np.sort(np.array(kept, dtype=np.int32), axis=1)
        texts.append(base.encoder.rows(MaskedCopies(text, words, sets)))
    [batch] = batches(texts, tokens=1 << 30, least_rows=1 << 30, pad_id=base.encoder.pad_id)
    labels = np.repeat([label for _, label in rows], copies)[batch.places]
    inputs: dict[str, Any] = {"input_ids": batch.ids}
    if batch.visible is not None:
        inputs["attention_mask"] = batch.visible
    if base.encoder.hide == "drop":
        inputs["position_ids"] = batch.positions
    device = base.model.device
    with torch.autocast(device.type, dtype=torch.bfloat16):
        output = base.model(**{k: torch.from_numpy(v).to(device) for k, v in inputs.items()})
    return torch.nn.functional.cross_entropy(
        output.logits.float(), torch.from_numpy(labels).to(device)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--keep", type=int)
    parser.add_argument("--mask-rate", type=float)
    parser.add_argument("--hide", default="mask")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--copies", type=int, default=1, help="masked copies of a text in a step")
    parser.add_argument("--rows", type=int, help="use only so many rows")
    options = parser.parse_args()
    rows = read(options.train)
    random.Random(0).shuffle(rows)
    train(options.encoder, rows[VALIDATION_ROWS:][: options.rows], options.output, options)


if __name__ == "__main__":
    main()

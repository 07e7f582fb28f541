r"""How the shipped `reviews` was made: a student that reads a review and its parts, and a table.

    python -m benchmarks.readers prepare --output work
    python -m benchmarks.readers read --corpus imdb --encoder all-mpnet-base-v2 --kind segments \
        --work work
    python -m benchmarks.distil_reviews --work work --student all-MiniLM-L6-v2 --output reviews

The teacher's answers to segments are out of fold (`benchmarks.readers`).  The student, cut down as
`benchmarks.distil` does, learns of each segment 7 parts of them and 3 of the review's label, and
once for each fold without it.  The word table is trained to vote beside what the student says of
whole reviews out of fold.  Minutes on one large GPU; ``--rows 200`` tries it out on a CPU.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.distil import cut, saved
from benchmarks.finetuning import (
    Document,
    Encoder,
    Floats,
    Ints,
    answers,
    each_fold,
    fitted_to,
)
from ranmask import ProtectedClassifier
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import train_word_table

LABELS = ("negative", "positive")
LEVELS = 4
DRAWS = 24  # segments of each review that are trained on
LONGEST = 200
STUDENT = {"epochs": 1, "batch": 64, "rate": 5e-4}
TEACHERS_PART = 0.7
TABLE = WordTableOptions(
    whole_weight=2.0,
    target_words=1,
    accuracy_weight=0.3,
    temperature=4.0,
    learning_rate=0.01,
)
WEIGHTS = (0.25, 0.75, 0.25)
"""Of the whole review, its halves and its quarters; chosen on validation rows."""


def nodes_of(documents: Sequence[Document]) -> list[Document]:
    """All segments of all levels, those of a text side by side, each as a text."""
    return [
        Document(tokens, np.array([0, len(tokens)]))
        for document in documents
        for level in range(LEVELS)
        for tokens in document.segments(2**level)
    ]


def drawn(rows: Ints, documents: Sequence[Document], seed: int) -> Ints:
    """Nodes to train on: `DRAWS` of each text, levels alike, none with an empty segment."""
    draw, found = np.random.default_rng(seed), []
    for row in np.tile(rows, DRAWS):
        pieces = 2 ** int(draw.integers(0, LEVELS))
        while pieces > max(1, len(documents[row].ends) - 1):
            pieces //= 2
        found.append(row * (2**LEVELS - 1) + pieces - 1 + int(draw.integers(0, pieces)))
    return np.array(found)


def made(given: argparse.Namespace) -> ProtectedClassifier:
    """All steps; the folder ``given.output`` holds what comes out."""
    with lzma.open(given.work / "imdb.json.xz", "rt") as file:
        rows: dict[str, Any] = json.load(file)
    texts, labels = (rows[name][: given.rows] for name in ("train", "train_labels"))
    with np.load(given.work / "imdb-segments.npz") as file:
        taught = file["oof"][: given.rows, : 2**LEVELS - 1].astype(np.float32)
    sure = np.eye(len(LABELS), dtype=np.float32)[labels][:, None]
    mixed = TEACHERS_PART * np.nan_to_num(taught, nan=0.5) + (1 - TEACHERS_PART) * sure
    targets: Floats = mixed.reshape(-1, len(LABELS))

    small = given.output.with_name(f"{given.output.name}-student")
    cut(given.student, texts, small, classes=len(LABELS), tokens=given.tokens)
    encoder = Encoder(str(small), LONGEST)
    documents = encoder.documents(texts)
    nodes = nodes_of(documents)

    def student(fit: Ints, seed: int) -> Any:
        return fitted_to(encoder, nodes, targets, drawn(fit, documents, seed), **STUDENT, seed=seed)

    said = np.zeros((len(texts), len(LABELS)), dtype=np.float32)
    for fold, fit, ask in each_fold(np.array(rows["folds"])[: len(texts)]):
        said[ask] = answers(encoder, student(fit, fold + 1), [documents[row].tokens for row in ask])
    right = float((said.argmax(axis=1) == np.array(labels)).mean())
    print(f"whole reviews: out of fold {right:.3f} are right", flush=True)
    named = np.eye(len(LABELS))[said.argmax(axis=1)]
    table = train_word_table(texts, labels, LABELS, options=TABLE, whole=named)
    final = student(np.arange(len(texts)), 0)
    return saved(given.output, final, encoder, table, TABLE.resolved(texts), WEIGHTS)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    kept = argparse.RawDescriptionHelpFormatter
    command = argparse.ArgumentParser(description=__doc__, formatter_class=kept)
    command.add_argument("--work", type=Path, required=True)
    command.add_argument("--student", required=True)
    command.add_argument("--tokens", type=int, default=4500)
    command.add_argument("--rows", type=int)
    command.add_argument("--output", type=Path, required=True)
    return command


if __name__ == "__main__":
    made(parser().parse_args())

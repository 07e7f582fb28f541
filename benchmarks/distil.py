r"""How the shipped `news` was made: a teacher, a student that reads whole texts, and a word table.

    python -m benchmarks.distil --texts train_subset.parquet extra.parquet --without test.parquet \
        --labels World Sports Business Sci/Tech --teacher all-mpnet-base-v2 \
        --student all-MiniLM-L6-v2 --output news

1. The teacher, a folder with an encoder, is fine-tuned on the texts; and once for each fold without
   it, so that every text gets an answer from a teacher that was not trained on it.
2. The student is cut down to a layer and a few thousand tokens, and learns half the true label and
   half the teacher's out-of-fold answer.  Its own answers are taken out of fold, too.
3. The word table is trained to vote beside the student (`train_word_table`, ``whole``).

``--output`` ends as a folder that `load_classifier` loads.  Files are Parquet, with the columns
``text`` and ``label``.  Ten minutes on one large GPU; ``--rows 500`` tries it out on a CPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.finetuning import (
    Encoder,
    Floats,
    answers,
    each_fold,
    fitted_to,
    folds_of,
    rows_of,
    shuffled,
)
from ranmask import HuggingFaceClassifier, ProtectedClassifier, SmoothedClassifier
from ranmask.models import model_config
from ranmask.models.readers import ModelReader
from ranmask.models.word_table import WordTable
from ranmask.training.compact import keep_layers, keep_tokens
from ranmask.training.evaluating import certified_summary
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table

LONGEST = 128  # tokens that are trained on
POSITIONS = 256  # tokens that the student can read
TEACHER = {"epochs": 2, "batch": 96, "rate": 5e-5}
STUDENT = {"epochs": 8, "batch": 128, "rate": 4e-4}
TABLE = WordTableOptions(
    whole_weight=2.0,
    target_words=1,
    accuracy_weight=0.3,
    temperature=3.5,
    batch_size=256,
    learning_rate=0.035,
)
WEIGHT = 0.9
"""Of the student in the vote, chosen on held-out texts."""


def cut(folder: str, texts: Sequence[str], output: Path, *, classes: int, tokens: int) -> None:
    """The first layer of an encoder, with the most frequent tokens of ``texts``, in a folder."""
    encoder = Encoder(folder, LONGEST, "cpu")
    model = encoder.model(classes)
    keep_layers(model, 1)
    words = (word for text in texts for word in text.split())
    tokenizer = keep_tokens(model, encoder.tokenizer, words, tokens)
    embeddings = model.base_model.embeddings
    kept = embeddings.position_embeddings.weight.detach()[:POSITIONS].clone()
    embeddings.position_embeddings = torch.nn.Embedding.from_pretrained(kept, freeze=False)
    embeddings.position_ids = torch.arange(len(kept))[None]
    model.config.max_position_embeddings = tokenizer.model_max_length = len(kept)
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)


def saved(
    output: Path,
    student: Any,
    encoder: Encoder,
    table: WordTable,
    options: WordTableOptions,
    weights: tuple[float, ...],
) -> ProtectedClassifier:
    """A student and the table beside it, in a folder: stored in half precision."""
    student.config.id2label = dict(enumerate(table.labels))
    student.config.label2id = {label: place for place, label in enumerate(table.labels)}
    reader = HuggingFaceClassifier(student.cpu(), encoder.tokenizer, hide="drop")
    copies = SmoothedClassifier(table, **table_smoothing(options))
    protected = ProtectedClassifier.beside(copies, ModelReader(reader), weights)
    protected.save_pretrained(str(output))
    student.half().save_pretrained(output / "reader")
    student.float()
    # Measured as it will be loaded: without torch.
    record = model_config.of_folder(output / "reader")
    assert record is not None
    model_config.write(output / "reader", model_config.COMPACT, record.smoothing)
    return ProtectedClassifier.from_pretrained(str(output))


def made(given: argparse.Namespace) -> ProtectedClassifier:
    """All steps; the folder ``given.output`` holds what comes out, its figures are printed."""
    texts, labels = rows_of(given.texts, given.without)
    classes = len(given.labels)
    order = shuffled(len(texts))[: given.rows]
    held, rows = np.split(order, [min(given.held_out, len(order) // 5)])
    train = [texts[row] for row in rows]
    truth = np.array(labels)[rows]
    sure = np.eye(classes, dtype=np.float32)[truth]
    print(f"{len(train):,} texts, {len(held):,} held out", flush=True)

    def out_of_fold(encoder: Encoder, targets: Floats, how: dict[str, Any]) -> Floats:
        documents, said = encoder.documents(train), np.zeros_like(targets)
        for fold, fit, ask in each_fold(folds_of(len(train))):
            model = fitted_to(encoder, documents, targets, fit, **how, seed=fold + 1)
            said[ask] = answers(encoder, model, [documents[row].tokens for row in ask])
        right = float((said.argmax(axis=1) == truth).mean())
        print(f"{Path(encoder.folder).name}: out of fold {right:.3f} are right", flush=True)
        return said

    targets = (sure + out_of_fold(Encoder(given.teacher, LONGEST), sure, TEACHER)) / 2
    small = given.output.with_name(f"{given.output.name}-student")
    cut(given.student, train, small, classes=classes, tokens=given.tokens)
    encoder, all_rows = Encoder(str(small), LONGEST), np.arange(len(train))
    student = fitted_to(encoder, encoder.documents(train), targets, all_rows, **STUDENT, seed=0)
    named = np.eye(classes)[out_of_fold(encoder, targets, STUDENT).argmax(axis=1)]
    table = train_word_table(train, truth.tolist(), given.labels, options=TABLE, whole=named)

    protected = saved(given.output, student, encoder, table, TABLE.resolved(train), (given.weight,))
    rest = [texts[row] for row in held], [labels[row] for row in held]
    summary = certified_summary(protected, *rest)
    proved = (float(summary.certified_accuracy(words)) for words in range(1, 6))
    shown = " ".join(f"{share:.3f}" for share in proved)
    print(f"held out: accuracy {float(summary.accuracy):.3f}, CR@1 to 5 {shown}", flush=True)
    return protected


def parser() -> argparse.ArgumentParser:
    """The command line."""
    kept = argparse.RawDescriptionHelpFormatter
    command = argparse.ArgumentParser(description=__doc__, formatter_class=kept)
    command.add_argument("--texts", type=Path, nargs="+", required=True)
    command.add_argument("--without", type=Path, nargs="*", default=[])
    command.add_argument("--labels", nargs="+", required=True)
    command.add_argument("--teacher", required=True)
    command.add_argument("--student", required=True)
    command.add_argument("--tokens", type=int, default=8000)
    command.add_argument("--weight", type=float, default=WEIGHT)
    command.add_argument("--held-out", type=int, default=4000)
    command.add_argument("--rows", type=int)
    command.add_argument("--output", type=Path, required=True)
    return command


if __name__ == "__main__":
    made(parser().parse_args())

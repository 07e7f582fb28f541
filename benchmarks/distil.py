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
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import torch
import transformers

from ranmask import HuggingFaceClassifier, ProtectedClassifier, SmoothedClassifier
from ranmask.models.readers import ModelReader
from ranmask.training.compact import keep_layers, keep_tokens
from ranmask.training.evaluating import certified_summary
from ranmask.training.options import WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table

SEED = 20_261_116  # of the rows that are held out
FOLDS = 3
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

Floats = npt.NDArray[np.float32]
Tokens = list[list[int]]


def rows_of(files: Sequence[Path], without: Sequence[Path]) -> tuple[list[str], list[int]]:
    """Texts and labels: words with single blanks, no text twice, none of those ``without``.

    Two texts are the same where their letters and digits are.
    """
    seen = {_letters(text) for file in without for text, _ in _read(file)}
    texts, labels = [], []
    for file in files:
        for text, label in _read(file):
            if text and _letters(text) not in seen:
                seen.add(_letters(text))
                texts.append(text)
                labels.append(label)
    return texts, labels


def _read(file: Path) -> Iterator[tuple[str, int]]:
    table = pq.read_table(file, columns=["text", "label"])
    for text, label in zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True):
        yield " ".join(text.split()), label


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def shortened(ids: list[int], most: int) -> list[int]:
    """The first and the last tokens of a text that has more than ``most``."""
    if len(ids) <= most:
        return ids
    return ids[: most // 2] + ids[most // 2 - most :]


def cut(folder: str, texts: Sequence[str], output: Path, *, classes: int, tokens: int) -> None:
    """The first layer of an encoder, with the most frequent tokens of ``texts``, in a folder."""
    model, tokenizer = _loaded(folder, classes)
    keep_layers(model, 1)
    words = (word for text in texts for word in text.split())
    tokenizer = keep_tokens(model, tokenizer, words, tokens)
    embeddings = model.base_model.embeddings
    kept = embeddings.position_embeddings.weight.detach()[:POSITIONS].clone()
    embeddings.position_embeddings = torch.nn.Embedding.from_pretrained(kept, freeze=False)
    embeddings.position_ids = torch.arange(len(kept))[None]
    model.config.max_position_embeddings = tokenizer.model_max_length = len(kept)
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)


def _loaded(folder: str, classes: int) -> tuple[Any, Any]:
    kind = transformers.AutoModelForSequenceClassification
    model = kind.from_pretrained(folder, num_labels=classes, dtype=torch.float32)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def tokens_of(tokenizer: Any, texts: Sequence[str]) -> Tokens:
    """The tokens of texts, framed as the model reads them."""
    begin, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    found = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    return [[begin, *shortened(ids, LONGEST - 2), end] for ids in found]


def _batch(tokens: Sequence[list[int]], pad: int, device: str) -> dict[str, torch.Tensor]:
    width = max(map(len, tokens))
    ids = torch.full((len(tokens), width), pad)
    shown = torch.zeros((len(tokens), width), dtype=torch.int64)
    for row, one in enumerate(tokens):
        ids[row, : len(one)] = torch.tensor(one)
        shown[row, : len(one)] = 1
    return {"input_ids": ids.to(device), "attention_mask": shown.to(device)}


def _blocks(tokens: Tokens, order: npt.NDArray[np.int64], size: int) -> Iterator[Any]:
    """Batches of about one length each: rows are sorted among some thousands of others."""
    for start in range(0, len(order), 50 * size):
        some = order[start : start + 50 * size]
        some = some[np.argsort([len(tokens[row]) for row in some], kind="stable")]
        yield from (some[at : at + size] for at in range(0, len(some), size))


def fitted(
    folder: str,
    texts: Sequence[str],
    targets: Floats,
    *,
    epochs: int,
    batch: int,
    rate: float,
    seed: int,
    device: str,
) -> Any:
    """An encoder that was fine-tuned towards probabilities, (texts, classes)."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    model, tokenizer = _loaded(folder, targets.shape[1])
    model.to(device).train()
    tokens, wanted = tokens_of(tokenizer, texts), torch.tensor(targets, device=device)
    groups: list[dict[str, Any]] = [
        {"params": [one for one in model.parameters() if one.ndim > 1], "weight_decay": 0.01},
        {"params": [one for one in model.parameters() if one.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))
    steps, step = epochs * -(-len(texts) // batch), 0
    for _ in range(epochs):
        blocks = list(_blocks(tokens, random.permutation(len(texts)), batch))
        for place in random.permutation(len(blocks)):
            rows, step = blocks[place], step + 1
            for group in optimizer.param_groups:
                group["lr"] = rate * min(step / (0.06 * steps + 1), (steps - step) / (0.94 * steps))
            inputs = _batch([tokens[row] for row in rows], tokenizer.pad_token_id, device)
            with _autocast(device):
                logits = model(**inputs).logits
            said = torch.log_softmax(logits.float(), -1)
            loss = -(wanted[torch.as_tensor(rows, device=device)] * said).sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return model.train(False)


def _autocast(device: str) -> Any:
    return torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda")


@torch.inference_mode()
def answers(model: Any, folder: str, texts: Sequence[str], device: str) -> Floats:
    """Probabilities of the classes, (texts, classes)."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokens_of(tokenizer, texts)
    said = np.zeros((len(texts), model.config.num_labels), dtype=np.float32)
    for rows in _blocks(tokens, np.arange(len(texts)), 512):
        inputs = _batch([tokens[row] for row in rows], tokenizer.pad_token_id, device)
        with _autocast(device):
            logits = model(**inputs).logits
        said[rows] = torch.softmax(logits.float(), -1).cpu().numpy()
    return said


def out_of_fold(
    fit_and_ask: Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64], int], Floats],
    texts: int,
    classes: int,
) -> Floats:
    """Answers for every text by a model that was not trained on it.

    ``fit_and_ask`` takes the rows to train on, those to answer for, and a seed.
    """
    folds = np.random.default_rng(1).integers(0, FOLDS, texts)
    said = np.zeros((texts, classes), dtype=np.float32)
    for fold in range(FOLDS):
        held = np.flatnonzero(folds == fold)
        said[held] = fit_and_ask(np.flatnonzero(folds != fold), held, fold + 1)
    return said


def made(given: argparse.Namespace) -> ProtectedClassifier:
    """All steps; the folder ``given.output`` holds what comes out, its figures are printed."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    texts, labels = rows_of(given.texts, given.without)
    classes = len(given.labels)
    order = np.random.default_rng(SEED).permutation(len(texts))[: given.rows]
    held, rows = np.split(order, [min(given.held_out, len(order) // 5)])
    train = [texts[row] for row in rows]
    truth = np.array(labels)[rows]
    sure = np.eye(classes, dtype=np.float32)[truth]
    print(f"{len(train):,} texts, {len(held):,} held out, on the {device}", flush=True)

    def folded(folder: str, targets: Floats, how: dict[str, Any]) -> Floats:
        def fit_and_ask(fit: Any, ask: Any, seed: int) -> Floats:
            some = [train[row] for row in fit]
            model = fitted(folder, some, targets[fit], **how, seed=seed, device=device)
            return answers(model, folder, [train[row] for row in ask], device)

        said = out_of_fold(fit_and_ask, len(train), classes)
        right = float((said.argmax(axis=1) == truth).mean())
        print(f"{Path(folder).name}: out of fold {right:.3f} are right", flush=True)
        return said

    targets = (sure + folded(given.teacher, sure, TEACHER)) / 2
    small = str(given.output.with_name(f"{given.output.name}-student"))
    cut(given.student, train, Path(small), classes=classes, tokens=given.tokens)
    student = fitted(small, train, targets, **STUDENT, seed=0, device=device)
    named = np.eye(classes)[folded(small, targets, STUDENT).argmax(axis=1)]
    table = train_word_table(train, truth.tolist(), given.labels, options=TABLE, whole=named)

    tokenizer = transformers.AutoTokenizer.from_pretrained(small)
    student.config.id2label = dict(enumerate(given.labels))
    student.config.label2id = {label: place for place, label in enumerate(given.labels)}
    # Measured and saved as it will be loaded: stored in half precision, computed in single.
    reader = HuggingFaceClassifier(student.cpu().half().float(), tokenizer, hide="drop")
    copies = SmoothedClassifier(table, **table_smoothing(TABLE.resolved(train)))
    protected = ProtectedClassifier.beside(copies, ModelReader(reader), (given.weight,))
    protected.save_pretrained(str(given.output))
    student.half().save_pretrained(given.output / "reader")
    student.float()
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

"""Encoders that are fine-tuned on labelled texts: what `distil` and `readers` share.

Rows are read from Parquet files with the columns ``text`` and ``label``.  Texts are tokenized word
by word, so that a segment of a text is a slice of its tokens.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import torch
import transformers

from ranmask.certificates.readings import segment_borders
from ranmask.errors import ModelError

SEED = 20_261_116  # of the rows that are held out
FOLDS = 3
SHOW_EVERY = 200  # steps
TOKENS_AT_ONCE = 120_000  # that are read together, padding included

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def rows_of(files: Sequence[Path], without: Sequence[Path]) -> tuple[list[str], list[int]]:
    """Texts and labels: words with single blanks, no text twice, none of those ``without``.

    Two texts are the same where their letters and digits are.
    """
    seen = {letters(text) for file in without for text, _ in read_rows(file)}
    texts, labels = [], []
    for file in files:
        for text, label in read_rows(file):
            if text and letters(text) not in seen:
                seen.add(letters(text))
                texts.append(text)
                labels.append(label)
    return texts, labels


def read_rows(file: Path) -> Iterator[tuple[str, int]]:
    """All texts of a file and their labels, words with single blanks."""
    table = pq.read_table(file, columns=["text", "label"])
    for text, label in zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True):
        yield " ".join(text.split()), label


def letters(text: str) -> str:
    """The letters and digits of a text, by which it is known."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def shuffled(rows: int) -> Ints:
    """An order of rows, the same each time: the first are held out."""
    return np.random.default_rng(SEED).permutation(rows)


def folds_of(rows: int) -> Ints:
    """The fold of each row, the same each time."""
    return np.random.default_rng(1).integers(0, FOLDS, rows)


def each_fold(folds: Ints) -> Iterator[tuple[int, Ints, Ints]]:
    """Each fold, with the rows to train on and those to answer for: all that are in it."""
    for fold in range(FOLDS):
        yield fold, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


class Document(NamedTuple):
    """The tokens of a text; ``ends[n]`` of them belong to its first ``n`` words."""

    tokens: Ints
    ends: Ints

    def segments(self, pieces: int) -> list[Ints]:
        """The text in so many segments, some of them empty where it has fewer words."""
        borders = segment_borders(np.array([len(self.ends) - 1]), pieces)[0]
        return np.split(self.tokens, self.ends[borders[1:-1]])


@dataclass
class Encoder:
    """An encoder in a folder, which reads at most ``longest`` tokens of a text."""

    folder: str
    longest: int
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")

    def __post_init__(self) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder)
        self._known: dict[str, list[int]] = {}

    def model(self, classes: int) -> Any:
        """The encoder with a head for so many classes; a head that is new is drawn."""
        kind = transformers.AutoModelForSequenceClassification
        model = kind.from_pretrained(self.folder, num_labels=classes, dtype=torch.float32)
        return model.to(self.device)

    def documents(self, texts: Sequence[str]) -> list[Document]:
        """The tokens of texts."""
        new = list({word for text in texts for word in text.split()} - self._known.keys())
        if new:
            self._known |= zip(new, self._tokens(new), strict=True)
        documents = []
        for text in texts:
            words = [self._known[word] for word in text.split()]
            tokens = np.array([token for word in words for token in word], dtype=np.int64)
            ends = np.cumsum([0, *map(len, words)])
            documents.append(Document(tokens, ends))
        whole = self._tokens(list(texts[:100]))
        if any(ids != one.tokens.tolist() for ids, one in zip(whole, documents, strict=False)):
            raise ModelError(
                f"{self.folder}: a text has other tokens than its words by themselves; take an "
                "encoder with a WordPiece tokenizer, as BERT and MPNet have"
            )
        return documents

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer(texts, add_special_tokens=False, verbose=False)[
            "input_ids"
        ]
        return found

    def batch(self, sequences: Sequence[Ints]) -> dict[str, torch.Tensor]:
        """Tokens, framed as the model reads them; of a long text its beginning and its end."""
        cut = [shortened(tokens, self.longest - 2) for tokens in sequences]
        width = -(-(max(map(len, cut)) + 2) // 8) * 8
        ids = np.full((len(cut), width), self.tokenizer.pad_token_id)
        shown = np.zeros((len(cut), width), dtype=np.int64)
        for row, tokens in enumerate(cut):
            last = len(tokens) + 1
            ids[row, 0], ids[row, last] = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
            ids[row, 1:last] = tokens
            shown[row, : last + 1] = 1
        inputs = {"input_ids": ids, "attention_mask": shown}
        return {name: torch.from_numpy(one).to(self.device) for name, one in inputs.items()}

    def logits(self, model: Any, sequences: Sequence[Ints]) -> torch.Tensor:
        """What the model says of a batch."""
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            said: torch.Tensor = model(**self.batch(sequences)).logits
        return said.float()


def shortened(tokens: Ints, most: int) -> Ints:
    """The first and the last tokens of a text that has more than ``most``."""
    if len(tokens) <= most:
        return tokens
    return np.concatenate([tokens[: most // 2], tokens[most // 2 - most :]])


def blocks(sequences: Sequence[Ints], size: int) -> Iterator[Ints]:
    """Batches of about one length each: rows are sorted among some thousands of others."""
    lengths = np.array([len(tokens) for tokens in sequences])
    for start in range(0, len(lengths), 50 * size):
        some = start + np.argsort(lengths[start : start + 50 * size], kind="stable")
        yield from (some[at : at + size] for at in range(0, len(some), size))


def warmed(step: int, steps: int) -> float:
    """What part of the learning rate a step has: it rises, then falls to nothing at the last."""
    return min(step / (0.06 * steps + 1), (steps - step) / (0.94 * steps))


def fitted(
    encoder: Encoder,
    documents: Sequence[Document],
    classes: int,
    rows: Ints,
    show: Callable[[Document, np.random.Generator], Ints],
    loss_of: Callable[[Any, Ints, list[Ints]], torch.Tensor],
    *,
    epochs: int,
    batch: int,
    rate: float,
    seed: int,
    schedule: Callable[[int, int], float] = warmed,
) -> Any:
    """The encoder, fine-tuned on some rows of ``documents``.

    ``show`` draws what is read of a text in an epoch; batches of it are of about one length.
    ``loss_of`` takes the model, the rows of a batch and what is shown of them.
    """
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    model = encoder.model(classes).train()
    groups: list[dict[str, Any]] = [
        {"params": [one for one in model.parameters() if one.ndim > 1], "weight_decay": 0.01},
        {"params": [one for one in model.parameters() if one.ndim <= 1], "weight_decay": 0.0},
    ]
    fused = encoder.device == "cuda"
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=fused)
    steps, step, begun = epochs * -(-len(rows) // batch), 0, time.monotonic()
    print(f"  {len(rows):,} rows, {steps:,} steps on the {encoder.device}", flush=True)
    batches = _batches(documents, rows, show, epochs, batch, random)
    for step, (some, shown) in enumerate(batches, 1):
        part = schedule(step, steps)
        if part <= 0:  # the last step, or out of time
            break
        for group in optimizer.param_groups:
            group["lr"] = rate * part
        loss = loss_of(model, some, shown)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % SHOW_EVERY == 0:
            seconds = time.monotonic() - begun
            print(f"  step {step:,} of {steps:,}, {seconds:.0f} s, loss {loss:.3f}", flush=True)
    seconds = time.monotonic() - begun
    print(f"  trained, {step:,} of {steps:,} steps in {seconds:.0f} s", flush=True)
    return model.train(False)


def _batches(
    documents: Sequence[Document],
    rows: Ints,
    show: Callable[[Document, np.random.Generator], Ints],
    epochs: int,
    size: int,
    random: np.random.Generator,
) -> Iterator[tuple[Ints, list[Ints]]]:
    for _ in range(epochs):
        order = random.permutation(rows)
        shown = [show(documents[row], random) for row in order]
        alike = list(blocks(shown, size))
        for place in random.permutation(len(alike)):
            yield order[alike[place]], [shown[at] for at in alike[place]]


def whole(document: Document, random: np.random.Generator) -> Ints:
    """What is shown of a text: all of it."""
    return document.tokens


def fitted_to(
    encoder: Encoder,
    documents: Sequence[Document],
    targets: Floats,
    rows: Ints,
    show: Callable[[Document, np.random.Generator], Ints] = whole,
    **how: Any,
) -> Any:
    """The encoder, fine-tuned on some rows towards ``targets``: probabilities, (rows, classes)."""
    wanted = torch.tensor(targets, device=encoder.device)

    def loss_of(model: Any, some: Ints, shown: list[Ints]) -> torch.Tensor:
        at = torch.as_tensor(some, device=encoder.device)
        return cross_entropy(encoder.logits(model, shown), wanted[at])

    return fitted(encoder, documents, targets.shape[1], rows, show, loss_of, **how)


def cross_entropy(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The mean over all but the last dimension, which holds the classes."""
    return -(wanted * torch.log_softmax(logits, -1)).sum(-1).mean()


@torch.inference_mode()
def answers(encoder: Encoder, model: Any, sequences: Sequence[Ints]) -> Floats:
    """Probabilities of the classes, (sequences, classes)."""
    said = np.zeros((len(sequences), model.config.num_labels), dtype=np.float32)
    lengths = np.array([min(encoder.longest, len(tokens) + 2) + 8 for tokens in sequences])
    order = np.argsort(lengths, kind="stable")
    first = 0
    while first < len(order):
        ahead = lengths[order[first : first + 4096]]
        fits = ahead * np.arange(1, len(ahead) + 1) <= TOKENS_AT_ONCE
        last = first + max(1, int(fits.sum()))
        some = order[first:last]
        logits = encoder.logits(model, [sequences[row] for row in some])
        said[some] = torch.softmax(logits, -1).cpu().numpy()
        first = last
    return said

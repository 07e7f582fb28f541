"""LipsLev (Abad Rocamora et al., ICLR 2025): a 1-Lipschitz convolution over characters.

    python -m tools.peers.lipslev --checkout LipsLev --corpus agnews     # the authors' weights
    python -m tools.peers.lipslev --checkout LipsLev --corpus sst2 --epochs 8

Theirs: the model, its training epoch, the Lipschitz constant and the radius.  AG News is measured
with the weights that lie in the repository; others are trained here with the options of their
scripts (p = 2) and fewer epochs.  Texts are padded to the longest of a batch and not to 1,000
characters: sums over zeros are the same.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from benchmarks.peers_records import (
    Code,
    PeerRecord,
    Texts,
    certified_by_radius,
    share,
    versions,
    write,
)
from benchmarks.settings import machine
from torch import nn

from ranmask.data import joined, load_corpus

REPOSITORY = "LIONS-EPFL/LipsLev"
KERNEL = {"agnews": 10, "sst2": 5, "imdb": 10}  # of their scripts
MOST = {"agnews": 1000, "sst2": 286, "imdb": 1000}  # characters that are read
SIZES = 8
BATCH, RATE = 128, 100.0


class Batches:
    """Batches of texts of like length, shuffled for each epoch, as their trainer takes them."""

    def __init__(self, rows: Sequence[tuple[torch.Tensor, int]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return -(-len(self.rows) // BATCH)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, None]]:
        order = sorted(
            random.sample(range(len(self.rows)), len(self.rows)),
            key=lambda row: len(self.rows[row][0]) // 50,
        )
        parts = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        random.shuffle(parts)
        for part in parts:
            texts, labels = zip(*(self.rows[row] for row in part), strict=True)
            yield nn.utils.rnn.pad_sequence(texts, batch_first=True), torch.tensor(labels), None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--commit", default="81d7cda03aa90bbe827bad308cf22b8034e28fea")
    parser.add_argument("--corpus", choices=sorted(KERNEL), required=True)
    parser.add_argument("--epochs", type=int, default=0, help="0: the weights in the repository")
    parser.add_argument("--rows", type=int, help="training rows; all where not given")
    parser.add_argument("--texts", type=int, help="test texts; all where not given")
    parser.add_argument("--folder", type=Path, help="where the outcome goes; else results/peers")
    given = parser.parse_args()
    sys.path.insert(0, str(given.checkout.resolve()))
    torch.set_num_threads(1)
    model: Any
    if given.epochs:
        model, training, seconds = trained(given)
    else:
        model = published(given.checkout)
        training, seconds = "the authors' weights, trained by them on all 120,000 rows", None
    test = load_corpus(given.corpus, "test")
    print(f"measuring {given.texts or len(test.texts)} test texts", flush=True)
    radii, pace = measured(model, test.texts, test.labels, MOST[given.corpus], given.texts)
    count = len(radii)
    shown = f"--corpus {given.corpus}" + (f" --epochs {given.epochs}" if given.epochs else "")
    shown += f" --rows {given.rows}" if given.rows else ""
    shown += f" --texts {given.texts}" if given.texts else ""
    record = PeerRecord(
        method="LipsLev",
        threat="characters",
        corpus=given.corpus,
        guarantee="proof",
        source="measured here, their code",
        ours=False,
        accuracy=share(radius >= 0 for radius in radii),
        certified=certified_by_radius(radii, SIZES),
        model=f"one convolution of {model.kernel_size} characters, 100 wide, p = 2",
        texts=Texts(count, f"the first {count:,} of {len(test.texts):,} test rows", test.sha256)
        if count < len(test.texts)
        else Texts(count, f"all {count:,} test rows here", test.sha256),
        setting="their weights" if not given.epochs else f"{given.epochs} epochs (theirs: 30)",
        seconds=pace,
        training=training,
        training_seconds=seconds,
        seed=1,
        versions=versions("torch"),
        hardware=f"{machine()}, one thread",
        commands=(f"python -m tools.peers.lipslev --checkout LipsLev {shown}",),
        code=Code(REPOSITORY, given.commit),
        note=f"reads the first {MOST[given.corpus]:,} characters, in small letters",
    )
    print(write(f"{given.corpus}-characters-lipslev", record, given.folder))
    print(record.accuracy, record.certified, pace)


def published(checkout: Path) -> Any:
    """Their model of AG News; only tensors and these classes are read from the file."""
    from models import ConvLipsModel

    with torch.serialization.safe_globals(
        [ConvLipsModel, nn.Embedding, nn.Conv1d, nn.Linear, nn.ReLU]
    ):
        path = checkout / "results" / "example_ag_news" / "weights_last.pt"
        model = torch.load(path, map_location="cpu", weights_only=True)
    model.lips_act = 1  # as their verify.py does
    return model


def trained(given: argparse.Namespace) -> tuple[Any, str, float]:
    """A model of theirs, trained by their epoch with the options of their scripts."""
    from models import ConvLipsModel
    from utils import char_tokenizer, get_char_to_id, seed_everything, train

    seed_everything(1)
    corpus = load_corpus(given.corpus, "train")
    if given.corpus == "sst2":
        more = load_corpus("sst2_glue", "train")
        corpus = joined(corpus, more, without=load_corpus("sst2", "test"))
    corpus = corpus.take(given.rows)
    most = MOST[given.corpus]
    known = get_char_to_id([[{"text": text} for text in corpus.texts]])
    model = ConvLipsModel(
        len(known) + 1, 150, 100, len(corpus.label_names), KERNEL[given.corpus], 1, 2.0, "sum"
    )
    model.char_to_id = known
    rows = [
        (char_tokenizer(text[:most], known).long(), label)
        for text, label in zip(corpus.texts, corpus.labels, strict=True)
    ]
    batches = Batches([row for row in rows if len(row[0])])
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    half = given.epochs * len(batches) / 2
    schedule = torch.optim.lr_scheduler.CyclicLR(
        optimiser, 0, RATE, step_size_up=half, step_size_down=half, cycle_momentum=False
    )
    loss, start = nn.CrossEntropyLoss(), time.process_time()
    for epoch in range(given.epochs):
        with redirect_stdout(io.StringIO()):
            mean, _ = train(batches, model, optimiser, loss, None, epoch, "cpu", scheduler=schedule)
        spent = time.process_time() - start
        print(f"epoch {epoch + 1}: {mean / len(batches):.3f}, {spent:.0f} s", flush=True)
    about = f"{corpus.name}, {len(corpus.texts):,} rows, {given.epochs} epochs"
    return model, about, round(time.process_time() - start, 1)


@torch.no_grad()
def measured(
    model: Any, texts: Sequence[Any], labels: Sequence[int], most: int, count: int | None
) -> tuple[list[float], float]:
    """Radii by their `get_certified_radius_single`, -1 where wrong; seconds a text."""
    from utils import char_tokenizer
    from verification import get_certified_radius_single

    model.eval()
    radii: list[float] = []
    start = time.process_time()
    for text, label in zip(texts[:count], labels[:count], strict=True):
        read = char_tokenizer(text[:most], model.char_to_id).long()
        padded = nn.functional.pad(read, (0, most + 10 - len(read)))[None]  # as their verify.py
        said = model(padded)[0][0]
        if said.argmax() != label:
            radii.append(-1)
            continue
        radii.append(
            min(
                get_certified_radius_single(
                    model, padded, (said[label] - said[rival]).item(), rival, label
                ).item()
                for rival in range(model.n_classes)
                if rival != label
            )
        )
    return radii, round((time.process_time() - start) / len(radii), 5)


if __name__ == "__main__":
    main()

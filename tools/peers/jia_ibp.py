"""Interval bounds of Jia et al. (EMNLP 2019): all words of a text by counter-fitted neighbours.

    python -m tools.peers.jia_ibp --checkout certified-word-sub --epochs 9

Theirs: the model, interval bounds, the training loop with its schedules, and the count of
certified texts; the options are those of their README, with fewer epochs.  Two things are not
theirs: GloVe is not at hand, so word vectors begin at random and are trained; and NLTK's Treebank
tokeniser reads a review without cutting it into sentences first.  No language model restricts the
neighbours, so that any of the table may take a word's place, as in our own threat.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from benchmarks.peers_records import ALL, Code, PeerRecord, Texts, versions, write
from benchmarks.settings import data_folder, machine
from nltk.tokenize import TreebankWordTokenizer

from ranmask.data import load_corpus

REPOSITORY = "robinjia/certified-word-sub"
WIDTH, BATCH, SEED = 100, 32, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--commit", default="42006fe9ea68663443be794a96d9daccfc664dc4")
    parser.add_argument("--model", choices=("bow", "cnn"), default="cnn")
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--rows", type=int, help="training rows; all where not given")
    parser.add_argument("--texts", type=int, help="test texts; all where not given")
    parser.add_argument("--split", choices=("validation", "test"), default="test")
    parser.add_argument("--folder", type=Path, help="where the outcome goes; else results/peers")
    given = parser.parse_args()
    sys.path.insert(0, str((given.checkout / "src").resolve()))
    torch.set_num_threads(1)
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    import text_classification
    import train as training

    import attacks

    corpus = load_corpus("imdb", "train").take(given.rows)
    held = load_corpus("imdb", given.split).take(given.texts)
    surface = attacks.WordSubstitutionAttackSurface.from_file(
        given.checkout / "data" / "counterfitted_neighbors.json"
    )
    read = [tokenised(one.texts, one.labels) for one in (corpus, held)]
    vocabulary, vectors = random_vectors(read, surface)
    sets = [
        text_classification.TextClassificationDataset.from_raw_data(rows, vocabulary, surface)
        for rows in read
    ]
    model = model_of(given.model, text_classification, vectors)
    device, start = torch.device("cpu"), time.process_time()
    print(f"{len(read[0]):,} rows, {len(vectors):,} words", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        training.OPTS = SimpleNamespace(out_dir=folder)
        training.train(
            text_classification,
            model,
            sets[0],
            given.epochs,
            1e-3,
            device,
            cert_frac=0.8,
            full_train_epochs=max(1, given.epochs // 3),
            batch_size=BATCH,
            epochs_per_save=0,
            clip_grad_norm=0.25,
            weight_decay=1e-4,
        )
    spent, start = time.process_time() - start, time.process_time()
    found: dict[str, Any] = training.test(
        text_classification, model, given.split, sets[1], device, batch_size=1
    )
    count = found["num_total"]
    shown = f"--model {given.model} --epochs {given.epochs}"
    shown += "".join(
        f" --{name} {getattr(given, name)}" for name in ("rows", "texts") if getattr(given, name)
    )
    record = PeerRecord(
        method="IBP (Jia et al.)",
        threat="synonyms",
        corpus="imdb",
        guarantee="proof",
        source="measured here, their code",
        ours=False,
        accuracy=round(found["num_correct"] / count, 4),
        certified={ALL: round(found["num_cert_correct"] / count, 4)},
        model=f"{given.model}, {WIDTH} wide, word vectors from random ones",
        texts=Texts(count, f"{count:,} {given.split} rows here", held.sha256),
        setting=f"{given.epochs} epochs (theirs: 60), no GloVe",
        seconds=round((time.process_time() - start) / count, 5),
        training=f"imdb, {len(corpus.texts):,} rows",
        training_seconds=round(spent, 1),
        seed=SEED,
        versions=versions("torch", "nltk"),
        hardware=f"{machine()}, one thread",
        commands=(f"python -m tools.peers.jia_ibp --checkout certified-word-sub {shown}",),
        code=Code(REPOSITORY, given.commit),
        note="bounds in floating point; neighbours jia2019, without the language model that "
        "restricts them in the paper",
    )
    print(write(f"imdb-synonyms-ibp-{given.model}", record, given.folder))
    print(record.accuracy, record.certified, record.seconds)


def tokenised(texts: Sequence[Any], labels: Sequence[int]) -> list[tuple[str, int]]:
    """Texts as their reader of IMDB gives them."""
    cut = TreebankWordTokenizer()
    return [
        (" ".join(cut.tokenize(text.replace("<br />", " "))), label)
        for text, label in zip(texts, labels, strict=True)
    ]


def random_vectors(read: Sequence[Sequence[tuple[str, int]]], surface: Any) -> tuple[Any, Any]:
    """Their vocabulary (words of the counter-fitted vectors that texts may have), and vectors."""
    from vocabulary import Vocabulary

    listed = data_folder() / "synonyms" / "counterfitting_vocabulary.txt.gz"
    with gzip.open(listed, "rt", encoding="utf-8") as lines:
        fitted = {line.strip() for line in lines} | set(surface.neighbors)
    found = {word for rows in read for text, _ in rows for word in text.lower().split()} & fitted
    found.update(*(surface.neighbors.get(word, ()) for word in list(found)))
    made = Vocabulary()
    for word in sorted(found):
        made.add_word_hard(word)
    vectors = torch.randn(len(made), WIDTH) * 0.3  # about as long as GloVe's entries
    vectors[0] = 0
    return made, vectors


def model_of(kind: str, module: Any, vectors: Any) -> Any:
    """Their model, its word vectors free: they are not learned from elsewhere."""
    if kind == "cnn":
        model = module.CNNModel(WIDTH, WIDTH, 3, vectors, pool="mean", dropout=0.2)
    else:
        model = module.BOWModel(WIDTH, WIDTH, vectors, pool="mean", dropout=0.2)
    model.embs.weight.requires_grad = True
    return model


if __name__ == "__main__":
    main()

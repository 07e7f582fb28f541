r"""What encoders say of whole texts and of segments: AG News, IMDB and SST2, beside word tables.

    python -m benchmarks.readers prepare --output work
    python -m benchmarks.readers read --corpus imdb --encoder all-mpnet-base-v2 --kind whole \
        --work work

``prepare`` writes the rows, ``work/imdb.json.xz``; for SST2 also sentences cut from IMDB's training
texts, to be taught from.  ``read`` fine-tunes the encoder, a folder, and writes what it says as
``work/imdb-whole.npz``: probabilities (texts, nodes, classes), the whole text, then both halves,
the quarters, ...; NaN where a segment is empty.

whole
    trained on whole texts.  ``val``, ``test``; ``oof``, the training texts, each by a model that
    was not trained on it; of SST2 also ``extra``, the sentences.
segments
    trained on random segments of 1, 2, 4, ... parts.  ``val``, ``test``, ``oof``.
sum
    trained for the sum of all nodes: the certified loss over the tree of segments, beside cross
    entropy.  ``val``, ``test``.  That of SST2 is taught by the sentences, after ``whole``.

Each part is written as soon as it is there, and the same command goes on with the next.  Minutes to
a quarter of an hour each on one large GPU; ``--rows 200`` tries it out on a CPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.finetuning import (
    FOLDS,
    Document,
    Encoder,
    Ints,
    answers,
    cross_entropy,
    each_fold,
    fitted,
    fitted_to,
    whole,
)
from benchmarks.reader_rows import FORMAT, VERSION, prepare, prepared, sure_sentences
from ranmask.certificates.readings import segment_borders
from ranmask.data import data_folder
from ranmask.errors import DataError, RanmaskError
from ranmask.results.files import check_same_run, draft, writing

REPEATED = 4  # times that each row with a label is in, beside those sentences
NEVER = -1e4  # the cost of a word that is not there


@dataclass(frozen=True)
class Fit:
    """How an encoder is fine-tuned."""

    epochs: int
    batch: int
    rate: float


@dataclass(frozen=True)
class ForTheSum(Fit):
    """How it is fine-tuned for the sum of all nodes, against so many changed ``words``.

    ``weights`` are those of 1, 2, 4, ... segments; ``reserve`` is kept for the vote of whoever
    reads whole texts.
    """

    weights: tuple[float, ...]
    reserve: float
    temperature: float
    words: tuple[int, ...]


@dataclass(frozen=True)
class Settings:
    """Of a corpus: tokens of a text that are read, levels of segments, and fine-tuning."""

    longest: int
    levels: int
    whole: Fit
    segments: Fit
    sum: ForTheSum


SETTINGS = {
    "agnews": Settings(
        longest=128,
        levels=4,
        whole=Fit(2, 96, 5e-5),
        segments=Fit(2, 96, 5e-5),
        sum=ForTheSum(2, 64, 5e-5, (0, 1, 1, 1), reserve=1, temperature=1, words=(1, 2)),
    ),
    "imdb": Settings(
        longest=400,
        levels=5,
        whole=Fit(2, 32, 3e-5),
        segments=Fit(3, 32, 3e-5),
        sum=ForTheSum(2, 8, 3e-5, (0, 1, 2, 1, 0.5), reserve=2, temperature=2, words=(1, 2, 3)),
    ),
    "sst2": Settings(
        longest=64,
        levels=3,
        whole=Fit(2, 96, 4e-5),
        segments=Fit(2, 96, 4e-5),
        sum=ForTheSum(1, 96, 4e-5, (0, 1, 1), reserve=0.5, temperature=0.7, words=(1,)),
    ),
}


def read(given: argparse.Namespace) -> None:
    """Fine-tune an encoder, and write what it says."""
    how = SETTINGS[given.corpus]
    rows = prepared(given.work, given.corpus, given.rows)
    encoder = Encoder(given.encoder, how.longest)
    run = {
        "corpus": given.corpus,
        "kind": given.kind,
        "encoder": Path(given.encoder).name,
        "rows": len(rows["train"]),
        "longest": how.longest,
        "levels": how.levels,
        **asdict(getattr(how, given.kind)),
    }
    if given.kind == "sum":
        run["seconds"] = given.seconds
    said = Answers(given.work / f"{given.corpus}-{given.kind}.npz", run)
    if given.kind == "sum":
        read_for_the_sum(encoder, rows, how, said, given.seconds)
    else:
        read_out_of_fold(encoder, rows, how, said, given.kind)
    print(f"{said.path}: complete", flush=True)


class Answers:
    """A file of arrays: each is written when it is there, and found by the next run."""

    def __init__(self, path: Path, run: dict[str, Any]) -> None:
        self.path = path
        self.run = json.loads(json.dumps({"format": FORMAT, "version": VERSION, **run}))
        self.arrays: dict[str, Any] = {}
        if path.exists():
            with np.load(path, allow_pickle=False) as found:
                self.arrays = {name: found[name] for name in found.files}
            check_same_run(json.loads(str(self.arrays.pop("run", "{}"))), self.run, path)

    def write(self, **arrays: Any) -> None:
        """Add arrays to the file, or replace them."""
        self.arrays |= arrays
        with writing(self.path), draft(self.path) as place, place.open("wb") as file:
            np.savez_compressed(file, run=np.array(json.dumps(self.run)), **self.arrays)


def read_out_of_fold(
    encoder: Encoder, rows: dict[str, Any], how: Settings, said: Answers, kind: str
) -> None:
    """Answers to ``val`` and ``test`` by a model of all training rows, to those out of fold."""
    classes, truth = rows["classes"], np.array(rows["train_labels"])
    targets = np.eye(classes, dtype=np.float32)[truth]
    train = encoder.documents(rows["train"])
    levels, show = (1, whole) if kind == "whole" else (how.levels, partial(any_segment, how.levels))
    fit = partial(fitted_to, encoder, train, targets, show=show, **asdict(getattr(how, kind)))
    if "test" not in said.arrays:
        print(f"{kind}: all training rows", flush=True)
        model = fit(np.arange(len(train)), seed=0)
        parts = read_the_rest(encoder, model, rows, levels)
        if kind == "whole" and "extra" in rows:
            extra = [document.tokens for document in encoder.documents(rows["extra"])]
            parts["extra"] = answers(encoder, model, extra).astype(np.float16)
        said.write(**parts)
        del model
    empty = np.full((len(train), 2**levels - 1, classes), np.nan, dtype=np.float16)
    found = said.arrays.get("oof", empty)
    for fold, known, held in each_fold(np.array(rows["folds"])):
        if len(held) and np.isnan(found[held]).all():
            print(f"{kind}: all but fold {fold + 1} of {FOLDS}", flush=True)
            model = fit(known, seed=fold + 1)
            found[held] = read_levels(encoder, model, [train[row] for row in held], levels)
            said.write(oof=found)
            show_accuracy(found[held], truth[held], f"fold {fold + 1}")
            del model


def any_segment(levels: int, document: Document, draw: np.random.Generator) -> Ints:
    """A random segment of a random level; of a level with no more segments than words."""
    pieces = 2 ** int(draw.integers(0, levels))
    while pieces > max(1, len(document.ends) - 1):
        pieces //= 2
    return document.segments(pieces)[int(draw.integers(0, pieces))]


def read_the_rest(
    encoder: Encoder, model: Any, rows: dict[str, Any], levels: int
) -> dict[str, np.ndarray]:
    """Answers to the validation and the test part."""
    said = {
        part: read_levels(encoder, model, encoder.documents(rows[part]), levels)
        for part in ("val", "test")
    }
    show_accuracy(said["val"], rows["val_labels"], "val")
    return said


def read_levels(
    encoder: Encoder, model: Any, documents: Sequence[Document], levels: int
) -> np.ndarray:
    """Probabilities (texts, nodes, classes), level by level; NaN where a segment is empty."""
    nodes = [
        [segment for level in range(levels) for segment in document.segments(2**level)]
        for document in documents
    ]
    said = np.full((len(nodes), 2**levels - 1, model.config.num_labels), np.nan, dtype=np.float16)
    at = [(row, node) for row, own in enumerate(nodes) for node, one in enumerate(own) if len(one)]
    filled = [nodes[row][node] for row, node in at]
    texts, places = np.array(at, dtype=np.int64).reshape(-1, 2).T
    said[texts, places] = answers(encoder, model, filled)
    return said


def show_accuracy(said: np.ndarray, labels: Sequence[int], name: str) -> None:
    """Print how many are right by 1, 2, 4, ... segments."""
    shares, first = [], 0
    while first < said.shape[1]:
        level = np.nan_to_num(said[:, first : 2 * first + 1].astype(np.float32)).mean(axis=1)
        shares.append(f"{(level.argmax(axis=1) == np.asarray(labels)).mean():.4f}")
        first = 2 * first + 1
    print(f"{name}: {' '.join(shares)} are right", flush=True)


def read_for_the_sum(
    encoder: Encoder, rows: dict[str, Any], how: Settings, said: Answers, seconds: float | None
) -> None:
    """Answers to ``val`` and ``test`` by a model that was trained for the sum of all nodes."""
    if "test" in said.arrays:
        return
    texts, targets = rows["train"], np.eye(rows["classes"], dtype=np.float32)[rows["train_labels"]]
    if "extra" in rows:
        taught, answered = sure_sentences(rows["extra"], said.path.with_name("sst2-whole.npz"))
        texts = texts * REPEATED + taught
        targets = np.concatenate([targets] * REPEATED + [answered])
    documents = encoder.documents(texts)
    wanted = torch.tensor(targets, device=encoder.device)

    def loss_of(model: Any, some: Ints, _: list[Ints]) -> torch.Tensor:
        batch = [documents[row] for row in some]
        aims = wanted[torch.as_tensor(some, device=encoder.device)]
        return loss_for_the_sum(encoder, model, batch, aims, how.sum)

    model = fitted(
        *(encoder, documents, rows["classes"], np.arange(len(documents)), whole, loss_of),
        epochs=how.sum.epochs,
        batch=how.sum.batch,
        rate=how.sum.rate,
        seed=0,
        schedule=timed(seconds),
    )
    said.write(**read_the_rest(encoder, model, rows, how.levels))


def timed(seconds: float | None) -> Callable[[int, int], float]:
    """The part of the learning rate that a step has; it falls to nothing within ``seconds``."""
    begun = time.monotonic()

    def part(step: int, steps: int) -> float:
        done = step / steps
        if seconds is not None:
            done = max(done, (time.monotonic() - begun) / seconds)
        return min(done / 0.06 + 0.01, (1 - done) / 0.94)

    return part


def loss_for_the_sum(
    encoder: Encoder,
    model: Any,
    documents: Sequence[Document],
    wanted: torch.Tensor,
    how: ForTheSum,
) -> torch.Tensor:
    """Cross entropy of each node, and the certified loss, for texts of which all nodes are read.

    An empty segment is read too, as a text without words, and counts in the lead; the certificate
    leaves it out.
    """
    logits = []
    for level in range(len(how.weights)):
        segments = [segment for one in documents for segment in one.segments(2**level)]
        logits.append(encoder.logits(model, segments).unflatten(0, (len(documents), -1)))
    borders = segment_borders(np.array([len(one.ends) - 1 for one in documents]), 2**level)
    empty = torch.tensor(np.diff(borders) == 0, device=wanted.device)
    said = [torch.softmax(one, -1) for one in logits]
    unlike = [cross_entropy(one, wanted[:, None]) for one in logits]
    lost = certified_loss(said, empty, wanted.argmax(1), how)
    certainty = 2 * wanted.max(1).values - 1  # 1 where there is a label
    bound = sum(weight * 2**level for level, weight in enumerate(how.weights))
    return unlike[0] + sum(unlike[1:]) / 4 + 4 / bound * (certainty * lost).mean()


def certified_loss(
    said: Sequence[torch.Tensor], empty: torch.Tensor, labels: torch.Tensor, how: ForTheSum
) -> torch.Tensor:
    """How far each text is from a lead that no change of ``how.words`` words takes, (texts,).

    ``said``: by level, (texts, nodes, classes); ``empty``: which of the finest segments are.
    """
    leads = [leads_of(level, labels) for level in said]
    margin = sum(w * lead.sum(2) for w, lead in zip(how.weights, leads, strict=True) if w)
    costs = costs_of(leads, empty, how.weights, max(how.words))
    losses = []
    for words in how.words:
        slack = (margin - costs[:, :, words - 1] - how.reserve) / how.temperature
        kept = torch.cat([torch.zeros_like(slack[:, :1]), -slack], 1)
        losses.append(how.temperature * torch.logsumexp(kept, 1))
    return torch.stack(losses).mean(0)


def leads_of(said: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Label minus each rival, (texts, rivals, nodes)."""
    classes = said.shape[2]
    texts = torch.arange(len(said), device=said.device)
    rivals = (labels[:, None] + torch.arange(1, classes, device=said.device)) % classes
    return said[texts, :, labels][:, None] - said[texts[:, None], :, rivals]


def costs_of(
    leads: Sequence[torch.Tensor], empty: torch.Tensor, weights: Sequence[float], most: int
) -> torch.Tensor:
    """What 1, 2, ..., ``most`` changed words cost at worst, (texts, rivals, most).

    The tree of `ranmask.certificates.pyramid`, with gradients: each node's cost goes to the dearest
    segment in it, from the finest upwards.
    """
    costs = torch.zeros_like(leads[-1]).masked_fill(empty[:, None], NEVER)
    for level in reversed(range(len(leads))):
        if weights[level]:
            below = costs.unflatten(2, (2**level, -1))
            dearest = below.argmax(3, keepdim=True)
            fall = weights[level] * (1 + leads[level])
            costs = below.scatter_add(3, dearest, fall[..., None]).flatten(2)
    return costs.topk(most, dim=2).values.clamp(min=0).cumsum(2)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    kept = argparse.RawDescriptionHelpFormatter
    command = argparse.ArgumentParser(description=__doc__, formatter_class=kept)
    actions = command.add_subparsers(dest="action", required=True)
    rows = actions.add_parser("prepare", help="write the rows")
    rows.add_argument("--data", type=Path, help="folder with agnews/, imdb/, ...")
    rows.add_argument("--output", type=Path, required=True)
    one = actions.add_parser("read", help="fine-tune an encoder and write what it says")
    one.add_argument("--corpus", choices=SETTINGS, required=True)
    one.add_argument("--encoder", required=True, help="folder")
    one.add_argument("--kind", choices=("whole", "segments", "sum"), required=True)
    one.add_argument("--work", type=Path, required=True, help="folder that prepare wrote")
    one.add_argument("--rows", type=int, help="of each part, to try it out")
    one.add_argument("--seconds", type=float, help="that training for the sum may take")
    return command


def main(arguments: Sequence[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    try:
        if given.action == "read":
            read(given)
            return
        data = given.data or data_folder()
        if data is None:
            raise DataError("there is no data folder: name it by --data or RANMASK_DATA")
        prepare(data, given.output)
    except (RanmaskError, OSError) as error:
        sys.exit(f"readers: {error}")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    main()

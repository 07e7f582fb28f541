"""Copies a second of a whole fresh-mask BERT-Attack run, beside what its parts can do.

    python -m benchmarks.attack_speed --host [--hide mask]           # a CPU: models cost nothing
    python -m benchmarks.attack_speed --device cuda --dtype float16  # a GPU: against the engine
    python -m benchmarks.attack_speed ... --workers 4                # of so many processes

``--host`` replaces every forward pass by made-up answers, and leaves out what a device would find
out by itself: what is left is the work of the host, with searches, tokens, masks, batches, votes
and files as they are, but for starting kernels.  Otherwise models compute, and the same
victim's copies are scored once more by themselves: the engine's own speed.

AG News test texts, evenly spread; all-MiniLM-L6-v2 with a random head, which is also the sentence
encoder and, with a random head, the language model; or those of folders.  ``--quick`` takes tiny
random BERTs, to see that all parts run.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.encoder import minilm, minilm_folder
from benchmarks.settings import machine
from ranmask import HuggingFaceClassifier, SmoothedClassifier
from ranmask.attacks.api import attack_loop
from ranmask.attacks.loop import AttackLoop
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.attacks.resources.sentence_encoders import HuggingFaceSentenceEncoder
from ranmask.attacks.runs import attack_rows, read_outcomes
from ranmask.attacks.victims import SmoothedVictim
from ranmask.data import load_corpus
from ranmask.data.rows import Row, RowSource
from ranmask.models.gpu import scoring
from ranmask.runs.shards.run import Sharding
from ranmask.runs.task import RunEvents
from ranmask.words import documents

RATE = 0.9
CLASSES = 4
GPU_TOKENS = 1 << 17  # of a batch, as on a GPU
PARTS = 4  # shards of each process
_LOADING = 300  # seconds that a worker waits for the others
HIDDEN = 8  # numbers of a made-up sentence vector


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.attack_speed", description=__doc__)
    parser.add_argument("--host", action="store_true", help="models cost nothing")
    parser.add_argument("--quick", action="store_true", help="a tiny random BERT")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    parser.add_argument("--model", type=Path, help="a classifier with 4 classes")
    parser.add_argument("--lm", type=Path, help="a masked language model")
    parser.add_argument("--hide", default="drop", choices=("drop", "mask"))
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--masks", type=int, default=100)
    parser.add_argument("--together", type=int, default=None, help="the library's own, if not said")
    parser.add_argument("--most-queries", type=int, default=None)
    parser.add_argument("--workers", type=int, help="processes, each with its own models")
    options = parser.parse_args()
    print(json.dumps(run(options)), flush=True)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """One run of the attack; its pace, and on a device the engine's."""
    texts = load_corpus("agnews", "test").texts
    texts = [texts[row * len(texts) // options.texts] for row in range(options.texts)]
    smoothed, resources = _made(options)
    labels = [result.label for result in smoothed.predict(texts)]
    rows = list(map(Row, range(1, 1 + len(texts)), texts, labels))
    engine: Any = None
    sharding = None
    if options.workers:
        sharding = Sharding(-(-len(rows) // (PARTS * options.workers)), workers=options.workers)
    else:
        engine = _loop(smoothed, resources, options)
    loaded = 0.0, 0.0

    def started(total: int, done: int) -> None:
        nonlocal loaded
        loaded = time.perf_counter(), time.process_time()

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as ready:
        attack_rows(
            engine or functools.partial(_in_worker, options, Path(ready)),
            RowSource(rows, len(rows)),
            output := Path(folder) / "outcomes",
            sharding=sharding,
            events=RunEvents(started=started),
        )
        wall, own = time.perf_counter() - loaded[0], time.process_time() - loaded[1]
        copies = sum(outcome.queries for outcome in read_outcomes(output)) * options.masks
    return {
        "machine": machine(),
        "device": "none" if options.host else _device_name(options.device),
        "processes": options.workers or 1,
        **{
            name: getattr(options, name) for name in ("hide", "texts", "masks", "together", "dtype")
        },
        "copies": copies,
        "seconds": round(wall, 2),
        "copies_a_second": round(copies / wall),
        **({} if options.workers else _own(copies, own)),
        **({} if options.host else _engine(smoothed, texts, copies / wall)),
    }


def _made(options: argparse.Namespace) -> tuple[SmoothedClassifier, AttackResources]:
    return _host_only(options) if options.host else _on_device(options)


def _in_worker(options: argparse.Namespace, ready: Path) -> AttackLoop:
    """What a worker runs; it begins when all have loaded, so that no loading is in the time."""
    smoothed, resources = _made(options)
    (ready / str(os.getpid())).touch()
    last = time.monotonic() + _LOADING
    while len(list(ready.iterdir())) < options.workers and time.monotonic() < last:
        time.sleep(0.05)
    return _loop(smoothed, resources, options)


def _loop(
    smoothed: SmoothedClassifier, resources: AttackResources, options: argparse.Namespace
) -> AttackLoop:
    settings = {} if options.together is None else {"together": options.together}
    return attack_loop(
        SmoothedVictim(smoothed),
        "bert-attack",
        resources=resources,
        most_queries=options.most_queries,
        **settings,
    )


def _own(copies: int, seconds: float) -> dict[str, Any]:
    return {
        "processor_seconds": round(seconds, 2),
        "copies_a_processor_second": round(copies / seconds),
    }


def _engine(smoothed: SmoothedClassifier, texts: list[str], attack: float) -> dict[str, Any]:
    """Copies a second of the same model alone, masks drawn before; best of five."""
    copies = list(smoothed.copies(documents(texts)))
    if smoothed.base.model.device.type == "cuda":  # enough to keep it busy
        copies *= max(1, (1 << 18) // sum(map(len, copies)))
    smoothed.score(copies)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        smoothed.score(copies)
        seconds.append(time.perf_counter() - start)
    engine = sum(map(len, copies)) / min(seconds)
    return {"engine_copies_a_second": round(engine), "share_of_engine": round(attack / engine, 3)}


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else device


def _drawn(kind: str, tokenizer: Any, width: int = 16) -> Any:
    """A tiny BERT with random weights."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=1,
        hidden_size=width,
        num_attention_heads=2,
        intermediate_size=2 * width,
        num_labels=CLASSES,
        id2label={0: "World", 1: "Sports", 2: "Business", 3: "Sci/Tech"},
    )
    return getattr(transformers, kind)(config).eval()


def _smoothed(classifier: HuggingFaceClassifier, options: argparse.Namespace) -> SmoothedClassifier:
    return SmoothedClassifier(
        classifier, mask_rate=RATE, masks=options.masks, sampling="fresh", ensemble="vote"
    )


def _on_device(options: argparse.Namespace) -> tuple[SmoothedClassifier, AttackResources]:
    """Models that compute."""
    folder = minilm_folder()
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    if options.quick:
        model = _drawn("BertForSequenceClassification", tokenizer)
        lm = _drawn("BertForMaskedLM", tokenizer)
        sentences = _drawn("BertModel", tokenizer)
    else:
        model, _ = minilm(options.model)
        lm = transformers.AutoModelForMaskedLM.from_pretrained(options.lm or folder)
        sentences = transformers.AutoModel.from_pretrained(folder)
    classifier = HuggingFaceClassifier(
        model.to(options.device, getattr(torch, options.dtype)),
        tokenizer,
        hide=options.hide,
        backend="packed",
    )
    where = (options.device, torch.float16 if options.device == "cuda" else torch.float32)
    resources = AttackResources(  # as they are loaded
        masked_lm=MaskedLM(lm.eval().to(*where), tokenizer),
        sentence_encoder=HuggingFaceSentenceEncoder(sentences.eval().to(*where), tokenizer),
    )
    return _smoothed(classifier, options), resources


# -- models that cost nothing ------------------------------------------------------------------


def _host_only(options: argparse.Namespace) -> tuple[SmoothedClassifier, AttackResources]:
    """Everything as on a GPU but for the numbers that it would compute."""
    torch.set_num_threads(1)  # what is left of it: threads that wait would count as work
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(minilm_folder())
    model = _drawn("BertForSequenceClassification", tokenizer)
    classifier = HuggingFaceClassifier(
        model, tokenizer, hide=options.hide, backend="packed", batch_tokens=GPU_TOKENS
    )
    assert classifier.tolerance < 1e-6  # found out now, by the real model
    classifier._packed = _NoScorer(classifier)
    lm = _NoLM(_drawn("BertForMaskedLM", tokenizer), tokenizer)
    sentences = HuggingFaceSentenceEncoder(_drawn("BertModel", tokenizer, HIDDEN), tokenizer)
    alike = torch.ones(1, 1, HIDDEN)
    _answering(sentences.model, lambda size: {"last_hidden_state": alike.expand(*size, HIDDEN)})
    resources = AttackResources(masked_lm=lm, sentence_encoder=sentences)
    return _smoothed(classifier, options), resources


class _NoEncoder:
    """`PackedEncoder` without numbers."""

    device = torch.device("cpu")

    def refresh(self) -> None:
        pass

    def start(self, tokens: Any, positions: Any, types: Any) -> None:
        pass

    def logits(self, start: None, index: None, packing: Any) -> torch.Tensor:
        return torch.empty(len(packing.rows), CLASSES)


class _NoScorer(scoring.PackedScorer):
    """A scorer whose logits follow from the lengths of rows; most speak for class 0."""

    def __init__(self, classifier: HuggingFaceClassifier) -> None:
        packed: Any = classifier._packed
        vars(self).update(vars(packed))
        self._model: Any = _NoEncoder()
        random = np.random.default_rng(0)
        self._table = random.normal(size=(1024, CLASSES)).astype(np.float32)
        self._table[::2, 0] += 3
        scoring._to_host = self._made_up
        # Found on the device, as is what rows begin with:
        scoring.SharedRows.table = lambda shared: (None, None, None)
        torch.repeat_interleave = _repeated
        self._lengths: list[Any] = []

    def _all(self, lengths: Any, tokens: int, begin: Any) -> torch.Tensor:
        self._lengths.append(lengths)
        return super()._all(lengths, tokens, lambda packing: (None, None))

    def _made_up(self, logits: torch.Tensor) -> Any:
        lengths = np.concatenate(self._lengths)
        self._lengths = []
        assert len(lengths) == len(logits)
        return lambda: self._table[lengths].astype(np.float64)


def _repeated(values: torch.Tensor, *counts: torch.Tensor, output_size: int) -> torch.Tensor:
    """`torch.repeat_interleave` without numbers."""
    return values.new_zeros(output_size)


class _NoLM(MaskedLM):
    """Names whole words, as a language model mostly does, that follow from the place in a text."""

    def _logits(self, batch: Any, row: Any, place: Any) -> Any:
        return place[:, None]

    def _likeliest(self, logits: Any, count: int) -> list[list[int]]:
        numbers = (7919 * logits + 31 * np.arange(count)) % len(self._whole_words)
        found: list[list[int]] = self._whole_words[numbers].tolist()
        return found

    @cached_property
    def _whole_words(self) -> Any:
        names = enumerate(self._names)
        return np.array([number for number, name in names if name.isascii() and name.isalpha()])


def _answering(model: Any, answer: Callable[[torch.Size], dict[str, torch.Tensor]]) -> None:
    """Let a model answer by the shape of what it is given."""
    model.forward = lambda input_ids, **_: SimpleNamespace(**answer(input_ids.shape))


if __name__ == "__main__":
    main()

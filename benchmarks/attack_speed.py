"""Copies a second of a whole fresh-mask BERT-Attack run, beside what its parts can do.

    python -m benchmarks.attack_speed --host                      # a CPU: models cost nothing
    python -m benchmarks.attack_speed --device cuda --dtype float16  # a GPU: against the engine

``--host`` replaces every forward pass by made-up answers and what runs on a device by tensors
without numbers (PyTorch's ``meta`` device): what is left is the work of the host, with searches,
tokens, masks, batches, votes and files as they are.  Otherwise models compute, and the same
victim's copies are scored once more by themselves: the engine's own speed.

AG News test texts, evenly spread; all-MiniLM-L6-v2 with a random head, which is also the sentence
encoder and, with a random head, the language model.  ``--quick`` takes a tiny random BERT.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.encoder import minilm, minilm_folder
from benchmarks.settings import machine
from ranmask import HuggingFaceClassifier, SmoothedClassifier
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.attacks.resources.sentence_encoders import HuggingFaceSentenceEncoder
from ranmask.attacks.runs import attack_file
from ranmask.attacks.victims import SmoothedVictim
from ranmask.data import load_corpus
from ranmask.data.rows import Row, RowSource
from ranmask.models.gpu import scoring
from ranmask.models.gpu.forward import Start
from ranmask.words import documents

RATE = 0.9
CLASSES = 4
GPU_TOKENS = 1 << 17  # of a batch, as on a GPU
HIDDEN = 8  # numbers of a made-up sentence vector


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.attack_speed", description=__doc__)
    parser.add_argument("--host", action="store_true", help="models cost nothing")
    parser.add_argument("--quick", action="store_true", help="a tiny random BERT")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    parser.add_argument("--hide", default="drop", choices=("drop", "mask"))
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--masks", type=int, default=100)
    parser.add_argument("--together", type=int, default=None, help="the library's own, if not said")
    parser.add_argument("--most-queries", type=int, default=None)
    options = parser.parse_args()
    print(json.dumps(run(options)), flush=True)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """One run of the attack; its pace, and on a device the engine's."""
    smoothed, resources = _host_only(options) if options.host else _on_device(options)
    victim = SmoothedVictim(smoothed)
    texts = load_corpus("agnews", "test").texts
    texts = [texts[row * len(texts) // options.texts] for row in range(options.texts)]
    labels = [result.label for result in smoothed.predict(texts)]
    rows = [Row(number, text, label) for number, (text, label) in enumerate(zip(texts, labels), 1)]
    settings = {} if options.together is None else {"together": options.together}
    with tempfile.TemporaryDirectory() as folder:
        wall, own = time.perf_counter(), time.process_time()
        attack_file(
            victim,
            RowSource(rows, len(rows)),
            Path(folder) / "outcomes.jsonl",
            "bert-attack",
            resources=resources,
            most_queries=options.most_queries,
            **settings,
        )
        wall, own = time.perf_counter() - wall, time.process_time() - own
    copies = victim.copies_scored
    return {
        "machine": machine(),
        "device": "none" if options.host else _device_name(options.device),
        **{name: getattr(options, name) for name in ("hide", "texts", "masks", "together", "dtype")},
        "copies": copies,
        "seconds": round(wall, 2),
        "processor_seconds": round(own, 2),
        "copies_a_second": round(copies / wall),
        "copies_a_processor_second": round(copies / own),
        **({} if options.host else _engine(smoothed, texts, copies / wall)),
    }


def _engine(smoothed: SmoothedClassifier, texts: list[str], attack: float) -> dict[str, Any]:
    """Copies a second of the same model alone, masks drawn before; best of five."""
    copies = list(smoothed.copies(documents(texts)))
    copies *= max(1, (1 << 17) // sum(map(len, copies)))
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


def _drawn(kind: str, tokenizer: Any, layers: int = 1, width: int = 16) -> Any:
    """A tiny BERT with random weights."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=layers,
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
        model, _ = minilm()
        lm = transformers.AutoModelForMaskedLM.from_pretrained(folder)
        sentences = transformers.AutoModel.from_pretrained(folder)
    classifier = HuggingFaceClassifier(
        model.to(options.device, getattr(torch, options.dtype)), tokenizer, hide=options.hide
    )
    resources = AttackResources(
        masked_lm=MaskedLM(lm.eval().to(options.device), tokenizer),
        sentence_encoder=HuggingFaceSentenceEncoder(sentences.eval().to(options.device), tokenizer),
    )
    return _smoothed(classifier, options), resources


# -- models that cost nothing ------------------------------------------------------------------


def _host_only(options: argparse.Namespace) -> tuple[SmoothedClassifier, AttackResources]:
    """Everything as on a GPU but for the numbers that it would compute."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(minilm_folder())
    model = _drawn("BertForSequenceClassification", tokenizer)
    classifier = HuggingFaceClassifier(
        model, tokenizer, hide=options.hide, backend="packed", batch_tokens=GPU_TOKENS
    )
    assert classifier.tolerance == 0  # found out now, by the real model
    classifier._packed = _NoScorer(classifier)
    resources = AttackResources(
        masked_lm=_NoLM(_drawn("BertForMaskedLM", tokenizer), tokenizer),
        sentence_encoder=_NoSentences(_drawn("BertModel", tokenizer, width=HIDDEN), tokenizer),
    )
    return _smoothed(classifier, options), resources


class _NoEncoder:
    """`PackedEncoder` without numbers."""

    device = torch.device("meta")

    def refresh(self) -> None:
        pass

    def start(self, tokens: Any, positions: Any, types: Any) -> Start:
        return Start(tokens, positions)

    def logits(self, start: Start, index: Any, packing: Any) -> torch.Tensor:
        return torch.empty(len(packing.rows), CLASSES, device="meta")


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
        self._lengths: list[Any] = []

    def _all(self, lengths: Any, tokens: int, begin: Any) -> torch.Tensor:
        self._lengths.append(lengths)
        return super()._all(lengths, tokens, begin)

    def _made_up(self, logits: torch.Tensor) -> Any:
        lengths = np.concatenate(self._lengths)
        self._lengths = []
        assert len(lengths) == len(logits)
        return lambda: self._table[lengths].astype(np.float64)


class _NoLM(MaskedLM):
    """Names tokens that follow from the place in a text."""

    def outputs(self, rows: Any) -> Any:
        self.model = _forward_free(self.model, lambda shape: {"logits": torch.empty(*shape, 1)})
        return super().outputs(rows)

    def _likeliest(self, logits: Any, count: int) -> list[list[int]]:
        known = len(self._names)
        return [
            [(1999 + 7919 * place + 31 * step) % known for step in range(count)]
            for place in range(len(logits))
        ]


class _NoSentences(HuggingFaceSentenceEncoder):
    """All sentences are alike."""

    def outputs(self, rows: Any) -> Any:
        ones = torch.ones(1, 1, HIDDEN)
        free = lambda shape: {"last_hidden_state": ones.expand(*shape, HIDDEN)}  # noqa: E731
        self.model = _forward_free(self.model, free)
        return super().outputs(rows)


def _forward_free(model: Any, answer: Any) -> Any:
    """A model that answers by the shape of what it is given."""
    if isinstance(model, SimpleNamespace | _Free):
        return model
    return _Free(model, answer)


class _Free:
    def __init__(self, model: Any, answer: Any) -> None:
        self.config, self.device, self._answer = model.config, model.device, answer

    def __call__(self, input_ids: torch.Tensor, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(**self._answer(input_ids.shape))


if __name__ == "__main__":
    main()

"""What protecting a model costs: texts a second of a plain encoder, protected, and of other ways.

    python -m benchmarks.protect_speed [RESULTS.json] [--model DIR] [--device cuda] [--quick]

All take the same texts, in rounds: each round has other texts and another order, and its ratios are
its own, so that a machine that is busy for a while does not decide them.  Medians over the rounds,
in wall time and in processor time.  Without ``--model`` the encoder is all-MiniLM-L6-v2 where its
package is installed, else a random one of its shape; texts are of AG News, else made up.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks import encoder, published
from benchmarks.settings import Skipped, machine
from ranmask import HuggingFaceClassifier, ProtectedClassifier, SmoothedClassifier, load_default
from ranmask.data import data_folder, load_corpus
from ranmask.models.blend import Blend
from ranmask.models.readers import ModelReader
from ranmask.words import document

PUBLISHED = "published"
RATE = 0.9  # of words that the published procedure masks
WEIGHT = 2.0  # what the encoder weighs beside the table; time does not depend on it


@dataclass(frozen=True)
class Sizes:
    """How much is measured on a device: texts a round, texts in a plain batch, rounds."""

    texts: int
    batch: int
    rounds: int


SHARE = 20  # of the strings of the published procedure, one in so many is measured
SIZES = {"cpu": Sizes(512, 32, 3), "cuda": Sizes(8192, 512, 7)}
QUICK = Sizes(32, 16, 2)


@dataclass(frozen=True)
class Way:
    """One way to get labels, or certificates, for texts; of each round's, it takes the first."""

    name: str
    run: Callable[[Sequence[str]], object]
    texts: int


def run(quick: bool, model: Path | None = None, device: str = "cpu") -> dict[str, Any]:
    """Measure; ``quick`` takes a few texts."""
    sizes = QUICK if quick else SIZES[device]
    what, ways = _ways(model, device, sizes)
    blocks, source = _blocks(sizes)
    # Measures numbers, and sees the shapes of batches; a way that is not the first meets them all.
    first = {way.name: _paces(way, blocks[0]) for way in ways}
    print(f"  before: {_shown(first)}", flush=True)
    rounds: list[dict[str, tuple[float, float]]] = []
    for number, texts in enumerate(blocks[1:]):
        turn = number % len(ways)
        rounds.append({way.name: _paces(way, texts) for way in ways[turn:] + ways[:turn]})
        print(f"  round {number + 1} of {sizes.rounds}: {_shown(rounds[-1])}", flush=True)
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else machine(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "model": what,
        "source": source,
        "rounds": sizes.rounds,
        "batch": sizes.batch,
        "ways": [_figures(way, rounds) for way in ways],
    }


def section(figures: dict[str, Any]) -> str:
    """These figures as a part of docs/performance.md."""
    lines = [
        "## What protecting a model costs",
        "",
        f"{figures['model']}, float32, {figures['source']}, {figures['rounds']} rounds with other "
        "texts and another order each; medians of the rounds' own ratios. *plain*: transformers' "
        "tokenizer and model, texts sorted by length. *reader*: the same model as ranmask asks it. "
        "*protected*: with a word table beside it (`ProtectedClassifier`). *as `news` was*: a "
        "1-layer encoder and a table, each asked about every word by itself. *published*: 1,000 + "
        "5,000 masked strings of a text through the 22.7M encoder, of which one in "
        f"{SHARE} is measured. *processor time* adds up threads, and leaves out what other "
        "programs took. A round before these, in which the model's numbers are measured and "
        "batches of each shape are checked, once for a process, is not counted.",
    ]
    for some in (figures, *figures.get("also", ())):  # the same on other machines
        rounds = "" if some is figures else f" {some['model']}, {some['rounds']} rounds."
        lines += [
            "",
            f"{some['device']}; threads: {some['threads']}; torch {some['torch']}; plain "
            f"batches of {some['batch']} texts.{rounds}{some.get('note', '')}",
            "",
            "| | texts a round | texts a second | times plain's time | "
            "times its processor time (range) |",
            "|---|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {way['name']} | {way['texts']:,} | {_number(way['texts_per_second'])} | "
            f"{_number(way['times_wall'])} | {_number(way['times_processor'])} "
            f"({' to '.join(map(_number, way['range_processor']))}) |"
            for way in some["ways"]
        ]
    lines += [
        "",
        "The range of the reader and of the protected model is wide, because the first of the two "
        "to meet a batch of a new shape checks it. Protecting hundreds of texts at a time costs "
        "nothing that shows: ranmask computes rows of one length, without padding, and "
        "the last layer for one token only. One text at a time it costs more, because a row is "
        "computed in the company of three others (of itself, where there are none): libraries give "
        "it other bits alone, and radius 0 promises the same label again.",
    ]
    return "\n".join(lines) + "\n"


def _ways(model: Path | None, device: str, sizes: Sizes) -> tuple[str, list[Way]]:
    what, classifier, tokenizer = _encoder(model)
    classifier = classifier.to(device)
    labels = load_default("news-words").labels or ()
    classifier.config.id2label = dict(enumerate(labels))
    reader = ModelReader(HuggingFaceClassifier(classifier, tokenizer))
    protected = ProtectedClassifier.beside(load_default("news-words"), reader, (WEIGHT,))
    news = load_default("news")
    assert isinstance(news, ProtectedClassifier)
    assert isinstance(news.reader, ModelReader)
    former = SmoothedClassifier(
        Blend([news.reader.base.configured(hide="drop"), news.base]), keep=1, ensemble="score"
    )

    def plain(texts: Sequence[str]) -> None:
        order = sorted(texts, key=len)
        for start in range(0, len(order), sizes.batch):
            batch = tokenizer(
                order[start : start + sizes.batch],
                padding=True,
                truncation=True,
                return_tensors="pt",
            )
            with torch.inference_mode():
                classifier(**batch.to(device)).logits.softmax(dim=1).tolist()

    def one_by_one(run: Callable[[Sequence[str]], object]) -> Callable[[Sequence[str]], object]:
        return lambda texts: [run([text]) for text in texts]

    def sampled(texts: Sequence[str]) -> None:
        for text in texts:
            published.votes(classifier, tokenizer, text, RATE, share=SHARE)

    ways = [
        Way("plain", plain, sizes.texts),
        Way(
            "reader",
            lambda texts: reader.read([document(text) for text in texts], len(labels)),
            sizes.texts,
        ),
        Way("protected, `certify`", protected.certify, sizes.texts),
        Way("`news`, the default, `certify`", news.certify, sizes.texts),
        Way("as `news` was, `certify`", former.certify, max(1, sizes.texts // 4)),
    ]
    one = [
        Way("plain, one at a time", one_by_one(plain), sizes.texts // 16),
        Way(
            "protected, `certify`, one at a time", one_by_one(protected.certify), sizes.texts // 16
        ),
    ]
    return what, [*ways, *one, Way(PUBLISHED, sampled, 1 if device == "cpu" else 4)]


def _encoder(folder: Path | None) -> tuple[str, Any, Any]:
    """What it is in words, the model, and its tokenizer."""
    try:
        model, tokenizer = encoder.minilm(folder)
        return "all-MiniLM-L6-v2 (22.7M parameters) with a 4-class head", model, tokenizer
    except Skipped:
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=30522,
            hidden_size=384,
            num_hidden_layers=6,
            num_attention_heads=12,
            intermediate_size=1536,
            num_labels=4,
        )
        model = transformers.BertForSequenceClassification(config).eval()
        news = load_default("news")
        assert isinstance(news, ProtectedClassifier)
        assert isinstance(news.reader, ModelReader)
        base: Any = news.reader.base
        return "A random encoder of all-MiniLM-L6-v2's shape", model, base.tokenizer


def _blocks(sizes: Sizes) -> tuple[list[list[str]], str]:
    """Texts for each round, and for one before them that does not count; where they are from."""
    wanted = sizes.texts * (sizes.rounds + 1)
    if data_folder() is not None:
        texts, source = list(load_corpus("agnews", "test").texts), "AG News test texts"
    else:
        draw = random.Random(0)
        letters = "etaoinshrdlucmfwypvbgkjqxz"
        words = ["".join(draw.choices(letters, k=draw.randint(2, 8))) for _ in range(20_000)]
        drawn = [draw.choices(words, k=draw.randint(20, 59)) for _ in range(wanted)]
        texts, source = [" ".join(some) for some in drawn], "made-up texts of 20 to 59 words"
    texts = [texts[place % len(texts)] for place in range(wanted)]
    return [texts[start : start + sizes.texts] for start in range(0, wanted, sizes.texts)], source


def _paces(way: Way, texts: Sequence[str]) -> tuple[float, float]:
    """Seconds a text: on the wall, and of processors."""
    some = texts[: way.texts]
    wall, processor = time.perf_counter(), time.process_time()
    way.run(some)
    spent = time.perf_counter() - wall, time.process_time() - processor
    times = SHARE if way.name == PUBLISHED else 1
    return times * spent[0] / len(some), times * spent[1] / len(some)


def _figures(way: Way, rounds: Sequence[dict[str, tuple[float, float]]]) -> dict[str, Any]:
    def times(kind: int) -> list[float]:
        return sorted(one[way.name][kind] / one["plain"][kind] for one in rounds)

    return {
        "name": way.name,
        "texts": way.texts,
        "texts_per_second": statistics.median(1 / one[way.name][0] for one in rounds),
        "times_wall": statistics.median(times(0)),
        "times_processor": statistics.median(times(1)),
        "range_processor": [times(1)[0], times(1)[-1]],
    }


def _shown(measured: dict[str, tuple[float, float]]) -> str:
    return "; ".join(f"{name} {1000 * wall:.3f} ms" for name, (wall, _) in measured.items())


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, help="where to write the figures, as JSON")
    parser.add_argument("--model", type=Path, help="a folder with an encoder and its tokenizer")
    parser.add_argument("--device", choices=SIZES, default="cpu")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    figures = run(given.quick, given.model, given.device)
    if given.results is not None:
        given.results.write_text(json.dumps(figures, indent=2) + "\n")
    print(section(figures))


if __name__ == "__main__":
    main()

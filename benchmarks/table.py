"""Texts that word tables certify in a second: in one process, and in two side by side.

By the library, complete results in memory, and by the command line, from a Parquet file to JSON
lines on disk.  Texts are all different; labels are not looked at.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from benchmarks.settings import data_folder
from ranmask import load_default
from ranmask.data import load_corpus

CASES = {"news-words": ("agnews", "train", 60_000), "reviews-words": ("imdb", "test", 5_000)}
TEXTS_A_CALL = 5_000
_BEST_OF = 3
TARGET = 20_000  # texts of news a second on two cores


def run(quick: bool) -> dict[str, Any]:
    """Measure; ``quick`` takes a twentieth of the texts."""
    data_folder()
    rows = []
    for model, (corpus, split, most) in CASES.items():
        texts = load_corpus(corpus, split).take(most // 20 if quick else most).texts
        row: dict[str, Any] = {
            "model": model,
            "corpus": f"{corpus}/{split}",
            "texts": len(texts),
            "words_a_text": round(sum(len(text.split()) for text in texts) / len(texts), 1),
        }
        for processes in (1, 2):
            measured = [_by_the_library(model, texts, processes) for _ in range(_BEST_OF)]
            for place, way in enumerate(("first", "again")):
                best = min(seconds[place] for seconds in measured)
                row[f"{way}_{processes}"] = round(processes * len(texts) / best)
            best = min(_by_the_command(model, texts, processes) for _ in range(_BEST_OF))
            row[f"command_{processes}"] = round(processes * len(texts) / best)
        rows.append(row)
        print(f"  {row}", flush=True)
    return {"models": rows, "target": TARGET}


def section(figures: dict[str, Any]) -> str:
    """These figures as a part of docs/performance.md."""
    lines = [
        "## Word tables: texts a second",
        "",
        "Complete results (label, votes, scores, radius, critical words), by "
        f"`certify` on {TEXTS_A_CALL:,} texts a call: *first* in a new process, to which every "
        "word is new; *again*, the same texts once more. *command*: `ranmask certify --input "
        "--output` from a Parquet file to JSON lines, with start-up. Two processes each certify "
        f"all of the texts. Best of three. Target: {figures['target']:,} news texts a second on "
        "two cores.",
        "",
        "| model | texts | words a text | processes | first | again | command |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| `{row['model']}` | {row['texts']:,} of {row['corpus']} | {row['words_a_text']} | "
        f"{processes} | {row[f'first_{processes}']:,} | {row[f'again_{processes}']:,} | "
        f"{row[f'command_{processes}']:,} |"
        for row in figures["models"]
        for processes in (1, 2)
    ]
    return "\n".join(lines) + "\n"


def _by_the_library(model: str, texts: list[str], processes: int) -> tuple[float, float]:
    """Seconds until the last process has certified all texts once; and once more."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_certify, args=(model, texts, barrier, answers))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    seconds = [answers.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    return max(first for first, _ in seconds), max(again for _, again in seconds)


def _certify(model: str, texts: list[str], barrier: Barrier, answers: Queue[Any]) -> None:
    smoothed = load_default(model)
    seconds = []
    for _ in range(2):
        barrier.wait()
        start = time.perf_counter()
        for place in range(0, len(texts), TEXTS_A_CALL):
            smoothed.certify(texts[place : place + TEXTS_A_CALL])
        seconds.append(time.perf_counter() - start)
    answers.put(tuple(seconds))


def _by_the_command(model: str, texts: list[str], processes: int) -> float:
    """Seconds from the start of the commands until the last of them has ended."""
    import pyarrow as pa
    from pyarrow import parquet

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "texts.parquet"
        parquet.write_table(pa.table({"text": texts}), source)
        command = [sys.executable, "-m", "ranmask.cli", "certify", "--model", model]
        command += ["--input", str(source), "--output"]
        start = time.perf_counter()
        started = [
            subprocess.Popen([*command, f"{folder}/{number}.jsonl"], stderr=subprocess.DEVNULL)
            for number in range(processes)
        ]
        if any(one.wait() for one in started):
            raise RuntimeError(f"the command failed for {model}")
        return time.perf_counter() - start

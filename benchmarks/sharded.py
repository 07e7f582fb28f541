"""Memory and pace of a sharded run over many rows: ``python -m benchmarks.sharded --rows 1000000``.

Texts of AG News (or made-up ones, where the corpus is absent), over and over.  Resident memory of
the driver and of the largest worker is read all the time; told is the most that each needed until
10 %, 50 % and 99 % of the rows, and in all, with the summary at the end.  With ``--kill`` the
driver is killed at a third and started again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "ranmask.cli"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shard-rows", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--model", default="news-words")
    parser.add_argument("--engine", default="local")
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        source, folder = Path(place) / "texts.csv", Path(place) / "run"
        write_texts(source, given.rows)
        print(json.dumps(measured(given, source, folder), indent=1))


def write_texts(path: Path, rows: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(itertools.islice(itertools.cycle(labelled_texts()), rows))


def labelled_texts() -> list[tuple[str, str]]:
    from ranmask.data import load_corpus
    from ranmask.errors import RanmaskError

    try:
        corpus = load_corpus("agnews", "test")
    except RanmaskError:
        ending = "with a bad ending and good music in a small theatre of the city"
        return [(f"good film number {number} {ending}", "World") for number in range(5000)]
    pairs = zip(corpus.texts, corpus.labels, strict=True)
    return [(str(text), corpus.label_names[label]) for text, label in pairs]


def measured(given: argparse.Namespace, source: Path, folder: Path) -> dict[str, Any]:
    command = [*COMMAND, "certify", "--model", given.model, "--input", str(source)]
    command += ["--label-column", "label", "--output", str(folder), "--engine", given.engine]
    command += ["--shard-rows", str(given.shard_rows), "--workers", str(given.workers)]
    start, worked = time.perf_counter(), _core_seconds()
    readings = list(_watched(command, folder, given))
    if given.kill:
        readings += _watched(command, folder, given, again=True)
    seconds, worked = time.perf_counter() - start, _core_seconds() - worked
    subprocess.run([*COMMAND, "runs", "verify", str(folder)], check=True)
    return {
        "rows": given.rows,
        "model": given.model,
        "engine": given.engine,
        "workers": given.workers,
        "shard_rows": given.shard_rows,
        "seconds": round(seconds, 1),
        "rows_per_second": round(given.rows / seconds),
        # What actors of Ray take is not ours to see.
        "rows_per_core_second": None if given.engine == "ray" else round(given.rows / worked),
        "parquet_bytes_per_row": round(
            sum(path.stat().st_size for path in folder.glob("part-*")) / given.rows, 1
        ),
        "megabytes": {f"{share:.0%}": _at(readings, share) for share in (0.1, 0.5, 0.99, 1)},
    }


def _watched(
    command: list[str], folder: Path, given: argparse.Namespace, again: bool = False
) -> Iterator[tuple[float, float, float]]:
    """Share of rows done, megabytes of the driver, megabytes of the largest worker."""
    shards = -(-given.rows // given.shard_rows)
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        share = len(list(folder.glob("part-*.parquet"))) / shards
        workers = [_megabytes(pid) for pid in _children(process.pid)]
        yield share, _megabytes(process.pid), max(workers, default=0.0)
        if given.kill and not again and share > 1 / 3:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return
        time.sleep(0.25)
    if process.returncode:
        raise RuntimeError(f"the run failed with code {process.returncode}")


def _at(readings: list[tuple[float, float, float]], share: float) -> dict[str, float]:
    """The largest readings until a share of the rows."""
    until = [one for one in readings if one[0] <= share + 1e-9]
    return {
        "driver": round(max(one[1] for one in until), 1),
        "worker": round(max(one[2] for one in until), 1),
    }


def _core_seconds() -> float:
    """What processes that have ended took of any core: other work on the machine hardly counts."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(child) for child in found.read_text().split()]
    except OSError:
        return []  # it has just ended


def _megabytes(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass  # it has just ended
    return 0.0


if __name__ == "__main__":
    main()

"""What requests lose while a job runs, and what is left of the job while requests come.

    python -m benchmarks.job_priority [--model news-words] [--seconds 3] [--rounds 6]
    python -m benchmarks.job_priority --before CHECKOUT

Starts ``ranmask serve --jobs`` and asks it with ``wrk``: over one connection, whose next request
follows each answer at once, and over 16; without a job, then beside one.  Rates are compared
within a round, for the machine may be busy with other work.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.service import compiled_load, port_of, read_log, serving, short_texts
from benchmarks.settings import Skipped

MODEL = "news-words"
CONNECTIONS = (1, 16)
_ROWS = 500_000


def run(quick: bool = False) -> dict[str, Any]:
    """Figures of this checkout."""
    return compare(MODEL, 3.0, 1 if quick else 6, {"now": Path(__file__).parents[1]})


def section(figures: dict[str, Any]) -> str:
    """A part of docs/performance.md."""
    rounds = max(map(len, figures["rounds"].values()))
    lines = [
        "## Jobs beside requests",
        "",
        f"`ranmask serve --jobs` with `{figures['model']}`, one process, asked by `wrk` over one "
        "connection, whose next request follows each answer at once, and over 16; without a job, "
        f"then beside one (`python -m benchmarks.job_priority`). Medians of {rounds} rounds of "
        f"{figures['seconds']:.0f} s; *left* is compared within a round.{figures.get('note', '')}",
        "",
        "| | connections | answers a second, alone and beside a job | left | p99, alone and beside "
        "| rows of the job a second, alone and beside | load |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in figures["median"].items():
        lines += [
            f"| {name} | {number} | {row[f'alone_{number}']:,.0f}, {row[f'beside_{number}']:,.0f} "
            f"| {row[f'left_{number}']:.2f} | {row[f'alone_{number}_p99_ms']:.0f}, "
            f"{row[f'beside_{number}_p99_ms']:.0f} ms "
            f"| {row['rows']:,.0f}, {row[f'rows_beside_{number}']:,.0f} | {row['load']:.1f} |"
            for number in CONNECTIONS
        ]
    return "\n".join(lines) + "\n"


def compare(model: str, seconds: float, rounds: int, sources: dict[str, Path]) -> dict[str, Any]:
    """Figures of each checkout, by turns; what is compared is the median of all rounds."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
    for _ in range(rounds):
        for name, source in sources.items():
            found[name].append(measure(model, seconds, source))
    medians = {
        name: {key: statistics.median(one[key] for one in figures) for key in figures[0]}
        for name, figures in found.items()
    }
    return {"model": model, "seconds": seconds, "median": medians, "rounds": found}


def measure(model: str, seconds: float, source: Path) -> dict[str, float]:
    """Answers a second with and without a job, and rows a second of the job."""
    texts = short_texts()
    rows = itertools.islice(itertools.cycle(texts), _ROWS)
    body = "".join(json.dumps({"text": text}) + "\n" for text in rows).encode()
    with (
        tempfile.TemporaryDirectory() as jobs,
        serving(model, 1, sys.executable, source / "src", "--jobs", jobs) as (server, events),
    ):
        port = port_of(events)
        threading.Thread(target=read_log, args=(server, events), daemon=True).start()

        def rate(connections: int, figures: dict[str, float], name: str) -> None:
            load = compiled_load(server.pid, port, model, texts, connections, seconds)
            if load is None:
                raise Skipped("wrk is not installed")
            assert not load["not_200"] and not load["socket_errors"], load
            figures[f"{name}_{connections}"] = load["a_second"]
            figures[f"{name}_{connections}_p99_ms"] = load["p99_ms"]

        figures: dict[str, float] = {"load": os.getloadavg()[0]}
        rate(16, {}, "warming")
        for number in CONNECTIONS:
            rate(number, figures, "alone")
        job = asked(port, "POST", "jobs?name=rows.jsonl", body)["id"]
        while not asked(port, "GET", f"jobs/{job}")["rows_done"]:
            time.sleep(0.05)
        results = Path(jobs, job, "results.jsonl")
        figures["rows"] = rows_a_second(results, lambda: time.sleep(seconds))
        for number in CONNECTIONS:
            figures[f"rows_beside_{number}"] = rows_a_second(
                results, functools.partial(rate, number, figures, "beside")
            )
            left = figures[f"beside_{number}"] / figures[f"alone_{number}"]
            figures[f"left_{number}"] = round(left, 3)
        assert asked(port, "GET", f"jobs/{job}")["status"] == "running", "more rows are needed"
    return figures


def rows_a_second(results: Path, meanwhile: Callable[[], None]) -> float:
    """Of a job, while something else is done: lines of its file, for its state is told later."""
    before, begun = results.stat().st_size, time.monotonic()
    meanwhile()
    took = time.monotonic() - begun
    with results.open("rb") as file:
        file.seek(before)
        return round(file.read().count(b"\n") / took, 1)


def asked(port: int, method: str, path: str, body: bytes | None = None) -> Any:
    """What the service says of jobs."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/{path}",
        body,
        {"Content-Type": "application/x-ndjson"},
        method=method,
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument(
        "--before", type=Path, help="Another checkout, measured by turns with this one."
    )
    given = parser.parse_args()
    sources = {"now": Path(__file__).parents[1]}
    if given.before is not None:
        sources = {"before": given.before, **sources}
    print(json.dumps(compare(given.model, given.seconds, given.rounds, sources), indent=1))


if __name__ == "__main__":
    main()

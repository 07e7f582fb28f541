"""Memory while 100,000 short texts stream through the command line, and its start-up time."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FAKE = "ranmask.models.testing:keyword_classifier"
COMMAND = [sys.executable, "-m", "ranmask.cli"]


def run(quick: bool) -> dict[str, Any]:
    """Resident memory of the process, read several times a second while it runs."""
    texts = 10_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "in.txt", Path(folder) / "out.jsonl"
        with source.open("w") as file:
            for number in range(texts):
                file.write(f"good film number {number} with a bad ending\n")
        command = [*COMMAND, "certify", "--model", FAKE, "--keep", "1"]
        command += ["--input", str(source), "--output", str(output)]
        start = time.perf_counter()
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        readings = []
        while process.poll() is None:
            if output.exists() and output.stat().st_size:
                readings.append(_resident_megabytes(process.pid))
            time.sleep(0.2)
        seconds = time.perf_counter() - start
        written = sum(1 for _ in output.open())
    if process.returncode or written != texts:
        raise RuntimeError(f"the run failed: code {process.returncode}, {written} lines")
    readings = [reading for reading in readings if reading]
    return {
        "texts": texts,
        "seconds": round(seconds, 1),
        "texts_per_second": round(texts / seconds),
        "first_mb": round(readings[0], 1),
        "largest_mb": round(max(readings), 1),
        "growth_mb": round(max(readings) - readings[0], 1),
        "help_s": round(statistics.median(_help_seconds() for _ in range(5)), 3),
    }


def _resident_megabytes(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass  # it has just ended
    return 0.0


def _help_seconds() -> float:
    start = time.perf_counter()
    subprocess.run([*COMMAND, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start

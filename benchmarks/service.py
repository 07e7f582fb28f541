"""The service under load: one connection, then many, every answer compared with the command's.

    python -m benchmarks.service [--seconds 120] [--connections 64] [--model news]

Starts ``ranmask serve`` in a process of its own and asks it from this one, with short texts.  The
answers are held against those that ``ranmask certify`` wrote for the same texts.  In the end the
service is told to end in the middle of its work.  The machine is shared by all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.settings import Skipped
from ranmask.data import load_corpus
from ranmask.errors import RanmaskError
from ranmask.runs.stored import stored_lines

MODELS = ("news", "news-words")

_COMPARED = ("label", "label_id", "votes", "words", "radius", "critical_words", "uncertain")
_TEXTS = 400
_MEMORY_SECONDS = 5.0


def run(quick: bool = False) -> dict[str, Any]:
    """Figures of the models that come with ranmask."""
    seconds = 10.0 if quick else 120.0
    processes = os.cpu_count() or 1
    return {
        "models": [
            measure(model, 64, seconds, number)
            for model in MODELS
            for number in sorted({1, processes})
        ]
    }


def short_texts(words: int = 12) -> list[str]:
    """Beginnings of test texts, of 5 to ``words`` words."""
    try:
        texts = load_corpus("agnews", "test").take(_TEXTS).texts
    except RanmaskError as error:
        raise Skipped(str(error)) from error
    lengths = itertools.cycle(range(5, words + 1))
    return [
        " ".join(str(text).split()[:length]) for text, length in zip(texts, lengths, strict=False)
    ]


def answers_of_the_command(model: str, texts: list[str]) -> dict[str, dict[str, Any]]:
    """What ``ranmask certify`` says of each text."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "texts.jsonl"), Path(folder, "answers.jsonl")
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        command = [sys.executable, "-m", "ranmask.cli", "certify", "--model", model]
        command += ["--input", str(source), "--output", str(output)]
        subprocess.run(command, check=True, capture_output=True)
        return {line["text"]: line for line in stored_lines(output)}


class Load:
    """Asks for certificates over some connections, until the time is over or the service ends."""

    def __init__(self, port: int, model: str, expected: dict[str, dict[str, Any]]) -> None:
        self._port, self._model, self._expected = port, model, expected
        self.seconds: list[float] = []
        self.wrong = self.refused = self.lost = 0

    async def run(self, connections: int, seconds: float) -> float:
        """Requests a second."""
        start = time.monotonic()
        texts = itertools.cycle(self._expected)
        await asyncio.gather(
            *(self._connection(texts, start + seconds) for _ in range(connections))
        )
        return len(self.seconds) / (time.monotonic() - start)

    async def _connection(self, texts: Iterator[str], end: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        closing = False
        while time.monotonic() < end and not closing:
            text = next(texts)
            body = json.dumps({"text": text, "model": self._model}).encode()
            head = (
                "POST /v1/certify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            began = time.monotonic()
            writer.write(head.encode() + body)
            try:
                top = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = int(re.search(r"content-length: (\d+)", top)[1])  # type: ignore[index]
                answer = json.loads(await reader.readexactly(size))
            except (OSError, asyncio.IncompleteReadError):
                self.lost += 1
                return
            self.seconds.append(time.monotonic() - began)
            closing = "connection: close" in top
            self._judge(text, int(top.split()[1]), answer)
        writer.close()

    def _judge(self, text: str, status: int, answer: dict[str, Any]) -> None:
        if status == 429:
            self.refused += 1
        elif status != 200:
            self.wrong += 1
        else:
            [result] = answer["results"]
            wanted = self._expected[text]
            self.wrong += any(result[key] != wanted[key] for key in _COMPARED)


def memory_mib(pid: int) -> float:
    """Of a process and of those that it started."""
    status = Path(f"/proc/{pid}/status").read_text()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
    return own + sum(memory_mib(int(child)) for child in children)


def measure(model: str, connections: int, seconds: float, processes: int) -> dict[str, Any]:
    """Figures of one model."""
    expected = answers_of_the_command(model, short_texts())
    command = [sys.executable, "-m", "ranmask.cli", "serve", "--model", model, "--port", "0"]
    command += ["--processes", str(processes)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        port = next(
            int(json.loads(line)["url"].rsplit(":", 1)[1])
            for line in server.stderr
            if '"listening"' in line
        )
        figures = asyncio.run(_measured(server, port, model, expected, connections, seconds))
    finally:
        server.kill()
        server.wait()
    return {"model": model, "processes": processes, **figures}


async def _measured(
    server: subprocess.Popen[str],
    port: int,
    model: str,
    expected: dict[str, dict[str, Any]],
    connections: int,
    seconds: float,
) -> dict[str, Any]:
    log = asyncio.get_running_loop().run_in_executor(None, _read, server)
    loads = [Load(port, model, expected) for _ in range(4)]
    warming, alone, many, last = loads
    await warming.run(connections, 3)
    one = await alone.run(1, seconds / 6)
    memory = asyncio.ensure_future(_memory(server.pid))
    together = await many.run(connections, seconds)
    memory.cancel()
    sizes = (await asyncio.gather(memory))[0]
    ending = asyncio.ensure_future(last.run(connections, 60))
    await asyncio.sleep(2)
    before = len(last.seconds)
    server.terminate()
    await ending
    code = await asyncio.to_thread(server.wait, 60)
    await log
    cuts = statistics.quantiles(many.seconds, n=100)
    return {
        "connections": connections,
        "seconds": seconds,
        "answers": sum(len(load.seconds) for load in loads),
        "wrong": sum(load.wrong for load in loads),
        "refused": sum(load.refused for load in loads),
        "lost": sum(load.lost for load in loads),
        "answered_while_ending": len(last.seconds) - before,
        "exit_code": code,
        "a_second_alone": round(one, 1),
        "a_second_together": round(together, 1),
        "ratio": round(together / one, 2),
        "p50_ms": round(1000 * cuts[49], 1),
        "p99_ms": round(1000 * cuts[98], 1),
        "memory_mib": [round(sizes[0], 1), round(max(sizes), 1), round(sizes[-1], 1)],
    }


async def _memory(pid: int) -> list[float]:
    """Memory now and every few seconds, until cancelled."""
    sizes = [memory_mib(pid)]
    try:
        while True:
            await asyncio.sleep(_MEMORY_SECONDS)
            sizes.append(memory_mib(pid))
    except asyncio.CancelledError:
        return [*sizes, memory_mib(pid)]


def _read(server: subprocess.Popen[str]) -> None:
    for _ in server.stderr or ():
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="news")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120)
    given = parser.parse_args()
    print(
        json.dumps(
            measure(given.model, given.connections, given.seconds, given.processes), indent=1
        )
    )


if __name__ == "__main__":
    main()

"""The service under load: one connection, then many, every answer compared with the classifier's.

    python -m benchmarks.service [--seconds 120] [--connections 64] [--model news]

Starts ``ranmask serve`` in a process of its own and asks it from this one.  The figures are
ratios within one run; the machine is shared by both.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ranmask import load_default
from ranmask.corpora import load_corpus

_COMPARED = ("label", "label_id", "votes", "words", "radius", "critical_words", "uncertain")


def short_texts(count: int, words: int = 12) -> list[str]:
    """Beginnings of test texts, of 5 to ``words`` words."""
    texts = load_corpus("agnews", "test").take(count).texts
    lengths = itertools.cycle(range(5, words + 1))
    return [
        " ".join(str(text).split()[:length]) for text, length in zip(texts, lengths, strict=False)
    ]


class Load:
    """Asks for certificates over some connections until the time is over."""

    def __init__(self, port: int, model: str, expected: dict[str, dict[str, Any]]) -> None:
        self._port, self._model, self._expected = port, model, expected
        self.seconds: list[float] = []
        self.wrong = self.refused = self.lost = 0

    async def run(self, connections: int, seconds: float) -> float:
        """Requests a second."""
        start = time.monotonic()
        texts = itertools.cycle(self._expected)
        asks = [self._connection(texts, start + seconds) for _ in range(connections)]
        await asyncio.gather(*asks)
        return len(self.seconds) / (time.monotonic() - start)

    async def _connection(self, texts: Any, end: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while time.monotonic() < end:
            text = next(texts)
            body = json.dumps({"text": text, "model": self._model}).encode()
            head = (
                "POST /v1/certify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            began = time.monotonic()
            writer.write(head.encode() + body)
            try:
                top = (await reader.readuntil(b"\r\n\r\n")).decode()
                size = int(re.search(r"content-length: (\d+)", top, re.IGNORECASE)[1])  # type: ignore[index]
                answer = json.loads(await reader.readexactly(size))
            except (OSError, asyncio.IncompleteReadError):
                self.lost += 1
                return
            self.seconds.append(time.monotonic() - began)
            status = int(top.split()[1])
            if status != 200:
                self.refused += status == 429
                self.wrong += status != 429
                continue
            [result] = answer["results"]
            wanted = self._expected[text]
            self.wrong += any(result[key] != wanted[key] for key in _COMPARED)
        writer.close()


def memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def measure(model: str, connections: int, seconds: float) -> dict[str, Any]:
    smoothed = load_default(model)
    texts = short_texts(400)
    expected = {
        text: json.loads(json.dumps(one.to_dict()))
        for text, one in zip(texts, smoothed.certify(texts), strict=True)
    }
    command = [sys.executable, "-m", "ranmask.cli", "serve", "--model", model, "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        port = next(
            int(json.loads(line)["url"].rsplit(":", 1)[1])
            for line in server.stderr
            if '"listening"' in line
        )
        return asyncio.run(_both(server, port, model, expected, connections, seconds))
    finally:
        server.terminate()
        server.wait(60)


async def _both(
    server: subprocess.Popen[str],
    port: int,
    model: str,
    expected: dict[str, dict[str, Any]],
    connections: int,
    seconds: float,
) -> dict[str, Any]:
    drain = asyncio.get_running_loop().run_in_executor(None, _drain, server)
    await Load(port, model, expected).run(connections, 3)  # warms up
    before = memory_mib(server.pid)
    alone = Load(port, model, expected)
    one = await alone.run(1, min(seconds, 20))
    many = Load(port, model, expected)
    together = await many.run(connections, seconds)
    after = memory_mib(server.pid)
    cuts = statistics.quantiles(many.seconds, n=100)
    server.terminate()
    await drain
    return {
        "model": model,
        "connections": connections,
        "seconds": seconds,
        "answers": len(many.seconds),
        "wrong": many.wrong + alone.wrong,
        "refused": many.refused,
        "lost": many.lost,
        "a_second_alone": round(one, 1),
        "a_second_together": round(together, 1),
        "ratio": round(together / one, 2),
        "p50_ms": round(1000 * cuts[49], 1),
        "p99_ms": round(1000 * cuts[98], 1),
        "memory_mib": [round(before), round(after)],
        "exit_code": server.wait(60),
    }


def _drain(server: subprocess.Popen[str]) -> None:
    for _ in server.stderr or ():
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="news")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120)
    given = parser.parse_args()
    print(json.dumps(measure(given.model, given.connections, given.seconds), indent=1))


if __name__ == "__main__":
    main()

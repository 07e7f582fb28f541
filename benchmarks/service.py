"""The service under load: one connection, then many, every answer compared with the command's.

    python -m benchmarks.service [--seconds 30] [--connections 64] [--model news]
    python -m benchmarks.service --before CHECKOUT --before-python PYTHON [--model news]

Starts ``ranmask serve`` in a process of its own and asks it from this one, with short texts.  The
answers are held against those that ``ranmask certify`` wrote for the same texts, or, of a detector
such as ``spam-sms``, ``ranmask detect``.  How many there
can be is measured with a compiled client, ``wrk``, where it is installed: this one takes as long
for a request as the service.  Then, under load: SIGHUP; SIGKILL of one process of several; and in
the end SIGTERM.  The machine is shared by all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.settings import Skipped
from ranmask.data import load_corpus
from ranmask.errors import RanmaskError
from ranmask.runs.stored import stored_lines
from ranmask.smoothing.detector_store import is_detector

MODELS = ("news", "news-words")

_COMPARED = {
    "certify": ("label", "label_id", "votes", "words", "radius", "critical_words", "uncertain"),
    "detect": ("flagged", "score", "words", "radius", "insertions", "characters", "spans"),
}
_TEXTS = 400
_MEMORY_SECONDS = 5.0


def run(quick: bool = False) -> dict[str, Any]:
    """Figures of the models that come with ranmask."""
    seconds = 10.0 if quick else 30.0
    processes = os.cpu_count() or 1
    return {
        "models": [
            measure(model, 64, seconds, number)
            for model in MODELS
            for number in sorted({1, processes})
        ]
    }


def compare(
    source: Path, python: str, model: str, connections: int, seconds: float, rounds: int = 3
) -> dict[str, Any]:
    """Another checkout, run by an interpreter of its own, and this one, by turns."""
    texts = texts_for(model)
    figures: dict[str, list[Any]] = {"before": [], "now": []}
    sources = {"before": (python, source), "now": (sys.executable, Path(__file__).parents[1])}
    for _ in range(rounds):
        for name, (interpreter, checkout) in sources.items():
            with _serving(model, 2, interpreter, checkout / "src") as (server, events):
                port = _port(events)
                reading = threading.Thread(target=_read, args=(server, events), daemon=True)
                reading.start()
                given = (server.pid, port, model, texts, connections)
                compiled_load(*given, 2.0)
                figures[name].append(compiled_load(*given, seconds))
    return {"model": model, "processes": 2, "connections": connections, **figures}


def command_of(model: str) -> str:
    """The command, and the route, that a model answers."""
    return "detect" if is_detector(model) else "certify"


def texts_for(model: str) -> list[str]:
    """Short texts, of detectors messages that come with ranmask."""
    if command_of(model) == "detect":
        return list(load_corpus("sms_spam", "test").texts[:_TEXTS])
    return short_texts()


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
    """What ``ranmask certify`` or ``detect`` says of each text."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "texts.jsonl"), Path(folder, "answers.jsonl")
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        command = [sys.executable, "-m", "ranmask.cli", command_of(model), "--model", model]
        command += ["--input", str(source), "--output", str(output)]
        subprocess.run(command, check=True, capture_output=True)
        return {line["text"]: line for line in stored_lines(output)}


class Load:
    """Asks about texts over some connections, until the time is over or the service ends."""

    def __init__(self, port: int, model: str, expected: dict[str, dict[str, Any]]) -> None:
        self._port, self._model, self._expected = port, model, expected
        self._command = command_of(model)
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
                f"POST /v1/{self._command} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
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
            self.wrong += any(result[key] != wanted[key] for key in _COMPARED[self._command])


_WRK = """
local bodies, requests, last = dofile("%s"), {}, 0
function init()
  for number, body in ipairs(bodies) do
    requests[number] = wrk.format("POST", nil, {["Content-Type"] = "application/json"}, body)
  end
end
function request()
  last = last %% #requests + 1
  return requests[last]
end
"""


def compiled_load(
    pid: int, port: int, model: str, texts: Iterable[str], connections: int, seconds: float
) -> dict[str, Any] | None:
    """Figures of ``wrk``; None where it is not installed."""
    if shutil.which("wrk") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        bodies, script = Path(folder, "bodies.lua"), Path(folder, "wrk.lua")
        quoted = (f"[==[{json.dumps({'text': text, 'model': model})}]==]" for text in texts)
        bodies.write_text("return {" + ",\n".join(quoted) + "}")
        script.write_text(_WRK % bodies)
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency"]
        command += ["-s", str(script), f"http://127.0.0.1:{port}/v1/{command_of(model)}"]
        load = os.getloadavg()[0]
        before, client, begun = cpu_seconds(pid), _children_seconds(), time.monotonic()
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        took = time.monotonic() - begun
        server, client = cpu_seconds(pid) - before, _children_seconds() - client
    number = int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    return {
        "seconds": seconds,
        "answers": number,
        "not_200": int(wrong[1]) if wrong else 0,
        "socket_errors": "Socket errors" in said,
        "a_second": round(number / took, 1),
        "p50_ms": _milliseconds(said, "50"),
        "p99_ms": _milliseconds(said, "99"),
        "server_us_an_answer": round(1e6 * server / number, 1),
        "client_us_an_answer": round(1e6 * client / number, 1),
        "server_cores": round(server / took, 2),
        "client_cores": round(client / took, 2),
        "load_before": round(load, 1),
    }


def _milliseconds(said: str, percent: str) -> float:
    number, unit = re.search(rf"\n\s+{percent}%\s+([\d.]+)(us|ms|s)", said).groups()  # type: ignore[union-attr]
    return round(float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit], 1)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def family(pid: int) -> list[int]:
    """A process and those that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in children for found in family(int(child)))]


def cpu_seconds(pid: int) -> float:
    """Of a process and of those that it started."""
    ticks = 0
    for one in family(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Of a process and of those that it started."""
    found = (Path(f"/proc/{one}/status").read_text() for one in family(pid))
    return sum(int(re.search(r"VmRSS:\s+(\d+)", said)[1]) for said in found) / 1024  # type: ignore[index]


@contextmanager
def _serving(
    model: str, processes: int, python: str, source: Path
) -> Iterator[tuple[subprocess.Popen[str], list[dict[str, Any]]]]:
    """A service that listens, and what it has said until then."""
    command = [python, "-m", "ranmask.cli", "serve", "--model", model, "--port", "0"]
    command += ["--processes", str(processes)]
    variables = {**os.environ, "PYTHONPATH": str(source)}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables)
    assert server.stderr is not None
    events: list[dict[str, Any]] = []
    try:
        while not events or events[-1]["event"] != "listening":
            events.append(json.loads(server.stderr.readline()))
        yield server, events
    finally:
        server.terminate()
        server.wait()


def _port(events: list[dict[str, Any]]) -> int:
    return int(events[-1]["url"].rsplit(":", 1)[1])


def measure(model: str, connections: int, seconds: float, processes: int) -> dict[str, Any]:
    """Figures of one model."""
    expected = answers_of_the_command(model, texts_for(model))
    source = Path(__file__).parents[1] / "src"
    with _serving(model, processes, sys.executable, source) as (server, events):
        task = _measured(server, _port(events), model, expected, connections, seconds, events)
        figures = asyncio.run(task)
    return {"model": model, "processes": processes, **figures}


async def _measured(
    server: subprocess.Popen[str],
    port: int,
    model: str,
    expected: dict[str, dict[str, Any]],
    connections: int,
    seconds: float,
    events: list[dict[str, Any]],
) -> dict[str, Any]:
    log = asyncio.get_running_loop().run_in_executor(None, _read, server, events)
    loads = [Load(port, model, expected) for _ in range(5)]
    warming, alone, many, reloading, last = loads
    await warming.run(connections, 3)
    one = await alone.run(1, seconds / 6)
    memory = asyncio.ensure_future(_memory(server.pid))
    together = await many.run(connections, seconds)
    memory.cancel()
    sizes = (await asyncio.gather(memory))[0]
    compiled = await asyncio.to_thread(
        compiled_load, server.pid, port, model, list(expected), connections, seconds
    )
    asking = asyncio.ensure_future(reloading.run(connections, 6))
    for _ in range(4):
        await asyncio.sleep(1)
        server.send_signal(signal.SIGHUP)
    await asking
    killed = await _killed(Load(port, model, expected), events, connections)
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
        "answered_while_reloading": len(reloading.seconds),
        "reloads": sum(line["event"] == "reloaded" for line in events),
        "killed": killed,
        "exit_code": code,
        "a_second_alone": round(one, 1),
        "a_second_together": round(together, 1),
        "ratio": round(together / one, 2),
        "p50_ms": round(1000 * cuts[49], 1),
        "p99_ms": round(1000 * cuts[98], 1),
        "memory_mib": [round(sizes[0], 1), round(max(sizes), 1), round(sizes[-1], 1)],
        "compiled": compiled,
    }


async def _killed(
    load: Load, events: list[dict[str, Any]], connections: int
) -> dict[str, Any] | None:
    """What became of requests where one process of several was killed, and of the process."""
    ready = [line["pid"] for line in events if line["event"] == "process ready"]
    if len(ready) < 2:
        return None
    asking = asyncio.ensure_future(load.run(connections, 8))
    await asyncio.sleep(1)
    os.kill(ready[0], signal.SIGKILL)
    begun = time.monotonic()
    while sum(line["event"] == "process ready" for line in events) == len(ready):
        await asyncio.sleep(0.05)
    back = time.monotonic() - begun
    await asking
    return {
        "answers": len(load.seconds),
        "wrong": load.wrong,
        "lost": load.lost,
        "replaced_after_seconds": round(back, 1),
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


def _read(server: subprocess.Popen[str], events: list[dict[str, Any]]) -> None:
    """Keep what the service says of itself, not of each request."""
    said = (line for line in server.stderr or () if '"event": "request"' not in line)
    events.extend(map(json.loads, said))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="news")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--before", type=Path, help="Another checkout, to compare this one with.")
    parser.add_argument("--before-python", default=sys.executable, help="What runs it.")
    given = parser.parse_args()
    if given.before is not None:
        how = (given.before_python, given.model, given.connections, given.seconds)
        figures = compare(given.before, *how)
    else:
        figures = measure(given.model, given.connections, given.seconds, given.processes)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

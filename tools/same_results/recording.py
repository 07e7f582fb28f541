"""Runs the cases against one ranmask, and writes what they gave, a file of JSON for each case."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tools.same_results import inputs
from tools.same_results.cases import REQUESTS, SERVERS, commands
from tools.same_results.normal import Table

PATIENCE = 600  # seconds for one command on a busy machine
INDEX = "record.json"
_AT_ONCE = 8  # requests of the same moment, which the service may answer together
_NOT_RECORDED = ("*/steps/*", "*lock", "*.log", "*/log.txt", "*.pyc", "*/__pycache__/*")


class Recorder:
    """One ranmask, a scratch folder, and where records go."""

    def __init__(self, python: str, source: Path, out: Path, names: str) -> None:
        self.python = python
        self.source = source.resolve()
        self.out = out
        self.table = Table.read() if names == "new" else Table()
        self.work = Path(tempfile.mkdtemp(prefix="same-results-"))
        self.data = self.work / "data"
        self.environment = {
            **{
                name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ
            },
            **{"HOME": str(self.work), "TMPDIR": str(self.work), "LANG": "C.UTF-8"},
            **{"PYTHONPATH": str(self.source), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
            **{"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "NO_COLOR": "1"},
            **{"RANMASK_DATA": str(self.data), "NLTK_DATA": str(self.data / "nltk")},
            **{"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        }

    def prepare(self) -> None:
        """Write the inputs, and see that Python imports the source that was named."""
        inputs.write(self.work / "inputs", self.data)
        made = self._run([str(Path(inputs.__file__)), str(self.work / "inputs"), str(self.data)])
        if made.returncode:
            raise SystemExit(f"cannot write the Parquet files: {made.stderr}")
        found = self._run(["-c", "import ranmask; print(ranmask.__file__)"]).stdout.strip()
        if not Path(found).resolve().is_relative_to(self.source):
            raise SystemExit(f"{self.python} imports {found!r}, which is not in {self.source}")

    def commands(self, group: str, cases: list[tuple[str, str]]) -> None:
        """Run the commands of a group in a folder of their own."""
        folder = self.work / "groups" / group
        shutil.copytree(self.work / "inputs", folder)
        for name, command in cases:
            arguments = shlex.split(command)
            if arguments[0] == "@cut":
                whole = folder / arguments[1]
                content = whole.read_bytes() if whole.exists() else b""
                whole.write_bytes(content[: len(content) // 2])
            elif arguments[0] == "@interrupt":
                self._interrupted(group, name, folder, arguments[1:])
            elif arguments[0] == "@library":
                self._library(group, folder, arguments[1])
            else:
                self._command(group, name, folder, arguments)

    def served(self, group: str) -> None:
        """Start the service, ask it, and end it."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = self.table.command(["serve", *SERVERS[group], "--port", str(port)])
        folder = self.work / "groups" / group
        folder.mkdir(parents=True)
        with (folder / "log.txt").open("w") as log:
            process = subprocess.Popen(
                [self.python, "-m", "ranmask.cli", *command],
                env=self.environment,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
            try:
                _wait_for(port, process)
                asked = [(name, self._request(request)) for name, *request in REQUESTS[group]]
                for name, request in asked:
                    self._write(group, name, _ask(port, request))
                with ThreadPoolExecutor(_AT_ONCE) as threads:
                    together = list(threads.map(lambda one: (one[0], _ask(port, one[1])), asked))
                self._write(group, "together", dict(together))
                process.send_signal(signal.SIGTERM)
                self._write(group, "ended", {"exit": process.wait(PATIENCE)})
            finally:
                process.kill()
                process.wait()

    # -- one case ----------------------------------------------------------------------------------

    def _command(self, group: str, name: str, folder: Path, arguments: list[str]) -> None:
        before = _digests(folder)
        done = self._run(["-m", "ranmask.cli", *self.table.command(arguments)], folder)
        changed = [path for path, digest in _digests(folder).items() if before.get(path) != digest]
        said = done.stderr.strip().splitlines()
        record = {
            "command": arguments,
            "exit": done.returncode,
            "stdout": parsed(done.stdout),
            "stderr": said[-1] if said else "",
            "files": {path: content_of(folder / path) for path in sorted(changed)},
        }
        if "Traceback (most recent call last)" in done.stderr:
            record["traceback"] = done.stderr
        self._write(group, name, record)

    def _interrupted(self, group: str, name: str, folder: Path, arguments: list[str]) -> None:
        before = _digests(folder)
        process = subprocess.Popen(
            [self.python, "-m", "ranmask.cli", *self.table.command(arguments)],
            env={**self.environment, "SLOW": "60"},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and _digests(folder) == before:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self._write(group, name, {"exit": process.wait(PATIENCE)})

    def _library(self, group: str, folder: Path, script: str) -> None:
        path = Path(__file__).with_name("library.py")
        done = self._run(["-P", str(path), script, json.dumps(self.table.arguments)], folder)
        self._write(group, "ended", {"exit": done.returncode, "stderr": done.stderr[-2000:]})
        for line in done.stdout.splitlines():
            found = json.loads(line)
            self._write(group, found["case"], {"result": found["result"]})

    def _request(self, request: list[Any]) -> tuple[str, bytes | None]:
        place, body = request
        if body is None or isinstance(body, bytes):
            return place, body
        return place, json.dumps(_with_keys(body, self.table.requests)).encode()

    def _run(self, arguments: list[str], folder: Path | None = None) -> Any:
        return subprocess.run(
            [self.python, *arguments],
            env=self.environment,
            cwd=folder or self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )

    def _write(self, group: str, name: str, record: Any) -> None:
        place = self.out / group
        place.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"case": name, **record}, indent=1)
        for real, word in ((self.work, "(work)"), (self.source, "(source)")):
            text = text.replace(str(real), word)
        number = sum(1 for _ in place.iterdir())
        (place / f"{number:03d}.json").write_text(text + "\n", encoding="utf-8")


def record(
    python: str, source: Path, out: Path, names: str, only: str | None, long: bool, jobs: int
) -> None:
    """Run the groups that match, and write an index of them last."""
    # A background job of a shell ignores Ctrl-C, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    recorder = Recorder(python, source, out, names)
    work: dict[str, Callable[[], None]] = {}
    for group, cases in commands(long).items():
        work[group] = lambda group=group, cases=cases: recorder.commands(group, cases)
    for group in SERVERS:
        work[group] = lambda group=group: recorder.served(group)
    chosen = [group for group in work if only is None or fnmatchcase(group, only)]
    if not chosen:
        raise SystemExit(f"no group matches {only!r}; there are {', '.join(work)}")
    for group in chosen:
        shutil.rmtree(out / group, ignore_errors=True)

    def timed(group: str) -> None:
        began = time.monotonic()
        work[group]()
        print(f"{group}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    try:
        recorder.prepare()
        with ThreadPoolExecutor(jobs) as threads:
            for _ in threads.map(timed, chosen):
                pass
    finally:
        shutil.rmtree(recorder.work, ignore_errors=True)
    index = out / INDEX
    known = json.loads(index.read_text())["groups"] if index.exists() else []
    groups = sorted({*known, *chosen})
    index.write_text(json.dumps({"names": names, "groups": groups}, indent=1) + "\n")


# -- what there is to record -----------------------------------------------------------------------


def parsed(text: str, whole: bool = False) -> Any:
    """Lines of JSON, JSON, or the text itself; ``whole``: JSON before lines of it."""
    for parse in (json.loads, _as_lines) if whole else (_as_lines, json.loads):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _as_lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def content_of(path: Path) -> Any:
    """JSON and text as they are, of weights the digest; of other files that they are there."""
    if path.suffix in (".json", ".jsonl"):
        text = path.read_text(encoding="utf-8", errors="replace")
        return parsed(text, whole=path.suffix == ".json")
    if path.suffix == ".md" and path.name != "README.md":
        return path.read_text(encoding="utf-8")
    if path.suffix == ".safetensors":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return "(there)"


def _digests(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(fnmatchcase(f"/{name}", one) for one in _NOT_RECORDED):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _with_keys(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _with_keys(inside, names) for key, inside in value.items()}
    return value


def _ask(port: int, request: tuple[str, bytes | None]) -> dict[str, Any]:
    place, body = request
    method, path = place.split()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return {"status": answer.status, "body": parsed(answer.read().decode(), whole=True)}
    finally:
        connection.close()


def _wait_for(port: int, process: subprocess.Popen[Any]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            if _ask(port, ("GET /readyz", None))["status"] == 200:
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"the service did not start: exit code {process.poll()}")

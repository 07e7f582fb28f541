"""What the image runs, and how it is checked, without an engine: the lines of its Dockerfile."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

from ranmask.serving.settings import KEY_VARIABLE, ServiceSettings

ROOT = Path(__file__).parents[2]
KEY = "a-key-that-is-long-enough"


def instructions(text):
    """The values of each instruction, without comments and with lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found = {}
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, value = line.partition(" ")
        found.setdefault(name, []).append(value.strip())
    return found


LINES = instructions((ROOT / "deploy" / "Dockerfile").read_text())
[HEALTH] = LINES["HEALTHCHECK"]


def command():
    """What a container runs, of this interpreter and on a port that is free."""
    [entry], [given] = map(json.loads, LINES["ENTRYPOINT"]), map(json.loads, LINES["CMD"])
    assert entry[0] == "ranmask"
    return [sys.executable, "-W", "error", "-m", "ranmask.cli", *entry[1:], *given]


def healthy(port):
    """Whether the health check of a container says that it is well."""
    check = json.loads(HEALTH[HEALTH.index("[") :])
    assert check[0] == "python"
    here = check[-1].replace(f":{ServiceSettings.port}/", f":{port}/")
    assert here != check[-1]
    done = subprocess.run([sys.executable, *check[1:-1], here], capture_output=True, timeout=30)
    return done.returncode == 0


def test_it_is_healthy_while_it_takes_requests():
    [stop], [port] = LINES["STOPSIGNAL"], LINES["EXPOSE"]
    assert int(port) == ServiceSettings.port
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert not healthy(port)
    process = subprocess.Popen(
        [*command(), "--port", str(port), "--drain", "600"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, KEY_VARIABLE: KEY, "OMP_NUM_THREADS": "1"},
    )
    try:
        first = json.loads(process.stderr.readline())
        assert (first["event"], first["models"]) == ("listening", ["news"])
        threading.Thread(target=process.stderr.read, daemon=True).start()
        assert healthy(port)
        process.send_signal(getattr(signal, stop))
        end = time.monotonic() + 15
        while healthy(port):
            assert time.monotonic() < end, "it still says that it takes requests"
        assert process.poll() is None, "it goes on for those who do not know yet"
    finally:
        process.kill()
        process.wait(30)
        process.stderr.close()


def test_without_a_key_it_does_not_start():
    keyless = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
    done = subprocess.run(command(), capture_output=True, text=True, timeout=60, env=keyless)
    assert done.returncode == 2 and KEY_VARIABLE in done.stderr


def test_the_wheel_is_made_of_what_the_engine_is_sent():
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    sent = {line[1:] for line in ignored if line.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = {project["readme"], *(name.partition("/")[0] for name in project["license-files"])}
    assert "*" in ignored and files | {"src", "pyproject.toml"} <= sent
    mounted = re.findall(r"type=bind,source=([^,\s]+)", " ".join(LINES["RUN"]))
    assert mounted == ["constraints.txt"] and set(mounted) <= sent


@pytest.mark.parametrize("image", LINES["FROM"])
def test_its_python_is_one_that_is_tested(image):
    version = re.match(r"python:(3\.\d+)-slim", image)[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]

"""Several processes behind one port: asked, killed one by one, and told to end."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ranmask.smoothing.store import load_default

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "SO_REUSEPORT"), reason="this system cannot share a port"
)

TEXTS = [f"Stocks fell sharply on Wall Street for the {number} time" for number in range(40)]


class Services:
    """A running service of two processes."""

    def __init__(self, process):
        self.process = process
        self.log = []
        threading.Thread(target=self._read, daemon=True).start()
        said = self.wait_for("listening")
        self.pids = said["processes"]
        assert len(self.pids) == 2
        self.port = int(said["url"].rpartition(":")[2])

    def _read(self):
        for line in self.process.stderr:
            self.log.append(json.loads(line))

    def wait_for(self, event, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in list(self.log):
                if line["event"] == event:
                    return line
            time.sleep(0.02)
        raise AssertionError(f"no {event!r} in {self.log}")

    def ask(self, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        kind = {"Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, sent, kind)
        response = connection.getresponse()
        content = response.read().decode()
        connection.close()
        return response.status, content

    def ready(self):
        return [line["pid"] for line in list(self.log) if line["event"] == "process ready"]


@contextmanager
def services(*arguments):
    command = [sys.executable, "-W", "error", "-m", "ranmask.cli", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--model", "news-words", "--processes", "2", *arguments],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Services(process)
    finally:
        process.kill()
        process.wait(10)
        process.stderr.close()


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def total(metrics, name):
    return sum(map(float, re.findall(rf"^{name}[ {{].*?([0-9.]+)$", metrics, re.MULTILINE)))


def test_both_answer_one_dies_and_is_replaced_and_all_end_together():
    with services() as service:
        first = service.pids
        expected = load_default("news-words").certify(TEXTS)
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda t: service.ask("/v1/certify", {"text": t}), TEXTS))
        said = [json.loads(content)["results"][0] for _, content in answers]
        assert said == [one.to_dict() for one in expected]

        # Whichever process is asked, the figures are those of both.
        for _ in range(6):
            metrics = service.ask("/metrics")[1]
            assert total(metrics, "ranmask_texts_total") == len(TEXTS)
            assert total(metrics, "ranmask_pool_asks_total") >= 2
        until(lambda: total(service.ask("/metrics")[1], "ranmask_open_requests") == 1)

        os.kill(first[0], signal.SIGKILL)
        assert service.wait_for("process died")["exit_code"] == -signal.SIGKILL
        until(lambda: len(service.ready()) == 3)
        until(lambda: total(service.ask("/metrics")[1], "ranmask_restarts") == 1)
        assert total(service.ask("/metrics")[1], "ranmask_processes") == 2
        for text in TEXTS[:10]:
            assert service.ask("/v1/predict", {"text": text})[0] == 200

        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0
        service.wait_for("ended")
        assert all(map(gone, service.ready()))


def test_no_orphan_is_left_where_the_first_process_is_killed():
    with services("--drain", "0") as service:
        service.process.kill()
        service.process.wait(10)
        until(lambda: all(map(gone, service.pids)))


def test_a_replacement_that_cannot_start_is_tried_again(tmp_path):
    models = tmp_path / "models"
    models.write_text("")
    with services("--models-file", str(models), "--drain", "0") as service:
        models.write_text("films=no/such/folder\n")
        os.kill(service.pids[0], signal.SIGKILL)

        def reasons():
            died = [line for line in list(service.log) if line["event"] == "process died"]
            return [line["reason"] for line in died]

        until(lambda: len(reasons()) >= 3)
        assert reasons()[0] is None
        assert "no/such/folder" in reasons()[1] and "no/such/folder" in reasons()[2]
        assert service.ask("/v1/predict", {"text": TEXTS[0]})[0] == 200, "the other goes on"
        models.write_text("")
        until(lambda: len(service.ready()) == 3)
        assert total(service.ask("/metrics")[1], "ranmask_processes") == 2
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(30) == 0


def children_of(process):
    tasks = Path(f"/proc/{process.pid}/task")
    if not (tasks / str(process.pid) / "children").exists():
        process.kill()
        pytest.skip("this system does not list the children of a process")
    return [int(pid) for task in tasks.glob("*/children") for pid in task.read_text().split()]


def test_told_to_read_keys_again_while_they_start():
    """They are told when they are ready; before, the signal would end them."""
    command = [sys.executable, "-m", "ranmask.cli", "serve", "--port", "0", "--processes", "2"]
    process = subprocess.Popen(
        [*command, "--model", "news-words", "--drain", "0"], stderr=subprocess.PIPE, text=True
    )
    late = threading.Timer(60, process.kill)  # a line that never comes is no reason to wait
    late.start()
    try:
        # Two, and multiprocessing's own: one that starts later need not read them again.
        until(lambda: len(children_of(process)) >= 3)
        process.send_signal(signal.SIGHUP)
        said = [json.loads(process.stderr.readline())["event"] for _ in range(5)]
    finally:
        late.cancel()
        process.terminate()
        process.communicate(timeout=30)
    assert sorted(said) == ["listening", *["process ready"] * 2, *["reloaded"] * 2]


def test_told_to_end_while_they_start():
    command = [sys.executable, "-m", "ranmask.cli", "serve", "--port", "0", "--processes", "2"]
    process = subprocess.Popen(
        [*command, "--model", "news-words"], stderr=subprocess.PIPE, text=True
    )
    until(lambda: len(children_of(process)) >= 2)
    started = children_of(process)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 0
    assert "Traceback" not in said
    # One of them is multiprocessing's own, which ends once it has seen that the others did.
    until(lambda: all(map(gone, started)))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--model", "no_such_module:classify"), 1, "no_such_module"),
        (
            ("--model", "news-words", "--keep", "1", "--mask-rate", "0.5"),
            2,
            "--keep and --mask-rate",
        ),
        (("--processes", "0"), 2, "--processes must be a whole number of at least 1"),
    ],
)
def test_what_keeps_them_from_starting_is_told(arguments, code, said):
    command = [sys.executable, "-m", "ranmask.cli", "serve", "--port", "0", "--processes", "2"]
    ended = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)
    assert said in ended.stderr


def test_a_port_that_is_taken_is_not_shared():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "ranmask.cli", "serve", "--processes", "2"]
        port = str(taken.getsockname()[1])
        ended = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, timeout=60, check=False
        )
    assert ended.returncode == 2
    assert "choose another --port" in ended.stderr


def test_keys_and_models_are_read_again_and_no_request_is_lost(tmp_path):
    keys, models = tmp_path / "keys", tmp_path / "models"
    old, new = "the-old-key-is-long", "the-new-key-is-longer"
    keys.write_text(f"old {old}\nload {old}-of-the-load\n")
    models.write_text("")
    files = ("--api-key-file", str(keys), "--models-file", str(models))
    with services(*files) as service:
        told, statuses, over = threading.Event(), [], threading.Event()

        def asks():
            link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
            headers = {"Content-Type": "application/json", "X-API-Key": f"{old}-of-the-load"}
            while not over.is_set():
                link.request("POST", "/v1/certify", json.dumps({"text": TEXTS[0]}), headers)
                response = link.getresponse()
                response.read()
                statuses.append(response.status)
                told.set()
            link.close()

        def status(key, model):
            link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
            headers = {"Content-Type": "application/json", "X-API-Key": key}
            body = json.dumps({"text": "a superb film", "model": model})
            link.request("POST", "/v1/predict", body, headers)
            response = link.getresponse()
            response.read()
            link.close()
            return response.status

        def reloads():
            return sum(line["event"] == "reloaded" for line in list(service.log))

        with ThreadPoolExecutor(4) as threads:
            asking = [threads.submit(asks) for _ in range(4)]
            told.wait(30)
            assert (status(old, "news-words"), status(old, "films")) == (200, 404)
            keys.write_text(f"new {new} 6000\nload {old}-of-the-load\n")
            models.write_text("films=reviews-words\n")
            service.process.send_signal(signal.SIGHUP)
            until(lambda: reloads() == 2)
            assert (status(old, "films"), status(new, "films")) == (401, 200)
            keys.write_text("none\n")  # cannot be used: nothing changes
            service.process.send_signal(signal.SIGHUP)
            until(lambda: sum(line["event"] == "reload failed" for line in list(service.log)) == 2)
            assert status(new, "films") == 200
            over.set()
            for one in asking:
                one.result(60)
        assert set(statuses) == {200}
        assert {line["level"] for line in service.log if line["event"] == "reload failed"} == {
            "error"
        }
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0

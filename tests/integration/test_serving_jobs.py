"""Jobs of a real service: killed in the middle, started again, and equal to `ranmask certify`."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from ranmask.runs.stored import read_results

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-W", "error", "-m", "ranmask.cli"]
MODEL = ("--model", "news-words")
CSV = {"Content-Type": "text/csv"}
KEY = "a-key-that-is-long-enough"
ROWS = 30_000


class Service:
    """A running service."""

    def __init__(self, process):
        self.process, self.log = process, []
        threading.Thread(target=self._read, daemon=True).start()
        said = self.wait_for("listening")
        self.port = int(said["url"].rpartition(":")[2])
        self.pids = said.get("processes", [process.pid])

    def _read(self):
        for line in self.process.stderr:
            self.log.append(json.loads(line))

    def wait_for(self, event, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in list(self.log):
                if line["event"] == event:
                    return line
            assert self.process.poll() is None, self.log
            time.sleep(0.02)
        raise AssertionError(self.log)

    def ask(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content

    def job(self, id):
        status, content = self.ask("GET", f"/v1/jobs/{id}")
        assert status == 200, content
        return json.loads(content)

    def until(self, id, wanted, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            job = self.job(id)
            assert job["status"] != "failed", job
            if wanted(job):
                return job
            time.sleep(0.02)
        raise AssertionError(job)


@contextmanager
def serving(jobs, *arguments):
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *MODEL, "--jobs", str(jobs), *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        yield Service(process)
    finally:
        process.kill()
        process.wait(10)
        process.stderr.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows, good and bad, and what `ranmask certify` says of them."""
    folder = tmp_path_factory.mktemp("rows")
    lines = ["id,text,label"]
    for number in range(ROWS):
        text = f"Oil prices soared to a record {number} as traders feared supply cuts of {number}"
        lines.append(f"{number},{'' if number % 5000 == 4999 else text},Business")
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    columns = ("--label-column", "label", "--input", "rows.csv", "--output", "out.jsonl")
    done = subprocess.run([*COMMAND, "certify", *MODEL, *columns], cwd=folder, capture_output=True)
    assert (folder / "out.jsonl").is_file(), done.stderr
    return folder


def sent(service, folder, headers=CSV):
    path = "/v1/jobs?kind=certify&label_column=label&name=rows.csv"
    status, content = service.ask("POST", path, (folder / "rows.csv").read_bytes(), headers)
    assert status == 201, content
    return json.loads(content)["id"]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_service_that_is_started_again_goes_on(folder, tmp_path, end):
    """With the bytes of the command line's, whatever happened in between."""
    with serving(tmp_path) as service:
        id = sent(service, folder)
        before = service.until(id, lambda job: job["rows_done"] > 0)["rows_done"]
        service.process.send_signal(end)
        assert (service.process.wait(60) == 0) is (end == signal.SIGTERM)
    assert before < ROWS
    with serving(tmp_path) as service:
        service.until(id, lambda job: job["rows_done"] > before)
        lines = service.ask("GET", f"/v1/jobs/{id}/result")[1].splitlines(keepends=True)
        expected = (folder / "out.jsonl").read_bytes().splitlines(keepends=True)
        assert lines == expected[: len(lines)], "partial results are the first lines"
        job = service.until(id, lambda job: job["status"] == "finished")
        assert (job["rows_done"], job["rows_failed"]) == (ROWS, 6)
        assert job["started"] <= job["ended"]
        _, content = service.ask("GET", f"/v1/jobs/{id}/result")
        assert content == (folder / "out.jsonl").read_bytes()
        status, content = service.ask("GET", f"/v1/jobs/{id}/result?format=parquet")
        assert status == 200 and content[:4] == b"PAR1"


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="this system cannot share a port")
def test_any_of_several_processes_answers_and_the_others_go_on(folder, tmp_path):
    with serving(tmp_path, "--processes", "2") as service:
        ids = [sent(service, folder) for _ in range(2)]
        for id in ids:
            service.until(id, lambda job: job["rows_done"] > 0)
        for pid in service.pids:  # the supervisor starts others
            os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 60
        while sum(line["event"] == "process ready" for line in list(service.log)) < 4:
            assert time.monotonic() < end
            time.sleep(0.05)
        for id in ids:
            for _ in range(5):  # whichever process is asked
                service.job(id)
            service.until(id, lambda job: job["status"] == "finished")
            _, content = service.ask("GET", f"/v1/jobs/{id}/result")
            assert content == (folder / "out.jsonl").read_bytes()
        begun = [line["job"] for line in service.log if line["event"] == "job begun"]
        assert set(begun) == set(ids) and len(begun) >= 3, "jobs were begun again"


def test_requests_are_answered_while_a_job_runs(folder, tmp_path):
    with serving(tmp_path) as service:
        id = sent(service, folder)
        service.until(id, lambda job: job["rows_done"] > 0)
        body = json.dumps({"text": "Striker scores twice in the cup final"})
        answers = set()
        while service.job(id)["status"] == "running":
            kind = {"Content-Type": "application/json"}
            answers.add(service.ask("POST", "/v1/certify", body, kind))
        [(status, content)] = answers
        assert status == 200 and json.loads(content)["results"][0]["label"] == "Sports"
        service.until(id, lambda job: job["status"] == "finished")
        _, content = service.ask("GET", f"/v1/jobs/{id}/result")
        assert content == (folder / "out.jsonl").read_bytes()
        status, content = service.ask("DELETE", f"/v1/jobs/{id}")
        assert status == 200 and [one.name for one in tmp_path.iterdir()] == ["lock"]
        said = json.dumps(service.log)
        assert "Oil" not in said and "error" not in {line["level"] for line in service.log}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_documentation(folder, tmp_path):
    (tmp_path / "key").write_text(KEY)
    shutil.copy(folder / "rows.csv", tmp_path)
    keyed = ("--api-key-file", str(tmp_path / "key"), "--model", "spam-sms")
    with serving(tmp_path / "jobs", *keyed) as service:
        page = service.ask("GET", "/docs")[1].decode()
        commands = re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)
        commands = [re.sub("&#34;|&quot;", '"', one).replace("&#39;", "'") for one in commands]
        commands = [one.replace("&amp;", "&").replace("&gt;", ">") for one in commands]
        variables = {**os.environ, "RANMASK_API_KEY": KEY, "JOB": ""}
        # The job is sent before it is asked for, and deleted in the end.
        commands.sort(key=lambda one: ("-X DELETE" in one, "/result" in one, "$JOB" in one))
        assert len(commands) == 14
        for command in commands:
            here = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{service.port}", command)
            answer = run_shell(here, tmp_path, variables)
            assert '"code"' not in answer, (command, answer)
            if "@rows.csv" in command:
                variables["JOB"] = json.loads(answer)["id"]
            while '"running"' in answer or '"queued"' in answer:
                answer = run_shell(here if "$JOB" in here else "true", tmp_path, variables)
        results = [row.result for row in read_results(tmp_path / "results.jsonl")]
        assert len(results) == ROWS and results[0].label == "Business"


def run_shell(command, folder, variables):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=variables, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_a_job_goes_on_over_a_reload(folder, tmp_path):
    """Models that have not changed go on; a job of one that did is told so (see the units)."""
    (tmp_path / "models").write_text("second=news-words\n")
    with serving(tmp_path / "jobs", "--models-file", str(tmp_path / "models")) as service:
        path = "/v1/jobs?label_column=label&name=rows.csv&model=second"
        _, content = service.ask("POST", path, (folder / "rows.csv").read_bytes(), CSV)
        id = json.loads(content)["id"]
        service.until(id, lambda job: job["rows_done"] > 0)
        service.process.send_signal(signal.SIGHUP)
        service.wait_for("reloaded")
        assert service.job(id)["rows_done"] < ROWS
        service.until(id, lambda job: job["status"] == "finished")
        _, content = service.ask("GET", f"/v1/jobs/{id}/result")
        assert content == (folder / "out.jsonl").read_bytes()

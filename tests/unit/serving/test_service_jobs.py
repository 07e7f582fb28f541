"""Jobs for files: taken, worked on, told of, resumed, deleted; and hostile uploads."""

import asyncio
import json
import threading
import time
from typing import ClassVar

import pytest
from starlette.testclient import TestClient

from ranmask.data.rows import Columns
from ranmask.errors import OptionError
from ranmask.models.testing import keyword_classifier
from ranmask.runs.api import certify_file, predict_file
from ranmask.runs.result_file import result_rows
from ranmask.runs.shards.columns import decoded
from ranmask.runs.stored import read_results
from ranmask.serving.app import create_app
from ranmask.serving.job_handlers import Jobs
from ranmask.serving.job_runner import BackgroundContext, JobRunner
from ranmask.serving.jobs import JobState, JobStore, NoSuchJob
from ranmask.serving.problems import Cancelled, Problem
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.telemetry import Telemetry
from ranmask.smoothing.smoothed import SmoothedClassifier

FAKE = "ranmask.models.testing:keyword_classifier"
CSV = {"content-type": "text/csv"}
KEYS = {"alice": "the-first-key-of-all", "bob": "a-second-key-of-many"}
ROWS = "id,text,label\n7,good good good film,1\n8,bad bad x,0\n9,,1\n10,fine,nope\n"
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture(scope="module")
def host():
    host = ModelRegistry({"keywords": FAKE, "other": FAKE}, keep=1)
    yield host
    host.close()


@pytest.fixture
def client_of(host, tmp_path):
    opened = []

    def make(start=True, **settings):
        settings = {"jobs": str(tmp_path / "jobs"), **settings}
        app = create_app(host, ServiceSettings(**settings))
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        if start:
            client.__enter__()
            opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(client_of):
    return client_of()


def ended(client, response, **headers):
    assert response.status_code == 201, response.text
    path = f"/v1/{response.headers['location']}"
    end = time.monotonic() + 30
    while time.monotonic() < end:
        job = client.get(path, headers=headers).json()
        if job["status"] in ("finished", "failed"):
            return job
        time.sleep(0.02)
    raise AssertionError(job)


def refused(response, status, code):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code, error
    return error["message"]


def unread():
    return Telemetry(dict, lambda: 0)


def smoothed(**options):
    return SmoothedClassifier(keyword_classifier, **{"keep": 1, **options})


class TestJobs:
    def test_results_are_the_file_of_a_run(self, client, tmp_path, monkeypatch):
        response = client.post(
            "/v1/jobs?label_column=label&name=rows.csv&positive=1", content=ROWS, headers=CSV
        )
        job = ended(client, response)
        assert (job["status"], job["rows"], job["rows_done"], job["rows_failed"]) == (
            *("finished", 4, 4),
            2,
        )
        assert (job["seconds_left"], job["error"], job["name"]) == (0.0, None, "rows.csv")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "rows.csv").write_text(ROWS)
        summary = certify_file(
            smoothed(), "rows.csv", "out.jsonl", columns=Columns(label="label"), positive="1"
        )
        result = client.get(f"/v1/jobs/{job['id']}/result")
        assert result.content == (tmp_path / "out.jsonl").read_bytes()
        assert result.headers["x-job-status"] == "finished"
        assert int(result.headers["content-length"]) == len(result.content)
        assert job["summary"] == json.loads(json.dumps(summary.values()))

    @pytest.mark.parametrize(
        ("kind", "format", "rows"),
        [
            ("text/csv", "csv", "text\ngood film\nbad\n"),
            ("text/tab-separated-values", "tsv", "id\ttext\n1\tgood film\n2\tbad\n"),
            ("application/x-ndjson", "jsonl", '{"text": "good film"}\n"bad"\n'),
            ("text/plain; charset=utf-8", "txt", "good film\nbad\n"),
        ],
    )
    @pytest.mark.parametrize("named", ["by type", "in the address"])
    def test_formats(self, client, tmp_path, kind, format, rows, named):
        by_type = named == "by type"
        response = client.post(
            "/v1/jobs?kind=predict" + ("" if by_type else f"&format={format}"),
            content=rows,
            headers={"content-type": kind if by_type else "application/x-www-form-urlencoded"},
        )
        job = ended(client, response)
        assert (job["status"], job["rows_done"], job["rows_failed"]) == ("finished", 2, 0)
        path = tmp_path / f"input.{format}"
        path.write_text(rows)
        predict_file(smoothed(), path, tmp_path / "out.jsonl")
        said = client.get(f"/v1/jobs/{job['id']}/result").content.splitlines()
        assert said[1:] == (tmp_path / "out.jsonl").read_bytes().splitlines()[1:]

    def test_parquet_in_and_out(self, client, tmp_path):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        path = tmp_path / "rows.parquet"
        table = pyarrow.table({"more": [1, 2, 3], "body": ["good good", None, "bad"]})
        parquet.write_table(table, path)
        job = ended(
            client,
            client.post(
                "/v1/jobs?text_column=body",
                content=path.read_bytes(),
                headers={"content-type": PARQUET},
            ),
        )
        lines = tmp_path / "out.jsonl"
        lines.write_bytes(client.get(f"/v1/jobs/{job['id']}/result").content)
        for _ in range(2):  # made once, then kept
            answer = client.get(f"/v1/jobs/{job['id']}/result?format=parquet")
            assert answer.headers["content-type"] == PARQUET
            out = tmp_path / "out.parquet"
            out.write_bytes(answer.content)
            assert list(decoded(out)) == list(result_rows(lines))
        assert [row.row.text for row in read_results(lines)] == ["good good", None, "bad"]

    def test_texts(self, client):
        body = {"texts": ["good good film", "bad"], "model": "other", "options": {"keep": 2}}
        job = ended(client, client.post("/v1/jobs", json=body))
        lines = client.get(f"/v1/jobs/{job['id']}/result").text.splitlines()
        rows = [json.loads(line) for line in lines]
        assert [row["text"] for row in rows[1:-1]] == body["texts"]
        assert rows[0]["classifier"]["options"]["keep"] == 2

    def test_pairs(self, client):
        """A function of texts fails on them."""
        pairs = {"texts": [["a", "good"], ["b", "bad"]]}
        job = ended(client, client.post("/v1/jobs", json=pairs))
        rows = client.get(f"/v1/jobs/{job['id']}/result").text.splitlines()[1:-1]
        rows = [json.loads(row) for row in rows]
        assert [[row["premise"], row["hypothesis"]] for row in rows] == pairs["texts"]
        assert [row["error"] for row in rows] == ["the model failed on this text"] * 2

    def test_options_in_the_address(self, client):
        path = '/v1/jobs?options={"keep": 2, "threats": ["span"]}&model=other&keep_columns=label'
        job = ended(client, client.post(path, content=ROWS, headers=CSV))
        assert job["options"] == {"keep": 2, "threats": ["span"]} and job["model"] == "other"
        first = client.get(f"/v1/jobs/{job['id']}/result").text.splitlines()[1]
        assert json.loads(first)["columns"] == {"label": "1"}
        assert json.loads(first)["radii"].keys() == {"substitutions", "span"}

    def test_rows_that_a_request_could_not_hold(self, client_of):
        client = client_of(most_words=3)
        content = "a b c\na b c d\ngood\n" + "\n"
        job = ended(
            client,
            client.post("/v1/jobs", content=content, headers={"content-type": "text/plain"}),
        )
        rows = client.get(f"/v1/jobs/{job['id']}/result").text.splitlines()[1:-1]
        errors = [json.loads(row).get("error", "") for row in rows]
        assert job["rows_failed"] == 2
        assert errors[1] == "4 words are more than 3: cut the text" and "no words" in errors[3]

    def test_a_deleted_job_is_gone(self, client, tmp_path):
        job = ended(client, client.post("/v1/jobs", content=ROWS, headers=CSV))
        path = f"/v1/jobs/{job['id']}"
        assert [one["id"] for one in client.get("/v1/jobs").json()["jobs"]] == [job["id"]]
        assert client.delete(path).json()["status"] == "deleted"
        for method, below in (("GET", ""), ("GET", "/result"), ("DELETE", "")):
            refused(client.request(method, path + below), 404, "no_such_job")
        assert client.get("/v1/jobs").json()["jobs"] == []
        assert [one.name for one in (tmp_path / "jobs").iterdir()] == ["lock"]

    def test_keys_see_their_own_jobs_only(self, client_of, tmp_path):
        (tmp_path / "keys").write_text("".join(f"{name} {KEYS[name]}\n" for name in KEYS))
        client = client_of(api_key_file=tmp_path / "keys", most_jobs=1)
        headers = {name: {"X-API-Key": key} for name, key in KEYS.items()}
        jobs = {}
        for name, own in headers.items():
            response = client.post("/v1/jobs", content=ROWS, headers={**CSV, **own})
            jobs[name] = ended(client, response, **own)["id"]
            again = client.post("/v1/jobs", content=ROWS, headers={**CSV, **own})
            refused(again, 429, "too_many_jobs")  # of this key alone
        for name, other in (("alice", "bob"), ("bob", "alice")):
            listed = client.get("/v1/jobs", headers=headers[name]).json()["jobs"]
            assert [job["id"] for job in listed] == [jobs[name]]
            path = f"/v1/jobs/{jobs[other]}"
            for method, below in (("GET", ""), ("GET", "/result"), ("DELETE", "")):
                response = client.request(method, path + below, headers=headers[name])
                refused(response, 404, "no_such_job")
            bearer = {"Authorization": f"Bearer {KEYS[name]}"}
            assert client.get(f"/v1/jobs/{jobs[name]}", headers=bearer).status_code == 200
        refused(client.get("/v1/jobs"), 401, "wrong_key")
        assert all(
            key not in said.read_text()
            for key in KEYS.values()
            for said in (tmp_path / "jobs").glob("*/*.json")
        )

    def test_without_a_folder_jobs_are_refused(self, client_of):
        client = client_of(jobs=None)
        for method, path in (
            *(("POST", "/v1/jobs"), ("GET", "/v1/jobs"), ("GET", "/v1/jobs/x")),
            ("DELETE", "/v1/jobs/x"),
        ):
            message = refused(client.request(method, path, headers=CSV), 404, "no_jobs")
            assert "--jobs" in message

    def test_a_folder_that_cannot_be_written(self, host, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OptionError, match="cannot keep jobs"):
            Jobs(host, ServiceSettings(jobs=str(tmp_path / "file")), lambda: False, unread())


class TestLimits:
    def test_size_rows_and_number(self, client_of):
        client = client_of(job_bytes=len(ROWS) + 5, job_rows=4, most_jobs=2, start=False)
        large = client.post("/v1/jobs", content=ROWS + "x" * 6, headers=CSV)
        assert f"{len(ROWS) + 5}" in refused(large, 413, "body_too_large")
        streamed = client.post("/v1/jobs", content=iter([ROWS.encode(), b"xxxxxx"]), headers=CSV)
        refused(streamed, 413, "body_too_large")
        many = client.post("/v1/jobs", content="text\n" + "a\n" * 5, headers=CSV)
        assert "5 rows are more than 4" in refused(many, 422, "too_many_rows")
        for _ in range(2):
            assert client.post("/v1/jobs", content=ROWS, headers=CSV).status_code == 201
        response = client.post("/v1/jobs", content=ROWS, headers=CSV)
        assert "DELETE" in refused(response, 429, "too_many_jobs")
        assert int(response.headers["retry-after"]) > 0
        first = client.get("/v1/jobs").json()["jobs"][0]["id"]
        client.delete(f"/v1/jobs/{first}")
        assert client.post("/v1/jobs", content=ROWS, headers=CSV).status_code == 201

    def test_json_is_limited_as_all_requests_are(self, client_of):
        client = client_of(body_bytes=100, start=False)
        refused(client.post("/v1/jobs", json={"texts": ["a" * 100]}), 413, "body_too_large")

    def test_a_body_that_does_not_come(self, host, tmp_path):
        settings = ServiceSettings(jobs=str(tmp_path), arrival_seconds=0.05)
        jobs = Jobs(host, settings, lambda: False, unread())

        class Slow:
            headers: ClassVar = {}

            async def stream(self):
                yield b"text\n"
                await asyncio.sleep(30)

        with (tmp_path / "file").open("wb") as file, pytest.raises(Problem) as problem:
            asyncio.run(jobs._store_body(Slow(), file))
        assert problem.value.code == "slow_body"

    def test_what_is_refused_leaves_nothing(self, client_of, tmp_path):
        client = client_of(start=False)
        client.post("/v1/jobs", content=b"", headers=CSV)
        client.post("/v1/jobs?model=nope", content=ROWS, headers=CSV)
        assert [one.name for one in (tmp_path / "jobs").iterdir()] == ["lock"]


class TestHostileUploads:
    @pytest.mark.parametrize(
        ("kind", "content", "said"),
        [
            ("text/csv", b"", "is empty"),
            ("text/csv", b"text\n", "has no rows"),
            ("text/csv", b"a,b\n1,2\n", "say which one holds the text"),
            ("text/csv", "text\ngood\n".encode("utf-16"), "UTF-16"),
            ("text/csv", b'text\n"never closed\n', "unexpected end"),
            ("text/csv", b"\x00\x01\x02\x03", None),
            ("application/x-ndjson", b"[1, 2]\n", "expected a JSON object"),
            ("application/x-ndjson", b"[" * 100_000 + b"\n", "nested too deeply"),
            (PARQUET, b"PAR1 this is none PAR1", "parquet"),
            (PARQUET, b"", "parquet"),
        ],
        ids=lambda value: repr(value)[:30],
    )
    def test_files_that_cannot_be_read(self, client_of, kind, content, said):
        client = client_of(start=False)
        response = client.post("/v1/jobs", content=content, headers={"content-type": kind})
        message = refused(response, 422, "unusable_file")
        assert said is None or said in message
        assert "jobs" not in message.replace("/v1/jobs", "") and ".new-" not in message

    @pytest.mark.parametrize("folder", ["kept", "{}/my kept jobs"], ids=["relative", "blanks"])
    def test_no_answer_names_the_folder_of_jobs(self, client_of, tmp_path, monkeypatch, folder):
        monkeypatch.chdir(tmp_path)
        client = client_of(jobs=folder.format(tmp_path))
        response = client.post("/v1/jobs", content=b"text\n", headers=CSV)
        assert refused(response, 422, "unusable_file") == "input.csv has no rows"
        content = b"text\n" + b"good\n" * 2000 + b'"never closed\n'
        job = ended(client, client.post("/v1/jobs", content=content, headers=CSV))
        assert job["error"] == "input.csv, line 2002: unexpected end of data"

    def test_rows_that_cannot_be_read_are_errors(self, client):
        content = b"id,text\n1,caf\xe9\n2,good\n3,one,too many\n4,half \xed\xa0\x80\n5,\x00\n"
        job = ended(client, client.post("/v1/jobs", content=content, headers=CSV))
        assert (job["status"], job["rows_done"]) == ("finished", 5)
        lines = client.get(f"/v1/jobs/{job['id']}/result").content.splitlines()[1:-1]
        errors = ["error" in json.loads(line) for line in lines]
        assert errors == [True, False, True, True, False]

    def test_a_file_that_breaks_off_in_the_middle(self, client):
        content = b"text\n" + b"good\n" * 2000 + b'"never closed\n'
        job = ended(client, client.post("/v1/jobs", content=content, headers=CSV))
        assert job["status"] == "failed" and "line 2002" in job["error"]
        assert "/" not in job["error"]
        assert client.get(f"/v1/jobs/{job['id']}/result").headers["x-job-status"] == "failed"

    def test_one_huge_row(self, client):
        content = b"good " * 400_000 + b"\nbad\n"
        response = client.post("/v1/jobs", content=content, headers={"content-type": "text/plain"})
        job = ended(client, response)
        assert (job["rows_done"], job["rows_failed"]) == (2, 1)

    @pytest.mark.parametrize(
        ("query", "status", "said"),
        [
            ("text_column=nope", 422, "has no column 'nope'"),
            ("pair_columns=text", 422, "pair_columns must be a list of at least 2"),
            ("text_column=text&pair_columns=a,b", 422, "not both"),
            ("kind=attack", 422, 'kind must be certify, predict or detect, not "attack"'),
            ("options=3", 422, "options must be a JSON object"),
            ("options={", 422, "options must be a JSON object"),
            ('options={"masks":"x"}', 422, "options.masks must be a whole number"),
            ('options={"certificate":"ablation","family":"all"}', 422, "family='all'"),
            ("positive=nope", 422, "positive must be one of the classes"),
            ("model=nope", 404, "no model 'nope'"),
            ("name=../../etc/passwd", 422, "name must be the name of a file"),
            ("name=a%00b", 422, "name must be the name of a file"),
            ("more=1", 422, "more is no field here"),
            ("kind=certify&kind=predict", 422, "kind stands twice"),
            ("format=exe", 415, "format=exe is no kind of file"),
        ],
    )
    def test_wrong_questions(self, client_of, query, status, said):
        response = client_of(start=False).post(f"/v1/jobs?{query}", content=ROWS, headers=CSV)
        assert response.status_code == status, response.text
        assert said in response.json()["error"]["message"]

    def test_what_is_no_file(self, client_of):
        client = client_of(start=False)
        kind = {"content-type": "multipart/form-data; boundary=x"}
        message = refused(client.post("/v1/jobs", content=ROWS, headers=kind), 415, _UNKNOWN)
        assert "text/csv" in message
        mixed = client.post("/v1/jobs", json={"texts": ["a", ["b", "c"]]})
        assert "texts[1]" in refused(mixed, 422, "invalid_request")
        both = client.post("/v1/jobs?kind=predict", json={"texts": ["a"]})
        assert "kind" in refused(both, 422, "invalid_request")
        json_kind = {"content-type": "application/json"}
        refused(client.post("/v1/jobs", content="{", headers=json_kind), 400, "invalid_json")

    @pytest.mark.parametrize(
        "id",
        [
            *("..", "%2e%2e", "..%2f..%2fetc", "lock", "a" * 32 + "%00", "A" * 32, "0" * 31),
            *("0" * 33, "0" * 32, "%ff", ".new-" + "0" * 32, "0" * 5000, "0" * 32 + "%0a"),
        ],
    )
    def test_ids_that_are_none(self, client_of, id):
        client = client_of(start=False)
        for method, below in (("GET", ""), ("DELETE", ""), ("GET", "/result")):
            response = client.request(method, f"/v1/jobs/{id}{below}")
            assert response.status_code in (404, 405), response.text
            assert len(response.text) < 300

    def test_no_result_yet(self, client_of):
        client = client_of(start=False)
        id = client.post("/v1/jobs", content=ROWS, headers=CSV).json()["id"]
        refused(client.get(f"/v1/jobs/{id}/result"), 409, "no_result_yet")
        wrong = client.get(f"/v1/jobs/{id}/result?format=xml")
        assert "format must be jsonl or parquet" in refused(wrong, 422, "invalid_request")


_UNKNOWN = "unknown_format"


class TestStore:
    @pytest.fixture
    def store(self, tmp_path):
        return JobStore(tmp_path / "jobs", 10, 1.0)

    def new(self, store, rows="good film\nbad\n" * 50):
        with store.draft() as draft:
            (draft / "input.txt").write_text(rows)
            return store.admit(
                draft,
                owner="",
                kind="certify",
                model="keywords",
                name="rows.txt",
                input="input.txt",
                options={},
                columns=Columns(),
                positive=None,
                rows=rows.count("\n"),
                bytes=len(rows),
            )

    def run(self, host, store, busy=lambda: False):
        runner = JobRunner(store, host, 2000, busy, unread())
        runner.start()
        return runner

    def wait(self, job, *statuses):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            state = job.state()
            if state.status in statuses:
                return state
            time.sleep(0.01)
        raise AssertionError(state)

    def test_one_process_works_on_a_job(self, store):
        first, second = self.new(store), self.new(store)
        other = JobStore(store.folder, 10, 1.0)
        with store.claimed() as mine:
            assert mine.request.id == first.request.id
            mine.write_state(JobState("running", started=1.0))
            assert mine.state().status == "running"
            with other.claimed() as theirs:
                assert theirs.request.id == second.request.id
                with store.claimed() as none:
                    assert none is None
        assert first.state().status == "queued", "whoever ran it is gone"

    def test_a_job_that_is_stopped_goes_on_to_the_same_bytes(self, host, store, tmp_path):
        """Stopped after each group: whatever is left is done by the next, once."""
        job, stops = self.new(store), 0
        (tmp_path / "rows.txt").write_bytes(job.input.read_bytes())
        while not job.state().over:
            runner = JobRunner(store, host, 2000, lambda: False, unread())
            checks = iter(range(7))

            def stop_soon(runner=runner, checks=checks):
                if next(checks, None) is None and runner._context is not None:
                    runner._context.cancel()
                return False

            runner._busy = stop_soon
            assert runner.work_once()
            stops += 1
            assert stops < 200
        assert stops > 3
        certify_file(smoothed(), tmp_path / "rows.txt", tmp_path / "out.jsonl")
        said = job.results.read_bytes().splitlines()[1:]
        assert said == (tmp_path / "out.jsonl").read_bytes().splitlines()[1:]
        assert job.state().rows == 100 and job.state().failed == 0

    def test_deleted_while_it_runs(self, host, store):
        job, busy = self.new(store), threading.Event()
        busy.set()
        runner = self.run(host, store, busy.is_set)
        self.wait(job, "running")
        store.delete(job)
        with pytest.raises(NoSuchJob):
            store.delete(job)
        busy.clear()
        another = self.new(store)
        self.wait(another, "finished")
        runner.stop()
        assert not job.folder.exists()
        with pytest.raises(Cancelled):
            BackgroundContext(job, busy.is_set).check()

    def test_a_model_that_is_no_longer_served(self, store):
        job = self.new(store)
        host = ModelRegistry({"words": FAKE}, keep=1)
        runner = self.run(host, store)
        state = self.wait(job, "failed")
        runner.stop()
        host.close()
        assert "no model 'keywords' is served here" in state.error

    def test_another_model_by_the_same_name(self, host, store):
        job = self.new(store)
        context = iter(range(7))
        runner = JobRunner(store, host, 2000, lambda: False, unread())
        runner._busy = lambda: next(context, None) is None and (runner._context.cancel() or False)
        assert runner.work_once()
        assert 0 < job.state().rows < 100
        other = ModelRegistry({"keywords": "reviews-words"})
        runner = self.run(other, store)
        state = self.wait(job, "failed")
        runner.stop()
        other.close()
        assert "the model 'keywords' is another one" in state.error and state.rows > 0

    def test_a_job_that_ends_every_process_is_given_up(self, host, store):
        job = self.new(store)
        job.write_state(JobState("running", rows=3, starts=5))
        runner = self.run(host, store)
        state = self.wait(job, "failed")
        runner.stop()
        assert "ended 5 times" in state.error and "after 3" in state.error

    def test_what_is_broken_does_not_stop_the_others(self, host, store):
        broken, gone = self.new(store), self.new(store)
        (broken.folder / "job.json").write_text("{")
        gone.input.unlink()
        well = self.new(store)
        runner = self.run(host, store)
        assert self.wait(well, "finished").rows == 100
        assert "cannot read" in self.wait(gone, "failed").error
        runner.stop()
        with pytest.raises(NoSuchJob):
            store.get(broken.request.id, "")

    def test_old_jobs_are_swept(self, store):
        old, new, running = self.new(store), self.new(store), self.new(store)
        old.write_state(JobState("finished", ended=time.time() - 86_401))
        new.write_state(JobState("finished", ended=time.time() - 86_000))
        store.sweep()
        assert {job.request.id for job in store.of("")} == {new.request.id, running.request.id}

    def test_texts_are_for_their_owner_alone(self, store):
        job = self.new(store)
        for folder in (store.folder, job.folder):
            assert folder.stat().st_mode & 0o077 == 0

    def test_a_model_that_fails_tells_nothing(self, store, host, monkeypatch):
        def fail(texts):
            raise OSError("secret in /home/somebody/folder")

        job = self.new(store, "good\n" * 5)
        monkeypatch.setattr(
            host, "smoothed", lambda name, context, **options: SmoothedClassifier(fail, keep=1)
        )
        assert JobRunner(store, host, 2000, lambda: False, unread()).work_once()
        assert job.state().failed == 5
        assert b"secret" not in job.results.read_bytes()
        assert b"the model failed on this text" in job.results.read_bytes()

"""`ranmask.Client` asks a real service, and answers with the library's own records."""

import json
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_serve_command import serving

import ranmask
from ranmask import Client, Columns, load_default, read_results
from ranmask.errors import DataError, ModelError, OptionError, ServiceError, TextError
from ranmask.results import Certificate, Prediction
from ranmask.serving import client_http

KEY = "a-key-that-is-long-enough"
TEXTS = [f"Stocks fell sharply on Wall Street for the {number} time" for number in range(40)]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    (folder / "key").write_text(KEY)
    limits = ("--most-texts", "7", "--body-bytes", "2000", "--most-words", "50")
    keyed = ("--api-key-file", str(folder / "key"), "--jobs", str(folder / "jobs"))
    limits = (*limits, "--job-bytes", "4000")
    with serving("--model", "news-words", *limits, *keyed) as server:
        yield f"http://127.0.0.1:{server.port}"
        assert server.end() == 0


@pytest.fixture
def client(address):
    with Client(address, KEY, retries=0) as client:
        yield client


class TestAnswers:
    def test_records_are_those_of_the_library(self, client):
        local = load_default("news-words")
        certificates = client.certify(TEXTS)
        assert certificates == local.certify(TEXTS)
        assert all(type(one) is Certificate for one in certificates)
        predictions = client.predict(iter(TEXTS[:3]), model="news-words")
        assert predictions == local.predict(TEXTS[:3])
        assert all(type(one) is Prediction for one in predictions)
        assert client.certify([]) == []

    def test_options(self, client):
        options = {"keep": 2, "masks": 50, "family": "sampled", "seed": 3, "threats": ("span",)}
        expected = load_default("news-words").with_options(**options).certify(TEXTS[:2])
        assert client.certify(TEXTS[:2], **options) == expected
        assert client.certify(TEXTS[:1], keep=None) == client.certify(TEXTS[:1])

    def test_as_many_texts_a_request_as_it_may_hold(self, client):
        long = ["word " * 49 + str(number) for number in range(20)]  # 245 bytes, of 2,000
        assert len(client.certify(long)) == 20
        with pytest.raises(OptionError, match="larger than 2000 bytes"):
            client.certify(["x" * 3000])

    def test_explain(self, client):
        explained = client.explain(TEXTS[0], copies=2)
        [certificate] = load_default("news-words").certify(TEXTS[:1])
        assert len(explained.certificate.copies) == 2
        assert explained.certificate.radius == certificate.radius
        assert explained.words == tuple(TEXTS[0].split())
        assert "Sports" in explained.labels and "exact" in explained.answer["curves"]

    def test_attack(self, client):
        outcome = client.attack(TEXTS[0], budget="radius")
        assert isinstance(outcome, ranmask.AttackOutcome)
        assert (outcome.status, outcome.text) == ("failed", TEXTS[0])
        with pytest.raises(OptionError, match="label_id"):
            client.attack(TEXTS[0], label_id=17)

    def test_models(self, client):
        [card] = client.models()
        assert card["name"] == "news-words" and len(card["labels"]) == 4

    def test_threads_share_a_client(self, client):
        expected = client.certify(TEXTS)
        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(lambda _: client.certify(TEXTS), range(16)):
                assert found == expected
        assert 0 < len(client._calls._idle) <= 8


class TestJobs:
    def test_a_file(self, client, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        rows = "".join(f"{number},{text},Business\n" for number, text in enumerate(TEXTS))
        (tmp_path / "rows.csv").write_text("id,body,label\n" + rows + "40,,Business\n")
        columns = Columns("body", label="label", keep=("label",))
        seen = []
        job = client.submit("rows.csv", columns=columns, positive="Business")
        assert job.wait(60, seen.append) is job
        assert seen and repr(job) == f"Job({job.id!r}, finished, 41 of 41 rows)"
        job.save("there.jsonl")
        local, given = load_default("news-words"), {"columns": columns, "positive": "Business"}
        ranmask.certify_file(local, "rows.csv", "here.jsonl", **given)
        assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
        assert list(job.results()) == list(read_results("here.jsonl"))
        assert job.save("there.parquet").read_bytes()[:4] == b"PAR1"
        assert [one.id for one in client.jobs()] == [job.id] == [client.job(job.id).id]
        job.delete()
        assert job.status == "deleted" and client.jobs() == []
        with pytest.raises(ServiceError, match="there is no job") as error:
            job.refresh()
        assert (error.value.status, error.value.code) == (404, "no_such_job")

    def test_texts(self, client):
        job = client.submit(TEXTS, kind="predict", keep=2, threats=["span"]).wait(60)
        found = [row.result.label for row in job.results()]
        assert found == [one.label for one in client.predict(TEXTS, keep=2)]
        assert job.about["options"] == {"keep": 2, "threats": ["span"]}
        job.delete()
        pairs = client.submit([("a premise", "a hypothesis")]).wait(60)
        assert "single texts only" in next(pairs.results()).error
        pairs.delete()

    def test_what_cannot_be_sent(self, client, tmp_path):
        (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
        (tmp_path / "rows.xlsx").write_text("")
        with pytest.raises(DataError, match="say which one holds the text"):
            client.submit(tmp_path / "rows.csv")
        with pytest.raises(DataError, match="cannot tell the format"):
            client.submit(tmp_path / "rows.xlsx")
        with pytest.raises(DataError, match="cannot read"):
            client.submit(tmp_path / "none.csv")
        with pytest.raises(OptionError, match="leave them out for texts"):
            client.submit(TEXTS, columns=Columns("text"))
        with pytest.raises(ModelError, match="no model 'nope'"):
            client.submit(TEXTS, model="nope")
        assert client.jobs() == []
        with pytest.raises(ServiceError, match="there is nothing here"):
            client.job("../models")
        with pytest.raises(ServiceError, match="there is no job"):
            client.job("models")
        with pytest.raises(OptionError, match="bytes are more than 4,000"):
            client.submit(TEXTS * 10)
        job = client.submit(TEXTS)
        with pytest.raises(OptionError, match=r"\.jsonl or \.parquet"):
            job.save(tmp_path / "out.csv")
        job.delete()


class TestRefusals:
    def test_they_are_the_errors_of_the_library(self, client):
        for asked, kind, message in (
            (lambda: client.certify([""]), TextError, "has no words"),
            (lambda: client.certify(["fine", 3]), TextError, "text 1"),
            (lambda: client.certify("fine"), TextError, "not one string"),
            (lambda: client.certify(["a"], masks=0), OptionError, "options.masks must be at least"),
            (lambda: client.certify(["a"], maks=1), OptionError, "did you mean masks"),
            (lambda: client.certify(["a"], labels={}), OptionError, "plain value"),
            (lambda: client.certify(["a"], model="x"), ModelError, "no model 'x'"),
            (lambda: client.certify(["a " * 51]), OptionError, "51 words"),
            (lambda: client.certify(["a"], keep=1, mask_rate=0.5), OptionError, "mask_rate"),
        ):
            with pytest.raises(kind, match=message):
                asked()

    def test_the_key(self, address):
        for key in (None, "another-key-of-them"):
            client = Client(address, key)
            with client, pytest.raises(ServiceError, match="send the API key") as error:
                client.models()
            assert (error.value.status, error.value.code) == (401, "wrong_key")
            assert error.value.request_id
        for wrong in ("a\r\nX: y", "a b", "é"):
            with pytest.raises(OptionError, match="printable"):
                Client(address, wrong)

    @pytest.mark.parametrize(
        "url",
        [
            *("127.0.0.1:8000", "ftp://x", "http://", "http://x?y=1", "http://u:p@x", "file:///x"),
            "http://x:99999",
        ],
    )
    def test_addresses_that_are_none(self, url):
        with pytest.raises(OptionError, match="url"):
            Client(url)

    def test_nobody_is_there(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with pytest.raises(ServiceError, match="is the service running there") as error:
            Client(f"http://127.0.0.1:{port}").certify(["a"])
        assert error.value.status is None


class Scripted(BaseHTTPRequestHandler):
    """Answers from a list, and notes what it was asked, and over how many connections."""

    protocol_version = "HTTP/1.1"
    answers: list
    asked: list
    connections: list

    def setup(self):
        super().setup()
        self.connections.append(self)

    def _answer(self):
        self.asked.append(self.command)
        length = int(self.headers.get("Content-Length", 0))
        answer = self.answers.pop(0) if self.answers else (200, {}, b'{"models": [1]}')
        if answer is None:  # closed without a word
            self.close_connection = True
            return
        status, headers, body = answer
        if "Connection" not in headers:
            self.rfile.read(length)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *_):
        pass


@contextmanager
def scripted(*answers):
    lists = {"answers": list(answers), "asked": [], "connections": []}
    handler = type("Handler", (Scripted,), lists)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield handler, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def waits(monkeypatch):
    waits = []
    monkeypatch.setattr(client_http.time, "sleep", waits.append)
    return waits


class TestDeadlines:
    def test_texts_that_were_not_done_in_time_are_asked_for_again(self):
        local = [one.to_dict() for one in load_default("news-words").predict(TEXTS[:3])]
        late = {"error": "no answer before the deadline"}
        answers = [
            {"models": [], "limits": {"texts": 10, "body_bytes": 10_000}},
            {"results": [local[0], late, late], "unfinished": [1, 2]},
            {"results": local[1:]},
        ]
        sent = [(200, {}, json.dumps(answer).encode()) for answer in answers]
        with scripted(*sent) as (server, url), Client(url) as client:
            assert [one.to_dict() for one in client.predict(TEXTS[:3])] == local
            assert server.asked == ["GET", "POST", "POST"]


class TestWaiting:
    SAID = b'{"error": {"code": "busy", "message": "m", "request_id": "r"}}'
    BUSY = (429, {"Retry-After": "3"}, SAID)

    def test_a_busy_service_is_asked_when_it_says(self, waits):
        answers = self.BUSY, (503, {"Retry-After": "5"}, self.SAID), (503, {}, b"<html>")
        with scripted(*answers) as (server, url), Client(url) as client:
            assert client.models() == [1]
        assert waits == [3.0, 5.0, 2.0] and server.asked == ["GET"] * 4
        assert len(server.connections) == 1, "one connection is kept"

    def test_it_is_not_asked_for_ever(self, waits):
        with scripted(*[self.BUSY] * 9) as (server, url), Client(url, retries=2) as client:
            with pytest.raises(ServiceError) as error:
                client.models()
            assert (error.value.status, error.value.code, waits) == (429, "busy", [3.0, 3.0])
            late = (429, {"Retry-After": "61"}, self.SAID)
            server.answers[:] = [late]
            with pytest.raises(ServiceError):
                client.models()
            assert len(waits) == 2, "it says to come back later than the client waits"

    def test_a_connection_that_was_closed_meanwhile(self, waits):
        with scripted() as (server, url), Client(url) as client:
            client.models()
            server.answers.append(None)
            assert client.models() == [1] and waits == []
            assert len(server.connections) == 2

    def test_an_old_connection_is_not_used(self, monkeypatch):
        monkeypatch.setattr(client_http, "_IDLE_SECONDS", 0.0)
        with scripted() as (server, url), Client(url) as client:
            client.models()
            client.models()
            assert len(server.connections) == 2

    def test_a_job_is_not_sent_twice(self, waits):
        limits = b'{"models": [], "limits": {"job_bytes": 1000}}'
        with scripted((200, {}, limits), None) as (server, url), Client(url) as client:
            with pytest.raises(ServiceError, match="cannot ask"):
                client.submit(["a text"])
            assert server.asked == ["GET", "POST"]

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ((502, {}, b"<html>\n<b>Bad   Gateway</b>"), "HTTP 502: <html> <b>Bad Gateway</b>"),
            ((302, {"Location": "http://elsewhere"}, b""), "sends on to elsewhere"),
            ((200, {}, b"<html>"), "no JSON"),
            ((200, {}, b'{"other": 1}'), "is no service of ranmask"),
            ((200, {}, b"[]"), "is no service of ranmask"),
            ((500, {}, b'{"error": 3}'), "HTTP 500"),
            ((200, {"Content-Length": "99"}, b"{}"), "cannot ask"),
        ],
    )
    def test_answers_of_something_else(self, answer, said):
        with (
            scripted(answer) as (_, url),
            Client(url, timeout=0.5) as client,
            pytest.raises(ServiceError, match=said),
        ):
            client.models()

    def test_no_answer_in_time(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            with pytest.raises(ServiceError, match=r"no answer within 0\.1 s"):
                Client(url, timeout=0.1).models()


def test_a_client_needs_no_extra():
    """Neither numpy nor what the service needs is imported."""
    code = (
        "import sys, ranmask; ranmask.Client('http://127.0.0.1:1', key='k');"
        "heavy = {'numpy', 'fastapi', 'pydantic', 'uvicorn', 'torch', 'starlette'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

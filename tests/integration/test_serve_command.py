"""`ranmask serve` as a process: asked, tormented, and told to end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from ranmask.smoothing.endpoint import EndpointReader
from ranmask.smoothing.store import load_classifier, load_default
from ranmask.words import documents

KEY = "a-key-that-is-long-enough"
TEXT = "Stocks fell sharply on Wall Street as oil prices rose again"
SLOW = '''"""A model that takes its time."""
import time


def classify(texts):
    time.sleep(0.5)
    return [[0.25, 0.75] for _ in texts]
'''


class Server:
    """A running service; ``log`` is what it wrote so far."""

    def __init__(self, process):
        self.process = process
        self.log = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = int(self.wait_for("listening")["url"].rpartition(":")[2])

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)

    def wait_for(self, event, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in list(self.log):
                if line.startswith("{") and json.loads(line)["event"] == event:
                    return json.loads(line)
            assert self.process.poll() is None or event == "ended", "".join(self.log)
            time.sleep(0.02)
        raise AssertionError(f"no {event!r} in {''.join(self.log)}")

    def ask(self, path, body=None, headers=(), method=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        method = method or ("GET" if body is None else "POST")
        connection.request(method, path, sent, {**kind, **dict(headers)})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if response.headers["content-type"] == "application/json":
            return response.status, json.loads(content)
        return response.status, content.decode()

    def end(self, sign=signal.SIGTERM):
        self.process.send_signal(sign)
        code = self.process.wait(30)
        self._reader.join(10)
        return code


def command(*arguments):
    return [sys.executable, "-W", "error", "-m", "ranmask.cli", "serve", "--port", "0", *arguments]


@contextmanager
def serving(*arguments, cwd=None, **variables):
    process = subprocess.Popen(
        command(*arguments),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
    )
    try:
        yield Server(process)
    finally:
        process.kill()
        process.wait(10)
        process.stderr.close()


@pytest.fixture(scope="module")
def server():
    with serving("--model", "news-words", "--model", "films=reviews-words") as server:
        yield server
        # Whatever was done to it: it answers, it ends well, and it said no text.
        assert server.ask("/v1/predict", {"text": TEXT})[0] == 200
        assert server.end() == 0
        log = "".join(server.log)
        assert "Wall" not in log
        assert all(json.loads(line) for line in server.log), "lines that are not ours"
        assert '"internal error"' not in log
        assert "Traceback" not in log


def test_answers_are_those_of_python(server):
    status, answer = server.ask("/v1/certify", {"texts": [TEXT, "a b c"]})
    expected = load_default("news-words").certify([TEXT, "a b c"])
    assert (status, answer["results"]) == (200, [one.to_dict() for one in expected])
    status, answer = server.ask("/v1/predict", {"text": "a superb film", "model": "films"})
    assert (status, answer["results"][0]["label"]) == (200, "positive")


def test_a_reader_may_ask_it(server, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    reader = EndpointReader(
        f"http://127.0.0.1:{server.port}/v1/predict",
        protocol="json",
        labels=("positive", "negative"),
        model_name="films",
    )
    texts = documents(["a superb film", "a dull film", "a perfect story"])
    assert reader.read(texts, 2).tolist() == [[1, 0], [0, 1], [1, 0]]


def test_a_table_of_synonyms(tmp_path):
    table = {"stocks": ["shares", "securities"], "fell": ["rose"]}
    (tmp_path / "mine.json").write_text(json.dumps(table))
    with serving("-m", "news-words", "--synonyms", "mine.json", cwd=tmp_path) as server:
        body = {"text": TEXT, "options": {"threats": ["synonyms"]}}
        status, answer = server.ask("/v1/certify", body)
        smoothed = load_default("news-words", synonyms=table)
        [expected] = smoothed.certify([TEXT], threats=["synonyms"])
        assert status == 200 and answer["results"][0]["radii"] == dict(expected.radii)
        [card] = server.ask("/v1/models")[1]["models"]
        assert card["synonyms"] == "mine.json" and server.end() == 0


def test_a_function_is_served_as_certify_shows_it_copies(tmp_path, monkeypatch):
    """Words left out instead of masked, and the classes named."""
    source = (
        "def classify(texts):\n    return [[0.1, text.split().count('free')] for text in texts]\n"
    )
    (tmp_path / "mine_served.py").write_text(source)
    given = ("--model", "mine_served:classify", "--keep", "1", "--hide", "drop")
    with serving(*given, "--labels", "ham,spam", cwd=tmp_path) as server:
        text = "free free free prize"
        body = {"text": text, "options": {"threats": ["insertions"]}}
        status, answer = server.ask("/v1/certify", body)
        monkeypatch.syspath_prepend(tmp_path)
        smoothed = load_classifier(given[1], keep=1, hide="drop", labels=("ham", "spam"))
        [expected] = smoothed.certify([text], threats=["insertions"])
        assert expected.radii["insertions"] == 1 and expected.label == "spam"
        assert (status, answer["results"]) == (200, [expected.to_dict()])
        assert server.end() == 0


def test_the_page_and_its_files_load(server):
    status, page = server.ask("/")
    assert status == 200
    assert server.ask("/page/app.js")[0] == server.ask("/page/style.css")[0] == 200
    assert server.ask("/docs")[0] == server.ask("/metrics")[0] == server.ask("/readyz")[0] == 200
    assert "<script>" not in page


def test_many_at_once(server):
    texts = [f"{TEXT} number {number}" for number in range(60)]
    expected = load_default("news-words").certify(texts)
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda text: server.ask("/v1/certify", {"text": text}), texts))
    assert [answer["results"][0] for _, answer in answers] == [one.to_dict() for one in expected]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 200_000, 400),
        (b'{"a":' * 100_000, 400),
        (b"{", 400),
        (b"\xff\xfe\x00", 400),
        (json.dumps({"text": "w " * 100_000}).encode(), 422),
        (json.dumps({"texts": ["w"] * 5000}).encode(), 422),
        (json.dumps({"texts": [1] * 100_000}).encode(), 422),
        (b'{"text": "\\ud800"}', 422),
        (json.dumps({f"f{n}": 0 for n in range(50_000)}).encode(), 422),
        (b'{"text": ' + b"9" * 100_000 + b"}", 400),
        (json.dumps({"text": "\x00" * 10}).encode(), 200),
        (b" " * 1_000_000 + b"{}", 422),
    ],
)
def test_hostile_bodies(server, body, status):
    assert server.ask("/v1/certify", body)[0] == status


def test_a_huge_body_is_refused_before_it_is_sent(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as link:
        link.sendall(_head(10**12))
        assert b" 413 " in link.recv(4000)


def test_clients_that_leave_or_say_nothing(server):
    links = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for number, link in enumerate(links):
        link.sendall(_head(100)[: 10 * number])
    body = json.dumps({"texts": [TEXT] * 200, "options": {"keep": 5, "masks": 2000}}).encode()
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as link:
            link.sendall(_head(len(body)) + body)
    status, answer = server.ask("/v1/predict", {"text": TEXT})
    assert (status, answer["results"][0]["label"]) == (200, "Business")
    for link in links:
        link.close()


def test_heads_that_do_not_come_and_connections_beyond_the_limit(tmp_path):
    limits = ("--arrival", "0.3", "--connections", "4")
    with serving("-m", "news-words", *limits) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as kept:
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in _whole(kept)
            links = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
            links[1].sendall(b"GET /healthz HTT")
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as refused:
                answer = refused.recv(4000)
                assert b" 503 " in answer
                assert b"too_many_connections" in answer
                assert refused.recv(4000) == b""
            for link in links:
                link.settimeout(10)
                assert link.recv(100) == b"", "closed, for the head did not come"
                link.close()
            # One between two requests is patient; but a second head must come whole as well.
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in _whole(kept)
            kept.sendall(b"GET /hea")
            assert kept.recv(100) == b""
        assert server.ask("/healthz")[0] == 200


def test_clients_that_keep_a_connection_waiting_lose_it():
    """Bodies that go on after the answer, answers that are not read."""
    limits = ("--arrival", "2", "--connections", "8")
    get = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n"
    with serving("-m", "news-words", *limits) as server:
        address = ("127.0.0.1", server.port)
        dripping = [socket.create_connection(address, timeout=10) for _ in range(4)]
        for number, link in enumerate(dripping):
            host = b"localhost" if number % 2 else b"evil.example"
            link.sendall(
                b"GET /healthz HTTP/1.1\r\nHost: %s\r\nContent-Length: 9999\r\n\r\n" % host
            )
        unread = [_narrow(address) for _ in range(4)]
        for link in unread:
            _flood(link, get + b"\r\n")
        assert b" 503 " in _answer(address, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _until(lambda: all(map(_dropped, dripping)))
        _until(lambda: server.ask("/healthz")[0] == 200)
        _until(lambda: "ranmask_open_requests 1.0" in server.ask("/metrics")[1])
        for link in dripping + unread:
            link.close()
        # A body that nobody needed, but that comes, is no reason to close.
        with socket.create_connection(address, timeout=10) as polite:
            for _ in range(2):
                polite.sendall(get + b"Content-Length: 4\r\n\r\n")
                assert b" 200 " in _whole(polite)
                time.sleep(0.1)
                polite.sendall(b"body")
                time.sleep(0.1)
        assert server.end() == 0


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x00\xa5" + b"\x00" * 200 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000,
        b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    ],
)
def test_what_is_no_http_is_refused_as_everything_is(server, said):
    answer = _answer(("127.0.0.1", server.port), said)
    assert b" 400 " in answer
    assert b'"code": "not_http"' in answer


def test_nonsense_after_an_answer_leaves_no_trace(server):
    """The module's `server` fails where its log holds a traceback."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as link:
        link.sendall(
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        assert b" 200 " in _whole(link)
        link.sendall(b"ZZZ\r\nfoo\r\n")
        assert link.recv(4000) == b""


def test_a_search_does_not_outlive_its_deadline():
    """A certificate that takes many seconds: others are answered, and the service can end."""
    with serving("-m", "news-words", "--deadline", "1") as server, ThreadPoolExecutor(4) as threads:
        hard = {"texts": ["golf hockey " * 500] * 4, "options": {"keep": 2, "masks": 2000}}
        waiting = [threads.submit(server.ask, "/v1/certify", hard) for _ in range(4)]
        time.sleep(0.5)
        assert server.ask("/v1/certify", {"text": TEXT})[0] == 200
        assert [one.result()[0] for one in waiting] == [504] * 4
        begun = time.monotonic()
        assert server.end() == 0
        assert time.monotonic() - begun < 10


def test_a_killed_service_starts_again_on_its_port():
    with serving("-m", "news-words") as server:
        port = server.port
        assert server.ask("/v1/predict", {"text": TEXT})[0] == 200
        with socket.create_connection(("127.0.0.1", port)) as link:
            link.sendall(_head(100))
            server.process.kill()
            server.process.wait(10)
        with serving("-m", "news-words", "--port", str(port)) as again:
            assert again.port == port
            assert again.ask("/v1/predict", {"text": TEXT})[0] == 200
            assert again.end() == 0


def test_a_key_from_a_file(tmp_path):
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    with serving("-m", "news-words", "--api-key-file", str(file)) as server:
        assert server.ask("/v1/models")[0] == 401
        assert server.ask("/v1/models", headers={"X-API-Key": KEY})[0] == 200
        assert KEY not in "".join(server.log)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "0.0.0.0"), "without an API key"),
        (("--model", "no_such_module:classify"), "no_such_module"),
        (("--api-key-file", "nowhere"), "cannot read the API key"),
        (("--threads", "0"), "threads"),
        (("--synonyms", "nowhere.json"), "is no table"),
        (("--model", "news-words", "--labels", "a,b"), "but the model has 4: World, Sports"),
        (("--model", "spam-sms", "--hide", "drop"), "--hide means nothing where only detectors"),
    ],
)
def test_wrong_usage(arguments, said):
    ended = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode in (1, 2)
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = subprocess.run(
            command("--port", port), capture_output=True, text=True, timeout=60, check=False
        )
    assert ended.returncode == 2
    assert "choose another --port" in ended.stderr


def test_what_was_accepted_is_answered_before_the_end(tmp_path):
    (tmp_path / "slow_model.py").write_text(SLOW)
    model = ("-m", "slow=slow_model:classify", "--keep", "1", "--drain", "1")
    with serving(*model, cwd=tmp_path) as server, ThreadPoolExecutor(8) as threads:
        body = {"texts": ["a b c", "d e"]}
        waiting = [threads.submit(server.ask, "/v1/predict", body) for _ in range(8)]
        _until(lambda: "ranmask_open_requests 9.0" in server.ask("/metrics")[1])
        server.process.send_signal(signal.SIGTERM)
        _until(lambda: server.ask("/readyz")[0] == 503)
        assert server.end() == 0
        assert [one.result()[0] for one in waiting] == [200] * 8
        assert json.loads(server.log[-1])["event"] == "ended"


def test_a_deadline_is_kept(tmp_path):
    (tmp_path / "slow_model.py").write_text(SLOW)
    model = ("-m", "slow=slow_model:classify", "--keep", "1", "--deadline", "0.2")
    with serving(*model, cwd=tmp_path) as server:
        status, answer = server.ask("/v1/predict", {"text": "a b c"})
        assert (status, answer["error"]["code"]) == (504, "deadline")
        assert server.end(signal.SIGINT) == 0


def _until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def _answer(address, said):
    with socket.create_connection(address, timeout=10) as link:
        with suppress(OSError):  # refused before all of it was read
            link.sendall(said)
        return link.recv(4000)


def _whole(link):
    """An answer of a known length: its parts may come one by one."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += link.recv(4000)
    head, _, body = said.partition(b"\r\n\r\n")
    [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < int(length.partition(b":")[2]):
        body += link.recv(4000)
    return head + body


def _narrow(address):
    """A client that takes in next to nothing unless it reads."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(address)
    link.settimeout(0.2)
    return link


def _flood(link, said):
    with suppress(OSError):  # the service reads no more before its answers are read
        for _ in range(300):
            link.sendall(said * 10)


def _dropped(link):
    try:
        link.sendall(b"x")
        return False
    except OSError:
        return True


def _head(length):
    return (
        f"POST /v1/certify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()

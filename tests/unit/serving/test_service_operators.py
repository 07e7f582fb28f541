"""HEAD, traces, warnings with their clients, metrics, and batches that are late."""

import json
import logging
import re
import threading

import pytest
from starlette.testclient import TestClient

from ranmask import __version__
from ranmask.serving.app import create_app
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.telemetry import resident_bytes

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def host():
    host = ModelRegistry({"keywords": "ranmask.models.testing:keyword_classifier"}, keep=1)
    yield host
    host.close()


@pytest.fixture
def client(host):
    with TestClient(create_app(host, ServiceSettings()), base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/docs", "/healthz", "/readyz", "/v1/models", "/nowhere"])
def test_head_is_get_without_its_body(client, path):
    head, get = client.head(path), client.get(path)
    assert head.content == b""
    kept = ("content-length", "content-type", "x-content-type-options", "cache-control")
    assert head.status_code == get.status_code
    assert [head.headers.get(name) for name in kept] == [get.headers.get(name) for name in kept]


def test_head_asks_no_question(client):
    assert client.head("/v1/certify").status_code == 405


class TestTraces:
    def facts(self, client, caplog, sent):
        with caplog.at_level(logging.INFO, "ranmask.serving"):
            logging.getLogger("ranmask.serving").propagate = True
            answer = client.get("/healthz", headers={"traceparent": sent})
        return answer.headers.get("traceparent"), caplog.records[-1].facts

    @pytest.mark.parametrize("sent", [f"00-{TRACE}-{PARENT}-01", f"01-{TRACE}-{PARENT}-01-more"])
    def test_a_trace_goes_on(self, client, caplog, sent):
        returned, facts = self.facts(client, caplog, sent)
        assert returned == f"00-{TRACE}-{facts['span_id']}-01"
        assert (facts["trace_id"], facts["parent_id"]) == (TRACE, PARENT)
        assert re.fullmatch("[0-9a-f]{16}", facts["span_id"]) and facts["span_id"] != PARENT

    @pytest.mark.parametrize(
        "sent",
        [
            *("", "00", f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01"),
            *(f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{PARENT}-01"),
        ],
    )
    def test_what_is_none_is_left_out(self, client, caplog, sent):
        returned, facts = self.facts(client, caplog, sent)
        assert returned is None
        assert "trace_id" not in facts


def test_warnings_are_warnings_and_name_the_client(client, caplog):
    with caplog.at_level(logging.INFO, "ranmask.serving"):
        logging.getLogger("ranmask.serving").propagate = True
        client.get("/v1/models")
        client.get("/v1/models", headers={"Host": "evil.example"})
    fine, refused = caplog.records[-2:]
    assert (fine.levelname, "client" in fine.facts) == ("INFO", False)
    assert (refused.levelname, refused.facts["status"]) == ("WARNING", 421)
    assert refused.facts["client"] == "testclient"


def test_metrics_for_operators(client):
    client.post("/v1/predict", json={"text": "good film"})
    metrics = client.get("/metrics").text

    def value(name):
        return float(re.search(rf"^{name}(?:{{.*}})? (\S+)$", metrics, re.MULTILINE)[1])

    assert 0.5 < value("ranmask_memory_bytes") / resident_bytes() < 2
    assert (value("ranmask_restarts"), value("ranmask_processes")) == (0, 1)
    assert value("ranmask_admitted_requests") == 0
    assert 'ranmask_build_info{python="3.' in metrics
    assert f'version="{__version__}"' in metrics
    assert value("ranmask_pool_waiting_copies") == 0


class Slow:
    """A host whose model stops at its third group of texts, until the request is over."""

    def __init__(self, host):
        self.host, self.calls = host, 0

    def __getattr__(self, name):
        return getattr(self.host, name)

    def smoothed(self, name, context, **options):
        smoothed = self.host.smoothed(name, context, **options)
        classify = smoothed.certify

        def certify(texts):
            self.calls += 1
            if self.calls > 2:
                context.wait(threading.Event())
                context.check()
            return classify(texts)

        smoothed.certify = certify
        return smoothed


def test_a_batch_that_is_late_has_what_was_done(host):
    texts = ["good film " * 20] * 200
    app = create_app(Slow(host), ServiceSettings(deadline_seconds=0.5))
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.post("/v1/certify", json={"texts": texts})
        assert answer.status_code == 200
        said = answer.json()
        assert said["unfinished"] == list(range(128, 200))
        [whole] = (
            TestClient(create_app(host, ServiceSettings()), base_url="http://localhost")
            .post("/v1/certify", json={"texts": texts[:1]})
            .json()["results"]
        )
        assert said["results"][:128] == [whole] * 128
        assert all("deadline" in one["error"] for one in said["results"][128:])
        # Where nothing was done, the answer is that nothing was.
        late = client.post("/v1/certify", json={"texts": texts})
        assert (late.status_code, late.json()["error"]["code"]) == (504, "deadline")
        assert "unfinished" not in json.dumps(late.json())

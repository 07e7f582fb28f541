"""The routes of the service, over a host of an instant classifier."""

import dataclasses
import io
import json
import logging
import threading
import time

import pytest
from starlette.testclient import TestClient

from ranmask.errors import ClassifierError
from ranmask.results import Certificate, Prediction
from ranmask.serving import answers
from ranmask.serving.app import create_app
from ranmask.serving.problems import Busy, Closing
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.telemetry import JsonLines, log_to
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.store import load_default

FAKE = "ranmask.models.testing:keyword_classifier"
GOOD = "good good good good film"


class Interfering:
    """A host whose requests may be stopped on their way, or fail."""

    def __init__(self, host):
        self.host = host
        self.before = lambda context: None
        self.contexts = []

    def __getattr__(self, name):
        return getattr(self.host, name)

    def smoothed(self, name, context, **options):
        self.contexts.append(context)
        self.before(context)
        return self.host.smoothed(name, context, **options)


@pytest.fixture(scope="module")
def loaded():
    host = ModelRegistry({"keywords": FAKE, "other": FAKE}, keep=1)
    yield host
    host.close()


@pytest.fixture
def host(loaded):
    return Interfering(loaded)


@pytest.fixture
def client_of(host):
    def make(**settings):
        app = create_app(host, ServiceSettings(**settings))
        return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)

    return make


@pytest.fixture
def client(client_of):
    with client_of() as client:
        yield client


def refused(response, status, code):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert error["request_id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    return error["message"]


class TestAnswers:
    def test_certificates_are_those_of_the_python_api(self, client):
        texts = [GOOD, "bad bad x", "fine"]
        answer = client.post("/v1/certify", json={"texts": texts}).json()
        smoothed = SmoothedClassifier(_keywords(), keep=1)
        assert answer["model"] == "keywords"
        assert answer["results"] == [one.to_dict() for one in smoothed.certify(texts)]

    def test_predictions_with_options(self, client):
        options = {"keep": 2, "masks": 7, "family": "sampled", "seed": 3, "ensemble": "score"}
        body = {"text": GOOD, "model": "other", "options": options}
        answer = client.post("/v1/predict", json=body).json()
        smoothed = SmoothedClassifier(_keywords(), **options)
        assert answer["model"] == "other"
        assert answer["results"] == [smoothed.predict([GOOD])[0].to_dict()]

    def test_results_have_the_documented_fields(self):
        for shown, real in (
            (answers.PredictionResult, Prediction),
            (answers.CertificateResult, Certificate),
        ):
            fields = {field.name for field in dataclasses.fields(real)}
            assert set(shown.model_fields) == {"version", *fields}

    def test_a_text_that_cannot_be_used_does_not_spoil_the_others(self, client):
        texts = ["", GOOD, "half \ud800", "a\x00b"]
        body = json.dumps({"texts": texts})
        sent = {"content-type": "application/json"}
        results = client.post("/v1/certify", content=body, headers=sent).json()["results"]
        assert "no words" in results[0]["error"]
        assert results[1]["label_id"] == 1
        assert "surrogate" in results[2]["error"]
        assert results[3]["words"] == 1

    def test_no_usable_text(self, client):
        message = refused(client.post("/v1/certify", json={"texts": ["", " "]}), 422, _TEXT)
        assert "no words" in message
        refused(client.post("/v1/explain", json={"text": ""}), 422, _TEXT)
        refused(client.post("/v1/attack", json={"text": ""}), 422, _TEXT)

    def test_explain(self, client):
        answer = client.post("/v1/explain", json={"text": GOOD, "copies": 2}).json()
        explanation = answers.Explanation.model_validate(answer)
        assert explanation.result.radius == 1
        assert len(explanation.copies) == 2
        assert "exact" in explanation.curves

    def test_attack(self, client):
        answer = client.post("/v1/attack", json={"text": GOOD, "budget": "radius"}).json()
        answers.AttackAnswer.model_validate(answer)
        assert (answer["status"], answer["budget"], answer["label"]) == ("failed", 1, 1)
        wrong = {"text": GOOD, "label_id": 2}
        assert "label_id" in refused(client.post("/v1/attack", json=wrong), 422, "wrong_option")

    def test_models(self, client):
        answer = client.get("/v1/models").json()
        assert answer["default"] == "keywords"
        assert [model["name"] for model in answer["models"]] == ["keywords", "other"]

    def test_documentation_describes_every_route_and_loads_nothing(self, client):
        page = client.get("/docs").text
        paths = client.get("/openapi.json").json()["paths"]
        assert {"/v1/predict", "/v1/certify", "/v1/explain", "/v1/attack"} < set(paths)
        assert all(f"{path}</code>" in page for path in paths)
        assert "http" not in page.replace("http-equiv", "")
        assert client.get("/docs.css").headers["content-type"].startswith("text/css")


class TestGathering:
    @pytest.fixture
    def questions(self, client, monkeypatch):
        """What short requests ask, in their order."""
        asked, gathering = [], client.app.state.service.gathering
        run = gathering.run

        async def noted(receive, question, *more):
            asked.append(question)
            return await run(receive, question, *more)

        monkeypatch.setattr(gathering, "run", noted)
        return asked

    def test_short_requests_are_gathered_and_long_ones_are_not(self, client, questions):
        for words, gathered in ((512, 1), (513, 1), (1, 2)):
            body = {"text": "good " * words, "options": {"masks": 1000}}
            assert client.post("/v1/predict", json=body).status_code == 200
            assert len(questions) == gathered

    def test_only_those_who_ask_the_same_of_the_same_model_are(self, client, questions):
        body = {"text": GOOD, "model": "keywords", "options": {"keep": 1, "seed": 1}}
        for route, change in (
            ("predict", {}),
            ("certify", {}),
            ("predict", {"model": "other"}),
            ("predict", {"options": {"keep": 1, "seed": 2}}),
            ("predict", {"options": {"keep": 1}}),
        ):
            assert client.post(f"/v1/{route}", json={**body, **change}).status_code == 200
        assert len(set(questions)) == 5
        again = {"options": {"seed": 1, "keep": 1}, "texts": ["fine"]}
        assert client.post("/v1/predict", json=again).status_code == 200
        assert questions[-1] == questions[0]


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "text"),
            ({"text": 3}, "text"),
            ({"text": ["a"]}, "text"),
            ({"text": "a", "texts": ["a"]}, "text"),
            ({"texts": []}, "texts"),
            ({"texts": "a"}, "texts"),
            ({"text": "a", "more": 1}, "more"),
            ({"text": "a", "options": {"masks": 0}}, "options.masks"),
            ({"text": "a", "options": {"masks": "5"}}, "options.masks"),
            ({"text": "a", "options": {"keep": True}}, "options.keep"),
            ({"text": "a", "options": {"device": "cuda"}}, "options.device"),
            ({"text": "a", "model": ["keywords"]}, "model"),
            ([], "the body"),
            ({f"field{number}": 1 for number in range(1000)}, "field0"),
        ],
    )
    def test_what_the_description_does_not_allow(self, client, body, field):
        response = client.post("/v1/certify", json=body)
        assert refused(response, 422, "invalid_request").startswith(field)

    def test_a_name_that_is_no_unicode_is_not_repeated(self, client):
        for body in (b'{"text": "a", "\\ud800": 1}', b'{"text": "a", "model": "\\udfff"}'):
            sent = {"content-type": "application/json"}
            refused(client.post("/v1/predict", content=body, headers=sent), 422, "invalid_request")

    @pytest.mark.parametrize("body", [b"{", b"", b"\xff", b'{"text": NaN', b"1" * 5000])
    def test_no_json(self, client, body):
        response = client.post(
            "/v1/predict", content=body, headers={"content-type": "application/json"}
        )
        assert response.status_code in (400, 422)
        assert response.json()["error"]["code"] in ("invalid_json", "invalid_request")

    def test_options_that_mean_nothing_together(self, client):
        body = {"text": "a", "options": {"certificate": "ablation", "family": "all"}}
        assert "family='all'" in refused(client.post("/v1/certify", json=body), 422, _OPTION)

    def test_options_that_take_too_much_memory(self, client):
        options = {"keep": 500, "masks": 1_000_000}
        body = {"text": "word " * 1000, "options": options}
        assert "fewer masks" in refused(client.post("/v1/predict", json=body), 422, _OPTION)

    def test_limits(self, client_of):
        client = client_of(most_texts=2, most_words=3)
        many = client.post("/v1/predict", json={"texts": ["a"] * 3})
        assert "2" in refused(many, 422, "too_many_texts")
        for long in ("a b c d", ["a b", "c d"]):
            words = client.post("/v1/predict", json={"texts": ["a", long]})
            assert "text 1 has 4 words" in refused(words, 422, "too_many_words")
        assert client.post("/v1/predict", json={"texts": ["a b c"] * 2}).status_code == 200

    def test_unknown_things(self, client):
        unknown = client.post("/v1/predict", json={"text": "a", "model": "nope"})
        assert "keywords" in refused(unknown, 404, "unknown_model")
        refused(client.get("/nope"), 404, "no_such_route")
        wrong = client.get("/v1/predict")
        refused(wrong, 405, "wrong_method")
        assert wrong.headers["allow"] == "POST"


class TestFaults:
    def fail(self, host, error):
        def before(context):
            raise error

        host.before = before

    def test_busy(self, host, client):
        self.fail(host, Busy(2.3))
        response = client.post("/v1/predict", json={"text": "a"})
        refused(response, 429, "busy")
        assert response.headers["retry-after"] == "3"

    def test_closing(self, host, client):
        self.fail(host, Closing())
        refused(client.post("/v1/predict", json={"text": "a"}), 503, "closing")

    def test_a_bug_tells_nothing(self, host, client):
        self.fail(host, RuntimeError("secret in /home/somebody/folder"))
        message = refused(client.post("/v1/predict", json={"text": "a"}), 500, "internal")
        assert "secret" not in message
        host.before = lambda context: None
        assert client.post("/v1/predict", json={"text": "a"}).status_code == 200

    def test_a_failing_model_tells_nothing(self, host, client):
        error = ClassifierError("the base classifier raised OSError: /data/secret")
        error.__cause__ = OSError("secret")
        self.fail(host, error)
        refused(client.post("/v1/predict", json={"text": "a"}), 500, "internal")

    def test_a_model_that_fails_on_a_text_tells_nothing(self, host, client):
        def classify(texts):
            raise OSError("secret")

        host.smoothed = lambda name, context, **options: SmoothedClassifier(classify, keep=1)
        refused(client.post("/v1/certify", json={"texts": ["a", "b"]}), 500, "internal")

    def test_a_model_that_fails_on_one_text_answers_for_the_others(self, host, client, caplog):
        def classify(texts):
            if "bad" in texts:
                raise OSError("secret")
            return [[0, 1]] * len(texts)

        smoothed = SmoothedClassifier(classify, keep=1, hide="drop")
        host.smoothed = lambda name, context, **options: smoothed
        answer = client.post("/v1/certify", json={"texts": ["a b", "a bad b", "c"]})
        assert answer.status_code == 200 and "secret" not in answer.text
        first, failed, last = answer.json()["results"]
        assert (first["radius"], last["radius"]) == (0, 0)
        assert failed == {"error": "the model failed on this text"}
        [logged] = [record for record in caplog.records if record.exc_info]
        assert "secret" in str(logged.exc_info[1])

    def test_a_text_that_the_model_cannot_read(self, host, client):
        table = load_default("reviews-words")
        host.smoothed = lambda name, context, **options: table
        texts = ["a superb film", ["a premise", "a hypothesis"]]
        results = client.post("/v1/certify", json={"texts": texts}).json()["results"]
        assert results[0]["label"] == "positive"
        assert "single texts only" in results[1]["error"]

    def test_folders_are_cut_from_messages(self, host, client):
        self.fail(host, ClassifierError("no pairs in /home/somebody/models/best: use another"))
        message = refused(client.post("/v1/predict", json={"text": "a"}), 422, "unusable_model")
        assert message == "no pairs in best: use another"

    def test_deadline(self, host, client_of):
        host.before = lambda context: time.sleep(0.3)
        with client_of(deadline_seconds=0.05) as client:
            refused(client.post("/v1/predict", json={"text": "a"}), 504, "deadline")
            assert host.contexts[0].cancelled

    def test_a_full_queue(self, host, client_of):
        entered, release = threading.Event(), threading.Event()

        def before(context):
            entered.set()
            release.wait(10)

        host.before = before
        with client_of(threads=1, waiting_requests=0) as client:
            answers = []
            ask = lambda: answers.append(client.post("/v1/predict", json={"text": "a"}))  # noqa: E731
            first = threading.Thread(target=ask)
            first.start()
            assert entered.wait(10)
            response = client.post("/v1/predict", json={"text": "a"})
            refused(response, 429, "busy")
            assert int(response.headers["retry-after"]) >= 1
            assert client.get("/healthz").status_code == 200
            release.set()
            first.join(10)
            assert [one.status_code for one in answers] == [200]
            assert client.post("/v1/predict", json={"text": "a"}).status_code == 200

    def test_readiness_ends_with_draining_but_answers_go_on(self, client):
        assert client.get("/readyz").json() == {"status": "ready"}
        assert "connection" not in client.get("/readyz").headers
        client.app.state.service.draining = True
        refused(client.get("/readyz"), 503, "closing")
        assert client.post("/v1/predict", json={"text": "a"}).status_code == 200
        client.app.state.service.closing = True
        answer = client.post("/v1/predict", json={"text": "a"})
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")


def test_no_thread_outlives_the_service_which_may_be_started_again(client_of):
    client = client_of()
    for _ in range(2):
        with client:
            assert client.post("/v1/predict", json={"text": GOOD}).status_code == 200
            used = (client.app.state.service.gathering, client.app.state.service.workers)
        for part in used:
            with pytest.raises(RuntimeError, match="after shutdown"):
                part._executor.submit(print)


class TestTelemetry:
    def test_metrics_count_requests_texts_and_copies(self, client):
        client.post("/v1/predict", json={"texts": [GOOD, ""]})
        client.get("/some/strange/path")
        found = client.get("/metrics")
        assert found.headers["content-type"].startswith("text/plain")
        for line in (
            'ranmask_requests_total{route="/v1/predict",status="200"} 1.0',
            'ranmask_requests_total{route="other",status="404"} 1.0',
            'ranmask_texts_total{model="keywords",outcome="done"} 1.0',
            'ranmask_texts_total{model="keywords",outcome="failed"} 1.0',
            'ranmask_pool_copies_total{model="keywords"}',
            'ranmask_pool_waiting_copies{model="other"} 0.0',
        ):
            assert line in found.text

    def logged(self, caplog, texts=False):
        return [json.loads(JsonLines(texts).format(record)) for record in caplog.records]

    def test_the_log_has_requests_but_no_texts(self, client, host, caplog):
        caplog.set_level(logging.INFO, "ranmask.serving")
        client.post("/v1/predict", json={"text": "secret"}, headers={"X-Request-ID": "my-id.1"})
        self.fail(host)
        client.post("/v1/predict", json={"text": "secret"})
        lines = self.logged(caplog)
        assert lines[0]["request_id"] == "my-id.1"
        assert (lines[0]["route"], lines[0]["status"], lines[0]["texts"]) == (
            *("/v1/predict", 200),
            1,
        )
        assert lines[1]["exception"] == "RuntimeError"
        assert lines[2]["request_id"] == lines[1]["request_id"]
        assert "secret" not in json.dumps(lines)
        assert "secret" in json.dumps(self.logged(caplog, texts=True))

    def test_a_made_up_method_is_neither_logged_nor_repeated(self, client, caplog):
        caplog.set_level(logging.INFO, "ranmask.serving")
        response = client.request("M" * 2000, "/healthz")
        assert "MMM" not in refused(response, 405, "wrong_method")
        [line] = self.logged(caplog)
        assert (line["method"], line["route"]) == ("other", "/healthz")

    def fail(self, host):
        def before(context):
            raise RuntimeError("cannot read secret")

        host.before = before

    @pytest.mark.parametrize("name", ["asyncio", "uvicorn.error", "ranmask.serving"])
    def test_libraries_write_to_the_same_log_and_say_no_more(self, name, monkeypatch):
        for known in ("asyncio", "uvicorn.error", "ranmask.serving"):
            logger = logging.getLogger(known)
            monkeypatch.setattr(logger, "handlers", [])
            monkeypatch.setattr(logger, "propagate", True)
            monkeypatch.setattr(logger, "level", logging.NOTSET)
        stream = io.StringIO()
        log_to(stream)
        try:
            raise RuntimeError("cannot read secret")
        except RuntimeError:
            logging.getLogger(name).exception("a task failed\nfuture: <Task '/home/secret.py'>")
        [line] = stream.getvalue().splitlines()
        assert (json.loads(line)["event"], json.loads(line)["exception"]) == (
            *("a task failed", "RuntimeError"),
        )
        assert "secret" not in line

    def test_texts_are_logged_when_asked(self, client_of, caplog):
        caplog.set_level(logging.INFO, "ranmask.serving")
        client_of(log_texts=True).post("/v1/predict", json={"text": "a secret"})
        assert self.logged(caplog)[0]["sent"] == ["a secret"]

    def test_an_unusable_request_id_is_replaced(self, client):
        for bad in ("a b", "x" * 65, "é".encode().decode("latin-1")):
            response = client.get("/healthz", headers={"X-Request-ID": bad.encode("latin-1")})
            assert response.headers["x-request-id"] != bad


@pytest.fixture(scope="module")
def tables():
    host = ModelRegistry({"words": "news-words", "keywords": FAKE}, keep=1)
    with TestClient(create_app(host, ServiceSettings()), base_url="http://localhost") as client:
        yield client
    host.close()


class TestExplained:
    """An explanation, against the certificate that the same options give."""

    KINDS = ("exact", "ablation", "paper", "paper-as-printed")
    TEXT = "Oil prices climbed to a record high as traders worried about supplies from the Gulf"

    @pytest.mark.parametrize("model", ["words", "keywords"])
    @pytest.mark.parametrize(
        "options",
        [{}, {"ensemble": "vote"}, {"keep": 3, "seed": 2}, {"masks": 300}, {"mask_rate": 0.8}],
        ids=str,
    )
    def test_the_curve_is_that_of_the_certificate(self, tables, model, options):
        radii = {}
        for kind in self.KINDS:
            body = {"model": model, "text": self.TEXT, "options": {**options, "certificate": kind}}
            explained = tables.post("/v1/explain", json=body).json()
            [certified] = tables.post("/v1/certify", json=body).json()["results"]
            assert explained["result"] == certified
            [(name, curve)] = explained["curves"].items()
            assert name == kind
            for field in ("radius", "label_id", "guarantee", "alpha", "ensemble", "masks"):
                assert curve[field] == certified[field], (kind, field)
            assert len(explained["word_votes"]) == certified["words_read"]
            radii[kind] = certified["radius"]
        if model == "words" and not options:
            assert radii["ablation"] > 0


_TEXT, _OPTION = "unusable_text", "wrong_option"


def _keywords():
    from ranmask.models.testing import keyword_classifier

    return keyword_classifier

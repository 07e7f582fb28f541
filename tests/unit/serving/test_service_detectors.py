"""Detectors behind the service: the library's own answers, and refusals that say what to ask."""

import json
import threading

import numpy as np
import pytest
from starlette.testclient import TestClient
from test_service_jobs import CSV, ended, refused

from ranmask import WindowDetector, load_default, load_detector
from ranmask.data import load_corpus
from ranmask.data.rows import Columns
from ranmask.errors import ClassifierError, ModelError, OptionError
from ranmask.models.readers import Reader
from ranmask.results import ShownDetection
from ranmask.runs.detect import detect_file
from ranmask.runs.shards.columns import decoded
from ranmask.runs.stored import read_results
from ranmask.serving import answers
from ranmask.serving.app import create_app
from ranmask.serving.context import RequestContext
from ranmask.serving.reading import SharedReader
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings
from ranmask.words import Document

SPAM = "WINNER!! You have won a FREE prize, call now to claim your reward"
HAM = "see you at home later love, sorry I'm late for lunch"
GUARDS = ("spam-sms", "spam", "toxicity", "injection")
FAKE = "ranmask.models.testing:keyword_classifier"


def classify(texts):
    """The share of words that are `spam`; texts with `broken` get no answer."""
    if any("broken" in text for text in texts):
        raise ValueError("a secret of the model's")
    shares = [text.split().count("spam") / len(text.split()) for text in texts]
    return [[1 - share, share] for share in shares]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Detectors of windows: over a function, which the folder cannot hold, and over a table."""
    folder = tmp_path_factory.mktemp("detectors")
    how = {"sizes": (2, 4), "threshold": 0.5}
    over = WindowDetector(classify, labels=["ham", "spam"], **how)
    over.save_pretrained(folder / "function")
    table = load_default("reviews-words").base
    WindowDetector(table, positive="negative", **how).save_pretrained(folder / "table")
    return folder


@pytest.fixture(scope="module")
def host(folder):
    models = {"keywords": FAKE, **{name: name for name in GUARDS}}
    models |= {name: str(folder / name) for name in ("function", "table")}
    # The reader is for the one model that needs it, and none beside the others.
    host = ModelRegistry({name: model for name, model in models.items() if name != "keywords"},
                         reader=f"{__name__}:classify")  # fmt: skip
    yield host
    host.close()


@pytest.fixture
def client(host):
    with opened(host) as client:
        yield client


@pytest.fixture(scope="module")
def mixed():
    host = ModelRegistry({"keywords": FAKE, "spam-sms": "spam-sms"}, keep=1)
    yield host
    host.close()


def opened(host, **settings):
    app = create_app(host, ServiceSettings(**settings))
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


def detected(client, texts, **asked):
    answer = client.post("/v1/detect", json={"texts": texts, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


class TestAnswers:
    @pytest.mark.parametrize("name", GUARDS)
    def test_they_are_those_of_the_library(self, client, name):
        texts = [SPAM, f"{HAM} {SPAM} {HAM}", HAM, *load_corpus("sms_spam", "test").texts[:200]]
        here = [found.to_dict() for found in load_detector(name).detect(texts)]
        assert detected(client, texts, model=name) == json.loads(json.dumps(here))

    @pytest.mark.parametrize("name", ["function", "table"])
    def test_of_windows(self, client, folder, name):
        reader = classify if name == "function" else None
        detector = load_detector(folder / name, reader=reader)
        texts = ["spam and spam again", "a dull bad film", "fine", "eggs " * 40 + "spam spam"]
        here = [found.to_dict() for found in detector.detect(texts)]
        assert any(found["flagged"] for found in here)
        assert detected(client, texts, model=name) == json.loads(json.dumps(here))
        [shown] = detected(client, texts[:1], model=name, word_values=True)
        assert shown == json.loads(json.dumps(here[0])) | {"word_values": None}

    def test_values_of_words_only_where_they_are_asked_for(self, client):
        text = f"{SPAM} {SPAM} meeting at noon"
        for name in ("spam-sms", "spam"):
            [plain] = detected(client, [text], model=name)
            [shown] = detected(client, [text], model=name, word_values=True)
            values = shown.pop("word_values")
            assert shown == plain and "word_values" not in plain
            assert len(values) == plain["words"] == len(text.split())
            [here] = load_detector(name).explain([text])
            assert here == ShownDetection.from_dict(json.loads(json.dumps(here.to_dict())))
            assert list(here.word_values) == values
            if name == "spam-sms":
                once = dict(zip(text.split(), values, strict=True))
                assert sum(once.values()) == pytest.approx(plain["score"]) and min(values) >= 0
            else:
                [(start, stop), *_] = plain["spans"]
                assert sum(values[start:stop]) >= plain["threshold"] and min(values) < 0

    def test_one_text_and_errors_in_place(self, client):
        one = client.post("/v1/detect", json={"text": SPAM}).json()
        assert (one["model"], one["results"][0]["flagged"]) == ("spam-sms", True)
        good, *bad = detected(client, [SPAM, "", " \n"])
        assert good["flagged"] and all("no words" in one["error"] for one in bad)
        message = refused(client.post("/v1/detect", json={"text": " "}), 422, "unusable_text")
        assert "no words" in message

    def test_requests_at_the_same_time_have_their_own_answers(self, client):
        texts = load_corpus("sms_spam", "test").texts[:60]
        expected = [found.to_dict() for found in load_detector("spam").detect(texts)]
        expected = json.loads(json.dumps(expected))
        wrong = []

        def ask(place):
            if detected(client, [texts[place]], model="spam") != [expected[place]]:
                wrong.append(place)

        threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(texts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_the_description_is_that_of_the_record(self, client):
        [found] = detected(client, [SPAM])
        assert set(found) == set(answers.DetectionResult.model_fields) - {"word_values"}
        answers.Detections.model_validate(client.post("/v1/detect", json={"text": SPAM}).json())

    @pytest.mark.filterwarnings("ignore::ranmask.errors.ReaderWarning")
    def test_a_model_that_fails_says_nothing_of_itself(self, client):
        body = {"texts": ["spam broken", "x"], "model": "function"}
        answer = client.post("/v1/detect", json=body)
        failed, other = answer.json()["results"]
        assert failed == {"error": "the model failed on this text"} and not other["flagged"]
        alone = client.post("/v1/detect", json={"text": "spam broken", "model": "function"})
        refused(alone, 500, "internal")
        assert "secret" not in answer.text + alone.text
        [found] = detected(client, ["spam broken spam spam"], model="function")
        assert found["flagged"] and found["failed"] == 3, "windows without an answer do not unflag"


class TestRefusals:
    def test_a_detector_is_asked_to_detect(self, mixed):
        with opened(mixed) as client:
            for path in ("certify", "predict", "explain", "attack"):
                answer = client.post(f"/v1/{path}", json={"text": "a", "model": "spam-sms"})
                said = refused(answer, 422, "wrong_kind")
                assert said.startswith("'spam-sms' is a detector") and "POST /v1/detect" in said
                assert "classifiers here: keywords" in said

    def test_a_classifier_is_not(self, mixed):
        with opened(mixed) as client:
            answer = client.post("/v1/detect", json={"text": "a", "model": "keywords"})
            said = refused(answer, 422, "wrong_kind")
            assert "is a classifier" in said and "POST /v1/certify" in said
            assert "detectors here: spam-sms" in said

    def test_where_none_is_named_the_first_of_its_kind_answers(self, mixed, client):
        with opened(mixed) as both:
            assert both.post("/v1/detect", json={"text": "a"}).json()["model"] == "spam-sms"
            assert both.post("/v1/certify", json={"text": "a"}).json()["model"] == "keywords"
        said = refused(client.post("/v1/certify", json={"text": "a"}), 422, "wrong_kind")
        assert "no classifiers are served here" in said

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ({}, "text is missing: send a string"),
            ({"text": 3}, "text must be a string, not 3"),
            ({"text": None}, "text must be a string, not null"),
            ({"text": ["a", "b"]}, "text must be a string, not a list of 2"),
            ({"texts": []}, "texts must be a list of at least 1, not a list of 0"),
            ({"texts": ["a", 3]}, "texts[1] must be a string, not 3"),
            ({"texts": ["a"] * 10_001}, "texts must be a list of at most 10000"),
            ({"text": "a", "options": {}}, "options is no field here: leave it out; there are"),
            ({"text": "a", "word_value": True}, "word_value is no field here: leave it out; did"),
            ({"text": "a", "word_values": "yes"}, 'word_values must be true or false, not "yes"'),
            ({"text": "a", "model": 3}, "model must be a string, not 3"),
            ([], "the body must be a JSON object with the text in `text`"),
        ],
        ids=lambda value: json.dumps(value)[:30],
    )
    def test_what_is_wrong_is_said(self, client, body, message):
        answer = client.post("/v1/detect", json=body)
        assert refused(answer, 422, "invalid_request").startswith(message)

    def test_limits_are_those_of_other_questions(self, host):
        with opened(host, most_words=5, most_texts=2, body_bytes=200) as client:
            for body, status, code in (
                ({"text": "a " * 6}, 422, "too_many_words"),
                ({"texts": ["a"] * 3}, 422, "too_many_texts"),
                ({"text": "x" * 300}, 413, "body_too_large"),
                ({"text": "a", "model": "nope"}, 404, "unknown_model"),
            ):
                refused(client.post("/v1/detect", json=body), status, code)

    def test_half_a_surrogate_pair(self, client):
        sent = b'{"texts": ["\\ud800 prize", "fine"]}'
        kind = {"content-type": "application/json"}
        answer = client.post("/v1/detect", content=sent, headers=kind)
        bad, fine = answer.json()["results"]
        assert "surrogate" in bad["error"] and fine["flagged"] is False


class TestCards:
    def test_what_is_said_of_a_detector(self, client):
        cards = {card["name"]: card for card in client.get("/v1/models").json()["models"]}
        for name, card in cards.items():
            answers.DetectorCard.model_validate(card)
            assert "/" not in json.dumps(card), name
        sms = cards["spam-sms"]
        assert sms["promise"] == "stays flagged whatever is added anywhere"
        assert (sms["kind"], sms["detector"], sms["positive"]) == ("detector", "words", "spam")
        assert sms["threshold"] == load_detector("spam-sms").threshold
        assert sms["flags"] == "spam, in short messages alone"
        assert cards["spam"]["promise"] == "stays flagged whatever is added before or after"
        assert cards["table"]["sizes"] == [2, 4] and cards["table"]["flags"] is None
        assert cards["table"]["promise"].startswith("with at least 2 words")

    def test_beside_a_classifier(self, mixed):
        with opened(mixed) as client:
            found = client.get("/v1/models").json()
            answers.Models.model_validate(found)
            assert [card["kind"] for card in found["models"]] == ["classifier", "detector"]
            client.post("/v1/detect", json={"texts": [SPAM, "", HAM]})
            metrics = client.get("/metrics").text
            assert 'ranmask_texts_total{model="spam-sms",outcome="done"} 2.0' in metrics


class TestStarting:
    def test_options_that_mean_nothing_are_refused(self, folder):
        for option in ({"keep": 2}, {"mask_rate": 0.5}, {"reader": "x:y"}):
            with pytest.raises(OptionError, match=f"{next(iter(option))} means nothing where only"):
                ModelRegistry({"spam": "spam"}, **option)
        with pytest.raises(OptionError, match="device='cuda' means nothing"):
            ModelRegistry({"spam": "spam"}, device="cuda")
        ModelRegistry({"spam": "spam"}, device="cpu").close()
        with pytest.raises(ModelError, match="which a folder cannot hold"):
            ModelRegistry({"mine": str(folder / "function")})
        with pytest.raises(ModelError, match="did you mean 'spam-sms'"):
            ModelRegistry({"mine": "spam-smss"})

    def test_a_detector_may_take_the_place_of_another(self, tmp_path):
        load_detector("spam").save_pretrained(tmp_path / "mine")
        host = ModelRegistry({"mine": str(tmp_path / "mine")})
        assert not host.detector("mine", RequestContext()).detect(["a prize"])[0].flagged
        load_detector("spam").with_threshold(1e-5).save_pretrained(tmp_path / "mine")
        host.reload({"mine": str(tmp_path / "mine")})()
        assert host.detector("mine", RequestContext()).detect(["a prize"])[0].flagged
        host.reload({"mine": "news-words"})()
        with pytest.raises(Exception, match="'mine' is a classifier"):
            host.detector("mine", RequestContext())
        host.close()


class TestJobs:
    ROWS = f'id,text,label\n7,"{SPAM}",spam\n8,hi there,ham\n9,,ham\n10,x,nope\n'

    @pytest.fixture
    def jobs(self, host, tmp_path):
        with opened(host, jobs=str(tmp_path / "jobs")) as client:
            yield client

    def test_results_are_the_file_of_a_run(self, jobs, tmp_path, monkeypatch):
        sent = "/v1/jobs?kind=detect&label_column=label&name=rows.csv"
        job = ended(jobs, jobs.post(sent, content=self.ROWS, headers=CSV))
        assert (job["kind"], job["model"], job["rows_failed"]) == ("detect", "spam-sms", 2)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "rows.csv").write_text(self.ROWS)
        detector = load_detector("spam-sms")
        summary = detect_file(detector, "rows.csv", "out.jsonl", columns=Columns(label="label"))
        result = jobs.get(f"/v1/jobs/{job['id']}/result").content
        assert result == (tmp_path / "out.jsonl").read_bytes()
        assert job["summary"] == json.loads(json.dumps(summary.values()))
        parquet = jobs.get(f"/v1/jobs/{job['id']}/result?format=parquet").content
        (tmp_path / "there.parquet").write_bytes(parquet)
        flags = [line.get("flagged") for line in decoded(tmp_path / "there.parquet")]
        assert flags == [True, False, None, False]
        errors = [row.error is not None for row in read_results("out.jsonl")]
        assert errors == [False, False, True, True]

    def test_texts_for_windows(self, jobs, folder):
        body = {"kind": "detect", "model": "table", "texts": ["a dull bad film", "good good good"]}
        job = ended(jobs, jobs.post("/v1/jobs", json=body))
        assert job["status"] == "finished" and job["summary"]["flagged"] == 1

    @pytest.mark.parametrize(
        "more",
        [{"options": {"keep": 1}}, {"positive": "spam"}, {"texts": [["a", "b"]]}],
        ids=["options", "positive", "pairs"],
    )
    def test_what_goes_with_labels_alone(self, jobs, more):
        body = {"kind": "detect", "texts": ["a"], **more}
        said = refused(jobs.post("/v1/jobs", json=body), 422, "wrong_option")
        assert "means nothing for kind=detect" in said

    def test_another_kind(self, jobs, mixed, tmp_path):
        refused(jobs.post("/v1/jobs", json={"texts": ["a"]}), 422, "wrong_kind")
        with opened(mixed, jobs=str(tmp_path / "others")) as client:
            body = {"kind": "detect", "model": "keywords", "texts": ["a"]}
            refused(client.post("/v1/jobs", json=body), 422, "wrong_kind")


def test_problems_of_readers_are_heard_by_the_thread_that_asks(folder):
    """Warnings are a process's: threads that silence them in turn would end with some silenced."""
    import warnings

    before = list(warnings.filters)
    detector = load_detector(folder / "function", reader=classify)

    def ask():
        for _ in range(50):
            with pytest.raises(ClassifierError, match="a secret of the model's"):
                detector.detect(["broken"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


def test_a_shared_reader_is_asked_again_past_its_memory():
    class Remembering(Reader):
        def __init__(self, said, fresh=None):
            self.said, self.fresh = said, fresh

        def read(self, texts, classes):
            return np.full((len(texts), classes), self.said)

        @property
        def without_memory(self):
            return self.fresh

    shared = SharedReader(Remembering(0.0, Remembering(1.0)), None, RequestContext())
    texts = [Document(("a",))]
    assert shared.read(texts, 2).tolist() == [[0, 0]]
    assert shared.without_memory.read(texts, 2).tolist() == [[1, 1]]

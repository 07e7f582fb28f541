"""Keys by name, their rates, and what changes when the service reads its files again."""

import multiprocessing
import threading
import time

import pytest
from starlette.testclient import TestClient

from ranmask.errors import OptionError
from ranmask.serving import keys
from ranmask.serving.app import create_app
from ranmask.serving.context import RequestContext
from ranmask.serving.keys import Keys, RateLimits, parsed_keys, read_keys
from ranmask.serving.problems import RateExceeded, UnknownModel
from ranmask.serving.registry import ModelRegistry, models_of
from ranmask.serving.settings import ServiceSettings
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.store import load_default

FAKE = "ranmask.models.testing:keyword_classifier"
ALICE, BOB = "alice-has-a-long-key", "bob-has-another-long-key"


class TestFiles:
    def test_the_three_forms(self):
        text = f"# a comment\n\n  {ALICE}\nbob {BOB} 60\ncarl {ALICE}{BOB}\n"
        found = parsed_keys(text, "keys")
        assert [(key.name, key.a_minute) for key in found] == [
            *(("default", None), ("bob", 60), ("carl", None)),
        ]
        assert Keys(found).find(BOB) is found[1]
        assert Keys(found).find(BOB + "x") is None
        assert ALICE not in repr(found)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "holds no API key"),
            ("# nothing\n", "holds no API key"),
            ("short", "line 1.*at least 16"),
            (f"a {ALICE}\nb {ALICE}", "line 2.*there before"),
            (f"a {ALICE}\na {BOB}", "line 2.*there before"),
            (f"a {ALICE} 0", "from 1 to"),
            (f"a {ALICE} -1", "from 1 to"),
            (f"a {ALICE} \u0661", "from 1 to"),
            (f"a {ALICE} many", "from 1 to"),
            (f"a {ALICE} 1 2", "expected NAME KEY"),
            (f"../a {ALICE}", "a name has"),
        ],
    )
    def test_what_is_wrong_is_told_without_the_key(self, text, said):
        with pytest.raises(OptionError, match=said) as refused:
            parsed_keys(text, "keys")
        assert ALICE not in str(refused.value)

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(OptionError, match="cannot read the API keys"):
            read_keys(ServiceSettings(api_key_file=tmp_path / "no"))
        with pytest.raises(OptionError, match="cannot read the models"):
            models_of(ServiceSettings(models_file=tmp_path / "no"))


def _send(folder, number):
    limits, sent = RateLimits(folder), 0
    [key] = parsed_keys(f"a {ALICE} 600", "keys")
    for _ in range(number):
        try:
            limits.count(key)
            sent += 1
        except RateExceeded:
            pass
    return sent


class TestRates:
    def test_ten_seconds_worth_at_once_and_then_evenly(self, monkeypatch):
        now = 1000.0
        monkeypatch.setattr(keys.time, "monotonic", lambda: now)
        [key] = parsed_keys(f"a {ALICE} 60", "keys")
        limits = RateLimits()
        for _ in range(10):
            limits.count(key)
        with pytest.raises(RateExceeded) as refused:
            limits.count(key)
        assert refused.value.headers == {"Retry-After": "1"}
        now += 1
        limits.count(key)
        with pytest.raises(RateExceeded):
            limits.count(key)
        now += 3600
        for _ in range(10):
            limits.count(key)
        with pytest.raises(RateExceeded):
            limits.count(key)

    def test_one_a_minute_is_one(self, monkeypatch):
        now = 1000.0
        monkeypatch.setattr(keys.time, "monotonic", lambda: now)
        [key] = parsed_keys(f"a {ALICE} 1", "keys")
        limits = RateLimits()
        limits.count(key)
        with pytest.raises(RateExceeded) as refused:
            limits.count(key)
        assert refused.value.headers == {"Retry-After": "60"}

    def test_processes_count_together(self, tmp_path):
        context = multiprocessing.get_context("spawn")
        begun = time.monotonic()
        with context.Pool(2) as pool:
            sent = sum(pool.starmap(_send, [(str(tmp_path), 500)] * 2))
        assert 100 <= sent <= 100 + 10 * (time.monotonic() - begun) + 1

    def test_a_key_without_a_rate(self):
        [key] = parsed_keys(ALICE, "keys")
        for _ in range(1000):
            RateLimits().count(key)


@pytest.fixture
def host():
    host = ModelRegistry({"keywords": FAKE}, keep=1)
    yield host
    host.close()


class TestService:
    def test_names_rates_and_reloading(self, host, tmp_path, caplog):
        file = tmp_path / "keys"
        file.write_text(f"alice {ALICE} 6\n")
        app = create_app(host, ServiceSettings(models=(f"keywords={FAKE}",), api_key_file=file))
        client = TestClient(app, base_url="http://any.example")
        service = app.state.service

        def status(key):
            return client.get("/v1/models", headers={"X-API-Key": key}).status_code

        assert [status(ALICE), status(ALICE), status(BOB)] == [200, 429, 401]
        answer = client.get("/v1/models", headers={"X-API-Key": ALICE})
        assert answer.json()["error"]["code"] == "rate_limited"
        assert int(answer.headers["retry-after"]) <= 10
        metrics = client.get("/metrics", headers={"X-API-Key": ALICE})
        assert metrics.status_code == 429

        file.write_text(f"alice {ALICE}\nbob {BOB}\n")
        service.reload()()
        assert [status(ALICE), status(BOB)] == [200, 200]
        metrics = client.get("/metrics", headers={"X-API-Key": BOB}).text
        assert 'ranmask_key_requests_total{key="alice",status="429"} 3.0' in metrics
        assert 'ranmask_reloads_total{outcome="done"} 1.0' in metrics

        file.write_text("# nobody\n")  # must not open the service to everybody
        service.reload()()
        assert [status(ALICE), status(BOB), status("")] == [200, 200, 401]
        assert caplog.records[-1].getMessage() != ALICE
        metrics = client.get("/metrics", headers={"X-API-Key": BOB}).text
        assert 'ranmask_reloads_total{outcome="failed"} 1.0' in metrics

    def test_models_added_swapped_and_taken_away(self, tmp_path):
        file = tmp_path / "models"
        folder = tmp_path / "best"
        load_default("news-words", keep=1).save_pretrained(str(folder))
        (folder / "broken").symlink_to("nowhere")
        file.write_text("# ours\n")
        settings = ServiceSettings(models=(f"first={FAKE}",), models_file=file)
        host = ModelRegistry(models_of(settings), keep=1)
        app = create_app(host, settings)
        with TestClient(app, base_url="http://localhost") as client:

            def label(model):
                answer = client.post("/v1/predict", json={"text": "a superb film", "model": model})
                return answer.json().get("results", [{}])[0].get("label", answer.status_code)

            assert label("mine") == 404
            file.write_text(f"mine={folder}\n")
            app.state.service.reload()()
            first = host._hosted["first"]
            assert label("mine") in load_default("news-words").labels
            load_default("reviews-words", keep=1).save_pretrained(str(folder))
            app.state.service.reload()()
            assert label("mine") == "positive"
            assert host._hosted["first"] is first, "it has not changed, and stays"
            assert "ranmask_pool_asks_total" in client.get("/metrics").text
            file.write_text("mine=no/such/folder\n")
            app.state.service.reload()()
            assert label("mine") == "positive", "what cannot be loaded changes nothing"
            file.write_text("")
            app.state.service.reload()()
            assert [label("mine"), label("first")] == [404, "0"]
        host.close()

    def test_requests_that_have_begun_keep_their_model(self):
        host = ModelRegistry({"a": FAKE, "b": FAKE}, keep=1)
        begun = host.smoothed("b", RequestContext())
        close = host.reload({"a": FAKE})
        with pytest.raises(UnknownModel):
            host.copies("b", [])
        late = host.smoothed("b", RequestContext())  # asked before, computed now
        texts = ["good good good", "good film"]
        expected = SmoothedClassifier.certify(host.smoothed("a", RequestContext()), texts)
        assert begun.certify(texts) == late.certify(texts) == expected
        threads = threading.active_count()
        close()
        end = time.monotonic() + 10
        while threading.active_count() >= threads:
            assert time.monotonic() < end
            time.sleep(0.01)
        with pytest.raises(UnknownModel):
            host.smoothed("b", RequestContext())
        host.close()

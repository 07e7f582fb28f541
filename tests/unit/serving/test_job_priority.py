"""Requests come before jobs, jobs still move on, and operators see both.  The clock is made up."""

import re
import time
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from ranmask.data.rows import Columns
from ranmask.errors import ClassifierError
from ranmask.serving import job_runner, workers
from ranmask.serving.app import create_app
from ranmask.serving.job_runner import BackgroundContext, JobRunner, in_slices
from ranmask.serving.jobs import JobStore
from ranmask.serving.problems import Cancelled
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.telemetry import Telemetry

FAKE = "ranmask.models.testing:keyword_classifier"


class Clock:
    """A clock that goes on where somebody sleeps or works."""

    def __init__(self):
        self.now = 1000.0

    def work(self, seconds):
        self.now += seconds

    @property
    def module(self):
        return SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now, sleep=self.work)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(job_runner, "time", clock.module)
    monkeypatch.setattr(workers, "time", clock.module)
    return clock


@pytest.fixture
def store(tmp_path):
    return JobStore(tmp_path / "jobs", 10, 1.0)


@pytest.fixture(scope="module")
def host():
    host = ModelRegistry({"keywords": FAKE}, keep=1)
    yield host
    host.close()


def new(store, rows="good film\nbad\n" * 50):
    with store.draft() as draft:
        (draft / "input.txt").write_text(rows)
        asked = {"owner": "", "kind": "certify", "model": "keywords", "options": {}}
        asked |= {"name": "rows.txt", "input": "input.txt", "columns": Columns()}
        size = {"rows": rows.count("\n"), "bytes": len(rows), "positive": None}
        return store.admit(draft, **asked, **size)


class TestGivingWay:
    def test_beside_requests_a_job_has_a_twentieth_of_the_time(self, clock, store):
        context = BackgroundContext(new(store), lambda: True)
        worked, begun = 0.0, clock.now
        for seconds in (0.01, 0.002, 0.1, 0.03) * 10:
            clock.work(seconds)
            worked += seconds
            context.check()
        assert 0.04 < worked / (clock.now - begun) <= 0.05

    def test_it_moves_on_whatever_it_did(self, clock, store):
        context = BackgroundContext(new(store), lambda: True)
        clock.work(60)
        begun = clock.now
        context.check()
        assert 4 < clock.now - begun < 6

    def test_alone_it_does_not_rest(self, clock, store):
        context = BackgroundContext(new(store), lambda: False)
        clock.work(1)
        begun = clock.now
        context.check()
        assert (clock.now, context.rested) == (begun, 0)

    def test_it_goes_on_when_the_requests_are_over(self, clock, store):
        until = clock.now + 1.1
        context = BackgroundContext(new(store), lambda: clock.now < until)
        clock.work(1)
        context.check()
        assert until <= clock.now < until + 0.1
        assert 0.09 < context.rested < 0.2

    def test_a_job_that_is_to_end_does_not_rest(self, clock, store):
        context = BackgroundContext(new(store), lambda: True)
        clock.work(1)
        begun = clock.now
        context.cancel()
        with pytest.raises(Cancelled):
            context.check()
        assert clock.now == begun

    def test_a_client_that_asks_again_at_once_is_not_overtaken(self, clock):
        some = workers.Workers(2, 2, 30.0)
        assert not some.busy
        with some.admitted():
            clock.work(5)
            assert some.busy
        clock.work(0.01)
        assert some.busy, "it may be about to ask again"
        clock.work(0.1)
        assert not some.busy
        some.close()


class TestSlices:
    def sliced(self, clock, store, seconds, texts, busy=lambda: False):
        """Sizes of the slices, of texts that take so long each."""
        sizes = []

        def classify(some):
            clock.work(seconds * len(some))
            sizes.append(len(some))
            return [text.upper() for text in some]

        context = BackgroundContext(new(store), busy)
        found = in_slices(classify, context, texts)
        assert found == [text.upper() for text in texts]
        return sizes

    @pytest.mark.parametrize("busy", [False, True])
    def test_as_many_texts_as_take_ten_milliseconds(self, clock, store, busy):
        texts = [f"text {number}" for number in range(100)]
        sizes = self.sliced(clock, store, 0.001, texts, lambda: busy)
        assert sum(sizes) == 100
        assert sizes[0] == 1 and set(sizes[3:-1]) <= {9, 10}, "rests are not counted"

    def test_long_texts_go_alone_and_short_ones_together(self, clock, store):
        assert self.sliced(clock, store, 0.5, list("abc")) == [1, 1, 1]
        assert self.sliced(clock, store, 0.0, ["a"] * 100) == [1, 4, 16, 64, 15]
        assert self.sliced(clock, store, 0.5, []) == []

    def test_the_next_rows_begin_with_as_many(self, clock, store):
        context, sizes = BackgroundContext(new(store), lambda: False), []

        def classify(some):
            clock.work(0.001 * len(some))
            sizes.append(len(some))
            return some

        for _ in range(2):
            in_slices(classify, context, ["text"] * 40)
        assert sizes[0] == 1 and sizes[-4] in (9, 10)

    def test_a_text_that_fails_is_counted_among_all(self, clock, store):
        def classify(some):
            if "bad" in some:
                raise ClassifierError("no", some.index("bad"))
            return some

        context = BackgroundContext(new(store), lambda: False)
        with pytest.raises(ClassifierError, match="text 7: no"):
            in_slices(classify, context, [*["good"] * 7, "bad", "good"])

    def test_a_job_gives_way_in_the_middle_of_its_rows(self, clock, host, store):
        """Rows are long: it looks whether requests came before each of them, not once a group."""
        looks = []
        runner = JobRunner(store, host, 2000, lambda: looks.append(1) is not None, silent())
        job = new(store)
        monkeyed = host.smoothed("keywords", BackgroundContext(job, lambda: False))
        certify = type(monkeyed).certify

        def slowly(smoothed, texts):
            clock.work(0.5 * len(texts))
            return certify(smoothed, texts)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(monkeyed), "certify", slowly)
            assert runner.work_once()
        assert job.state().status == "finished" and job.state().rows == 100
        assert len(looks) >= 200, "at each row, and before its copies"


def silent():
    return Telemetry(dict, lambda: 0)


class TestMetrics:
    def figures(self, client):
        found = re.findall(r"^(ranmask_job\w*{.*}) (\S+)$", client.get("/metrics").text, re.M)
        return {name: float(value) for name, value in found if "_created" not in name}

    def test_jobs_rows_seconds_and_ends(self, host, store, tmp_path):
        app = create_app(host, ServiceSettings(jobs=str(tmp_path / "jobs")))
        waiting = new(store, "good\n")
        with TestClient(app, base_url="http://localhost") as client:
            failed = "id,text\n1,good film\n2,\n3,bad film\n"
            client.post("/v1/jobs", content=failed, headers={"content-type": "text/csv"})
            gone = new(store, "good\n")
            gone.input.unlink()
            figures, end = self.figures(client), time.monotonic() + 30
            while figures['ranmask_jobs{status="finished"}'] < 2 or (
                figures['ranmask_jobs{status="failed"}'] < 1
            ):
                assert time.monotonic() < end, figures
                figures = self.figures(client)
        assert waiting.state().status == "finished"
        assert figures['ranmask_jobs{status="queued"}'] == 0
        assert figures['ranmask_jobs{status="running"}'] == 0
        assert figures['ranmask_job_rows_total{model="keywords",outcome="done"}'] == 3
        assert figures['ranmask_job_rows_total{model="keywords",outcome="failed"}'] == 1
        assert figures['ranmask_job_runs_total{model="keywords",status="finished"}'] == 2
        assert figures['ranmask_job_runs_total{model="keywords",status="failed"}'] == 1
        assert figures['ranmask_job_seconds_total{model="keywords"}'] > 0

    def test_without_jobs_there_are_none(self, host):
        app = create_app(host, ServiceSettings())
        with TestClient(app, base_url="http://localhost") as client:
            assert not self.figures(client)

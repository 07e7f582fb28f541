"""What a run will take is said once, where it is long, and by what its first rows took."""

import functools

import pytest

from endpoint_server import endpoint
from ranmask import (
    EndpointReader,
    ProtectedClassifier,
    RunEvents,
    Sharding,
    SmoothedClassifier,
    attack_file,
    certify_file,
    load_default,
    predict_file,
)
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.data.rows import Columns
from ranmask.models.testing import keyword_classifier
from ranmask.runs import cost
from ranmask.runs.cost import CostMeter, RunCost, about, duration


class FakeTime:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def metered(rows, watched=None):
    told, clock = [], FakeTime()
    meter = CostMeter(told.append, watched, clock)
    meter.start(rows)
    return told, clock, meter


def test_the_first_seconds_tell_what_the_rest_takes():
    told, clock, meter = metered(1000)
    clock.now += 1
    meter.ask(30, "copies")
    meter.advance(3)
    assert not told  # too short to tell
    clock.now += 2
    meter.ask(70, "copies")
    meter.advance(7)
    assert told == [RunCost(990, 9900, "copies", pytest.approx(297.0), 10)]
    clock.now += 50
    meter.advance(500)
    assert len(told) == 1


def test_short_work_is_done_without_a_word():
    told, clock, meter = metered(20)
    clock.now += 3
    meter.advance(10)
    clock.now += 300
    meter.advance(5)
    assert not told


def test_where_rows_end_together_so_many_are_awaited():
    told, clock, meter = metered(100, watched=8)
    for _ in range(7):
        clock.now += 5
        meter.advance(1)
    assert not told
    meter.advance(1)
    assert told[0].seconds == pytest.approx(35 * 92 / 8) and told[0].measured_rows == 8


def test_in_words():
    said = str(RunCost(990, 123_456, "copies", 297.0, 10))
    assert said == (
        "990 rows to go: about 120,000 copies, about 5.0 minutes, as the first 10 rows took"
    )
    assert str(RunCost(990, 0, seconds=20.0, measured_rows=1)) == (
        "990 rows to go: about 20 seconds, as the first row took"
    )
    assert str(RunCost(5, 35, "texts for http://a")) == "5 rows: at most 35 texts for http://a"
    assert [duration(seconds) for seconds in (0.2, 0.7, 60, 600, 90_000)] == [
        "less than a second",
        "1 second",
        "60 seconds",
        "10.0 minutes",
        "25.0 hours",
    ]
    assert [about(seconds) for seconds in (0.2, 60)] == ["less than a second", "about 60 seconds"]


@pytest.fixture
def at_once(monkeypatch):
    """Every run is long, from its first row."""
    monkeypatch.setattr(cost, "_MEASURED_SECONDS", 0)
    monkeypatch.setattr(cost, "_LONG", 0)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    rows = [f"good film {n} bad good,{n % 2}" for n in range(30)]
    path.write_text("\n".join(["text,label", *rows, ""]))
    return path


def load():
    return SmoothedClassifier(keyword_classifier, keep=1, labels=["bad", "good"])


COLUMNS = Columns("text", None, "label")


@pytest.mark.parametrize("work", [certify_file, predict_file])
def test_files(source, tmp_path, work, at_once):
    told = []
    work(load(), source, tmp_path / "out", columns=COLUMNS, events=RunEvents(cost=told.append))
    [found] = told
    assert (found.rows, found.queries, found.kind, found.measured_rows) == (29, 145, "copies", 1)


def test_a_run_that_is_resumed_counts_what_is_left(source, tmp_path, at_once):
    certify_file(load(), source, tmp_path / "out", columns=COLUMNS)
    lines = (tmp_path / "out").read_text().splitlines(keepends=True)
    (tmp_path / "out").write_text("".join(lines[:12]))
    told, begun = [], []
    events = RunEvents(cost=told.append, started=lambda rows, done: begun.append(done))
    certify_file(load(), source, tmp_path / "out", columns=COLUMNS, events=events)
    assert told[0].rows == 30 - begun[0] - 1


def test_shards(source, tmp_path, at_once):
    told = []
    certify_file(
        functools.partial(load_default, "news-words"),
        source,
        tmp_path / "out",
        sharding=Sharding(5),
        events=RunEvents(cost=told.append),
    )
    [found] = told
    assert (found.rows, found.queries, found.measured_rows) == (25, 0, 5)


def test_attacks(source, tmp_path, at_once):
    told = []
    resources = AttackResources(vocabulary=Vocabulary(["bad", "good", "x"], "some words"))
    summary = attack_file(
        load(),
        source,
        tmp_path / "out",
        "anywords",
        columns=COLUMNS,
        resources=resources,
        events=RunEvents(cost=told.append),
    )
    [found] = told
    assert (found.rows, found.kind, found.measured_rows) == (22, "questions", 8)
    assert found.queries > 0 and summary.errors == 0


def test_what_is_sent_to_an_endpoint_is_said_before_the_first_text(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    words = load_default("reviews-words")
    path = tmp_path / "in.txt"
    path.write_text("a good film\na bad film\na film\n")
    told = []

    def answer(handler, content):
        told.append(content["texts"])
        handler.reply({"scores": [[0.5, 0.5]] * len(content["texts"])})

    with endpoint(answer) as server:
        reader = EndpointReader(server.url, protocol="json", labels=words.labels)
        protected = ProtectedClassifier.beside(words, reader, (2,))
        certify_file(protected, path, tmp_path / "out", events=RunEvents(cost=told.append))
        first, *others = told
        assert str(first) == (
            f"3 rows: at most 3 texts for {server.url}, less those that a cache knows"
        )
        assert sum(map(len, others)) == 3
        told.clear()
        certify_file(protected, path, tmp_path / "out", events=RunEvents(cost=told.append))
        assert not told  # nothing is left
    assert len((tmp_path / "out").read_text().splitlines()) >= 3

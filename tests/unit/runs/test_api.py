"""Files from the library: resumed, sharded, told of; what is written is read back whole."""

import functools
import json

import pytest

from ranmask import (
    Certificate,
    Columns,
    OptionError,
    OutputError,
    Prediction,
    RunEvents,
    Sharding,
    SmoothedClassifier,
    attack_file,
    certify_file,
    predict_file,
    read_results,
)
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.attacks.runs import read_outcomes
from ranmask.errors import DataError
from ranmask.models.testing import keyword_classifier
from ranmask.runs.shards.reading import merge, summarise_folder
from ranmask.runs.stored import stored_lines

COLUMNS = Columns("text", None, "label")
SHARDS = Sharding(3)


def load():
    return SmoothedClassifier(keyword_classifier, keep=1, labels=["bad", "good"])


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    rows = [f"a{n},good film {n} bad good,{n % 2},2020-{n}" for n in range(1, 8)]
    path.write_text("id,text,label,date\n" + "\n".join([*rows, "a8,,1,2020-8"]) + "\n")
    return path


def told():
    """Events, and the list that they are written to."""
    seen = []
    return seen, RunEvents(
        started=lambda rows, done: seen.append(("started", rows, done)),
        progress=lambda rows: seen.append(rows),
        failed=lambda row, why: seen.append((row, why)),
    )


@pytest.mark.parametrize("classifier", [load, load()], ids=["function", "classifier"])
def test_certify(source, tmp_path, classifier):
    seen, events = told()
    out = tmp_path / "out.jsonl"
    summary = certify_file(classifier, source, out, columns=COLUMNS, events=events)
    assert (summary.rows, summary.errors, summary.certified.texts) == (8, 1, 7)
    assert seen[0] == ("started", 8, 0) and sum(n for n in seen if isinstance(n, int)) == 8
    assert (8, "the text has no words: ''") in seen
    *results, last = read_results(out)
    expected = load().certify([outcome.row.text for outcome in results])
    assert [outcome.result for outcome in results] == expected
    assert all(type(outcome.result) is Certificate for outcome in results)
    assert last.result is None and "no words" in last.error


def test_goes_on_where_it_stopped(source, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    certify_file(load, source, whole, columns=COLUMNS)

    def stop(rows):
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            certify_file(load, source, cut, columns=COLUMNS, events=RunEvents(progress=stop))
    seen, events = told()
    summary = certify_file(load, source, cut, columns=COLUMNS, events=events)
    assert cut.read_bytes() == whole.read_bytes() and summary.rows == 8
    assert seen[0][0] == "started" and 0 < seen[0][2] < 8
    other = functools.partial(SmoothedClassifier, keyword_classifier, keep=2)
    with pytest.raises(OutputError, match="different: keep"):
        certify_file(other, source, cut, columns=COLUMNS)


def test_the_place_is_checked_before_the_model_is_loaded(source, tmp_path):
    def load_it():
        raise AssertionError("loaded")

    with pytest.raises(OutputError, match="JSON lines"):
        certify_file(load_it, source, tmp_path / "out.csv")
    with pytest.raises(OutputError, match="it is a file"):
        certify_file(load_it, source, source, columns=COLUMNS, sharding=SHARDS)


def test_ids_and_kept_columns(source, tmp_path):
    out = tmp_path / "out.jsonl"
    columns = Columns("text", None, "label", ("date",))
    predict_file(load, source, out, columns=columns)
    header, first, *_ = (json.loads(line) for line in out.read_text().splitlines())
    assert header["constants"] == {"version": 2, "ensemble": "vote", "reader": None}
    assert first["id"] == "a1" and first["columns"] == {"date": "2020-1"}
    assert "ensemble" not in first
    *_, last = stored_lines(out)
    assert last["id"] == "a8" and "error" in last
    results = [outcome.result for outcome in read_results(out)][:-1]
    assert all(type(result) is Prediction and result.ensemble == "vote" for result in results)


def test_shards(source, tmp_path):
    columns = Columns("text", None, "label", ("date",))
    seen, events = told()
    one, folder, merged = (tmp_path / name for name in ("one.jsonl", "folder", "merged.jsonl"))
    summary = certify_file(load, source, folder, columns=columns, sharding=SHARDS, events=events)
    assert summary == certify_file(load, source, one, columns=columns)
    assert seen[0] == ("started", 8, 0) and (8, "the text has no words: ''") in seen
    assert list(read_results(folder)) == list(read_results(one))
    merge(folder, merged, summarise_folder(folder).values())
    assert merged.read_bytes() == one.read_bytes()


def test_attack(source, tmp_path):
    resources = AttackResources(vocabulary=Vocabulary("made up", ("awful", "best")))
    seen, events = told()
    out = tmp_path / "out.jsonl"
    given = {"resources": resources, "budget": 1, "columns": COLUMNS}
    summary = attack_file(keyword_classifier, source, out, "anywords", **given, events=events)
    outcomes = list(read_outcomes(out))
    assert (summary.texts, summary.errors) == (7, 1)
    assert [outcome.number for outcome in outcomes] == list(range(1, 9))
    assert seen[0] == ("started", 8, 0) and (8, outcomes[-1].error) in seen
    assert [line["id"] for line in stored_lines(out)][:2] == ["a1", "a2"]
    folder = tmp_path / "folder"
    sharded = attack_file(load, source, folder, "anywords", **given, sharding=SHARDS)
    plain = attack_file(load(), source, tmp_path / "o.jsonl", "anywords", **given)
    assert list(read_outcomes(folder)) == list(read_outcomes(tmp_path / "o.jsonl"))
    assert sharded.values() == plain.values()
    for place in (out, folder):
        with pytest.raises(DataError, match="outcomes of an attack"):
            list(read_results(place))


def test_only_files_of_runs_are_read(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"row": 1, "text": "a", "label": "x"}\n')
    with pytest.raises(DataError, match="not written by a run"):
        list(read_results(path))


def test_shards_and_a_file_say_the_same_of_an_id_that_is_null(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"id": 1, "text": "good film"}\n{"id": null, "text": "bad"}\n')
    one, folder, merged = (tmp_path / name for name in ("one.jsonl", "folder", "merged.jsonl"))
    predict_file(load, source, one)
    predict_file(load, source, folder, sharding=SHARDS)
    merge(folder, merged, summarise_folder(folder).values())
    assert [line.get("id") for line in stored_lines(merged)] == [1, None]
    assert merged.read_bytes() == one.read_bytes()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": 0}, "rows must be at least 1, not 0"),
        ({"rows": 1, "engine": "spark"}, "engine must be local or ray, not 'spark'"),
        ({"rows": 1, "workers": 0}, "workers must be at least 1"),
        ({"rows": 1, "gpus": 1}, "gpus=1 goes with engine='ray'"),
        ({"rows": 1, "engine": "ray", "gpus": -1}, "gpus must be at least 0"),
    ],
)
def test_wrong_shardings(given, message):
    with pytest.raises(OptionError, match=message):
        Sharding(**given)

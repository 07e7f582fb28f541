"""`ranmask compare` on files as the commands write them."""

import json

import pytest

from commands import run_cli
from ranmask import SmoothedClassifier
from ranmask.data.rows import Row, RowSource
from ranmask.errors import DataError
from ranmask.models.testing import keyword_classifier
from ranmask.paper.reading import read, write
from ranmask.runs.api import run as run_task
from ranmask.runs.stored import stored_lines
from ranmask.runs.task import ClassifyTask

WORDS = ("good", "great", "fine", "bad", "awful", "dull", "film", "plot", "day")
TEXTS = [" ".join(WORDS[(3 * row + step) % 9] for step in range(row % 5 + 3)) for row in range(40)]
DATA = {"name": "made-up", "split": "test", "rows": 40, "sha256": "c" * 64}


def run(command, keep, path, rows=40, data=DATA, seed=0):
    """A finished run of a smoothed classifier of key words, as the commands make it."""
    smoothed = SmoothedClassifier(
        keyword_classifier, keep=keep, seed=seed, labels=["negative", "positive"]
    )
    classify = getattr(smoothed, command)
    task = ClassifyTask(command, smoothed.labels, classify, smoothed.description())
    path.parent.mkdir(parents=True, exist_ok=True)
    given = [Row(number, text, number % 2) for number, text in enumerate(TEXTS[:rows], 1)]
    run_task(lambda: task, RowSource(given, rows, data), path)
    return path


def reproduction(folder, keeps):
    """A folder as `ranmask reproduce` leaves it: one certified step for each number of words."""
    steps = []
    for keep in keeps:
        run("certify", keep, folder / "results" / f"keep{keep}.jsonl")
        named = {"name": f"keep{keep}", "output": f"results/keep{keep}.jsonl"}
        step = {"measures": "certified", "command": "ranmask certify", "place": {"keep": keep}}
        steps.append({**named, **step, "state": "done", "seconds": 0.1, "error": None})
    recipe = {"name": "made-up", "title": "", "kind": "certified", "paper": "", "about": ""}
    values = {"format": "ranmask-reproduction", "version": 1, "recipe": recipe, "size": "smoke"}
    values |= {"settings": {}, "machine": {}, "steps": steps}
    (folder / "reproduction.json").write_text(json.dumps(values))
    return folder


def call(*arguments):
    result = run_cli("compare", *arguments)
    if result.exit_code == 1:
        raise DataError(result.stderr)
    assert result.exit_code == 0, result.output
    return result.output


def test_two_certified_files(tmp_path):
    one, two = (run("certify", keep, tmp_path / f"{keep}.jsonl") for keep in (1, 2))
    shown = call(one, two)
    assert "| certified | exact: accuracy | 40 |" in shown
    assert shown.count("| exact: CR@") == 5 and "McNemar" in shown and "Holm" in shown
    values = json.loads(call(one, two, "--json"))
    figures = {row["figure"]: row for row in values["differences"]}
    for figure, name in (("a", one), ("b", two)):
        lines = list(stored_lines(name))
        right = [line["correct"] for line in lines]
        assert figures["accuracy"][figure] == sum(right) / 40
        sure = [line["correct"] and (line["radius"] or 0) >= 1 for line in lines]
        assert figures["CR@1"][figure] == sum(sure) / 40
    assert figures["CR@1"]["a"] != figures["CR@1"]["b"]


def test_predictions(tmp_path):
    one, two = (run("predict", keep, tmp_path / f"{keep}.jsonl") for keep in (1, 2))
    figures = {row["figure"]: row for row in json.loads(call(one, two, "--json"))["differences"]}
    assert set(figures) == {"accuracy", "entropy of votes"}
    assert figures["entropy of votes"]["a"] > figures["entropy of votes"]["b"]


def test_folders_and_condensed_files_say_the_same(tmp_path):
    one = reproduction(tmp_path / "one", (1, 2))
    two = reproduction(tmp_path / "two", (2, 3))
    shown = call(one, two)
    assert "left out, only in A: keep 1" in shown and "| keep 2 | exact: radius | 40 |" in shown
    for folder in (one, two):
        write(read(folder), tmp_path / f"{folder.name}.json")
    assert call(tmp_path / "one.json", two) == shown == call(one, tmp_path / "two.json")


def test_the_same_twice_differs_nowhere(tmp_path):
    folder = reproduction(tmp_path / "one", (1, 2))
    values = json.loads(call(folder, folder, "--json"))
    assert {row["verdict"] for row in values["differences"]} == {"no difference found"}
    assert {row["adjusted"] for row in values["differences"]} == {1.0}


def test_fewer_rows_of_the_same_corpus(tmp_path):
    less = {**DATA, "rows": 10, "sha256": "d" * 64}
    one = run("certify", 1, tmp_path / "one.jsonl")
    two = run("certify", 2, tmp_path / "two.jsonl", rows=10, data=less)
    assert "10 texts are compared" in call(one, two)
    with pytest.raises(DataError, match="only runs over the same texts"):
        call(one, run("certify", 2, tmp_path / "c.jsonl", data={**DATA, "sha256": "e" * 64}))


def test_refusals(tmp_path):
    one = run("certify", 1, tmp_path / "one.jsonl")
    with pytest.raises(DataError, match="measures 'certified', B one that measures 'predict'"):
        call(one, run("predict", 1, tmp_path / "two.jsonl"))
    with pytest.raises(DataError, match="there is no file or folder"):
        call(one, tmp_path / "none.jsonl")
    unfinished = (tmp_path / "two.jsonl").read_text().splitlines(keepends=True)[:-1]
    (tmp_path / "two.jsonl").write_text("".join(unfinished))
    with pytest.raises(DataError, match=r"B \(two\) has no finished run.*rows so far: 40"):
        call(one, tmp_path / "two.jsonl")

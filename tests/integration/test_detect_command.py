"""``ranmask train --monotone`` and ``ranmask detect``: train, calibrate, run, resume, refuse."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from commands import run_cli
from ranmask import Detection, detect_file, load_detector, read_results
from ranmask.data.rows import Columns
from ranmask.runs.detect import DetectTask

MODULE = """
def prize(texts):
    shares = [text.split().count("prize") / len(text.split()) for text in texts]
    return [[1 - share, share] for share in shares]


def fragile(texts):
    if any("boom" in text for text in texts):
        raise RuntimeError("boom")
    return prize(texts)
"""
SPAM = ("winner", "prize", "cash", "claim", "urgent")


def rows(number, seed=0):
    rng = np.random.default_rng(seed)
    for row in range(number):
        words = [f"word{n}" for n in rng.integers(0, 50, rng.integers(6, 25))]
        spam = row % 3 == 0
        if spam:
            words[1:4] = rng.choice(SPAM, 3, replace=False).tolist()
        yield " ".join(words), "spam" if spam else "ham", "phone" if row % 2 else "mail"


def write(path, number, seed=0):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "source"])
        writer.writerows(rows(number, seed))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("detector")
    data = write(folder / "train.csv", 360)
    done = run_cli(
        *("train", "--kind", "words", "--monotone", "--data", data, "--label-column", "label"),
        *("--output", folder / "model", "--batch-size", 16, "--false-positives", "2%"),
        *("--positive", "spam"),
    )
    assert done.exit_code == 0, done.output
    assert "false positives 0.0" in done.stderr and "certified at 0 1 2 5" in done.stderr
    return folder / "model"


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_model.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_model"


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_texts_on_the_command_line(trained):
    done = run_cli("detect", "--model", trained, "winner of a cash prize claim it", "see you")
    assert done.exit_code == 0, done.output
    first, second = lines(done)
    assert first["flagged"] and first["additions"] == "anywhere" and first["radius"] >= 0
    assert first["positive"] == "spam" and first["detector"] == "words" and first["spans"]
    assert not second["flagged"] and second["radius"] is None


def test_a_file_with_labels_is_summarised_by_length_and_source(trained, tmp_path):
    data = write(tmp_path / "some.csv", 90, seed=5)
    out = tmp_path / "out.jsonl"
    command = (
        *("detect", "--model", trained, "--input", data, "--label-column", "label"),
        *("--by", "source", "--output", out),
    )
    done = run_cli(*command)
    assert done.exit_code == 0, done.output
    assert "90 rows, 0 with errors" in done.stderr and "recall by" in done.stderr
    assert "mail" in done.stderr and "11-30" in done.stderr
    *_, last = out.read_text().splitlines()
    finished = json.loads(last)["finished"]
    assert finished["labelled"] == 90 and finished["recall"]["texts"] == 30
    assert set(finished["by"]) == {"mail", "phone"}
    assert finished["recall"]["share"] > 0.9 and finished["false_positives"]["share"] < 0.1
    whole = out.read_bytes()

    # Cut in the middle of a row, the same command makes the same file again.
    out.write_bytes(whole[: len(whole) // 2])
    done = run_cli(*command)
    assert done.exit_code == 0 and "resuming" in done.stderr
    assert out.read_bytes() == whole

    results = list(read_results(out))
    assert len(results) == 90 and all(isinstance(one.result, Detection) for one in results)
    detector = load_detector(trained)
    assert [one.result for one in results] == detector.detect([one.row.text for one in results])
    summary = detect_file(
        detector, data, tmp_path / "library.jsonl", columns=Columns(None, None, "label")
    )
    assert summary.values() == {key: finished[key] for key in finished if key != "by"}


def test_a_row_with_an_error_keeps_its_other_columns(trained, tmp_path):
    data = tmp_path / "some.csv"
    data.write_text("text,source\nwinner of a cash prize,mail\n,phone\n")
    out = tmp_path / "out.jsonl"
    columns = Columns("text", None, None, keep=("source",))
    detect_file(load_detector(trained), data, out, columns=columns)
    _, found, failed, _ = map(json.loads, out.read_text().splitlines())
    assert found["flagged"] and found["columns"] == {"source": "mail"}
    assert failed["error"] and failed["columns"] == {"source": "phone"}


def test_shards_become_the_same_file(trained, tmp_path):
    data = write(tmp_path / "some.csv", 50, seed=6)
    common = ("detect", "--model", trained, "--input", data, "--label-column", "label")
    assert run_cli(*common, "--output", tmp_path / "one.jsonl").exit_code == 0
    done = run_cli(*common, "--output", tmp_path / "shards", "--shard-rows", 20)
    assert done.exit_code == 0, done.output
    assert "50 rows" in done.stderr and "recall" in done.stderr
    shown = run_cli("runs", "show", tmp_path / "shards")
    assert "ranmask detect, finished" in shown.stdout and "recall" in shown.stdout
    assert run_cli("runs", "merge", tmp_path / "shards", tmp_path / "two.jsonl").exit_code == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert run_cli("runs", "merge", tmp_path / "shards", tmp_path / "two.parquet").exit_code == 0


def test_rows_that_fail_are_lines_with_errors(trained, tmp_path):
    data = tmp_path / "some.csv"
    data.write_text('text,label\nwinner cash prize claim,spam\n" ",ham\nhello,eggs\n')
    out = tmp_path / "out.jsonl"
    done = run_cli(
        *("detect", "--model", trained, "--input", data, "--label-column", "label"),
        *("--output", out),
    )
    assert done.exit_code == 3 and "3 rows, 2 with errors" in done.stderr
    assert "row 2: the text has no words" in done.stderr and "row 3" not in done.stderr
    _, first, second, third, _ = map(json.loads, out.read_text().splitlines())
    assert first["correct"] and "no words" in second["error"]
    assert "unknown label 'eggs'" in third["error"] and "correct" not in third


def test_windows_around_a_function_are_calibrated_saved_and_used(module, tmp_path):
    data = write(tmp_path / "some.csv", 120)
    saved = tmp_path / "saved"
    done = run_cli(
        *("detect", "--model", f"{module}:prize", "--windows", "2,4", "--labels", "ham,spam"),
        *("--calibrate", data, "--label-column", "label", "--false-positives", "5%"),
        *("--save", saved, "--by", "source"),
    )
    assert done.exit_code == 0, done.output
    assert "asking the model about at most" in done.stderr and "threshold" in done.stderr
    assert "false positives by" in done.stderr
    done = run_cli("detect", "--model", saved, "a prize b c d prize")
    assert done.exit_code == 1 and f"--reader {module}:prize" in done.stderr
    done = run_cli(
        *("detect", "--model", saved, "--reader", f"{module}:prize", "a prize b c d prize")
    )
    [found] = lines(done)
    assert found["flagged"] and found["radius"] == 1 and found["detector"] == "windows"
    done = run_cli(
        *("detect", "--model", saved, "--reader", f"{module}:prize", "--input", data),
        *("--label-column", "label", "--output", tmp_path / "out.jsonl"),
    )
    assert done.exit_code == 0 and "windows of 120 texts" in done.stderr
    again = run_cli(
        *("detect", "--model", saved, "--reader", f"{module}:prize", "--calibrate", data),
        *("--label-column", "label", "--save", saved),
    )
    assert again.exit_code == 1 and "not an empty folder" in again.stderr


def test_windows_that_break_the_model_do_not_unflag(module):
    done = run_cli(
        *("detect", "--model", f"{module}:fragile", "--windows", "2", "--labels", "ham,spam"),
        *("--threshold", "0.4", "a prize b boom c"),
    )
    assert done.exit_code == 0, done.output
    [found] = lines(done)
    assert found["flagged"] and found["failed"] == 2
    assert "warning: the model gave no answer for 2 windows" in done.stderr


def test_a_function_without_names_of_classes(module):
    done = run_cli("detect", "--model", f"{module}:prize", "--windows", "2", "a prize")
    assert done.exit_code == 2 and "name them with --labels" in done.stderr


def test_a_detector_gets_another_threshold(trained, tmp_path):
    data = write(tmp_path / "some.csv", 120, seed=8)
    done = run_cli(
        *("detect", "--model", trained, "--calibrate", data, "--label-column", "label"),
        *("--false-positives", "0", "--save", tmp_path / "stricter"),
    )
    assert done.exit_code == 0, done.output
    assert "false positives 0.000" in done.stderr
    stricter = load_detector(tmp_path / "stricter")
    assert stricter.description()["model"] == load_detector(trained).description()["model"]


def test_rows_that_cannot_be_used_are_left_out_and_said(trained, tmp_path):
    data = write(tmp_path / "some.csv", 30, seed=8)
    with data.open("a") as file:
        file.write(",ham,mail\n  ,spam,mail\n")
    done = run_cli(
        *("detect", "--model", trained, "--calibrate", data, "--label-column", "label"),
        *("--save", tmp_path / "other", "--by", "source"),
    )
    assert done.exit_code == 0, done.output
    assert "2 of 32 rows have no usable text: left out" in done.stderr
    assert "too few texts of other classes (20) to show a rate of 0.01" in done.stderr
    assert "false positives by" in done.stderr and "phone" in done.stderr


def test_rates_by_source_of_a_training_run_and_of_a_corpus(trained, tmp_path):
    data = write(tmp_path / "train.csv", 90)
    done = run_cli(
        *("train", "--kind", "words", "--monotone", "--data", data, "--by", "source"),
        *("--output", tmp_path / "model", "--epochs", 1),
    )
    assert done.exit_code == 0, done.output
    assert "recall by" in done.stderr and "phone" in done.stderr and "11-30" in done.stderr
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert set(record["validation"]["by"]) <= {"mail", "phone"}
    assert "By `source`:" in (tmp_path / "model" / "README.md").read_text()
    done = run_cli(
        *("detect", "--model", trained, "--data", data, "--split", "all", "--by", "source"),
        *("--output", tmp_path / "out.jsonl"),
    )
    assert done.exit_code == 0, done.output
    assert "recall by" in done.stderr and "mail       " in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--calibrate", "no.csv", "--label-column", "b", "--save", "y"], 1, "there is no file no"),
        (["a", "--windows", "2", "--threshold", "3"], 2, "a number above 0, at most 1, not 3"),
        (["a", "--threshold", "0.5"], 2, "--threshold means nothing without --windows"),
        (["a", "--windows", "2"], 2, "which is a detector: leave it out"),
        (["a", "--save", "x"], 2, "--save means nothing without --calibrate"),
        (["--calibrate", "x.csv"], 2, "--calibrate needs --save"),
        (["a", "--calibrate", "x.csv", "--save", "y"], 2, "means nothing with --calibrate"),
        (
            ["--calibrate", "x.csv", "--save", "y", "--false-positives", "x"],
            2,
            "--false-positives must be a share below 1",
        ),
        ([], 2, "give texts, or a file"),
    ],
)
def test_wrong_usage_is_told(words, code, message, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("text,label\na,ham\n")
    done = run_cli("detect", "--model", trained, *words)
    assert done.exit_code == code and message in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target-words", "2"], "--target-words means nothing with --monotone"),
        (["--positive", "eggs"], "--positive must be one of ham, spam; not 'eggs'"),
        (["--word-limit", "3"], "--word-limit 3"),
    ],
)
def test_training_options_are_checked(words, message, tmp_path):
    data = write(tmp_path / "train.csv", 60)
    done = run_cli(
        *("train", "--kind", "words", "--monotone", "--data", data, "--label-column", "label"),
        *("--output", tmp_path / "model", *words),
    )
    assert done.exit_code == 2 and message in done.stderr, done.stderr


def test_options_of_detectors_mean_nothing_elsewhere(tmp_path):
    data = write(tmp_path / "train.csv", 60)
    done = run_cli(
        *("train", "--kind", "words", "--additions", "ends", "--data", data),
        *("--label-column", "label", "--output", tmp_path / "model"),
    )
    assert done.exit_code == 2 and "--additions means nothing" in done.stderr


def test_other_commands_refuse_a_detector(trained):
    done = run_cli("certify", "--model", trained, "a b")
    assert done.exit_code == 1 and "run ranmask detect" in done.stderr
    done = run_cli("detect", "--model", Path(trained) / "model", "a b")
    assert done.exit_code == 1 and "no detector" in done.stderr


def test_the_line_of_a_row_says_what_its_result_says(trained):
    task = DetectTask.of(lambda: load_detector(trained))
    assert task.labels == ("ham", "spam") and task.command == "detect"
    assert task.description()["classifier"]["points"] == load_detector(trained).points

"""A model that names one class for every text does not look like a good one in any summary."""

import json

import pytest

from commands import run_cli
from ranmask.results import MarginCertificate, Prediction
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import read_results

MODEL = "ranmask.models.testing:keyword_classifier"
SMOOTHED = ("--model", MODEL, "--keep", "1", "--ensemble", "vote", "--labels", "bad,good")


@pytest.fixture
def skewed(tmp_path):
    """Nine texts in ten are bad, and none has a word that the model takes for good."""
    path = tmp_path / "reviews.csv"
    rows = [f"bad bad bad film{n},{'good' if n % 10 == 0 else 'bad'}\n" for n in range(30)]
    path.write_text("text,label\n" + "".join(rows))
    return path


def ranmask(*arguments):
    done = run_cli(*arguments)
    assert done.exit_code == 0, done.output
    return done


def check_lines(said, certified=True):
    assert "accuracy 0.900 (majority class alone 0.900)  balanced accuracy 0.500" in said
    cells = [line.split() for line in said.splitlines()]
    # recall, precision and F1
    bad, good = ["27", "1.000", "0.900", "0.947"], ["3", "0.000", "0.000", "0.000"]
    assert ["bad", *bad, *(["1.000"] if certified else [])] in cells
    assert ["good", *good, *(["0.000"] if certified else [])] in cells


def check_values(values, certified=True):
    assert (values["accuracy"], values["majority"], values["balanced_accuracy"]) == (0.9, 0.9, 0.5)
    small = values["classes"][1]
    assert (small["name"], small["texts"], small["recall"]) == ("good", 3, 0.0)
    assert small.get("certified_recall") == ([0.0, 0.0] if certified else None)


@pytest.mark.parametrize("command", ["certify", "predict"])
def test_printed(skewed, command):
    done = ranmask(command, "--input", skewed, "--label-column", "label", *SMOOTHED)
    check_lines(done.stderr, command == "certify")


@pytest.mark.parametrize("command", ["certify", "predict"])
def test_written(skewed, tmp_path, command):
    output = tmp_path / "out.jsonl"
    arguments = (command, "--input", skewed, "--label-column", "label", "--output", output)
    check_lines(ranmask(*arguments, *SMOOTHED).stderr, command == "certify")
    record = read_header(tmp_path / "out.jsonl")
    check_values(record["finished"], command == "certify")


def test_sharded(skewed, tmp_path):
    folder = tmp_path / "shards"
    arguments = ("--input", skewed, "--label-column", "label", "--output", folder)
    done = ranmask("certify", *arguments, *SMOOTHED, "--shard-rows", 7)
    check_lines(done.stderr)
    check_lines(ranmask("runs", "show", folder).stdout)
    check_values(json.loads(ranmask("runs", "show", folder, "--json").stdout)["summary"])
    ranmask("runs", "merge", folder, tmp_path / "whole.jsonl")
    record = read_header(tmp_path / "whole.jsonl")
    check_values(record["finished"])


def test_attacked(skewed, tmp_path):
    output = tmp_path / "attacked.jsonl"
    arguments = ("--input", skewed, "--label-column", "label", "--output", output)
    words = ("--stop-words", "textfooler")
    done = ranmask("attack", "--recipe", "deepwordbug", *words, *arguments, *SMOOTHED)
    assert "majority class alone 90.0%  balanced Cln 50.0%" in done.stderr
    finished = read_header(tmp_path / "attacked.jsonl")["finished"]
    assert (
        finished["clean_accuracy"],
        finished["majority"],
        finished["balanced_clean_accuracy"],
    ) == (0.9, 0.9, 0.5)
    assert (
        finished["classes"][1]["name"] == "good" and finished["classes"][1]["clean_accuracy"] == 0
    )


def test_compared(skewed, tmp_path):
    output = tmp_path / "out.jsonl"
    arguments = ("--input", skewed, "--label-column", "label", "--output", output)
    ranmask("certify", *arguments, *SMOOTHED)
    found = json.loads(ranmask("compare", output, output, "--json").stdout)
    assert (found["classes"][0]["majority"], found["classes"][0]["balanced_a"]) == (0.9, 0.5)


@pytest.mark.parametrize("command", ["certify", "predict"])
def test_a_positive_class(skewed, tmp_path, command):
    output = tmp_path / "out.jsonl"
    arguments = (command, "--input", skewed, "--label-column", "label", "--output", output)
    said = ranmask(*arguments, *SMOOTHED, "--positive", "Bad").stderr
    assert "positive class bad:  precision 0.900  recall 1.000  f1 0.947  AUC" in said
    found = read_header(output)["finished"]["positive"]
    assert (found["name"], found["texts"], found["recall"]) == ("bad", 27, 1.0)
    assert [at["rate"] for at in found["at_rates"]] == [0.001, 0.01, 0.05]
    assert ("certified_recall" in found["at_rates"][0]) == (command == "certify")
    [first, *_] = (row.result for row in read_results(output))
    assert isinstance(first, MarginCertificate if command == "certify" else Prediction)
    again = ranmask(*arguments, *SMOOTHED, "--positive", "bad")  # resumed: the same figures
    assert "precision 0.900  recall 1.000" in again.stderr
    other = run_cli(*arguments, *SMOOTHED, "--positive", "good")
    assert other.exit_code == 1 and "positive" in other.stderr


def test_a_positive_class_in_shards(skewed, tmp_path):
    folder = tmp_path / "shards"
    arguments = ("--input", skewed, "--label-column", "label", "--positive", "bad", *SMOOTHED)
    ranmask("certify", *arguments, "--output", folder, "--shard-rows", 7)
    ranmask("certify", *arguments, "--output", tmp_path / "one.jsonl")
    shown = json.loads(ranmask("runs", "show", folder, "--json").stdout)["summary"]
    assert shown["positive"] == read_header(tmp_path / "one.jsonl")["finished"]["positive"]
    assert list(read_results(folder)) == list(read_results(tmp_path / "one.jsonl"))


def test_a_positive_class_that_does_not_exist(skewed):
    done = run_cli("predict", "--input", skewed, *SMOOTHED, "--positive", "spam")
    assert done.exit_code == 2
    assert "--positive must be one of the classes, bad, good; not 'spam'" in done.stderr


def test_a_positive_class_by_a_number_that_does_not_exist(skewed):
    """A function says how many classes it has when it is asked, not before."""
    unnamed = ("--model", MODEL, "--keep", "1", "--positive", "7")
    rows = ("--input", skewed, "--label-column", "label")
    skewed.write_text("text,label\nbad film,0\n")
    done = run_cli("predict", *rows, *unnamed)
    assert done.exit_code == 2 and "one of 2 classes, not number 7" in done.stderr


@pytest.mark.parametrize("beside", [["--compare"], ["--copies", 2]])
def test_a_positive_class_alone(skewed, beside):
    done = run_cli("certify", "--input", skewed, *SMOOTHED, "--positive", "bad", *beside)
    assert done.exit_code == 2 and "--positive means nothing with --compare or" in done.stderr


def test_scores_are_not_certified_against_edits(skewed):
    more = ("--threat", "edits", "--hide", "drop", "--positive", "bad")
    done = ranmask("certify", "--input", skewed, "--label-column", "label", *SMOOTHED, *more)
    own, *rates = done.stderr[done.stderr.index("positive class") :].splitlines()
    assert "certified@1" in own and len(rates) == 3
    assert not any("certified" in line for line in rates)


def test_a_positive_class_in_tune(skewed, tmp_path):
    more = ("--positive", "bad", "--split", "all", "--output", tmp_path / "tune.json")
    arguments = ("tune", "--data", skewed, "--model", SMOOTHED[1], "--keep", 1, *more)
    done = ranmask(*arguments, "--labels", "bad,good")
    assert "Positive class bad:" in done.stdout
    again = ranmask(*arguments, "--labels", "bad,good")  # read from the file
    assert again.stdout.split("Positive class")[1] == done.stdout.split("Positive class")[1]
    found = json.loads((tmp_path / "tune.json").read_text())["measured"][0]["positive"]
    assert found["recall"] == 1.0 and found["at_rates"]


@pytest.fixture
def rare(tmp_path):
    """One text in ten is good, and says so by a word."""
    path = tmp_path / "rare.csv"
    words = [f"word{number}" for number in range(40)]
    rows = [
        f"{words[n % 40]} {words[7 * n % 40]} {'fine' if n % 10 == 0 else 'dull'} film{n},"
        f"{'good' if n % 10 == 0 else 'bad'}\n"
        for n in range(400)
    ]
    path.write_text("text,label\n" + "".join(rows))
    return path


def test_a_positive_class_on_a_card(rare, tmp_path):
    output = tmp_path / "model"
    train = ("train", "--data", rare, "--kind", "words", "--epochs", 4, "--warm-epochs", 1)
    ranmask(*train, "--positive", "good", "--output", output)
    card = (output / "README.md").read_text()
    assert "*good* against all others: precision 1.000, recall 1.000, F1 1.000, AUC 1.000" in card
    rate = next(line for line in card.splitlines() if line.startswith("| 1.0% |"))
    assert rate.split("|")[3:5] == [" 1.000 ", " 1.000 "]
    done = run_cli(*train, "--positive", "great", "--output", tmp_path / "other")
    assert done.exit_code == 2 and "--positive must be one of the classes" in done.stderr
    assert not (tmp_path / "other").exists()


def test_what_proves_nothing_is_not_called_certified(skewed):
    more = ("--certificate", "paper", "--masks", 20, "--selection-masks", 20, "--positive", "bad")
    done = ranmask("certify", "--input", skewed, "--label-column", "label", *SMOOTHED, *more)
    shown = done.stderr[done.stderr.index("positive class") :]
    assert "recall 1.000" in shown and "certified" not in shown

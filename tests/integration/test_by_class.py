"""A model that names one class for every text does not look like a good one in any summary."""

import json

import pytest

from commands import run_cli
from ranmask.runs.result_file import read_header

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
    assert ["bad", "27", "1.000", *(["1.000"] if certified else [])] in cells
    assert ["good", "3", "0.000", *(["0.000"] if certified else [])] in cells


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

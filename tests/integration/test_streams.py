"""Standard input and output, CSV beside JSON lines."""

import csv
import io
import json
import sys

import pytest

from commands import run_cli
from ranmask.errors import OutputError
from ranmask.runs.csv_lines import CsvLines, write_csv

FAKE = "ranmask.models.testing:keyword_classifier"
CERTIFY = ("certify", "-m", FAKE, "--keep", 1)
TEXTS = 'good good good\n\nbad film, "so" bad bad\n'


@pytest.fixture
def piped(monkeypatch):
    """Gives a command its standard input."""

    def run(given, *words):
        data = given if isinstance(given, bytes) else given.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return run_cli(*words)

    return run


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def csv_rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("words", [("-",), ("--input", "-"), ("-", "--json"), ("--csv", "-")])
def test_texts_from_standard_input(piped, words):
    done = piped(TEXTS, *CERTIFY, *words)
    assert done.exit_code == 3  # a line without a word
    rows = csv_rows(done.stdout) if "--csv" in words else json_lines(done.stdout)
    assert [str(row["row"]) for row in rows] == ["1", "2", "3"]
    assert [row["text"] for row in rows] == TEXTS.splitlines()
    assert [str(row.get("radius")) for row in rows][::2] == ["1", "2"]
    assert rows[1]["error"] == "the text has no words: ''"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_tables_from_standard_input_have_columns_and_labels(piped, kind):
    given = {
        "csv": "id,text,label\n7,good good,1\n8,bad,1\n",
        "jsonl": '{"id": 7, "text": "good good", "label": 1}\n'
        '{"id": 8, "text": "bad", "label": 1}\n',
    }[kind]
    columns = ("--input-format", kind, "--label-column", "label")
    done = piped(given, *CERTIFY, "-", *columns)
    assert done.exit_code == 0 and "accuracy 0.500" in done.stderr
    assert [(str(row["id"]), row["correct"]) for row in json_lines(done.stdout)] == [
        ("7", True),
        ("8", False),
    ]


def test_a_run_over_standard_input_is_resumed(piped, tmp_path):
    output = tmp_path / "out.jsonl"
    for _ in range(2):
        done = piped(TEXTS, *CERTIFY, "-", "--output", output)
        assert done.exit_code == 3
    assert "resuming" in done.stderr and str(tmp_path / "stdin") not in output.read_text()
    other = piped("other words\n", *CERTIFY, "-", "--output", output)
    assert other.exit_code == 1 and "another" in other.stderr


def test_standard_output_is_json_lines():
    plain, named = (run_cli(*CERTIFY, "good film", *more) for more in ((), ("--output", "-")))
    assert plain.stdout == named.stdout and named.exit_code == 0
    assert csv_rows(run_cli(*CERTIFY, "good", "--output", "-", "--csv").stdout)[0]["radius"] == "0"


def test_other_commands_read_and_write_alike(piped):
    flagged = piped("free cash\n", "detect", "-m", "spam", "-", "--csv")
    assert csv_rows(flagged.stdout)[0]["text"] == "free cash"
    attacked = piped("so so good\n\n", "attack", "-m", "news-words", "-", "--csv")
    assert attacked.exit_code == 3
    first, second = csv_rows(attacked.stdout)
    assert first["status"] == "succeeded" and json.loads(first["changes"])
    assert second["error"] == "the text has no words: ''"
    [only] = json_lines(
        piped("so so good\nbad\n", "attack", "-m", "news-words", "-", "--rows", 1).stdout
    )
    assert only["row"] == 1
    recipe = ("--recipe", "anywords", "--budget", 9)
    [line] = json_lines(
        piped("good good bad\n", "attack", "-m", FAKE, "--keep", 1, "-", *recipe).stdout
    )
    assert line["label"] == line["clean_label"] == 1
    windows = ("--windows", "2", "--labels", "bad,good", "--output")
    done = piped("good good\nbad\n", "detect", "-m", FAKE, "-", *windows, "-")
    assert [row["flagged"] for row in json_lines(done.stdout)] == [True, False]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-",), 1, "error: standard input has no rows"),
        (("-", "--input-format", "csv"), 1, "error: standard input is empty"),
        (("good", "--input-format", "csv"), 2, "--input-format goes with --input -"),
        (("good", "--csv", "--json"), 2, "--json and --csv: leave one of them out"),
        (("-", "--csv", "--output", "o.jsonl"), 2, "ranmask runs merge o.jsonl o.csv"),
        (("-", "good"), 2, "give texts, or a file with --input"),
        (("-", "--output", "o.csv"), 1, "no rows"),
    ],
)
def test_what_cannot_be(piped, words, code, message):
    done = piped("", *CERTIFY, *words)
    assert done.exit_code == code and message in done.stderr and done.stdout == ""


def test_csv_of_a_run(tmp_path):
    (tmp_path / "in.csv").write_text('text,label\n"so, good fine great",1\nbad,1\n,0\nfine,x\n')
    given = ("--input", tmp_path / "in.csv", "--label-column", "label")
    run_cli(*CERTIFY, *given, "--output", tmp_path / "out.jsonl")
    run_cli(*CERTIFY, *given, "--output", tmp_path / "shards", "--shard-rows", 2)
    refused = run_cli(*CERTIFY, *given, "--output", tmp_path / "out.csv")
    assert refused.exit_code == 1 and "make CSV of it with ranmask runs merge" in refused.stderr
    tables = []
    for run in ("out.jsonl", "shards"):
        done = run_cli("runs", "merge", tmp_path / run, tmp_path / f"{run}.csv")
        assert done.exit_code == 0 and "4 rows" in done.stdout
        tables.append((tmp_path / f"{run}.csv").read_text())
    assert csv_rows(tables[0]) == csv_rows(tables[1])
    rows = csv_rows(tables[0])
    assert [row["correct"] for row in rows] == ["true", "false", "", ""]
    assert rows[0]["text"] == "so, good fine great" and json.loads(rows[0]["votes"]) == [1, 3]
    assert "no words" in rows[2]["error"] and "unknown label" in rows[3]["error"]
    again = run_cli("runs", "merge", tmp_path / "shards", tmp_path / "shards.csv")
    assert again.exit_code == 1 and "exists" in again.stderr
    stranger = run_cli("runs", "merge", tmp_path / "in.csv", tmp_path / "x.csv")
    other = run_cli("runs", "merge", tmp_path / "out.jsonl", tmp_path / "x.parquet")
    assert other.exit_code == 2 and "name one that ends in .csv" in other.stderr
    assert stranger.exit_code == 1 and "not written by a run" in stranger.stderr


def written(lines, path):
    count = write_csv(lines, path)
    return count, path.read_text()


def test_errors_wait_for_the_first_result_and_nothing_is_lost(tmp_path):
    lines = [
        {"row": 1, "error": "x"},
        {"row": 2, "id": 5, "radii": {"span": 1, "edits": None}, "votes": [1, 0], "sure": True},
        {"row": 3, "correct": False},
    ]
    assert written(lines, tmp_path / "all.csv") == (
        3,
        "row,id,radii.span,radii.edits,votes,sure,expected_id,correct,error\n"
        "1,,,,,,,,x\n"
        '2,5,1,,"[1, 0]",true,,,\n'
        "3,,,,,,,false,\n",
    )
    table = CsvLines(io.StringIO())
    table.write({"row": 1, "label": "a"})
    with pytest.raises(OutputError, match="row 2 has the field 'more'"):
        table.write({"row": 2, "more": 1})
    only_errors = "row,id,expected_id,correct,error\n1,,,,x\n"
    assert written(lines[:1], tmp_path / "errors.csv") == (1, only_errors)

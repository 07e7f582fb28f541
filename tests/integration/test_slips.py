"""Slips of the hand on the command line: one line that says what to do, at once, no traceback."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import ranmask
from commands import run_cli

SOURCE = str(Path(ranmask.__file__).parents[1])

TABLE = ("--model", "reviews-words")
ATTACK = ("attack", "--recipe", "deepwordbug", "--stop-words", "none")
EVERY = [("certify",), ("predict",), ("beta",), ATTACK]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with a few files; a model that is asked for on the hub is a failure."""
    rows = [("a wonderful film", "positive"), ("a dull film", "negative")]
    lines = [json.dumps({"body": text, "label": label}) for text, label in rows]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "in.csv").write_text("text,label\n" + "".join(f"{a},{b}\n" for a, b in rows))
    (tmp_path / "head.csv").write_text("text,label\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "folder").mkdir()
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*arguments, code=1):
    """The one line on standard error; nothing else was printed, and no file was written."""
    before = listed()
    done = run_cli(*arguments)
    assert done.exit_code == code, done.output
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert listed() == before
    return done.stderr


def listed():
    return sorted(Path().rglob("*"))


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command[0])
class TestEveryCommandOverTexts:
    @pytest.mark.parametrize(
        ("output", "problem"),
        [
            (".", "cannot write .: it is a folder"),
            ("/", "cannot write /: it is a folder"),
            ("/dev/full", "cannot write /dev/full: it is no ordinary file"),
            ("out.csv", "name it out.jsonl"),
            ("absent/out.jsonl", "there is no folder"),
        ],
    )
    def test_output(self, command, output, problem):
        given = ("--input", "in.csv", "--label-column", "label", "--output", output)
        assert problem in refused(*command, *given, "--model", "no-such/model")  # not loaded yet

    def test_no_rows(self, command):
        given = ("--label-column", "label", *TABLE)
        assert "head.csv has no rows" in refused(*command, "--input", "head.csv", *given)

    def test_columns_of_json_lines(self, command):
        given = ("--input", "in.jsonl", "--label-column", "label", *TABLE)
        told = refused(*command, *given, "--text-column", "text")
        assert "the row has no column 'text'; it has body, label" in told

    def test_a_model_of_almost_that_name(self, command):
        given = ("--input", "in.csv", "--label-column", "label", "--model", "review-words")
        assert "did you mean 'reviews-words'?" in refused(*command, *given)

    def test_a_bad_row_of_a_corpus(self, command, here):
        place = here / "corpus"
        place.mkdir()
        rows = ["a wonderful film,1", " ,1", "a dull film,0", "a bad film,0"]
        for name in ("train", "test"):
            (place / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        (place / "validation.csv").write_text("text,label\nso good,1\n")
        given = (*command, "--data", "corpus", "--model", "reviews-words")
        given = (*given, "--rows", 1)
        told = refused(*given)
        assert "row 2" in told and "leave such rows out (--skip-bad-rows)" in told
        done = run_cli(*given, "--skip-bad-rows")
        assert done.exit_code == 0, done.output

    def test_a_file_where_a_text_should_stand(self, command):
        told = refused(*command, "in.csv", *TABLE, code=2)
        assert "'in.csv' is a file, not a text: to read it, give --input in.csv" in told

    def test_a_folder_where_a_file_should_stand(self, command):
        given = ("--input", "folder", "--label-column", "label", *TABLE)
        assert "folder is a folder: name one file in it" in refused(*command, *given)

    def test_a_column_that_is_not_there(self, command):
        given = ("--input", "in.csv", "--label-column", "lable", *TABLE)
        told = refused(*command, *given)
        assert "no column 'lable'; it has text, label: name the right one (--label-column)" in told

    def test_one_file_of_a_corpus(self, command):
        told = refused(*command, "--data", "in.csv", *TABLE)
        assert "in.csv has no test split: take all its rows with --split all" in told

    def test_the_first_rows_of_a_file(self, command, here):
        given = ("--input", "in.csv", "--label-column", "label", *TABLE, "--output")
        done = run_cli(*command, *given, "first.jsonl", "--rows", 1)
        assert done.exit_code == 0, done.output
        whole = run_cli(*command, *given, "whole.jsonl")
        assert whole.exit_code == 0, whole.output
        counts = [
            len(Path(f"{name}.jsonl").read_text().splitlines()) for name in ("first", "whole")
        ]
        assert counts[1] == counts[0] + 1
        again = run_cli(*command, *given, "first.jsonl")
        assert again.exit_code == 1 and "belongs to another run" in again.stderr

    def test_parts_and_rows_are_not_of_texts(self, command):
        told = refused(*command, "--split", "all", "a text", *TABLE, code=2)
        assert "--split all goes with --data, as in --data FILE --split all" in told
        if command[0] != "attack":
            told = refused(*command, "--rows", 3, "a text", *TABLE, code=2)
            assert "--rows 3 goes with --input or --data" in told

    def test_skipping_is_for_corpora(self, command):
        given = ("--input", "in.csv", "--label-column", "label", "--skip-bad-rows", *TABLE)
        assert "--skip-bad-rows goes with --data" in refused(*command, *given, code=2)


class TestCertify:
    def test_shards_are_a_folder(self):
        given = ("--input", "in.csv", "--output", "head.csv", "--shard-rows", 1, *TABLE)
        assert "head.csv: it is a file" in refused("certify", *given)

    def test_shards_of_no_rows(self):
        given = ("--input", "empty.txt", "--output", "out", "--shard-rows", 1, *TABLE)
        assert "empty.txt has no rows" in refused("certify", *given)

    @pytest.mark.parametrize(
        ("model", "problem"),
        [
            ("nwes", "there is no model or folder 'nwes': did you mean 'news'?"),
            ("News", "did you mean 'news'?"),
            ("reviews-word", "did you mean 'reviews-words'?"),
            ("folder", "the folder 'folder' holds no model: it has no config.json"),
            ("in.csv", "'in.csv' is a file: name the folder of a model"),
        ],
    )
    def test_models(self, model, problem):
        assert problem in refused("certify", "--model", model, "some text")

    @pytest.mark.parametrize("text", ["a wonderful film.csv", "long " * 2000 + ".csv"])
    def test_a_text_that_only_ends_like_a_file(self, text):
        done = run_cli("certify", text, *TABLE)
        assert done.exit_code == 0, done.output

    def test_a_model_that_comes_with_ranmask_goes_by_its_name(self):
        told = refused("certify", "--device", "cuda", "some text", code=2)
        assert "--device cuda means nothing for 'news', which is" in told
        told = refused("certify", "--certificate", "paper", "some text", code=2)
        assert "--certificate exact, or a model without one, as news-words" in told

    @pytest.mark.parametrize("environment", [{}, {"RANMASK_MODEL": ""}], ids=["flag", "variable"])
    @pytest.mark.parametrize("command", ["certify", "gate", "detect"])
    def test_a_model_of_no_name_is_not_the_default(self, command, environment, monkeypatch):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        given = ("--input", "in.csv", *(() if environment else ("--model", "")))
        more = ("--require", "errors <= 0") if command == "gate" else ()
        told = refused(command, *given, *more, code=2)
        assert "--model, or RANMASK_MODEL, is empty: give a value, or leave it out" in told

    @pytest.mark.parametrize("output", ["out", "out.jsonl", "out.csv"])
    def test_csv_of_a_file_of_results(self, output):
        results = output.replace(".csv", ".jsonl")
        told = refused("certify", "--input", "in.csv", "--csv", "--output", output, code=2)
        assert f"with --output {results}, and make" in told
        assert told.endswith(f"ranmask runs merge {results} out.csv\n")

    def test_the_weight_of_a_reader_that_is_not_there(self):
        told = refused("certify", "a film", *TABLE, "--reader-weights", 1, code=2)
        assert "this model has none: give one, --reader on the command line" in told

    def test_a_name_of_nothing(self):
        told = refused("certify", "--model", "gpt2", "some text")
        assert "no folder or installed package 'gpt2'" in told
        assert "a model that comes with ranmask, as news" in told

    def test_how_much_a_copy_shows(self, here):
        (here / "judge.py").write_text("def judge(texts):\n    return [[0, 1]] * len(texts)\n")
        told = refused("certify", "--model", "judge:judge", "some text", code=2)
        assert "as --keep 2, or what share is hidden, as --mask-rate 0.9" in told

    def test_a_label_that_the_model_does_not_know_is_told(self, here, monkeypatch):
        (here / "in.csv").write_text("text,label\na wonderful film,phish\n")
        given = ("certify", "--input", "in.csv", "--label-column", "label", *TABLE)
        done = run_cli(*given)
        assert done.exit_code == 3 and "1 row, 1 with errors" in done.stderr
        monkeypatch.setattr("ranmask.cli.options.OutputOptions.printed", None)  # as a table
        table = run_cli(*given)
        assert "a wonderful film" in table.stdout and "unknown label 'phish'" in table.stdout

    @pytest.mark.parametrize("labels", [("--label-column", "label"), ()])
    def test_figures_that_nothing_guarantees_are_marked(self, labels):
        paper = ("--certificate", "paper", "--mask-rate", ".8", *TABLE)
        done = run_cli("certify", "--input", "in.csv", *labels, "--output", "out.jsonl", *paper)
        assert done.exit_code == 0 and "2 rows" in done.stderr
        assert "\nnot a guarantee: the certificate of the paper is unsound" in done.stderr

    def test_a_hub_id_is_no_slip(self):
        told = refused("certify", "--model", "gpt2", "some text")
        assert "hub" in told and "did you mean" not in told

    def test_a_folder_of_a_name_like_that(self, here):
        (here / "nwes").mkdir()
        assert "the folder 'nwes' holds no model" in refused("certify", "-m", "nwes", "some text")

    def test_true_and_false_are_names_of_classes(self, here):
        rows = [{"text": "a good film", "label": True}, {"text": "a bad film", "label": False}]
        (here / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (here / "judge.py").write_text(
            "def judge(texts):\n"
            "    return [[('bad' in text) + .1, float('good' in text)] for text in texts]\n"
        )
        given = ("--model", "judge:judge", "--keep", "1", "--hide", "drop", "--json")
        given = (*given, "--input", "in.jsonl", "--label-column", "label")
        for labels in ((), ("--labels", "false,true")):
            done = run_cli("certify", *given, *labels)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            assert [line.get("expected_id") for line in lines] == [1, 0], done.output
        done = run_cli("certify", *given, "--labels", "ham,spam")
        assert (
            done.exit_code == 3 and "unknown label True: the classes are ham, spam" in done.stdout
        )


class TestTune:
    @pytest.mark.parametrize("output", [".", "/dev/full", "absent/t.json"])
    @pytest.mark.parametrize("option", ["--output", "--svg"])
    def test_output(self, output, option):
        given = ("--data", "in.csv", "--model", "no-such/model", option, output)
        assert f"cannot write {output}: " in refused("tune", *given)


def ran(*arguments, **environment):
    """Exit code and standard error of a process of its own."""
    apart = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, **environment}
    command = [sys.executable, "-m", "ranmask", *arguments]
    done = subprocess.run(command, env=apart, capture_output=True, text=True)
    return done.returncode, done.stderr.splitlines()


class NoModel(BaseHTTPRequestHandler):
    """A hub that knows no model."""

    def do_HEAD(self):
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_hub_that_cannot_be_reached_is_asked_once():
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    code, [told] = ran("certify", "--model", "no-such/model", "a b", **nobody)
    assert code == 1 and "the hub cannot be reached" in told


def test_a_hub_that_knows_no_such_model():
    with ThreadingHTTPServer(("127.0.0.1", 0), NoModel) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
        code, [told] = ran("certify", "--model", "no-such/model", "a b", **hub)
        server.shutdown()
    assert code == 1 and "cannot load 'no-such/model': " in told


def test_an_interrupt_while_the_command_is_imported(here):
    (here / "cyclopts.py").write_text("raise KeyboardInterrupt\n")
    path = os.pathsep.join([str(here), SOURCE])
    assert ran("--version", PYTHONPATH=path) == (130, [])


def test_what_a_recipe_lacks_is_told_before_the_victim_is_loaded():
    given = ("--input", "in.csv", "--label-column", "label", "--model", "no-such/model")
    told = refused("attack", "--recipe", "bae", *given, code=2)
    assert "--recipe bae needs a masked language model" in told


def test_a_word_table_is_no_language_model(here):
    (here / "table").mkdir()
    (here / "table" / "ranmask.json").write_text("{}")
    given = ("--input", "in.csv", "--label-column", "label", *TABLE, "--attack-lm", "table")
    told = refused("attack", "--recipe", "bae", *given)
    assert "'table' holds a model of ranmask's own" in told


def test_a_recipe_without_its_sentence_encoder_says_so(here):
    given = ("--input", "in.csv", "--label-column", "label", *TABLE, "--output", "out.jsonl")
    done = run_cli("attack", "--recipe", "textfooler", *given)
    assert done.exit_code == 0
    assert "textfooler without sentence encoder: 2 texts" in done.stderr

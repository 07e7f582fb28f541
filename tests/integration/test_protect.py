"""``ranmask protect`` and `protect`: a model that somebody has, and a pile of texts."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import made_up
import numpy as np
import pytest

from commands import run_cli
from ranmask.errors import DataError, ModelError, OptionError, OutputError
from ranmask.models.readers import FunctionReader
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.smoothing.store import load_classifier
from ranmask.training.protect_options import ProtectOptions
from ranmask.training.protect_work import parts_of
from ranmask.training.protecting import protect
from ranmask.training.protection import ANSWERS, RECORD, read_protection

SMALL = ProtectOptions(epochs=3, buckets=1024, words=(1, 2))
FLAGS = ("--epochs", "3", "--buckets", "1024", "--words", "1,2")
NAMES = list(made_up.CLASSES)
PILE = [text for text, _ in made_up.texts(240, seed=0, varied=True)]
LABELS = [made_up.CLASSES[label] for _, label in made_up.texts(240, seed=0, varied=True)]

MODULE = """
import os, time

WORDS = (("good", "great", "fine"), ("bad", "awful", "dull"), ("plot", "story", "acting"))


def model(texts):
    with open(os.environ["ASKED"], "a") as log:
        for text in texts:
            log.write(text + "\\n")
    time.sleep(float(os.environ.get("SLOW", "0")))
    counts = [[sum(text.split().count(word) for word in own) for own in WORDS] for text in texts]
    return [[(one + 0.1) / (sum(row) + 0.3) for one in row] for row in counts]


def dying(texts):
    if os.path.exists("stop") and os.path.exists(os.environ["ASKED"]):
        with open(os.environ["ASKED"]) as log:
            if len(log.readlines()) >= 128:
                raise OSError("gone")
    return model(texts)


def broken(texts):
    raise OSError("nobody is there")
"""


class Model:
    """A model in memory that counts what it is asked; texts with ``silent`` get no answer."""

    def __init__(self, silent=None, favourite=None):
        self.asked, self.silent, self.favourite = [], silent, favourite

    def __call__(self, texts):
        self.asked += texts
        if self.silent is not None and any(self.silent in text.split() for text in texts):
            raise OSError("too hard")
        rows = []
        for text in texts:
            own = [
                sum(text.split().count(word) for word in words) + 0.1 for words in made_up.TELLING
            ]
            rows.append([one / sum(own) for one in own] if self.favourite is None else [1, 0, 0])
        return rows


def protected(output, model=None, texts=PILE, **given):
    given = {"label_names": NAMES, "options": SMALL, **given}
    return protect(model or Model(), texts, output, **given)


@pytest.fixture
def named(tmp_path, monkeypatch):
    """A module ``mine`` with a model, and the log of what it was asked."""
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "pile.txt").write_text("\n".join(PILE) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASKED", str(tmp_path / "asked.txt"))
    yield tmp_path
    sys.modules.pop("mine", None)


def command(*more):
    return (
        *("protect", "--model", "mine:model", "--labels", ",".join(NAMES), "--texts", "pile.txt"),
        *("--output", "out", *FLAGS, *more),
    )


def asked(folder):
    return (folder / "asked.txt").read_text().splitlines()


def bytes_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def test_the_folder_is_a_classifier_that_proves_what_it_said(tmp_path):
    """The figures on the last part are those of the saved classifier, certified text by text."""
    model = Model()
    protected(tmp_path / "out", model)
    assert sorted(model.asked) == sorted(set(PILE))  # each once
    with pytest.raises(ModelError, match="give it again"):
        load_classifier(str(tmp_path / "out"))
    loaded = load_classifier(str(tmp_path / "out"), reader=Model())
    assert isinstance(loaded, ProtectedClassifier) and loaded.labels == tuple(NAMES)
    protection = read_protection(tmp_path / "out")
    best = protection.at()
    assert loaded.options.reader_weights == protection.weights
    texts = list(dict.fromkeys(PILE))
    judged = np.ones(len(texts), dtype=bool)
    final = [texts[place] for place in parts_of(judged, SMALL).figures]
    own = np.argmax(Model()(final), axis=1)
    results = loaded.certify(final)
    right = [one for one, label in zip(results, own, strict=True) if one.label_id == label]
    assert sum(best.texts) == len(final) and sum(best.right) == len(right)
    for words in (1, 2):
        count = sum((one.radius or 0) >= words for one in right)
        assert best.share(words) * len(final) == count
    assert best.share(1) > 0.3 and best.accuracy() > 0.9
    assert protection.measure == "agreement" and protection.alone[1].accuracy() == 1
    parts = protection.run["parts"]
    assert parts["learning"] == parts["choosing"] == len(texts) - len(final)
    assert parts["folds"] == 4 and [one for one, _ in protection.learning] == [
        parts["learning"] // 4,
        parts["learning"] // 2,
        parts["learning"],
    ]


def test_true_labels_are_learned_where_they_are_given(tmp_path):
    """A model that always says the same is no better than guessing; labels are."""
    protected(tmp_path / "out", Model(favourite=0), labels=LABELS)
    protection = read_protection(tmp_path / "out")
    assert protection.measure == "accuracy" and protection.alone[1].accuracy() < 0.5
    assert protection.at().accuracy() > 0.9 and protection.reached


def test_some_labels_choose_and_measure(tmp_path):
    """Of texts without one, the model's own label is learned, however wrong."""
    some = [label if place < 80 else None for place, label in enumerate(LABELS)]
    protected(tmp_path / "out", labels=some)
    protection = read_protection(tmp_path / "out")
    texts = list(dict.fromkeys(PILE))
    assert protection.measure == "accuracy" and protection.alone[1].accuracy() == 1
    parts = protection.run["parts"]
    assert parts["figures"] == round(len(texts) / 10) and parts["folds"] == 4
    assert parts["learning"] + parts["figures"] == len(texts)
    assert parts["choosing"] + parts["figures"] == len(set(PILE[:80]))
    none_left = [label if place < 50 else None for place, label in enumerate(LABELS)]
    options = ProtectOptions(epochs=3, buckets=1024, held_out=0.5)
    protected(tmp_path / "few", labels=none_left, options=options)
    parts = read_protection(tmp_path / "few").run["parts"]
    assert parts["folds"] == 1 and parts["choosing"] == parts["figures"] == 25


def test_the_same_call_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        protected(tmp_path / name)
    first = bytes_of(tmp_path / "one")
    assert first == bytes_of(tmp_path / "two")
    assert {RECORD, ANSWERS, "README.md", "ranmask.json"} < set(first)


def test_a_killed_run_asks_for_nothing_twice(named):
    """kill -9 while it asks, half a line at the end: what was answered is not asked again."""
    texts = named / "pile.txt"
    texts.write_text("\n".join(f"{text} {n}" for n, text in enumerate(PILE)) + "\n")
    environment = {
        **os.environ,
        "SLOW": "0.2",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    run = subprocess.Popen(
        [sys.executable, "-m", "ranmask.cli", *command()], env=environment, stderr=subprocess.PIPE
    )
    answers = named / "out" / ANSWERS
    until = time.monotonic() + 60
    while time.monotonic() < until and run.poll() is None:
        if answers.exists() and answers.read_bytes().count(b"\n") > 64:
            break
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    kept = answers.read_bytes().count(b"\n") - 1
    assert 64 <= kept < len(PILE), kept
    with answers.open("ab") as file:
        file.write(b'{"key": "torn')
    (named / "asked.txt").unlink()
    done = run_cli(*command())
    assert done.exit_code == 0, done.output
    assert f"{kept} known" in done.stderr
    again = asked(named)
    assert len(again) == len(set(again)) == len(PILE) - kept
    assert read_protection(named / "out").run["texts"]["texts"] == len(PILE)
    whole = bytes_of(named / "out")
    (named / "out").rename(named / "killed")
    assert run_cli(*command()).exit_code == 0
    assert whole == bytes_of(named / "out")


def test_the_command_says_what_it_chose(named):
    done = run_cli(*command())
    assert done.exit_code == 0, done.output
    assert "asking the model: 24" in done.stderr and "learning from half" in done.stderr
    chosen = [line for line in done.stdout.splitlines() if line.endswith("*")]
    protection = read_protection(named / "out")
    assert len(chosen) == 1 and chosen[0].split()[0] == protection.at().name
    for part in ("agreement", "CR@10", "model alone", "The last half brought", "praise"):
        assert part in done.stdout
    assert sorted(protection.command.split()) == sorted(("ranmask", *command()))
    picture = (named / "out" / "protect.svg").read_text()
    assert picture.startswith("<svg xmlns") and f"weight {protection.at().name}" in picture
    card = (named / "out" / "README.md").read_text()
    assert "ProtectedClassifier.from_pretrained" in card and "| model alone |" in card
    # No function that a folder names is run before the user has named it, too.
    reader = json.loads((named / "out/reader/reader.json").read_text())["function"]
    assert f"--reader {reader} --input" in done.stdout
    with pytest.raises(ModelError, match=f"if you trust it, give reader='{reader}'"):
        load_classifier(str(named / "out"))
    loaded = load_classifier(str(named / "out"), reader=reader)
    [result] = loaded.certify(["good great fine good great fine film"])
    assert result.label == "praise" and result.radius >= 1
    again = run_cli(*command())
    assert again.exit_code == 1 and "holds a protected model" in again.stderr


def test_tune_draws_the_choice_again_without_the_model(named):
    assert run_cli(*command("--give-up", "0")).exit_code == 0
    before, asked_before = bytes_of(named / "out"), asked(named)
    shown = run_cli("tune", "--model", "out", "--give-up", "100", "--words", "1")
    assert shown.exit_code == 0 and "--save gives the model this weight" in shown.stdout
    assert bytes_of(named / "out") == before
    saved = run_cli(
        *("tune", "--model", "out", "--give-up", "100", "--words", "1", "--save", "--svg", "p.svg")
    )
    assert saved.exit_code == 0, saved.output
    protection = read_protection(named / "out")
    assert protection.weights == (0.125,) and protection.words == (1,) and protection.give_up == 100
    reader = json.loads((named / "out/reader/reader.json").read_text())["function"]
    loaded = load_classifier(str(named / "out"), reader=reader)
    assert loaded.options.reader_weights == (0.125,)
    assert "0.125 copies" in (named / "out" / "README.md").read_text()
    assert (named / "p.svg").read_text() == (named / "out" / "protect.svg").read_text()
    assert asked(named) == asked_before
    back = run_cli("tune", "--model", "out", "--give-up", "0", "--words", "1,2", "--save")
    assert back.exit_code == 0 and bytes_of(named / "out") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "news-words"), "tune needs --data"),
        (("--model", "out", "--keep", "1"), "--keep means nothing without --data"),
        (("--model", "out", "--data", "sst2", "--save"), "--save means nothing with --data"),
    ],
)
def test_tune_refuses_what_means_nothing(named, arguments, message):
    (named / "out").mkdir()
    (named / "out" / RECORD).write_text("{}")
    done = run_cli("tune", *arguments)
    assert done.exit_code == 2 and message in done.stderr


def test_a_text_without_an_answer_is_left_out_and_counted(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = []
        protected(tmp_path / "out", Model(silent="awful"), report=lines.append)
    silent = sum("awful" in text.split() for text in set(PILE))
    assert read_protection(tmp_path / "out").run["texts"]["unanswered"] == silent > 10
    assert any(line["phase"] == "unanswered" and "too hard" in line["problem"] for line in lines)


def test_a_few_texts_that_never_get_an_answer_do_not_stop_a_run_that_is_resumed(tmp_path):
    record = tmp_path / "out" / RECORD
    protected(tmp_path / "out", Model(silent="awful"))
    before = record.read_bytes()
    record.write_text(json.dumps({**json.loads(before), "complete": False}))
    model = Model(silent="awful")
    protected(tmp_path / "out", model)
    assert record.read_bytes() == before and all("awful" in text for text in model.asked)


def test_a_model_that_never_answers_is_told_at_once(named):
    done = run_cli(*("protect", "--model", "mine:broken"), *command()[3:])
    assert done.exit_code == 1
    assert "answered none of 64 texts" in done.stderr and "nobody is there" in done.stderr


def test_a_model_that_stops_answering_is_not_asked_on_and_on(named):
    """What it said before is kept, and the same command goes on."""
    (named / "stop").touch()
    done = run_cli(*("protect", "--model", "mine:dying"), *command()[3:])
    assert done.exit_code == 1, done.output
    assert "128 answers are kept: run it again to go on" in done.stderr
    assert len(asked(named)) == 128
    (named / "stop").unlink()
    again = run_cli(*("protect", "--model", "mine:dying"), *command()[3:])
    assert again.exit_code == 0, again.output
    assert len(set(asked(named))) == len(asked(named)) == len(set(PILE))


def test_another_number_of_classes(tmp_path):
    with pytest.raises(ModelError, match="none of 64 texts"):
        protected(tmp_path / "out", lambda texts: [[0.5, 0.5]] * len(texts))


@pytest.mark.parametrize(
    ("texts", "given", "error", "message"),
    [
        (PILE[:10], {}, DataError, "10 different texts are too few"),
        ([*PILE[:9], "", " ", *PILE[:9]], {}, DataError, r"9 different texts \(11 of 20 rows"),
        (PILE, {"labels": ["good"] * 240}, DataError, "label 'good'.*praise, blame, report"),
        (PILE, {"labels": [3] * 240}, DataError, "label '3'"),
        (PILE, {"labels": ["praise"]}, DataError, "240 texts have 1 labels"),
        (PILE, {"labels": ["praise"] * 49 + [None] * 191}, DataError, "49 texts have a label"),
        (PILE, {"labels": ["praise"] * 240}, DataError, "all but 0 of .* are 'praise'"),
        (PILE, {"label_names": None}, OptionError, "does not say its classes"),
        (PILE, {"label_names": ["one"]}, ModelError, "one class, .*'one'"),
    ],
)
def test_bad_input_is_refused_before_the_model_is_asked(tmp_path, texts, given, error, message):
    model = Model()
    with pytest.raises(error, match=message):
        protected(tmp_path / "out", model, texts, **given)
    assert not model.asked or given.get("labels") == ["praise"] * 240


def test_one_class_only(tmp_path):
    with pytest.raises(DataError, match=r"are 'praise'.*Add texts of 'blame', 'report'"):
        protected(tmp_path / "out", Model(favourite=0))


def test_labels_by_number(tmp_path):
    numbers = [NAMES.index(label) for label in LABELS]
    protected(tmp_path / "out", labels=numbers)
    assert read_protection(tmp_path / "out").measure == "accuracy"


def test_names_that_are_not_the_model_s(tmp_path):
    reader = FunctionReader(Model(), labels=NAMES)
    with pytest.raises(ModelError, match="they must be the same"):
        protected(tmp_path / "out", reader, label_names=["a", "b", "c"])


def test_folders_of_something_else(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(OutputError, match="holds no protected model"):
        protected(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    protected(tmp_path / "out")
    with pytest.raises(OutputError, match=r"holds a protected model.*ranmask tune"):
        protected(tmp_path / "out")


def test_answers_of_another_model_are_not_taken_for_this_one_s(tmp_path):
    """A pipeline that was trained again has the same name: a few answers are asked again."""
    record, answers = tmp_path / "out" / RECORD, Model()
    protected(tmp_path / "out", FunctionReader(answers, labels=NAMES, repeatable=True))
    values = json.loads(record.read_text())
    record.write_text(json.dumps({**values, "complete": False}))
    other = FunctionReader(Model(favourite=0), labels=NAMES, repeatable=True)
    with pytest.raises(OutputError, match="answers of another model"):
        protected(tmp_path / "out", other)
    again = FunctionReader(Model(), labels=NAMES, repeatable=True)
    protected(tmp_path / "out", again)
    assert sum(text in PILE for text in again.function.asked) == 8
    record.write_text(json.dumps({**values, "complete": False}))
    with pytest.raises(OutputError, match="answers of another model"):
        protected(tmp_path / "out", print)


def test_several_files_after_one_flag(named):
    (named / "more.txt").write_text("good good fine film\n" + PILE[0] + "\n")
    done = run_cli(*command(), "--texts", "more.txt", "pile.txt")
    assert done.exit_code == 0, done.output
    texts = read_protection(named / "out").run["texts"]
    assert [one["name"] for one in texts["files"]] == ["pile.txt", "more.txt", "pile.txt"]
    assert texts["rows"] == 2 * len(PILE) + 2 and texts["texts"] == len(set(PILE)) + 1


def test_sentences_of_long_documents(named):
    (named / "long.csv").write_text(
        "text\n" + "".join(f'"{a.capitalize()}. {b.capitalize()}."\n' for a, b in
                           zip(PILE[::2], PILE[1::2], strict=True))
    )  # fmt: skip
    done = run_cli(*command("--texts", "long.csv", "--split", "sentences"))
    assert done.exit_code == 0, done.output
    assert read_protection(named / "out").run["texts"]["rows"] == 2 * len(PILE)
    refused = run_cli(*command("--split", "sentences", "--labels-column", "label"))
    assert refused.exit_code == 1 and "whole rows, not their sentences" in refused.stderr


def test_a_scikit_learn_pipeline(tmp_path):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = zip(*made_up.texts(120, seed=5), strict=True)
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    done = protect(pipeline, PILE, tmp_path / "out", label_names=NAMES, options=SMALL)
    assert read_protection(tmp_path / "out").at().accuracy() > 0.9
    [result] = done.certify(["good great fine good great fine film"])
    assert result.label == "praise" and result.radius >= 1


class Served(BaseHTTPRequestHandler):
    """A model behind HTTP, one that says how many answers were on the disk at each request."""

    answers, on_disk, paid = Path(), [], []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.answers.read_bytes().count(b"\n") if self.answers.exists() else 0
        self.on_disk.append(known)
        self.paid.extend(body["texts"])
        data = json.dumps({"scores": Model()(body["texts"])}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def test_an_endpoint(named):
    """Its cost is told first, each answer is on the disk as it comes, and the folder holds it."""
    Served.answers, Served.on_disk, Served.paid = named / "out" / ANSWERS, [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        reader = {
            "format": "ranmask-reader",
            "version": 1,
            "kind": "endpoint",
            "url": f"http://127.0.0.1:{server.server_port}/scores",
            "protocol": "json",
            "labels": NAMES,
            "texts_per_request": 4,
            "parallel": 1,
            "price": 1000.0,
        }
        (named / "reader.json").write_text(json.dumps(reader))
        done = run_cli("protect", "--model", "reader.json", *command()[5:])
        assert done.exit_code == 0, done.output
        assert "requests for 2" in done.stderr and "about $" in done.stderr
        assert done.stderr.index("about $") < done.stderr.index("fold 1")
        assert Served.on_disk[5] > 10 and sorted(Served.paid) == sorted(set(PILE))
        with pytest.raises(ModelError, match="where texts would be sent"):
            load_classifier(str(named / "out"))
        loaded = load_classifier(str(named / "out"), reader=str(named / "out/reader/reader.json"))
        [result] = loaded.certify(["good great fine good great film"])
        assert result.label == "praise" and result.reader == "answered"
        before = (named / "out" / ANSWERS).read_bytes()
    finally:
        server.shutdown()
        server.server_close()
    assert (named / "out" / ANSWERS).read_bytes() == before

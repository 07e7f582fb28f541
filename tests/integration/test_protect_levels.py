"""``ranmask protect --levels``: the model also reads halves, quarters, ...; and what is resumed."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import made_up
import numpy as np
import pytest

from commands import run_cli
from ranmask.errors import ModelError, OptionError, OutputError
from ranmask.models import model_config
from ranmask.models.readers import FunctionReader
from ranmask.smoothing.store import load_classifier
from ranmask.training import protecting
from ranmask.training.protect_options import ProtectOptions
from ranmask.training.protect_work import parts_of
from ranmask.training.protecting import protect, save_choice
from ranmask.training.protection import ANSWERS, RECORD, read_protection
from ranmask.words import split

NAMES = list(made_up.CLASSES)
LEVELS = ProtectOptions(epochs=3, buckets=1024, words=(1,), give_up=2.0, levels=3)
FLAGS = ("--epochs", "3", "--buckets", "1024", "--words", "1", "--give-up", "2", "--levels", "3")

MODULE = """
import os, time

from ranmask.models.readers import FunctionReader

UNITS = ("up down on", "down up on", "up on down")


def model(texts):
    with open(os.environ["ASKED"], "a") as log:
        for text in texts:
            log.write(text + "\\n")
    time.sleep(float(os.environ.get("SLOW", "0")))
    counts = [[text.count(unit) + 0.1 for unit in UNITS] for text in texts]
    return [[one / sum(row) for one in row] for row in counts]


reader = FunctionReader(model, labels=["praise", "blame", "report"], repeatable=True)
reader.description = lambda: {"function": "mine:model"}
"""
UNITS = ("up down on", "down up on", "up on down")


def long_texts(rows=240, seed=0):
    """Texts whose order tells the class, and whose words hardly do; some end with another's."""
    rng = random.Random(seed)
    found = []
    for row in range(rows):
        label = row % 3
        words = []
        for _ in range(rng.choice((1, 8, 10, 12))):
            words += [UNITS[label], rng.choice(made_up.OTHERS)]
        for _ in range(rng.choice((0, 0, 0, 4)) if len(words) > 2 else 0):
            words += [UNITS[(label + 1) % 3], rng.choice(made_up.OTHERS)]
        words.insert(rng.randrange(len(words)), rng.choice(made_up.TELLING[label]))
        found.append(" ".join(words + rng.choices(made_up.OTHERS, k=rng.choice((0, 3, 8)))))
    return found


PILE = list(dict.fromkeys(long_texts(260)))[:240]


class Model:
    """Counts what tells; segments with the word ``silent`` get no answer."""

    def __init__(self, silent=None):
        self.asked, self.silent = [], silent

    def __call__(self, texts):
        self.asked += texts
        if self.silent is not None and any(self._fails(text) for text in texts):
            raise OSError("too hard")
        rows = [[text.count(unit) + 0.1 for unit in UNITS] for text in texts]
        return [[one / sum(own) for one in own] for own in rows]

    def _fails(self, text):
        return self.silent in text.split() and text not in PILE


def reader(model=None):
    found = FunctionReader(model or Model(), labels=NAMES, repeatable=True)
    found.description = lambda: {"function": "mine:model"}  # no probes: what is asked is counted
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A protected model of three levels, and what it was asked."""
    folder, model, lines = tmp_path_factory.mktemp("levels") / "out", Model(), []
    protect(reader(model), PILE, folder, options=LEVELS, report=lines.append)
    return folder, model.asked, lines


@pytest.fixture
def named(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "pile.txt").write_text("\n".join(PILE) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASKED", str(tmp_path / "asked.txt"))
    yield tmp_path
    sys.modules.pop("mine", None)


def command(*more):
    return ("protect", "--model", "mine:reader", "--texts", "pile.txt", "--output", "out", *FLAGS,
            *more)  # fmt: skip


def bytes_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def test_the_figures_are_those_of_the_saved_classifier(made):
    """Segments are weighed here; and what is said of them is certified text by text."""
    folder, _, _ = made
    protection = read_protection(folder)
    best = protection.at()
    assert len(best.weights) > 1 and best.calls > 1
    loaded = load_classifier(str(folder), reader=reader())
    assert loaded.options.reader_weights == best.weights and loaded.calls == best.calls
    figures = [PILE[place] for place in parts_of(np.ones(len(PILE), dtype=bool), LEVELS).figures]
    own = np.argmax(Model()(figures), axis=1)
    results = loaded.certify(figures)
    right = [one for one, label in zip(results, own, strict=True) if one.label_id == label]
    assert sum(best.right) == len(right) and sum(best.texts) == len(figures)
    for words in (1, 2):
        assert best.share(words) * len(figures) == sum((one.radius or 0) >= words for one in right)
    for one in protection.figures:
        if len(one.weights) > 1:
            found = loaded.with_options(reader_weights=one.weights).certify(figures)
            good = [got for got, label in zip(found, own, strict=True) if got.label_id == label]
            assert sum(one.right) == len(good)
            assert one.share(1) * len(figures) == sum((got.radius or 0) >= 1 for got in good)
    # Segments prove more than the whole text alone does for as much.
    whole = [one for one in protection.figures if len(one.weights) == 1]
    as_good = [one for one in whole if one.accuracy() >= best.accuracy()]
    assert best.share(1) > max(one.share(1) for one in as_good)
    record = json.loads((folder / RECORD).read_text())
    assert record["calls"] == best.calls and record["weights"] == list(best.weights)
    assert f"{best.calls} calls of the model a text" in (folder / "README.md").read_text()


def test_segments_of_held_out_texts_alone_are_asked_about_once(made):
    _, asked, lines = made
    parts = parts_of(np.ones(len(PILE), dtype=bool), LEVELS)
    assert parts.folds == 4 and len(asked) == len(set(asked))
    held = [PILE[place] for place in (*parts.choosing, *parts.figures)]
    first, second = (line for line in lines if line["phase"] == "asking")
    assert first["texts"] == len(PILE) and first["segments"] == 6 * len(held)
    assert second["what"] == "segments" and second["texts"] <= first["segments"]
    assert set(asked) >= set(PILE)
    for text in set(asked) - set(PILE):
        assert any(text in whole and len(split(whole)) < 4 * len(split(text)) + 4 for whole in held)


def test_where_folds_are_not_needed_fewer_texts_are_read(tmp_path):
    options = ProtectOptions(levels=2)
    judged = np.ones(100_000, dtype=bool)
    parts = parts_of(judged, options)
    assert (len(parts.choosing), len(parts.figures), parts.folds) == (2000, 2000, 1)
    assert len(parts_of(judged, ProtectOptions()).choosing) == 4000
    few = parts_of(judged[:9000], options)
    assert (len(few.choosing), len(few.figures), len(few.learning)) == (2000, 900, 8100)
    assert len(parts_of(judged[:9000], ProtectOptions()).choosing) == 8100


def test_a_killed_run_asks_for_no_segment_twice(named):
    """kill -9 while it asks about segments."""
    environment = {
        **os.environ,
        "SLOW": "0.1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    run = subprocess.Popen(
        [sys.executable, "-m", "ranmask.cli", *command()], env=environment, stderr=subprocess.PIPE
    )
    answers = named / "out" / ANSWERS
    until = time.monotonic() + 60
    while time.monotonic() < until and run.poll() is None:
        if answers.exists() and answers.read_bytes().count(b"\n") > len(PILE) + 128:
            break
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    kept = answers.read_bytes().count(b"\n") - 1
    assert kept > len(PILE) + 64, kept
    (named / "asked.txt").unlink()
    done = run_cli(*command())
    assert done.exit_code == 0, done.output
    assert "then at most 1,440 segments" in done.stderr
    assert f"{kept - len(PILE)} known" in done.stderr and "choosing weights of 3" in done.stderr
    again = (named / "asked.txt").read_text().splitlines()
    assert len(set(again)) == len(again) and sum(text in PILE for text in again) == 8  # a check
    assert len(again) - 8 == answers.read_bytes().count(b"\n") - 1 - kept
    whole = bytes_of(named / "out")
    (named / "out").rename(named / "killed")
    assert run_cli(*command()).exit_code == 0
    assert whole == bytes_of(named / "out")


def test_the_command_says_the_calls_and_tune_draws_again(named):
    done = run_cli(*command())
    assert done.exit_code == 0, done.output
    protection = read_protection(named / "out")
    best = protection.at()
    head, *rows = done.stdout.splitlines()
    assert head.split()[:3] == ["weight", "calls", "agreement"]
    [chosen] = [row.split() for row in rows if row.endswith("*")]
    assert chosen[:2] == [best.name, str(best.calls)]
    assert f"*: weight {best.name} is chosen" in done.stdout
    assert f"{best.calls} calls of the model a text (" in done.stdout
    assert any(row.split()[1:2] == ["1"] for row in rows)  # the curve of whole texts, too
    before = bytes_of(named / "out")
    (named / "asked.txt").unlink()
    other = run_cli("tune", "--model", "out", "--words", "10", "--give-up", "100", "--save")
    assert other.exit_code == 0 and "1 call of the model a text: up to 3 levels" in other.stdout
    assert len(read_protection(named / "out").weights) == 1
    back = run_cli("tune", "--model", "out", "--words", "1", "--give-up", "2", "--save")
    assert back.exit_code == 0 and bytes_of(named / "out") == before
    assert not (named / "asked.txt").exists()
    text = " the ".join(["up down on"] * 8)
    result = run_cli("certify", "--model", "out", "--reader", "mine:reader", text)
    assert result.exit_code == 0 and '"praise"' in result.stdout


def test_segments_without_an_answer_leave_their_texts_out(tmp_path):
    protect(reader(Model(silent="awful")), PILE, tmp_path / "out", options=LEVELS)
    parts = read_protection(tmp_path / "out").run["parts"]
    without = sum("awful" in text for text in PILE)
    assert parts["without_segments"] == without > 10
    assert parts["choosing"] + parts["figures"] == len(PILE) - without
    with pytest.raises(ModelError, match="none of 64 texts"):
        protect(reader(NoSegments()), PILE, tmp_path / "none", options=LEVELS)


class NoSegments(Model):
    """A model that answers for whole texts only."""

    def __call__(self, texts):
        if any(text not in PILE for text in texts):
            raise OSError("too short")
        return super().__call__(texts)


def test_a_model_that_may_answer_otherwise_cannot_read_segments(tmp_path):
    model = Model()
    with pytest.raises(OptionError, match=r"levels=3 reads segments.*repeatable=True"):
        protect(model, PILE, tmp_path / "out", label_names=NAMES, options=LEVELS)
    assert not model.asked and not (tmp_path / "out").exists()


def interrupted(folder, monkeypatch, texts=PILE, options=LEVELS):
    """A run that was stopped when the model had answered about whole texts."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(protecting.Asking, "about_segments", stop)
        protect(reader(), texts, folder, options=options)


def test_other_options_are_not_taken_for_those_of_a_run_that_was_begun(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    interrupted(folder, monkeypatch)
    other = ProtectOptions(epochs=4, buckets=1024, words=(1, 2), give_up=2.0, levels=3)
    with pytest.raises(OutputError, match=r"begun with words=1, epochs=3.*same options.*delete"):
        protect(reader(), PILE, folder, options=other)
    # What the message says: without its record the folder begins anew, with the answers.
    (folder / RECORD).unlink()
    model = Model()
    protect(reader(model), PILE, folder, options=other)
    assert sum(text in PILE for text in model.asked) == 8
    assert read_protection(folder).words == (1, 2)


def test_other_texts_are_told_and_answers_to_the_same_are_kept(tmp_path, monkeypatch):
    folder, lines, model = tmp_path / "out", [], Model()
    interrupted(folder, monkeypatch)
    more = [*PILE[:200], *(f"{text} {place}" for place, text in enumerate(PILE[:40]))]
    protect(reader(model), more, folder, options=LEVELS, report=lines.append)
    [first, *_] = [line for line in lines if line["phase"] == "asking"]
    assert first["other_texts"] and (first["done"], first["texts"]) == (200, 240)
    assert sum(text in PILE for text in model.asked) == 8
    lines.clear()
    protect(reader(), PILE, tmp_path / "same", options=LEVELS, report=lines.append)
    assert not next(line for line in lines if line["phase"] == "asking")["other_texts"]


def test_the_command_says_that_the_texts_are_others(named):
    assert run_cli(*command()).exit_code == 0
    record = named / "out" / RECORD
    record.write_text(json.dumps({**json.loads(record.read_text()), "complete": False}))
    (named / "pile.txt").write_text("\n".join(PILE[:-1]) + "\n")
    done = run_cli(*command())
    assert "begun with other texts: 239 of these 239 have an answer" in done.stderr
    changed = json.loads(record.read_text())
    record.write_text(json.dumps({**changed, "complete": False}))
    refused = run_cli(*command("--sure", "0.5"))
    assert refused.exit_code == 1 and "begun with --sure 0.0" in refused.stderr


@pytest.mark.parametrize("step", ["config", "card", "record"])
def test_a_choice_whose_saving_is_cut_off_tells_nothing_wrong(tmp_path, monkeypatch, made, step):
    """The model has the old weights or the new ones; what is said of it are those."""
    folder = tmp_path / "out"
    shutil.copytree(made[0], folder)
    before = read_protection(folder)
    other = before.redrawn((10,), 100.0)
    assert other.weights != before.weights

    def dies(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        name = {"config": "model_config.write", "card": "write_file", "record": "write_json"}[step]
        patched.setattr(f"ranmask.training.protecting.{name}", dies)
        save_choice(folder, other)
    loaded = load_classifier(str(folder), reader=reader())
    expected = before.weights if step == "config" else other.weights
    assert loaded.options.reader_weights == expected
    assert read_protection(folder).weights == expected
    card = folder / "README.md"
    assert not card.exists() or f"{other.at().name} copies" in card.read_text()
    save_choice(folder, other)
    shutil.copytree(made[0], tmp_path / "whole")
    save_choice(tmp_path / "whole", other)
    assert bytes_of(folder) == bytes_of(tmp_path / "whole")


def test_weights_that_were_not_measured_are_left_alone(tmp_path, made):
    """Somebody gave the model others: what was chosen can still be drawn."""
    folder = tmp_path / "out"
    shutil.copytree(made[0], folder)
    known = model_config.of_folder(folder)
    smoothing = {**known.smoothing, "reader_weights": [77.0]}
    model_config.write(folder, known.kind, smoothing, known.parts)
    assert read_protection(folder).weights == read_protection(made[0]).weights

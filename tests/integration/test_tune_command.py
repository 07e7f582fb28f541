"""``ranmask tune`` as a user runs it: word tables, encoders, a process that is interrupted."""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

from ranmask import SmoothedClassifier
from ranmask.evaluation.settings import Setting, supported_ensembles
from ranmask.evaluation.tuning import sweep

COMMAND = [sys.executable, "-m", "ranmask.cli"]
NAMES = ("river", "mountain", "desert")


def ranmask(*arguments, **options):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, **options
    )


def made_up(rows, seed):
    """Texts in which half of the words tell the class."""
    rng = np.random.default_rng(seed)
    lines = ["text,label"]
    for label in rng.integers(0, 3, rows):
        words = [
            f"{NAMES[label]}{rng.integers(0, 30)}" if rng.random() < 0.5 else f"word{spot}"
            for spot in rng.integers(0, 200, 9)
        ]
        lines.append(f"{' '.join(words)},{NAMES[label]}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for seed, (split, rows) in enumerate({"train": 300, "validation": 80, "test": 40}.items()):
        (folder / f"{split}.csv").write_text(made_up(rows, seed))
    return folder


@pytest.fixture(scope="module")
def table(corpus, tmp_path_factory):
    from ranmask.data import load_corpus
    from ranmask.training.table_options import WordTableOptions
    from ranmask.training.word_table import train_word_table

    learned = load_corpus(str(corpus), "train")
    options = WordTableOptions(epochs=6, batch_size=32, buckets=4096, target_words=3)
    made = train_word_table(learned.texts, learned.labels, learned.label_names, options=options)
    folder = tmp_path_factory.mktemp("models") / "table"
    made.save(folder)
    return folder


class TestWordTable:
    def test_table_file_and_picture(self, corpus, table, tmp_path):
        output, svg = tmp_path / "tune.json", tmp_path / "frontier.svg"
        arguments = ("tune", "--model", table, "--data", corpus, "--output", output)
        done = ranmask(*arguments, "--svg", svg)
        assert done.returncode == 0, done.stderr
        record = json.loads(output.read_text())
        settings = [
            (one["keep"], one["family"], one["ensemble"], one["masks"])
            for one in record["settings"]
        ]
        assert settings == [
            *((1, "all", ensemble, 10**6) for ensemble in ("vote", "score")),
            *((2, "auto", ensemble, 1000) for ensemble in ("vote", "score")),
        ]
        assert record["complete"] and record["data"]["rows"] == 80
        assert all(one["accuracy"] > 0.8 for one in record["measured"])
        assert max(one["certified_accuracy"][1] for one in record["measured"]) > 0.5
        assert svg.read_bytes().startswith(b"<?xml")

        again = ranmask(*arguments, "--svg", tmp_path / "again.svg")
        assert again.stdout == done.stdout and "after 4 of 4 settings" in again.stderr
        assert (tmp_path / "again.svg").read_bytes() == svg.read_bytes()

    def test_the_picked_command_proves_what_was_promised(self, corpus, table, tmp_path):
        output = tmp_path / "tune.json"
        done = ranmask("tune", "--model", table, "--data", corpus, "--output", output)
        record = json.loads(output.read_text())
        [best] = [one for one in record["measured"] if one["setting"] == record["picked"]]
        command = shlex.split(done.stdout.splitlines()[-1])
        assert command[0] == "ranmask"
        again = ranmask(*command[1:], "--data", corpus, "--split", "validation")
        assert again.returncode == 0, again.stderr
        assert f"accuracy {best['accuracy']:.3f}" in again.stderr
        for changed in (1, 2, 3):
            assert f"CR@{changed} {best['certified_accuracy'][changed]:.3f}" in again.stderr

    def test_edits_keep_to_single_words(self, corpus, table, tmp_path):
        folder = tmp_path / "edits"
        SmoothedClassifier.from_pretrained(str(table), threat="edits").save_pretrained(str(folder))
        done = ranmask("tune", "--model", folder, "--data", corpus, "--rows", 20)
        assert done.returncode == 0, done.stderr
        names = [line.split("  ")[0] for line in done.stdout.splitlines()[1:3]]
        assert names == ["keep 1, all, vote", "keep 1, all, score"]
        output = tmp_path / "tune.json"
        arguments = ("--data", corpus, "--rows", 20, "--keep", 1, "--output", output)
        assert ranmask("tune", "--model", folder, *arguments).returncode == 0
        other = ranmask("tune", "--model", table, *arguments)
        assert other.returncode == 1 and "different: model)" in other.stderr
        refused = ranmask("tune", "--model", folder, "--data", corpus, "--keep", "1,2")
        assert refused.returncode == 2 and "needs --keep 1, not 2" in refused.stderr

    def test_other_classes_are_refused(self, table, tmp_path):
        (tmp_path / "data.csv").write_text("text,label\n" + "a b,up\nc d,down\n" * 20)
        done = ranmask(
            "tune", "--model", table, "--data", tmp_path / "data.csv", "--split", "train"
        )
        assert done.returncode == 2 and "the model has" in done.stderr


class TestEncoder:
    def test_ensembles_share_copies_and_say_what_certify_says(self, classifier):
        base = classifier("bert", "drop")
        like = SmoothedClassifier(base, keep=1)
        texts = [f"the {word} of a plain text" for word in ("river", "word", "film", "end")]
        assert supported_ensembles(like, texts[0]) == ("vote", "score", "logit")
        settings = [Setting(2, None, "auto", one, 30) for one in ("vote", "score", "logit")]
        for one in sweep(like, texts, [0, 1, 0, 1], settings):
            alone = SmoothedClassifier(base, keep=2, ensemble=one.setting.ensemble, masks=30)
            counts = Counter(
                (label, result.label_id == label, result.radius, 1)
                for result, label in zip(alone.certify(texts), [0, 1, 0, 1], strict=True)
            )
            assert one.summary.counts == counts
            assert one.tolerance == base.tolerance


class TestInterrupted:
    def test_the_same_command_goes_on_after_the_last_setting(self, corpus, tmp_path):
        (tmp_path / "slow.py").write_text(
            "import time\nfrom ranmask.models.testing import hashing_classifier\n"
            "def judge(texts):\n    time.sleep(0.3)\n    return hashing_classifier(texts)\n"
        )
        output = tmp_path / "tune.json"
        command = [*COMMAND, "tune", "--model", "slow:judge", "--data", str(corpus), "--keep"]
        command += ["1,2,3,4", "--ensemble", "vote", "--masks", "20", "--output", str(output)]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 60
        while not output.exists() or not json.loads(output.read_text())["measured"]:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        shown, errors = process.communicate(timeout=60)
        assert process.returncode == 130 and shown == ""
        assert "the same command resumes" in errors and "Traceback" not in errors
        stopped = json.loads(output.read_text())
        assert 1 <= len(stopped["measured"]) < 4 and not stopped["complete"]

        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        record = json.loads(output.read_text())
        first = stopped["measured"][0]
        assert record["complete"] and record["measured"][0]["right"] == first["right"]
        assert record["measured"][0]["seconds_per_text"] == first["seconds_per_text"]
        quiet = subprocess.run(
            [*command[:-1], str(tmp_path / "quiet.json")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert quiet.returncode == 0
        other = json.loads((tmp_path / "quiet.json").read_text())
        for key in ("setting", "right", "wrong", "score", "thresholds"):
            assert [one[key] for one in record["measured"]] == [
                one[key] for one in other["measured"]
            ]


def test_a_model_for_another_threat_is_measured_against_substitutions(corpus, table, tmp_path):
    made = SmoothedClassifier.from_pretrained(str(table), threat="characters", threats=["span"])
    made.save_pretrained(str(tmp_path / "characters"))
    arguments = ("--data", corpus, "--split", "validation", "--rows", 20, "--keep", "1,2")
    done = ranmask("tune", "--model", tmp_path / "characters", *arguments)
    assert done.returncode == 0, done.stderr
    assert "against substitutions" in done.stderr and "against characters" in done.stderr
    assert "keep 2" in done.stdout

"""Answers kept on the disk: never another result, never a text twice, whatever happens."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ranmask import (
    ClassifierError,
    FunctionClassifier,
    FunctionReader,
    OptionError,
    OutputError,
    ProtectedClassifier,
    SmoothedClassifier,
    WindowDetector,
    cached,
    load_classifier,
    load_default,
    load_detector,
)
from ranmask.words import documents

TEXTS = ["a good film and a good plot", "a bad film , a bad plot , bad acting", "good bad good"]
LABELS = ["bad", "good"]


class Slow:
    """Counts what it is asked; ``sign`` makes another model of it."""

    def __init__(self, sign=1):
        self.asked, self.sign = [], sign

    def __call__(self, texts):
        self.asked += texts
        return [[0.5 - self.sign * n / 7, 0.5 + self.sign * n / 7] for n in map(self.good, texts)]

    @staticmethod
    def good(text):
        shown = " ".join(text) if isinstance(text, tuple) else text
        return (shown.count("good") - shown.count("bad")) / (len(shown.split()) + 1)


def smoothed(model, **options):
    given = {"keep": 1, "hide": "drop", "labels": LABELS, "recheck": 0, "ensemble": "score"}
    return SmoothedClassifier(model, **{**given, **options})


def test_the_results_are_those_without_it_and_no_text_is_asked_twice(tmp_path):
    slow, path = Slow(), tmp_path / "answers.jsonl"
    expected = smoothed(Slow()).certify(TEXTS)
    for _ in range(2):  # from memory, and from the file
        kept = smoothed(cached(slow, path, name="slow"))
        assert kept.certify(TEXTS) == expected == kept.certify(TEXTS)
    words = {word for text in TEXTS for word in text.split()}
    assert sorted(slow.asked) == sorted(words)
    assert not any(word in path.read_text() for word in ("film", "plot", "acting"))


@pytest.mark.parametrize(
    "answer",
    [
        lambda texts: ["good" if "good" in text else "bad" for text in texts],
        lambda texts: [int("good" in text) for text in texts],
        lambda texts: [0.1 + 0.8 * ("good" in text) for text in texts],
        lambda texts: np.array([[1 / 3, 2 / 3]] * len(texts), dtype=np.float32),
    ],
    ids=["names", "numbers", "one score", "float32"],
)
def test_every_kind_of_answer(tmp_path, answer):
    expected = smoothed(answer).certify(TEXTS)
    model = cached(answer, tmp_path / "cache", name="it")
    assert smoothed(model).certify(TEXTS) == expected
    silent = cached(lambda texts: 1 / 0, tmp_path / "cache", name="it")
    assert smoothed(silent).certify(TEXTS) == expected


def test_logits_of_any_size_are_kept(tmp_path):
    def logits(texts):
        return [[-1e6 / 3, 7.25] if "good" in text else [12.0, -3e-7] for text in texts]

    model = FunctionClassifier(logits, outputs="logits", hide="drop")
    expected = smoothed(model, hide=None).certify(TEXTS)
    for function in (logits, None):
        kept = cached(function or (lambda texts: 1 / 0), tmp_path / "cache", name="it")
        base = FunctionClassifier(kept, outputs="logits", hide="drop")
        assert smoothed(base, hide=None).certify(TEXTS) == expected


def test_an_async_function(tmp_path):
    slow = Slow()

    async def answer(texts):
        await asyncio.sleep(0)
        return slow(texts)

    for _ in range(2):
        found = smoothed(cached(answer, tmp_path / "cache", name="it")).certify(TEXTS)
        assert found == smoothed(Slow()).certify(TEXTS)
    assert len(slow.asked) == len(set(slow.asked))


def test_models_of_other_names_labels_or_outputs_do_not_share_answers(tmp_path):
    path = tmp_path / "cache"
    one, other = Slow(), Slow(-1)
    assert smoothed(cached(one, path, name="one")).predict(TEXTS)[0].label == "good"
    assert smoothed(cached(other, path, name="other")).predict(TEXTS)[0].label == "bad"
    again = Slow()
    smoothed(cached(again, path, name="one"), labels=["schlecht", "gut"]).predict(TEXTS)
    assert again.asked


def test_a_function_that_changed_is_refused(tmp_path):
    path = tmp_path / "cache"
    smoothed(cached(Slow(), path, name="it")).certify(TEXTS)
    with pytest.raises(ClassifierError, match=r"another version of it, name the model, or the fil"):
        smoothed(cached(Slow(-1), path, name="it"), recheck=4).certify(TEXTS)
    # As where there is no cache: what contradicts itself is found out.
    turns = iter(range(10**6))
    fickle = cached(lambda texts: [[next(turns), 1] for _ in texts], path, name="fickle")
    with pytest.raises(ClassifierError, match="deterministic"):
        smoothed(fickle, recheck=4, ensemble="vote").certify(TEXTS)


def test_an_estimator_that_was_trained_again_is_another_model(tmp_path):
    texts = ["good film", "fine good plot", "It was good", "bad film", "It was bad", "poor plot"]

    def fitted(labels):
        return make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, labels)

    one, other = fitted([1, 1, 1, 0, 0, 0]), fitted([0, 0, 0, 1, 1, 1])
    for model in (one, other, one):
        kept = smoothed(cached(model, tmp_path / "cache", name="it"), labels=["0", "1"])
        expected = smoothed(model, labels=["0", "1"]).certify(TEXTS)
        assert [found.label for found in kept.certify(TEXTS)] == [one.label for one in expected]


def test_nothing_is_kept_of_a_failure(tmp_path):
    path, broken = tmp_path / "cache", True

    def answer(texts):
        if broken and "acting" in texts:
            raise ValueError("no")
        return Slow()(texts)

    with pytest.raises(ClassifierError, match=r"ValueError: no, for the copy 'acting'"):
        smoothed(cached(answer, path, name="it")).certify(TEXTS)
    broken = False
    assert smoothed(cached(answer, path, name="it")).certify(TEXTS) == smoothed(Slow()).certify(
        TEXTS
    )


def test_numbers_that_are_none_are_refused_and_not_kept(tmp_path):
    path = tmp_path / "cache"
    with pytest.raises(ClassifierError, match="not a finite number"):
        strange = cached(lambda texts: [[np.nan, 1.0]] * len(texts), path, name="it")
        smoothed(strange).certify(TEXTS)
    slow = Slow()
    smoothed(cached(slow, path, name="it")).certify(TEXTS)
    assert slow.asked


def test_a_cache_of_other_classes_is_refused(tmp_path):
    path = tmp_path / "cache"
    three = cached(lambda texts: [[0.1, 0.2, 0.7]] * len(texts), path, name="it")
    SmoothedClassifier(three, keep=1, recheck=0).certify(["a b"])
    two = cached(lambda texts: [[0.1, 0.9]] * len(texts), path, name="it")
    with pytest.raises(OutputError, match="answers for 2 and 3 classes"):
        SmoothedClassifier(two, keep=1, hide="mask", recheck=0).certify(["a b", "c d e"])


def test_a_reader(tmp_path):
    slow, words = Slow(), load_default("reviews-words")
    for _ in range(2):
        kept = cached(slow, tmp_path / "cache", name="it")
        found = ProtectedClassifier.beside(words, kept, (2,)).certify(TEXTS)
        assert found == ProtectedClassifier.beside(words, Slow(), (2,)).certify(TEXTS)
    assert slow.asked == TEXTS


def test_pairs(tmp_path):
    slow = Slow()
    pairs = documents([("a good day", "a bad day"), ("a good", "day a bad day")])
    for _ in range(2):
        rows = FunctionReader(cached(slow, tmp_path / "cache", name="it")).read(pairs, 2)
        assert (rows == FunctionReader(Slow()).read(pairs, 2)).all()
    assert slow.asked == [("a good day", "a bad day"), ("a good", "day a bad day")]


def test_a_window_detector_asks_again_past_the_cache(tmp_path):
    def detector(model, **how):
        kept = cached(model, tmp_path / "cache", name="it")
        return WindowDetector(kept, sizes=[2], labels=LABELS, positive="good", **how)

    alone = WindowDetector(Slow(), sizes=[2], labels=LABELS, positive="good")
    assert detector(Slow()).detect(TEXTS) == alone.detect(TEXTS)
    silent = Slow()
    found = detector(silent, recheck=0).detect(TEXTS)
    assert [one.score for one in found] == [one.score for one in alone.detect(TEXTS)]
    assert not silent.asked
    with pytest.raises(ClassifierError, match="when it was asked again"):
        detector(Slow(-1)).detect(TEXTS)


def test_a_killed_process_loses_little_and_breaks_nothing(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import os, signal\n"
        "def answer(texts):\n"
        "    if any('w40' in text for text in texts) and os.environ.get('KILLED'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    with open('asked', 'a') as file: file.writelines(text + '\\n' for text in texts)\n"
        "    return [[0.25, 0.75] for _ in texts]\n"
    )
    text = " ".join(f"w{n}" for n in range(60))
    command = [sys.executable, "-m", "ranmask", "certify", text, "--model", "slow:answer"]
    command += ["--keep", "1", "--hide", "drop", "--recheck", "0", "--cache", "cache.jsonl"]
    path = os.pathsep.join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": path}

    def run(**more):
        return subprocess.run(
            [command[0], "-m", "ranmask.cli", *command[3:]],
            cwd=tmp_path,
            env={**environment, **more},
            capture_output=True,
            text=True,
        )

    assert run(KILLED="1").returncode == -signal.SIGKILL
    with (tmp_path / "cache.jsonl").open("ab") as file:
        file.write(b'{"key":"half a li')
    asked = (tmp_path / "asked").read_text().split()
    assert asked  # whatever came before is kept
    done = run()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["label"] == "1"
    assert sorted((tmp_path / "asked").read_text().split()) == sorted(text.split())  # once each
    assert run().stdout == done.stdout
    assert len((tmp_path / "asked").read_text().split()) == 60


def test_threads_share_a_model(tmp_path):
    slow = Slow()
    model = smoothed(cached(slow, tmp_path / "cache", name="it"))
    expected = smoothed(Slow()).certify(TEXTS)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(model.certify(TEXTS))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


class TestWhatIsRefused:
    def test_no_name(self, tmp_path):
        for name in ("", " ", None):
            with pytest.raises(OptionError, match="must say which model it is"):
                cached(Slow(), tmp_path / "cache", name=name)

    def test_a_cache_of_a_cache(self, tmp_path):
        kept = cached(Slow(), tmp_path / "cache", name="it")
        with pytest.raises(OptionError, match="has a cache already"):
            cached(kept, tmp_path / "cache", name="it")

    def test_a_place_where_no_file_can_be(self, tmp_path):
        with pytest.raises(OutputError, match="folder"):
            cached(Slow(), tmp_path, name="it")
        with pytest.raises(OutputError, match="there is no folder"):
            cached(Slow(), tmp_path / "no" / "cache", name="it")

    def test_a_file_of_something_else(self, tmp_path):
        (tmp_path / "cache").write_text("precious\n")
        with pytest.raises(OutputError, match="is no cache of ranmask's"):
            cached(Slow(), tmp_path / "cache", name="it")
        assert (tmp_path / "cache").read_text() == "precious\n"

    def test_what_is_no_model(self, tmp_path):
        with pytest.raises(OptionError, match="must be callable"):
            smoothed(cached(3, tmp_path / "cache", name="it"))

    @pytest.mark.parametrize("model", ["news-words", "news"])
    def test_models_that_ranmask_computes(self, tmp_path, model):
        with pytest.raises(OptionError, match="none is named here"):
            load_classifier(model, cache=tmp_path / "cache")
        with pytest.raises(OptionError, match="none is named here"):
            load_classifier(model, reader="news-words", cache=tmp_path / "cache")

    def test_guards(self, tmp_path):
        with pytest.raises(OptionError, match="none is named here"):
            load_detector("spam", cache=tmp_path / "cache")


def test_models_by_name(tmp_path, monkeypatch):
    (tmp_path / "my_slow_model.py").write_text(
        "asked = []\n"
        "def answer(texts):\n"
        "    asked.extend(texts)\n"
        "    return [[0.5, 0.25] if 'bad' in text else [0.25, 0.5] for text in texts]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    options = {"keep": 1, "hide": "drop", "recheck": 0, "cache": tmp_path / "cache"}
    expected = load_classifier("my_slow_model:answer", **{**options, "cache": None}).certify(TEXTS)
    from my_slow_model import asked

    asked.clear()
    for _ in range(2):
        assert load_classifier("my_slow_model:answer", **options).certify(TEXTS) == expected
    assert len(asked) == len(set(asked)) == 8
    beside = {"reader": "my_slow_model:answer", "reader_weights": (2,), "cache": tmp_path / "cache"}
    for _ in range(2):
        load_classifier("reviews-words", **beside).certify(TEXTS)
    assert asked[8:] == TEXTS
    sys.modules.pop("my_slow_model")

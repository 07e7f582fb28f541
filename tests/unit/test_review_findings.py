"""Faults that a review found, and that were mended."""

import json

import pytest

from ranmask import Cascade, FunctionClassifier, SmoothedClassifier, SynonymSets
from ranmask import SynonymSmoothedClassifier as Smoothed
from ranmask.attacked import read_attacked
from ranmask.attacks.outcome import AttackOutcome
from ranmask.classifiers import pretrained
from ranmask.defences.victim import check_free
from ranmask.errors import ModelError, OutputError
from ranmask.runs import ResultFile

NAMES = ("negative", "positive")


def positive_unless(word):
    return lambda texts: [[word in text.split(), word not in text.split()] for text in texts]


@pytest.mark.parametrize("separator", ["\x85", "\u2028"], ids=["next line", "line separator"])
def test_attacked_texts_with_odd_line_ends_are_read(tmp_path, separator):
    path = tmp_path / "attacked.jsonl"
    text = f"a good{separator} film"
    found = AttackOutcome(1, text, 1, "succeeded", adversarial=f"a bad{separator} film")
    about = {"format": "ranmask-run", "version": 1, "command": "attack"}
    with ResultFile(path, about) as results:
        results.write([found.to_dict()])
        results.finish({})
    assert [one.text for one in read_attacked([path]).outcomes] == [text]


def test_a_word_that_the_table_lists_is_covered_or_disclaimed():
    sets = SynonymSets({"good": ["bad.", "fine"], "fine": ["good"]}, name="mine")
    smoothed = Smoothed(positive_unless("bad."), sets, labels=NAMES)
    [before] = smoothed.certify(["good film"])
    [after] = smoothed.certify(["bad. film"])
    disclaimed = any("left out" in one for one in before.assumes)
    assert before.label == after.label or not before.radius or disclaimed


def test_one_capital_letter_may_become_a_word_in_capitals():
    sets = SynonymSets({"a": ["one"], "one": ["a"]})
    assert {"One", "ONE"} <= set(sets.replacements("A"))


def test_a_record_with_options_of_masks_is_a_model_error(tmp_path, monkeypatch):
    SynonymSets({"good": ["fine"]}).save(tmp_path)
    record = {"format": "ranmask", "version": 1, "kind": "synonyms", "smoothing": {"keep": 3}}
    (tmp_path / "ranmask.json").write_text(json.dumps(record))
    base = FunctionClassifier(positive_unless("bad"), labels=NAMES)
    monkeypatch.setattr(pretrained, "load", lambda folder, **_: base)
    with pytest.raises(ModelError):
        Smoothed.from_pretrained(str(tmp_path))


def test_a_damaged_training_record_is_an_output_error(tmp_path):
    (tmp_path / "training.json").write_text("{")
    with pytest.raises(OutputError):
        check_free(tmp_path, {"kind": "encoder"})


def test_a_cascade_in_a_cascade_is_refused():
    plain = FunctionClassifier(positive_unless("film"), labels=NAMES)
    smoothed = SmoothedClassifier(positive_unless("bad"), keep=1, labels=NAMES)
    clean, attacked = (
        FunctionClassifier(
            lambda texts, row=row: [row for _ in texts], labels=("clean", "attacked")
        )
        for row in ([1.0, 0.0], [0.0, 1.0])
    )
    with pytest.raises(ModelError, match="is a cascade itself"):
        Cascade(plain, Cascade(plain, smoothed, clean), attacked)

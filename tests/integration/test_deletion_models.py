"""An encoder smoothed by deleted words: what is left is read as a text; the command, its lines."""

import json

import made_up
import pytest

from commands import run_cli
from ranmask import (
    DeletionSmoothedClassifier,
    ModelError,
    SmoothedClassifier,
    load_classifier,
)
from ranmask.models.base import score_full_texts
from ranmask.results import Certificate
from ranmask.runs.stored import read_results
from ranmask.training.masking import MaskingPlan, Turn
from ranmask.training.options import TrainingOptions
from ranmask.words import Document, documents

TEXTS = ["The film was very good and great", "bad , bad plot", "good", "film " * 80]
GIVEN = {"certificate": "deletion", "mask_rate": 0.6, "masks": 60, "selection_masks": 30}


@pytest.mark.parametrize("hide", ["mask", "drop"])
def test_copies_are_read_as_texts_of_their_own(model_folder, tmp_path, hide):
    load_classifier(str(model_folder), keep=1, hide=hide).save_pretrained(str(tmp_path / "model"))
    model = load_classifier(str(tmp_path / "model"), **GIVEN)
    copies = list(model.copies(documents(TEXTS)))
    for text, scores in zip(copies, model.score(copies), strict=True):
        alone = score_full_texts(model.base, text.documents)
        assert abs(scores - alone).max() <= model.tolerance
    assert [one.label_id for one in model.predict(TEXTS)] == [
        one.label_id for one in model.certify(TEXTS)
    ]


@pytest.mark.parametrize("keep", [(), ("--keep", "2")])
def test_an_encoder_is_trained_on_texts_that_lack_words(base_folder, tmp_path, keep, quiet):
    """What is saved is loaded as it was trained, and certifies."""
    made_up.write_csv(tmp_path / "train.csv", 48)
    made_up.write_csv(tmp_path / "validation.csv", 15, seed=1)
    out = tmp_path / "model"
    asked = ("train", "--data", tmp_path, "--base", base_folder, "--output", out)
    asked += ("--family", "deletion", "--mask-rate", "0.5", "--epochs", "2", "--batch-size", "8")
    done = run_cli(*asked, *keep)
    assert done.exit_code == 0, done.stderr
    assert "deleted epoch 2" in done.stderr + done.stdout
    saved = json.loads((out / "ranmask.json").read_text())
    assert (saved["kind"], saved["smoothing"]["mask_rate"]) == ("deletion", 0.5)
    assert saved["smoothing"].get("keep") == (2 if keep else None)
    card = (out / "README.md").read_text()
    assert "DeletionSmoothedClassifier.from_pretrained" in card
    assert "words replaced, inserted or deleted" in card and "from 200 copies" in card
    model = load_classifier(str(out), masks=50)
    assert isinstance(model, DeletionSmoothedClassifier)
    [result] = model.certify([TEXTS[0]])
    assert (result.threat, result.alpha, result.guarantee) == ("edit-distance", 0.05, True)
    again = tmp_path / "again"
    model.save_pretrained(str(again))
    assert load_classifier(str(again)).certify([TEXTS[0]])[0].to_dict() == result.to_dict()
    with pytest.raises(ModelError, match="smoothed by deleted words, not by masks"):
        SmoothedClassifier.from_pretrained(str(out))


def test_training_refuses_what_means_nothing_with_it(base_folder, tmp_path):
    asked = ("train", "--data", tmp_path, "--base", base_folder, "--output", tmp_path / "out")
    for more, message in (
        ((), "--family deletion needs --mask-rate"),
        (("--mask-rate", "0"), "--family deletion needs --mask-rate"),
        (("--mask-rate", "0.9", "--keep", "1,2"), "takes one"),
        (("--mask-rate", "0.9", "--copies", "4"), "--copies 4 means nothing"),
        (("--mask-rate", "0.9", "--vote-epochs", "1"), "--vote-epochs 1 means nothing"),
        (("--mask-rate", "0.9", "--defence", "safer"), "means nothing with --defence safer"),
    ):
        refused = run_cli(*asked, "--family", "deletion", *more)
        assert refused.exit_code == 2 and message in refused.stderr, refused.stderr


def test_words_are_deleted_anew_in_every_turn():
    """At the rate of the text's length; the same seed, epoch and row delete the same words."""
    options = TrainingOptions(family="deletion", mask_rate=0.5, keep=(4,))
    plan = MaskingPlan(options.retentions, "auto", 1, 0.0, 0, rates=options.rates)
    text = Document(tuple(map(str, range(40))))
    shown = [plan.shortened(text, Turn(3, epoch, 0.0)).words for epoch in range(400)]
    assert 3.6 < sum(map(len, shown)) / 400 < 4.4 and len(set(shown)) > 350
    assert plan.shortened(text, Turn(3, 7, 0.5)).words == shown[7]
    assert all(list(words) == sorted(words, key=int) for words in shown if words != ("[MASK]",))
    assert plan.shortened(Document(("one",)), Turn(1, 0, 0.0)).words in {("one",), ("[MASK]",)}


def test_the_command(model_folder, tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("\n".join(TEXTS))
    out = tmp_path / "out.jsonl"
    asked = ("certify", "-m", model_folder, "--input", rows, "--certificate", "deletion-runner-up")
    asked += ("--mask-rate", "0.8", "--masks", "100", "--alpha", "0.1")
    done = run_cli(*asked, "--output", out)
    assert done.exit_code == 0, done.stderr
    assert "replace, insert or delete that many words" in done.stderr
    assert "with probability 0.9" in done.stderr
    header = json.loads(out.read_text().splitlines()[0])
    assert header["classifier"]["options"]["mask_rate"] == 0.8
    results = [outcome.result for outcome in read_results(out)]
    assert {(type(one), one.threat, one.alpha, one.masks) for one in results} == {
        (Certificate, "edit-distance", 0.1, 100)
    }
    again = run_cli(*asked, "--output", out)
    assert again.exit_code == 0, again.stderr
    for more, message in (
        (("--threat", "edits"), "--threat edits means nothing with --certificate"),
        (("--family", "all"), "--family all means nothing with --certificate"),
    ):
        refused = run_cli(*asked, *more)
        assert refused.exit_code == 2 and message in refused.stderr, refused.stderr

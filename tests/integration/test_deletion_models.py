"""An encoder smoothed by deleted words: what is left is read as a text; the command, its lines."""

import json

import pytest

from commands import run_cli
from ranmask import load_classifier
from ranmask.models.base import score_full_texts
from ranmask.results import Certificate
from ranmask.runs.stored import read_results
from ranmask.words import documents

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


def test_the_command(model_folder, tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("\n".join(TEXTS))
    out = tmp_path / "out.jsonl"
    asked = ("certify", "-m", model_folder, "--input", rows, "--certificate", "deletion-runner-up")
    asked += ("--mask-rate", "0.8", "--masks", "100", "--alpha", "0.1")
    done = run_cli(*asked, "--output", out)
    assert done.exit_code == 0, done.stderr
    assert "replace, insert or delete any that many words" in done.stderr
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

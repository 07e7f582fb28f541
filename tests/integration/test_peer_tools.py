"""tools/peers without the peers' code: what travels, what is counted, and the rows it makes."""

import argparse
import json
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import made_up
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import peers_records as records  # noqa: E402
from tools.peers import cert_ed, deletion, lipslev  # noqa: E402

from ranmask.smoothing.deletion import DeletionSmoothedClassifier  # noqa: E402

RECORDED = json.loads((ROOT / "tests" / "data" / "cert_ed.json").read_text())["votes"]
VOCABULARY = 150
SPLITS = {"train": 48, "validation": 15, "test": 6}


class RecordedCertEd:
    """CERT-ED's own answers, as its code gave them for these votes."""

    def __init__(self, rate):
        self.answers = {tuple(counts): said for p_del, counts, *said in RECORDED if p_del == rate}

    def certified_radius(self, text, votes, alpha, stat_test):
        top, *radii = self.answers[tuple(votes)]
        return top, dict(zip(cert_ed.TESTS, radii, strict=True))[stat_test]

    def predict(self, text, votes):
        return int(votes.argmax()), None


@pytest.fixture(scope="module")
def carry(base_folder, tmp_path_factory):
    """What travels: made-up texts as AG News, and a tiny encoder."""
    folder = tmp_path_factory.mktemp("carry")
    parts = [made_up.corpus(rows, split, len(split)) for split, rows in SPLITS.items()]
    deletion.pack_texts(folder, "agnews", parts)
    deletion.pack_encoder(folder, str(base_folder), parts[0].texts, VOCABULARY)
    return folder


@pytest.fixture(scope="module")
def outcomes(carry, tmp_path_factory):
    """What a run leaves: both settings of AG News, and copies that somebody else drew."""
    _, _, test = deletion.corpora(carry, "agnews", None)
    stays = {
        f"stays{number}": np.packbits(np.ones((1500, len(text.split())), dtype=bool), axis=1)
        for number, text in enumerate(test.texts[:3])
    }
    np.savez_compressed(carry / "copies.npz", **stays)
    out = tmp_path_factory.mktemp("outcome")
    asked = {"seconds": 0, "rows": None, "texts": 4, "masks": 40, "settings": "agnews"}
    deletion.perform(argparse.Namespace(carry=carry, output=out, **asked))
    return out


def test_texts_arrive_as_they_were_packed(carry):
    train, held_out, test = deletion.corpora(carry, "agnews", None)
    for found, (split, rows) in zip((train, held_out, test), SPLITS.items(), strict=True):
        sent = made_up.corpus(rows, split, len(split))
        assert (found.texts, found.labels, found.sha256) == (sent.texts, sent.labels, sent.sha256)
    assert len(deletion.corpora(carry, "agnews", 5)[1].texts) == 5 < len(held_out.texts)


def test_an_encoder_arrives_with_weights_half_a_step_away_at_most(carry, base_folder, tmp_path):
    deletion.restored(carry / "encoder", tmp_path / "base")
    arrived = load_file(tmp_path / "base" / "model.safetensors")
    sent = load_file(base_folder / "model.safetensors")
    assert json.loads((tmp_path / "base" / "config.json").read_text())["vocab_size"] == VOCABULARY
    compared = 0
    for name, weight in arrived.items():
        whole = sent.get(name, sent.get(f"bert.{name}"))
        if whole is None or whole.shape != weight.shape:
            continue  # the tokens are fewer
        compared += 1
        step = whole.abs().amax(-1, keepdim=True) / 127 if whole.ndim > 1 else torch.zeros(1)
        assert ((weight - whole).abs() <= 0.501 * step).all()
    assert compared > 20


def test_a_run_certifies_texts_and_sends_its_first_model_back(outcomes, tmp_path):
    settings = json.loads((outcomes / "outcomes.json").read_text())["settings"]
    assert [(one["rate"], one["keep"]) for one in settings.values()] == [(0.9, None), (0.9, 3)]
    for outcome in settings.values():
        assert [sum(text["votes"]) for text in outcome["texts"]] == [40] * 4
    pieces = sorted(outcomes.glob("model.tar.*"))
    with tarfile.open(fileobj=BytesIO(b"".join(map(Path.read_bytes, pieces)))) as tar:
        tar.extractall(tmp_path, filter="data")
    model = DeletionSmoothedClassifier.from_pretrained(str(tmp_path))
    assert model.options.mask_rate == 0.9


def test_copies_that_others_drew_are_counted_apart(outcomes):
    found = json.loads((outcomes / "outcomes.json").read_text())["settings"]["agnews-deletion"]
    assert len(found["their_copies"]) == 3  # nothing was drawn of further texts
    for votes in found["their_copies"]:  # all words stayed, so that every copy says the same
        assert sorted(votes["selection"]) == [0, 0, deletion.SELECTION]
        assert sorted(votes["estimation"]) == [0, 0, 500]


def test_a_model_is_packed_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(deletion, "PIECE", 1000)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(bytes(range(256)) * 20)
    deletion.pack(tmp_path / "model", tmp_path)
    pieces = sorted(tmp_path.glob("model.tar.*"))
    assert len(pieces) > 5 and max(piece.stat().st_size for piece in pieces) == 1000
    with tarfile.open(fileobj=BytesIO(b"".join(map(Path.read_bytes, pieces)))) as tar:
        assert tar.extractfile("weights").read() == bytes(range(256)) * 20


@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_radii_are_compared_with_those_that_cert_ed_s_code_gave(rate):
    texts = [{"votes": votes, "words": 20} for p_del, votes, *_ in RECORDED if p_del == rate]
    setting = {"keep": None, "rate": rate, "texts": texts}
    adapted = {"keep": 3, "rate": rate, "texts": texts}
    found = cert_ed.same_votes(
        RecordedCertEd(rate), {"settings": {"one": setting, "adapted": adapted}}
    )
    majority, runner_up = found["one, deletion"], found["one, deletion-runner-up"]
    assert list(found) == ["one, deletion", "one, deletion-runner-up"]
    assert majority == {"texts": 36, "same": 36, "ours_smaller": 0, "ours_larger": 0}
    assert runner_up["ours_larger"] == 0 and runner_up["same"] >= 30


def test_votes_that_differ_are_counted_as_such():
    theirs = RecordedCertEd(0.9)
    votes = max((votes for p_del, votes, *_ in RECORDED if p_del == 0.9), key=max)
    theirs.answers[tuple(votes)] = [int(np.argmax(votes)), 99, -1]
    setting = {"keep": None, "rate": 0.9, "texts": [{"votes": votes, "words": 20}]}
    found = cert_ed.same_votes(theirs, {"settings": {"one": setting}})
    assert found["one, deletion"]["ours_smaller"] == 1
    assert found["one, deletion-runner-up"]["ours_larger"] == 1


def test_a_right_label_has_its_radius_and_a_wrong_one_none():
    rates = cert_ed.DeletionRates(0.9)
    radius = cert_ed.right_radius("deletion", [3990, 10], 0, 0, rates)
    assert radius > 0
    assert cert_ed.right_radius("deletion", [3990, 10], 0, 1, rates) == -1
    assert cert_ed.right_radius("deletion", [2000, 2000], 0, 0, rates) == -1
    assert records.certified_by_radius([2, 1, -1, 0], 3) == {"1": 0.5, "2": 0.25, "3": 0.0}


@pytest.mark.parametrize(
    ("keep", "name", "setting"),
    [
        (None, "agnews-edits-cert-ed", "rate .9"),
        (3, "agnews-edits-adaptdel", "rate max(.9, 1 - 3/n)"),
    ],
)
def test_a_setting_of_few_test_texts_has_the_figures_of_validation(
    outcomes, tmp_path, keep, name, setting
):
    found = json.loads((outcomes / "outcomes.json").read_text())
    [outcome] = [one for one in found["settings"].values() if one["keep"] == keep]
    del found["settings"]
    outcome.pop("their_copies", None)
    cert_ed.write_ours(outcome, found, {}, tmp_path)
    record = records.read(tmp_path / f"{name}.json")
    assert (record.setting, record.texts.count) == (setting, outcome["validation"]["texts"])
    assert record.accuracy == pytest.approx(outcome["validation"]["accuracy"], abs=1e-4)
    right = {"label": 1, "expected": 1, "radius": 2, "words": 9, "votes": [0, 40, 0]}
    wrong = {**right, "expected": 0}
    many = {**outcome, "texts": [right, wrong, {**right, "radius": None}] * 20}
    cert_ed.write_ours(many, found, {}, tmp_path)
    counted = records.read(tmp_path / f"{name}.json")
    assert counted.texts.count == 60
    assert counted.accuracy == pytest.approx(2 / 3, abs=1e-4)
    assert counted.certified == {
        **dict.fromkeys("12", pytest.approx(1 / 3, abs=1e-4)),
        **{str(size): 0 for size in range(3, 11)},
    }


def test_batches_hold_every_row_once_and_texts_of_like_length():
    rows = [(torch.full((1 + number % 400,), number), number % 4) for number in range(1000)]
    batches = lipslev.Batches(rows)
    read = list(batches)
    assert len(read) == len(batches) == 8
    assert sorted(int(text[0]) for texts, _, _ in read for text in texts) == list(range(1000))
    for texts, labels, _ in read:
        assert [int(text[0]) % 4 for text in texts] == labels.tolist()
        shortest = min(1 + int(text[0]) % 400 for text in texts)
        assert texts.shape[1] - shortest <= 150

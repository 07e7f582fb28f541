"""Outcome files of peers: what a row needs is checked when it is written and read."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import peers_records as records  # noqa: E402

from ranmask.errors import DataError  # noqa: E402

MEASURED = records.PeerRecord(
    method="CERT-ED",
    threat="edits",
    corpus="agnews",
    guarantee="1 - alpha",
    alpha=0.05,
    source="measured here, their code",
    ours=False,
    accuracy=0.9,
    certified={"1": 0.7, "2": 0.5, "10": 0.0},
    model="all-MiniLM-L6-v2, p_del .9",
    texts=records.Texts(200, "first 200 of agnews test"),
    seconds=12.5,
    seed=0,
    versions={"python": "3.11"},
    hardware="2 cores",
    commands=("python run.py",),
    code=records.Code("Dovermore/nlp-smoothing-software", "abc"),
)


def test_a_record_is_read_back_as_it_was_written(tmp_path):
    path = records.write("agnews-edits-cert-ed", MEASURED, tmp_path)
    assert records.read(path) == MEASURED
    assert records.read_all(tmp_path) == {"agnews-edits-cert-ed": MEASURED}
    assert MEASURED.sizes() == ["1", "2", "10"]
    written = json.loads(path.read_text())
    assert (written["format"], written["version"]) == ("ranmask-peer", 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"certified": {}}, "no size"),
        ({"certified": {"0": 0.9}}, "'0'"),
        ({"certified": {"1": 1.2}}, "not a share"),
        ({"certified": {"1": 0.2, "2": 0.3}}, "grows"),
        ({"certified": {"all": 0.3, "1": 0.2}}, "grows"),
        ({"guarantee": "proof", "alpha": None, "accuracy": 0.6}, "than right"),
        ({"alpha": None}, "alpha"),
        ({"guarantee": "none"}, "alpha"),
        ({"commands": ()}, "commands"),
        ({"texts": None}, "texts"),
        ({"code": None}, "commit"),
        ({"code": records.Code("somewhere")}, "commit"),
        ({"source": "published"}, "where"),
        ({"threat": "words"}, "threat"),
        ({"corpus": "mnist"}, "corpus"),
    ],
)
def test_what_cannot_be_a_row_is_refused(tmp_path, changed, said):
    wrong = replace(MEASURED, **changed)
    with pytest.raises(DataError, match=said):
        records.read(records.write("wrong", wrong, tmp_path))


def test_unknown_fields_and_versions_are_refused(tmp_path):
    path = records.write("row", MEASURED, tmp_path)
    written = json.loads(path.read_text())
    path.write_text(json.dumps(written | {"colour": "red"}))
    with pytest.raises(DataError, match="colour"):
        records.read(path)
    path.write_text(json.dumps(written | {"version": 2}))
    with pytest.raises(DataError, match="version"):
        records.read(path)


def test_shares_behind_the_last_radius_are_zero():
    assert records.certified_by_size([0.9, 0.5, 0.25], 3) == {"1": 0.5, "2": 0.25, "3": 0.0}


def test_committed_files_hold_no_path_of_a_machine():
    for path in sorted(records.FOLDER.glob("*.json")):
        text = path.read_text()
        assert "/root" not in text and "/tmp" not in text and "/work" not in text
        records.read(path)

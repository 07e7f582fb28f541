"""docs/peers.md says what the outcome files say; what a row needs is checked."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import peers_gather, peers_page, peers_targets  # noqa: E402
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
        ({"certified": {}, "source": "published", "where": "a paper"}, "no size"),
        ({"accuracy": None}, "accuracy"),
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


def test_the_page_and_its_pictures_are_what_the_command_writes():
    text, pictures = peers_page.page(list(records.read_all().values()))
    assert peers_page.PAGE.read_text() == text, "run python -m benchmarks.peers_page"
    kept = {path.name: path.read_text() for path in peers_page.FIGURES.glob("*.svg")}
    assert kept == pictures


def test_files_that_are_made_of_other_results_are_what_the_command_writes():
    for name, record in peers_gather.gathered():
        assert records.read(records.FOLDER / f"{name}.json") == record, (
            "run python -m benchmarks.peers gather"
        )


OURS = replace(
    MEASURED,
    method="ranmask",
    ours=True,
    guarantee="proof",
    alpha=None,
    source="measured here, our code",
    setting="a table",
    code=None,
)


def said(*rows):
    text, _ = peers_page.page(rows)
    behind, rest = text.split("## Where we are ahead")
    ahead = rest.split("A peer is passed")[0]
    proved, unproved = behind.split("## Where we are behind")[1].split("without a guarantee:")
    return proved, unproved, ahead


def test_whoever_certifies_less_at_one_size_is_behind():
    better = replace(OURS, certified={"1": 0.8, "2": 0.4, "10": 0.1})
    proved, unproved, ahead = said(MEASURED, better)
    assert "Behind at 2." in proved
    assert "CERT-ED" not in unproved + ahead


def test_equal_accuracy_and_no_less_at_any_size_is_ahead():
    assert "CERT-ED" in said(MEASURED, replace(OURS, certified=MEASURED.certified))[2]
    assert "CERT-ED" in said(MEASURED, replace(OURS, accuracy=0.89))[0]


def test_sizes_that_were_not_measured_are_not_claimed():
    assert "Behind at 2" in said(MEASURED, replace(OURS, certified={"1": 0.9}))[0]


def test_claims_without_a_guarantee_are_marked():
    printed = replace(MEASURED, guarantee="none", alpha=None, method="RanMASK")
    proved, unproved, ahead = said(printed, replace(OURS, certified={"1": 0.6}))
    assert "RanMASK" in unproved
    assert "RanMASK" not in proved + ahead
    text, pictures = peers_page.page([printed, OURS])
    assert "| RanMASK | **none** |" in text
    assert "RanMASK (no guarantee)" in pictures["agnews-edits-curves.svg"]


def test_a_changed_figure_changes_the_page():
    before, drawn = peers_page.page([MEASURED, OURS])
    after, redrawn = peers_page.page([replace(MEASURED, accuracy=0.912), OURS])
    assert ".912" in after and ".912" not in before
    assert drawn != redrawn


def test_what_has_no_figure_at_a_size_is_cited():
    cited = records.PeerRecord(
        method="MaskPure",
        threat="substitutions",
        corpus="agnews",
        guarantee="none",
        source="published",
        ours=False,
        accuracy=0.876,
        certified={},
        model="BERT",
        texts=None,
        where="a paper",
        note="median radius 1",
    )
    text, pictures = peers_page.page([cited])
    assert "- MaskPure (any d words, AG News; **no guarantee**; BERT, accuracy .876)" in text
    assert not pictures


def test_targets_are_reached_by_figures_alone():
    lipslev = replace(
        MEASURED,
        method="LipsLev",
        threat="characters",
        guarantee="proof",
        alpha=None,
        accuracy=0.75,
        certified={"1": 0.4, "2": 0.1},
    )
    row = replace(OURS, threat="characters", certified={"1": 0.85, "2": 0.7})
    assert "| AG News: yes (a table, accuracy 0.900) |" in peers_targets.targets([lipslev, row])
    for less in ({"accuracy": 0.899}, {"certified": {"1": 0.79, "2": 0.7}}):
        found = peers_targets.targets([lipslev, replace(row, **less)])
        assert "AG News: no |" in found and "a table" not in found
    edits = replace(OURS, certified=MEASURED.certified, seconds=0.13)
    assert "| AG News: yes; IMDB: no peer" in peers_targets.targets([MEASURED, edits])
    assert "| **no**: 96 times |" in peers_targets.targets([MEASURED, edits])
    assert "| yes: 125 times |" in peers_targets.targets([MEASURED, replace(edits, seconds=0.1)])
    slower = replace(edits, accuracy=0.89)
    assert "| AG News: no (CERT-ED); IMDB" in peers_targets.targets([MEASURED, slower])
    reviews = replace(OURS, threat="synonyms", corpus="imdb", certified={"all": 0.85})
    assert "| yes: 0.850 |" in peers_targets.targets([reviews])
    assert "**no**: 0.848" in peers_targets.targets([replace(reviews, certified={"all": 0.848})])


def test_the_price_of_several_threats_is_what_was_measured():
    page = (ROOT / "docs" / "training.md").read_text()
    for corpus in ("agnews", "imdb"):
        rows = {
            threat: records.read(records.FOLDER / f"{corpus}-{threat}-ours-several.json")
            for threat in ("substitutions", "characters", "synonyms")
        }
        cells = [f"{rows['synonyms'].accuracy:.3f}"[1:]]
        for threat in ("substitutions", "characters"):
            shares = [f"{rows[threat].certified[size]:.3f}"[1:] for size in "123"]
            cells.append(" ".join(shares))
        cells.append(f"{rows['synonyms'].certified['all']:.3f}"[1:])
        assert f"| | all three | {' | '.join(cells)} |" in page
    table = records.read(records.FOLDER / "agnews-substitutions-ours-characters.json")
    shares = " ".join(f"{table.certified[size]:.3f}"[1:] for size in "123")
    assert f"| | characters | .901 | {shares} |" in page

"""The paper's figures as data: what needs no paper to be checked (see tests/realdata too)."""

import dataclasses
from fractions import Fraction

import pytest

from ranmask.paper.published import Cell, inconsistent_cells, published, success_rate

EMPIRICAL = published().empirical
EVERY_CELL = [
    (table.name, method, attack)
    for table in EMPIRICAL.values()
    for method in table.methods
    for attack in table.attacks
]
CONTRADICTIONS = {
    ("tb-agnews-emperical", "RanMASK-90% (logit)", "deepwordbug"): 49.4,
    ("tb-agnews-emperical", "RanMASK-90% (vote)", "deepwordbug"): 36.3,
    ("tb-sst2-emperical", "RanMASK-30% (vote) + LM", "deepwordbug"): 54.2,
    ("tb-snli-emperical", "PGD-10", "textfooler"): 94.9,
    ("tb-snli-emperical", "RanMASK-15% (vote)", "textfooler"): 75.3,
}


def test_all_tables_are_there():
    assert list(published().certified) == ["tb-agnews-certified", "tb-sst2-certified"]
    assert {name: len(table.methods) for name, table in EMPIRICAL.items()} == {
        "tb-agnews-emperical": 7,
        "tb-sst2-emperical": 8,
        "tb-imdb-emperical": 7,
        "tb-snli-emperical": 7,
        "tb-safer": 8,
    }
    assert all(
        table.attacks == ("textfooler", "bert-attack", "deepwordbug")
        for table in EMPIRICAL.values()
    )
    assert [len(table.rows) for table in published().certified.values()] == [10, 8]
    assert [table.chosen for table in published().certified.values()] == [0.9, 0.3]


def test_rows_and_cells_are_found_by_what_they_are():
    agnews = published().certified["tb-agnews-certified"]
    assert [agnews.row(0.9).mcb, agnews.row(0.9).mcr, agnews.row(0.9).accuracy] == [5, 11.4, 91.1]
    assert agnews.row(0.33) is None
    last = published().certified["tb-sst2-certified"].row(0.9)
    assert (last.accuracy, last.mcb, last.mcr) == (49.6, None, None)
    safer = EMPIRICAL["tb-safer"]
    assert safer.base == "BERT" and safer.corpus == "agnews"
    assert safer.cell("RanMASK-5% (vote) + LM", "deepwordbug") == Cell(93.8, 80.3, 14.4)
    assert safer.cell("FreeLB", "textfooler") is None
    assert safer.cell("SAFER (vote)", "pwws") is None


def test_every_rate_is_the_number_that_a_reader_would_write():
    rates = [row.rate for table in published().certified.values() for row in table.rows]
    assert rates[:10] == [0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    assert rates[10:] == [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert published().rates["named"] == [5, 30, 70, 90]


def test_percentages_are_percentages():
    for table in EMPIRICAL.values():
        for cell in table.cells.values():
            assert 0 <= cell.boa <= cell.cln <= 100 and 0 <= cell.succ <= 100
    for table in published().certified.values():
        assert all(0 < row.accuracy <= 100 and (row.mcr or 0) < 100 for row in table.rows)


@pytest.mark.parametrize("place", [place for place in EVERY_CELL if place not in CONTRADICTIONS])
def test_success_rate_follows_from_the_accuracies(place):
    cell = EMPIRICAL[place[0]].cell(*place[1:])
    # Three figures of one decimal each: half a unit of every one of them, and no more.
    assert abs(100 * (cell.cln - cell.boa) / cell.cln - cell.succ) < 0.17


def test_cells_that_contradict_themselves():
    found = {(one.table, one.method, one.attack): one.succ for one in inconsistent_cells()}
    assert found == CONTRADICTIONS
    for one in inconsistent_cells():
        assert one.cell == EMPIRICAL[one.table].cell(one.method, one.attack)


def test_success_rate_is_exact():
    assert success_rate(Cell(cln=90.0, boa=30.0, succ=0.0)) == Fraction(200, 3)


def test_imdb_was_measured_on_two_hundred_texts():
    """Every accuracy there is a multiple of half a percent; no other table's are."""
    coarse = {
        name: all(
            (10 * figure) % 5 == 0
            for cell in table.cells.values()
            for figure in (cell.cln, cell.boa)
        )
        for name, table in EMPIRICAL.items()
    }
    assert [name for name, is_coarse in coarse.items() if is_coarse] == ["tb-imdb-emperical"]
    assert {name: table.texts for name, table in EMPIRICAL.items() if table.texts} == {
        "tb-imdb-emperical": 200
    }


def test_claims_speak_of_tables_and_rows_that_exist():
    for claim in published().claims.values():
        for name in claim.tables:
            if claim.against is None:
                assert name in published().certified
            else:
                assert claim.against in EMPIRICAL[name].methods


def test_settings_and_figures():
    settings = published().settings
    assert [settings[key] for key in ("texts", "selection_masks", "masks")] == [1000, 1000, 5000]
    assert (settings["attacked_masks"], settings["alpha"]) == (100, 0.05)
    assert settings["average_words"] == {"agnews": 43, "imdb": 255}
    assert settings["training"]["learning_rate"] == 5e-5
    assert published().beta["below"] == {"agnews": 2.5e-5, "sst2": 1.75e-5}
    assert list(published().entropy["mean"]) == [
        "SAFER",
        *(f"RanMASK-{rate}%" for rate in (5, 10, 50, 90)),
    ]


def test_records_are_frozen_and_read_once():
    assert published() is published()
    with pytest.raises(dataclasses.FrozenInstanceError):
        published().settings = {}
    with pytest.raises(TypeError):
        published().settings["texts"] = 1

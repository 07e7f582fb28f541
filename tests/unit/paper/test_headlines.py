import itertools
import re
from fractions import Fraction

import pytest

from ranmask.paper.headlines import recomputed
from ranmask.paper.published import published, success_rate

HEADLINES = {headline.name: headline for headline in recomputed()}
AVERAGES = [name for name, claim in published().claims.items() if claim.against]
BOLD = {
    "tb-agnews-emperical": "RanMASK-90% (vote)",
    "tb-sst2-emperical": "RanMASK-30% (vote) + LM",
    "tb-imdb-emperical": "RanMASK-30% (vote)",
    "tb-snli-emperical": "RanMASK-15% (vote)",
}


def average(name, read, rows=BOLD):
    """The mean change of some rows, by default those in bold, written out anew."""
    claim = published().claims[name]
    total, count = Fraction(0), 0
    for table in claim.tables:
        for attack in ("textfooler", "bert-attack", "deepwordbug"):
            cell = published().empirical[table].cell(rows[table], attack)
            rival = published().empirical[table].cell(claim.against, attack)
            total += read(cell) - read(rival)
            count += 1
    return float(total / count)


def every_choice(name):
    """The average for every way to choose one row of RanMASK from each table."""
    claim = published().claims[name]
    smoothed = [
        [one for one in published().empirical[table].methods if one.startswith("RanMASK")]
        for table in claim.tables
    ]
    choices = [dict(zip(claim.tables, rows, strict=True)) for rows in itertools.product(*smoothed)]
    return [
        (
            tuple(f"{table}: {method}" for table, method in rows.items()),
            average(name, lambda cell: Fraction(str(getattr(cell, claim.metric))), rows),
        )
        for rows in choices
    ]


def test_every_claim_is_recomputed():
    assert list(HEADLINES) == list(published().claims) and len(HEADLINES) == 15
    for headline in HEADLINES.values():
        assert headline.printed == published().claims[headline.name].value
        assert headline.agrees == (abs(headline.printed - headline.recomputed) <= 0.01)
        assert headline.rows


def test_all_agree_but_one():
    assert [name for name, headline in HEADLINES.items() if not headline.agrees] == [
        "snli-boa-baseline"
    ]


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_are_those_of_the_rows_in_bold(name):
    metric = published().claims[name].metric
    assert HEADLINES[name].recomputed == pytest.approx(
        average(name, lambda cell: Fraction(str(getattr(cell, metric))))
    )
    assert HEADLINES[name].rows == tuple(
        f"{table}: {BOLD[table]}" for table in published().claims[name].tables
    )


@pytest.mark.parametrize("name", AVERAGES)
def test_exactly_one_choice_of_rows_gives_the_printed_average(name):
    choices = every_choice(name)
    right = [rows for rows, value in choices if abs(value - published().claims[name].value) <= 0.01]
    assert right == ([] if name == "snli-boa-baseline" else [HEADLINES[name].rows])
    assert len(choices) == {1: 2, 3: 12}[len(published().claims[name].tables)]
    assert len(dict(choices)) == len(choices)


@pytest.mark.parametrize("name", [name for name in AVERAGES if "succ" in name])
def test_note_on_success_rates_that_follow(name):
    [said] = re.findall(r"average (−\d+\.\d\d)\.", HEADLINES[name].note)
    assert said.replace("−", "-") == f"{average(name, success_rate):.2f}"
    assert said != f"{HEADLINES[name].printed:.2f}"


def test_note_on_snli():
    note = HEADLINES["snli-boa-baseline"].note
    logit, vote = (value for _, value in every_choice("snli-boa-baseline"))
    cell = published().empirical["tb-snli-emperical"].cell(BOLD["tb-snli-emperical"], "textfooler")
    assert f"{vote:.2f} for the vote and {logit:.2f} for the logit" in note
    assert f"{cell.boa} is printed" in note and f"success rate {cell.succ} goes" in note
    assert round(100 * (cell.cln - 22.0) / cell.cln, 1) == cell.succ
    assert f"would be {vote + (22.0 - cell.boa) / 3:.2f}" in note


def test_note_on_imdb():
    note = HEADLINES["imdb-cln-baseline"].note
    logit, _ = (value for _, value in every_choice("imdb-cln-baseline"))
    assert f"gains {logit:.2f}" in note
    table = published().empirical["tb-imdb-emperical"]
    better = [
        table.cell("RanMASK-30% (logit)", attack).boa > table.cell("RanMASK-30% (vote)", attack).boa
        for attack in table.attacks
    ]
    assert better == [True, True, False]


def test_certified_words():
    assert HEADLINES["agnews-words"].rows == (
        "tb-agnews-certified: 90%",
        "tb-agnews-certified: 95%",
    )
    assert HEADLINES["sst2-words"].rows == ("tb-sst2-certified: 70%", "tb-sst2-certified: 80%")
    assert published().certified["tb-sst2-certified"].row(0.3).mcb == 1
    share = HEADLINES["agnews-share"]
    assert share.recomputed == pytest.approx(100 * 5 / 43) and "11.628" in share.note

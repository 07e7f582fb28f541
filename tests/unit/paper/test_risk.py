import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.paper.risk import EXPLANATION, risk_table, unrounded_risk

AGNEWS, SST2 = risk_table()


def test_settings_are_the_papers():
    assert (AGNEWS.corpus, AGNEWS.words, AGNEWS.rate, AGNEWS.kept) == ("agnews", 43, 0.9, 4)
    assert (SST2.corpus, SST2.words, SST2.rate, SST2.kept) == ("sst2", 19, 0.3, 13)
    for table in (AGNEWS, SST2):
        assert [row.perturbed for row in table.rows] == list(range(table.words + 1))
        assert table.statement.corpus == table.corpus


def test_counted_copy_by_copy():
    """Every choice of the 4 words that a copy of 43 words shows."""
    shown = list(itertools.combinations(range(43), 4))
    for row in AGNEWS.rows[:6]:
        perturbed = set(range(row.perturbed))
        every = sum(perturbed.issubset(copy) for copy in shown) / len(shown)
        some = sum(not perturbed.isdisjoint(copy) for copy in shown) / len(shown)
        assert (row.every, row.some) == pytest.approx((every, some))


@pytest.mark.parametrize("table", [AGNEWS, SST2], ids=lambda table: table.corpus)
def test_falls_from_one_to_nothing(table):
    every = [row.every for row in table.rows]
    assert every[0] == 1 and every == sorted(every, reverse=True)
    assert all((row.every > 0) == (row.perturbed <= table.kept) for row in table.rows)
    some = [row.some for row in table.rows]
    assert some[0] == 0 and some[-1] == 1 and some == sorted(some)


def test_rounding_matters_little():
    assert all(
        abs(row.every - row.every_unrounded) < 0.023
        for table in (AGNEWS, SST2)
        for row in table.rows
    )


@given(st.integers(1, 60), st.data())
def test_unrounded_is_the_same_for_whole_numbers(words, data):
    hidden = data.draw(st.integers(0, words))
    perturbed = data.draw(st.integers(0, words))
    exact = math.comb(words - perturbed, hidden) / math.comb(words, hidden)
    assert unrounded_risk(words, hidden / words, perturbed / words) == pytest.approx(
        exact, rel=1e-6, abs=1e-12
    )


@pytest.mark.parametrize("table", [AGNEWS, SST2], ids=lambda table: table.corpus)
def test_the_share_at_which_it_is_a_half(table):
    assert unrounded_risk(table.words, table.rate, table.share_of_half) == pytest.approx(0.5)
    assert 0 < table.share_of_half < 1 - table.rate


def test_two_words_of_an_sst2_text_come_closest_to_a_half():
    assert min(SST2.rows, key=lambda row: abs(row.every - 0.5)).perturbed == 2
    assert 1.8 < SST2.share_of_half * SST2.words < 2


def test_explanation_has_the_numbers_of_the_table():
    whole = " ".join(EXPLANATION)
    for row, digits in [
        (AGNEWS.rows[1], f"4/43 = {AGNEWS.rows[1].every:.3f}"),
        (SST2.rows[1], f"one word {SST2.rows[1].every:.3f}"),
        (SST2.rows[2], f"(γ = {100 * SST2.rows[2].share:.1f} %) give {SST2.rows[2].every:.3f}"),
        (SST2.rows[3], f"three {SST2.rows[3].every:.3f}"),
        (SST2.rows[1], f"that is {SST2.rows[1].some:.3f} of the copies"),
        (AGNEWS.rows[5], f"and {AGNEWS.rows[5].some:.3f} at 5 words"),
    ]:
        assert digits in whole, row
    # Of a vote that is unanimous, less than half is left where more than half of the copies show
    # the word; so no radius of 1 can be certified.
    assert 1 - SST2.rows[1].some < 0.5 < 1 - AGNEWS.rows[5].some

"""Radii of long texts by prices are those that every number of edits gives."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.certificates import characters, priced_edits
from ranmask.certificates.characters import characters_proved

NEVER, ALWAYS = 2**62, -1


def proved(texts, long):
    with mock.patch.object(characters, "_LONG", long):
        return characters_proved(*texts).min(axis=0).tolist()


@st.composite
def made_up(draw, most=40):
    """Differences, spellings, margins, words, starts and bound, as `characters_proved` has them."""
    bound = draw(st.sampled_from([1, 2, 7, 1000, 2**20]))
    rivals = draw(st.integers(1, 3))
    words = np.array(draw(st.lists(st.integers(1, most), min_size=1, max_size=3)))
    count = int(words.sum())

    def numbers(low, high, some=None):
        values = st.integers(low, high) if some is None else st.sampled_from(some)
        period = draw(st.integers(1, count))  # texts that say the same again and again, too
        row = st.lists(values, min_size=period, max_size=period)
        rows = [np.resize(draw(row), count) for _ in range(rivals)]
        return np.array(rows, dtype=np.int64)

    extreme = draw(st.booleans())
    said = numbers(-bound, bound, [-bound, 0, bound] if extreme else None)
    spellings = tuple(
        numbers(0, high, [0, high] if extreme else None) for high in (2 * bound, bound, bound)
    )
    starts = np.cumsum(words) - words
    margins = np.add.reduceat(said, starts, axis=1) + draw(st.integers(0, 3 * bound))
    return said, spellings, margins, words, starts, bound


@settings(max_examples=150, deadline=None)
@given(made_up())
def test_prices_give_the_radius(texts):
    assert proved(texts, ALWAYS) == proved(texts, NEVER)


@settings(max_examples=100, deadline=None)
@given(made_up(most=15))
def test_the_search_alone_gives_the_radius(texts):
    """As if no choices that cost the margin were ever at hand."""

    def searched(self, margin, most, low, high):
        before, after = (
            self.bought(np.array([low]), backwards=backwards)[0][0] for backwards in (False, True)
        )
        return self._searched(margin, most, low, before, after)

    with mock.patch.object(priced_edits._Market, "reaches", searched):
        assert proved(texts, ALWAYS) == proved(texts, NEVER)


def long_text(words, bound=2**20):
    """A text that is clear about its label; what others could be made of its words is random."""
    random = np.random.default_rng(words)
    said = np.where(random.random((3, words)) < 0.7, 0, random.integers(0, bound, (3, words)))
    loud = random.random((3, 3, words)) < 0.2
    spellings = tuple(np.where(loud, random.integers(0, bound, (3, 3, words)), 0))
    one = np.array([words]), np.array([0])
    return said, spellings, said.sum(axis=1, keepdims=True), *one, bound


@pytest.mark.parametrize("words", [1, 2, 3, 4, 10, 2500])
def test_longer_texts_have_the_same_radius(words):
    assert proved(long_text(words), ALWAYS) == proved(long_text(words), NEVER)


def test_a_long_text_takes_no_step_for_each_edit_of_each_word():
    with mock.patch.object(characters, "_totals", side_effect=AssertionError):
        [radius] = characters_proved(*long_text(20_000)).min(axis=0)
    assert radius > 1000


def test_texts_of_all_lengths_stand_side_by_side():
    parts = [long_text(words) for words in (40, 2500, 7, 3000)]
    said = np.concatenate([part[0] for part in parts], axis=1)
    spellings = tuple(
        np.concatenate(rows, axis=1) for rows in zip(*(part[1] for part in parts), strict=True)
    )
    margins = np.concatenate([part[2] for part in parts], axis=1)
    words = np.concatenate([part[3] for part in parts])
    together = said, spellings, margins, words, np.cumsum(words) - words, parts[0][-1]
    alone = [proved(part, NEVER)[0] for part in parts]
    assert characters_proved(*together).min(axis=0).tolist() == alone


def test_sums_that_do_not_fit_are_left_to_others():
    said, spellings, margins, *rest, _ = long_text(2500)
    assert priced_edits.priced_radii([(1, 1, said)], margins[:, 0], 2**40) is None
    texts = said << 20, tuple(one << 20 for one in spellings), margins << 20, *rest, 2**40
    assert proved(texts, ALWAYS) == proved(long_text(2500), NEVER)

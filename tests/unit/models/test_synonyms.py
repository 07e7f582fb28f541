"""Synonym sets: how words are looked up, which sets they have, and what copies are drawn."""

import itertools
import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from ranmask import DataError, ModelError, OptionError, SynonymSets
from ranmask.models.synonyms import FILE_NAME
from ranmask.words import Document

TABLE = {
    "film": ["movie", "picture"],
    "movie": ["film"],
    "good": ["fine", "great"],
    "great": ["large"],
    "lonely": [],
}
PINNED = [[2, 0, 0, 1], [0, 0, 1, 3], [1, 0, 0, 1], [3, 0, 2, 2]]
PINNED_PAIR = [[2, 0, 2, 3]]
CHAIN = {f"w{n}": [f"w{n + 1}"] for n in range(9)}


@pytest.fixture
def sets():
    return SynonymSets(TABLE, name="small")


class TestSpelling:
    @pytest.mark.parametrize(
        ("word", "expected"),
        [
            ("film", ("film", "movie", "picture")),
            ("Film,", ("Film,", "Movie,", "Picture,")),
            ("(FILM)...", ("(FILM)...", "(MOVIE)...", "(PICTURE)...")),
            ("“film”", ("“film”", "“movie”", "“picture”")),
            ("fIlm", ("fIlm",)),
            ("film-goer", ("film-goer",)),
            ("...", ("...",)),
            ("lonely", ("lonely",)),
            ("unknown", ("unknown",)),
            ("picture", ("picture",)),  # listed for others, lists none itself
        ],
    )
    def test_replacements(self, sets, word, expected):
        assert sets.replacements(word) == expected

    def test_perturbations_go_both_ways_and_keep_the_spelling(self, sets):
        assert sets.perturbations("Picture!") == ("Film!", "Movie!", "Picture!")
        assert sets.perturbations("LARGE") == ("FINE", "GOOD", "GREAT", "LARGE")
        assert sets.perturbations("gOOd") == ("gOOd",)

    def test_a_single_capital_is_capitalised(self):
        sets = SynonymSets({"a": ["an"], "an": ["a"]})
        # It is in capitals, too: what replaces it may be either, and both are covered.
        assert sets.replacements("A") == ("A", "An", "AN") and sets.overlap("A") == Fraction(1, 2)
        # "AN" may become "A", whose own set is {"A", "An"}: one of two words in common.
        assert sets.replacements("AN") == ("AN", "A") and sets.overlap("AN") == Fraction(1, 2)

    def test_one_capital_letter_may_become_a_word_in_capitals(self):
        sets = SynonymSets({"a": ["one"], "one": ["a"]})
        assert {"One", "ONE"} <= set(sets.replacements("A"))

    @pytest.mark.parametrize(
        "word",
        ["straße", "\u0131", "İstanbul", "Film", "two words", "'s", "", "\ud800", "...", "ﬁ"],
    )
    def test_words_that_are_not_found_again_are_shown_in_no_copy(self, word):
        """But they are listed: a certificate must count with them."""
        sets = SynonymSets({word: ["good"], "good": [word, "fine"]})
        assert sets.perturbations("good") == ("fine", "good")
        assert sets.words == 2 and sets.description()["dropped"] == 1
        if word.split() == [word]:
            assert sets.replacements("good") == ("good", word, "fine")
            assert {word, "good"} <= set(sets.replacements(word))
            assert sets.perturbations(word) == (word,) and sets.overlap("good") == 0
        else:
            assert sets.replacements("good") == ("good", "fine")

    def test_a_table_without_a_word_that_can_be_used_is_refused(self):
        with pytest.raises(DataError, match="none of the 2 words of the table can be used"):
            SynonymSets({"Haus": ["Heim"], "Heim": ["Haus"]})

    @given(st.text(min_size=1, max_size=6), st.sampled_from([str.lower, str.title, str.upper]))
    def test_whatever_is_in_the_table_is_found_again(self, word, spell):
        sets = SynonymSets({word: ["good"], "good": [word, "fine"]})
        for one in sets.perturbations(spell("good") + ","):
            others = sets.perturbations(one)
            assert one in others and one in sets.replacements(one)
            assert len(set(others)) == len(others) == len(sets.perturbations("good"))


class TestSets:
    def test_a_component_that_fits_is_one_set(self, sets):
        members = ("good", "fine", "great", "large")
        assert {sets.perturbations(word) for word in members} == {tuple(sorted(members))}
        assert all(sets.overlap(word) == 1 for word in members)

    @pytest.mark.parametrize(
        ("size", "expected"),
        [(1, {"w4"}), (2, {"w4", "w5"}), (3, {"w4", "w5", "w3"}), (4, {"w4", "w5", "w3", "w6"})],
    )
    def test_a_larger_one_gives_the_nearest(self, size, expected):
        """Breadth first: the words that it lists, then those that list it, then theirs."""
        assert set(SynonymSets(CHAIN, size=size).perturbations("w4")) == expected

    def test_neighbours_come_in_the_order_of_the_table(self):
        table = {"x": ["d", "b", "c"], "z": ["x"], "a": ["x"]}
        found = [set(SynonymSets(table, size=size).perturbations("x")) for size in range(1, 8)]
        new = [
            min(after - before) for before, after in itertools.pairwise(found) if before != after
        ]
        assert new == ["d", "b", "c", "a", "z"]

    def test_the_order_of_asking_does_not_matter(self):
        words = list(CHAIN)
        for size in (3, 20):
            one, other = SynonymSets(CHAIN, size=size), SynonymSets(CHAIN, size=size)
            forwards = {word: one.perturbations(word) for word in words}
            assert {word: other.perturbations(word) for word in reversed(words)} == forwards

    def test_overlap_is_the_least_over_the_replacements(self):
        sets = SynonymSets({"x": ["a", "b"], "b": ["c", "d"]}, size=3)
        assert sets.perturbations("x") == sets.perturbations("a") == ("a", "b", "x")
        assert sets.perturbations("b") == ("b", "c", "d")
        assert sets.overlap("x") == Fraction(1, 3) and sets.overlap("a") == 1

    def test_the_memory_is_bounded(self, sets, monkeypatch):
        monkeypatch.setattr("ranmask.models.synonyms._CACHED_WORDS", 5)
        words = [f"film{'!' * number}" for number in range(20)]
        before = [(sets.perturbations(word), sets.overlap(word)) for word in words]
        assert [(sets.perturbations(word), sets.overlap(word)) for word in words] == before
        assert len(sets._perturbations) <= 5 and len(sets._overlaps) <= 5


class TestDraws:
    text = Document(("Good", "the", "film,", "large"))

    def test_pinned(self, sets):
        """Certificates of today can be checked in ten years."""
        drawn = sets.draw(self.text, 4, seed=3)
        assert drawn.choices.tolist() == PINNED
        other = sets.draw(Document(self.text.words, "a premise"), 1, seed=3, stream="estimation")
        assert other.choices.tolist() == PINNED_PAIR
        assert other.documents[0].premise == "a premise"

    def test_copies_are_what_was_chosen(self, sets):
        drawn = sets.draw(self.text, 50, seed=0)
        for copy, choice in zip(drawn.documents, drawn.choices, strict=True):
            words = [sets.perturbations(word) for word in self.text.words]
            assert copy.words == tuple(one[c] for one, c in zip(words, choice, strict=True))
            assert copy.words[1] == "the" and copy.words[2][-1] == ","

    def test_uniform_and_independent(self, sets):
        drawn = sets.draw(self.text, 24_000, seed=1)
        for place, size in ((0, 4), (2, 3), (3, 4)):
            assert chisquare(np.bincount(drawn.choices[:, place], minlength=size)).pvalue > 1e-3
        joint = drawn.choices[:, 0] * 12 + drawn.choices[:, 2] * 4 + drawn.choices[:, 3]
        assert chisquare(np.bincount(joint, minlength=48)).pvalue > 1e-3

    def test_the_streams_have_nothing_to_do_with_each_other(self, sets):
        streams = [
            sets.draw(self.text, 12_000, 0, stream).choices[:, 0]
            for stream in ("vote", "selection", "estimation")
        ]
        for one, other in itertools.combinations(streams, 2):
            assert chisquare(np.bincount(one * 4 + other, minlength=16)).pvalue > 1e-3

    def test_follow_from_the_seed_and_the_text_alone(self, sets):
        first = sets.draw(self.text, 20, 0).choices
        sets.draw(Document(("film",)), 7, 0)
        assert (sets.draw(self.text, 30, 0).choices[:20] == first).all()
        assert (sets.draw(self.text, 20, 1).choices != first).any()
        changed = Document(("Good", "the", "film,", "great"))  # with the very same sets
        assert (sets.draw(changed, 20, 0).choices != first).any()

    def test_distinct_copies(self, sets):
        drawn = sets.draw(self.text, 500, 0)
        distinct, which = drawn.distinct
        assert len(distinct) == 48 == len(set(distinct.documents))
        assert [distinct.documents[place] for place in which] == drawn.documents

    def test_of_very_many_copies_all_count_as_distinct(self, sets):
        long = Document(("good", "film") * 20)
        drawn = sets.draw(long, 50, 0)
        distinct, which = drawn.distinct
        assert distinct is drawn and which.tolist() == list(range(50))

    def test_one_copy_for_training(self, sets):
        copies = [sets.one_copy(self.text, (0, epoch, 5)) for epoch in range(300)]
        assert copies[7] == sets.one_copy(self.text, (0, 7, 5))
        assert len(Counter(copies)) == 48 and all(copy.words[1] == "the" for copy in copies)

    def test_no_copies_are_refused(self, sets):
        with pytest.raises(OptionError, match="copies must be at least 1, not 0"):
            sets.draw(self.text, 0, 0)


class TestFiles:
    def test_round_trip(self, sets, tmp_path):
        sets.save(tmp_path)
        again = SynonymSets.load(tmp_path)
        assert again.description() == sets.description() and again._listed == sets._listed
        assert again.perturbations("Film") == sets.perturbations("Film")
        json.loads((tmp_path / FILE_NAME).read_text())

    def test_what_was_left_out_is_not_forgotten(self, tmp_path):
        sets = SynonymSets({"good": ["fine", "Fine", "two words"]})
        sets.save(tmp_path)
        again = SynonymSets.load(tmp_path)
        assert again.description() == sets.description()
        assert again.description()["dropped"] == 2

    def test_description_names_the_table(self, sets):
        described = sets.description()
        assert described["name"] == "small" and described["size"] == 100
        assert described["words"] == 7 and len(described["sha256"]) == 64
        assert SynonymSets({"good": ["fine"]}).description()["sha256"] != described["sha256"]

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ({"good": "fine"}, "the synonyms of 'good' are not a list of words"),
            ({"good": 3}, "the synonyms of 'good' are not a list of words"),
            ({"good": [3]}, "3 is not a word"),
            ({3: ["good"]}, "3 is not a word"),
        ],
        ids=["a string", "a number", "a number in a list", "a number as key"],
    )
    def test_wrong_tables(self, table, message):
        with pytest.raises(DataError, match=message):
            SynonymSets(table)

    @pytest.mark.parametrize("size", [0, -1, 2.0, True, None])
    def test_wrong_size(self, size):
        with pytest.raises(OptionError, match=f"at least 1, not {size!r}"):
            SynonymSets(TABLE, size=size)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", "synonyms.json"),
            ("[]", "holds no JSON object"),
            ("{}", "has format None, not 'ranmask-synonyms'"),
            ('{"format": "ranmask-synonyms", "version": 9}', "version 9 is not 1"),
            ('{"format": "ranmask-synonyms", "version": 1, "name": "x"}', "without a table"),
            (
                '{"format": "ranmask-synonyms", "version": 1, "name": "x", "table": {}}',
                "size must be",
            ),
        ],
        ids=["broken", "a list", "empty", "newer", "no table", "no size"],
    )
    def test_wrong_files(self, content, message, tmp_path):
        (tmp_path / FILE_NAME).write_text(content)
        with pytest.raises(ModelError, match=message):
            SynonymSets.load(tmp_path)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(ModelError, match="cannot read"):
            SynonymSets.load(tmp_path)

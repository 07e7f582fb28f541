"""Tokenization: what may be replaced, and that no replacement changes the number of words."""

import dataclasses
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ranmask.attacks.tokenization import AttackedText, count_words, tokenize
from ranmask.words import document, split, usable

TOKENIZATIONS = ("words", "textattack-2021", "textattack-0.3.11")

# Letters, what TextAttack counts as part of a word, what it does not, and blanks of many sorts.
LETTERS = "abZé9²中ß_"
SIGNS = "'-*@`\u00d7\u02d7.,!()/[]#\u0301"
BLANKS = " \t\n\u00a0\u2003\x1c"

cuttings = st.sampled_from(TOKENIZATIONS)
strings = st.text(LETTERS + SIGNS + BLANKS + "  ", min_size=1, max_size=24)
texts = st.one_of(strings, st.tuples(strings, strings))
one_word = st.text(LETTERS + SIGNS, min_size=1, max_size=6)
letters_and_digits = st.text(string.ascii_letters + "é9²中", min_size=1, max_size=6)


@st.composite
def cut_texts(draw, least=1):
    text = tokenize(draw(texts), draw(cuttings))
    assume(len(text.words) >= least)
    return text


def fresh(text):
    """The same strings, cut anew."""
    return AttackedText(text.parts, text.tokenization)


def by_hand(text, words):
    """The parts with other words, cut and pasted by the spans of the text as it was."""
    parts = []
    for number, part in enumerate(text.parts):
        pasted, end = "", 0
        for position, (owner, start, stop) in enumerate(text.spans):
            if owner == number:
                pasted += part[end:start] + words.get(position, part[start:stop])
                end = stop
        parts.append(pasted + part[end:])
    return tuple(parts)


class TestWords:
    @pytest.mark.parametrize(
        ("tokenization", "expected"),
        [
            ("words", ("'It's", "a", "(well-made,", "film-", "*", "@home", "u.s.")),
            ("textattack-2021", ("It's", "a", "well-made", "film-", "home", "u", "s")),
            ("textattack-0.3.11", ("It's", "a", "well-made", "film", "home", "u", "s")),
        ],
    )
    def test_by_hand(self, tokenization, expected):
        assert tokenize("'It's a (well-made, film- * @home u.s.", tokenization).words == expected

    def test_pairs(self):
        text = tokenize(("A man, old", "(he) sleeps"), "textattack-2021")
        assert text.words == ("A", "man", "old", "he", "sleeps")
        assert [part for part, _, _ in text.spans] == [0, 0, 0, 1, 1]
        assert text.text == ("A man, old", "(he) sleeps")
        assert text.joined == "A man, old\n(he) sleeps"
        assert tokenize("one part", "words").text == "one part"

    @given(texts, cuttings)
    def test_no_word_spans_two_words(self, text, tokenization):
        made = tokenize(text, tokenization)
        assert all(split(word) == (word,) for word in made.words)
        for word, (part, start, stop) in zip(made.words, made.spans, strict=True):
            assert made.parts[part][start:stop] == word

    @given(strings, cuttings)
    def test_count(self, text, tokenization):
        assert count_words(text, tokenization) == len(tokenize(text, tokenization).words)


class TestReplacing:
    @given(cut_texts(), one_word, st.data())
    def test_one(self, text, word, data):
        position = data.draw(st.integers(0, len(text.words) - 1))
        changed = text.replaced({position: word})
        assert changed.parts == by_hand(text, {position: word})
        assert changed.modified == {position} and changed.tokenization == text.tokenization
        for before, after in zip(text.parts, changed.parts, strict=True):
            assert len(split(after)) == len(split(before))
            pairs = zip(split(before), split(after), strict=True)
            assert sum(one != other for one, other in pairs) <= 1

    @given(cut_texts(), st.data())
    def test_several(self, text, data):
        places = st.integers(0, len(text.words) - 1)
        words = data.draw(st.dictionaries(places, one_word))
        changed = text.replaced(words)
        assert changed.parts == by_hand(text, words)
        assert changed.modified == set(words)
        for before, after in zip(text.parts, changed.parts, strict=True):
            assert len(split(after)) == len(split(before))

    @given(cut_texts(), st.data())
    def test_each_of_some_words(self, text, data):
        """Candidates share what is known of their text, and are as if made one by one."""
        first = data.draw(st.integers(0, len(text.words) - 1))
        current = text.replaced({first: data.draw(one_word)})
        assume(current.keeps_positions)
        position = data.draw(st.integers(0, len(text.words) - 1))
        size = data.draw(st.none() | st.integers(1, 5))
        words = data.draw(st.lists(one_word, max_size=3))
        for word, made in zip(words, current.with_each(position, words), strict=True):
            alone = fresh(current).replaced({position: word})
            assert (made, made.new_words) == (alone, alone.new_words)
            assert made.modified == {first, position} and made.origin is current
            if made.keeps_positions:
                assert made.window(position, size) == fresh(made).window(position, size)
                pairs = zip(text.words, fresh(made).words, strict=True)
                assert made.words_changed(text) == sum(old != new for old, new in pairs)

    @given(cut_texts(least=2), st.data())
    def test_windows_are_those_of_the_text_cut_anew(self, text, data):
        places = st.integers(0, len(text.words) - 1)
        for _ in range(2):  # in a text that is read, and in one whose spans nobody asked for
            changed = text.replaced(data.draw(st.dictionaries(places, letters_and_digits)))
            size, place = data.draw(st.none() | st.integers(1, 4)), data.draw(places)
            assert changed.window(place, size) == fresh(changed).window(place, size)
            text = changed

    def test_windows_of_several_sizes_around_one_word(self):
        text = tokenize("a b c d e", "words")
        [one, other] = text.with_each(2, ["x", "y"])
        assert [one.window(2, size) for size in (1, 3, None)] == ["x", "b x d", "a b x d e"]
        assert [other.window(2, size) for size in (3, 1)] == ["b y d", "y"]

    def test_changes_are_counted_against_the_text_that_is_named(self):
        text = tokenize("a b c", "words")
        [changed] = text.replaced({0: "x"}).with_each(1, ["y"])
        longer, shorter = tokenize("x b c d", "words"), tokenize("a", "words")
        found = [changed.words_changed(one) for one in (text, longer, shorter, text)]
        assert found == [2, 1, 1, 2]

    @pytest.mark.parametrize("tokenization", ["words", "textattack-2021"])
    def test_changes_are_counted_where_words_have_moved(self, tokenization):
        text = tokenize("a b c d", tokenization)
        made = [text.rewritten(1, "x"), text.rewritten(1, "b x"), text.rewritten(1, "x", through=2)]
        made += [text.deleted(0), text.replaced({1: "x.y"})]
        pairs = [zip(text.words, fresh(one).words, strict=False) for one in made]
        expected = [sum(old != new for old, new in words) for words in pairs]
        assert [one.words_changed(text) for one in made] == expected

    def test_similarity(self):
        text = tokenize("a b c", "words").replaced({1: "x"})
        assert text.words == ("a", "x", "c")
        found = text.with_similarity(0.5)
        assert (found.similarity, text.similarity) == (0.5, None)
        assert found == text and (found.words, found.modified) == (text.words, text.modified)
        assert found.origin is text.origin and found.document == text.document

    def test_what_was_modified_adds_up(self):
        text = tokenize("a b c d", "words").replaced({0: "x"})
        assert text.replaced({2: "y", 3: "z"}).modified == {0, 2, 3}
        assert text.shown_as(1, "[MASK]").modified == {0}
        assert text.without(3).modified == {0}

    def test_shown_as_is_no_change_to_keep(self):
        text = tokenize("(a) b", "textattack-2021")
        shown = text.shown_as(0, "[MASK]")
        assert shown.parts == ("([MASK]) b",) and not shown.modified

    @pytest.mark.parametrize("bad", ["", " ", "two words", "a\u00a0b", "a\n", "\x1c", "\u2003x"])
    @pytest.mark.parametrize("tokenization", TOKENIZATIONS)
    def test_only_one_word_may_be_put_in(self, bad, tokenization):
        text = tokenize("some words here", tokenization)
        with pytest.raises(ValueError, match="would change the number of words"):
            text.shown_as(1, bad)
        with pytest.raises(ValueError, match="would change the number of words"):
            text.replaced({0: "fine", 1: bad})


class TestMovedSpans:
    """Where words are is not looked for again where that is known; it must be the same."""

    @given(cut_texts(), st.one_of(one_word, letters_and_digits), st.data())
    def test_as_cut_anew(self, text, word, data):
        position = data.draw(st.integers(0, len(text.words) - 1))
        for changed in (text.replaced({position: word}), text.shown_as(position, word)):
            assert changed.spans == fresh(changed).spans
            assert changed.words == fresh(changed).words

    @given(cut_texts(), st.data())
    def test_several_as_cut_anew(self, text, data):
        places = st.integers(0, len(text.words) - 1)
        either = st.one_of(one_word, letters_and_digits)
        changed = text.replaced(data.draw(st.dictionaries(places, either)))
        assert changed.spans == fresh(changed).spans

    @given(cut_texts(), st.lists(st.tuples(st.integers(0, 9), letters_and_digits), max_size=5))
    def test_one_after_another(self, text, changes):
        for position, word in changes:
            position %= len(text.words)
            text = text.replaced({position: word})
            assert text.spans == fresh(text).spans and text.words[position] == word

    @pytest.mark.parametrize("tokenization", TOKENIZATIONS)
    def test_known_for_letters_and_digits(self, tokenization):
        text = tokenize("(one) two three", tokenization)
        changed = text.replaced({0: "eleven"})
        assert changed.origin is not None and changed.spans == fresh(changed).spans
        assert text.replaced({1: "u.s."}).words == fresh(text.replaced({1: "u.s."})).words

    def test_a_word_that_is_cut_in_two_is_not_taken_for_one(self):
        text = tokenize("one two three", "textattack-2021")
        assert text.replaced({1: "u.s"}).words == ("one", "u", "s", "three")
        assert text.replaced({1: "..."}).words == ("one", "three")
        assert tokenize("one two", "words").replaced({1: "u.s"}).words == ("one", "u.s")


class TestWithout:
    @pytest.mark.parametrize(
        ("text", "position", "expected"),
        [
            ("one two three", 0, "two three"),
            ("one two three", 1, "one three"),
            ("one two three", 2, "one two "),  # at the very end the blank stays
            ("one two three.", 2, "one two."),
            ("one (two) three", 1, "one () three"),
            (" one two", 0, " two"),
            ("one", 0, ""),
            (("one two", "three four"), 0, ("two", "three four")),
            (("one two", "three four"), 1, ("one", "three four")),
            (("one two", "three four"), 2, ("one two", " four")),
            (("one two", "three four"), 3, ("one two", "three ")),
        ],
    )
    def test_by_hand(self, text, position, expected):
        assert tokenize(text, "textattack-2021").without(position).text == expected

    @given(cut_texts(), st.data())
    def test_the_other_words_stay(self, text, data):
        position = data.draw(st.integers(0, len(text.words) - 1))
        left = text.without(position)
        assert left.words == text.words[:position] + text.words[position + 1 :]
        assert left.origin is None


class TestWindow:
    @pytest.mark.parametrize(
        ("position", "size", "expected"),
        [
            (3, 3, "c, (d) e"),
            (0, 3, "a b c"),
            (1, 3, "a b c"),
            (6, 3, "e f g"),
            (5, 3, "e f g"),
            (3, 4, "b c, (d) e"),  # of an even number one more word before
            (1, 4, "a b c, (d"),
            (3, 1, "d"),
            (3, 7, "a b c, (d) e f g"),
            (3, 99, "a b c, (d) e f g"),
            (3, None, "a b c, (d) e f g"),
        ],
    )
    def test_by_hand(self, position, size, expected):
        text = tokenize("'a b c, (d) e f g!", "textattack-0.3.11")
        assert text.window(position, size) == expected

    def test_across_the_parts_of_a_pair(self):
        text = tokenize(("a b c.", "(d) e f"), "textattack-2021")
        assert text.window(2, 3) == "b c.\n(d"
        assert text.window(4, 3) == "d) e f"
        assert text.window(0, None) == "a b c.\n(d) e f"

    @given(cut_texts(), st.integers(1, 9), st.data())
    def test_as_many_neighbours_as_there_are(self, text, size, data):
        position = data.draw(st.integers(0, len(text.words) - 1))
        inside = dataclasses.replace(text, parts=(text.window(position, size),), origin=None)
        count = min(size, len(text.words))
        runs = [text.words[start : start + count] for start in range(len(text.words))]
        assert inside.words in runs and len(inside.words) == count
        near = text.words[max(0, position - size // 2) : position + size // 2 + 1]
        assert text.words[position] in inside.words
        if len(near) == size:
            assert inside.words == near

    @given(cut_texts(least=2), st.data())
    def test_punctuation_outside_is_left_out(self, text, data):
        position = data.draw(st.integers(0, len(text.words) - 1))
        whole = text.window(position, None)
        assert whole.startswith(text.words[0]) and whole.endswith(text.words[-1])


class TestDocument:
    @given(cut_texts(), one_word, st.data())
    def test_made_of_the_words_that_were_read_before(self, text, word, data):
        assume(usable(text.text))
        for _ in range(3):
            text = text.replaced({data.draw(st.integers(0, len(text.words) - 1)): word})
            assume(text.words)
            assert text.document == document(text.text)

    @given(cut_texts(), st.data())
    def test_with_several_words_replaced_at_once(self, text, data):
        assume(usable(text.text))
        places = st.integers(0, len(text.words) - 1)
        text = text.replaced(data.draw(st.dictionaries(places, one_word)))
        assert text.document == document(text.text)

    @given(cut_texts(), st.data())
    def test_of_a_text_that_lacks_a_word(self, text, data):
        text = text.without(data.draw(st.integers(0, len(text.words) - 1)))
        assume(usable(text.text))
        assert text.document == document(text.text)

import pytest

from ranmask.errors import TextError
from ranmask.words import Document, distance, document, documents, join, split


def test_words_are_what_split_gives():
    assert split(" a\tb\u00a0c\u2003d\n") == ("a", "b", "c", "d")
    assert split("zero\u200bwidth") == ("zero\u200bwidth",)  # not whitespace: one word
    assert join(("a", "b")) == "a b"


def test_distance():
    assert distance("a b c", "a x  c") == 1
    assert distance("a b", "a b c") is None


def test_pairs_have_the_words_of_the_hypothesis():
    assert document(("A man sleeps.", "He rests")) == Document(("He", "rests"), "A man sleeps.")
    assert document(["a", "b"]).premise == "a"


@pytest.mark.parametrize("text", ["", "  \t\n", "\u00a0", ("premise", " ")])
def test_no_words(text):
    with pytest.raises(TextError, match=r"text 4: .* has no words"):
        document(text, 4)


@pytest.mark.parametrize("text", [None, 3, float("nan"), b"bytes", ("a",), ("a", 1), ["a"] * 3])
def test_not_a_text(text):
    with pytest.raises(TextError, match="expected a string"):
        document(text)


def test_half_a_surrogate_pair():
    with pytest.raises(TextError, match="surrogate"):
        document("fine \ud83d word")


def test_one_string_is_not_a_list_of_texts():
    with pytest.raises(TextError, match="not one string"):
        documents("a text")

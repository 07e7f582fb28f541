"""Piles of texts, and sentences: nothing is lost without being counted."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ranmask.data.pile import pile_of, read_pile
from ranmask.data.rows import Columns
from ranmask.data.sentences import sentences
from ranmask.errors import DataError


def test_files_of_several_formats_are_one_pile(tmp_path):
    (tmp_path / "a.txt").write_text("one text\n\n  one   text \nanother text\n")
    (tmp_path / "b.csv").write_text("text,other\nthird text,1\n   ,2\n")
    (tmp_path / "c.jsonl").write_text('{"text": "fourth text"}\n{"text": 7}\n')
    pq.write_table(pa.table({"text": ["fifth text", None]}), tmp_path / "d.parquet")
    names = ("a.txt", "b.csv", "c.jsonl", "d.parquet")
    pile = read_pile([tmp_path / name for name in names], Columns("text"))
    assert pile.texts == ("one text", "another text", "third text", "fourth text", "fifth text")
    assert (pile.rows, pile.duplicates, pile.empty, pile.unusable) == (10, 1, 2, 2)
    assert pile.problem.startswith("c.jsonl, row 2: ") and pile.labels is None
    assert [one["name"] for one in pile.description()["files"]] == list(names)


def test_files_of_one_name_are_both_read(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pile.txt").write_text(f"from {folder}\n")
    pile = read_pile([tmp_path / "a" / "pile.txt", tmp_path / "b" / "pile.txt"])
    assert pile.texts == ("from a", "from b")


def test_labels_stay_with_their_texts(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx y,ham\nx  y,spam\nz,\nz,spam\nw,\n")
    pile = read_pile([tmp_path / "a.csv"], Columns(None, None, "label"))
    assert pile.texts == ("x y", "z", "w") and pile.labels == ("ham", "spam", None)
    assert pile.duplicates == 2 and pile.unusable == 0


def test_texts_in_memory():
    pile = pile_of(["a b", " ", "a  b", 3, "half \ud800 pair"], [0, 1, 0, 1, 1])
    assert pile.texts == ("a b",) and pile.labels == ("0",)
    assert (pile.duplicates, pile.empty, pile.unusable) == (1, 1, 2)
    assert pile_of(["a", "b", "c"], [float("nan"), None, ""]).labels == (None, None, None)
    with pytest.raises(DataError, match="2 texts have 1 labels"):
        pile_of(["a", "b"], [1])


@pytest.mark.parametrize(
    ("columns", "by_sentence", "message"),
    [
        (Columns(None, ("a", "b")), False, "pairs of texts cannot be protected"),
        (Columns("text", None, "label"), True, "labels whole rows, not their sentences"),
        (Columns("txt"), False, "no column 'txt'"),
    ],
)
def test_columns_that_mean_nothing(tmp_path, columns, by_sentence, message):
    (tmp_path / "a.csv").write_text("text,label\nx y,ham\n")
    with pytest.raises(DataError, match=message):
        read_pile([tmp_path / "a.csv"], columns, by_sentence=by_sentence)


def test_rows_are_cut_into_sentences(tmp_path):
    (tmp_path / "a.txt").write_text("It works. It does!\n\nIt works.\n")
    pile = read_pile([tmp_path / "a.txt"], by_sentence=True)
    assert pile.texts == ("It works.", "It does!")
    assert (pile.rows, pile.duplicates, pile.empty) == (4, 1, 1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Mr. Smith paid $3.50 at 5 p.m. in the U.S. today. Fine.", 2),
        ("See e.g. J. R. R. Tolkien, vol. 2. He wrote it.", 2),
        ('"Really?" he asked. (Yes!) "No."', ['"Really?" he asked.', "(Yes!)", '"No."']),
        ("wait... what is this", 1),
        ("first part<br /><br />second part\n\nthird part", 3),
        ("a fine film . a dull one .", ["a fine film .", "a dull one ."]),
        ("So am I. You are not.", ["So am I.", "You are not."]),
        ("\u597d\u3002\u4e0d\u597d\u3002", 2),
        ("  \n ", []),
    ],
)
def test_sentences(text, found):
    cut = sentences(text)
    assert cut == found or len(cut) == found
    assert [w for one in cut for w in one.split()] or not text.strip()


def test_no_word_is_lost_or_cut():
    text = 'Dr. A. "Bob" said: hm... Well? yes . No!) Then 3.5 U.S. dollars, etc. The end'
    assert " ".join(sentences(text)) == text

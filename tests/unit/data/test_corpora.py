"""Corpora from small files and from a hub that is made up here."""

import hashlib
import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ranmask.data import (
    SPLITS,
    Corpus,
    data_folder,
    joined,
    load_corpus,
    load_splits,
    origins,
    permutation,
)
from ranmask.data.rows import Columns
from ranmask.data.splits import corpus_rows
from ranmask.errors import DataError, MissingDependencyError, OptionError

ADVICE = r"Correct the data, or leave such rows out \(skip_bad_rows\)$"
GOLDEN_12 = [3, 9, 6, 10, 11, 7, 1, 8, 5, 0, 2, 4]
GOLDEN_10_000 = "fa0e3fb19d7770e5055077973fafedd7192e282aca66b31570d54f26549b0b3a"


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch, tmp_path):
    """Nothing here reads the real datasets, or the hub."""
    here = tmp_path / "a" / "src" / "ranmask" / "data" / "origins.py"
    monkeypatch.setattr(origins, "__file__", str(here))
    monkeypatch.delenv("RANMASK_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "datasets", None)


def write(path, texts, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"text": list(texts), "label": list(labels)}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".jsonl":
        rows = [dict(zip(columns, row, strict=True)) for row in zip(texts, labels, strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        mark = "\t" if path.suffix == ".tsv" else ","
        rows = [f"{text}{mark}{label}\n" for text, label in zip(texts, labels, strict=True)]
        path.write_text(f"text{mark}label\n" + "".join(rows))
    return str(path)


def simple(path, rows=40, classes=2):
    return write(path, [f"text {i}" for i in range(rows)], [i % classes for i in range(rows)])


def pairs(corpus):
    return list(zip(corpus.texts, corpus.labels, strict=True))


# The permutation, and what is carved by it


def test_the_permutation_is_pinned():
    """Another numpy, or another seed, must not move a row from one split to another."""
    assert permutation(12) == GOLDEN_12
    shown = hashlib.sha256(json.dumps(permutation(10_000)).encode()).hexdigest()
    assert shown == GOLDEN_10_000
    assert sorted(permutation(10_000)) == list(range(10_000))
    assert permutation(1) == [0]


def test_a_file_is_carved(tmp_path):
    path = simple(tmp_path / "in.csv")
    train, validation = load_corpus(path), load_corpus(path, "validation")
    order = permutation(40)
    assert validation.texts == tuple(f"text {i}" for i in order[:4])
    assert train.texts == tuple(f"text {i}" for i in order[4:])
    assert train.labels == tuple(i % 2 for i in order[4:])
    assert (train.name, train.split, train.label_names) == (path, "train", ("0", "1"))
    assert train.note == "without 4 carved for validation"
    assert validation.note == "4 rows carved by a fixed seed"


@pytest.mark.parametrize(("rows", "carved"), [(11, 2), (19_990, 1999), (20_500, 2000)])
def test_a_tenth_is_carved_and_at_most_2000_rows(tmp_path, rows, carved):
    train, validation = load_splits(simple(tmp_path / "in.csv", rows))
    assert len(validation.texts) == carved
    assert len(set(train.texts) | set(validation.texts)) == rows


def test_splits_are_those_loaded_one_by_one(tmp_path):
    path = simple(tmp_path / "in.csv")
    for one in load_splits(path):
        alone = load_corpus(path, one.split)
        assert one.description() == alone.description() and pairs(one) == pairs(alone)


def test_validation_holds_no_text_of_train(tmp_path):
    order = permutation(30)  # the first three are carved
    texts = [f"text {i}" for i in range(30)]
    texts[order[1]] = texts[order[20]]
    path = write(tmp_path / "in.jsonl", texts, [i % 2 for i in range(30)])
    train, validation = load_splits(path)
    assert len(train.texts) == 27
    assert validation.texts == (texts[order[0]], texts[order[2]])
    assert validation.note == ("3 rows carved by a fixed seed; 1 left out, whose text is in train")


def test_nothing_left_to_validate_with(tmp_path):
    path = write(tmp_path / "in.csv", ["a", "b"] * 10, [0, 1] * 10)
    assert len(load_corpus(path).texts) == 18
    with pytest.raises(DataError, match="too few different texts to carve validation"):
        load_splits(path)


def test_a_class_may_not_be_carved_away(tmp_path):
    labels = [0, 1] * 15
    labels[permutation(30)[0]] = 2
    path = write(tmp_path / "in.csv", [f"text {i}" for i in range(30)], labels)
    with pytest.raises(DataError, match=r"class '2' has no row in train: all its rows \(1\)"):
        load_corpus(path)


# Files


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_formats(tmp_path, suffix):
    reference = load_corpus(simple(tmp_path / "reference.csv"))
    corpus = load_corpus(simple(tmp_path / f"in{suffix}"))
    assert pairs(corpus) == pairs(reference) and corpus.sha256 == reference.sha256


def test_columns(tmp_path):
    path = tmp_path / "in.jsonl"
    row = '{{"p": "premise {0}", "h": "hypothesis {0}", "gold": {1}}}\n'
    path.write_text("".join(row.format(i, i % 2) for i in range(20)))
    corpus = load_corpus(str(path), columns=Columns(pair=("p", "h"), label="gold"))
    first = permutation(20)[2]
    assert pairs(corpus)[0] == ((f"premise {first}", f"hypothesis {first}"), first % 2)
    with pytest.raises(DataError, match="'label'"):
        load_corpus(str(path), columns=Columns(pair=("p", "h")))


def test_plain_text_has_no_labels(tmp_path):
    (tmp_path / "in.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match="it has no columns"):
        load_corpus(str(tmp_path / "in.txt"))


def test_one_file_has_no_test_split(tmp_path):
    with pytest.raises(DataError, match="take all its rows with split='all'"):
        load_corpus(simple(tmp_path / "in.csv"), "test")


@pytest.mark.parametrize("name", ["absent.csv", "folder/absent.txt", "a/b/c", "./absent", "/no"])
def test_absent_files_are_not_looked_for_on_the_hub(name):
    with pytest.raises(DataError, match=f"no file or folder {name}"):
        load_corpus(name)


def test_unknown_split(tmp_path):
    with pytest.raises(OptionError, match="'dev'"):
        load_corpus(simple(tmp_path / "in.csv"), "dev")


# Labels


@pytest.mark.parametrize(
    ("labels", "names", "expected", "ids"),
    [
        ([1, 0, 2], None, ("0", "1", "2"), (1, 0, 2)),
        (["b", " a", "c"], None, ("a", "b", "c"), (1, 0, 2)),
        (["b", "a", "c"], ["c", "b", "a"], ("c", "b", "a"), (1, 2, 0)),
        ([1, 0, 2], ["x", "y", "z"], ("x", "y", "z"), (1, 0, 2)),
        ([1, 3, 2], ["1", "2", "3"], ("1", "2", "3"), (0, 2, 1)),
        ([1, 0, 2], ["1", "2", "3"], ("1", "2", "3"), (1, 0, 2)),
        ([1, 0, 0], ["1", "0"], ("1", "0"), (0, 1, 1)),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_labels(tmp_path, suffix, labels, names, expected, ids):
    path = write(tmp_path / f"in{suffix}", [f"text {i}" for i in range(30)], labels * 10)
    corpus = load_corpus(path, label_names=names)
    assert corpus.label_names == expected
    assert all(label == ids[int(text.split()[1]) % 3] for text, label in pairs(corpus))


@pytest.mark.parametrize("names", [["a"], ["a", "a"], [], "ab"])
def test_label_names_must_be_different(tmp_path, names):
    with pytest.raises(OptionError, match="at least two different names"):
        load_corpus(simple(tmp_path / "in.csv"), label_names=names)


def jsonl(*rows):
    good = [{"text": f"text {i}", "label": i % 2} for i in range(20)]
    return "".join(json.dumps(row) + "\n" for row in [*good, *rows])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (jsonl({"text": "a"}), "row 21: .*in.jsonl: the row has no column 'label'"),
        (jsonl({"text": "a", "label": None}), "row 21: .*in.jsonl: it has no label. " + ADVICE),
        (jsonl({"text": "a", "label": " "}), "row 21: .*it has no label. " + ADVICE),
        (jsonl({"text": "a", "label": float("nan")}), "row 21: .*it has no label. " + ADVICE),
        (jsonl({"text": "a", "label": 0.5}), r"row 21: .*0.5 \(float\) is neither"),
        (jsonl({"text": "a", "label": True}), r"numbers \(0\) and some with names \('true'\)"),
        (jsonl({"text": "a", "label": [1]}), r"row 21: .*\[1\] \(list\) is neither"),
        (jsonl({"text": "", "label": 1}), "row 21: .*the text has no words: ''. " + ADVICE),
        (jsonl({"text": " \n", "label": 1}), "row 21: .*no words"),
        (jsonl({"text": 5, "label": 1}), r"row 21: .*holds 5 \(int\), not text"),
        (jsonl({"text": None, "label": 1}), "row 21: .*is missing a value"),
        (jsonl({"text": "\ud800", "label": 1}), "row 21: .*surrogate"),
        (jsonl() + "{broken\n", "row 21: .*not valid JSON"),
        (
            jsonl({"label": 1}, {"text": "", "label": 1}, {"text": "a", "label": 1}),
            "row 21: .*; 1 more row cannot be used. " + ADVICE,
        ),
        (jsonl({}, {}, {}), "row 21: .*; 2 more rows cannot be used. " + ADVICE),
        (jsonl({"text": "a", "label": 3}), "none of its rows has the label 2, an empty class"),
        (jsonl({"text": "a", "label": -1}), "3 labels, from -1 to 1"),
        (jsonl({"text": "a", "label": "x"}), r"numbers \(0\) and some with names \('x'\)"),
        ('{"text": "a", "label": "x"}\n{"text": "b", "label": "x"}\n', "one class only, 'x'"),
        ('{"text": "a", "label": 1}\n', "one class only, '1'"),
        ("", "in.jsonl has no rows"),
        ("\n\n", "in.jsonl has no rows"),
    ],
)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_unusable_rows(tmp_path, content, message, split):
    path = tmp_path / "in.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        load_corpus(str(path), split)


def test_bad_rows_are_left_out_where_that_is_asked_for(tmp_path, caplog):
    path = tmp_path / "in.jsonl"
    bad = [{"text": " ", "label": 1}, {"text": "a"}, {"text": "a", "label": None}, {"label": 0}]
    path.write_text(jsonl(*bad))
    whole = tmp_path / "whole.jsonl"
    whole.write_text(jsonl())
    train, validation = load_splits(str(path), skip_bad_rows=True)
    assert (pairs(train), pairs(validation)) == tuple(map(pairs, load_splits(str(whole))))
    assert "left out 4 rows that cannot be used" in train.note
    assert "left out 4 rows that cannot be used: row 21: " in caplog.text
    assert "in.jsonl: the text has no words" in caplog.text
    assert pairs(load_corpus(str(path), skip_bad_rows=True)) == pairs(train)
    with pytest.raises(DataError, match="skip_bad_rows"):
        load_splits(str(path))


def test_a_part_of_bad_rows_only_has_none(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("text,label\n ,1\n ,0\n")
    with pytest.raises(DataError, match=r"in\.csv has no rows"):
        load_corpus(str(path), skip_bad_rows=True)


def test_a_wrong_label_is_no_bad_row(tmp_path):
    with pytest.raises(DataError, match="label '2' is none of") as raised:
        load_corpus(
            simple(tmp_path / "in.csv", classes=3), label_names=["a", "b"], skip_bad_rows=True
        )
    assert "--skip-bad-rows" not in str(raised.value)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_true_and_false_are_two_classes(tmp_path, ending):
    texts, labels = [f"text {i}" for i in range(30)], [i % 3 == 0 for i in range(30)]
    corpus = load_corpus(write(tmp_path / f"in.{ending}", texts, labels))
    assert corpus.label_names == ("false", "true")
    assert set(pairs(corpus)) <= {(f"text {i}", int(i % 3 == 0)) for i in range(30)}
    assert set(corpus.labels) == {0, 1}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], r"row 3: .*label '2' is none of 0 to 1 \(a, b\); 12 more rows"),
        (["a", "b", "c", "d"], "the class 'd' has no row in train; add rows"),
    ],
)
def test_labels_that_do_not_fit_their_names(tmp_path, names, message):
    with pytest.raises(DataError, match=message):
        load_corpus(simple(tmp_path / "in.csv", classes=3), label_names=names)


def test_a_name_outside_the_names(tmp_path):
    path = write(tmp_path / "in.csv", [f"text {i}" for i in range(30)], ["a", "b", "0"] * 10)
    with pytest.raises(DataError, match=r"row 3: .*label '0' is none of a, b; 9 more"):
        load_corpus(path, label_names=["a", "b"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.csv", b"", "is empty"),
        ("in.csv", b"text,label\n", "has no rows"),
        ("in.csv", b"text,class\na,1\n", "no column 'label'; it has text, class"),
        ("in.csv", b"text,label\na\n", "row 1: .*1 fields"),
        ("in.parquet", b"not parquet", "as parquet"),
        ("in.xlsx", b"", "format"),
    ],
)
def test_unusable_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_corpus(str(tmp_path / name))


# Folders


@pytest.mark.parametrize("stem", ["validation", "dev"])
def test_folder(tmp_path, stem):
    simple(tmp_path / "train.csv", 30)
    write(tmp_path / f"{stem}.jsonl", [f"dev {i}" for i in range(9)], [0, 1, 1] * 3)
    write(tmp_path / "test.parquet", ["t1", "t2", "t3"], [1, 0, 1])
    (tmp_path / "train.md").write_text("not data")
    train, validation = load_splits(str(tmp_path))
    assert train.texts == tuple(f"text {i}" for i in permutation(30)) and train.note is None
    assert validation.texts == tuple(f"dev {i}" for i in permutation(9))
    assert validation.labels == tuple([0, 1, 1][i % 3] for i in permutation(9))
    test = load_corpus(str(tmp_path), "test")
    assert pairs(test) == [("t1", 1), ("t2", 0), ("t3", 1)] and test.note is None
    assert {one.name for one in (train, validation, test)} == {str(tmp_path)}


def test_folder_without_validation_is_carved(tmp_path):
    simple(tmp_path / "train.csv", 30)
    assert load_corpus(str(tmp_path), "validation").texts == tuple(
        f"text {i}" for i in permutation(30)[:3]
    )
    with pytest.raises(DataError, match="no test split: there is no test file in"):
        load_corpus(str(tmp_path), "test")


def test_a_test_file_sorted_by_label_is_shuffled(tmp_path):
    """The first rows of it would be of one class."""
    simple(tmp_path / "train.csv")
    labels = [1] * 10 + [0] * 10
    write(tmp_path / "test.csv", [f"test {i}" for i in range(20)], labels)
    test = load_corpus(str(tmp_path), "test")
    assert pairs(test) == [(f"test {i}", labels[i]) for i in permutation(20)]
    assert test.note == "shuffled by a fixed seed: the file is sorted by label"
    write(tmp_path / "test.csv", [f"test {i}" for i in range(20)], [1] * 20)
    assert load_corpus(str(tmp_path), "test").texts[:2] == ("test 0", "test 1")


def test_train_decides_the_labels_of_the_other_parts(tmp_path):
    write(tmp_path / "train.csv", [f"text {i}" for i in range(30)], ["c", "a", "b"] * 10)
    write(tmp_path / "test.csv", ["x", "y", "z"], ["c", "b", "c"])
    test = load_corpus(str(tmp_path), "test")
    assert test.labels == (2, 1, 2) and test.label_names == ("a", "b", "c")


@pytest.mark.parametrize(("label", "shown"), [("d", "'d'"), ("0", "'0'")])
@pytest.mark.parametrize("split", ["validation", "test"])
def test_mismatched_labels(tmp_path, split, label, shown):
    write(tmp_path / "train.csv", [f"text {i}" for i in range(30)], ["c", "a", "b"] * 10)
    write(tmp_path / f"{split}.csv", ["x", "y", "z"], ["a", label, label])
    with pytest.raises(DataError, match=f"row 2: .*{split}.csv: .*{shown} is none of a, b, c; 1"):
        load_corpus(str(tmp_path), split)


def test_folders_that_do_not_say_what_to_read(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"no train file: expected train\.csv, train\.tsv"):
        load_corpus(str(tmp_path))
    simple(tmp_path / "train.csv")
    simple(tmp_path / "dev.csv")
    simple(tmp_path / "validation.csv")
    with pytest.raises(DataError, match=r"for validation: dev\.csv, validation\.csv"):
        load_corpus(str(tmp_path))

    def refuse(folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(DataError, match=r"cannot read .*Permission denied"):
        load_corpus(str(tmp_path))


# Another file for validation


def test_given_validation_leaves_train_whole(tmp_path):
    path = simple(tmp_path / "in.csv", 30)
    other = write(tmp_path / "other.csv", ["x", "y", "z"], [1, 1, 0])
    train, validation = load_splits(path, validation=other)
    assert sorted(train.texts) == sorted(f"text {i}" for i in range(30)) and train.note is None
    assert sorted(pairs(validation)) == [("x", 1), ("y", 1), ("z", 0)]
    assert (validation.name, validation.split, train.name) == (other, "validation", path)


def test_given_validation_shares_the_label_names(tmp_path):
    path = simple(tmp_path / "in.csv", 30)
    spelled = write(tmp_path / "other.csv", ["x", "y"], ["no", "no"])
    _, validation = load_splits(path, validation=spelled, label_names=["yes", "no"])
    assert validation.labels == (1, 1) and validation.label_names == ("yes", "no")
    with pytest.raises(DataError, match=r"row 1: .*other.csv: its label 'no' is none of 0 to 1"):
        load_splits(path, validation=spelled)


def test_given_validation_may_be_a_folder_with_one(tmp_path):
    path = simple(tmp_path / "in.csv", 30)
    simple(tmp_path / "folder" / "train.csv")
    with pytest.raises(DataError, match="folder ships without a validation part"):
        load_splits(path, validation=str(tmp_path / "folder"))
    write(tmp_path / "folder" / "dev.csv", ["x", "y"], [1, 0])
    _, validation = load_splits(path, validation=str(tmp_path / "folder"))
    assert sorted(validation.texts) == ["x", "y"]


def test_texts_in_both_are_told(tmp_path, caplog):
    path = simple(tmp_path / "in.csv", 30)
    other = write(tmp_path / "other.csv", ["x", "text 3"], [1, 1])
    load_splits(path)
    assert not caplog.records
    _, validation = load_splits(path, validation=other)
    assert len(validation.texts) == 2  # what was given is left whole
    (record,) = caplog.records
    assert record.name == "ranmask" and record.levelno == logging.WARNING
    assert "1 of 2 validation texts occur in train" in record.getMessage()


def test_validation_rows_do_not_change_train(tmp_path):
    path = simple(tmp_path / "in.csv")
    train, validation = load_splits(path)
    again, short = load_splits(path, validation_rows=3)
    assert again.sha256 == train.sha256 and short.texts == validation.texts[:3]


# A corpus


def test_take_and_description(tmp_path):
    corpus = load_corpus(simple(tmp_path / "in.csv"))
    short = corpus.take(5)
    assert pairs(short) == pairs(corpus)[:5]
    assert short.note == "without 4 carved for validation; the first 5 of 36 rows"
    assert short.sha256 == Corpus("", "", short.texts, short.labels, ()).sha256 != corpus.sha256
    assert corpus.take(None) is corpus and corpus.take(36) is corpus and corpus.take(99) is corpus
    for rows in (0, -1, True, 1.5):
        with pytest.raises(OptionError, match="at least 1"):
            corpus.take(rows)
    described = short.description()
    assert json.loads(json.dumps(described)) == described
    assert described == {
        "name": str(tmp_path / "in.csv"),
        "split": "train",
        "rows": 5,
        "label_names": ["0", "1"],
        "note": short.note,
        "terms": None,
        "sha256": short.sha256,
    }


def test_the_digest_names_texts_labels_and_their_order():
    rows = [(("a", "b"), (0, 1)), (("b", "a"), (0, 1)), (("a", "b"), (1, 0)), (("a", "b "), (0, 1))]
    rows += [((("a", "b"), "b"), (0, 1)), (("a",), (0,))]
    digests = [Corpus("n", "train", texts, labels, ("x", "y")).sha256 for texts, labels in rows]
    assert len(set(digests)) == len(rows)
    assert digests[0] == hashlib.sha256(b'["a", 0]\n["b", 1]\n').hexdigest()
    assert Corpus("m", "test", ("a", "b"), (0, 1), ("p", "q")).sha256 == digests[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("agnews", ["AG News", "research and non-commercial use"]),
        ("sst2", ["No licence is stated for SST2"]),
        ("sst2_glue", ["No licence is stated for the GLUE phrases"]),
        ("imdb", ["No licence is stated for the IMDB reviews"]),
        ("snli", ["SNLI", "CC BY-SA 4.0"]),
        ("hate", ["The tweets", "MIT licence"]),
        ("sms_spam", ["SMS Spam Collection (Almeida and Gómez Hidalgo 2011)", "CC BY 4.0"]),
    ],
)
def test_terms_of_known_corpora(name, words):
    corpus = Corpus(name, "train", ("a", "b"), (0, 1), ("x", "y"))
    assert all(some in corpus.terms for some in words)
    assert corpus.description()["terms"] == corpus.take(1).terms == corpus.terms


@pytest.mark.parametrize("name", ["injection", "mine.csv", "./sst2", "owner/sst2", "", "a+b"])
def test_terms_that_are_not_known(name):
    corpus = Corpus(name, "train", ("a",), (0,), ("x", "y"))
    assert corpus.terms is None and corpus.description()["terms"] is None


@pytest.mark.parametrize(
    ("first", "more", "known"),
    [
        ("sst2", "imdb", ["sst2", "imdb"]),
        ("imdb", "sst2", ["imdb", "sst2"]),
        ("sst2", "mine.csv", ["sst2"]),
        ("mine.csv", "sst2", ["sst2"]),
        ("injection", "sst2", ["sst2"]),
        ("mine.csv", "injection", []),
    ],
)
def test_terms_of_joined_corpora(first, more, known):
    one, other = (Corpus(name, "train", (name,), (0,), ("x", "y")) for name in (first, more))
    alone = [Corpus(name, "train", ("a",), (0,), ("x", "y")).terms for name in known]
    both = joined(one, other, without=Corpus("", "validation", (), (), ("x", "y")))
    assert both.terms == (" ".join(alone) or None)


# Two corpora as one


def made(name, rows, note=None):
    texts = tuple(f"{name} {i}" for i in range(rows))
    return Corpus(name, "train", texts, tuple(i % 2 for i in range(rows)), ("x", "y"), note)


NOTHING = Corpus("held out", "validation", (), (), ("x", "y"))


def test_joined_rows_are_in_the_fixed_order():
    first, more = made("one", 7), made("two", 5)
    both = joined(first, more, without=NOTHING)
    rows = pairs(first) + pairs(more)
    assert pairs(both) == [rows[place] for place in GOLDEN_12]
    assert (both.name, both.split, both.label_names) == ("one+two", "train", ("x", "y"))
    assert joined(both, made("three", 2), without=NOTHING).name == "one+two+three"


def test_joined_without_the_texts_held_out():
    first, more = made("one", 7), made("two", 7)
    held_out = Corpus("one", "validation", ("two 2", "two 5", "no 1"), (1, 0, 1), ("x", "y"))
    both = joined(first, more, without=held_out)  # "two 2" is held out whatever its label
    rows = pairs(first) + [row for row in pairs(more) if row[0] not in held_out.texts]
    assert len(rows) == 12 and pairs(both) == [rows[place] for place in GOLDEN_12]
    assert both.note == "with 5 rows of two"


def test_joined_leaves_the_first_whole():
    """What it shares with its validation was told when the two were loaded."""
    first, more = made("one", 3), made("two", 2)
    held_out = Corpus("one", "validation", (*first.texts, *more.texts), (0,) * 5, ("x", "y"))
    both = joined(first, more, without=held_out)
    assert sorted(pairs(both)) == pairs(first) and both.note == "with 0 rows of two"


def test_joined_pairs_of_texts_are_held_out_as_pairs():
    texts = (("p", "h"), ("p", "i"))
    more = Corpus("two", "train", texts, (0, 1), ("x", "y"))
    held_out = Corpus("one", "validation", (("p", "i"), ("h", "p")), (0, 0), ("x", "y"))
    both = joined(made("one", 1), more, without=held_out)
    assert set(both.texts) == {"one 0", ("p", "h")}


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ((None, None), "with 5 rows of two"),
        (("half of it", None), "half of it; with 5 rows of two"),
        ((None, "partial"), "with 5 rows of two; partial"),
        (("half of it", "partial"), "half of it; with 5 rows of two; partial"),
    ],
)
def test_joined_notes(notes, expected):
    both = joined(made("one", 7, notes[0]), made("two", 5, notes[1]), without=NOTHING)
    assert both.note == expected


def test_joined_digest_is_that_of_its_rows():
    first, more = made("one", 7), made("two", 5)
    both = joined(first, more, without=NOTHING)
    assert both.sha256 == Corpus("", "", both.texts, both.labels, ()).sha256
    assert both.sha256 not in (first.sha256, more.sha256)
    assert both.sha256 == "fd526aa8dea3adab5c759867e2efffd727e60666ba72e1c181c731b5840fe9fa"
    assert both.sha256 != joined(more, first, without=NOTHING).sha256
    assert (first.name, first.sha256) == ("one", made("one", 7).sha256)  # left as it was


@pytest.mark.parametrize("names", [("y", "x"), ("x", "z"), ("x", "y", "z")])
def test_joined_corpora_have_the_same_classes(names):
    more = Corpus("two", "train", ("a", "b"), (0, 1), names)
    message = f"one has the classes x, y, two {', '.join(names)}: they must be the same"
    with pytest.raises(DataError, match=message):
        joined(made("one", 2), more, without=NOTHING)


def test_importing_is_light():
    code = "import sys, ranmask.data; assert not {'numpy', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Known names, in a data folder


def test_data_folder(tmp_path, monkeypatch):
    assert data_folder() is None
    beside_project = tmp_path / "shared" / "data"  # the project is tmp_path/a
    beside_current = tmp_path / "elsewhere" / "shared" / "data"
    (tmp_path / "elsewhere" / "work").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere" / "work")
    beside_current.mkdir(parents=True)
    assert data_folder() == beside_current
    beside_project.mkdir(parents=True)
    assert data_folder() == beside_project
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path / "elsewhere"))
    assert data_folder() == tmp_path / "elsewhere"
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path / "nowhere"))
    assert data_folder() is None
    monkeypatch.setenv("RANMASK_DATA", "")
    assert data_folder() == beside_project


def test_a_wrong_data_folder_is_told(monkeypatch):
    monkeypatch.setenv("RANMASK_DATA", "/nowhere")
    with pytest.raises(DataError, match="RANMASK_DATA=/nowhere is not a folder"):
        load_corpus("sst2")


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path))
    return tmp_path


def test_known_files(data, caplog):
    caplog.set_level(logging.INFO, "ranmask")
    simple(data / "agnews" / "train_subset.parquet", 40, classes=4)
    simple(data / "agnews" / "test.parquet", 8, classes=4)
    train, validation = load_splits("agnews")
    assert train.label_names == ("World", "Sports", "Business", "Sci/Tech")
    assert (len(train.texts), len(validation.texts)) == (36, 4)
    assert train.note == ("40 of 120,000 training rows (partial); without 4 carved for validation")
    test = load_corpus("agnews", "test", label_names=list("wxyz"))
    assert test.label_names == ("w", "x", "y", "z")
    assert test.note == "8 of 7,600 test rows (partial)"
    assert test.texts == tuple(f"text {i}" for i in range(8))
    assert f"agnews: reading the files in {data / 'agnews'}" in caplog.text


def test_known_labels_are_checked(data):
    simple(data / "sst2" / "test.parquet", 9, classes=3)
    with pytest.raises(DataError, match=r"row 3: .*'2' is none of 0 to 1 \(negative, positive\)"):
        load_corpus("sst2", "test")
    with pytest.raises(OptionError, match=r"sst2 has 2 labels .* label_names has 3"):
        load_corpus("sst2", "test", label_names=["a", "b", "c"])
    with pytest.raises(OptionError, match="its own columns"):
        load_corpus("sst2", "test", columns=Columns("review"))


def test_known_files_that_are_not_there(data):
    (data / "sst2").mkdir()
    with pytest.raises(DataError, match=r"cannot read .*train\.parquet: No such file"):
        load_corpus("sst2")


def test_one_known_file_makes_three_splits(data):
    texts = [f"text {i}" for i in range(100)]
    order = permutation(100)  # 20 test, 8 validation, 72 train
    texts[order[3]] = texts[order[50]]  # in test and train
    texts[order[4]] = texts[order[22]]  # in test and validation
    texts[order[25]] = texts[order[60]]  # in validation and train
    write(data / "hate_davidson" / "all.parquet", texts, [i % 3 for i in range(100)])
    train, validation = load_splits("hate")
    test = load_corpus("hate", "test")
    left_out = {order[3], order[4], order[25]}
    assert train.texts == tuple(texts[i] for i in order[28:])
    assert validation.texts == tuple(texts[i] for i in order[20:28] if i not in left_out)
    assert pairs(test) == [(texts[i], i % 3) for i in sorted(order[:20]) if i not in left_out]
    assert train.note == "without 8 carved for validation; without 20 carved for test"
    assert test.note == (
        "20 rows carved by a fixed seed; 2 left out, whose text is in train or validation"
    )
    assert test.label_names == ("hate speech", "offensive", "neither")


def test_test_stays_carved_where_validation_is_given(data):
    texts = [f"text {i}" for i in range(100)]
    write(data / "sms_spam" / "all.parquet", texts, [i % 2 for i in range(100)])
    path = data / "mine.csv"
    path.write_text("sms,class\nx,spam\ny,ham\n")
    columns = Columns("sms", None, "class")
    train, validation = load_splits("sms_spam", validation=str(path), columns=columns)
    assert len(train.texts) == 80 and not set(train.texts) & set(
        load_corpus("sms_spam", "test").texts
    )
    assert sorted(pairs(validation)) == [("x", 1), ("y", 0)]


def test_a_known_corpus_may_validate_a_file(data):
    simple(data / "sst2" / "dev.parquet", 8)
    (data / "mine.csv").write_text("review,stars\n" + "a,0\nb,1\n" * 5)
    columns = Columns("review", None, "stars")
    train, validation = load_splits(str(data / "mine.csv"), validation="sst2", columns=columns)
    assert (len(train.texts), len(validation.texts)) == (10, 8)
    with pytest.raises(OptionError, match="its own columns"):
        load_splits("sst2", validation="sst2", columns=columns)


def test_glue_has_no_test_split(data):
    simple(data / "sst2_glue" / "train.parquet")
    simple(data / "sst2_glue" / "dev.parquet", 8)
    assert "GLUE hides its test labels" in load_corpus("sst2_glue", "validation").note
    with pytest.raises(DataError, match="sst2_glue has no test split: GLUE hides its labels"):
        load_corpus("sst2_glue", "test")


# The corpus that comes with ranmask

SHIPPED_ROWS = {
    "train": (4012, "981c53f8b2dcbae324ef7343efad06649d772a5d317315ce6f7c85452ad2896f"),
    "validation": (401, "623fded1196f8cb4bfea45943682044ee0d5b946c6eacbabe097aad7f9c5f98b"),
    "test": (990, "181a5e6fbd9dd53bf35ab7a26a44535b9dc11df600da7a4d62b10027cbe74c4a"),
}


@pytest.mark.parametrize("split", SPLITS)
def test_sms_spam_comes_with_ranmask(split, caplog):
    """The digests are those of the files in the data folder (tests/realdata)."""
    caplog.set_level(logging.INFO, "ranmask")
    corpus = load_corpus("sms_spam", split)
    assert (len(corpus.texts), corpus.sha256) == SHIPPED_ROWS[split]
    assert corpus.label_names == ("ham", "spam") and corpus.source_rows == 5572
    assert "reading the copy that comes with ranmask" in caplog.text


def test_a_data_folder_wins_over_what_comes_with_ranmask(data):
    assert len(load_corpus("sms_spam").texts) == 4012  # a data folder without sms_spam/
    write(data / "sms_spam" / "all.parquet", [f"text {i}" for i in range(50)], [0, 1] * 25)
    assert len(load_corpus("sms_spam").texts) == 36


def test_the_corpus_that_comes_with_ranmask_has_two_columns():
    with pytest.raises(DataError, match="has no column 'date'; it has text, label"):
        load_corpus("sms_spam", columns=Columns(keep=("date",)))


# The hub


class Split(dict):
    """A split of a dataset, as far as it is used: columns by name."""

    def __init__(self, columns, names=None, label="label"):
        super().__init__(columns)
        self.column_names = list(columns)
        self.features = dict.fromkeys(columns, SimpleNamespace())
        if names:
            self.features[label] = SimpleNamespace(names=names)


@pytest.fixture
def hub(monkeypatch):
    """A hub: put datasets into it by their id; ``calls`` has what was asked of it."""
    found = SimpleNamespace(datasets={}, calls=[])

    def load_dataset(*arguments, **options):
        found.calls.append((arguments, options))
        (name,) = arguments
        if name not in found.datasets:
            raise ConnectionError(f"Couldn't reach {name!r}")
        return found.datasets[name]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    return found


def hub_split(rows, classes, text="text", label="label", names=None):
    columns = {"other": list(range(rows)), label: [i % classes for i in range(rows)]}
    columns[text] = [f"text {i}" for i in range(rows)]
    return Split(columns, names, label)


# As the pages of these datasets on the hub have it.
ON_THE_HUB = {
    "agnews": ("fancyzhx/ag_news", 4, "text", "label", ("train", "test")),
    "sst2": ("SetFit/sst2", 2, "text", "label", ("train", "validation", "test")),
    "sst2_glue": ("stanfordnlp/sst2", 2, "sentence", "label", ("train", "validation", "test")),
    "imdb": ("stanfordnlp/imdb", 2, "text", "label", ("train", "test", "unsupervised")),
    "hate": ("tdavidson/hate_speech_offensive", 3, "tweet", "class", ("train",)),
}


@pytest.mark.parametrize("name", ON_THE_HUB)
def test_known_names_on_the_hub(hub, caplog, name):
    caplog.set_level(logging.INFO, "ranmask")
    hub_id, classes, text, label, splits = ON_THE_HUB[name]
    hub.datasets[hub_id] = {one: hub_split(50, classes, text, label) for one in splits}
    train, validation = load_splits(name)
    assert hub.calls == [((hub_id,), {})]  # and so never with trust_remote_code
    carved_test = 0 if "test" in splits else 10
    carved = 0 if "validation" in splits else 5 if not carved_test else 4
    assert len(train.texts) == 50 - carved - carved_test
    assert len(validation.texts) == (carved or 50)
    assert len(train.label_names) == classes == len(set(train.labels))
    assert all(int(t.split()[1]) % classes == y for t, y in pairs(train))
    assert train.note.startswith(f"hub dataset {hub_id}")
    assert f"{name}: not in a data folder, reading the hub dataset {hub_id}" in caplog.text
    if name != "sst2_glue":
        assert len(load_corpus(name, "test").texts) == (carved_test or 50)


def test_pairs_without_a_label_are_left_out_of_snli(hub):
    columns = {
        "premise": [f"p{i}" for i in range(10)],
        "hypothesis": [f"h{i}" for i in range(10)],
        "label": [0, 1, 2, -1, 0, 1, 2, -1, 0, 1],
    }
    splits = dict.fromkeys(("train", "validation", "test"), Split(columns))
    hub.datasets["stanfordnlp/snli"] = splits
    train, _ = load_splits("snli")
    assert sorted(pairs(train))[:3] == [(("p0", "h0"), 0), (("p1", "h1"), 1), (("p2", "h2"), 2)]
    assert len(train.texts) == 8
    assert train.note == (
        "hub dataset stanfordnlp/snli; 8 of 549,367 training rows (partial); "
        "2 rows without a label left out"
    )


def test_a_complete_part_is_not_called_partial(hub):
    hub.datasets["SetFit/sst2"] = dict.fromkeys(SPLITS, hub_split(1_821, 2))
    assert load_corpus("sst2", "test").note == "hub dataset SetFit/sst2"


def test_the_data_folder_comes_first(hub, data):
    hub.datasets["SetFit/sst2"] = dict.fromkeys(SPLITS, hub_split(50, 2))
    assert len(load_corpus("sst2").texts) == 50  # a data folder without sst2/
    simple(data / "sst2" / "train.parquet", 30)
    assert len(load_corpus("sst2").texts) == 30
    assert len(hub.calls) == 1


def test_neither_way(hub, monkeypatch):
    ways = (
        r"set RANMASK_DATA to a folder that holds hate_davidson/ with .*, or .*ranmask\[datasets\]"
    )
    with pytest.raises(DataError, match=f"cannot find hate: {ways}.*Couldn't reach"):
        load_corpus("hate")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=f"cannot find hate: {ways}.*not installed"):
        load_corpus("hate")


def test_a_corpus_that_is_on_no_hub(hub, data):
    expected = (
        r"holds jigsaw_part/ with train\.parquet, test\.parquet \(columns text, label\), from"
    )
    with pytest.raises(DataError, match=f"set RANMASK_DATA to a folder that {expected} https://"):
        load_splits("jigsaw_part")
    assert not hub.calls
    for part, rows in (("train", 50), ("test", 10)):
        texts = [f"{part} {number}" for number in range(rows)]
        write(
            data / "jigsaw_part" / f"{part}.parquet", texts, [number % 2 for number in range(rows)]
        )
    train, validation = load_splits("jigsaw_part")
    assert (len(train.texts), len(validation.texts)) == (45, 5)
    assert train.label_names == ("not toxic", "toxic")
    assert len(load_corpus("jigsaw_part", "test").texts) == 10


def test_any_hub_dataset(hub):
    names = ["up", "down", "left"]
    hub.datasets["owner/name"] = {
        "train": hub_split(30, 3, names=names),
        "dev": hub_split(8, 3, names=names),
        "test": hub_split(6, 3, names=names),
    }
    train, validation = load_splits("owner/name")
    assert train.label_names == ("up", "down", "left") and train.name == "owner/name"
    assert train.texts == tuple(f"text {i}" for i in permutation(30))
    assert len(validation.texts) == 8
    assert load_corpus("owner/name", "test").texts == tuple(f"text {i}" for i in range(6))
    assert load_corpus("owner/name", label_names=list("abc")).label_names == ("a", "b", "c")
    with pytest.raises(OptionError, match="3 labels"):
        load_corpus("owner/name", label_names=["a", "b"])


def test_columns_of_a_hub_dataset(hub):
    hub.datasets["plain"] = {"train": hub_split(30, 2, "review", "stars")}
    columns = Columns("review", None, "stars")
    corpus = load_corpus("plain", "validation", columns=columns)
    assert corpus.texts == tuple(f"text {i}" for i in permutation(30)[:3])
    assert corpus.label_names == ("0", "1")
    with pytest.raises(DataError, match="split train has no column 'label'; it has other, stars"):
        load_corpus("plain")
    with pytest.raises(DataError, match="no test split: it has the splits train"):
        load_corpus("plain", "test", columns=columns)


def test_unusable_hub_datasets(hub):
    with pytest.raises(DataError, match="cannot load the hub dataset owner/name: Couldn't reach"):
        load_corpus("owner/name")
    hub.datasets["owner/name"] = {"all": hub_split(30, 2)}
    with pytest.raises(DataError, match="no split train; it has all"):
        load_corpus("owner/name")
    hub.datasets["stanfordnlp/imdb"] = {"train": hub_split(30, 2)}
    with pytest.raises(DataError, match="imdb has no split test; it has train"):
        load_corpus("imdb", "test")
    split = hub_split(30, 2)
    split["text"][3], split["text"][5], split["label"][8] = None, 7, None
    hub.datasets["owner/name"] = {"train": split}
    message = "row 4: hub dataset owner/name, split train: it has no text; 2 more rows"
    with pytest.raises(DataError, match=message):
        load_corpus("owner/name")


def test_the_hub_needs_the_datasets_library():
    message = r"agnew is not .* one of agnews, .* datasets is not installed.*ranmask\[datasets\]"
    with pytest.raises(MissingDependencyError, match=message):
        load_corpus("agnew")


def test_a_folder_named_datasets_is_not_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace())
    with pytest.raises(MissingDependencyError):
        load_corpus("owner/name")


@pytest.mark.parametrize("numbers", [(1, 2), (-1, 1), (1, 2, 3)])
def test_other_habits_of_counting_are_names(tmp_path, numbers):
    path = tmp_path / "in.csv"
    rows = [f"text number {i} word,{numbers[i % len(numbers)]}" for i in range(60)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    corpus = load_corpus(str(path))
    assert corpus.label_names == tuple(str(number) for number in numbers)
    spoken = {
        int(text.split()[2]) % len(numbers): label
        for text, label in zip(corpus.texts, corpus.labels, strict=True)
    }
    assert spoken == {place: place for place in range(len(numbers))}


def test_other_columns_stay_beside_their_texts(hub, tmp_path):
    """Of a file, of a known corpus and of a dataset on the hub, in every order of rows."""
    rows = [{"text": f"text {i}", "label": i % 2, "source": f"s{i}"} for i in range(50)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    on_the_hub = Split({name: [row[name] for row in rows] for name in rows[0]})
    hub.datasets |= {"me/mine": {"train": on_the_hub}, "SetFit/sst2": {}}
    hub.datasets["SetFit/sst2"] = dict.fromkeys(SPLITS, on_the_hub)
    keep = Columns(keep=("source",))
    for name in (str(path), "me/mine", "sst2"):
        for corpus in load_splits(name, columns=keep):
            corpus = corpus.take(20)
            assert corpus.column("source") == [f"s{text.split()[1]}" for text in corpus.texts]
        found = corpus_rows(name, "validation", 3, columns=keep)
        assert [row.kept["source"][1:] for row in found.rows] == [
            row.text.split()[1] for row in found.rows
        ]
        train, validation = load_splits(name)
        assert train.kept == validation.kept == ()
        with pytest.raises(DataError, match="read without its column 'source'"):
            train.column("source")
        with pytest.raises(DataError, match="no column 'origin'"):
            load_splits(name, columns=Columns(keep=("origin",)))
    both = joined(train, train, without=validation)
    assert both.kept == ()

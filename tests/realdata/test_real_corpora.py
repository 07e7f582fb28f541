"""The real datasets are what their README says; skipped where they are not there."""

import re
from collections import Counter
from functools import cache

import pytest

from ranmask.data import SPLITS, data_folder, load_corpus, load_splits

DATA = data_folder()
README = DATA / "README.md" if DATA else None
pytestmark = pytest.mark.skipif(
    README is None or not README.is_file(),
    reason="no datasets: set RANMASK_DATA to the folder that holds them and their README.md",
)
loaded = cache(load_corpus)


def published(file):
    """Rows and rows per label of a file, from the table in the data's own README."""
    found = re.search(
        rf"^\| {re.escape(file)} \| ([\d,]+) \| ([\d /]+) \|", README.read_text(), re.MULTILINE
    )
    counts = [int(count) for count in found[2].split("/")]
    assert int(found[1].replace(",", "")) == sum(counts)
    return counts


def counted(*corpora):
    counts = Counter(label for corpus in corpora for label in corpus.labels)
    return [counts[label] for label in sorted(counts)]


@pytest.mark.parametrize(
    ("name", "split", "file"),
    [
        ("agnews", "test", "agnews/test.parquet"),
        ("sst2", "train", "sst2/train.parquet"),
        ("sst2", "validation", "sst2/dev.parquet"),
        ("sst2", "test", "sst2/test.parquet"),
        ("sst2_glue", "train", "sst2_glue/train.parquet"),
        ("sst2_glue", "validation", "sst2_glue/dev.parquet"),
        ("imdb", "test", "imdb/test.parquet"),
        ("snli", "train", "snli/train_subset.parquet"),
        ("snli", "validation", "snli/dev.parquet"),
        ("snli", "test", "snli/test.parquet"),
    ],
)
def test_parts_that_are_files(name, split, file):
    corpus = loaded(name, split)
    assert counted(corpus) == published(file)
    assert len(corpus.label_names) == len(set(corpus.labels))


@pytest.mark.parametrize(
    ("name", "file", "carved", "left_out"),
    [
        ("agnews", "agnews/train_subset.parquet", 2000, 0),
        ("imdb", "imdb/train.parquet", 2000, 14),
    ],
)
def test_validation_is_carved_from_train(name, file, carved, left_out):
    train, validation = load_splits(name)
    assert len(train.texts) == sum(published(file)) - carved
    assert len(validation.texts) == carved - left_out
    assert not set(train.texts) & set(validation.texts)
    lost = [a - b for a, b in zip(published(file), counted(train, validation), strict=True)]
    assert min(lost) >= 0 and sum(lost) == left_out
    assert load_corpus(name).sha256 == train.sha256
    assert load_corpus(name, "validation").sha256 == validation.sha256


@pytest.mark.parametrize(
    ("name", "file", "rows"),
    [
        ("hate", "hate_davidson/all.parquet", (17_844, 1_983, 4_956)),
        ("sms_spam", "sms_spam/all.parquet", (4_012, 446, 1_114)),
    ],
)
def test_one_file_is_carved_in_three(name, file, rows):
    assert sum(published(file)) == sum(rows)
    parts = (*load_splits(name), load_corpus(name, "test"))
    assert len(parts[0].texts) == rows[0]
    for part, most in zip(parts, rows, strict=True):
        # Most of its rows are left, although 403 texts of sms_spam are repeated.
        assert 0.85 * most < len(part.texts) <= most
    texts = [set(part.texts) for part in parts]
    assert len(texts[0] | texts[1] | texts[2]) == sum(map(len, texts))
    share = [count / sum(published(file)) for count in published(file)]
    for part in parts:
        found = [count / len(part.texts) for count in counted(part)]
        assert found == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize(
    ("name", "split", "sha256"),
    [
        ("agnews", "train", "67bfd7afa0373023370578d627ff50f96d26756ea0b928cf51826a0b279a101d"),
        (
            "agnews",
            "validation",
            "17c4703cc2ae632c3dc3cd8f330a201de78de03d8394998fa047a92f9f326fa4",
        ),
        ("sst2", "validation", "49e03f3b51f4871f416dffa952d4fc9413ea42785c211152617605b52ed2c3a5"),
        ("imdb", "test", "3dd65e9b08883e1caeefab8a0196027e6a59aefe46a20f68a28bf2e4e3e624a4"),
        ("hate", "test", "7b0a0737ad1dc24e2446593dfb503b06afefd9dbe2dac052670fcc90008fe5ac"),
        (
            "sms_spam",
            "validation",
            "623fded1196f8cb4bfea45943682044ee0d5b946c6eacbabe097aad7f9c5f98b",
        ),
    ],
)
def test_rows_and_their_order_are_fixed(name, split, sha256):
    """A change here makes every result that names these digests one on other data."""
    assert loaded(name, split).sha256 == sha256


@pytest.mark.parametrize("split", SPLITS)
def test_what_comes_with_ranmask_is_what_is_in_the_folder(split, tmp_path, monkeypatch):
    here = load_corpus("sms_spam", split)
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path))
    shipped = load_corpus("sms_spam", split)
    assert (shipped.texts, shipped.labels) == (here.texts, here.labels)
    assert shipped.description() == here.description()


def test_partial_files_are_told():
    notes = {
        (name, split): loaded(name, split).note
        for name, split in (
            ("agnews", "train"),
            ("snli", "train"),
            ("sst2", "test"),
            ("sst2", "train"),
        )
    }
    assert notes["agnews", "train"].startswith("66,733 of 120,000 training rows (partial); ")
    assert notes["snli", "train"] == "99,890 of 549,367 training rows (partial)"
    assert notes["sst2", "test"] == "1,221 of 1,821 test rows (partial)"
    assert notes["sst2", "train"] is None


@pytest.mark.parametrize("name", ["agnews", "sst2", "sst2_glue", "imdb", "snli", "hate"])
def test_the_first_rows_are_of_all_classes(name):
    """Also where the file is sorted: those of IMDB are, by label."""
    splits = SPLITS[:2] if name == "sst2_glue" else SPLITS
    for corpus in (loaded(name, split) for split in splits):
        first = corpus.take(400)
        assert set(first.labels) == set(corpus.labels)
        for label, count in Counter(first.labels).items():
            assert count / 400 == pytest.approx(
                corpus.labels.count(label) / len(corpus.labels), abs=0.1
            )


def test_pairs_are_premise_and_hypothesis():
    corpus = loaded("snli", "test")
    premise, hypothesis = corpus.texts[0]
    assert premise.startswith("This church choir sings to the masses")
    assert hypothesis == "The church is filled with song."
    assert corpus.label_names[corpus.labels[1]] == "contradiction"

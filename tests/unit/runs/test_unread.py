"""Rows whose reader did not answer: the same call asks again about them, and about no others."""

import os
import warnings
from pathlib import Path

import pytest

from ranmask import ProtectedClassifier, RunEvents, Sharding, certify_file
from ranmask.errors import ReaderWarning
from ranmask.models.testing import keyword_classifier
from ranmask.results.files import DRAFT
from ranmask.runs.result_file import read_header, result_rows
from ranmask.runs.shards.folder import read_manifest
from ranmask.runs.stored import stored_lines

REPAIRED = "RANMASK_TEST_REPAIRED"  # a file: the reader answers once it is there


def load(refused=("film 1 ", "film 4 ", "film 5 "), asked=None):
    """A reader that answers for none of the ``refused`` texts before it was repaired."""

    def read(texts):
        for text in texts:
            if any(part in text for part in refused) and not Path(os.environ[REPAIRED]).exists():
                raise RuntimeError("overloaded")
        (asked if asked is not None else []).extend(texts)
        return [[0.0, 1.0]] * len(texts)

    read.__qualname__ = "read"
    return ProtectedClassifier(
        keyword_classifier, reader=read, reader_weights=(2,), keep=1, labels=["bad", "good"]
    )


@pytest.fixture
def repaired(tmp_path, monkeypatch):
    path = tmp_path / "repaired"
    monkeypatch.setenv(REPAIRED, str(path))
    return path


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("".join(f"good film {number} bad good\n" for number in range(1, 8)))
    return path


@pytest.fixture
def half_read(source, tmp_path, repaired):
    """A finished file with three rows that were not read; then the reader is repaired."""
    out = tmp_path / "out.jsonl"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReaderWarning)
        summary = certify_file(load(), source, out)
    assert summary.reader_failed == 3
    assert [row["row"] for row in result_rows(out) if row["reader"] == "failed"] == [1, 4, 5]
    repaired.touch()
    return out


def whole(source, tmp_path):
    """What a reader that always answered would have left."""
    out = tmp_path / "whole.jsonl"
    certify_file(load(), source, out)
    return list(result_rows(out))


def test_they_are_asked_about_again(half_read, source, tmp_path):
    asked, told = [], []
    events = RunEvents(started=lambda *rows: told.append(rows), trouble=told.append)
    summary = certify_file(load(asked=asked), source, half_read, events=events)
    assert sorted(set(asked)) == [f"good film {number} bad good" for number in (1, 4, 5)]
    assert told == [
        (7, 4),
        "the reader did not answer for 3 of the rows that are done: it is asked again",
    ]
    assert summary.reader_failed == 0 and summary.rows == 7
    assert list(result_rows(half_read)) == whole(source, tmp_path)
    assert "reader_failed" not in read_header(half_read)["finished"]
    before = half_read.read_bytes()
    certify_file(load(asked=asked), source, half_read)  # nothing is left to do
    assert half_read.read_bytes() == before and len(set(asked)) == 3


def test_a_run_that_had_stopped_goes_on_behind_them(source, tmp_path, repaired):
    out = tmp_path / "out.jsonl"

    def stop(row):
        raise KeyboardInterrupt

    with pytest.warns(ReaderWarning), pytest.raises(KeyboardInterrupt):
        certify_file(load(), source, out, events=RunEvents(progress=stop))
    assert [row["reader"] for row in result_rows(out)] == ["failed"]
    repaired.touch()
    certify_file(load(), source, out)
    assert list(result_rows(out)) == whole(source, tmp_path)


def test_what_fails_again_stays_as_it_was(half_read, source, repaired):
    rows = list(result_rows(half_read))
    repaired.unlink()
    with pytest.warns(ReaderWarning, match="overloaded"):
        assert certify_file(load(), source, half_read).reader_failed == 3
    assert list(result_rows(half_read)) == rows


@pytest.mark.parametrize("left", [b"", b'{"format"'])
def test_an_interruption_changes_nothing(half_read, source, left):
    draft = half_read.with_name(half_read.name + DRAFT)
    before = half_read.read_bytes()

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        certify_file(load(), source, half_read, events=RunEvents(progress=stop))
    assert half_read.read_bytes() == before
    assert sorted(path.name for path in half_read.parent.iterdir()) == [
        "in.txt",
        "out.jsonl",
        "repaired",
    ]
    draft.write_bytes(left)
    assert certify_file(load(), source, half_read).reader_failed == 0


def test_shards(source, tmp_path, repaired, capfd):
    """A shard with such a row is done again as a whole; the others are left alone."""
    out, told = tmp_path / "out", []
    events = RunEvents(trouble=told.append)
    sharding = Sharding(3, workers=1)  # rows 1 to 3; 4 to 6; 7
    summary = certify_file(load, source, out, sharding=sharding, events=events)
    assert summary.reader_failed == 3
    assert [part.unread for part in read_manifest(out).parts] == [1, 2, 0]
    assert sorted(told) == [
        f"shard {number}: the reader did not answer for {rows} of 3 texts, which their copies "
        "decide alone: it raised RuntimeError: overloaded"
        for number, rows in [(0, 1), (1, 2)]
    ]
    assert "Warning" not in capfd.readouterr().err
    last = (out / "part-00002.parquet").stat().st_mtime_ns
    repaired.touch()
    told.clear()
    summary = certify_file(load, source, out, sharding=sharding, events=events)
    assert summary.reader_failed == 0 and summary.rows == 7
    assert told == ["the reader did not answer for 3 of the rows that are done: it is asked again"]
    assert (out / "part-00002.parquet").stat().st_mtime_ns == last
    assert list(stored_lines(out)) == whole(source, tmp_path)

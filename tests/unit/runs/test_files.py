"""Places that no file can be written to: told in words, and nothing is changed there."""

import os
from pathlib import Path

import pytest

from ranmask.errors import OutputError
from ranmask.results.files import check_file, check_same_run
from ranmask.runs.result_file import ResultFile, check_result_file
from ranmask.runs.shards.folder import ShardFolder


def there(folder):
    return sorted(folder.iterdir()), sorted(Path("/dev").iterdir())


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (".", "it is a folder; give the name of a file"),
        ("/", "it is a folder"),
        ("..", "it is a folder"),
        ("pipe", "it is no ordinary file"),
        ("/dev/null", "it is no ordinary file"),
        ("/dev/full", "it is no ordinary file"),
        ("/dev/stdout", "it is no ordinary file"),
        ("-", "it is no ordinary file"),
        ("absent/out.jsonl", r"there is no folder .*absent; make it first"),
        ("file/out.jsonl", "there is no folder"),
        ("n" * 300 + ".jsonl", "File name too long"),
    ],
)
def test_no_place_for_a_file(place, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    before = there(tmp_path)
    for check in (check_file, check_result_file, lambda path: ResultFile(path, {}).__enter__()):
        with pytest.raises(OutputError, match="cannot write") as raised:
            check(Path(place))
        assert raised.match(problem)
        assert "What was written before" not in str(raised.value)
    assert there(tmp_path) == before


def test_no_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as root, all may be written
    with pytest.raises(OutputError, match="permission denied"):
        check_file(tmp_path / "out.jsonl")


def test_a_file_that_is_there_or_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.jsonl").touch()
    for name in ("there.jsonl", "new.jsonl", "new", "new.v2"):
        check_result_file(tmp_path / name)
        check_result_file(Path(name))


@pytest.mark.parametrize("ending", [".csv", ".TSV", ".parquet", ".pq", ".json", ".xlsx", ".gz"])
def test_a_name_that_promises_another_format(ending, tmp_path):
    with pytest.raises(OutputError, match=r"are written as JSON lines.*name it .*out\.jsonl"):
        ResultFile(tmp_path / f"out{ending}", {})
    check_file(tmp_path / f"out{ending}")
    assert not list(tmp_path.iterdir())


def test_a_sharded_run_needs_a_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="it is a file, and a sharded run writes a folder"):
        ShardFolder(tmp_path / "file", {}, 0).__enter__()
    with pytest.raises(OutputError, match="cannot write") as raised:
        ShardFolder(tmp_path / "file" / "inside", {}, 0).__enter__()
    assert "What was written before" not in str(raised.value)


def test_another_run_is_told_by_what_differs_each_once(tmp_path):
    one = {"input": {"sha256": "a", "columns": []}, "base": {"kind": "words", "sha256": "b"}}
    other = {"input": {"sha256": "c", "columns": []}, "base": {"kind": "words", "sha256": "d"}}
    seeds = {"options": {"seed": 0}}, {"options": {"seed": 1}, "reader": {"base": {"sha256": "e"}}}
    with pytest.raises(OutputError, match=r"run \(different: base, input, reader, seed\): "):
        check_same_run(one | seeds[0], other | seeds[1], tmp_path / "out.jsonl")
    with pytest.raises(OutputError, match=r"run \(different: sha256\): "):
        check_same_run({"sha256": "a"}, {"sha256": "b"}, tmp_path / "out.jsonl")

"""``ranmask data``: what is known, where it is, how to get it; the hub is made up here."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands import run_cli
from ranmask.data import load_corpus, origins
from ranmask.data.known import KNOWN


class Split(dict):
    """A split of a hub dataset, as far as it is used."""

    @property
    def column_names(self):
        return list(self)


def split(rows, **columns):
    return Split({name: [value(row) for row in range(rows)] for name, value in columns.items()})


HUB = {
    "fancyzhx/ag_news": {
        part: split(rows, text=lambda row: f"text {row}", label=lambda row: row % 4)
        for part, rows in (("train", 40), ("test", 8))
    },
    "stanfordnlp/snli": dict.fromkeys(
        ("train", "validation", "test"),
        split(
            12,
            premise=lambda row: f"p{row}",
            hypothesis=lambda row: f"h{row}",
            label=lambda row: row % 4 - 1,
        ),
    ),
    "tdavidson/hate_speech_offensive": {
        "train": split(60, tweet=lambda row: f"text {row}", **{"class": lambda row: row % 3})
    },
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty data folder, and a hub."""

    def load_dataset(name):
        if name not in HUB:
            raise ConnectionError(f"Couldn't reach {name}")
        return HUB[name]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path))
    return tmp_path


def failed(*words, code=1):
    done = run_cli("data", *words)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith("error: ")
    return done.stderr


def test_list(folder):
    (folder / "imdb").mkdir()
    (folder / "imdb" / "train.parquet").touch()
    done = run_cli("data", "list")
    assert done.exit_code == 0
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert list(lines) == list(KNOWN)
    assert lines["sms_spam"].endswith("sms_spam.jsonl.gz, with ranmask")
    assert lines["imdb"].endswith(f"{folder / 'imdb'}, without test.parquet")
    assert lines["snli"].endswith(
        "not here: set RANMASK_DATA to a folder that holds snli/ with train_subset.parquet, "
        "dev.parquet, test.parquet (columns premise, hypothesis, label), from "
        "https://huggingface.co/datasets/stanfordnlp/snli; or: ranmask data get snli"
    )
    assert "spamassassin.apache.org" in lines["spamassassin"]
    assert "data get" not in lines["spamassassin"]


def test_list_as_json(folder):
    done = run_cli("data", "list", "--json")
    found = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert found["sms_spam"]["shipped"] is True and found["sms_spam"]["missing"] == []
    assert Path(found["sms_spam"]["place"]).is_file()
    assert found["hate"]["place"] is None and found["hate"]["missing"] == ["all.parquet"]
    assert "CC BY 4.0" in found["sms_spam"]["terms"]


def test_path(folder):
    shipped = Path(run_cli("data", "path", "sms_spam").stdout.strip())
    assert shipped.is_file() and (shipped.parent / "NOTICE.md").is_file()
    assert "agnews is not here: set RANMASK_DATA" in failed("path", "agnews")
    (folder / "agnews").mkdir()
    (folder / "agnews" / "test.parquet").touch()
    assert "agnews has no train_subset.parquet: set RANMASK" in failed("path", "agnews")
    (folder / "agnews" / "train_subset.parquet").touch()
    assert run_cli("data", "path", "agnews").stdout == f"{folder / 'agnews'}\n"


@pytest.mark.parametrize(
    ("name", "inside", "rows"), [("agnews", "agnews", 36), ("hate", "hate_davidson", 43)]
)
def test_get(folder, name, inside, rows):
    from_hub = load_corpus(name)
    done = run_cli("data", "get", name)
    assert (done.exit_code, done.stdout) == (0, f"{folder / inside}\n")
    assert sorted(path.name for path in (folder / inside).iterdir()) == sorted(
        KNOWN[name].files.values()
    )
    assert list(folder.iterdir()) == [folder / inside]
    sys.modules["datasets"] = None
    corpus = load_corpus(name)
    assert len(corpus.texts) == rows
    assert (corpus.texts, corpus.labels) == (from_hub.texts, from_hub.labels)
    again = run_cli("data", "get", name)
    assert again.exit_code == 0 and "is here already" in again.stderr


def test_get_pairs_without_those_that_have_no_label(folder):
    assert run_cli("data", "get", "snli").exit_code == 0
    corpus = load_corpus("snli", "test")
    assert len(corpus.texts) == 9 and corpus.texts[0] == ("p1", "h1")


def test_get_into_another_folder(tmp_path, monkeypatch):
    done = run_cli("data", "get", "hate", "--folder", tmp_path / "new")
    assert done.exit_code == 0 and f"set RANMASK_DATA={tmp_path / 'new'}" in done.stderr
    monkeypatch.setenv("RANMASK_DATA", str(tmp_path / "new"))
    assert run_cli("data", "path", "hate").exit_code == 0
    there = failed("get", "hate", "--folder", tmp_path / "new")
    assert "is there already: remove it to get hate again" in there


def test_what_is_shipped_need_not_be_got(folder):
    done = run_cli("data", "get", "sms_spam")
    assert done.exit_code == 0 and "is here already" in done.stderr
    assert not list(folder.iterdir())


def test_what_cannot_be_got(folder, monkeypatch):
    assert "Couldn't reach stanfordnlp/imdb" in failed("get", "imdb")
    assert "enron_spam is on no hub: set RANMASK_DATA" in failed("get", "enron_spam")
    assert "must be one of agnews, " in failed("get", "mails", code=2)
    assert "must be one of agnews, " in failed("path", "mails", code=2)
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'ranmask[datasets]'" in failed("get", "agnews")
    assert not list(folder.iterdir())
    monkeypatch.setenv("RANMASK_DATA", str(folder / "nowhere"))
    assert "is not a folder: correct it or unset it" in failed("list")


def test_without_a_data_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(origins, "__file__", str(tmp_path / "a/src/ranmask/data/origins.py"))
    monkeypatch.delenv("RANMASK_DATA")
    monkeypatch.chdir(tmp_path)
    assert "there is no data folder: set RANMASK_DATA to one" in failed("get", "hate", code=2)


def test_nothing_is_left_of_what_fails(folder, monkeypatch):
    broken = split(10, text=lambda row: "a", other=lambda row: 0)
    monkeypatch.setitem(HUB, "fancyzhx/ag_news", {**HUB["fancyzhx/ag_news"], "test": broken})
    assert "has no column 'label'" in failed("get", "agnews")
    assert not list(folder.iterdir())

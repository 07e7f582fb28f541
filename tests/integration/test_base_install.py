"""What ``pip install ranmask`` is enough for, with none of the extras: tried in new processes."""

import json
import subprocess
import sys

import pytest

ABSENT = {
    *("torch", "transformers", "huggingface_hub", "pyarrow", "scipy", "sklearn", "matplotlib"),
    *("datasets", "nltk", "rapidfuzz", "fastapi", "uvicorn", "ray", "pandas", "tensorflow"),
}
HIDE = f"import sys; sys.modules.update(dict.fromkeys({sorted(ABSENT)!r}))\n"
COMMAND = """
import runpy
sys.argv[0] = "ranmask"
runpy.run_module("ranmask.cli", run_name="__main__")
"""
WON = "WINNER!! You have won a FREE prize, call now to claim your reward"


def python(code, *arguments, folder):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", HIDE + code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def ranmask(*arguments, folder):
    return python(COMMAND, *map(str, arguments), folder=folder)


def lines(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def table(tmp_path):
    """A file of labelled texts, as somebody has it."""
    rows = [
        f"{text} number {number},{label}"
        for number in range(30)
        for text, label in (("free prize call now", "spam"), ("see you at lunch", "ham"))
    ]
    path = tmp_path / "my.csv"
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


def test_what_is_absent_is_absent(tmp_path):
    for name in ABSENT:
        assert "ModuleNotFoundError" in python(f"import {name}", folder=tmp_path).stderr


@pytest.mark.parametrize("name", ["news", "news-words", "reviews", "reviews-words"])
def test_models_that_come_with_it(name, tmp_path):
    code = (
        "from ranmask import load_classifier, load_default\n"
        f"smoothed = load_default({name!r})\n"
        "[result] = smoothed.certify(['shares of airlines fell on the stock exchange'])\n"
        "assert result.guarantee and result.radius is not None\n"
        "smoothed.save_pretrained('saved')\n"
        "again = load_classifier('saved')\n"
        "assert again.certify(['shares fell']) == smoothed.certify(['shares fell'])\n"
    )
    done = python(code, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_function(tmp_path):
    code = (
        "from ranmask import SmoothedClassifier\n"
        "def classify(texts): return [[1, 0]] * len(texts)\n"
        "smoothed = SmoothedClassifier(classify, keep=1, certificate='ablation')\n"
        "assert smoothed.certify(['a b c'])[0].guarantee\n"
    )
    done = python(code, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_certify_a_text(tmp_path):
    [row] = lines(ranmask("certify", "Striker scores twice in the cup final", folder=tmp_path))
    assert (row["label"], row["reader"], row["guarantee"]) == ("Sports", "answered", True)


def test_detect(tmp_path):
    [row] = lines(ranmask("detect", "--model", "spam-sms", WON, folder=tmp_path))
    assert row["flagged"] is True


def test_the_corpus_that_comes_with_it(tmp_path):
    rows = lines(ranmask("detect", "--model", "spam-sms", "--data", "sms_spam", folder=tmp_path))
    assert len(rows) == 990 and 90 < sum(row["flagged"] for row in rows) < 120
    done = ranmask("data", "path", "sms_spam", folder=tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("sms_spam.jsonl.gz\n")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "txt"])
def test_files(suffix, tmp_path):
    content = {
        "csv": "text\nfree prize\n",
        "tsv": "text\nfree prize\n",
        "jsonl": '{"text": "free prize"}\n',
        "txt": "free prize\n",
    }
    (tmp_path / f"in.{suffix}").write_text(content[suffix])
    done = ranmask("certify", "--input", f"in.{suffix}", "--output", "out.jsonl", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.jsonl").read_text().splitlines()[-1])


def test_a_word_table_is_trained_and_used(table, tmp_path):
    done = ranmask(
        *("train", "--kind", "words", "--data", table, "--output", "made"), folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    [row] = lines(ranmask("certify", "--model", "made", "free prize", folder=tmp_path))
    assert row["label"] == "spam"


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("certify", "--input", "in.parquet", "--output", "out.jsonl"), "parquet"),
        (("certify", "--input", "my.csv", "--output", "out", "--shard-rows", 10), "parquet"),
        (("certify", "--model", "folder", "--keep", 2, "a text"), "hf"),
        (("train", "--data", "my.csv", "--base", "folder", "--keep", 2, "--output", "o"), "train"),
        (("serve",), "serve"),
        (("attack", "--recipe", "deepwordbug", "--data", "sms_spam", "--rows", 1), "attacks"),
        (("data", "get", "hate"), "datasets"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1],
)
def test_what_needs_more_names_the_command(arguments, extra, table, tmp_path):
    (tmp_path / "in.parquet").write_bytes(b"PAR1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").write_text("{}")
    done = ranmask(*arguments, folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith(f"is not installed: pip install 'ranmask[{extra}]'\n")
    assert done.stderr.count("\n") == 1
    assert not any((tmp_path / name).exists() for name in ("out", "out.jsonl", "o"))

"""The rows that `readers` learns from and answers for: the same parts and folds each time."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.finetuning import FOLDS, Floats, folds_of, letters, read_rows, rows_of, shuffled
from ranmask.errors import DataError
from ranmask.results.files import check_format, write_file

FORMAT, VERSION = "ranmask-readers", 1
HELD_OUT = {"agnews": 4000, "imdb": 2500}  # training rows for validation; SST2 has its own
MOST_TAUGHT = 150_000  # sentences that SST2 is taught by
SURE = 0.9  # the least probability of what a sentence teaches

_SENTENCE = re.compile(r"(?<=[.!?])[\"')]*\s+|(?:<br />\s*)+")


def prepare(data: Path, output: Path) -> None:
    """Write the rows of all corpora."""
    output.mkdir(parents=True, exist_ok=True)
    _write(output, "agnews", agnews_rows(data))
    imdb = imdb_rows(data)
    _write(output, "imdb", imdb)
    _write(output, "sst2", {**sst2_rows(data), "extra": sentences_of(imdb["train"])})


def _write(output: Path, corpus: str, rows: dict[str, Any]) -> None:
    path = output / f"{corpus}.json.xz"
    content = {"format": FORMAT, "version": VERSION, **rows}
    write_file(path, lzma.compress(json.dumps(content).encode()))
    counts = (
        f"{len(rows[part]):,} {part}" for part in ("train", "val", "test", "extra") if part in rows
    )
    print(f"{path}: {', '.join(counts)}", flush=True)


def agnews_rows(data: Path) -> dict[str, Any]:
    """The rows of AG News, those of ``agnews_extra`` among them."""
    train = [data / "agnews" / "train_subset.parquet", data / "agnews_extra" / "train.parquet"]
    return _carved(train, data / "agnews" / "test.parquet", HELD_OUT["agnews"], classes=4)


def imdb_rows(data: Path) -> dict[str, Any]:
    """The rows of IMDB."""
    folder = data / "imdb"
    train, test = [folder / "train.parquet"], folder / "test.parquet"
    return _carved(train, test, HELD_OUT["imdb"], classes=2)


def _carved(files: Sequence[Path], test: Path, count: int, classes: int) -> dict[str, Any]:
    """Rows with a validation part carved from train."""
    texts, labels = rows_of(files, [test])
    held, rest = np.split(shuffled(len(texts)), [count])
    parts = {
        "train": [(texts[row], labels[row]) for row in rest],
        "val": [(texts[row], labels[row]) for row in held],
        "test": list(read_rows(test)),
    }
    return {"classes": classes, **_columns(parts), "folds": folds_of(len(rest)).tolist()}


def _columns(parts: dict[str, list[tuple[str, int]]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for part, rows in parts.items():
        columns[part] = [text for text, _ in rows]
        columns[f"{part}_labels"] = [label for _, label in rows]
    return columns


def sst2_rows(data: Path) -> dict[str, Any]:
    """The sentences of SST2 and the phrases of GLUE, which are in the fold of their sentence."""
    train, phrases = data / "sst2" / "train.parquet", data / "sst2_glue" / "train.parquet"
    rest = {
        part: data / "sst2" / f"{file}.parquet" for part, file in (("val", "dev"), ("test", "test"))
    }
    texts, labels = rows_of([train, phrases], list(rest.values()))
    sentences = [text for text, _ in read_rows(train)]
    draw = np.random.default_rng(1)
    own: dict[str, int] = {}
    within: dict[str, int] = {}
    for sentence, fold in zip(
        sentences, draw.integers(0, FOLDS, len(sentences)).tolist(), strict=True
    ):
        own.setdefault(letters(sentence), fold)
        for phrase in phrases_of(sentence):
            within.setdefault(phrase, fold)
    folds, lost = [], 0
    for key in map(letters, texts):
        fold = own.get(key, within.get(key))
        if fold is None:
            lost += 1
            fold = int(draw.integers(0, FOLDS))
        folds.append(fold)
    print(f"sst2: {lost:,} of {len(texts):,} texts are in no sentence", flush=True)
    parts = {"train": list(zip(texts, labels, strict=True))}
    parts |= {part: list(read_rows(file)) for part, file in rest.items()}
    phrase = [int(letters(text) not in own) for text in texts]
    return {"classes": 2, **_columns(parts), "folds": folds, "phrase": phrase}


def phrases_of(sentence: str) -> Iterator[str]:
    """The letters of everything that stands in a sentence, of up to 50 words."""
    words = sentence.lower().replace("-lrb-", "(").replace("-rrb-", ")").split()
    for first in range(len(words)):
        for last in range(first + 1, min(len(words), first + 50) + 1):
            yield letters(" ".join(words[first:last]))


def sentences_of(reviews: Sequence[str]) -> list[str]:
    """The different sentences of 3 to 40 words, shuffled."""
    found = []
    for review in reviews:
        for sentence in _SENTENCE.split(review):
            words = sentence.replace("<br />", " ").split()
            if 3 <= len(words) <= 40:
                found.append(" ".join(words))
    found = list(dict.fromkeys(found))
    random.Random(0).shuffle(found)
    return found


def prepared(work: Path, corpus: str, most: int | None) -> dict[str, Any]:
    """The rows of a corpus, or the first ``most`` of each part."""
    path = work / f"{corpus}.json.xz"
    try:
        rows = json.loads(lzma.decompress(path.read_bytes()))
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}; write it with prepare") from error
    check_format(rows, FORMAT, VERSION, str(path))
    return {name: part[:most] if isinstance(part, list) else part for name, part in rows.items()}


def sure_sentences(sentences: list[str], path: Path) -> tuple[list[str], Floats]:
    """Sentences, and what ``whole`` says of them, where it is sure."""
    try:
        with np.load(path, allow_pickle=False) as found:
            said = found["extra"].astype(np.float32)
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"no answers to sentences in {path}: run --kind whole first") from error
    if len(said) != len(sentences):
        raise DataError(
            f"{path} has answers to {len(said):,} sentences, not {len(sentences):,}: run --kind "
            "whole with the same --rows first"
        )
    sure = np.flatnonzero(said.max(axis=1) > SURE)
    sure = np.random.default_rng(2).permutation(sure)[:MOST_TAUGHT]
    return [sentences[row] for row in sure], said[sure]

r"""Word tables beside a 110M encoder on AG News, IMDB and SST2: the figures of docs/protect.md.

    python -m benchmarks.protect_figures --work work [--row "IMDB, 1 word"] [--seeds 5]

``--work`` holds what `benchmarks.readers` made there: rows, and an encoder's answers to them, to
the training rows out of fold.  Each row of the page is a table that learns beside these answers;
weights of the whole text and its segments that are chosen on validation rows (`LevelSearch`, as
`ranmask protect` does) for several accuracies; and the exact certificates of the test rows under
each: a curve, from which the page reads a point.  Written to ``benchmarks/protect_figures.json`` as
each is done.  Minutes a row, on one core.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask import SmoothedClassifier
from ranmask.training.choosing import Weighed, calls_of, measured, read_texts
from ranmask.training.level_search import LevelSearch
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table

RESULTS = Path(__file__).with_name("protect_figures.json")
MOST_WORDS = 10
STEP = 0.0025  # between accuracies that weights are chosen for
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One row of the page.

    ``reader``: whose answers vote beside the table; None: the table is alone.  ``accuracy``: what
    is aimed at; ``words``: changed words that weights are chosen for, the more often the more.
    ``taught``: the table also learns from sentences that the encoder labelled and was surer of
    than this; labelled texts then count ``labelled`` times.
    """

    name: str
    corpus: str
    reader: str | None
    accuracy: float
    words: tuple[int, ...]
    table: WordTableOptions
    taught: float | None = None
    labelled: int = 1


def _table(weight: float, target: int, accuracy: float, temperature: float) -> WordTableOptions:
    return WordTableOptions(
        whole_weight=weight,
        target_words=target,
        accuracy_weight=accuracy,
        temperature=temperature,
    )


ROWS = (
    Row("AG News, 1 word", "agnews", "sum", 0.935, (1,), _table(0, 1, 0, 1)),
    Row("AG News, 5 words", "agnews", "whole", 0.930, (1, 2, 3, 4, 5), _table(3, 1, 0, 2)),
    Row("IMDB, 1 word", "imdb", "sum", 0.932, (1,), _table(2, 1, 0, 3)),
    Row(
        "IMDB, 5 words",
        "imdb",
        "sum",
        0.910,
        (1, 5, 5, 5),
        replace(_table(4, 1, 0, 4), learning_rate=0.02),
    ),
    Row("SST2, 1 word", "sst2", "sum", 0.890, (1,), _table(0, 1, 0.3, 1.5), 0.95, 5),
    Row("SST2, 2 words", "sst2", "sum", 0.890, (2,), _table(1, 1, 0.3, 1.5), 0.95, 5),
    Row("SST2, table alone", "sst2", None, 0.0, (1, 2), _table(0, 1, 0.3, 1.5), 0.95, 5),
)


class Work:
    """Rows and answers that `benchmarks.readers` made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[str, dict[str, Any]] = {}

    def rows(self, corpus: str) -> dict[str, Any]:
        """Texts and labels of the parts."""
        if corpus not in self._rows:
            with lzma.open(self._folder / f"{corpus}.json.xz", "rt") as file:
                self._rows = {corpus: json.load(file)}
        return self._rows[corpus]

    def answers(self, corpus: str, kind: str) -> dict[str, Scores]:
        """What an encoder says, (texts, nodes, classes); zeros of an empty segment."""
        with np.load(self._folder / f"{corpus}-{kind}.npz") as file:
            return {name: np.nan_to_num(file[name].astype(np.float64)) for name in file.files}


def learned(work: Work, row: Row, seed: int) -> SmoothedClassifier:
    """The table of a row."""
    rows, whole = work.rows(row.corpus), work.answers(row.corpus, "whole")
    texts, labels = rows["train"] * row.labelled, rows["train_labels"] * row.labelled
    said = np.concatenate([whole["oof"][:, 0]] * row.labelled)
    if row.taught is not None:
        extra = whole["extra"].reshape(-1, said.shape[1])
        sure = np.flatnonzero(extra.max(axis=1) >= row.taught)
        texts = texts + [rows["extra"][place] for place in sure]
        labels = labels + extra[sure].argmax(axis=1).tolist()
        said = np.concatenate([said, extra[sure]])
    options = replace(row.table, seed=seed)
    beside = np.eye(said.shape[1])[said.argmax(axis=1)] if options.whole_weight else None
    names = [str(place) for place in range(said.shape[1])]
    table = train_word_table(texts, labels, names, options=options, whole=beside)
    return SmoothedClassifier(table, **table_smoothing(options.resolved(texts)))


def figures(work: Work, row: Row, seed: int) -> dict[str, Any]:
    """Learn, choose on validation rows, and certify the test rows."""
    began = time.perf_counter()
    rows, copies = work.rows(row.corpus), learned(work, row, seed)
    seconds = time.perf_counter() - began
    said = work.answers(row.corpus, row.reader or "whole")
    labels = {part: np.array(rows[f"{part}_labels"]) for part in ("val", "test")}
    parts = {
        part: list(read_texts(copies, rows[part], said[part], labels[part])) for part in labels
    }
    weights: list[tuple[float, ...]] = [(0.0,)]
    if row.reader:
        search = LevelSearch(parts["val"], max(row.words))
        asked = row.accuracy + np.arange(-8, 7) * STEP
        best = [search.best(row.words, accuracy)[:1] for accuracy in asked]
        weights = list(dict.fromkeys(chain.from_iterable(best)))
    found = {part: measured(texts, weights) for part, texts in parts.items()}
    curve = [
        {"weights": list(one), "calls": calls_of(one), "val": _shares(val), "test": _shares(test)}
        for one, val, test in zip(weights, found["val"], found["test"], strict=True)
    ]
    own = {
        part: round(float((said[part][:, 0].argmax(axis=1) == labels[part]).mean()), 4)
        for part in labels
    }
    return {
        "row": row.name,
        "seed": seed,
        "aim": row.accuracy,
        "texts": {part: len(labels[part]) for part in labels},
        "encoder": own if row.reader else None,
        "table": {name: value for name, value in asdict(row.table).items() if value is not None},
        "table_seconds": round(seconds, 1),
        "curve": curve,
    }


def _shares(found: Weighed) -> list[float]:
    """Accuracy, then the shares that are right and proved at 1, 2, ... changed words."""
    shares = [found.accuracy(), *(found.share(words) for words in range(1, MOST_WORDS + 1))]
    return [round(float(share), 4) for share in shares]


def point(result: dict[str, Any]) -> dict[str, Any]:
    """Of a curve, what proves most on test with the accuracy aimed at; else the most accurate."""
    words = next(row.words for row in ROWS if row.name == result["row"])
    reached = [one for one in result["curve"] if one["test"][0] >= result["aim"]]
    if not reached:
        return max(result["curve"], key=lambda one: one["test"][0])
    return max(reached, key=lambda one: sum(one["test"][number] for number in words))


def page(results: Sequence[dict[str, Any]]) -> str:
    """The table of docs/protect.md."""
    lines = [
        "| | encoder alone | weights: whole, halves, ... | calls | accuracy | CR@1 2 3 4 5 |",
        "|---|---:|---|---:|---:|---|",
    ]
    for row in ROWS:
        found = [one for one in results if one["row"] == row.name]
        if found:
            first = min(found, key=lambda one: one["seed"])
            best, own = point(first), first["encoder"]
            weights = ", ".join(f"{weight:g}" for weight in best["weights"]) if own else "-"
            alone = _short(own["test"]) if own else "-"
            accuracy, *proved = map(_short, best["test"][:6])
            cells = (row.name, alone, weights, str(best["calls"]), accuracy, " ".join(proved))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def main() -> None:
    """Rows that are not there yet are measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--work", type=Path, help="else the page's table is printed")
    parser.add_argument("--row", choices=[row.name for row in ROWS], help="this one only, again")
    parser.add_argument("--seeds", type=int, default=1, help="tables of a row")
    given = parser.parse_args()
    there = json.loads(RESULTS.read_text()) if RESULTS.is_file() else []
    if given.work is None:
        print(page(there), end="")
        return
    work = Work(given.work)
    for row in ROWS:
        if given.row in (None, row.name):
            for seed in range(given.seeds):
                known = [one for one in there if (one["row"], one["seed"]) == (row.name, seed)]
                if known and not given.row:
                    continue
                result = figures(work, row, seed)
                there = [one for one in there if one not in known] + [result]
                RESULTS.write_text(json.dumps(there, indent=1) + "\n")
                print(f"{row.name}, seed {seed}:", point(result), flush=True)


if __name__ == "__main__":
    main()

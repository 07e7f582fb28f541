"""How the shipped `news` and `reviews` were made: all of it, tiny."""

import json
import lzma
import random
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_models
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import distil, distil_reviews
from benchmarks.finetuning import Document

from ranmask import ProtectedClassifier, load_classifier

TOPICS = (("plot", "story", "acting"), ("good", "great", "fine"), ("bad", "awful", "dull"))


def written(path, rows):
    texts, labels = zip(*rows, strict=True)
    pq.write_table(pa.table({"text": texts, "label": labels}), path)
    return path


def topical(count):
    draw = random.Random(7)
    rows = []
    for number in range(count):
        label = draw.randrange(3)
        words = [*draw.choices(TOPICS[label], k=5), "the", f"x{number}"]
        rows.append((" ".join(words), label))
    return rows


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(distil, "POSITIONS", 32)
    monkeypatch.setattr(distil, "LONGEST", 24)
    model, tokenizer = tiny_models.bert()
    model.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    rows = topical(120)
    return {
        "encoder": str(tmp_path / "encoder"),
        "texts": str(written(tmp_path / "train.parquet", rows)),
        "without": str(written(tmp_path / "test.parquet", rows[:5])),
        "output": tmp_path / "made",
        "tokens": str(len(tokenizer) - 3),
    }


def test_all_of_it(folders, capsys):
    given = ("--labels", "neutral", "good", "bad", "--held-out", "20", "--rows", "100")
    made = distil.made(
        distil.parser().parse_args(
            [
                *("--texts", folders["texts"], "--without", folders["without"]),
                *("--teacher", folders["encoder"], "--student", folders["encoder"]),
                *("--tokens", folders["tokens"], "--output", str(folders["output"]), *given),
            ]
        )
    )
    said = capsys.readouterr().out
    assert "80 texts, 20 held out" in said
    assert "held out: accuracy" in said
    loaded = load_classifier(str(folders["output"]))
    assert isinstance(loaded, ProtectedClassifier)
    assert loaded.labels == ("neutral", "good", "bad")
    assert loaded.options.reader_weights == (distil.WEIGHT,)
    texts = ["a good , great film", "the plot was awful", "acting x3 story"]
    assert loaded.certify(texts) == made.certify(texts)
    config = transformers.AutoConfig.from_pretrained(folders["output"] / "reader")
    assert (config.num_hidden_layers, config.max_position_embeddings) == (1, 32)
    assert config.vocab_size == int(folders["tokens"])
    assert str(config.dtype).endswith("float16")


def test_a_student_of_segments(folders, monkeypatch):
    """`benchmarks.distil_reviews`, by which the shipped `reviews` was made."""
    monkeypatch.setattr(distil_reviews, "LONGEST", 24)
    monkeypatch.setattr(distil_reviews, "DRAWS", 2)
    work, draw = folders["output"].parent, np.random.default_rng(0)
    model, _ = tiny_models.bert()
    model.base_model.save_pretrained(folders["encoder"])  # without a head of three classes
    texts, labels = zip(*[(text, label % 2) for text, label in topical(90)], strict=True)
    folds = draw.integers(0, 3, len(texts)).tolist()
    with lzma.open(work / "imdb.json.xz", "wt") as file:
        json.dump({"train": texts, "train_labels": labels, "folds": folds}, file)
    oof = draw.dirichlet((1, 1), (len(texts), 31)).astype(np.float16)
    oof[:, 20:] = np.nan
    np.savez(work / "imdb-segments.npz", oof=oof)
    made = distil_reviews.made(
        distil_reviews.parser().parse_args(
            [
                *("--work", str(work), "--student", folders["encoder"], "--rows", "80"),
                *("--tokens", folders["tokens"], "--output", str(folders["output"])),
            ]
        )
    )
    loaded = load_classifier(str(folders["output"]))
    assert loaded.options.reader_weights == distil_reviews.WEIGHTS
    assert loaded.calls == 7
    assert loaded.certify(["a good , great film"]) == made.certify(["a good , great film"])


def test_segments_to_train_on():
    """Of the rows asked for alone, and none that is empty."""
    lengths = [1, 2, 3, 9, 40]
    documents = [Document(np.arange(length), np.arange(length + 1)) for length in lengths]
    nodes = distil_reviews.nodes_of(documents)
    assert len(nodes) == 15 * len(lengths)
    rows = distil_reviews.drawn(np.array([0, 2, 4]), documents, 0)
    assert set(rows // 15) == {0, 2, 4}
    assert all(len(nodes[row].tokens) for row in rows)
    assert len({row % 15 for row in rows if row // 15 == 4}) > 8

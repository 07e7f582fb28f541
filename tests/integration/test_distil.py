"""`benchmarks.distil`, by which the shipped `news` was made: its pieces, and all of it, tiny."""

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

from benchmarks import distil

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


def test_no_text_twice_and_none_of_the_test_part(tmp_path):
    train = written(
        tmp_path / "train.parquet", [("A  b\nc", 0), ("a b, C!", 1), (" ", 0), ("d e", 1)]
    )
    test = written(tmp_path / "test.parquet", [("D-E", 0)])
    assert distil.rows_of([train], []) == (["A b c", "d e"], [0, 1])
    assert distil.rows_of([train], [test]) == (["A b c"], [0])


def test_a_long_text_keeps_its_beginning_and_its_end():
    assert distil.shortened([1, 2, 3], 3) == [1, 2, 3]
    assert distil.shortened(list(range(9)), 5) == [0, 1, 6, 7, 8]


def test_no_model_answers_for_what_it_was_trained_on():
    asked = []

    def fit_and_ask(fit, ask, seed):
        assert not set(fit) & set(ask)
        assert len(fit) + len(ask) == 40
        asked.extend(ask)
        return np.full((len(ask), 2), seed, dtype=np.float32)

    said = distil.out_of_fold(fit_and_ask, 40, 2)
    assert sorted(asked) == list(range(40))
    assert set(said[:, 0]) == {1, 2, 3}


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

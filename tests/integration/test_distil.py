"""`benchmarks.distil`, by which the shipped `news` was made: all of it, tiny."""

import random
import sys
from pathlib import Path

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

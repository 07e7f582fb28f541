"""`benchmarks.finetuning`: rows, folds and tokens of the scripts that fine-tune encoders."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_models

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import finetuning

from ranmask.errors import ModelError


def written(path, rows):
    texts, labels = zip(*rows, strict=True)
    pq.write_table(pa.table({"text": texts, "label": labels}), path)
    return path


def test_no_text_twice_and_none_of_the_test_part(tmp_path):
    train = written(
        tmp_path / "train.parquet", [("A  b\nc", 0), ("a b, C!", 1), (" ", 0), ("d e", 1)]
    )
    test = written(tmp_path / "test.parquet", [("D-E", 0)])
    assert finetuning.rows_of([train], []) == (["A b c", "d e"], [0, 1])
    assert finetuning.rows_of([train], [test]) == (["A b c"], [0])


def test_a_long_text_keeps_its_beginning_and_its_end():
    assert finetuning.shortened(np.arange(3), 3).tolist() == [0, 1, 2]
    assert finetuning.shortened(np.arange(9), 5).tolist() == [0, 1, 6, 7, 8]


def test_each_row_is_held_out_once():
    held = []
    for _, known, asked in finetuning.each_fold(finetuning.folds_of(40)):
        assert sorted([*known, *asked]) == list(range(40))
        held.extend(asked)
    assert sorted(held) == list(range(40))


def test_batches_are_of_about_one_length():
    sequences = [np.zeros(length) for length in (5, 1, 4, 2, 3)]
    assert [block.tolist() for block in finetuning.blocks(sequences, 2)] == [[1, 3], [4, 2], [0]]


def test_tokens_that_depend_on_the_words_beside_them_are_refused(tmp_path):
    tiny_models.byte_tokenizer().save_pretrained(tmp_path)
    encoder = finetuning.Encoder(str(tmp_path), 24, "cpu")
    with pytest.raises(ModelError, match="WordPiece"):
        encoder.documents(["good film , not bad"])

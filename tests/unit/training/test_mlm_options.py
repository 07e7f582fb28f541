"""Options of a masked language model: every field is checked, and said by name."""

import json
from dataclasses import fields

import pytest

from ranmask.errors import OptionError
from ranmask.training.options import MlmOptions

NAN, INFINITE = float("nan"), float("inf")
WHOLE_FROM_1 = [0, -1, 1.5, "2", True, None]
FROM_0 = [-0.1, NAN, INFINITE, "1", True, None]
ABOVE_0 = [0, -0.1, NAN, INFINITE, "1", True, None]

WRONG = {
    "epochs": WHOLE_FROM_1,
    "mask_rate": [*ABOVE_0, 1, 1.5],
    "learning_rate": ABOVE_0,
    "warmup": [*FROM_0, 1, 2],
    "weight_decay": FROM_0,
    "batch_size": WHOLE_FROM_1,
    "accumulate": WHOLE_FROM_1,
    "gradient_clip": ABOVE_0,
    "longest": [*WHOLE_FROM_1, 15],
    "weights": ["float64", "bfloat16", None],
    "evaluate_every": [0, -1, 1.5, "2", True],
    "validation_rows": WHOLE_FROM_1,
    "seed": [-1, 1.0, "1", True, None, 2**32],
}
RIGHT = {
    "epochs": [1, 100],
    "mask_rate": [0.01, 0.15, 0.99],
    "learning_rate": [1e-6, 1],
    "warmup": [0, 0.5],
    "weight_decay": [0, 0.1],
    "batch_size": [1],
    "accumulate": [1],
    "gradient_clip": [0.1],
    "longest": [16, 512],
    "weights": ["float32", "float16"],
    "evaluate_every": [None, 1],
    "validation_rows": [1],
    "seed": [0, 2**32 - 1],
}


def test_every_field_is_tested():
    assert set(WRONG) == set(RIGHT) == {field.name for field in fields(MlmOptions)}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_refused_by_name(name, value):
    with pytest.raises(OptionError, match=name):
        MlmOptions(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in RIGHT.items() for value in values]
)
def test_taken(name, value):
    assert getattr(MlmOptions(**{name: value}), name) == value


def test_plain_values():
    options = MlmOptions(epochs=2, mask_rate=0.2)
    assert MlmOptions(**json.loads(json.dumps(options.to_dict()))) == options

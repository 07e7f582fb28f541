"""Options of encoder training: every field is checked, and said by name."""

import json
from dataclasses import fields

import pytest

from ranmask.certificates.kept import Retention
from ranmask.errors import OptionError
from ranmask.options import SmoothingOptions
from ranmask.training.options import MlmOptions, TrainingOptions

NAN, INFINITE = float("nan"), float("inf")
WHOLE_FROM_0 = [-1, 1.0, "1", True, None]
WHOLE_FROM_1 = [0, -1, 1.5, "2", True, None]
WHOLE_OR_NONE = [0, -1, 1.5, "2", True]
FROM_0 = [-0.1, NAN, INFINITE, "1", True, None]
ABOVE_0 = [0, -0.1, NAN, INFINITE, "1", True, None]
ABOVE_0_OR_NONE = [0, -0.1, NAN, INFINITE, "1", True]

WRONG = {
    "keep": [(0,), (1, 0), (-1,), (1.5,), ("1",), (True,), 1, [1], "1", None],
    "mask_rate": [1.0, -0.1, NAN, "0.9", True],
    "hide": ["hidden", "", None],
    "family": ["all", "sampled", "some", None],
    "head": ["softmax", None],
    "pair_head": [1, None, "yes"],
    "epochs": WHOLE_FROM_0,
    "copies": WHOLE_FROM_1,
    "ramp": [*FROM_0, 1.01],
    "patience": WHOLE_OR_NONE,
    "vote_epochs": WHOLE_FROM_0,
    "vote_copies": WHOLE_FROM_1,
    "vote_loss": ["hinge", None],
    "target_words": WHOLE_FROM_1,
    "temperature": ABOVE_0_OR_NONE,
    "accuracy_weight": FROM_0,
    "margin": FROM_0,
    "class_weights": ["equal", "", None],
    "positive": [1, True],
    "learning_rate": ABOVE_0_OR_NONE,
    "vote_learning_rate": ABOVE_0_OR_NONE,
    "weight_decay": FROM_0,
    "batch_size": WHOLE_FROM_1,
    "accumulate": WHOLE_FROM_1,
    "gradient_clip": ABOVE_0,
    "layers": WHOLE_OR_NONE,
    "vocabulary": [*WHOLE_OR_NONE, 99],
    "longest": [*WHOLE_OR_NONE, 7],
    "weights": ["float64", "bfloat16", None],
    "evaluate_every": WHOLE_OR_NONE,
    "validation_rows": WHOLE_FROM_1,
    "ensemble": ["votes", ""],
    "masks": WHOLE_OR_NONE,
    "seed": [*WHOLE_FROM_0, 2**32],
}
RIGHT = {
    "keep": [(1,), (1, 2, 3), (50,)],
    "mask_rate": [0, 0.0, 0.9],
    "hide": ["drop", "mask"],
    "family": ["auto", "windows"],
    "head": ["choice", "approval"],
    "pair_head": [False, True],
    "epochs": [0, 1, 100],
    "copies": [1, 64],
    "ramp": [0, 0.5, 1],
    "patience": [1, None],
    "vote_epochs": [0, 1],
    "vote_copies": [1],
    "vote_loss": ["certified", "margin"],
    "target_words": [1, 20],
    "temperature": [None, 0.1, 2],
    "accuracy_weight": [0, 0.5],
    "margin": [0, 0.5],
    "class_weights": ["none", "balanced"],
    "positive": ["spam", None],
    "learning_rate": [None, 1e-6, 1],
    "vote_learning_rate": [None, 1e-5],
    "weight_decay": [0, 0.1],
    "batch_size": [1],
    "accumulate": [1],
    "gradient_clip": [0.1],
    "layers": [None, 1],
    "vocabulary": [None, 100],
    "longest": [None, 8],
    "weights": ["float32", "float16"],
    "evaluate_every": [None, 1],
    "validation_rows": [1],
    "ensemble": [None, "vote", "score", "logit"],
    "masks": [None, 1],
    "seed": [0, 2**32 - 1],
}


def options(**given):
    needed = {} if {"keep", "mask_rate"} & given.keys() else {"keep": (1,)}
    if given.get("epochs") == 0:
        needed["vote_epochs"] = 1
    return TrainingOptions(**needed | given)


def test_every_field_is_tested():
    assert set(WRONG) == set(RIGHT) == {field.name for field in fields(TrainingOptions)}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_refused_by_name(name, value):
    with pytest.raises(OptionError, match=name):
        options(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in RIGHT.items() for value in values]
)
def test_taken(name, value):
    assert getattr(options(**{name: value}), name) == value


def test_one_of_keep_and_mask_rate():
    for given in ({"keep": ()}, {"keep": (1,), "mask_rate": 0.5}, {"keep": (), "mask_rate": None}):
        with pytest.raises(OptionError, match="exactly one of keep and mask_rate"):
            options(**given)


def test_something_must_be_trained():
    with pytest.raises(OptionError, match="nothing would be trained"):
        TrainingOptions(keep=(1,), epochs=0, vote_epochs=0)


def test_retentions():
    assert options(keep=(3, 1)).retentions == (Retention(3), Retention(1))
    assert options(mask_rate=0.5).retentions == (Retention(None, 0.5),)


def test_step_width():
    assert options(target_words=5).step_width == 2
    assert options(target_words=5, temperature=0.3).step_width == 0.3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"keep": (2, 1)}, {"keep": 2, "mask_rate": None, "family": None, "ensemble": "vote"}),
        ({"mask_rate": 0.8, "vote_epochs": 1}, {"keep": None, "mask_rate": 0.8}),
        ({"vote_epochs": 1}, {"ensemble": "score"}),
        ({"vote_epochs": 1, "ensemble": "logit"}, {"ensemble": "logit"}),
        ({"family": "windows", "masks": 7}, {"family": "windows", "masks": 7}),
    ],
)
def test_how_the_trained_classifier_is_smoothed(given, expected):
    smoothing = options(**given).smoothing()
    assert {name: smoothing[name] for name in expected} == expected
    SmoothingOptions(**smoothing)


def test_plain_json():
    given = options(keep=(1, 2), temperature=0.5)
    assert json.loads(json.dumps(given.to_dict())) == given.to_dict()
    assert given.to_dict()["keep"] == [1, 2]


class TestLearningRate:
    @pytest.mark.parametrize(
        ("parameters", "rate"), [(4_000_000, 2e-4), (22_700_000, 2e-4), (110_000_000, 5e-5)]
    )
    def test_by_the_size_of_the_encoder(self, parameters, rate):
        assert options().settled(parameters).learning_rate == rate

    def test_what_is_given_stays(self):
        assert options(learning_rate=1e-3).settled(110_000_000).learning_rate == 1e-3


@pytest.mark.parametrize("options", [TrainingOptions, MlmOptions])
def test_a_learning_rate_that_no_step_can_hold_is_refused(options):
    how = {"keep": (1,)} if options is TrainingOptions else {}
    assert options(learning_rate=1e36, **how).learning_rate == 1e36
    with pytest.raises(OptionError, match=r"a number above 0, at most 1e\+36, not 1e\+37"):
        options(learning_rate=1e37, **how)

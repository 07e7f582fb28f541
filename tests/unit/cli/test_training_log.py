"""What a training run says of its steps."""

from pathlib import Path

import pytest

from ranmask.cli.training_log import TrainingLog

LINE = {"phase": "mlm", "epoch": 0.25, "step": 100, "steps": 400, "loss": 2.0}


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(600.0, "loss 2.0000, about 30.0 minutes left\n"), (1.0, "loss 2.0000\n")],
)
def test_how_long_it_takes_is_said_where_it_takes_long(seconds, told, capsys):
    TrainingLog(Path("out"))({**LINE, "seconds": seconds})
    assert capsys.readouterr().err == f"mlm epoch 0.25, step 100 of 400: {told}"


def test_a_step_that_is_not_counted_tells_no_time(capsys):
    TrainingLog(Path("out"))({"phase": "words", "epoch": 2, "loss": 0.5, "seconds": 90.0})
    assert capsys.readouterr().err == "words epoch 2: loss 0.5000\n"


def test_a_loss_that_is_no_number_is_told(capsys):
    TrainingLog(Path("out"))({**LINE, "loss": None, "seconds": 1.0})
    assert capsys.readouterr().err == "mlm epoch 0.25, step 100 of 400: loss is no number\n"

"""The folder of a training run, before anything is trained."""

import pytest

from ranmask.errors import OutputError
from ranmask.training.records import RunFolder


def test_a_damaged_training_record_is_an_output_error(tmp_path):
    (tmp_path / "training.json").write_text("{")
    with pytest.raises(OutputError):
        RunFolder(tmp_path, {"kind": "encoder"}).check(in_part=True)

"""The victim whose attacked texts a defence learns from: its folder is checked first."""

import pytest

from ranmask.errors import OutputError
from ranmask.training.defences.victim import check_free


def test_a_damaged_training_record_is_an_output_error(tmp_path):
    (tmp_path / "training.json").write_text("{")
    with pytest.raises(OutputError):
        check_free(tmp_path, {"kind": "encoder"})

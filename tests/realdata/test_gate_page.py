"""The example of docs/gate.md is what the command prints for the real data."""

import re
import shlex
from pathlib import Path

import pytest

from commands import run_cli
from ranmask.data import data_folder

PAGE = Path(__file__).parents[2] / "docs" / "gate.md"
DATA = data_folder()
pytestmark = pytest.mark.skipif(
    DATA is None or not (DATA / "sms_spam").is_dir(),
    reason="no SMS spam: set RANMASK_DATA to the folder that holds sms_spam/",
)


def test_the_page_shows_what_is_printed(tmp_path, monkeypatch):
    block = re.search(r"```\n\$ (.*?)\n\$ (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    train, gate, printed = block.groups()
    monkeypatch.chdir(tmp_path)
    assert run_cli(*shlex.split(train)[1:]).exit_code == 0
    done = run_cli(*shlex.split(gate)[1:])
    assert done.exit_code == 4, done.stderr
    assert done.stdout == printed

"""The example of docs/tuning.md is what the shipped model does on the real data."""

import re
import shlex
from pathlib import Path

import pytest

from commands import run_cli
from ranmask.data import data_folder

PAGE = Path(__file__).parents[2] / "docs" / "tuning.md"
DATA = data_folder()
pytestmark = pytest.mark.skipif(
    DATA is None or not (DATA / "agnews").is_dir(),
    reason="no AG News: set RANMASK_DATA to the folder that holds agnews/",
)


def without_seconds(text):
    """Timings differ; so does the width of their column."""
    lines = re.sub(r"(\d\.\d+)[ ]+[\d.e-]+([ ]+\*)?$", r"\1\2", text, flags=re.MULTILINE)
    return [line.split() for line in lines.splitlines()]


def test_the_page_shows_what_is_printed(tmp_path):
    """If the model was retrained: run the command again, and replace the page's tuning.svg too."""
    block = re.search(r"```\n\$ (ranmask tune .*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    command, printed = block.groups()
    arguments = shlex.split(command.replace("frontier.svg", str(tmp_path / "frontier.svg")))
    done = run_cli(*arguments[1:])
    assert done.exit_code == 0, done.stderr
    settings = [line for line in printed.splitlines() if re.match(r"keep .* 0\.\d", line)]
    assert len(settings) == 6
    assert without_seconds(done.stdout) == without_seconds(printed)
    assert (tmp_path / "frontier.svg").read_bytes().startswith(b"<?xml")

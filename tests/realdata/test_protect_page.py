"""What docs/protect.md shows of a protected pipeline is what happens on the real data."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ranmask.data import data_folder

ROOT = Path(__file__).parents[2]
DATA = data_folder()
pytestmark = pytest.mark.skipif(
    DATA is None or not (DATA / "sms_spam").is_dir(),
    reason="no SMS spam: set RANMASK_DATA to the folder that holds sms_spam/",
)


def run(folder, *arguments):
    environment = {**os.environ, "RANMASK_DATA": str(DATA)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def section(page, title):
    return (ROOT / page).read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_page_shows_what_is_printed(tmp_path):
    """If tables learn otherwise: run all commands of the page again; replace its protect.svg."""
    shown = section("docs/protect.md", "A scikit-learn pipeline")
    (tmp_path / "spam.py").write_text(re.search(r"```python\n(.*?)```", shown, re.DOTALL)[1])
    run(tmp_path, "spam.py")
    found = re.search(r"\$ ranmask (protect .*?)\n(.*?)```", shown, re.DOTALL)
    done = run(tmp_path, "-m", "ranmask.cli", *shlex.split(found[1]))
    for line in found[2].splitlines():
        assert "loss" in line or line in (done.stdout + done.stderr).splitlines()
    picture = (tmp_path / "protected-spam" / "protect.svg").read_bytes()
    assert picture == (ROOT / "docs" / "protect.svg").read_bytes()
    text = re.search(r'\$ ranmask (certify .*?")\n', shown)[1]
    assert '"radius": 4' in run(tmp_path, "-m", "ranmask.cli", *shlex.split(text)).stdout
    assert "says *spam*, radius 4:" in shown

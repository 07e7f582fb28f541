"""The rules of ``tests/conftest.py``, on a small suite with skips of all kinds."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SETTINGS = "[pytest]\nmarkers =\n    gpu: a\n    realdata: b\n"
NEEDS_DATA = """
import os, pytest

def test_reads_them():
    assert "here" in os.environ["RANMASK_DATA"]
    if not os.path.isdir(os.environ["RANMASK_DATA"]):
        pytest.skip("no datasets")
"""
NEEDS_NONE = """
import os, pytest

def test_finds_none():
    for name in ("RANMASK_DATA", "NLTK_DATA"):
        assert os.listdir(os.environ[name]) == []

@pytest.mark.gpu
@pytest.mark.skipif(True, reason="needs a GPU")
@pytest.mark.parametrize("size", [1, 2])
def test_kernel(size):
    raise AssertionError

@pytest.mark.xfail(reason="known")
def test_known():
    raise AssertionError
"""
SKIPPED_TEST = "import pytest\ndef test_page():\n    pytest.skip('no browser')\n"
SKIPPED_MODULE = "import pytest\npytest.importorskip('no_such_module', reason='Ray is missing')\n"


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.setenv("RANMASK_DATA", "/nowhere/here")
    for folder in ("tests/unit", "tests/realdata"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(CONFTEST, tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "tests/realdata/test_data.py").write_text(NEEDS_DATA)
    (tmp_path / "tests/unit/test_none.py").write_text(NEEDS_NONE)
    return tmp_path


def run(suite, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", *arguments]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # some are slow to import
    return subprocess.run(
        command, cwd=suite, env=environment, capture_output=True, text=True, check=False
    )


def test_the_closing_line_says_what_was_skipped_and_why(suite):
    done = run(suite, "-n", "2")
    assert done.returncode == 0, done.stdout
    closing = done.stdout.splitlines()[-1]
    assert closing == "skipped: 2 (needs a GPU); 1 (no datasets)"


def test_nothing_skipped_nothing_said(suite):
    closing = run(suite, "tests/unit", "-k", "finds_none").stdout.splitlines()[-1]
    assert "1 passed" in closing and "skipped" not in closing


def test_what_may_be_skipped(suite):
    assert run(suite, "--may-skip", "gpu,realdata").returncode == 0
    refused = run(suite, "--may-skip", "gpu")
    assert refused.returncode == 1
    assert "skipped, which only gpu may be: no datasets" in refused.stdout


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("test_page.py", SKIPPED_TEST, "no browser"),
        ("test_ray.py", SKIPPED_MODULE, "Ray is missing"),
    ],
    ids=["test", "module"],
)
def test_what_may_not(suite, name, content, why):
    (suite / "tests" / "unit" / name).write_text(content)
    done = run(suite)
    assert done.returncode == 0 and f"1 ({why})" in done.stdout.splitlines()[-1]
    done = run(suite, "-n", "2", "--may-skip", "gpu,realdata")
    assert done.returncode != 0
    assert f"skipped, which only gpu,realdata may be: {why}" in done.stdout

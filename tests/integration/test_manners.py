"""Quiet, verbose, and completion in a shell."""

import os
import subprocess
import sys
from unittest import mock

import pytest

from commands import run_cli
from ranmask.cli.main import COMMANDS, GROUPS

FAKE = "ranmask.models.testing:keyword_classifier"
CERTIFY = ("certify", "-m", FAKE, "--keep", 1)


@pytest.fixture(autouse=True)
def environment():
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\ngood good,1\nbad,0\n")
    return path


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_quiet_leaves_results_and_errors(flag, reviews, tmp_path):
    given = (*CERTIFY, "--input", reviews, "--label-column", "label")
    loud, quiet = run_cli(*given), run_cli(flag, *given)
    assert "accuracy" in loud.stderr and quiet.stderr == "" and quiet.stdout == loud.stdout
    for _ in range(2):  # the second is resumed
        done = run_cli(*given, "--output", tmp_path / "out.jsonl", flag)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert run_cli(*given, "--keep", "x", flag).stderr.startswith("error: ")
    assert "accuracy" in run_cli(*given).stderr  # the next command is not quiet


def test_quiet_attacks_and_warnings(reviews, tmp_path, monkeypatch):
    recipe = ("--recipe", "anywords", "--input", reviews, "--label-column", "label")
    attack = ("attack", "-m", FAKE, "--keep", 1, *recipe)
    assert run_cli(*attack).stderr != "" == run_cli(*attack, "-q").stderr
    (tmp_path / "silent.py").write_text("def reads(texts):\n    raise OSError('no line')\n")
    monkeypatch.chdir(tmp_path)
    beside = ("certify", "-m", "news-words", "--reader", "silent:reads", "--reader-weights", "1")
    assert "warning: the reader did not answer" in run_cli(*beside, "good").stderr
    assert run_cli(*beside, "good", "-q").stderr == ""


def test_verbose_shows_where_an_error_comes_from(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("def cause():\n    raise KeyError('deep')\n\n\ncause()\n")
    monkeypatch.chdir(tmp_path)
    words = ("certify", "-m", "broken:model", "--keep", 1, "good")
    plain, verbose = run_cli(*words), run_cli(*words, "-v")
    assert plain.stderr.count("\n") == 1
    assert verbose.stderr.endswith(plain.stderr) and "in cause" in verbose.stderr
    assert verbose.exit_code == plain.exit_code == 1
    both = run_cli(*words, "-v", "-q")
    assert both.exit_code == 2
    assert both.stderr.endswith("error: --quiet and --verbose: leave one of them out\n")


def test_a_gpu_without_memory_is_told_in_a_line(monkeypatch):
    import torch

    def explain(*texts: str) -> None:
        """Explain."""
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB. GPU 0 has 8")

    monkeypatch.setattr("ranmask.cli.explain.explain", explain)
    done = run_cli("explain", "good")
    assert done.exit_code == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: the GPU has no memory left. End other programs")
    assert done.stderr.endswith("(CUDA out of memory)\n")
    with pytest.raises(torch.OutOfMemoryError):  # with all that PyTorch says
        run_cli("explain", "good", "-v")


def completed(script, *words):
    code = (
        f"source {script}; COMP_WORDS=(ranmask {' '.join(words)}); COMP_CWORD={len(words)}; "
        "COMP_LINE='' COMP_POINT=0; _ranmask; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_completion_in_bash(tmp_path):
    script = tmp_path / "ranmask.bash"
    command = (sys.executable, "-m", "ranmask.cli", "--install-completion", "--shell", "bash")
    home = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run([*command, "--output", script], env=home, check=True, capture_output=True)
    assert set(completed(script, "''")) >= {*COMMANDS, *GROUPS}
    assert completed(script, "expl") == ["explain"]
    assert completed(script, "certify", "--mask-r") == ["--mask-rate"]

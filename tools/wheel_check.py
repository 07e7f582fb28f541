"""Installs the wheel into an empty environment, and tries there what the README shows.

``python -m tools.wheel_check`` builds the wheel first, or is given one.  It looks at size and
licences; runs the README's first example and a command with nothing but what the wheel needs; then
installs a few extras and runs all that the README shows (`tools.readme`).  Exits with 1 where
something differs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

from tools import readme

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 25
EXTRAS = "attacks,parquet,sklearn"
"""What the README's examples and commands need besides."""

LICENCES = (
    *("LICENSE", "NOTICE"),
    *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("src/ranmask/**/NOTICE.md"))),
)
_LEFT = shutil.ignore_patterns("__pycache__", "*.egg-info")
_PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


def main() -> None:
    """Build, install, run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheel", nargs="?", type=Path, help="built here unless given")
    given = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # no source that Python is told of
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = given.wheel.resolve() if given.wheel else _built(folder / "dist")
        _look_at(wheel)
        venv.create(folder / "environment", with_pip=True)
        python = folder / "environment" / "bin" / "python"
        _install(python, str(wheel))
        problems = _tried(python, folder)
        _install(python, f"{wheel}[{EXTRAS}]")
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        problems += readme.run(str(python), elsewhere)
    sys.exit("\n".join(problems) or None)


def _built(folder: Path) -> Path:
    """Built from a copy: setuptools leaves files, and takes those that it left before."""
    copy = folder.with_name("source")
    shutil.copytree(ROOT / "src", copy / "src", ignore=_LEFT)
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, copy)
    words = [*_PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(copy)]
    subprocess.run([sys.executable, *words], check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def _look_at(wheel: Path) -> None:
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB")
    if size > MOST_MEGABYTES:
        sys.exit(f"the wheel is larger than {MOST_MEGABYTES} MB")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        said = archive.read(metadata).decode()
    for licence in LICENCES:
        inside = metadata.replace("METADATA", f"licenses/{licence}")
        if f"License-File: {licence}\n" not in said or inside not in names:
            sys.exit(f"the wheel has no {licence}")


def _install(python: Path, what: str) -> None:
    began = time.monotonic()
    subprocess.run([str(python), *_PIP, "install", what], check=True)
    taken, files = time.monotonic() - began, python.parents[1].rglob("*")
    size = sum(path.lstat().st_size for path in files if path.is_file()) / 1e6
    print(f"{what.rpartition('/')[2]}: installed in {taken:.0f} s, {size:.0f} MB on disk")


def _tried(python: Path, folder: Path) -> list[str]:
    """Run the first example and a command; the problems that there were."""
    code, printed = next(readme.examples(readme.README.read_text(encoding="utf-8")))
    problems = []
    for words, expected in (
        (["-c", code], printed),
        (["-m", "ranmask.cli", "certify", "Stocks fell"], None),
    ):
        began = time.monotonic()
        done = subprocess.run(
            [str(python), "-I", *words], cwd=folder, capture_output=True, text=True
        )
        if done.returncode or expected not in (None, done.stdout):
            problems.append(f"{words} printed\n{done.stdout}{done.stderr}")
        print(f"{time.monotonic() - began:5.1f} s  {words[-1].splitlines()[0]}", flush=True)
    return problems


if __name__ == "__main__":
    main()

"""Installs the wheel into an empty environment, and runs the README's snippets there.

``python -m tools.wheel_check`` builds the wheel first, or is given one; ``--extras hf`` installs
extras too.  It looks at size and licences, then runs, where no source lies, each snippet
of the README that is followed by what it prints, and a command.  Exits with 1 where something
differs.  Needs nothing but Python and pip.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 25
SHOWN = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)
LICENCES = ("LICENSE", "NOTICE")
_LEFT = shutil.ignore_patterns("__pycache__", "*.egg-info")
_PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


def main() -> None:
    """Build, install, run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheel", nargs="?", type=Path, help="built here unless given")
    parser.add_argument("--extras", default="", help="as hf,attacks")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = given.wheel.resolve() if given.wheel else _built(folder / "dist")
        _look_at(wheel)
        python = _installed(wheel, given.extras, folder / "environment")
        failed = _run_snippets(python, folder / "elsewhere")
    sys.exit(1 if failed else 0)


def _built(folder: Path) -> Path:
    """Built from a copy: setuptools leaves files, and takes those that it left before."""
    copy = folder.with_name("source")
    shutil.copytree(ROOT / "src", copy / "src", ignore=_LEFT)
    for name in ("pyproject.toml", "README.md", *LICENCES):
        shutil.copy(ROOT / name, copy)
    _run([sys.executable, *_PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(copy)])
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


def _installed(wheel: Path, extras: str, folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    began = time.monotonic()
    _run([str(python), *_PIP, "install", f"{wheel}[{extras}]" if extras else str(wheel)])
    taken = time.monotonic() - began
    size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    print(f"installed in {taken:.0f} s, {size:.0f} MB on disk")
    return python


def _run_snippets(python: Path, folder: Path) -> int:
    """How many of the README's snippets do not print what it says."""
    folder.mkdir()
    failed = 0
    snippets = SHOWN.findall((ROOT / "README.md").read_text())
    bare = {"PATH": os.environ["PATH"], "HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    command = "from ranmask.cli.main import main; main()"
    runs = [
        (f"snippet {number}", ["-c", code], printed)
        for number, (code, printed) in enumerate(snippets, 1)
    ]
    runs.append(("ranmask certify", ["-c", command, "certify", "Stocks fell"], None))
    for name, words, printed in runs:
        began = time.monotonic()
        done = subprocess.run(
            [str(python), "-I", *words], cwd=folder, env=bare, capture_output=True, text=True
        )
        right = done.returncode == 0 and printed in (None, done.stdout)
        print(f"{name}: {'as it says' if right else 'FAILED'}, {time.monotonic() - began:.1f} s")
        if not right:
            failed += 1
            print(done.stdout + done.stderr)
    return failed


def _run(words: list[str]) -> None:
    """Run pip, which must not see a source that Python is told of."""
    subprocess.run(words, check=True, env={**os.environ, "PYTHONPATH": ""})


if __name__ == "__main__":
    main()

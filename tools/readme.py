"""Runs what README and docs/commands.md show, as a user would: offline, from what is installed.

``python -m tools.readme --python PYTHON`` runs, with that interpreter, each Python example, whose
output must be what stands below it, then each command of the tables in turn, once.  A user's files
are made first, of rows of the corpus that comes with ranmask.  Any connection to another machine
fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
COMMANDS = README.parent / "docs" / "commands.md"
NOT_RUN = {
    "ranmask train --data my.csv --base ENCODER --keep 2 --output DIR": "needs an encoder",
    "ranmask serve --model news --model spam-sms": "runs until it is stopped",
}
"""Commands that are tried elsewhere, and why."""

_EXAMPLE = re.compile(r"```python\n(.*?)```(?:(?!```|\n#).)*(?:```\n(.*?)```)?", re.DOTALL)
_FILES = """
import csv
from ranmask.data import load_corpus

corpus = load_corpus("sms_spam", "train").take(400)
with open("my.csv", "w", encoding="utf-8", newline="") as file:
    rows = zip(corpus.texts, map(corpus.label_names.__getitem__, corpus.labels))
    csv.writer(file).writerows([("text", "label"), *rows])
with open("pile.txt", "w", encoding="utf-8") as file:
    file.writelines(" ".join(text.split()) + "\\n" for text in corpus.texts)
"""
_MODEL = """
SPAM = {"free", "winner", "cash", "prize", "claim", "call", "txt"}


def classify(texts):
    found = [sum(word.lower() in SPAM for word in text.split()) for text in texts]
    return [[0.5 / (0.5 + count), count / (0.5 + count)] for count in found]
"""
_OFFLINE = """
import socket

connect = socket.socket.connect


def offline(self, address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"README runs offline, and this asked for {address[0]}")
    return connect(self, address)


socket.socket.connect = offline
"""


def examples(page: str) -> Iterator[tuple[str, str | None]]:
    """Each Python example, and what the page says it prints; None where it says nothing."""
    for code, printed in _EXAMPLE.findall(page):
        yield code, printed or None


def commands(page: str) -> list[str]:
    """The commands in the first column of tables, in their order."""
    cells = re.findall(r"^\| (`ranmask [^|]*) \|", page, re.MULTILINE)
    found = (command for cell in cells for command in re.findall(r"`(ranmask [^`]+)`", cell))
    return list(dict.fromkeys(found))


def run(python: str, folder: Path) -> list[str]:
    """Run all of it in an empty folder; the problems that there were."""
    made, problems = folder / "offline", []
    (folder / "no-data").mkdir()
    made.mkdir()
    (made / "sitecustomize.py").write_text(_OFFLINE, encoding="utf-8")
    (folder / "my_model.py").write_text(_MODEL, encoding="utf-8")
    paths = [str(made), str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RANMASK_")},
        **{"PYTHONPATH": os.pathsep.join(paths), "RANMASK_DATA": str(folder / "no-data")},
        **{"NLTK_DATA": str(folder / "no-data"), "HOME": str(folder), "HF_HUB_OFFLINE": "1"},
    }

    def called(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  what README says
            [python, *words], cwd=folder, env=environment, capture_output=True, text=True
        )

    files = called("-c", _FILES)
    if files.returncode:
        return [f"a user's files cannot be made:\n{files.stderr}"]
    page, more = (path.read_text(encoding="utf-8") for path in (README, COMMANDS))
    for number, (code, printed) in enumerate(examples(page), 1):
        start = time.monotonic()
        done = called("-c", code)
        if done.returncode:
            problems.append(f"example {number} fails:\n{done.stderr}")
        elif printed is not None and done.stdout != printed:
            problems.append(f"example {number} prints\n{done.stdout}instead of\n{printed}")
        print(f"{time.monotonic() - start:5.1f} s  example {number}", flush=True)
    for command in commands(f"{page}\n{more}"):
        if command in NOT_RUN:
            print(f"not run: {command}: {NOT_RUN[command]}")
            continue
        start = time.monotonic()
        done = called("-m", "ranmask.cli", *shlex.split(command)[1:])
        if done.returncode:
            problems.append(f"{command} ends with {done.returncode}:\n{done.stderr}")
        print(f"{time.monotonic() - start:5.1f} s  {command}", flush=True)
    return problems


def main() -> None:
    """Print what runs and how long it takes; fail where something does."""
    parser = argparse.ArgumentParser(description="Run what README shows, offline.")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has ranmask")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="readme-") as folder:
        problems = run(given.python, Path(folder))
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()

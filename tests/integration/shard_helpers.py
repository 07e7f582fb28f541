"""What the tests of sharded runs share: inputs, classifiers that misbehave, the command."""

import os
import signal
import subprocess
import sys
import time

from ranmask.runs.stored import stored_lines

MISBEHAVING = """
import os, time
from pathlib import Path
from ranmask.models.testing import keyword_classifier

def steady(texts):
    return keyword_classifier(texts)

def deadly(texts):
    if any("poison" in text for text in texts):
        os._exit(7)
    return keyword_classifier(texts)

def crashing(texts):
    os._exit(7)

def slow(texts):
    Path(f"worker-{os.getpid()}").touch()
    time.sleep(0.002 * len(texts))
    return keyword_classifier(texts)

def once(texts):
    # Ends the first worker that meets it, and no other.
    if any("fragile" in text for text in texts) and not Path("broken").exists():
        Path("broken").touch()
        os._exit(7)
    return keyword_classifier(texts)

def raising(texts):
    if any("poison" in text for text in texts):
        os.kill(os.getpid(), 11)
    return keyword_classifier(texts)
"""


def make_input(folder, rows, special=()):
    """A CSV file of labelled texts, and the module of classifiers beside it."""
    (folder / "misbehaving.py").write_text(MISBEHAVING)
    path = folder / "texts.csv"
    special = dict(special)
    lines = ["text,label"]
    for number in range(1, rows + 1):
        text = special.get(number, f"good film number {number} with a bad ending and good music")
        lines.append(f"{text},{number % 2}")
    path.write_text("\n".join(lines) + "\n")
    return path


def arguments(source, output, model, *more, shard_rows=20, command="certify"):
    shared = ("--model", f"misbehaving:{model}", "--keep", 1, "--input", source.name)
    labelled = ("--label-column", "label", "--output", output, "--shard-rows", shard_rows)
    given = (command, *shared, *labelled, *more)
    return [sys.executable, "-m", "ranmask.cli", *map(str, given)]


def run(source, output, model="steady", *more, **options):
    command = arguments(source, output, model, *more, **options)
    return subprocess.run(command, capture_output=True, text=True, cwd=source.parent)


def start(source, output, model, *more, **options):
    command = arguments(source, output, model, *more, **options)
    return subprocess.Popen(
        command, cwd=source.parent, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def parts(folder):
    return sorted(folder.glob("part-*.parquet"))


def until(happened, seconds=60.0):
    """Wait for something; fail when it does not come."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def workers_seen(folder):
    return {int(path.name.removeprefix("worker-")) for path in folder.glob("worker-*")}


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def ranmask(*given, cwd=None):
    command = [sys.executable, "-m", "ranmask.cli", *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def merged(folder, output):
    """The rows of a run, by `ranmask runs merge`, after `ranmask runs verify`."""
    checked = ranmask("runs", "verify", folder)
    assert checked.returncode == 0, checked.stderr
    done = ranmask("runs", "merge", folder, output)
    assert done.returncode == 0, done.stderr
    return list(stored_lines(output))

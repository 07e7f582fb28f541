"""A committed result from a finished run: ``results/NAME.json``.

    python -m benchmarks.collect NAME RUN.jsonl MODEL_FOLDER --title T --command C --hardware H

RUN.jsonl is what ``ranmask certify --data ... --output RUN.jsonl`` wrote (its record lies beside
it), MODEL_FOLDER what ``ranmask train`` wrote.  Paths of the machine are left out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.settings import REPOSITORY
from ranmask.runs.result_file import read_header

RESULTS = REPOSITORY / "results"
VERSION = 1


def result(
    run: dict[str, Any],
    training: dict[str, Any],
    *,
    title: str,
    commands: list[str],
    hardware: str,
) -> dict[str, Any]:
    """One result: what was trained, on what it was measured, and the figures."""
    finished = run["finished"]
    if not finished or finished["labelled"] != finished["rows"]:
        raise SystemExit("the run is not finished, or has rows without a label")
    classifier = _without_paths(run["classifier"])
    return {
        "format": "ranmask-result",
        "version": VERSION,
        "title": title,
        "commands": commands,
        "hardware": hardware,
        "training": {key: training[key] for key in ("run", "validation")},
        "data": run["input"],
        "classifier": classifier,
        "figures": {
            "texts": finished["labelled"],
            "accuracy": finished["accuracy"],
            "median_radius": finished["median_radius"],
            "certified_accuracy": finished["certified_accuracy"],
        },
    }


def _without_paths(described: Any) -> Any:
    if isinstance(described, dict):
        return {key: _without_paths(one) for key, one in described.items() if key != "model"}
    return [_without_paths(one) for one in described] if isinstance(described, list) else described


def write(name: str, value: dict[str, Any]) -> Path:
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    return path


def _training_record(folder: Path) -> Path:
    """Of a model, or of the first part of a blend."""
    own = folder / "training.json"
    return own if own.is_file() else folder / "part1" / "training.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("run", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--title", required=True)
    parser.add_argument("--command", action="append", required=True)
    parser.add_argument("--hardware", required=True)
    given = parser.parse_args()
    record = read_header(given.run) or {}
    training = json.loads(_training_record(given.model).read_text())
    made = result(
        record, training, title=given.title, commands=given.command, hardware=given.hardware
    )
    print(write(given.name, made))


if __name__ == "__main__":
    main()

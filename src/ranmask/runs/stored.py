"""Results that a run has written, read back: from one file, or from a folder of shards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ranmask.data.rows import Row
from ranmask.errors import DataError
from ranmask.results import records
from ranmask.runs.result_file import read_header, rows_of
from ranmask.runs.shards.reading import folder_lines
from ranmask.runs.task import Outcome, Result

_BY_KEY: dict[str, dict[str, type[Result]]] = {
    "certify": {
        "others": records.Comparison,
        "copies": records.ShownCertificate,
        "shown_label": records.CascadeCertificate,
        "radius": records.Certificate,
    },
    "predict": {
        "changed": records.BetaEstimate,
        "suspicion": records.CascadePrediction,
        "label": records.Prediction,
    },
}


def read_results(path: str | Path) -> Iterator[Outcome]:
    """The rows of a run of `certify_file` or `predict_file`, with results or errors, in order."""
    path = Path(path)
    if path.is_file() and path.stat().st_size and read_header(path) is None:
        raise DataError(f"{path} was not written by a run of ranmask: it has no record of one")
    for line in stored_lines(path):
        if "status" in line:
            raise DataError(f"{path} holds outcomes of an attack, not labels of texts")
        text = line.get("text")
        if "hypothesis" in line:
            text = (line["premise"], line["hypothesis"])
        row = Row(line["row"], text, line.get("expected_id"))
        yield Outcome(row, _result(line), line.get("error"))


def first_result(path: Path) -> Result | None:
    """The first result of a run: all of them are of one kind."""
    return next((one.result for one in read_results(path) if one.result is not None), None)


def stored_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a run, from its file or its folder."""
    return folder_lines(path) if path.is_dir() else rows_of(_lines(path))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return  # cut off with the run that wrote it
                try:
                    found = json.loads(line)
                except ValueError as error:
                    why = f"not valid JSON: {error}"
                    raise DataError(f"{path}, line {number}: {why}") from error
                if not isinstance(found, dict):
                    raise DataError(f"{path}, line {number}: it holds {found!r:.60}, not an object")
                yield found
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _result(line: Mapping[str, Any]) -> Result | None:
    if "label_id" not in line:
        return None
    kinds = _BY_KEY["certify" if "radius" in line else "predict"]
    return next(kind for key, kind in kinds.items() if key in line).from_dict(line)

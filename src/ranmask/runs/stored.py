"""Results that a run has written, read back: from one file, or from a folder of shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ranmask.data.rows import Row
from ranmask.errors import DataError, OptionError
from ranmask.results import Detection, records
from ranmask.results.files import check_new_file, draft, writing
from ranmask.runs.csv_lines import write_csv
from ranmask.runs.result_file import record_of, result_rows
from ranmask.runs.shards.columns import write_lines
from ranmask.runs.shards.reading import folder_lines
from ranmask.runs.task import Outcome, Result

_BY_KEY: dict[str, type[Any]] = {
    "flagged": Detection,
    "others": records.Comparison,
    "copies": records.ShownCertificate,
    "margins": records.MarginCertificate,
    "poisoned": records.PartitionCertificate,
    "shown_label": records.CascadeCertificate,
    "radius": records.Certificate,
    "changed": records.BetaEstimate,
    "suspicion": records.CascadePrediction,
    "label": records.Prediction,
}
"""The first key that a line has says what its result is."""


def read_results(path: str | Path) -> Iterator[Outcome]:
    """The rows of a run, with results or errors, in order.

    A run of `certify_file`, `predict_file` or `detect_file`, whose results are `Detection`.
    """
    path = Path(path)
    if path.is_file() and path.stat().st_size:
        record_of(path)
    for line in stored_lines(path):
        if "status" in line:
            raise DataError(f"{path} holds outcomes of an attack, not labels of texts")
        text = line.get("text")
        if "hypothesis" in line:
            text = (line["premise"], line["hypothesis"])
        row = Row(line["row"], text, line.get("expected_id"))
        result = None
        if "label_id" in line or "flagged" in line:
            result = next(_BY_KEY[key] for key in _BY_KEY if key in line).from_dict(line)
        yield Outcome(row, result, line.get("error"))


def first_result(path: Path) -> Result | None:
    """The first result of a run: all of them are of one kind."""
    return next((row.result for row in read_results(path) if row.result is not None), None)


def file_as_csv(path: Path, output: Path) -> int:
    """Make CSV of the file of a run; it appears when it is whole.  Returns how many rows it has."""
    if output.suffix != ".csv":
        raise OptionError(f"{path} is one file already: name one that ends in .csv, not {output}")
    check_new_file(output)
    record_of(path)
    with writing(output), draft(output) as place:
        return write_csv(result_rows(path), place)


def file_as_parquet(path: Path, output: Path) -> int:
    """Make Parquet of the file of a run, finished or not; returns how many rows it has."""
    header = record_of(path)
    kinds = {"certify": records.Certificate, "predict": records.Prediction, "detect": Detection}
    record: type[Any] = kinds[header["command"]]
    with writing(output), draft(output) as place:
        return write_lines(result_rows(path), record, header["constants"], place)


def stored_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a run, from its file or its folder."""
    return folder_lines(path) if path.is_dir() else result_rows(path)

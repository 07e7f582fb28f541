"""The JSON file of a sweep: written after each setting, resumed by the same command.

Beside the counts of radii it holds figures that follow from them, and from options that may
change from one command to the next; the model, the data and the settings may not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ranmask import __version__
from ranmask.errors import OutputError, RanmaskError
from ranmask.evaluation.settings import Setting
from ranmask.evaluation.tuning import Measured, Rule, frontier, pick
from ranmask.metrics import CertifiedSummary, certified_values
from ranmask.results.files import another_run, check_file, read_json, write_json

FORMAT, VERSION = "ranmask-tune", 3

_SAME_RUN = ("ranmask", "data", "model", "settings", "positive")


class TuneFile:
    """The record of one sweep.  ``measured`` is what the file holds already."""

    def __init__(
        self,
        path: Path,
        *,
        data: Mapping[str, Any],
        model: Mapping[str, Any],
        settings: Sequence[Setting],
        positive: int | None = None,
    ) -> None:
        """Read the file, or begin it; one of another run is refused."""
        check_file(path)
        self.path = path
        run = {
            "ranmask": __version__,
            "data": dict(data),
            "model": dict(model),
            "settings": [asdict(setting) for setting in settings],
            "positive": positive,
        }
        self._run: dict[str, Any] = json.loads(json.dumps(run))
        self.measured: list[Measured] = self._read() if path.exists() else []
        if not self.measured:
            self._write({"measured": []})  # a place that cannot be written to is told at once

    def write(
        self, measured: Sequence[Measured], *, at: int, thresholds: Sequence[int], rule: Rule
    ) -> None:
        """Replace the file by one with these measurements, in one step."""
        self.measured = list(measured)
        names = self._run["model"].get("labels")
        self._write(figures(measured, at=at, thresholds=thresholds, rule=rule, names=names))

    def _write(self, report: Mapping[str, Any]) -> None:
        complete = len(self.measured) == len(self._run["settings"])
        head = {"format": FORMAT, "version": VERSION, **self._run, "complete": complete}
        write_json(self.path, {**head, **report})

    def _read(self) -> list[Measured]:
        record = read_json(self.path, format=FORMAT, version=VERSION, error=OutputError)
        differing = [key for key in _SAME_RUN if record.get(key) != self._run[key]]
        if differing:
            raise another_run(self.path, differing)
        try:
            found = [_measured(entry) for entry in record["measured"]]
            known = [asdict(entry.setting) for entry in found]
        except (KeyError, TypeError, ValueError, RanmaskError) as error:
            raise OutputError(f"{self.path} is damaged ({error}): delete it") from error
        if known != self._run["settings"][: len(known)]:
            raise OutputError(f"{self.path} is damaged (settings out of order): delete it")
        return found


def figures(
    measured: Sequence[Measured],
    *,
    at: int,
    thresholds: Sequence[int],
    rule: Rule,
    names: Sequence[str] | None,
) -> dict[str, Any]:
    """What was measured and what follows from it, as plain JSON values.

    ``names``: of the classes.
    """
    best = frontier(measured, at)
    picked = pick(measured, rule, at)
    return {
        "at": at,
        "rule": rule,
        "picked": None if picked is None else asdict(picked.setting),
        "measured": [
            {
                "setting": asdict(entry.setting),
                "right": _triples(entry.summary, correct=True),
                "wrong": _triples(entry.summary, correct=False),
                "named": sorted(entry.summary.named.items()),
                "seconds_per_text": entry.seconds,
                "tolerance": entry.tolerance,
                "loose": entry.loose,
                "accuracy": float(entry.summary.accuracy),
                "median_radius": entry.summary.median_radius,
                "certified_accuracy": _floats(map(entry.summary.certified_accuracy, range(at + 1))),
                **certified_values(entry.summary, names),
                "positive": entry.positive,
                "score": float(entry.score(at)),
                "frontier": entry in best,
                "thresholds": [_threshold(entry, threshold, at) for threshold in thresholds],
            }
            for entry in measured
        ],
    }


def _threshold(entry: Measured, threshold: int, at: int) -> dict[str, Any]:
    found = entry.abstention(threshold, at)
    return {
        "threshold": threshold,
        "coverage": float(found.coverage),
        "accuracy": None if found.accuracy is None else float(found.accuracy),
        "certified_accuracy": _floats(found.certified_accuracy),
        "never_wrong": _floats(found.never_wrong),
    }


def _measured(entry: Mapping[str, Any]) -> Measured:
    summary = CertifiedSummary()
    for correct, triples in ((True, entry["right"]), (False, entry["wrong"])):
        for expected, radius, texts in triples:
            summary.add(correct=correct, radius=radius, words=1, expected=expected, texts=texts)
    summary.named.update({int(number): int(texts) for number, texts in entry["named"]})
    seconds, tolerance = float(entry["seconds_per_text"]), float(entry["tolerance"])
    loose, positive = int(entry["loose"]), entry["positive"]
    return Measured(Setting(**entry["setting"]), summary, seconds, tolerance, loose, positive)


def _triples(summary: CertifiedSummary, *, correct: bool) -> list[tuple[int | None, ...]]:
    """JSON has no table with such keys: true class, radius (None first) and number of texts."""
    found = [
        (expected, radius, texts)
        for (expected, right, radius, _), texts in summary.counts.items()
        if right == correct
    ]
    return sorted(found, key=lambda entry: (entry[0] or 0, -1 if entry[1] is None else entry[1]))


def _floats(values: Any) -> list[float]:
    return [float(value) for value in values]

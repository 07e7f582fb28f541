"""The JSON file of a sweep: written after each setting, resumed by the same command.

It holds what was measured (counts of radii) and, for reading, the figures that follow from them.
Those follow from ``at``, thresholds and rule too, which may change from one command to the next;
the model, the data and the settings may not.
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
from ranmask.evaluation.tuning import Measured, Radii, Rule, frontier, pick
from ranmask.metrics import certified_values
from ranmask.results.files import another_run, check_file, read_json, write_json

FORMAT, VERSION = "ranmask-tune", 2

_SAME_RUN = ("ranmask", "data", "model", "settings")


class TuneFile:
    """The record of one sweep.  ``measured`` is what the file holds already."""

    def __init__(
        self,
        path: Path,
        *,
        data: Mapping[str, Any],
        model: Mapping[str, Any],
        settings: Sequence[Setting],
    ) -> None:
        """Read the file, or begin it; one of another run is refused."""
        check_file(path)
        self.path = path
        run = {
            "ranmask": __version__,
            "data": dict(data),
            "model": dict(model),
            "settings": [asdict(setting) for setting in settings],
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
            known = [asdict(one.setting) for one in found]
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
                "setting": asdict(one.setting),
                "right": _triples(one.right),
                "wrong": _triples(one.wrong),
                "seconds_per_text": one.seconds,
                "tolerance": one.tolerance,
                "loose": one.loose,
                "accuracy": float(one.accuracy),
                "median_radius": one.median_radius,
                "certified_accuracy": _floats(map(one.certified_accuracy, range(at + 1))),
                **certified_values(one.summary, names),
                "score": float(one.score(at)),
                "frontier": one in best,
                "thresholds": [_threshold(one, threshold, at) for threshold in thresholds],
            }
            for one in measured
        ],
    }


def _threshold(one: Measured, threshold: int, at: int) -> dict[str, Any]:
    found = one.abstention(threshold, at)
    return {
        "threshold": threshold,
        "coverage": float(found.coverage),
        "accuracy": None if found.accuracy is None else float(found.accuracy),
        "certified_accuracy": _floats(found.certified_accuracy),
        "never_wrong": _floats(found.never_wrong),
    }


def _measured(entry: Mapping[str, Any]) -> Measured:
    return Measured(
        Setting(**entry["setting"]),
        _radii(entry["right"]),
        _radii(entry["wrong"]),
        float(entry["seconds_per_text"]),
        float(entry["tolerance"]),
        int(entry["loose"]),
    )


def _triples(radii: Radii) -> list[list[int | None]]:
    """JSON has no table with such keys: true class, radius and number of texts."""
    return [[expected, radius, texts] for (expected, radius), texts in radii.items()]


def _radii(triples: Any) -> Radii:
    return {(expected, radius): texts for expected, radius, texts in triples}


def _floats(values: Any) -> list[float]:
    return [float(value) for value in values]

"""A detector at the gate: its runs read as labels, flagged or not, and what it proves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranmask.errors import OptionError
from ranmask.evaluation.requirements import Requirement
from ranmask.results import Detection
from ranmask.runs.detect import DetectTask
from ranmask.runs.summary import RunSummary
from ranmask.smoothing.detectors import Detector

_UNPROVED = ("median radius", "certified accuracy")
"""Figures of all texts, of which a detector proves nothing where it does not flag."""


@dataclass
class FlagSummary(RunSummary):
    """What the lines of ``detect`` amount to, as those of a classifier that flags one class."""

    def add(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Count lines, as a run writes them."""
        super().add(map(self._labelled, lines))

    def _labelled(self, line: Mapping[str, Any]) -> dict[str, Any]:
        if "correct" not in line:
            return dict(line)
        positive, expected = self.positive, line["expected_id"]
        classes = range(len(self.labels or ()))
        other = expected if expected != positive else next(i for i in classes if i != positive)
        # Ahead of the others by as much as the score is above the threshold.
        scores = [line["score"] if i == positive else line["threshold"] for i in classes]
        return {
            **line,
            "label_id": positive if line["flagged"] else other,
            "scores": scores,
            "guarantee": line["radius"] is not None,
        }


@dataclass(frozen=True)
class FlagTask(DetectTask):
    """Rows to detections; their summary has the figures of a gate."""

    def summary(self) -> FlagSummary:  # type: ignore[override]
        """An empty summary."""
        place = self.labels.index(self.positive)
        return FlagSummary("predict", self.labels, positive=place)


def check_detector(
    detector: Detector, requirements: Sequence[Requirement], positive: str | None
) -> str:
    """The class that is flagged; what cannot be measured is refused before any work."""
    if positive not in (None, detector.positive):
        raise OptionError(
            f"positive={positive!r} means nothing for a detector of {detector.positive!r}: leave "
            "it out"
        )
    for requirement in requirements:
        figure = requirement.figure
        if figure.name in _UNPROVED:
            raise OptionError(
                f"{str(requirement)!r}: of a text that it does not flag a detector proves nothing; "
                "require certified recall"
            )
        if figure.recipe is not None:
            raise OptionError(
                f"{str(requirement)!r}: attacks are for classifiers. Require certified recall@0, "
                "which covers whatever text is added to a flagged one"
            )
        if figure.changed is not None and figure.rate is not None:
            raise OptionError(
                f"{str(requirement)!r}: a detector proves at its own threshold; set another with "
                "ranmask detect --calibrate, and leave out fpr"
            )
    return detector.positive


def detector_proof(example: Detection) -> dict[str, Any]:
    """What certified figures cover, and assume."""
    where = "anywhere" if example.detector == "words" else "before or after a flagged text"
    return {
        "threat": f"add any text {where}, and with it change or delete that many words",
        "certificate": "detector",
        "alpha": None,
        "assumes": list(example.assumes),
    }

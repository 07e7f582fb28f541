"""Whether a model is good enough: requirements, measured on labelled texts and under attack.

Texts are certified (or only labelled, where nothing required needs a proof) and attacked through
`runs`, into files of one folder, so that the same call goes on where it stopped.  Whatever a run
can classify can pass a gate: figures are read from the lines that it writes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from ranmask import __version__
from ranmask.attacks.loop import AttackLoop
from ranmask.attacks.runs import attack_rows
from ranmask.certificates.assumed import missing_guarantee
from ranmask.data.rows import Row, RowSource
from ranmask.errors import DataError, OptionError
from ranmask.evaluation.gate_detector import FlagTask, check_detector, detector_proof
from ranmask.evaluation.gate_figures import Figure, MeasuredFigures
from ranmask.evaluation.requirements import FigureName, Requirement
from ranmask.results import Detection
from ranmask.runs.api import Classifier, classify_file, classify_task
from ranmask.runs.stored import first_result
from ranmask.runs.summary import RunSummary
from ranmask.runs.task import RunEvents, class_number, label_id
from ranmask.smoothing.detectors import Detector, too_few

GATE_FORMAT, GATE_VERSION = "ranmask-gate", 1
Events: TypeAlias = Callable[[int, Path], AbstractContextManager[RunEvents]]


@dataclass(frozen=True)
class CheckedRequirement:
    """A requirement beside what was measured, and whether it holds.

    ``sure``: whether it holds at the worse end of the interval too.
    """

    requirement: Requirement
    figure: Figure
    holds: bool
    sure: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "requirement": str(self.requirement),
            **self.figure.to_dict(),
            "holds": self.holds,
            "sure": self.sure,
        }


@dataclass(frozen=True)
class GateReport:
    """What was required and measured of a model, and what the figures rest on; its fields are JSON.

    ``thresholds``: those that were set for rates of false positives, by rate; ``calibrated``:
    the texts that they were set on, where those are not the texts measured; ``too_few``: what so
    few texts cannot show.  ``proof``: what certificates cover and assume; None where nothing was
    certified.
    """

    by_interval: bool
    model: str
    data: Mapping[str, Any]
    rows: int
    errors: int
    requirements: tuple[CheckedRequirement, ...]
    figures: tuple[Figure, ...]
    classes: Sequence[Mapping[str, Any]]
    positive: str | None
    thresholds: Mapping[str, float]
    calibrated: Mapping[str, Any] | None
    too_few: Sequence[str]
    proof: Mapping[str, Any] | None
    attacks: Mapping[str, Mapping[str, Any]]
    classifier: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        """Whether every requirement holds."""
        return all(self.reached(check) for check in self.requirements)

    def reached(self, check: CheckedRequirement) -> bool:
        """Whether a requirement holds, by the measure that was asked for."""
        return check.sure if self.by_interval else check.holds

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping with a version number."""
        return {
            "format": GATE_FORMAT,
            "version": GATE_VERSION,
            "ranmask": __version__,
            "passed": self.passed,
            **vars(self),
            "requirements": [check.to_dict() for check in self.requirements],
            "figures": [figure.to_dict() for figure in self.figures],
        }


def run_gate(
    classifier: Classifier | Detector,
    source: RowSource,
    requirements: Sequence[Requirement],
    folder: Path,
    *,
    model: str = "",
    positive: str | None = None,
    calibration: RowSource | None = None,
    attack: Callable[[str, RowSource], AttackLoop] | None = None,
    attacked_rows: int = 200,
    by_interval: bool = False,
    events: Events = lambda total, output: nullcontext(RunEvents()),
) -> GateReport:
    """Measure what is required, and say whether it is reached.

    Args:
        classifier: Whatever a run can classify with, or a detector.
        source: Labelled rows.
        requirements: As `parse_requirement` reads them.
        folder: For the files of the runs; the same call resumes them.
        model: The name that the report gives the classifier.
        positive: The positive class, where a requirement needs one; a detector knows its own.
        calibration: Labelled rows that thresholds are set on; by default those of ``source``.
        attack: Makes the attack of a recipe on some rows.
        attacked_rows: How many of the first rows are attacked; of those of the positive class
            where an attack is for ``robust recall`` alone.
        by_interval: A requirement holds only if it does at the worse end of the 95 % interval.
        events: Who is told of a run of so many rows into a file.
    """
    detector = classifier if isinstance(classifier, Detector) else None
    if detector is not None:
        positive = check_detector(detector, requirements, positive)
    elif not getattr(classifier, "gives_margins", False):
        _refuse_margins(requirements)
    number = check_possible(requirements, positive, classifier.labels)
    rows = list(source.rows)
    source = replace(source, rows=rows, total=len(rows))
    attacked: dict[str, tuple[AttackLoop, RowSource]] = {}
    for recipe in dict.fromkeys(r.figure.recipe for r in requirements if r.figure.recipe):
        if attack is None:
            raise OptionError(f"a requirement needs the attack {recipe}: give attack")
        whole = any(str(r.figure) == f"robust accuracy({recipe})" for r in requirements)
        some = _first_rows(source, attacked_rows, None if whole else number, classifier.labels)
        attacked[recipe] = attack(recipe, some), some
    proof = any(requirement.figure.kind.proof for requirement in requirements)
    command = "detect" if detector is not None else "certify" if proof else "predict"
    classify = functools.partial(_classified, classifier, command, positive, events)
    summary = classify(source, folder / f"{command}.jsonl")
    if not summary.certified.texts:
        raise DataError(f"none of {summary.rows} rows has a usable text with a known label")
    calibrated = None
    if calibration is not None:
        calibrated = classify(calibration, folder / "calibrate.jsonl").detection
    proved = _proof(folder / f"{command}.jsonl") if proof else None
    attacks = {}
    for recipe, (loop, some) in attacked.items():
        output = folder / f"{recipe}.jsonl"
        with events(some.total, output) as told:
            attacks[recipe] = attack_rows(loop, some, output, events=told)
    measured = MeasuredFigures(summary, calibrated, attacks)
    values = summary.values()
    rates = dict.fromkeys(r.figure.rate for r in requirements if r.figure.rate is not None)
    return GateReport(
        by_interval=by_interval,
        model=model,
        data=source.description,
        rows=summary.rows,
        errors=summary.errors,
        requirements=tuple(_checked(requirement, measured) for requirement in requirements),
        figures=tuple(map(measured.figure, _usual(summary, proof, tuple(rates)))),
        classes=values["classes"],
        positive=values["positive"]["name"] if positive is not None else None,
        thresholds={f"{float(rate):g}": measured.threshold(rate) for rate in rates},
        calibrated=None if calibration is None else calibration.description,
        too_few=[note for rate in rates if (note := too_few(measured.harmless, rate))],
        proof=proved,
        attacks={name: attacked.values() for name, attacked in attacks.items()},
        classifier=classifier.description(),
    )


def check_possible(
    requirements: Sequence[Requirement], positive: str | None, labels: tuple[str, ...] | None
) -> int | None:
    """The number of the positive class; what cannot be measured is refused before any work."""
    if not requirements:
        raise OptionError("a gate needs at least one requirement, as 'accuracy >= .9'")
    for requirement in requirements:
        if requirement.figure.kind.positive and positive is None:
            known = f" (the classes are {', '.join(labels)})" if labels else ""
            raise OptionError(
                f"{str(requirement)!r} needs a class to look for: name it with positive{known}",
                "positive",
            )
    return None if positive is None else class_number(positive, labels)


def _refuse_margins(requirements: Sequence[Requirement]) -> None:
    for requirement in requirements:
        if requirement.figure.kind.proof and requirement.figure.rate is not None:
            raise OptionError(
                f"{str(requirement.figure)!r} needs scores that are certified, which "
                "certificate='exact' and threat='substitutions' give; without fpr it is the recall "
                "of the labels"
            )


def _classified(
    classifier: Classifier | Detector,
    command: str,
    positive: str | None,
    events: Events,
    source: RowSource,
    output: Path,
) -> RunSummary:
    make: Any
    if isinstance(classifier, Detector):
        make = functools.partial(FlagTask.of, classifier)
    else:
        make = functools.partial(classify_task, command, classifier, positive)
    with events(source.total, output) as told:
        return classify_file(make, source, output, events=told)


def _first_rows(
    source: RowSource, most: int, positive: int | None, labels: tuple[str, ...] | None
) -> RowSource:
    """The first rows; of the positive class, where that is given."""
    rows: Iterable[Row] = source.rows
    if positive is not None:
        classes = positive + 1 if labels is None else len(labels)
        rows = (row for row in rows if label_id(row.label, labels, classes) == positive)
    first = list(itertools.islice(rows, most))
    about = {**source.description, "attacked": most, "positive": positive}
    return replace(source, rows=first, total=len(first), description=about)


def _proof(path: Path) -> dict[str, Any] | None:
    """What the certificates of a run cover; refused where they are no proof of what is shown."""
    example: Any = first_result(path)
    if example is None:
        return None
    if isinstance(example, Detection):
        return detector_proof(example)
    if not example.guarantee:
        why, instead = missing_guarantee(example.certificate)
        raise OptionError(
            f"certificate={example.certificate!r} proves nothing here, as {why}: certified figures "
            f"need {instead}"
        )
    if hasattr(example, "shown_label"):
        raise OptionError(
            "a cascade as a whole carries no certificate: give its smoothed part, or require no "
            "certified figure"
        )
    names = ("threat", "certificate", "alpha")
    return {**{name: getattr(example, name) for name in names}, "assumes": list(example.assumes)}


def _usual(summary: RunSummary, proof: bool, rates: Sequence[Fraction]) -> list[FigureName]:
    """What every card shows, required or not."""
    names = [FigureName("accuracy"), FigureName("balanced accuracy"), FigureName("errors")]
    if proof and summary.has_radii:
        names.append(FigureName("median radius"))
        names += [FigureName("certified accuracy", changed) for changed in (1, 2, 3)]
    found = summary.detection
    if summary.positive is not None and found.positives:
        others = ("false-positive rate",) if found.positives < len(found.texts) else ()
        names += map(FigureName, ("precision", "recall", "f1", *others))
        names += [FigureName("certified recall", changed) for changed in (1, 2, 3) if proof]
        if found.roc is not None:
            names += [FigureName("auc"), FigureName("average precision")]
        for rate in rates:
            names += [FigureName(name, rate=rate) for name in ("recall", *others)]
    return names


def _checked(requirement: Requirement, measured: MeasuredFigures) -> CheckedRequirement:
    figure = measured.figure(requirement.figure)
    worse = Fraction(figure.low if requirement.least else figure.high)
    if requirement.figure.name == "errors":  # rows of this run, which stand for no others
        worse = figure.value
    return CheckedRequirement(
        requirement, figure, requirement.holds(figure.value), requirement.holds(worse)
    )

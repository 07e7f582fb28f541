"""The report of a gate as people and machines read it: Markdown, JUnit XML and SARIF."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ranmask import __version__
from ranmask.certificates.threats import STEPS
from ranmask.evaluation.gate import CheckedRequirement, GateReport
from ranmask.evaluation.gate_figures import Figure
from ranmask.evaluation.requirements import KINDS
from ranmask.metrics import class_table

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def markdown(report: GateReport) -> str:
    """A robustness card."""
    verdict = "passed" if report.passed else "**failed**"
    held = sum(map(report.reached, report.requirements))
    head = ["requirement", "measured", "95 % interval", "holds"]
    rows = [
        [f"`{check.requirement}`", *_shown(check.figure), _answer(report, check)]
        for check in report.requirements
    ]
    figures = [[figure.name, *_shown(figure), f"{figure.texts:,}"] for figure in report.figures]
    classes_head, classes, left_out = class_table(report.classes)
    parts = [
        f"# Robustness card: {report.model} on {_data(report.data)}",
        f"Gate {verdict}: {held} of {len(report.requirements)} requirements hold"
        + (", each at the worse end of its interval too." if report.by_interval else "."),
        _table(head, rows),
        "## Measured",
        f"{report.rows:,} rows, {report.errors} with errors"
        + ("." if report.positive is None else f"; the positive class is *{report.positive}*."),
        _table(["figure", "value", "95 % interval", "texts"], figures),
        _table(classes_head, classes) + (f"\n\nShown: {left_out}." if left_out else ""),
        *_notes(report),
        f"ranmask {__version__}.",
    ]
    return "\n\n".join(parts) + "\n"


def junit(report: GateReport) -> str:
    """A test case for each requirement, as CI servers show them."""
    failed = [check for check in report.requirements if not report.reached(check)]
    counts = {"tests": str(len(report.requirements)), "failures": str(len(failed)), "errors": "0"}
    suites = ElementTree.Element("testsuites", {"name": "ranmask gate", **counts})
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": f"ranmask gate {report.model}", **counts, "skipped": "0"}
    )
    for check in report.requirements:
        about = {"classname": "ranmask.gate", "name": str(check.requirement), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", about)
        if check in failed:
            message = sentence(report, check)
            failure = {"message": message, "type": "requirement"}
            ElementTree.SubElement(case, "failure", failure).text = message
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def sarif(report: GateReport) -> str:
    """SARIF 2.1.0: a rule for each figure, a result for each requirement."""
    names = list(dict.fromkeys(check.requirement.figure.name for check in report.requirements))
    rules = [
        {"id": _rule(name), "name": name, "shortDescription": {"text": KINDS[name].about}}
        for name in names
    ]
    place = {"physicalLocation": {"artifactLocation": {"uri": quote(report.model or "model")}}}
    results = []
    for check in report.requirements:
        reached = report.reached(check)
        figure = check.requirement.figure.name
        results.append(
            {
                "ruleId": _rule(figure),
                "ruleIndex": names.index(figure),
                "kind": "pass" if reached else "fail",
                "level": "none" if reached else "error",
                "message": {"text": sentence(report, check)},
                "locations": [place],
                "properties": check.to_dict(),
            }
        )
    driver = {"name": "ranmask gate", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def sentence(report: GateReport, check: CheckedRequirement) -> str:
    """A requirement and what was measured, in one line."""
    value, interval = _shown(check.figure)
    said = "holds" if report.reached(check) else "does not hold"
    if report.by_interval and check.holds and not check.sure:
        said = "holds as measured, but not at the worse end of its interval"
    return f"{check.requirement}: {said}; measured {value} (95 % interval {interval})"


def _answer(report: GateReport, check: CheckedRequirement) -> str:
    if report.reached(check):
        return "yes" if check.sure else "yes, not surely"
    return "as measured, not surely" if check.holds else "**no**"


def _shown(figure: Figure) -> tuple[str, str]:
    """The value and its interval; radii are whole numbers."""
    if figure.name == "median radius":
        low, value, high = (
            "none" if one < 0 else f"{float(one):g}"
            for one in (figure.low, figure.value, figure.high)
        )
        return value, f"{low} to {high}"
    return f"{float(figure.value):.3f}", f"{figure.low:.3f} to {figure.high:.3f}"


def _notes(report: GateReport) -> list[str]:
    """What the figures rest on."""
    notes = []
    if report.thresholds:
        set_on = "the texts measured here, so that their own rate is not a test of it"
        if report.calibrated is not None:
            set_on = _data(report.calibrated)
        shown = ", ".join(
            f"{100 * float(rate):g} % at {value:.6g}" for rate, value in report.thresholds.items()
        )
        notes.append(f"Thresholds for rates of false positives, set on {set_on}: {shown}.")
        notes += [f"Warning: {note}." for note in report.too_few]
    if report.proof is not None:
        may = STEPS.get(report.proof["threat"], report.proof["threat"])
        alpha = report.proof["alpha"]
        chance = "" if alpha is None else f", each with probability {1 - alpha:g}"
        covered = f"Certified figures are proved against whoever may {may}{chance}."
        lines = [f"{covered} That assumes:", ""]
        notes.append("\n".join([*lines, *(f"- {line}" for line in report.proof["assumes"])]))
    for recipe, values in report.attacks.items():
        notes.append(
            f"The attack {recipe} was tried on {values['texts']:,} texts, the first ones: "
            f"{values['succeeded']:,} of {values['attempted']:,} succeeded. A robust figure says "
            "what this search found, and proves nothing."
        )
    notes.append(
        "Intervals are Wilson's, of shares among texts drawn like these (median: ranks; balanced "
        "accuracy: Zou and Donner; AUC: Newcombe; F1 and average precision: from shares). At a "
        "rate of false positives they take the threshold as given."
    )
    return ["## Notes", *notes]


def _data(description: Any) -> str:
    """The name of rows, from what their run's record says."""
    name = description.get("name") or description.get("path") or "texts"
    name = Path(name).name if Path(name).is_absolute() else name
    split = description.get("split")
    return f"{name} {split}" if split else str(name)


def _rule(name: str) -> str:
    return "ranmask/" + name.replace(" ", "-")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])

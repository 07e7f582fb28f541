"""What the lines of a run amount to: accuracy, certified accuracy, and how many lines failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ranmask.errors import OptionError
from ranmask.metrics import CertifiedSummary, certified_values, class_name, words_beside
from ranmask.metrics.detection import DetectedText, DetectionSummary
from ranmask.runs.result_file import unread

POISONED = (0, 1, 2, 5, 10, 20, 50)
"""Numbers of poisoned training texts that summaries tell of, where they are certified."""


@dataclass(frozen=True)
class KindSummary:
    """What one of several certificates of the same texts is worth, and whether it is a proof."""

    guarantee: bool
    summary: CertifiedSummary


@dataclass
class RunSummary:
    """What the lines of `certify` or `predict` amount to, added as they come.

    ``certified``: accuracies over the labelled lines.  ``unlabelled``: labels that were said, and
    radii, of the lines without a true one.  ``threats``: the same for each threat,
    where several were asked for.  ``kinds``: what each certificate of a `Comparison` is worth,
    exact first.  ``poisoned``: certified accuracies beside so many poisoned training texts, where
    those are certified.  ``positive``: the number of a class that is held against all others;
    memory grows with the lines for its sake only.
    """

    command: str
    labels: Sequence[str] | None = None
    rows: int = 0
    errors: int = 0
    reader_failed: int = 0
    certified: CertifiedSummary = field(default_factory=CertifiedSummary)
    unlabelled: CertifiedSummary = field(default_factory=CertifiedSummary)
    kinds: dict[str, KindSummary] = field(default_factory=dict)
    threats: dict[str, CertifiedSummary] = field(default_factory=dict)
    poisoned: dict[int, CertifiedSummary] = field(default_factory=dict)
    positive: int | None = None
    detection: DetectionSummary = field(default_factory=DetectionSummary)

    @property
    def has_radii(self) -> bool:
        """Whether the results are certificates."""
        return self.command == "certify"

    def add(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Count lines, as a run writes them."""
        for line in lines:
            self.rows += 1
            self.errors += "error" in line
            self.reader_failed += unread(line)
            if "correct" not in line:
                if "label_id" in line:
                    self.add_unlabelled(line)
                continue
            self.add_labelled(line)
            expected = line["expected_id"]
            for threat, radius in line.get("radii", {}).items():
                self.threats.setdefault(threat, CertifiedSummary()).add(
                    correct=line["correct"], radius=radius, words=line["words"], expected=expected
                )
            if "poisoned" in line:
                add_poisoned(self.poisoned, line["poisoned"], line)
            if self.positive is not None:
                self.detection.add(detected_text(line, self.positive))
            for kind, one in {"exact": line, **line["others"]}.items() if "others" in line else ():
                empty = KindSummary(one["guarantee"], CertifiedSummary())
                self.kinds.setdefault(kind, empty).summary.add(
                    correct=one["label_id"] == expected,
                    radius=one["radius"],
                    words=line["words"],
                    expected=expected,
                    named=one["label_id"],
                )

    def add_labelled(self, line: Mapping[str, Any], texts: int = 1) -> None:
        """Count lines whose true label is known."""
        self.certified.add(
            correct=line["correct"],
            radius=line.get("radius"),
            words=line["words"],
            expected=line["expected_id"],
            named=line["label_id"],
            texts=texts,
        )

    def add_unlabelled(self, line: Mapping[str, Any], texts: int = 1) -> None:
        """Count lines whose label may be right or wrong: their radius where it is proved."""
        self.unlabelled.add(
            correct=True,
            radius=line.get("radius") if line.get("guarantee") else None,
            words=line["words"],
            named=line["label_id"],
            texts=texts,
        )

    def values(self) -> dict[str, Any]:
        """All figures as plain JSON values."""
        labelled = self.certified.texts
        values: dict[str, Any] = {"rows": self.rows, "errors": self.errors, "labelled": labelled}
        if self.reader_failed:
            values["reader_failed"] = self.reader_failed
        if labelled:
            values |= self._figures(self.certified)
            if self.positive is not None:
                name = class_name(self.positive, self.labels)
                values["positive"] = {"name": name, **self.detection.values()}
        elif self.unlabelled.texts:
            values |= self._unlabelled_figures()
        if self.threats:
            values["threats"] = {
                threat: self._certified(summary) | all_words(threat, summary)
                for threat, summary in self.threats.items()
            }
        if self.poisoned:
            values["poisoned"] = poisoned_values(self.poisoned)
        if self.kinds:
            values["certificates"] = {
                kind: {"guarantee": one.guarantee, **self._figures(one.summary)}
                for kind, one in self.kinds.items()
            }
        return values

    def _unlabelled_figures(self) -> dict[str, Any]:
        """How often each label was said; and the radii, where nobody knows which are right."""
        said = self.unlabelled
        named = {class_name(number, self.labels): texts for number, texts in said.named.items()}
        values: dict[str, Any] = {"labels": dict(sorted(named.items()))}
        if self.has_radii:
            radii = self._certified(said)
            values |= {
                "median_radius": radii["median_radius"],
                "certified_share": radii["certified_accuracy"],
            }
        return values

    def _figures(self, summary: CertifiedSummary) -> dict[str, Any]:
        values: dict[str, Any] = {"accuracy": float(summary.accuracy)}
        if self.has_radii:
            values |= self._certified(summary)
        return {**values, **certified_values(summary, self.labels, certified=self.has_radii)}

    def _certified(self, summary: CertifiedSummary) -> dict[str, Any]:
        rate = summary.median_rate
        return {
            "median_radius": summary.median_radius,
            "median_rate": None if rate is None else float(rate),
            "certified_accuracy": summary.curve(),
        }


def add_poisoned(
    summaries: dict[int, CertifiedSummary], poisoned: Sequence[int], line: Mapping[str, Any]
) -> None:
    """Count a labelled line beside each number of poisoned texts in `POISONED`."""
    for texts in POISONED:
        summaries.setdefault(texts, CertifiedSummary()).add(
            correct=line["correct"],
            radius=words_beside(poisoned, texts),
            words=line["words"],
            expected=line["expected_id"],
        )


def poisoned_values(summaries: Mapping[int, CertifiedSummary]) -> dict[str, list[float]]:
    """For each number of poisoned texts the certified accuracy at 0, 1, 2, ... changed words."""
    return {str(texts): summary.curve() for texts, summary in summaries.items() if summary.radii()}


def all_words(threat: str, summary: CertifiedSummary) -> dict[str, float]:
    """Of synonyms, the share of all texts that are right and proved with all words replaced."""
    if threat != "synonyms" or not summary.texts:
        return {}
    whole = sum(texts for _, radius, words, texts in summary.radii() if radius >= words)
    return {"all_words": whole / summary.texts}


def detected_text(line: Mapping[str, Any], positive: int) -> DetectedText:
    """A labelled line as a text of the positive class, or of the others."""
    proved = line.get("guarantee") is True
    margins, scale = (), 1
    if proved and line.get("positive_id") == positive:
        scale = line["margin_scale"]
        score = Fraction(line["margin"], scale)
        if line["expected_id"] == positive:  # of the others nobody asks
            margins = line["margins"]
    else:
        said = line["scores"] or line["votes"]
        if positive >= len(said):
            raise OptionError(f"positive must be one of {len(said)} classes, not number {positive}")
        others = max((value for place, value in enumerate(said) if place != positive), default=0)
        lead = Fraction(said[positive]) - Fraction(others)
        score = lead if line["scores"] else lead / line["masks"]
    return DetectedText(
        positive=line["expected_id"] == positive,
        flagged=line["label_id"] == positive,
        score=score,
        radius=line.get("radius") if proved else None,
        margins=margins,
        scale=scale,
    )

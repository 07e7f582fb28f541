"""What a run of attacks amounts to: the paper's three figures, and what they leave out.

Reads outcomes only, never a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ranmask.attacks.outcome import AttackOutcome
from ranmask.metrics import ClassCounts, class_values


@dataclass
class AttackSummary:
    """Counts over outcomes.

    ``clean_accuracy`` (Cln): texts that the victim gets right, of all.  ``robust_accuracy`` (Boa):
    texts that it still gets right after the attack, of all.  ``success_rate`` (Succ): successes,
    of the texts that were attacked; None where none was.  Texts with errors count in none of them.
    ``clean_classes`` and ``robust_classes``: Cln and Boa by true class; ``labels``: their names.
    """

    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0
    confirmed: int = 0
    queries: int = 0
    words_changed: int = 0
    share_changed: float = 0.0
    entropy: float = 0.0
    with_entropy: int = 0
    reverted: float = 0.0
    reverting: int = 0
    with_reverted: int = 0
    clean_classes: ClassCounts = field(default_factory=ClassCounts)
    robust_classes: ClassCounts = field(default_factory=ClassCounts)
    labels: Sequence[str] | None = None

    def add(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Count outcomes, as the lines that a run writes."""
        for line in lines:
            self.count(AttackOutcome.from_dict(line))

    def count(self, outcome: AttackOutcome) -> None:
        """Count one more."""
        if outcome.status == "error":
            self.errors += 1
            return
        if outcome.label is not None:
            self.clean_classes.add(outcome.label, right=outcome.status != "skipped")
            self.robust_classes.add(outcome.label, right=outcome.status == "failed")
        if outcome.entropy is not None:
            self.entropy += outcome.entropy
            self.with_entropy += 1
        if outcome.status == "skipped":
            self.skipped += 1
            return
        self.queries += outcome.queries
        if outcome.status == "failed":
            self.failed += 1
            return
        self.succeeded += 1
        self.confirmed += bool(outcome.rechecked)
        self.words_changed += outcome.words_changed
        self.share_changed += outcome.words_changed / outcome.words
        if outcome.reverted is not None:
            self.with_reverted += 1
            self.reverted += outcome.reverted
            self.reverting += outcome.reverted > 0.5

    @property
    def attempted(self) -> int:
        """Texts that were attacked."""
        return self.succeeded + self.failed

    @property
    def texts(self) -> int:
        """Texts without an error."""
        return self.attempted + self.skipped

    @property
    def clean_accuracy(self) -> Fraction | None:
        """Cln."""
        return _ratio(self.attempted, self.texts)

    @property
    def robust_accuracy(self) -> Fraction | None:
        """Boa."""
        return _ratio(self.failed, self.texts)

    @property
    def success_rate(self) -> Fraction | None:
        """Succ."""
        return _ratio(self.succeeded, self.attempted)

    @property
    def confirmed_success_rate(self) -> Fraction | None:
        """Succ, of those successes only that are one on fresh masks too."""
        return _ratio(self.confirmed, self.attempted)

    def values(self) -> dict[str, Any]:
        """All figures as plain JSON values; shares, not percent; None where nothing was counted.

        ``majority``: what Cln would be if the victim named the largest
        class for every text; ``balanced_clean_accuracy`` and
        ``balanced_robust_accuracy``: means over the classes.
        """
        return {
            "texts": self.texts,
            "attempted": self.attempted,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "skipped": self.skipped,
            "errors": self.errors,
            "clean_accuracy": _number(self.clean_accuracy),
            "robust_accuracy": _number(self.robust_accuracy),
            "success_rate": _number(self.success_rate),
            "confirmed_success_rate": _number(self.confirmed_success_rate),
            "queries": _mean(self.queries, self.attempted),
            "words_changed": _mean(self.words_changed, self.succeeded),
            "share_changed": _mean(self.share_changed, self.succeeded),
            "entropy": _mean(self.entropy, self.with_entropy),
            "reverted": _mean(self.reverted, self.with_reverted),
            "mostly_reverted": _mean(self.reverting, self.with_reverted),
            **self._by_class(),
        }

    def _by_class(self) -> dict[str, Any]:
        clean, robust = self.clean_classes, self.robust_classes
        if not clean.texts:
            return {}
        return {
            "majority": float(clean.majority),
            "balanced_clean_accuracy": float(clean.balanced),
            "balanced_robust_accuracy": float(robust.balanced),
            "classes": class_values(
                {"clean_accuracy": clean, "robust_accuracy": robust}, self.labels
            ),
        }


def summarise(
    outcomes: Iterable[AttackOutcome], labels: Sequence[str] | None = None
) -> AttackSummary:
    """The summary of outcomes; ``labels``: names of the classes."""
    summary = AttackSummary(labels=labels)
    for outcome in outcomes:
        summary.count(outcome)
    return summary


def _ratio(part: int, whole: int) -> Fraction | None:
    return Fraction(part, whole) if whole else None


def _number(share: Fraction | None) -> float | None:
    return None if share is None else float(share)


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None

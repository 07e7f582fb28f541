"""What a run of attacks amounts to: the paper's three figures, and what they leave out.

Reads outcomes only, never a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ranmask.attacks.outcome import AttackOutcome
from ranmask.metrics import ClassCounts, class_values

_MEANS = ("queries", "words_changed", "share_changed", "entropy", "reverted", "mostly_reverted")


@dataclass
class AttackSummary:
    """Counts over outcomes.

    ``clean_accuracy`` (Cln): texts that the victim gets right, of all.  ``robust_accuracy`` (Boa):
    texts that it still gets right after the attack, of all.  ``success_rate`` (Succ): successes,
    of the texts that were attacked; ``confirmed_success_rate``: of those successes only that are
    one on fresh masks too.  None where there is no text.  Texts with errors count in none of them.
    ``clean_classes`` and ``robust_classes``: Cln and Boa by true class; ``labels``: their names.
    """

    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0
    confirmed: int = 0
    clean_classes: ClassCounts = field(default_factory=ClassCounts)
    robust_classes: ClassCounts = field(default_factory=ClassCounts)
    labels: Sequence[str] | None = None
    _sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_MEANS, 0), init=False)
    _counts: Counter[str] = field(default_factory=Counter, init=False)

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
        self._average(entropy=outcome.entropy)
        if outcome.status == "skipped":
            self.skipped += 1
            return
        self._average(queries=outcome.queries)
        if outcome.status == "failed":
            self.failed += 1
            return
        self.succeeded += 1
        self.confirmed += bool(outcome.rechecked)
        self._average(
            words_changed=outcome.words_changed,
            share_changed=outcome.words_changed / outcome.words,
            reverted=outcome.reverted,
            mostly_reverted=None if outcome.reverted is None else outcome.reverted > 0.5,
        )

    def _average(self, **values: float | None) -> None:
        for name, value in values.items():
            if value is not None:
                self._sums[name] += value
                self._counts[name] += 1

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
        """Succ on fresh masks."""
        return _ratio(self.confirmed, self.attempted)

    def values(self) -> dict[str, Any]:
        """All figures as plain JSON values; shares, not percent; None where nothing was counted.

        ``majority``: what Cln would be if the victim named the largest class for every text;
        ``balanced_clean_accuracy`` and ``balanced_robust_accuracy``: means over the classes.
        """
        rates = ("clean_accuracy", "robust_accuracy", "success_rate", "confirmed_success_rate")
        counts = ("texts", "attempted", "succeeded", "failed", "skipped", "errors")
        values: dict[str, Any] = {name: getattr(self, name) for name in counts}
        for name in rates:
            share = getattr(self, name)
            values[name] = None if share is None else float(share)
        for name, total in self._sums.items():
            count = self._counts[name]
            values[name] = total / count if count else None
        clean, robust = self.clean_classes, self.robust_classes
        if clean.texts:
            by_class = {"clean_accuracy": clean, "robust_accuracy": robust}
            values["majority"] = float(clean.majority)
            values["balanced_clean_accuracy"] = float(clean.balanced)
            values["balanced_robust_accuracy"] = float(robust.balanced)
            values["classes"] = class_values(by_class, self.labels)
        return values


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

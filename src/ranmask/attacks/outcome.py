"""What became of one attacked text, a frozen record; and what many of them amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias

from ranmask.errors import DataError
from ranmask.metrics import ClassCounts, class_values
from ranmask.results.records import check_version
from ranmask.words import Text, split

OUTCOME_VERSION = 1
_MEANS = (
    "queries",
    "words_changed",
    "share_changed",
    "distance",
    "entropy",
    "reverted",
    "mostly_reverted",
)

Status: TypeAlias = Literal["succeeded", "failed", "skipped", "error"]


@dataclass(frozen=True)
class Change:
    """One changed word: ``position`` counts the words of the text (of the hypothesis), from 0.

    An inserted word has no ``before``, and the position of the word that it stands in front of; a
    deleted one has no ``after``.
    ``premise`` is True for a word of the premise of a pair, counted in the premise.
    """

    position: int
    before: str
    after: str
    premise: bool = False


@dataclass(frozen=True)
class AttackOutcome:
    """One attacked text.

    ``status``: ``succeeded`` (the victim now says another label than the true one), ``failed``,
    ``skipped`` (the victim was wrong before the attack began), or ``error`` (then ``error`` says
    what happened, and only the first four fields are filled in).
    ``text`` and ``adversarial``: before and after; after a failure, the best text of the search.
    ``label``: the true class; ``clean_label`` and ``final_label``: what the victim says.
    ``queries``: texts that the victim was asked about, the first one included.
    ``words_changed``: by `ranmask.words`; those that were inserted or deleted count too.
    ``distance``: in steps of the threat ``unit``, at most ``budget``; for ``substitutions`` it is
    ``words_changed``.  ``radius``: so many are certified, where the victim
    certifies.
    ``clean_share`` and ``final_share``: the true class's share of the votes, or its mean score.
    ``entropy``: of the victim's shares for the text before the attack, in nats.
    ``rechecked``: whether a success is still one on fresh masks; None unless it succeeded.  Where
    the victim draws no masks, or the same for every text, there is nothing to draw afresh: True.
    ``reverted``: share of random maskings of a few words under which a plain victim gets the
    adversarial text right again; None where that was not measured.
    """

    number: int
    text: Text | None
    label: int | None
    status: Status
    error: str | None = None
    adversarial: Text | None = None
    clean_label: int | None = None
    final_label: int | None = None
    queries: int = 0
    words: int = 0
    words_changed: int = 0
    changes: tuple[Change, ...] = ()
    unit: str = "substitutions"
    distance: int = 0
    budget: int | None = None
    radius: int | None = None
    clean_share: float | None = None
    final_share: float | None = None
    entropy: float | None = None
    rechecked: bool | None = None
    reverted: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping with a version number; ``row`` is the number."""
        values = {"version": OUTCOME_VERSION, "row": self.number, **asdict(self)}
        del values["number"]
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The record that `to_dict` wrote; keys that are not its own are left alone."""
        check_version("attack outcome", data, OUTCOME_VERSION)
        values = {**data, "number": data.get("row")}
        missing = [known.name for known in fields(cls) if known.name not in values]
        if missing or values["number"] is None:
            raise DataError(f"not an AttackOutcome: no {', '.join(missing or ['row'])}")
        for name in ("text", "adversarial"):
            if isinstance(values[name], list):
                values[name] = tuple(values[name])
        values["changes"] = tuple(Change(**change) for change in values["changes"])
        return cls(**{known.name: values[known.name] for known in fields(cls)})


def changes_between(before: Text, after: Text, moved: bool = False) -> tuple[Change, ...]:
    """The words in which two texts of as many words differ; ``moved``: words came and went."""
    parts = zip(
        *((text,) if isinstance(text, str) else text for text in (before, after)), strict=True
    )
    pair = not isinstance(before, str)
    return tuple(
        Change(position, old, new, premise=pair and part == 0)
        for part, (one, other) in enumerate(parts)
        for position, old, new in _aligned(split(one), split(other), moved)
        if old != new
    )


def _aligned(
    one: Sequence[str], other: Sequence[str], moved: bool
) -> Iterator[tuple[int, str, str]]:
    if not moved:
        yield from ((position, *pair) for position, pair in enumerate(zip(one, other, strict=True)))
        return
    from ranmask.attacks.constraints import levenshtein  # a report needs no numpy

    for edit in levenshtein().editops(one, other):
        old = "" if edit.tag == "insert" else one[edit.src_pos]
        new = "" if edit.tag == "delete" else other[edit.dest_pos]
        yield edit.src_pos, old, new


@dataclass
class Gap:
    """Of texts with a certified radius: how many radii there are of each size, and attacks.

    The most changes, in the recipe's unit, that a text withstands lie between the two.
    """

    texts: int = 0
    radii: Counter[int] = field(default_factory=Counter)
    attacks: Counter[int] = field(default_factory=Counter)
    certified: int = 0
    broken_by: int = 0

    def count(self, outcome: AttackOutcome) -> None:
        """Count one more; a changed premise is covered by no radius."""
        if any(change.premise for change in outcome.changes):
            return
        self.texts += 1
        if outcome.status == "skipped" or outcome.radius is None:
            return
        self.radii[outcome.radius] += 1
        if outcome.status == "succeeded":
            self.attacks[outcome.distance] += 1
            self.certified += outcome.radius
            self.broken_by += outcome.distance

    def curve(self) -> list[tuple[float, float]]:
        """For 0, 1, 2, ... changes: the share of texts certified, and of those not broken."""
        right, proved, broken = sum(self.radii.values()), 0, 0
        rows = []
        for words in range(max((*self.radii, *self.attacks), default=0) + 1):
            broken += self.attacks[words]
            rows.append(((right - proved) / self.texts, (right - broken) / self.texts))
            proved += self.radii[words]
        return rows

    def values(self) -> dict[str, Any]:
        """Means over the texts that were broken, and the curve, as plain JSON values."""
        broken = sum(self.attacks.values())
        certified, by = (
            (one / broken if broken else None) for one in (self.certified, self.broken_by)
        )
        apart = (self.broken_by - self.certified) / broken if broken else None
        means = {"certified": certified, "broken_by": by, "apart": apart}
        return {"broken": broken, **means, "curve": [list(pair) for pair in self.curve()]}


@dataclass
class AttackSummary:
    """Counts over outcomes.

    ``clean_accuracy`` (Cln): texts that the victim gets right, of all.  ``robust_accuracy`` (Boa):
    texts that it still gets right after the attack, of all.  ``success_rate`` (Succ): successes,
    of the texts that were attacked; ``confirmed_success_rate``: of those successes only that are
    one on fresh masks too.  None where there is no text.  Texts with errors count in none of them.
    ``clean_classes`` and ``robust_classes``: Cln and Boa by true class; ``labels``: their names.
    ``unit``: what ``distance``, a mean of the successes, counts.
    ``gap``: how far the radii that are proved and the attacks that were found are apart.
    """

    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0
    confirmed: int = 0
    clean_classes: ClassCounts = field(default_factory=ClassCounts)
    robust_classes: ClassCounts = field(default_factory=ClassCounts)
    labels: Sequence[str] | None = None
    unit: str = "substitutions"
    gap: Gap = field(default_factory=lambda: Gap())
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
        self.unit = outcome.unit
        self._average(entropy=outcome.entropy)
        self.gap.count(outcome)
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
            distance=outcome.distance,
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
        values: dict[str, Any] = {name: getattr(self, name) for name in (*counts, "unit")}
        for name in rates:
            share = getattr(self, name)
            values[name] = None if share is None else float(share)
        for name, total in self._sums.items():
            count = self._counts[name]
            values[name] = total / count if count else None
        if self.gap.radii:
            values["gap"] = self.gap.values()
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

"""What a cascade is worth on texts that were attacked: a frozen record, to and from JSON.

The texts must be held out: neither a part nor the detector was trained on them.  Robust accuracy
is of all texts without errors: one that the victim got wrong by itself was not attacked and counts
as wrong, as in the paper.  For a classifier other than the victim the attack is a *transferred*
one, which says nothing of an attacker who asks it: ``ranmask attack --model CASCADE`` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from ranmask.attacks.outcome import AttackOutcome
from ranmask.errors import DataError
from ranmask.evaluation.intervals import wilson_interval
from ranmask.metrics import ClassCounts
from ranmask.metrics.roc import Roc, roc_curve
from ranmask.results import Certificate
from ranmask.results.files import check_format
from ranmask.smoothing.cascade import Cascade
from ranmask.words import Text

REPORT_VERSION = 2
_FORMAT = "ranmask-cascade-report"
_CLASSIFIERS = ("plain", "smoothed", "cascade")


@dataclass(frozen=True)
class Accuracy:
    """How many of the texts a classifier gets right, before and under the attack.

    ``clean_classes`` and ``robust_classes``: the same by true class, by its number.
    """

    clean: int
    robust: int
    clean_classes: tuple[int, ...]
    robust_classes: tuple[int, ...]


@dataclass(frozen=True)
class Paths:
    """How many of some texts take the smoothed path; the others take the plain one."""

    texts: int
    smoothed: int


@dataclass(frozen=True)
class Proved:
    """The variant that certifies, on texts whose attack succeeded against the file's victim.

    ``right``: originals whose certified label is right, of all texts.  ``harmless``: successful
    attacks that the certificate of the original text proves harmless to the certified label: it
    is right, and its radius is at least the number of words that were changed.
    """

    right: int
    harmless: int


@dataclass(frozen=True)
class CascadeReport:
    """Counts over ``texts``; of these ``succeeded`` attacks have an adversarial text.

    ``class_texts``: how many texts each true class has, by its number.
    ``plain``, ``smoothed`` and ``cascade``: the classifiers' accuracies.  ``clean_paths``: of the
    original texts; ``attacked_paths``: of the adversarial ones.  ``roc``: of the detector between
    the two; None where no attack succeeded.  ``proved``: None where it was not asked for.
    """

    texts: int
    class_texts: tuple[int, ...]
    class_names: tuple[str, ...] | None
    succeeded: int
    failed: int
    skipped: int
    threshold: float
    plain: Accuracy
    smoothed: Accuracy
    cascade: Accuracy
    clean_paths: Paths
    attacked_paths: Paths
    roc: Roc | None
    proved: Proved | None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping with a version number; shares with their 95 % intervals."""
        shares: dict[str, Any] = {}
        for name in _CLASSIFIERS:
            for kind in ("clean", "robust"):
                right = getattr(getattr(self, name), kind)
                low, high = wilson_interval(right, self.texts)
                shares[f"{name}_{kind}"] = {"share": right / self.texts, "low": low, "high": high}
        shares["majority"] = float(self.clean_classes("cascade").majority)
        for name in _CLASSIFIERS:
            shares[f"{name}_balanced_clean"] = float(self.clean_classes(name).balanced)
            shares[f"{name}_balanced_robust"] = float(self.robust_classes(name).balanced)
        if self.roc is not None:
            shares["AUC"] = {"share": float(self.roc.area), "exactly": str(self.roc.area)}
        return {"format": _FORMAT, "version": REPORT_VERSION, **asdict(self), "shares": shares}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CascadeReport:
        """The record that `to_dict` wrote; keys that are not its own are left alone."""
        check_format(data, _FORMAT, REPORT_VERSION, "the cascade report")
        hints = get_type_hints(cls)
        try:
            return cls(**{name: _read(data[name], hints[name]) for name in hints})
        except (KeyError, TypeError) as error:
            raise DataError(f"not a whole cascade report: {error}") from error

    def clean_classes(self, name: str) -> ClassCounts:
        """By class, what a classifier (plain, smoothed or cascade) gets right of the originals."""
        return self._counts(getattr(self, name).clean_classes)

    def robust_classes(self, name: str) -> ClassCounts:
        """The same under the attack."""
        return self._counts(getattr(self, name).robust_classes)

    def _counts(self, right: Sequence[int]) -> ClassCounts:
        there = [number for number, texts in enumerate(self.class_texts) if texts]
        return ClassCounts(
            Counter({number: self.class_texts[number] for number in there}),
            Counter({number: right[number] for number in there}),
        )


def _read(value: Any, hint: Any) -> Any:
    """A plain JSON value as a field of this type: lists are tuples, objects are records."""
    for kind in (hint, *get_args(hint)):
        if isinstance(value, dict) and isinstance(kind, type) and is_dataclass(kind):
            types = get_type_hints(kind)
            return kind(**{name: _read(entry, types.get(name)) for name, entry in value.items()})
        if isinstance(value, list) and get_origin(kind) is tuple:
            return tuple(_read(entry, get_args(kind)[0]) for entry in value)
    return value


def measure(
    cascade: Cascade, outcomes: Sequence[AttackOutcome], *, certified: bool = True
) -> CascadeReport:
    """Ask the parts of ``cascade`` about every text of ``outcomes``, before and after its attack.

    ``certified`` also certifies every original text.
    """
    used = [
        outcome for outcome in outcomes if outcome.status != "error" and outcome.text is not None
    ]
    if not used:
        raise DataError(f"none of the {len(outcomes)} attacked texts can be used: all have errors")
    names = cascade.labels
    for outcome in used:
        if names is not None and not 0 <= _class(outcome) < len(names):
            raise DataError(
                f"the attacked text has the class {outcome.label}; the cascade has "
                f"{len(names)}: {', '.join(names)}",
                row=outcome.number,
            )
    attacked = [outcome for outcome in used if outcome.status == "succeeded"]
    texts = [outcome.text for outcome in used if outcome.text is not None]
    before = _Answers(cascade, texts)
    adversarial = [outcome.adversarial for outcome in attacked if outcome.adversarial is not None]
    after = _Answers(cascade, adversarial)
    class_texts = Counter(map(_class, used))
    classes = max(class_texts) + 1 if names is None else len(names)
    statuses = Counter(outcome.status for outcome in used)

    def accuracy(originals: Sequence[int], adversarial: Sequence[int]) -> Accuracy:
        clean, robust = [0] * classes, [0] * classes
        changed = iter(adversarial)
        for outcome, label in zip(used, originals, strict=True):
            expected = _class(outcome)
            clean[expected] += label == expected
            under_attack = next(changed) if outcome.status == "succeeded" else label
            robust[expected] += outcome.status != "skipped" and under_attack == expected
        return Accuracy(sum(clean), sum(robust), tuple(clean), tuple(robust))

    return CascadeReport(
        texts=len(used),
        class_texts=tuple(class_texts[number] for number in range(classes)),
        class_names=names,
        succeeded=statuses["succeeded"],
        failed=statuses["failed"],
        skipped=statuses["skipped"],
        threshold=cascade.threshold,
        plain=accuracy(before.plain, after.plain),
        smoothed=accuracy(before.smoothed, after.smoothed),
        cascade=accuracy(before.shown, after.shown),
        clean_paths=Paths(len(used), sum(before.suspected)),
        attacked_paths=Paths(len(attacked), sum(after.suspected)),
        roc=roc_curve(before.suspicions, after.suspicions) if attacked else None,
        proved=_proved(used, cascade.certify(texts)) if certified else None,
    )


class _Answers:
    """What the parts of a cascade say of texts."""

    def __init__(self, cascade: Cascade, texts: Sequence[Text]) -> None:
        suspicions = cascade.suspicions(texts)
        self.suspicions: list[float] = suspicions.tolist()
        self.suspected: list[bool] = cascade.suspected(suspicions).tolist()
        self.plain = [answer.label_id for answer in cascade.plain_predictions(texts)]
        self.smoothed = [answer.label_id for answer in cascade.smoothed.predict(texts)]
        answers = zip(self.plain, self.smoothed, self.suspected, strict=True)
        self.shown = [smoothed if alarm else plain for plain, smoothed, alarm in answers]


def _proved(used: Sequence[AttackOutcome], certificates: Sequence[Certificate]) -> Proved:
    pairs = zip(used, certificates, strict=True)
    right = [(outcome, found) for outcome, found in pairs if outcome.label == found.label_id]
    succeeded = [pair for pair in right if pair[0].status == "succeeded"]
    return Proved(len(right), sum(covers(found, outcome) for outcome, found in succeeded))


def covers(certificate: Certificate, outcome: AttackOutcome) -> bool:
    """Whether the certificate of a text proves that its attack cannot move the certified label.

    A certificate for words of a table (``threat="synonyms"``) says nothing of other words, and
    none says anything of a changed premise.
    """
    return (
        certificate.guarantee
        and certificate.threat in ("substitutions", "edits")
        and outcome.unit == "substitutions"
        and certificate.radius is not None
        and certificate.radius >= outcome.words_changed
        and not any(change.premise for change in outcome.changes)
    )


def _class(outcome: AttackOutcome) -> int:
    """The true class of a text that was attacked, which it always has."""
    assert outcome.label is not None
    return outcome.label

"""What a cascade is worth on texts that were attacked: a frozen record, to and from JSON.

Reads the outcomes of an attack on some victim, and asks the three parts of the cascade about the
texts before and after.  Conventions:

- **Clean accuracy**: right labels of the original texts, all of them.
- **Robust accuracy**: texts that are right under the attack, of all.  A text that the victim got
  wrong by itself was not attacked and counts as wrong, as it does in the paper; where the attack
  failed the text is the original, where it succeeded it is the adversarial text.
- The attack was made for the victim of the file.  For any other classifier it is a *transferred*
  attack, and its robust accuracy says nothing of an attacker who asks that classifier:
  ``ranmask attack --model CASCADE`` does.

Texts with errors count nowhere.  The texts must be held out: neither a part nor the detector may
have been trained on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ranmask.attacks.outcome import AttackOutcome
from ranmask.errors import DataError
from ranmask.evaluation.roc import Roc, RocPoint, roc_curve, wilson_interval
from ranmask.metrics import ClassCounts
from ranmask.results import Certificate
from ranmask.results.files import check_format
from ranmask.smoothing.cascade import Cascade
from ranmask.words import Text

REPORT_VERSION = 2
_FORMAT = "ranmask-cascade-report"

ANYTHING = ("substitutions", "edits")
"""The threats of certificates that hold whatever a changed word becomes."""


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
        values = asdict(self)
        accuracies = ("plain", "smoothed", "cascade")
        shares: dict[str, Any] = {
            f"{name}_{kind}": self._share(getattr(getattr(self, name), kind))
            for name in accuracies
            for kind in ("clean", "robust")
        }
        shares["majority"] = float(self.clean_classes("cascade").majority)
        for name in accuracies:
            shares[f"{name}_balanced_clean"] = float(self.clean_classes(name).balanced)
            shares[f"{name}_balanced_robust"] = float(self.robust_classes(name).balanced)
        if self.roc is not None:
            shares["AUC"] = {"share": float(self.roc.area), "exactly": str(self.roc.area)}
        return {"format": _FORMAT, "version": REPORT_VERSION, **values, "shares": shares}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CascadeReport:
        """The record that `to_dict` wrote; keys that are not its own are left alone."""
        check_format(data, _FORMAT, REPORT_VERSION, "the cascade report")
        try:
            values = {name: data[name] for name in cls.__dataclass_fields__}
            values["class_texts"] = tuple(values["class_texts"])
            if values["class_names"] is not None:
                values["class_names"] = tuple(values["class_names"])
            for name in ("plain", "smoothed", "cascade"):
                found = values[name]
                by_class = (tuple(found[key]) for key in ("clean_classes", "robust_classes"))
                values[name] = Accuracy(found["clean"], found["robust"], *by_class)
            for name in ("clean_paths", "attacked_paths"):
                values[name] = Paths(**values[name])
            if values["proved"] is not None:
                values["proved"] = Proved(**values["proved"])
            if values["roc"] is not None:
                points = tuple(RocPoint(**point) for point in values["roc"]["points"])
                values["roc"] = Roc(**{**values["roc"], "points": points})
        except (KeyError, TypeError) as error:
            raise DataError(f"not a whole cascade report: {error}") from error
        return cls(**values)

    def clean_classes(self, name: str) -> ClassCounts:
        """By class, what a classifier (plain, smoothed or cascade) gets right of the originals."""
        return self._counts(getattr(self, name).clean_classes)

    def robust_classes(self, name: str) -> ClassCounts:
        """The same under the attack."""
        return self._counts(getattr(self, name).robust_classes)

    def _counts(self, right: Sequence[int]) -> ClassCounts:
        def counter(numbers: Sequence[int]) -> Counter[int]:
            there = enumerate(zip(numbers, self.class_texts, strict=True))
            return Counter({place: number for place, (number, texts) in there if texts})

        return ClassCounts(counter(self.class_texts), counter(right))

    def _share(self, part: int) -> dict[str, Any]:
        low, high = wilson_interval(part, self.texts)
        return {"share": part / self.texts, "low": low, "high": high}


def measure(
    cascade: Cascade, outcomes: Sequence[AttackOutcome], *, certified: bool = True
) -> CascadeReport:
    """Ask the parts of ``cascade`` about every text of ``outcomes``, before and after its attack.

    ``certified`` also certifies every original text.
    """
    used = [one for one in outcomes if one.status != "error" and one.text is not None]
    if not used:
        raise DataError(f"none of the {len(outcomes)} attacked texts can be used: all have errors")
    _check_classes(cascade, used)
    attacked = [one for one in used if one.status == "succeeded"]
    before = _Answers(cascade, [one.text for one in used if one.text is not None])
    after = _Answers(cascade, [one.adversarial for one in attacked if one.adversarial is not None])
    classes = max(map(_class, used)) + 1 if cascade.labels is None else len(cascade.labels)
    class_texts = Counter(map(_class, used))
    place_after = {id(one): place for place, one in enumerate(attacked)}

    def accuracy(labels: str) -> Accuracy:
        clean, robust = [0] * classes, [0] * classes
        for place, one in enumerate(used):
            expected = _class(one)
            right = getattr(before, labels)[place] == expected
            clean[expected] += right
            if one.status == "succeeded":
                robust[expected] += getattr(after, labels)[place_after[id(one)]] == expected
            else:
                robust[expected] += right and one.status == "failed"
        return Accuracy(sum(clean), sum(robust), tuple(clean), tuple(robust))

    roc = roc_curve(before.suspicions, after.suspicions) if attacked else None
    return CascadeReport(
        texts=len(used),
        class_texts=tuple(class_texts[one] for one in range(classes)),
        class_names=cascade.labels,
        succeeded=len(attacked),
        failed=sum(one.status == "failed" for one in used),
        skipped=sum(one.status == "skipped" for one in used),
        threshold=cascade.threshold,
        plain=accuracy("plain"),
        smoothed=accuracy("smoothed"),
        cascade=accuracy("shown"),
        clean_paths=Paths(len(used), sum(before.suspected)),
        attacked_paths=Paths(len(attacked), sum(after.suspected)),
        roc=roc,
        proved=_proved(cascade, used) if certified else None,
    )


class _Answers:
    """What the parts of a cascade say of texts."""

    def __init__(self, cascade: Cascade, texts: Sequence[Text]) -> None:
        suspicions = cascade.suspicions(texts)
        self.suspicions: list[float] = suspicions.tolist()
        self.suspected: list[bool] = cascade.suspected(suspicions).tolist()
        self.plain = [one.label_id for one in cascade.plain_predictions(texts)]
        self.smoothed = [one.label_id for one in cascade.smoothed.predict(texts)]
        self.shown = [
            smoothed if suspected else plain
            for plain, smoothed, suspected in zip(
                self.plain, self.smoothed, self.suspected, strict=True
            )
        ]


def _proved(cascade: Cascade, used: Sequence[AttackOutcome]) -> Proved:
    certificates = cascade.certify([one.text for one in used if one.text is not None])
    pairs = list(zip(used, certificates, strict=True))
    return Proved(
        right=sum(one.label == result.label_id for one, result in pairs),
        harmless=sum(
            one.status == "succeeded" and one.label == result.label_id and covers(result, one)
            for one, result in pairs
        ),
    )


def covers(certificate: Certificate, outcome: AttackOutcome) -> bool:
    """Whether the certificate of a text proves that its attack cannot move the certified label.

    A certificate for words of a table (``threat="synonyms"``) says nothing of other words, and
    none says anything of a changed premise.
    """
    return (
        certificate.guarantee
        and certificate.threat in ANYTHING
        and certificate.radius is not None
        and certificate.radius >= outcome.words_changed
        and not any(change.premise for change in outcome.changes)
    )


def _class(outcome: AttackOutcome) -> int:
    """The true class of a text that was attacked, which it always has."""
    assert outcome.label is not None
    return outcome.label


def _check_classes(cascade: Cascade, outcomes: Sequence[AttackOutcome]) -> None:
    names = cascade.labels
    for one in outcomes:
        if names is not None and one.label is not None and not 0 <= one.label < len(names):
            raise DataError(
                f"the attacked text has the class {one.label}; the cascade has "
                f"{len(names)}: {', '.join(names)}",
                row=one.number,
            )

"""Which setting to run: a sweep over smoothing options, and what each proves on labelled texts.

One model is measured under several `Setting`s, on texts that it was not trained on.  `frontier`
leaves those that no other beats in both accuracy and certified accuracy; `pick` names one.

**Threshold.**  A smoothed classifier may decline to answer: with a threshold of ``t`` words it
answers where its radius is at least ``t``.  The radius is what is thresholded, not a score or a
margin, because both of these are proved (docs/tuning.md) of it:

- *Never wrong.*  A text whose label has radius ``r`` is not answered with another label, whichever
  ``r + t`` words are changed.  In particular, whoever changes at most ``t`` words of any text gets
  its own label, or none.
- *Stays.*  A text of radius ``t + d`` is still answered after any ``d`` changes.  Of a smaller
  radius that is not known: an attacker may silence the classifier.

The second also asks that the tolerance is 0 and the search for the radius is not cut short.

This module prints nothing and knows no files.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from ranmask.certificates import families
from ranmask.certificates.kept import FamilyChoice, Retention
from ranmask.errors import ClassifierError, DataError, OptionError
from ranmask.metrics import CertifiedSummary
from ranmask.models.base import BaseClassifier, MaskedCopies, Scores, WrappedClassifier
from ranmask.options import DEFAULT_MASKS, ENSEMBLES, Ensemble, SmoothingOptions, check_choice
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.words import Text, documents

Rule: TypeAlias = Literal["score", "paper", "frontier"]
RULES: tuple[Rule, ...] = get_args(Rule)

Radii: TypeAlias = Mapping[tuple[int, int | None], int]
"""How many texts have each true class and radius; None: not certified even unchanged."""

_TEXTS_AT_ONCE = 32
_PROBED_SECONDS = 2.0  # where a text of a pass takes so long, no other is tried


@dataclass(frozen=True)
class Setting:
    """One way to smooth a model.  Checked when built."""

    keep: int | None
    mask_rate: float | None
    family: FamilyChoice
    ensemble: Ensemble
    masks: int

    def __post_init__(self) -> None:
        SmoothingOptions(**asdict(self))

    @property
    def name(self) -> str:
        """A few words for tables and pictures."""
        shown = f"rate {self.mask_rate:g}" if self.keep is None else f"keep {self.keep}"
        return f"{shown}, {self.family}, {self.ensemble}"

    @property
    def flags(self) -> tuple[str, ...]:
        """The options of ``ranmask certify`` that mean this setting."""
        given = {key: value for key, value in asdict(self).items() if value is not None}
        return tuple(
            part
            for key, value in given.items()
            for part in (f"--{key.replace('_', '-')}", str(value))
        )


@dataclass(frozen=True)
class Abstention:
    """What a threshold makes of a setting.  Lists run over 0, 1, 2, ... changed words.

    ``coverage``: share of the texts that is answered.  ``accuracy``: share of those that is
    right, None where none is answered.  ``certified_accuracy``: share of all texts that is
    answered right, and proved to be so after that many changes.  ``never_wrong``: share of all
    texts that is proved to be answered right or not at all.
    """

    threshold: int
    coverage: Fraction
    accuracy: Fraction | None
    certified_accuracy: tuple[Fraction, ...]
    never_wrong: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class Measured:
    """What a setting came to: radii of the texts with the right and with the wrong label.

    ``seconds``: of work on one text, as a mean.  ``tolerance``: in force when it was measured.
    ``loose``: texts of which more might be provable.  Everything else is computed from the radii,
    exactly.
    """

    setting: Setting
    right: Radii
    wrong: Radii
    seconds: float
    tolerance: float = 0.0
    loose: int = 0

    @cached_property
    def summary(self) -> CertifiedSummary:
        """The same counts as every other summary of ranmask has them."""
        summary = CertifiedSummary()
        for correct, radii in ((True, self.right), (False, self.wrong)):
            for (expected, radius), texts in radii.items():
                summary.add(correct=correct, radius=radius, words=1, expected=expected, texts=texts)
        return summary

    @property
    def accuracy(self) -> Fraction:
        """Share of right labels, certified or not."""
        return self.summary.accuracy

    @property
    def median_radius(self) -> int | None:
        """MCB, the paper's median; None where most texts are wrong or not certified."""
        return self.summary.median_radius

    def certified_accuracy(self, changed: int) -> Fraction:
        """CR@d: share of all texts that are right and certified at ``changed`` words."""
        return self.summary.certified_accuracy(changed)

    def score(self, at: int) -> Fraction:
        """The mean of CR@0 to CR@``at``."""
        return sum(map(self.certified_accuracy, range(at + 1)), Fraction(0)) / (at + 1)

    def abstention(self, threshold: int, at: int) -> Abstention:
        """What is answered, and proved of the answers, with a threshold of so many words."""
        right, wrong = (
            sum(n for (_, radius), n in radii.items() if radius is not None and radius >= threshold)
            for radii in (self.right, self.wrong)
        )
        answered = right + wrong
        return Abstention(
            threshold,
            Fraction(answered, self.summary.texts),
            Fraction(right, answered) if answered else None,
            tuple(self.certified_accuracy(threshold + changed) for changed in range(at + 1)),
            tuple(
                self.accuracy
                if changed <= threshold
                else self.certified_accuracy(changed - threshold)
                for changed in range(at + 1)
            ),
        )


# Which settings.


def retentions_near(own: Retention | None) -> list[Retention]:
    """How many words to try to show: what the model was saved with, and its neighbours."""
    if own is None:
        return [Retention(keep=keep) for keep in (1, 2, 3)]
    if own.mask_rate is None:
        near = [(own.keep or 0) + step for step in (-1, 0, 1)]
        return [Retention(keep=keep) for keep in near if keep >= 1]
    visible = 1 - Fraction(str(own.mask_rate))
    shares = [share for share in (2 * visible, visible, visible / 2) if share < 1]
    return [Retention(mask_rate=float(1 - share)) for share in shares]


def supported_ensembles(classifier: SmoothedClassifier, text: Text) -> tuple[Ensemble, ...]:
    """The ensembles that mean something for a model; ``text`` is shown to it where that decides.

    Normalised logits want logits.  Scores of a function are added up if they lie in [0, 1].
    """
    if classifier.base.outputs != "scores":
        return ENSEMBLES
    try:
        SmoothedClassifier(classifier.base, keep=1, ensemble="score").predict([text])
    except ClassifierError:
        return ("vote",)
    return ("vote", "score")


def grid(
    options: SmoothingOptions,
    own: Retention | None,
    *,
    retentions: Sequence[Retention] = (),
    choices: Sequence[FamilyChoice] = (),
    ensembles: Sequence[Ensemble] = (),
    masks: int | None = None,
) -> list[Setting]:
    """Every combination, without repeats; what is not given follows the model's own options.

    ``own`` is how many words the model was saved to be shown.  Its own family and number of
    masks go with that.  With others a family of *all* kept sets could be too large, so there it
    becomes ``auto``, of at most 1,000.
    """
    if not retentions:
        # Edits are certified for single words only.
        edits = options.threat == "edits"
        retentions = [Retention(keep=1)] if edits else retentions_near(own)
    found: dict[Setting, None] = {}
    for retention in retentions:
        default = options.voting_family
        if retention != own and default in ("all", "distinct") and options.threat != "edits":
            default = "auto"
        for choice in choices or (default,):
            most = options.masks or DEFAULT_MASKS
            if (retention, choice) != (own, options.voting_family) and options.threat != "edits":
                most = min(most, DEFAULT_MASKS)
            for ensemble in ensembles or (options.ensemble,):
                setting = Setting(
                    retention.keep, retention.mask_rate, choice, ensemble, masks or most
                )
                found[setting] = None
    return list(found)


# Measuring.


def sweep(
    classifier: SmoothedClassifier,
    texts: Sequence[Text],
    labels: Sequence[int],
    settings: Sequence[Setting],
    *,
    advance: Callable[[int], None] | None = None,
) -> Iterator[Measured]:
    """Certify all texts under each setting, exactly; settings come in their order.

    The base classifier, seed, threat and labels are those of ``classifier``.  All settings are
    checked before the first text is classified.  Ensembles that read the same copies, and stand
    beside each other in ``settings``, share one pass of the model; the time of that pass counts
    for each of them.

    Args:
        classifier: The model, however smoothed.
        texts: What it is measured on.
        labels: The right class of each.
        settings: What is tried.
        advance: Called with a number of texts whenever so many are done under one setting.
    """
    if not texts or len(texts) != len(labels):
        raise DataError(f"{len(texts)} texts and {len(labels)} labels cannot be measured")
    check_families(classifier, texts, settings)
    return _sweep(classifier, texts, labels, _passes(settings), advance or (lambda count: None))


def _passes(settings: Sequence[Setting]) -> list[list[Setting]]:
    """Neighbouring settings that read the same copies, and so share one pass of the model."""
    groups = groupby(settings, key=lambda setting: replace(setting, ensemble="vote"))
    return [list(group) for _, group in groups]


@dataclass(frozen=True)
class Cost:
    """What one pass over the texts will take: all ``settings`` that read the same ``copies``.

    ``seconds``: estimated from a few texts.
    """

    settings: tuple[Setting, ...]
    copies: int
    seconds: float


def costs(
    classifier: SmoothedClassifier, texts: Sequence[Text], settings: Sequence[Setting]
) -> list[Cost]:
    """What `sweep` over these texts and settings will cost, pass by pass.

    Copies are counted.  Seconds are measured on up to three texts of each pass, from short to
    long, and grow with the copies.
    """
    words = [classifier.base.words_read(one) for one in documents(texts)]
    order = sorted(range(len(texts)), key=words.__getitem__)
    middle = len(order) // 2
    places = dict.fromkeys((middle, len(order) // 6, 5 * len(order) // 6))
    probed = [order[place] for place in places]
    found = []
    for number, group in enumerate(_passes(settings)):
        sizes = [_copies(group[0], count) for count in words]
        if not number:  # whatever a model does once, it does here
            smoothed(classifier, group[0]).certify([texts[order[0]]])
        seconds, copies = 0.0, 0
        for place in probed:
            base = _ScoredOnce(classifier.base)
            started = time.perf_counter()
            for setting in group:
                smoothed(classifier, setting, base).certify([texts[place]])
            seconds += time.perf_counter() - started
            copies += sizes[place]
            if seconds > _PROBED_SECONDS:
                break
        found.append(Cost(tuple(group), sum(sizes), seconds * sum(sizes) / copies))
    return found


def _copies(setting: Setting, words: int) -> int:
    kept = Retention(setting.keep, setting.mask_rate).count(words)
    return families.family_size(words, kept, choice=setting.family, masks=setting.masks)


def smoothed(
    like: SmoothedClassifier, setting: Setting, base: BaseClassifier | None = None
) -> SmoothedClassifier:
    """``like``, under another setting and with the exact certificate."""
    exactly = {**asdict(setting), "certificate": "exact", "sampling": "fixed"}
    return like.with_options(base=base, tolerance=like.tolerance, **exactly)


def check_families(
    classifier: SmoothedClassifier, texts: Sequence[Text], settings: Sequence[Setting]
) -> None:
    """Refuse a family of all sets that is too large for some text, before any work is done."""
    read = documents(texts)
    for setting in settings:
        base = smoothed(classifier, setting).base
        if setting.family not in ("all", "distinct"):
            continue
        retention = Retention(setting.keep, setting.mask_rate)
        for words in {base.words_read(text) for text in read}:
            if setting.family == "distinct":
                families.check_room(words, setting.masks)
            else:
                families.family(words, retention.count(words), choice="all", masks=setting.masks)


def _sweep(
    classifier: SmoothedClassifier,
    texts: Sequence[Text],
    labels: Sequence[int],
    groups: Sequence[Sequence[Setting]],
    advance: Callable[[int], None],
) -> Iterator[Measured]:
    for group in groups:
        tallies = {setting: _Tally() for setting in group}
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            some = slice(start, start + _TEXTS_AT_ONCE)
            base = _ScoredOnce(classifier.base)
            for setting, tally in tallies.items():
                tally.add(smoothed(classifier, setting, base), texts[some], labels[some])
                tally.add_seconds(base.take_spared())
                advance(len(texts[some]))
        for setting, tally in tallies.items():
            yield tally.measured(setting, len(texts), classifier.tolerance)


class _Tally:
    """Counts of one setting, while it is being measured."""

    def __init__(self) -> None:
        self._radii: dict[bool, Counter[tuple[int, int | None]]] = {
            True: Counter(),
            False: Counter(),
        }
        self._seconds = 0.0
        self._loose = 0

    def add(
        self, classifier: SmoothedClassifier, texts: Sequence[Text], labels: Sequence[int]
    ) -> None:
        started = time.perf_counter()
        results = classifier.certify(texts)
        self.add_seconds(time.perf_counter() - started)
        for result, label in zip(results, labels, strict=True):
            if label >= len(result.votes):
                raise DataError(
                    f"the data have a class number {label}, but the model knows "
                    f"{len(result.votes)} classes only"
                )
            self._radii[result.label_id == label][label, result.radius] += 1
            self._loose += not result.tight

    def add_seconds(self, seconds: float) -> None:
        self._seconds += seconds

    def measured(self, setting: Setting, texts: int, tolerance: float) -> Measured:
        right, wrong = (dict(sorted(self._radii[one].items(), key=_rank)) for one in (True, False))
        return Measured(setting, right, wrong, self._seconds / texts, tolerance, self._loose)


def _rank(entry: tuple[tuple[int, int | None], int]) -> tuple[int, int]:
    (expected, radius), _ = entry
    return expected, -1 if radius is None else radius


class _ScoredOnce(WrappedClassifier):
    """A base classifier that answers from memory what it was asked before."""

    def __init__(self, base: BaseClassifier) -> None:
        super().__init__(base)
        self._answers: list[tuple[Sequence[MaskedCopies], list[Scores], float]] = []
        self._spared = 0.0

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """Scores of every copy, computed the first time only."""
        for asked, answer, seconds in self._answers:
            if _same(asked, copies):
                self._spared += seconds
                return answer
        started = time.perf_counter()
        # Copies of what it says: it may use the memory again.
        answer = [rows.copy() for rows in self.inner.score(copies)]
        self._answers.append((copies, answer, time.perf_counter() - started))
        return answer

    @property
    def without_memory(self) -> BaseClassifier:
        """The base classifier, or what computes for it."""
        return self.inner.without_memory

    def take_spared(self) -> float:
        """Seconds that memory has saved since this was last asked."""
        spared, self._spared = self._spared, 0.0
        return spared


def _same(some: Sequence[MaskedCopies], others: Sequence[MaskedCopies]) -> bool:
    return len(some) == len(others) and all(
        one.document == other.document
        and one.words_read == other.words_read
        and np.array_equal(one.kept, other.kept)
        for one, other in zip(some, others, strict=True)
    )


# Choosing.


def frontier(measured: Sequence[Measured], at: int) -> list[Measured]:
    """Those that no other beats, in their order: the Pareto frontier of accuracy and CR@``at``.

    One beats another if it is as good in both and better in one; equals stay together.
    """

    def values(one: Measured) -> tuple[Fraction, Fraction]:
        return one.accuracy, one.certified_accuracy(at)

    def beaten(one: tuple[Fraction, Fraction]) -> bool:
        return any(
            other != one and other[0] >= one[0] and other[1] >= one[1]
            for other in map(values, measured)
        )

    return [one for one in measured if not beaten(values(one))]


def pick(measured: Sequence[Measured], rule: Rule, at: int) -> Measured | None:
    """The setting that a rule chooses; the first of several that are equal in everything.

    ``score``: the largest mean of CR@0 to CR@``at``.  ``paper``: the largest median radius (MCB),
    as the paper chooses its mask rates.  Ties go to the higher accuracy.  ``frontier`` leaves the
    choice to the reader: None.
    """
    check_choice("rule", rule, RULES)
    if not measured:
        raise OptionError("there is no setting to pick from")
    if rule == "frontier":
        return None

    def merit(one: Measured) -> tuple[Any, Fraction]:
        if rule == "score":
            return one.score(at), one.accuracy
        return -1 if one.median_radius is None else one.median_radius, one.accuracy

    return max(measured, key=merit)

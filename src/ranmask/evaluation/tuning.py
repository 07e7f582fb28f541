"""Which setting to run: one model under several settings, and what each proves of labelled texts.

A smoothed classifier may also answer only where its radius is at least a *threshold* of ``t``
words.  Two things are proved of that (docs/tuning.md):

- *Never wrong.*  A text of radius ``r`` gets its own label or none, whichever ``r + t`` words are
  changed.  So does every text, whichever ``t`` words are.
- *Stays.*  A text of radius ``t + d`` is still answered after any ``d`` changes, if the tolerance
  is 0 and the search for the radius is not cut short.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import chain, groupby
from typing import Any, Literal, TypeAlias, get_args

from ranmask.certificates import families
from ranmask.errors import DataError, OptionError
from ranmask.evaluation.settings import Setting
from ranmask.metrics import CertifiedSummary
from ranmask.metrics.detection import DetectionSummary
from ranmask.models.base import BaseClassifier, MaskedCopies, Scores, WrappedClassifier
from ranmask.options.fields import check_choice
from ranmask.results import Certificate
from ranmask.runs.summary import detected_text
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.words import Text, documents

Rule: TypeAlias = Literal["score", "paper", "frontier"]
RULES: tuple[Rule, ...] = get_args(Rule)

_TEXTS_AT_ONCE = 32
_PROBED_SECONDS = 2.0  # where a text of a pass takes so long, no other is tried


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
    """What a setting came to: the radii of the texts, all figures being computed from them.

    ``seconds``: of work on one text, as a mean.  ``tolerance``: in force when it was measured.
    ``loose``: texts of which more might be provable.  ``positive``: the figures of a positive
    class (`DetectionSummary.values`), where one was named.
    """

    setting: Setting
    summary: CertifiedSummary
    seconds: float
    tolerance: float = 0.0
    loose: int = 0
    positive: dict[str, Any] | None = None

    def score(self, at: int) -> Fraction:
        """The mean of CR@0 to CR@``at``."""
        shares = map(self.summary.certified_accuracy, range(at + 1))
        return sum(shares, Fraction(0)) / (at + 1)

    def abstention(self, threshold: int, at: int) -> Abstention:
        """What is answered, and proved of the answers, with a threshold of so many words."""
        share = self.summary.certified_accuracy
        wrong = self.summary.radii(correct=False)
        answered_wrong = sum(texts for _, radius, _, texts in wrong if radius >= threshold)
        right = share(threshold)
        coverage = right + Fraction(answered_wrong, self.summary.texts)
        return Abstention(
            threshold,
            coverage,
            right / coverage if coverage else None,
            tuple(share(threshold + changed) for changed in range(at + 1)),
            tuple(
                self.summary.accuracy if changed <= threshold else share(changed - threshold)
                for changed in range(at + 1)
            ),
        )


SYMMETRIC = ("substitutions", "edits")
"""Threats whose steps can be taken back: what abstention proves rests on it."""


def sweep(
    classifier: SmoothedClassifier,
    texts: Sequence[Text],
    labels: Sequence[int],
    settings: Sequence[Setting],
    *,
    positive: int | None = None,
    advance: Callable[[int], None] = lambda texts: None,
) -> Iterator[Measured]:
    """Certify all texts under each setting, exactly; settings come in their order.

    ``labels``: the right class of each text; ``positive``: one that is held against all others, its
    scores certified too.  ``advance`` is called with a number of texts
    whenever so many are done under one setting.  All settings are checked before the first text is
    classified.  Neighbouring settings that differ in the ensemble only share one pass of the model;
    its time counts for each of them.
    """
    if not texts or len(texts) != len(labels):
        raise DataError(f"{len(texts)} texts and {len(labels)} labels cannot be measured")
    threat = classifier.options.threat
    if threat not in SYMMETRIC:
        raise OptionError(
            f"what is answered, and never wrongly, is proved for substitutions and edits, not for "
            f"threat={threat!r}: measure the model with threat='substitutions'"
        )
    check_families(classifier, texts, settings)
    return chain.from_iterable(
        _measure(classifier, texts, labels, group, positive, advance) for group in _passes(settings)
    )


def check_families(
    classifier: SmoothedClassifier, texts: Sequence[Text], settings: Sequence[Setting]
) -> None:
    """Refuse a family of all sets that is too large for some text, before any work is done."""
    read = documents(texts)
    for setting in settings:
        base = smoothed(classifier, setting).base
        if setting.family not in ("all", "distinct"):
            continue
        for words in {base.words_read(document) for document in read}:
            if setting.family == "distinct":
                families.check_room(words, setting.masks)
            else:
                families.family(words, setting.kept(words), choice="all", masks=setting.masks)


def smoothed(
    like: SmoothedClassifier, setting: Setting, base: BaseClassifier | None = None
) -> SmoothedClassifier:
    """``like``, under another setting and with the exact certificate."""
    exactly = {**asdict(setting), "certificate": "exact", "sampling": "fixed"}
    return like.with_options(base=base, tolerance=like.tolerance, **exactly)


def _passes(settings: Sequence[Setting]) -> list[tuple[Setting, ...]]:
    """Neighbouring settings that read the same copies, and so share one pass of the model."""
    groups = groupby(settings, key=lambda setting: replace(setting, ensemble="vote"))
    return [tuple(group) for _, group in groups]


def _measure(
    classifier: SmoothedClassifier,
    texts: Sequence[Text],
    labels: Sequence[int],
    group: Sequence[Setting],
    positive: int | None,
    advance: Callable[[int], None],
) -> Iterator[Measured]:
    """What the settings of one pass come to."""
    summaries = {setting: CertifiedSummary() for setting in group}
    detected = {setting: DetectionSummary() for setting in group}
    seconds, loose = dict.fromkeys(group, 0.0), Counter[Setting]()
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        batch = slice(start, start + _TEXTS_AT_ONCE)
        base = _ScoredOnce(classifier.base)
        for setting in group:
            voting = smoothed(classifier, setting, base)
            started = time.perf_counter()
            results: Sequence[Certificate]
            if positive is not None and voting.gives_margins:
                results = voting.certify_margins(texts[batch], positive)
            else:
                results = voting.certify(texts[batch])
            seconds[setting] += time.perf_counter() - started + base.take_spared()
            for result, label in zip(results, labels[batch], strict=True):
                if label >= len(result.votes):
                    raise DataError(
                        f"the data have a class number {label}, but the model knows "
                        f"{len(result.votes)} classes only"
                    )
                summaries[setting].add(
                    correct=result.label_id == label,
                    radius=result.radius,
                    words=1,
                    expected=label,
                    named=result.label_id,
                )
                loose[setting] += not result.tight
                if positive is not None:
                    line = {**result.to_dict(), "expected_id": label}
                    detected[setting].add(detected_text(line, positive))
            advance(len(results))
    for setting in group:
        mean = seconds[setting] / len(texts)
        values = None if positive is None else detected[setting].values()
        found = summaries[setting], mean, classifier.tolerance, loose[setting], values
        yield Measured(setting, *found)


class _ScoredOnce(WrappedClassifier):
    """A base classifier that answers from memory what it was asked before."""

    def __init__(self, inner: BaseClassifier) -> None:
        super().__init__(inner)
        self._answers: dict[object, tuple[list[Scores], float]] = {}
        self._spared = 0.0

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        """Scores of every copy, computed the first time only."""
        asked = tuple(
            (text.document, text.words_read, text.kept.shape, text.kept.tobytes())
            for text in copies
        )
        if asked in self._answers:
            answer, seconds = self._answers[asked]
            self._spared += seconds
            return answer
        started = time.perf_counter()
        # Copies of what it says: it may use the memory again.
        answer = [rows.copy() for rows in self.inner.score(copies)]
        self._answers[asked] = answer, time.perf_counter() - started
        return answer

    @property
    def without_memory(self) -> BaseClassifier:
        """The base classifier, or what computes for it."""
        return self.inner.without_memory

    def take_spared(self) -> float:
        """Seconds that memory has saved since this was last asked."""
        spared, self._spared = self._spared, 0.0
        return spared


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
    words = [classifier.base.words_read(document) for document in documents(texts)]
    order = sorted(range(len(texts)), key=words.__getitem__)
    probed = [order[share * len(order) // 6] for share in (3, 1, 5)]  # the middle one first
    if settings:  # whatever a model does once, it does here
        smoothed(classifier, settings[0]).certify([texts[order[0]]])
    found = []
    for group in _passes(settings):
        [first, *_] = group
        sizes = [
            families.family_size(n, first.kept(n), choice=first.family, masks=first.masks)
            for n in words
        ]
        seconds, copies = 0.0, 0
        for text in dict.fromkeys(probed):
            base = _ScoredOnce(classifier.base)
            started = time.perf_counter()
            for setting in group:
                smoothed(classifier, setting, base).certify([texts[text]])
            seconds += time.perf_counter() - started
            copies += sizes[text]
            if seconds > _PROBED_SECONDS:
                break
        found.append(Cost(group, sum(sizes), seconds * sum(sizes) / copies))
    return found


def frontier(measured: Sequence[Measured], at: int) -> list[Measured]:
    """Those that no other beats, in their order: the Pareto frontier of accuracy and CR@``at``.

    One beats another if it is as good in both and better in one; equals stay together.
    """
    points = [(entry.summary.accuracy, entry.summary.certified_accuracy(at)) for entry in measured]
    return [
        entry
        for entry, mine in zip(measured, points, strict=True)
        if not any(
            other != mine and other[0] >= mine[0] and other[1] >= mine[1] for other in points
        )
    ]


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

    def merit(entry: Measured) -> tuple[Fraction | int, Fraction]:
        median = entry.summary.median_radius
        worth = entry.score(at) if rule == "score" else -1 if median is None else median
        return worth, entry.summary.accuracy

    return max(measured, key=merit)

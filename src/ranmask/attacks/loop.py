"""Many texts attacked in lock-step: what all searches ask is answered in full batches.

Guarantee: **what happens to a text does not depend on what is attacked with it.**  Searches are
independent; each draws random numbers of its own; a victim gives the same answer to the same text
(but for a model's rounding errors, which `victims` makes small).
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ranmask.attacks.outcome import AttackOutcome, changes_between
from ranmask.attacks.recipe import AttackRecipe, Budget, distance
from ranmask.attacks.steps import (
    Attempt,
    EncodeSentences,
    FillGaps,
    FillMask,
    FirstOrder,
    QueryModel,
    QueryResult,
    QuerySurrogate,
    ScoreWords,
    Steps,
)
from ranmask.attacks.tokenization import AttackedText, tokenize
from ranmask.attacks.victims import Answers, PlainVictim, Question, Victim
from ranmask.attacks.white_box import SLOPED, first_order, has_slopes, word_scores
from ranmask.certificates.votes import Scores
from ranmask.errors import ClassifierError, OptionError, RanmaskError, TextError
from ranmask.words import Document, Text, document, split

_AHEAD = 4  # finished texts that may wait for a slow one, as a multiple of those at work
_FAILURES_IN_A_ROW = 20
_MASKINGS = 20  # random maskings under which an adversarial text is looked at again
_MASKED_SHARE = Fraction(1, 10)


@dataclass(frozen=True)
class Target:
    """A text to attack: ``number`` names it, and its random choices follow from it.

    ``read`` is the text's document, where it is known.
    """

    number: int
    text: Text | None
    label: int | None
    error: str | None = None
    read: Document | None = None


Asking: TypeAlias = Callable[[Sequence[Question]], Answers]
"""What answers questions."""


@dataclass
class AttackLoop:
    """Attacks texts with one recipe; its fields are as for `api.attack_loop`.

    ``recalling`` answers instead of the victim what it knows, and asks it the rest.
    """

    victim: Victim
    recipe: AttackRecipe
    budget: Budget = None
    most_queries: int | None = None
    together: int = 128
    seed: int = 0
    surrogate: Victim | None = None
    recalling: Callable[[Asking, Sequence[Question]], Answers] | None = None

    def __post_init__(self) -> None:
        if self.budget is None:
            self.budget = self.recipe.budget
        for name in ("together", "most_queries"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= 1):
                raise OptionError(f"{name} must be a whole number of at least 1, not {value!r}")
        known = self.budget is None or self.budget in ("radius", "radius+1")
        if not known and not (isinstance(self.budget, int) and self.budget >= 0):
            raise OptionError(
                f"budget must be a whole number, 'radius' or 'radius+1', not {self.budget!r}"
            )
        self._needs_radius = self.recipe.ranking.needs_certificate or isinstance(self.budget, str)
        if self._needs_radius:
            self.victim.certify([], self.recipe.unit)  # says why not, where it cannot
        if self.recipe.white_box and not has_slopes(self.victim):
            raise OptionError(f"the recipe {self.recipe.name} needs {SLOPED}")
        if isinstance(self.budget, str):
            # A radius counts words of the hypothesis, and assumes that the premise stays.
            self.recipe = replace(self.recipe, frozen_premise=True)
        remembered = functools.lru_cache(maxsize=_AHEAD * self.together)
        self._word_scores = remembered(functools.partial(word_scores, self.victim))

    def run(
        self, targets: Iterable[Target], *, in_order: bool = True, first: int | None = None
    ) -> Iterator[AttackOutcome]:
        """Attack texts; one outcome for each, in their order, or as they finish.

        ``first``: so many are attacked before the others, to see how long that takes.

        A text that cannot be attacked gets an outcome with an error.  When the victim fails for
        many texts in a row it is broken, not they: `ClassifierError`, and none of those texts
        has an outcome yet, so that a later run attacks them again.
        """
        waiting = iter(targets)
        order: list[int] = []
        self._running: dict[int, Attempt] = {}
        self._finished: dict[int, AttackOutcome] = {}
        # Texts that the victim failed on since it last answered for any, in that order.
        self._failed: dict[int, ClassifierError] = {}
        self._answered, self._heard = False, set[int]()
        begun, ahead = 0, first or sys.maxsize
        while True:
            room = self.together - len(self._running)
            if self._running or not begun:
                room = min(room, ahead - begun)
            else:
                ahead = sys.maxsize  # the first are done
            if self._running:  # not too many that wait for a slow one
                room = min(room, _AHEAD * self.together - len(order) + len(self._failed))
            new = list(itertools.islice(waiting, max(0, room)))
            self._start(new)
            order += [target.number for target in new]
            begun += len(new)
            if not order:
                break
            if self._running:
                self._round()
            last = not self._running and room > len(new)
            never_worked = last and self._failed and not self._answered
            if len(self._failed) >= _FAILURES_IN_A_ROW or never_worked:
                number, fault = list(self._failed.items())[-1]
                raise ClassifierError(
                    f"stopped at text {number}: the victim failed on {len(self._failed)} texts in "
                    f"a row, last with: {fault.reason}"
                )
            if last:
                self._failed = {}  # no more texts: those few failures were the texts' own
            # A failure waits until another text is answered.
            ready = [number in self._finished and number not in self._failed for number in order]
            told = ready.index(False) if in_order and False in ready else len(order)
            for number in itertools.compress(order[:told], ready[:told]):
                order.remove(number)
                yield self._finished.pop(number)

    def _start(self, targets: Sequence[Target]) -> None:
        """Begin to attack."""
        attempts = []
        labels, budget = self.victim.labels, self.budget
        numbers = {*self._running, *self._finished}
        for target in targets:
            if target.number in numbers:
                raise OptionError(f"two texts have the number {target.number}: number them apart")
            numbers.add(target.number)
            try:
                if target.error is not None or target.text is None or target.label is None:
                    raise OptionError(target.error or "no text, or no label")
                read = target.read or document(target.text)
                if labels is not None and not 0 <= target.label < len(labels):
                    raise _no_class(target.label, len(labels))
                text = tokenize(target.text, self.recipe.tokenization, read)
                attempts.append(Attempt(target.number, text, target.label, self.seed))
            except RanmaskError as error:
                self._finish(target, error)
        certificates: list[Any] = [None] * len(attempts)
        if self._needs_radius or self.victim.certifies:
            certificates = self._answers(attempts, self._certify)
        for attempt, certificate in zip(attempts, certificates, strict=True):
            if isinstance(certificate, RanmaskError):
                if self._needs_radius:
                    self._end(attempt, certificate)
                    continue
                certificate = None
            attempt.certificate, attempt.most_queries = certificate, self.most_queries
            attempt.budget = budget if isinstance(budget, int) else None
            if isinstance(budget, str):
                attempt.budget = (certificate.radius or 0) + (budget == "radius+1")
            attempt.steps = self._course(attempt)
            attempt.waiting = next(attempt.steps)
            self._running[attempt.number] = attempt

    def _certify(self, attempts: Sequence[Attempt]) -> Sequence[Any]:
        return self.victim.certify([one.original.document for one in attempts], self.recipe.unit)

    def _course(self, attempt: Attempt) -> Steps[AttackOutcome]:
        """Ask about the clean text, search, and look at what was found again."""
        original = attempt.original
        [clean] = yield QueryModel((original,), near=original)
        found = clean
        if not clean.flipped:
            found = yield from self.recipe.search.run(attempt, self.recipe, clean)
        unit = self.recipe.unit
        changes = changes_between(original.text, found.text.text, unit != "substitutions")
        far = distance(found.text, original, unit)
        skipped, succeeded = clean.flipped, found.flipped and not clean.flipped
        if succeeded and attempt.budget is not None and far > attempt.budget:
            raise AssertionError(f"{far} {unit}, allowed were {attempt.budget}")
        premise = () if self.recipe.frozen_premise else original.parts[:-1]
        return AttackOutcome(
            number=attempt.number,
            text=original.text,
            label=attempt.label,
            status="skipped" if skipped else "succeeded" if succeeded else "failed",
            adversarial=None if skipped else found.text.text,
            clean_label=clean.label,
            final_label=None if skipped else found.label,
            queries=attempt.queries,
            words=len(original.document.words) + sum(len(split(part)) for part in premise),
            words_changed=len(changes),
            changes=changes,
            unit=unit,
            distance=far,
            budget=attempt.budget,
            radius=None if attempt.certificate is None else attempt.certificate.radius,
            clean_share=clean.share,
            final_share=None if skipped else found.share,
            entropy=sum(-share * math.log(share) for share in clean.shares if share > 0),
            rechecked=self._wrong_again(attempt, found.text.document) if succeeded else None,
            reverted=self._reverted(attempt, found.text.document) if succeeded else None,
        )

    def _wrong_again(self, attempt: Attempt, text: Document) -> bool:
        """Whether the adversarial text is wrong on fresh masks too."""
        again = self.victim.again()
        if again is None:
            return True
        answers = again.answer([Question(attempt.number, text, text)])
        return int(answers.labels[0]) != attempt.label

    def _reverted(self, attempt: Attempt, text: Document) -> float | None:
        """How often the adversarial text is right again when a few words are masked."""
        if not isinstance(self.victim, PlainVictim):
            return None
        labels = self.victim.under_masks(text, _MASKED_SHARE, _MASKINGS, self.seed)
        return None if labels is None else float((labels == attempt.label).mean())

    def _round(self) -> None:
        """Answer every waiting step once; the victim is asked when all searches wait for it."""
        answers = {
            EncodeSentences: self._encode,
            FillMask: self._fill,
            FillGaps: self._fill_gaps,
            ScoreWords: self._score_words,
            FirstOrder: self._first_order,
            QuerySurrogate: self._query_surrogate,
            QueryModel: self._query,
        }
        waiting: dict[type, list[Attempt]] = {kind: [] for kind in answers}
        for attempt in self._running.values():
            waiting[type(attempt.waiting)].append(attempt)
        if len(waiting[QueryModel]) < len(self._running):
            waiting[QueryModel] = []
        for kind, answer in answers.items():
            results = self._answers(waiting[kind], answer)
            for attempt, result in zip(waiting[kind], results, strict=True):
                try:
                    if isinstance(result, RanmaskError):
                        raise result
                    if attempt.number in self._heard:
                        # It works: failures so far were those texts' own.
                        self._heard.discard(attempt.number)
                        self._answered, self._failed = True, {}
                    attempt.waiting = attempt.steps.send(result)
                except StopIteration as stop:
                    self._end(attempt, stop.value)
                except RanmaskError as error:
                    self._end(attempt, error)

    def _end(self, attempt: Attempt, result: AttackOutcome | RanmaskError) -> None:
        self._running.pop(attempt.number, None)
        for victim in filter(None, (self.victim, self.surrogate)):
            victim.forget(attempt.number)
        self._finish(Target(attempt.number, attempt.original.text, attempt.label), result)

    def _finish(self, target: Target, result: AttackOutcome | RanmaskError) -> None:
        if isinstance(result, ClassifierError):
            self._failed[target.number] = result
        if isinstance(result, RanmaskError):
            texts_own = ClassifierError | TextError
            reason = result.reason if isinstance(result, texts_own) else str(result)
            result = AttackOutcome(target.number, target.text, target.label, "error", error=reason)
        self._finished[target.number] = result

    def _answers(
        self, items: Sequence[Any], answer: Callable[[Sequence[Any]], Sequence[Any]]
    ) -> list[Any]:
        """Answers for all; where that fails, for each by itself, so that only one is lost."""
        try:
            return list(answer(items)) if items else []
        except RanmaskError as error:
            if len(items) == 1:
                return [error]
            return [result for item in items for result in self._answers([item], answer)]

    def _query(self, attempts: Sequence[Attempt]) -> list[list[QueryResult] | RanmaskError]:
        asked = [attempt.waiting.texts[: attempt.queries_left] for attempt in attempts]
        recalling = self.recalling
        ask = self._ask if recalling is None else functools.partial(recalling, self._ask)
        told = _told(ask, attempts, asked)
        for attempt, texts in zip(attempts, asked, strict=True):
            attempt.queries += len(texts)
        return told

    def _ask(self, questions: Sequence[Question]) -> Answers:
        answers = self.victim.answer(questions)
        self._heard |= {question.attempt for question in questions}
        return answers

    def _query_surrogate(
        self, attempts: Sequence[Attempt]
    ) -> list[list[QueryResult] | RanmaskError]:
        if self.surrogate is None:
            raise OptionError(f"the recipe {self.recipe.name} needs a surrogate to ask")
        asked = [attempt.waiting.texts for attempt in attempts]
        return _told(self.surrogate.answer, attempts, asked)

    def _score_words(self, attempts: Sequence[Attempt]) -> list[Scores]:
        steps = [attempt.waiting for attempt in attempts]
        return [self._word_scores(step.words, step.premise) for step in steps]

    def _first_order(self, attempts: Sequence[Attempt]) -> list[Scores]:
        return [
            first_order(self.victim, step.text.document, [text.document for text in step.others])
            for step in (attempt.waiting for attempt in attempts)
        ]

    def _encode(self, attempts: Sequence[Attempt]) -> list[Any]:
        asked = [attempt.waiting.sentences for attempt in attempts]
        vectors = self._given("sentence_encoder").encode(list(itertools.chain(*asked)))
        return np.split(vectors, np.cumsum([len(sentences) for sentences in asked])[:-1])

    def _fill(self, attempts: Sequence[Attempt]) -> Any:
        steps = [attempt.waiting for attempt in attempts]
        texts, places = [step.text for step in steps], [step.places for step in steps]
        return self._given("masked_lm").top_tokens(texts, steps[0].count, places)

    def _fill_gaps(self, attempts: Sequence[Attempt]) -> list[Any]:
        asked = [attempt.waiting.gaps for attempt in attempts]
        filled = iter(self._given("masked_lm").fill(list(itertools.chain(*asked))))
        return [list(itertools.islice(filled, len(gaps))) for gaps in asked]

    def _given(self, resource: str) -> Any:
        if (found := getattr(self.recipe, resource)) is None:
            raise OptionError(f"the recipe {self.recipe.name} needs a {resource}")
        return found


def _no_class(label: int, classes: int) -> OptionError:
    return OptionError(f"label {label} is not a class of the victim: they are 0 to {classes - 1}")


def _told(
    ask: Asking, attempts: Sequence[Attempt], asked: Sequence[Sequence[AttackedText]]
) -> list[list[QueryResult] | RanmaskError]:
    """What searches are told of the texts that each attempt asks about."""
    questions = [
        Question(attempt.number, text.document, attempt.waiting.near.document)
        for attempt, texts in zip(attempts, asked, strict=True)
        for text in texts
    ]
    if not questions:
        return [[] for _ in attempts]
    cuts = np.cumsum([len(texts) for texts in asked])[:-1]
    parts = (np.split(part, cuts) for part in ask(questions))
    answers = (Answers(*own) for own in zip(*parts, strict=True))
    return list(map(_results, attempts, asked, answers))


def _results(
    attempt: Attempt, texts: Sequence[AttackedText], answers: Answers
) -> list[QueryResult] | RanmaskError:
    """The same of one attempt, from the answers to its own texts."""
    if not texts:
        return []
    label, classes = attempt.label, answers.shares.shape[1]
    if not 0 <= label < classes:
        return _no_class(label, classes)
    labels = answers.labels.tolist()
    if attempt.waiting.labels_only:
        told = zip(texts, labels, strict=True)
        return [QueryResult(text, said, said != label, None, None) for text, said in told]
    own = answers.shares[:, label]
    scores, leads = 1 - own, np.delete(answers.shares, label, axis=1).max(axis=1) - own
    rows = zip(
        *(texts, labels, (answers.labels != label).tolist(), scores.tolist(), leads.tolist()),
        map(tuple, answers.shares.tolist()),
        strict=True,
    )
    return [QueryResult(*row) for row in rows]

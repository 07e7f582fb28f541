"""Many texts in lock-step: what all searches want to know is asked in full batches.

Guarantee: **what happens to a text does not depend on what is attacked with it.**  Searches are
independent dialogues (`requests`); each draws from chances of its own; a victim gives the same
answer to the same text.  So queries, changes and outcomes are the same for any number of texts
at once.  (A model's rounding errors are the exception that `victims` makes small.)

Outcomes come in the order of the texts, or as they finish.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ranmask.attacks.attempt import Attempt
from ranmask.attacks.outcome import AttackOutcome, changes_between
from ranmask.attacks.recipe import Budget, Recipe
from ranmask.attacks.requests import Dialogue, Embed, Guess, Judge, Judgement, Request
from ranmask.attacks.tokenization import CutText, cut
from ranmask.attacks.victims import Answers, PlainVictim, Question, Victim
from ranmask.errors import ClassifierError, OptionError, RanmaskError, TextError
from ranmask.models.base import Scores
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


@dataclass
class _Running:
    attempt: Attempt
    dialogue: Dialogue[AttackOutcome]
    pending: Request


@dataclass
class Engine:
    """Attacks texts with one recipe.

    Args:
        victim: What is attacked.
        recipe: How.
        budget: Most words that may change; the recipe's own where None.
        most_queries: Queries a text, after which its search ends; None: no limit.
        together: How many texts are attacked in lock-step.
        seed: Fixes every random choice.
    """

    victim: Victim
    recipe: Recipe
    budget: Budget = None
    most_queries: int | None = None
    together: int = 64
    seed: int = 0
    _running: dict[int, _Running] = field(default_factory=dict, init=False, repr=False)
    _finished: dict[int, AttackOutcome] = field(default_factory=dict, init=False, repr=False)
    # Texts that the victim failed on since it last answered for any, in that order.
    _failed: dict[int, ClassifierError] = field(default_factory=dict, init=False, repr=False)
    _answered: bool = field(default=False, init=False, repr=False)

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
                f"budget must be a number of words, 'radius' or 'radius+1', not {self.budget!r}"
            )
        if self._certifies:
            self.victim.certify([])  # says why not, where it cannot
        if isinstance(self.budget, str):
            # A radius counts words of the hypothesis, and assumes that the premise stays.
            self.recipe = replace(self.recipe, frozen_premise=True)

    @property
    def _certifies(self) -> bool:
        return self.recipe.needs_certificate or isinstance(self.budget, str)

    def run(self, targets: Iterable[Target], *, in_order: bool = True) -> Iterator[AttackOutcome]:
        """Attack texts; one outcome for each, in their order, or as they finish.

        A text that cannot be attacked gets an outcome with an error.  When the victim fails for
        many texts in a row it is broken, not they: `ClassifierError`, and none of those texts
        has an outcome yet, so that a later run attacks them again.
        """
        waiting = iter(targets)
        order: list[int] = []
        self._running, self._finished, self._failed = {}, {}, {}
        self._answered = False
        while True:
            room = self.together - len(self._running)
            if self._running:  # not too many that wait for a slow one
                room = min(room, _AHEAD * self.together - len(order) + len(self._failed))
            new = list(itertools.islice(waiting, max(0, room)))
            order += self._start(new)
            if not order:
                break
            if self._running:
                self._round()
            if len(self._failed) >= _FAILURES_IN_A_ROW:
                raise self._stopped()
            if not self._running and room > len(new):
                if self._failed and not self._answered:
                    raise self._stopped()  # the victim never worked
                self._failed = {}  # no more texts: those few failures were the texts' own
            for number in self._ready(order, in_order):
                order.remove(number)
                yield self._finished.pop(number)

    def _stopped(self) -> ClassifierError:
        number, fault = list(self._failed.items())[-1]
        return ClassifierError(
            f"stopped at text {number}: the victim failed on {len(self._failed)} texts in a row, "
            f"last with: {fault.reason}"
        )

    def _ready(self, order: Sequence[int], in_order: bool) -> list[int]:
        """The texts whose outcomes may be told now; a failure waits until another is answered."""

        def told(number: int) -> bool:
            return number in self._finished and number not in self._failed

        return list(itertools.takewhile(told, order) if in_order else filter(told, order))

    # -- starting ------------------------------------------------------------------------------

    def _start(self, targets: Sequence[Target]) -> list[int]:
        """Begin to attack; the numbers of the texts."""
        attempts = []
        numbers = {*self._running, *self._finished}
        for target in targets:
            if target.number in numbers:
                raise OptionError(f"two texts have the number {target.number}: number them apart")
            numbers.add(target.number)
            try:
                attempts.append(self._attempt(target))
            except RanmaskError as error:
                self._finish(target, error)
        if self._certifies:
            attempts = self._certified(attempts)
        for attempt in attempts:
            dialogue = self._course(attempt)
            self._running[attempt.number] = _Running(attempt, dialogue, next(dialogue))
        return [target.number for target in targets]

    def _attempt(self, target: Target) -> Attempt:
        if target.error is not None or target.text is None or target.label is None:
            raise OptionError(target.error or "no text, or no label")
        read = target.read or document(target.text)
        labels = self.victim.labels
        if labels is not None and not 0 <= target.label < len(labels):
            raise OptionError(_no_such_class(target.label, len(labels)))
        budget = self.budget if isinstance(self.budget, int) else None
        text = cut(target.text, self.recipe.cutting, read)
        return Attempt(
            target.number, text, target.label, self.seed, budget, most_queries=self.most_queries
        )

    def _certified(self, attempts: list[Attempt]) -> list[Attempt]:
        """The attempts with their certificates; a text without one cannot be attacked so."""
        ready = []
        for attempt, result in self._one_by_one(attempts, self._certify):
            if isinstance(result, RanmaskError):
                self._finish(Target(attempt.number, attempt.original.text, attempt.label), result)
                continue
            attempt.certificate = result
            if isinstance(self.budget, str):
                attempt.budget = (result.radius or 0) + (self.budget == "radius+1")
            ready.append(attempt)
        return ready

    def _certify(self, attempts: Sequence[Attempt]) -> Sequence[Any]:
        return self.victim.certify([attempt.original.document for attempt in attempts])

    def _finish(self, target: Target, error: RanmaskError) -> None:
        if isinstance(error, ClassifierError):
            self._failed[target.number] = error
        reason = error.reason if isinstance(error, ClassifierError | TextError) else str(error)
        self._finished[target.number] = AttackOutcome(
            target.number, target.text, target.label, "error", error=reason
        )

    # -- the course of one attempt ---------------------------------------------------------------

    def _course(self, attempt: Attempt) -> Dialogue[AttackOutcome]:
        """Ask about the clean text, search, and look at what was found again."""
        original = attempt.original
        [clean] = yield Judge((original,), near=original)
        if clean.flipped:
            return self._outcome(attempt, clean, clean)
        found = yield from self.recipe.search.run(attempt, self.recipe, clean)
        return self._outcome(attempt, clean, found)

    def _outcome(self, attempt: Attempt, clean: Judgement, found: Judgement) -> AttackOutcome:
        before, after = attempt.original.text, found.text.text
        changes = changes_between(before, after)
        skipped, succeeded = clean.flipped, found.flipped and not clean.flipped
        if succeeded and attempt.budget is not None and len(changes) > attempt.budget:
            raise AssertionError(f"{len(changes)} words changed, allowed were {attempt.budget}")
        return AttackOutcome(
            number=attempt.number,
            text=before,
            label=attempt.label,
            status="skipped" if skipped else "succeeded" if succeeded else "failed",
            adversarial=None if skipped else after,
            clean_label=clean.label,
            final_label=None if skipped else found.label,
            queries=attempt.queries,
            words=self._attackable_words(attempt.original),
            words_changed=len(changes),
            changes=changes,
            budget=attempt.budget,
            radius=None if attempt.certificate is None else attempt.certificate.radius,
            clean_share=_share(clean),
            final_share=None if skipped else _share(found),
            entropy=_entropy(attempt.clean_shares),
            rechecked=self._rechecked(attempt, found) if succeeded else None,
            reverted=self._reverted(attempt, found) if succeeded else None,
        )

    @cached_property
    def _again(self) -> Victim | None:
        return self.victim.again()

    def _attackable_words(self, text: CutText) -> int:
        premise = () if self.recipe.frozen_premise else text.parts[:-1]
        return len(text.document.words) + sum(len(split(part)) for part in premise)

    def _rechecked(self, attempt: Attempt, found: Judgement) -> bool:
        again = self._again
        if again is None:
            return True
        text = found.text.document
        answers = again.answer([Question(attempt.number, text, text)])
        return int(answers.labels[0]) != attempt.label

    def _reverted(self, attempt: Attempt, found: Judgement) -> float | None:
        """How often the adversarial text is right again when a few words are masked."""
        if not isinstance(self.victim, PlainVictim):
            return None
        labels = self.victim.under_masks(found.text.document, _MASKED_SHARE, _MASKINGS, self.seed)
        return None if labels is None else float((labels == attempt.label).mean())

    # -- one round of answers --------------------------------------------------------------------

    def _round(self) -> None:
        """Answer every request once; the victim is asked when all searches wait for it."""
        embeds = self._pending(Embed)
        guesses = self._pending(Guess)
        if embeds:
            self._answer(embeds, self._embed)
        if guesses:
            self._answer(guesses, self._guess)
        if not embeds and not guesses:
            self._answer(self._pending(Judge), self._judge)

    def _pending(self, kind: type[Request]) -> list[_Running]:
        return [one for one in self._running.values() if isinstance(one.pending, kind)]

    def _answer(self, running: list[_Running], answer: Any) -> None:
        for one, result in self._one_by_one(running, answer):
            if isinstance(result, RanmaskError):
                one.dialogue.close()
                self._end(one.attempt, result)
            else:
                if isinstance(one.pending, Judge):
                    # The victim works: failures so far were those texts' own.
                    self._answered, self._failed = True, {}
                self._advance(one, result)

    def _advance(self, one: _Running, result: Any) -> None:
        try:
            one.pending = one.dialogue.send(result)
        except StopIteration as stop:
            self._end(one.attempt, stop.value)
        except RanmaskError as error:
            self._end(one.attempt, error)

    def _end(self, attempt: Attempt, result: AttackOutcome | RanmaskError) -> None:
        del self._running[attempt.number]
        self.victim.forget(attempt.number)
        if isinstance(result, AttackOutcome):
            self._finished[attempt.number] = result
        else:
            self._finish(Target(attempt.number, attempt.original.text, attempt.label), result)

    def _one_by_one(self, items: Sequence[Any], answer: Any) -> Iterator[tuple[Any, Any]]:
        """Answers for all; where that fails, for each by itself, so that only one is lost."""
        try:
            results = answer(items) if items else []
        except RanmaskError as together:
            if len(items) == 1:  # what fails only sometimes fails
                return zip(items, [together], strict=True)
            results = []
            for item in items:
                try:
                    results += answer([item])
                except RanmaskError as error:
                    results.append(error)
        return zip(items, results, strict=True)

    def _judge(self, running: Sequence[_Running]) -> list[list[Judgement] | RanmaskError]:
        questions: list[Question] = []
        counts = []
        for one in running:
            assert isinstance(one.pending, Judge)
            texts = one.pending.texts[: one.attempt.queries_left]
            counts.append(len(texts))
            near = one.pending.near.document
            questions += [Question(one.attempt.number, text.document, near) for text in texts]
        answers = self.victim.answer(questions) if questions else None
        judged: list[list[Judgement] | RanmaskError] = []
        place = 0
        for one, count in zip(running, counts, strict=True):
            assert isinstance(one.pending, Judge)
            attempt = one.attempt
            if answers is not None and not 0 <= attempt.label < answers.shares.shape[1]:
                judged.append(OptionError(_no_such_class(attempt.label, answers.shares.shape[1])))
            else:
                judged.append(_judgements(attempt, one.pending, count, answers, place))
            place += count
            attempt.queries += count
        return judged

    def _embed(self, running: Sequence[_Running]) -> list[Any]:
        encoder = self.recipe.sentence_encoder
        if encoder is None:
            raise OptionError(f"the recipe {self.recipe.name} needs a sentence_encoder")
        requests = [one.pending.sentences for one in running if isinstance(one.pending, Embed)]
        vectors = encoder.encode([sentence for each in requests for sentence in each])
        return np.split(vectors, np.cumsum([len(each) for each in requests])[:-1])

    def _guess(self, running: Sequence[_Running]) -> list[Any]:
        model = self.recipe.masked_lm
        if model is None:
            raise OptionError(f"the recipe {self.recipe.name} needs a masked_lm")
        requests = [one.pending for one in running if isinstance(one.pending, Guess)]
        count = requests[0].count
        return model.top_tokens([request.text for request in requests], count)


def _no_such_class(label: int, classes: int) -> str:
    return f"label {label} is not a class of the victim: they are 0 to {classes - 1}"


def _judgements(
    attempt: Attempt, request: Judge, count: int, answers: Answers | None, place: int
) -> list[Judgement]:
    judged = []
    for number in range(count):
        assert answers is not None
        label, shares = int(answers.labels[place + number]), answers.shares[place + number]
        if not attempt.clean_shares:
            attempt.clean_shares = shares.tolist()
        seen = not request.labels_only
        judged.append(
            Judgement(
                request.texts[number],
                label,
                flipped=label != attempt.label,
                score=float(1 - shares[attempt.label]) if seen else None,
                lead=_lead(shares, attempt.label) if seen else None,
            )
        )
    return judged


def _lead(shares: Scores, label: int) -> float:
    return float(max(share for place, share in enumerate(shares) if place != label) - shares[label])


def _share(judgement: Judgement) -> float | None:
    return None if judgement.score is None else 1 - judgement.score


def _entropy(shares: Sequence[float]) -> float:
    return sum(-share * math.log(share) for share in shares if share > 0)

"""Many texts in lock-step: what all searches want to know is asked in full batches.

Guarantee: **what happens to a text does not depend on what is attacked with it.**  Searches are
independent dialogues (`requests`); each draws from chances of its own; a victim gives the same
answer to the same text.  So queries, changes and outcomes are the same for any number of texts
at once.  (A model's rounding errors are the exception that `victims` makes small.)

Outcomes come in the order of the texts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ranmask.attacks.attempt import Attempt
from ranmask.attacks.cutting import cut
from ranmask.attacks.outcome import AttackOutcome, changes_between
from ranmask.attacks.recipe import Budget, Recipe
from ranmask.attacks.requests import Dialogue, Embed, Guess, Judge, Judgement, Request
from ranmask.attacks.victims import Answers, PlainVictim, Question, Victim
from ranmask.errors import ClassifierError, OptionError, RanmaskError
from ranmask.words import Text, document

if TYPE_CHECKING:
    from ranmask.resources.masked_lm import MaskedLM
    from ranmask.resources.sentence_encoder import SentenceEncoder

_AHEAD = 4  # finished texts that may wait for a slow one, as a multiple of those at work
_FAILURES_IN_A_ROW = 20
_MASKINGS = 20  # random maskings under which an adversarial text is looked at again
_MASKED_SHARE = Fraction(1, 10)


@dataclass(frozen=True)
class Target:
    """A text to attack: ``number`` names it, and its random choices follow from it."""

    number: int
    text: Text | None
    label: int | None
    error: str | None = None


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
        sentence_encoder: Answers the recipe's sentence constraints.
        masked_lm: Answers its language-model candidates.
    """

    victim: Victim
    recipe: Recipe
    budget: Budget = None
    most_queries: int | None = None
    together: int = 64
    seed: int = 0
    sentence_encoder: SentenceEncoder | None = None
    masked_lm: MaskedLM | None = None
    _running: dict[int, _Running] = field(default_factory=dict, init=False, repr=False)
    _finished: dict[int, AttackOutcome] = field(default_factory=dict, init=False, repr=False)
    _faults: dict[int, ClassifierError] = field(default_factory=dict, init=False, repr=False)

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

    @property
    def _certifies(self) -> bool:
        return self.recipe.needs_certificate or isinstance(self.budget, str)

    def run(self, targets: Iterable[Target]) -> Iterator[AttackOutcome]:
        """Attack texts; outcomes come in their order, one for each.

        A text that cannot be attacked gets an outcome with an error.  When the victim fails for
        many texts in a row it is broken, not they: `ClassifierError`, and none of those texts
        has an outcome yet, so that a later run attacks them again.
        """
        waiting = iter(targets)
        order: list[int] = []
        held: list[AttackOutcome] = []  # outcomes with errors, until another text goes well
        while True:
            room = min(self.together - len(self._running), _AHEAD * self.together - len(order))
            new = list(itertools.islice(waiting, max(0, room)))
            order += [target.number for target in new]
            self._start(new)
            if not order:
                break
            if self._running:
                self._round()
            while order and order[0] in self._finished:
                outcome = self._finished.pop(order.pop(0))
                held.append(outcome)
                fault = self._faults.pop(outcome.number, None)
                if fault is None:
                    yield from held
                    held = []
                elif len(held) >= _FAILURES_IN_A_ROW:
                    raise ClassifierError(
                        f"stopped at text {outcome.number}: the victim failed on {len(held)} "
                        f"texts in a row, last with: {fault}"
                    ) from fault
        yield from held

    # -- starting ------------------------------------------------------------------------------

    def _start(self, targets: Sequence[Target]) -> None:
        attempts = []
        for target in targets:
            try:
                attempts.append(self._attempt(target))
            except RanmaskError as error:
                self._finish(target, error)
        if self._certifies:
            attempts = self._certified(attempts)
        for attempt in attempts:
            dialogue = self._course(attempt)
            self._running[attempt.number] = _Running(attempt, dialogue, next(dialogue))

    def _attempt(self, target: Target) -> Attempt:
        if target.error is not None or target.text is None or target.label is None:
            raise RanmaskError(target.error or "no text, or no label")
        document(target.text)
        labels = self.victim.labels
        if target.label < 0 or (labels is not None and target.label >= len(labels)):
            raise RanmaskError(f"label {target.label} is not a class of the victim")
        budget = self.budget if isinstance(self.budget, int) else None
        text = cut(target.text, self.recipe.cutting)
        return Attempt(target.number, text, target.label, self.seed, budget)

    def _certified(self, attempts: list[Attempt]) -> list[Attempt]:
        """The attempts with their certificates; a text without one cannot be attacked so."""
        ready = []
        for attempt, result in self._one_by_one(attempts, self._certify):
            if isinstance(result, RanmaskError):
                self._finish(Target(attempt.number, attempt.original.text, attempt.label), result)
                continue
            attempt.certificate = result
            if isinstance(self.budget, str):
                radius = -1 if result.radius is None else result.radius
                attempt.budget = max(0, radius + (self.budget == "radius+1"))
            ready.append(attempt)
        return ready

    def _certify(self, attempts: Sequence[Attempt]) -> Sequence[Any]:
        return self.victim.certify([attempt.original.text for attempt in attempts])

    def _finish(self, target: Target, error: RanmaskError) -> None:
        if isinstance(error, ClassifierError):
            self._faults[target.number] = error
        self._finished[target.number] = AttackOutcome(
            target.number, target.text, target.label, "error", error=str(error)
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
            words=len(document(before).words),
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

    def _rechecked(self, attempt: Attempt, found: Judgement) -> bool:
        again = self.victim.again(self.seed + 1)
        if again is None:
            return True
        text = found.text.text
        answers = again.answer([Question(attempt.number, text, text)])
        return int(answers.labels[0]) != attempt.label

    def _reverted(self, attempt: Attempt, found: Judgement) -> float | None:
        """How often the adversarial text is right again when a few words are masked."""
        if not isinstance(self.victim, PlainVictim):
            return None
        labels = self.victim.under_masks(found.text.text, _MASKED_SHARE, _MASKINGS, self.seed)
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
        except RanmaskError:
            results = []
            for item in items:
                try:
                    results += answer([item])
                except RanmaskError as error:
                    results.append(error)
        return zip(items, results, strict=True)

    def _judge(self, running: Sequence[_Running]) -> list[list[Judgement]]:
        questions: list[Question] = []
        counts = []
        for one in running:
            assert isinstance(one.pending, Judge)
            texts = one.pending.texts[: self._left(one.attempt)]
            counts.append(len(texts))
            near = one.pending.near.text
            questions += [Question(one.attempt.number, text.text, near) for text in texts]
        answers = self.victim.answer(questions) if questions else None
        judged = []
        place = 0
        for one, count in zip(running, counts, strict=True):
            assert isinstance(one.pending, Judge)
            judged.append(_judgements(one.attempt, one.pending, count, answers, place))
            place += count
            one.attempt.queries += count
            one.attempt.exhausted = self._left(one.attempt) == 0
        return judged

    def _left(self, attempt: Attempt) -> int | None:
        return None if self.most_queries is None else self.most_queries - attempt.queries

    def _embed(self, running: Sequence[_Running]) -> list[Any]:
        if self.sentence_encoder is None:
            raise AssertionError("the recipe compares sentences, but there is no encoder")
        requests = [one.pending.sentences for one in running if isinstance(one.pending, Embed)]
        vectors = self.sentence_encoder.encode([sentence for each in requests for sentence in each])
        return np.split(vectors, np.cumsum([len(each) for each in requests])[:-1])

    def _guess(self, running: Sequence[_Running]) -> list[Any]:
        if self.masked_lm is None:
            raise AssertionError("the recipe asks a language model, but there is none")
        requests = [one.pending for one in running if isinstance(one.pending, Guess)]
        count = requests[0].count
        return self.masked_lm.top_tokens([request.text for request in requests], count)


def _judgements(
    attempt: Attempt, request: Judge, count: int, answers: Answers | None, place: int
) -> list[Judgement]:
    judged = []
    for number in range(count):
        assert answers is not None
        label, shares = int(answers.labels[place + number]), answers.shares[place + number]
        if attempt.label >= len(shares):
            raise ClassifierError(
                f"label {attempt.label} is not one of the victim's {len(shares)} classes"
            )
        if not attempt.clean_shares:
            attempt.clean_shares = shares.tolist()
        score = None if request.labels_only else float(1 - shares[attempt.label])
        judged.append(Judgement(request.texts[number], label, label != attempt.label, score))
    return judged


def _share(judgement: Judgement) -> float | None:
    return None if judgement.score is None else 1 - judgement.score


def _entropy(shares: Sequence[float]) -> float:
    return -sum(share * math.log(share) for share in shares if share > 0)

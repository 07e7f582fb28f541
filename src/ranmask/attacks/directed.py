"""Searches that use what is known of the victim, and one that keeps the best of several.

Greedy searches lower the share of the true label.  What flips a label is a rival that gets ahead
of it, so `Directed` goes for each rival by itself; where the gains of words add up (copies of one
word each), no other choice among the same candidates needs fewer words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ranmask.attacks.recipe import AttackRecipe, Search, distance
from ranmask.attacks.search import ask, harm
from ranmask.attacks.steps import (
    Attempt,
    FirstOrder,
    QueryModel,
    QueryResult,
    QuerySurrogate,
    ScoreWords,
    Steps,
)
from ranmask.attacks.tokenization import AttackedText
from ranmask.certificates.votes import Scores

Measured: TypeAlias = Literal["victim", "surrogate", "words", "gradient"]
Candidate: TypeAlias = tuple[int, str]
"""A position of the original text, and a word to put there."""


@dataclass(frozen=True)
class Directed(Search):
    """For each rival class: at every word the candidate that brings it closest, the best first.

    Words are replaced in that order, constraints checked at each, until the label falls to any
    rival: all rivals advance together, so that the fewest words are found first.

    Args:
        measured: How much closer a candidate brings a rival is found by asking the ``victim``, or
            a ``surrogate`` that the attacker owns; from what is said of ``words`` alone, where
            they add up; or by the ``gradient``, whose ``confirmed`` best of each word and rival
            the victim is asked about.
        rounds: As long as the label stands, candidates are measured again, around the best text.
        confirmed: See ``measured`` and ``sure``.
        sure: With a surrogate, walk to the end, and ask the victim about the ``confirmed`` texts
            that the surrogate is surest of: where masks are drawn, the first that flips is luck.
    """

    measured: Measured = "victim"
    rounds: int = 2
    confirmed: int = 4
    sure: bool = False

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        found, around = clean, attempt.original
        candidates = yield from allowed_candidates(attempt, recipe)
        for _ in range(self.rounds if candidates else 0):
            if attempt.exhausted:
                break
            gains = yield from self._gains(attempt, candidates, around)
            best = yield from self._walk(attempt, recipe, clean, gains)
            if harm(best) <= harm(found):
                break
            found, around = best, best.text
            if found.flipped or self.measured == "words":
                break
        return found

    def _gains(
        self, attempt: Attempt, candidates: Sequence[Candidate], around: AttackedText
    ) -> Steps[dict[Candidate, Scores]]:
        """How much closer each candidate brings each class to the label, in the text ``around``."""
        original, label = attempt.original, attempt.label
        there = {place: around.words[place] for place in around.modified}
        texts = {one: original.replaced({**there, one[0]: one[1]}) for one in candidates}
        if self.measured == "gradient":
            rises = yield FirstOrder(around, tuple(texts.values()))
            closer = dict(zip(texts, rises - rises[:, [label]], strict=True))
            texts = {one: texts[one] for one in _best(closer, label, self.confirmed)}
        if attempt.queries_left is not None and self.measured in ("victim", "gradient"):
            most = max(1, attempt.queries_left * 3 // 4)  # the walk needs some
            step = -(-len(texts) // most)
            texts = dict(list(texts.items())[::step])
        # The text around with each changed word as it was: what a candidate there is compared with.
        before = {
            place: original.replaced({**there, place: original.words[place]}) for place in there
        }
        asked = (around, *before.values(), *texts.values())
        rows = yield from self._leads(attempt, asked)
        known = dict(zip(before, rows[1:], strict=False))
        leads = zip(texts, rows[1 + len(before) :], strict=False)
        return {one: lead - known.get(one[0], rows[0]) for one, lead in leads}

    def _leads(self, attempt: Attempt, texts: Sequence[AttackedText]) -> Steps[Scores]:
        """How far each class is ahead of the label, for each text."""
        if self.measured == "words":
            spelt = [text.document.words for text in texts]
            words = tuple(dict.fromkeys(word for some in spelt for word in some))
            rows = yield ScoreWords(words, attempt.original.document.premise)
            number = {word: place for place, word in enumerate(words)}
            # One text after another: there may be as many as words times candidates.
            places = (np.fromiter(map(number.__getitem__, some), np.intp) for some in spelt)
            shares: Scores = np.stack([rows[some].mean(axis=0) for some in places])
        else:
            ask_about = QuerySurrogate if self.measured == "surrogate" else QueryModel
            results = yield ask_about(tuple(texts), near=texts[0])
            shares = np.array([result.shares for result in results])
        leads: Scores = shares - shares[:, [attempt.label]]
        return leads

    def _walk(
        self,
        attempt: Attempt,
        recipe: AttackRecipe,
        clean: QueryResult,
        gains: Mapping[Candidate, Scores],
    ) -> Steps[QueryResult]:
        """Replace words towards each rival, side by side."""
        rivals = [rival for rival in range(len(clean.shares)) if rival != attempt.label]
        plans = {rival: iter(_plan(gains, rival)) for rival in rivals}
        reached = dict.fromkeys(rivals, attempt.original)
        best, walked = clean, []
        while plans and not attempt.exhausted:
            for rival in list(plans):
                text = yield from _further(attempt, recipe, reached[rival], plans[rival])
                if text is None:
                    del plans[rival], reached[rival]
                else:
                    reached[rival] = text
            texts = list(dict.fromkeys(reached.values()))
            if self.sure:
                walked += yield QuerySurrogate(tuple(texts), near=attempt.original)
                continue
            results = yield from ask(texts, attempt.original)
            best = max([best, *results], key=harm)
            if best.flipped:
                break
        surest = sorted(walked, key=harm, reverse=True)[: self.confirmed]
        results = yield from ask([one.text for one in surest], attempt.original)
        wrong = (result for result in results if result.flipped)
        return next(wrong, max([best, *results], key=harm))


def allowed_candidates(attempt: Attempt, recipe: AttackRecipe) -> Steps[list[Candidate]]:
    """Every replacement of a word of the original that the constraints allow."""
    original = attempt.original
    positions = recipe.positions(original)
    if recipe.ranking.needs_certificate:
        positions = yield from recipe.ranking.order(attempt, positions)
    made: list[AttackedText] = []
    for position in positions if attempt.budget != 0 else ():
        words = yield from recipe.candidates.words(attempt, original, position)
        made += recipe.replacements(original, position, dict.fromkeys(words))
    texts = yield from recipe.allowed(attempt, made)
    return [candidate for text in texts for candidate in text.new_words.items()]


def _best(closer: Mapping[Candidate, Scores], label: int, count: int) -> list[Candidate]:
    """At each position the ``count`` candidates that bring each rival closest, in their order."""
    at: dict[int, list[Candidate]] = {}
    for one in closer:
        at.setdefault(one[0], []).append(one)
    kept: set[Candidate] = set()
    for here in at.values():
        order = np.argsort([-closer[one] for one in here], axis=0, kind="stable")[:count]
        kept |= {here[row] for row in np.delete(order, label, axis=1).flatten().tolist()}
    return [one for one in closer if one in kept]


def _plan(gains: Mapping[Candidate, Scores], rival: int) -> list[tuple[int, list[str]]]:
    """Positions, the dearest first, with their words, the best first; none that takes it back."""
    words: dict[int, list[str]] = {}
    for position, word in sorted(gains, key=lambda one: -gains[one][rival]):
        if gains[position, word][rival] >= 0:
            words.setdefault(position, []).append(word)
    return list(words.items())


def _further(
    attempt: Attempt,
    recipe: AttackRecipe,
    current: AttackedText,
    plan: Iterator[tuple[int, list[str]]],
) -> Steps[AttackedText | None]:
    """The text with the next word of a plan replaced by the best that may stand there now."""
    for position, words in plan:
        for some in (words[:1], words[1:]):
            texts = yield from recipe.allowed(attempt, recipe.replacements(current, position, some))
            if texts:
                return min(texts, key=lambda text: words.index(text.new_words[position]))
    return None


@dataclass(frozen=True)
class Strongest(Search):
    """Runs several searches, the cheapest first, and keeps the text with the fewest changed words.

    After a success each of the others may change fewer words than that took.  One more than the
    certified radius cannot be beaten.  Unless the ``fewest`` are wanted, the first success ends it.
    """

    members: tuple[Search, ...]
    fewest: bool = True

    def description(self) -> dict[str, Any]:
        return {**super().description(), "members": [one.description() for one in self.members]}

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        best, budget = clean, attempt.budget
        certified = 0 if attempt.certificate is None else attempt.certificate.radius or 0
        for member in self.members:
            if attempt.exhausted or (best.flipped and attempt.budget == certified):
                break
            found = yield from member.run(attempt, recipe, clean)
            if found.flipped or (not best.flipped and harm(found) > harm(best)):
                best = found
            if found.flipped and not self.fewest:
                break
            if found.flipped:
                attempt.budget = distance(found.text, attempt.original, recipe.unit) - 1
        attempt.budget = budget
        return best

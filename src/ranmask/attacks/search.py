"""How an attack looks for a text that the victim gets wrong: rankings of words, and searches.

`Greedy`, `BySaliency` and `Beam` are the field's searches; `Together` changes several words at a
time; `LabelsOnly` never sees a score; `AnyWords` goes for the certificate's own threat model.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranmask.attacks.recipe import AttackRecipe, Ranking, Search, usable, within_budget
from ranmask.attacks.steps import Attempt, FirstOrder, QueryModel, QueryResult, SeededRandom, Steps
from ranmask.attacks.tokenization import AttackedText
from ranmask.words import split


class ByLoss(Ranking):
    """By what the victim loses when it does not see the word: one query a word."""

    @abstractmethod
    def hidden(self, text: AttackedText, position: int) -> AttackedText:
        """The text that does not show its word at ``position``."""

    def order(self, attempt: Attempt, positions: Sequence[int]) -> Steps[list[int]]:
        """Ties go to the earlier word."""
        scores = yield from self.scores(attempt, positions)
        return sorted(positions, key=lambda position: -scores.get(position, 0.0))

    def scores(self, attempt: Attempt, positions: Sequence[int]) -> Steps[dict[int, float]]:
        """What the victim says without each word."""
        original = attempt.original
        within = positions[: attempt.queries_left]  # of a long text, not more than can be asked
        asked = {position: self.hidden(original, position) for position in within}
        # A text cannot be asked about when its only word is gone; then there is no order to find.
        asked = {position: text for position, text in asked.items() if split(text.parts[-1])}
        results = yield QueryModel(tuple(asked.values()), near=original)
        return {position: _score(result) for position, result in zip(asked, results, strict=False)}


class ByDeletion(ByLoss):
    """By deleting the word."""

    def hidden(self, text: AttackedText, position: int) -> AttackedText:
        return text.without(position)


@dataclass(frozen=True)
class ByUnknown(ByLoss):
    """By showing an unknown word in its place."""

    token: str = "[UNK]"  # noqa: S105  not a password

    def hidden(self, text: AttackedText, position: int) -> AttackedText:
        return text.shown_as(position, self.token)


class ByGradient(ByUnknown):
    """By what the gradient says that the unknown word in its place would do: no query."""

    def scores(self, attempt: Attempt, positions: Sequence[int]) -> Steps[dict[int, float]]:
        """How far the label's share falls, to first order."""
        original = attempt.original
        others = tuple(self.hidden(original, position) for position in positions)
        rises = yield FirstOrder(original, others)
        return dict(zip(positions, (-rises[:, attempt.label]).tolist(), strict=True))


class AtRandom(Ranking):
    """In a random order: what an attacker does who sees labels only."""

    def order(self, attempt: Attempt, positions: Sequence[int]) -> Steps[list[int]]:
        order = attempt.random("order").sample(len(positions), len(positions))
        return [positions[place] for place in order]
        yield  # a generator that asks nothing


class ByCertificate(Ranking):
    """The certificate's worst choice of words, and no other where it names some.

    Positions of the certificate are words, so it goes with the tokenization ``words`` only.
    """

    needs_certificate = True

    def order(self, attempt: Attempt, positions: Sequence[int]) -> Steps[list[int]]:
        original, certificate = attempt.original, attempt.certificate
        critical = () if certificate is None else certificate.critical_words
        premise = len(split(original.parts[0])) if len(original.parts) > 1 else 0
        worst = {premise + position for position in critical}
        return [position for position in positions if position in worst] or list(positions)
        yield  # a generator that asks nothing


def ask(texts: Sequence[AttackedText], near: AttackedText) -> Steps[list[QueryResult]]:
    """What the victim says of texts; nothing is asked where there are none."""
    if not texts:
        return []
    results: list[QueryResult] = yield QueryModel(tuple(texts), near)
    return results


def harm(result: QueryResult) -> tuple[bool, float]:
    """A wrong label first; then how close another label is, which is what flips it.

    Shares lost to several labels flip nothing, so the score of the true one alone misleads.
    """
    return result.flipped, -1.0 if result.lead is None else result.lead


@dataclass(frozen=True)
class Greedy(Search):
    """Words are ranked once, then visited in that order.

    The best replacement of a word is kept if it is *strictly* better than what there was.  Where
    it is wrong for the victim the search ends, with the most similar of the replacements that
    are wrong, if similarity is measured, else with the best.
    """

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        best = clean
        order = yield from self.order(attempt, recipe)
        for position in order:
            if attempt.exhausted:
                break
            texts = yield from recipe.candidate_texts(attempt, best.text, position)
            results = yield from ask(texts, best.text)
            ranked = sorted(results, key=_score, reverse=True)
            if not ranked or _score(ranked[0]) <= _score(best):
                continue
            best = ranked[0]
            if best.flipped:
                wrong = itertools.takewhile(lambda result: result.flipped, ranked)
                return max(wrong, key=lambda result: result.text.similarity or 0.0)
        return best

    def order(self, attempt: Attempt, recipe: AttackRecipe) -> Steps[list[int]]:
        """In which words are visited."""
        return (yield from recipe.ranking.order(attempt, recipe.positions(attempt.original)))


@dataclass(frozen=True)
class BySaliency(Greedy):
    """The same, but words are ranked by what replacing them can do, too (PWWS).

    That is the best score of a word's replacements times the softmax of what its loss alone does.
    """

    def order(self, attempt: Attempt, recipe: AttackRecipe) -> Steps[list[int]]:
        """Asks about every replacement of every word; ties go to the earlier word."""
        positions = recipe.positions(attempt.original)
        if not isinstance(recipe.ranking, ByLoss) or not positions:
            return positions
        losses = yield from recipe.ranking.scores(attempt, positions)
        weights = {position: math.exp(losses.get(position, 0.0)) for position in positions}
        total, gains = sum(weights.values()), dict.fromkeys(positions, 0.0)
        for position in positions:
            if attempt.exhausted:
                break
            texts = yield from recipe.candidate_texts(attempt, attempt.original, position)
            results = yield from ask(texts, attempt.original)
            gains[position] = weights[position] / total * max(map(_score, results), default=0.0)
        return sorted(positions, key=lambda position: -gains[position])


@dataclass(frozen=True)
class Beam(Search):
    """The ``width`` best texts go on, each changed anywhere; ends with the first that is wrong.

    ``steepest``: of the changes of a text the victim is asked about so many only, those by which
    its gradient falls most (HotFlip); None: about all.
    """

    width: int = 1
    steepest: int | None = None

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        """All changes of all texts in the beam are asked about; of equals the first is taken."""
        best, beam = clean, [clean]
        while not best.flipped and not attempt.exhausted:
            results = []
            for result in beam:
                texts = yield from recipe.all_texts(attempt, result.text)
                if self.steepest is not None and texts:
                    rises = yield FirstOrder(result.text, tuple(texts))
                    order = np.argsort(rises[:, attempt.label], kind="stable")
                    texts = [texts[place] for place in order[: self.steepest]]
                results += yield from ask(texts, result.text)
            if not results:
                break
            beam = sorted(results, key=_score, reverse=True)[: self.width]
            best = beam[0]
        return best


def _score(result: QueryResult) -> float:
    assert result.score is not None, "a score was not asked for"
    return result.score


@dataclass(frozen=True)
class Together(Search):
    """Replaces ``group`` words at a time, ``tries`` random ways, in the order of their ranking.

    Votes move in steps: one word alone may move none, so a way that is only as good as before
    is taken too.  ``rounds`` visits of all words.
    """

    group: int = 3
    tries: int = 32
    rounds: int = 2

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        best = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        groups = [order[start : start + self.group] for start in range(0, len(order), self.group)]
        for turn, group in itertools.product(range(self.rounds), groups):
            if attempt.exhausted or best.flipped:
                break
            choices = {}  # the candidates for each word of the original, where there are any
            for position in group:
                found = yield from recipe.candidates.words(attempt, attempt.original, position)
                words = usable(found, attempt.original.words[position], recipe.tokenization)
                if words:
                    choices[position] = words
            random = attempt.random("together", turn, *group)
            made = [
                best.text.replaced(_drawn(choices, random))
                for _ in range(self.tries if choices else 0)
            ]
            texts = yield from recipe.allowed(attempt, dict.fromkeys(made))
            results = yield from ask(texts, best.text)
            best = max([*results, best], key=harm)  # of equals, a new one
        return best


def _drawn(choices: Mapping[int, Sequence[str]], random: SeededRandom) -> dict[int, str]:
    return {place: words[random.below(len(words))] for place, words in choices.items()}


@dataclass(frozen=True)
class LabelsOnly(Search):
    """Sees labels, never a score: random replacements until the label flips, then undoes most.

    ``starts`` texts with every attackable word replaced at random are tried; from the first that
    is wrong for the victim, words are put back one by one as long as it stays wrong.  Constraints
    judge each replacement by itself, in the original text.
    """

    starts: int = 20

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        original = attempt.original
        choices: dict[int, list[str]] = {}
        for position in recipe.positions(original) if attempt.budget != 0 else ():
            texts = yield from recipe.candidate_texts(attempt, original, position)
            if texts:
                choices[position] = [text.words[position] for text in texts]
        wrong = None
        for start in range(self.starts if choices else 0):
            words = _drawn(choices, attempt.random("start", start))
            wrong = yield from self._if_wrong(attempt, words, original)
            if wrong is not None:
                break
        if wrong is None:
            return clean
        order = yield from recipe.ranking.order(attempt, list(choices))
        changed = True
        while changed:
            changed = False
            for position in order:
                if position in words:
                    fewer = {place: word for place, word in words.items() if place != position}
                    found = yield from self._if_wrong(attempt, fewer, wrong.text)
                    if found is not None:
                        words, wrong, changed = fewer, found, True
        return wrong if within_budget(wrong.text, attempt, recipe.unit) else clean

    def _if_wrong(
        self, attempt: Attempt, words: dict[int, str], near: AttackedText
    ) -> Steps[QueryResult | None]:
        """What the victim says of the original with these words, where it is wrong."""
        if attempt.exhausted:
            return None
        text = attempt.original.replaced(words)
        [result] = yield QueryModel((text,), near, labels_only=True)
        return result if result.flipped else None


@dataclass(frozen=True)
class AnyWords(Search):
    """Any word in any place, up to the budget: exactly what a certificate says is harmless.

    Tries every candidate at the first word of the ranking, takes the ``best`` ones, and puts
    them wherever they do most harm, one place after another among the first ``places`` of the
    ranking, better or not, until the budget is spent.
    """

    best: int = 8
    places: int = 24

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        found = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        if attempt.exhausted or not order or attempt.budget == 0:
            return found
        texts = yield from recipe.candidate_texts(attempt, attempt.original, order[0])
        results = yield from ask(texts, attempt.original)
        harmful = sorted(results, key=harm, reverse=True)[: self.best]
        if harmful and harmful[0].flipped:
            return harmful[0]
        words = [result.text.words[order[0]] for result in harmful]
        places = order[: self.places]
        while places and not attempt.exhausted and not found.flipped:
            made = [recipe.replacements(found.text, place, words) for place in places]
            texts = yield from recipe.allowed(attempt, itertools.chain(*made))
            results = yield from ask(texts, found.text)
            if not results:
                break
            found = max(results, key=harm)
            places = [place for place in places if place not in found.text.modified]
        return found

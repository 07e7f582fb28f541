"""How an attack looks for a text that the victim gets wrong: rankings of words, and searches.

`Greedy` is the field's search; `Together` changes several words at a time; `LabelsOnly` never sees
a score; `AnyWords` goes for the certificate's own threat model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ranmask.attacks.constraints import Proposal
from ranmask.attacks.recipe import AttackRecipe, Ranking, Search, usable, within_budget
from ranmask.attacks.steps import Attempt, QueryModel, QueryResult, SearchSteps
from ranmask.attacks.tokenization import AttackedText
from ranmask.words import split


class ByLoss(Ranking):
    """By what the victim loses when it does not see the word: one query a word."""

    @abstractmethod
    def hidden(self, text: AttackedText, position: int) -> AttackedText:
        """The text that does not show its word at ``position``."""

    def order(self, attempt: Attempt, positions: Sequence[int]) -> SearchSteps[list[int]]:
        """Ties go to the earlier word."""
        original = attempt.original
        within = positions[: attempt.queries_left]  # of a long text, not more than can be asked
        asked = {position: self.hidden(original, position) for position in within}
        # A text cannot be asked about when its only word is gone; then there is no order to find.
        asked = {position: text for position, text in asked.items() if split(text.parts[-1])}
        results = yield QueryModel(tuple(asked.values()), near=original)
        scores = {position: result.score for position, result in zip(asked, results, strict=False)}
        return sorted(positions, key=lambda position: -scores.get(position, 0.0))


class ByDeletion(ByLoss):
    """By deleting the word."""

    def hidden(self, text: AttackedText, position: int) -> AttackedText:
        """The text without the word."""
        return text.without(position)


@dataclass(frozen=True)
class ByUnknown(ByLoss):
    """By showing an unknown word in its place."""

    token: str = "[UNK]"  # noqa: S105  not a password

    def hidden(self, text: AttackedText, position: int) -> AttackedText:
        """The text with the unknown word."""
        return text.shown_as(position, self.token)


class AtRandom(Ranking):
    """In a random order: what an attacker does who sees labels only."""

    def order(self, attempt: Attempt, positions: Sequence[int]) -> SearchSteps[list[int]]:
        """An order of this attempt's own."""
        order = attempt.random("order").sample(len(positions), len(positions))
        return [positions[place] for place in order]
        yield  # a generator that asks nothing


class ByCertificate(Ranking):
    """The certificate's worst choice of words, and no other where it names some.

    Positions of the certificate are words, so it goes with the tokenization ``words`` only.
    """

    needs_certificate = True

    def order(self, attempt: Attempt, positions: Sequence[int]) -> SearchSteps[list[int]]:
        """In the order of the text."""
        original, certificate = attempt.original, attempt.certificate
        critical = () if certificate is None else certificate.critical_words
        premise = len(split(original.parts[0])) if len(original.parts) > 1 else 0
        worst = {premise + position for position in critical}
        return [position for position in positions if position in worst] or list(positions)
        yield  # a generator that asks nothing


@dataclass(frozen=True)
class Greedy(Search):
    """Words are ranked once, then visited in that order.

    The best replacement of a word is kept if it is *strictly* better than what there was.  Where
    it is wrong for the victim the search ends, with the most similar of the replacements that
    are wrong, if similarity is measured, else with the best.
    """

    def run(
        self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult
    ) -> SearchSteps[QueryResult]:
        """One pass over the words."""
        best = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        for position in order:
            if attempt.exhausted:
                break
            proposals = yield from recipe.proposals(attempt, best.text, position)
            if not proposals:
                continue
            results = yield _query(proposals, best.text)
            ranked = sorted(
                zip(results, proposals, strict=False), key=lambda pair: -_score(pair[0])
            )
            if not ranked or _score(ranked[0][0]) <= _score(best):
                continue
            best = ranked[0][0]
            if best.flipped:
                return _most_similar(ranked)
        return best


@dataclass(frozen=True)
class Together(Search):
    """Replaces ``group`` words at a time, ``tries`` random ways, in the order of their ranking.

    Votes move in steps: one word alone may move none, so a way that is only as good as before
    is taken too.  ``rounds`` visits of all words.
    """

    group: int = 3
    tries: int = 32
    rounds: int = 2

    def run(
        self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult
    ) -> SearchSteps[QueryResult]:
        """Groups of neighbours in the ranking."""
        best = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        groups = [order[start : start + self.group] for start in range(0, len(order), self.group)]
        for turn in range(self.rounds):
            for group in groups:
                if attempt.exhausted or best.flipped:
                    return best
                made = yield from self._made(attempt, recipe, best.text, group, turn)
                proposals = yield from recipe.filtered(attempt, best.text, made)
                if proposals:
                    results = yield _query(proposals, best.text)
                    best = max([*results, best], key=_harm)  # of equals, a new one
        return best

    def _made(
        self,
        attempt: Attempt,
        recipe: AttackRecipe,
        current: AttackedText,
        group: Sequence[int],
        turn: int,
    ) -> SearchSteps[list[Proposal]]:
        """Texts with random candidates at all words of the group."""
        choices: dict[int, list[str]] = {}
        for position in group:
            found = yield from recipe.candidates.words(attempt, attempt.original, position)
            words = usable(found, attempt.original.words[position], recipe.tokenization)
            if words:
                choices[position] = words
        random = attempt.random("together", turn, *group)
        made: dict[tuple[str, ...], Proposal] = {}
        for _ in range(self.tries if choices else 0):
            chosen = {place: words[random.below(len(words))] for place, words in choices.items()}
            text = current.replaced(chosen)
            made.setdefault(text.parts, Proposal(text, tuple(choices)))
        return list(made.values())


@dataclass(frozen=True)
class LabelsOnly(Search):
    """Sees labels, never a score: random replacements until the label flips, then undoes most.

    ``starts`` texts with every attackable word replaced at random are tried; from the first that
    is wrong for the victim, words are put back one by one as long as it stays wrong.  Constraints
    judge each replacement by itself, in the original text.
    """

    starts: int = 20

    def run(
        self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult
    ) -> SearchSteps[QueryResult]:
        """Replace all, then put back."""
        original = attempt.original
        choices: dict[int, list[str]] = {}
        if attempt.budget == 0:
            return clean
        for position in recipe.positions(original):
            proposals = yield from recipe.proposals(attempt, original, position)
            if proposals:
                choices[position] = [proposal.text.words[position] for proposal in proposals]
        words, wrong = yield from self._wrong(attempt, choices)
        if wrong is None:
            return clean
        order = yield from recipe.ranking.order(attempt, list(choices))
        changed = True
        while changed and not attempt.exhausted:
            changed = False
            for position in order:
                if position not in words or attempt.exhausted:
                    continue
                fewer = {place: word for place, word in words.items() if place != position}
                text = original.replaced(fewer)
                results = yield QueryModel((text,), near=wrong.text, labels_only=True)
                if results and results[0].flipped:
                    words, wrong, changed = fewer, results[0], True
        return wrong if within_budget(wrong.text, attempt) else clean

    def _wrong(
        self, attempt: Attempt, choices: dict[int, list[str]]
    ) -> SearchSteps[tuple[dict[int, str], QueryResult | None]]:
        """Random words that the victim gets the text wrong with."""
        for start in range(self.starts if choices else 0):
            if attempt.exhausted:
                break
            random = attempt.random("start", start)
            words = {place: among[random.below(len(among))] for place, among in choices.items()}
            text = attempt.original.replaced(words)
            results = yield QueryModel((text,), near=attempt.original, labels_only=True)
            if results and results[0].flipped:
                return words, results[0]
        return {}, None


@dataclass(frozen=True)
class AnyWords(Search):
    """Any word in any place, up to the budget: exactly what a certificate says is harmless.

    Tries every candidate at the first word of the ranking, takes the ``best`` ones, and puts
    them wherever they do most harm, one place after another among the first ``places`` of the
    ranking, better or not, until the budget is spent.
    """

    best: int = 8
    places: int = 24

    def run(
        self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult
    ) -> SearchSteps[QueryResult]:
        """Find harmful words, then harmful places."""
        found = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        if attempt.exhausted or not order or attempt.budget == 0:
            return found
        first = yield from recipe.proposals(attempt, attempt.original, order[0])
        results = yield _query(first, attempt.original)
        harmful: list[QueryResult] = sorted(results, key=_harm, reverse=True)[: self.best]
        if harmful and harmful[0].flipped:
            return harmful[0]
        words = [result.text.words[order[0]] for result in harmful]
        places = order[: self.places]
        while places and words and not attempt.exhausted:
            made = [
                proposal
                for place in places
                for proposal in recipe.replacements(found.text, place, words)
            ]
            proposals = yield from recipe.filtered(attempt, found.text, made)
            results = (yield _query(proposals, found.text)) if proposals else []
            if not results:
                break
            found = max(results, key=_harm)
            if found.flipped:
                break
            places = [place for place in places if place not in found.text.modified]
        return found


def _query(proposals: Sequence[Proposal], near: AttackedText) -> QueryModel:
    return QueryModel(tuple(proposal.text for proposal in proposals), near)


def _score(result: QueryResult) -> float:
    assert result.score is not None, "a score was not asked for"
    return result.score


def _harm(result: QueryResult) -> tuple[bool, float]:
    """A wrong label first; then how close another label is, which is what flips it.

    Shares lost to several labels flip nothing, so the score of the true one alone misleads.
    """
    assert result.lead is not None, "a score was not asked for"
    return result.flipped, result.lead


def _most_similar(ranked: Sequence[tuple[QueryResult, Proposal]]) -> QueryResult:
    """Of the leading candidates that are wrong for the victim, the most similar."""
    best, most = ranked[0][0], float("-inf")
    for result, proposal in ranked:
        if not result.flipped or proposal.similarity is None:
            break
        if proposal.similarity > most:
            best, most = result, proposal.similarity
    return best

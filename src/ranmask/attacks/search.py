"""The searches: how an attack looks for a text that the victim gets wrong.

`Greedy` is the field's; `Together` changes several words at a time; `LabelsOnly` never sees a
score; `AnyWords` goes for the certificate's own threat model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranmask.attacks.attempt import Attempt
from ranmask.attacks.constraints import Proposal
from ranmask.attacks.recipe import Recipe, Search, usable, within_budget
from ranmask.attacks.requests import Dialogue, Judge, Judgement
from ranmask.attacks.tokenization import CutText


@dataclass(frozen=True)
class Greedy(Search):
    """Words are ranked once, then visited in that order.

    The best replacement of a word is kept if it is *strictly* better than what there was.  Where
    it is wrong for the victim the search ends, with the most similar of the replacements that
    are wrong, if similarity is measured, else with the best.
    """

    def run(self, attempt: Attempt, recipe: Recipe, clean: Judgement) -> Dialogue[Judgement]:
        """One pass over the words."""
        best = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        for position in order:
            if attempt.exhausted:
                break
            proposals = yield from recipe.proposals(attempt, best.text, position)
            if not proposals:
                continue
            judged = yield _judge(proposals, best.text)
            ranked = sorted(zip(judged, proposals, strict=False), key=lambda pair: -_seen(pair[0]))
            if not ranked or _seen(ranked[0][0]) <= _seen(best):
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

    def run(self, attempt: Attempt, recipe: Recipe, clean: Judgement) -> Dialogue[Judgement]:
        """Groups of neighbours in the ranking."""
        best = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        for turn in range(self.rounds):
            for start in range(0, len(order), self.group):
                if attempt.exhausted:
                    return best
                group = order[start : start + self.group]
                made = yield from self._made(attempt, recipe, best.text, group, turn)
                proposals = yield from recipe.filtered(attempt, best.text, made)
                if not proposals:
                    continue
                judged = yield _judge(proposals, best.text)
                found = max(judged, key=_harm, default=best)
                if _harm(found) >= _harm(best):
                    best = found
                if best.flipped:
                    return best
        return best

    def _made(
        self, attempt: Attempt, recipe: Recipe, current: CutText, group: Sequence[int], turn: int
    ) -> Dialogue[list[Proposal]]:
        """Texts with random candidates at all words of the group."""
        choices: dict[int, list[str]] = {}
        for position in group:
            found = yield from recipe.candidates.words(attempt, attempt.original, position)
            words = usable(found, attempt.original.words[position], recipe.cutting)
            if words:
                choices[position] = words
        chance = attempt.chance("together", turn, *group)
        made: dict[tuple[str, ...], Proposal] = {}
        for _ in range(self.tries if choices else 0):
            chosen = {place: words[chance.below(len(words))] for place, words in choices.items()}
            text = current.replaced_all(chosen)
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

    def run(self, attempt: Attempt, recipe: Recipe, clean: Judgement) -> Dialogue[Judgement]:
        """Replace all, then put back."""
        choices: dict[int, list[str]] = {}
        if attempt.budget == 0:
            return clean
        for position in recipe.positions(attempt.original):
            proposals = yield from recipe.proposals(attempt, attempt.original, position)
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
                text = attempt.original.replaced_all(fewer)
                judged = yield Judge((text,), near=wrong.text, labels_only=True)
                if judged and judged[0].flipped:
                    words, wrong, changed = fewer, judged[0], True
        return wrong if within_budget(wrong.text, attempt) else clean

    def _wrong(
        self, attempt: Attempt, choices: dict[int, list[str]]
    ) -> Dialogue[tuple[dict[int, str], Judgement | None]]:
        """Random words that the victim gets the text wrong with."""
        for start in range(self.starts if choices else 0):
            if attempt.exhausted:
                break
            chance = attempt.chance("start", start)
            words = {place: among[chance.below(len(among))] for place, among in choices.items()}
            text = attempt.original.replaced_all(words)
            judged = yield Judge((text,), near=attempt.original, labels_only=True)
            if judged and judged[0].flipped:
                return words, judged[0]
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

    def run(self, attempt: Attempt, recipe: Recipe, clean: Judgement) -> Dialogue[Judgement]:
        """Find harmful words, then harmful places."""
        found = clean
        order = yield from recipe.ranking.order(attempt, recipe.positions(attempt.original))
        if attempt.exhausted or not order or attempt.budget == 0:
            return found
        first = yield from recipe.proposals(attempt, attempt.original, order[0])
        judged = yield _judge(first, attempt.original)
        harmful: list[Judgement] = sorted(judged, key=_harm, reverse=True)[: self.best]
        if harmful and harmful[0].flipped:
            return harmful[0]
        words = [one.text.words[order[0]] for one in harmful]
        places = order[: self.places]
        while places and words and not attempt.exhausted:
            made = [
                Proposal(found.text.replaced(place, word), (place,))
                for place in places
                for word in usable(words, found.text.words[place], recipe.cutting)
            ]
            proposals = yield from recipe.filtered(attempt, found.text, made)
            if not proposals:
                break
            judged = yield _judge(proposals, found.text)
            if not judged:
                break
            found = max(judged, key=_harm)
            if found.flipped:
                break
            places = [place for place in places if place not in found.text.modified]
        return found


def _judge(proposals: Sequence[Proposal], near: CutText) -> Judge:
    return Judge(tuple(proposal.text for proposal in proposals), near)


def _seen(judgement: Judgement) -> float:
    """The score; a search that asks for labels only has no business here."""
    if judgement.score is None:
        raise AssertionError("a score was not asked for")
    return judgement.score


def _harm(judgement: Judgement) -> tuple[bool, float]:
    """A wrong label first; then how close another label is, which is what flips it.

    Shares lost to several labels flip nothing, so the score of the true one alone misleads.
    """
    if judgement.lead is None:
        raise AssertionError("a score was not asked for")
    return judgement.flipped, judgement.lead


def _most_similar(ranked: Sequence[tuple[Judgement, Proposal]]) -> Judgement:
    """Of the leading candidates that are wrong for the victim, the most similar."""
    best, most = ranked[0][0], float("-inf")
    for judgement, proposal in ranked:
        if not judgement.flipped or proposal.similarity is None:
            break
        if proposal.similarity > most:
            best, most = judgement, proposal.similarity
    return best

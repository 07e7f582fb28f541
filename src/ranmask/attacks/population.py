"""Searches with many texts at a time: genetic (Alzantot et al. 2018), swarms (Zang et al. 2020).

Both with TextAttack's sizes and rates.  A member is a set of words put into the original, so that
constraints compare it with that; one that they forbid is left as it was.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ranmask.attacks.directed import allowed_candidates
from ranmask.attacks.recipe import AttackRecipe, Search
from ranmask.attacks.search import ask, harm
from ranmask.attacks.steps import Attempt, QueryResult, SeededRandom, Steps

Choices: TypeAlias = dict[int, list[str]]
Words: TypeAlias = dict[int, str]

_FASTEST = 3.0
_INERTIA = (0.8, 0.2)  # at the beginning, and at the end
_TURNS = (0.8, 0.2)


class Generation(NamedTuple):
    """Members, the best text that each has been, and the best of all.

    ``passed``: the share of the search that is over.
    """

    members: Sequence[QueryResult]
    own_best: Sequence[QueryResult]
    best: QueryResult
    passed: float


@dataclass(frozen=True)
class Population(Search):
    """``members`` texts for ``generations``, or until one is wrong for the victim."""

    members: int = 60
    generations: int = 20

    def run(self, attempt: Attempt, recipe: AttackRecipe, clean: QueryResult) -> Steps[QueryResult]:
        """Each begins with the best candidate of one word; then they change as they do."""
        choices: Choices = {}
        for position, word in (yield from allowed_candidates(attempt, recipe)):
            choices.setdefault(position, []).append(word)
        random = attempt.random(type(self).__name__)
        members = [clean] * (self.members if choices else 0)
        members = yield from _mutated(attempt, recipe, members, choices, random)
        best = max([clean, *members], key=harm)
        own_best = members
        for turn in range(self.generations):
            if best.flipped or attempt.exhausted or not members:
                break
            own_best = [max(pair, key=harm) for pair in zip(own_best, members, strict=True)]
            now = Generation(members, own_best, best, turn / self.generations)
            members = yield from _asked(attempt, recipe, members, self.next(now, random))
            best = max([best, *members], key=harm)
            if not best.flipped and not attempt.exhausted:
                members = yield from _mutated(attempt, recipe, members, choices, random)
                best = max([best, *members], key=harm)
        return best

    @abstractmethod
    def next(self, now: Generation, random: SeededRandom) -> list[Words]:
        """What each member becomes."""


@dataclass(frozen=True)
class Genetic(Population):
    """Two parents, drawn by how harmful they are, give a child each word of either."""

    temperature: float = 0.3

    def next(self, now: Generation, random: SeededRandom) -> list[Words]:
        """The best one stays."""
        weights = [math.exp((one.score or 0) / self.temperature) for one in now.members]
        children = [_words(now.best)]
        for _ in now.members[1:]:
            one, other = (_words(now.members[_drawn(weights, random)]) for _ in range(2))
            places = sorted(one.keys() | other.keys())
            mixed = {place: (one, other)[random.below(2)].get(place) for place in places}
            children.append({place: word for place, word in mixed.items() if word is not None})
        return children


@dataclass(frozen=True)
class Swarm(Population):
    """Members turn, word by word, to the best text each has been, and to the best of all."""

    def next(self, now: Generation, random: SeededRandom) -> list[Words]:
        """The longer it lasts, the less to their own, and the more to the best of all."""
        inertia = _INERTIA[0] - now.passed * (_INERTIA[0] - _INERTIA[1])
        own_turn, all_turn = _TURNS[0] - now.passed * 0.6, _TURNS[1] + now.passed * 0.6
        moved = []
        for member, own_best in zip(now.members, now.own_best, strict=True):
            words = _words(member)
            for goal, chance in ((_words(own_best), own_turn), (_words(now.best), all_turn)):
                if _share(random) >= chance:
                    continue
                for at in sorted(words.keys() | goal.keys()):
                    apart = words.get(at) != goal.get(at)
                    speed = (1 - inertia) * (_FASTEST if apart else -_FASTEST)
                    if _share(random) < 1 / (1 + math.exp(-speed)):
                        if at in goal:
                            words[at] = goal[at]
                        else:
                            words.pop(at, None)
            moved.append(words)
        return moved


def _mutated(
    attempt: Attempt,
    recipe: AttackRecipe,
    members: Sequence[QueryResult],
    choices: Choices,
    random: SeededRandom,
) -> Steps[list[QueryResult]]:
    """Each with the best candidate of a word that it has as it was, where that does more harm."""
    made = []
    for member in members:
        words = _words(member)
        free = [position for position in choices if position not in words]
        at = free[_drawn([len(choices[place]) for place in free], random)] if free else 0
        new = choices[at] if free else ()
        made.append([attempt.original.replaced({**words, at: word}) for word in new])
    texts = yield from recipe.allowed(attempt, dict.fromkeys(itertools.chain(*made)))
    results = yield from ask(texts, attempt.original)
    known = {result.text: result for result in results}
    return [
        max([member, *(known[text] for text in some if text in known)], key=harm)
        for member, some in zip(members, made, strict=True)
    ]


def _asked(
    attempt: Attempt,
    recipe: AttackRecipe,
    members: Sequence[QueryResult],
    wanted: Sequence[Words],
) -> Steps[list[QueryResult]]:
    """What members become, where they may; asked about once each."""
    known = {member.text: member for member in members}
    made = [attempt.original.replaced(words) if words else attempt.original for words in wanted]
    allowed = yield from recipe.allowed(attempt, dict.fromkeys(made))
    new = [text for text in allowed if text not in known]
    results = yield from ask(new, attempt.original)
    known |= {result.text: result for result in results}
    return [known.get(text, member) for text, member in zip(made, members, strict=True)]


def _words(member: QueryResult) -> Words:
    """What was put into the original."""
    return dict(member.text.new_words)


def _share(random: SeededRandom) -> float:
    return random.below(1 << 32) / (1 << 32)


def _drawn(weights: Sequence[float], random: SeededRandom) -> int:
    """A place, by its weight."""
    point = _share(random) * sum(weights)
    for place, weight in enumerate(weights):
        point -= weight
        if point < 0:
            return place
    return len(weights) - 1

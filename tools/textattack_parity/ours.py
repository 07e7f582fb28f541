"""What ranmask does, in the same terms as `theirs`."""

from __future__ import annotations

import random
import string
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranmask.attacks.api import attack
from ranmask.attacks.edits import Bugs
from ranmask.attacks.recipe import AttackRecipe, Search
from ranmask.attacks.recipes import AttackResources, build_recipe
from ranmask.attacks.replacements import AnyOf, TypingErrors, in_case_of
from ranmask.attacks.resources import MaskedLM, StopWords, WordVectors, load_tagger
from ranmask.attacks.resources.neighbours import Neighbours
from ranmask.attacks.search import ByLoss, Greedy
from ranmask.attacks.steps import Attempt, SeededRandom, Steps
from ranmask.attacks.tokenization import AttackedText, tokenize
from tools.textattack_parity import common

PRESET = "textattack-0.3.11"


class MadeUpEncoder:
    """`common.sentence_vectors`."""

    def encode(self, sentences: Sequence[str]) -> Any:
        """One unit row for each sentence."""
        return common.sentence_vectors(sentences)

    def description(self) -> dict[str, object]:
        """What a result records."""
        return {"kind": "made up"}


class MadeUpTagger:
    """`common.made_up_tags`."""

    def tag(self, words: Sequence[str], first: int | None = None) -> tuple[str, ...]:
        """The tag of each word."""
        return tuple(common.made_up_tags(words))[:first]

    def description(self) -> dict[str, object]:
        """What a result records."""
        return {"kind": "made up"}


class WordRandom(SeededRandom):
    """What TextAttack's two generators give when they are seeded with the word."""

    def __init__(self, attempt: Attempt, position: int, word: str, sort: str) -> None:
        seed = common.chance_seed(word, sort)
        self._numbers = np.random.RandomState(seed)
        self._letters = random.Random(seed)  # noqa: S311  no secret

    def below(self, count: int) -> int:
        """As ``np.random.randint(0, count)``."""
        return int(self._numbers.randint(0, count))

    def choice(self, letters: str) -> str:
        """As ``random.choice(letters)``."""
        assert letters in (string.ascii_letters, " ")
        return self._letters.choice(letters)


@dataclass
class Trace:
    """What happened on the way."""

    positions: Sequence[int] = ()
    scores: dict[int, float | None] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    visits: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class TracedRanking(ByLoss):
    """A ranking, and what it asked."""

    inner: ByLoss
    steps: defaultdict[int, Trace]

    def hidden(self, text: AttackedText, position: int) -> AttackedText:
        """The inner ranking's."""
        return self.inner.hidden(text, position)

    def scores(self, attempt: Attempt, positions: Sequence[int]) -> Steps[dict[int, float]]:
        """The inner ranking's."""
        steps = self.steps[attempt.number]
        steps.positions = list(positions)
        found = yield from self.inner.scores(attempt, positions)
        steps.scores = dict(found)
        return found


def traced_search(search: Search, steps: defaultdict[int, Trace]) -> Search:
    """A search that ranks words, and in which order it visits them."""
    if not isinstance(search, Greedy):
        return search

    class TracedSearch(type(search)):  # type: ignore[misc]
        def order(self, attempt: Attempt, recipe: AttackRecipe) -> Steps[list[int]]:
            found = yield from super().order(attempt, recipe)
            steps[attempt.number].order = list(found)
            return found

    return TracedSearch()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TracedRecipe(AttackRecipe):
    """A recipe, and what it proposed."""

    steps: defaultdict[int, Trace] = field(default_factory=lambda: defaultdict(Trace))

    def candidate_texts(
        self, attempt: Attempt, current: AttackedText, position: int
    ) -> Steps[list[AttackedText]]:
        """The recipe's."""
        made = yield from super().candidate_texts(attempt, current, position)
        place = current.places[position]
        shown = [_replacement(current, place, text) for text in made]
        self.steps[attempt.number].visits.append([position, shown])
        return made

    def all_texts(self, attempt: Attempt, current: AttackedText) -> Steps[list[AttackedText]]:
        """The recipe's; there are too many to keep them."""
        made = yield from super().all_texts(attempt, current)
        texts = [text.joined for text in made]
        self.steps[attempt.number].visits.append([len(texts), common.digest(texts)])
        return made


def _replacement(current: AttackedText, place: int | None, found: AttackedText) -> str:
    assert place is not None
    part, start, stop = current.spans[place]
    before, after = current.parts[part][:start], current.parts[part][stop:]
    new = found.parts[part]
    assert new.startswith(before)
    assert new.endswith(after)
    return new[start : len(new) - len(after)]


class MadeUpWordNet(Neighbours):
    """`common.synonyms`."""

    kind = "made up"

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__("made up", ())
        self._words = words

    def _nearest(self, word: str, count: int) -> tuple[str, ...]:
        found = common.synonyms(word, self._words)
        return tuple(one for one in found if one != word and "_" not in one)[:count]

    def similarity(self, a: str, b: str) -> None:
        """None: there are no vectors."""


@dataclass(frozen=True)
class Resources:
    """What ranmask's recipes are made with, the same as theirs."""

    words: Sequence[str]
    vectors: WordVectors
    masked_lm: MaskedLM | None
    tagger: Any
    nltk_stop_words: StopWords | None = None
    """Instead of NLTK's own list, where that is not there."""

    def recipe(self, name: str) -> tuple[AttackRecipe, AttackResources]:
        """A recipe with its resources; typing errors are drawn as theirs are."""
        plain, _, encoder = name.partition(" with ")
        resources = AttackResources(
            neighbours=MadeUpWordNet(self.words) if plain == "pwws" else self.vectors,
            tagger=self.tagger,
            masked_lm=self.masked_lm,
            sentence_encoder=MadeUpEncoder() if encoder else None,
            stop_words=None if plain == "textfooler" else self.nltk_stop_words,
        )
        recipe = build_recipe(plain, resources, PRESET)
        if isinstance(recipe.candidates, TypingErrors):
            recipe = replace(recipe, candidates=TypingErrors(WordRandom))
        if plain == "textbugger":
            _, *others = recipe.candidates.several  # type: ignore[attr-defined]
            recipe = replace(recipe, candidates=AnyOf((Bugs(WordRandom), *others)))
        return recipe, resources


def resources(group: dict[str, Any]) -> Resources:
    """Those of a group of jobs."""
    words = group["vectors"]
    folder = group["language_model"]
    return Resources(
        words,
        WordVectors(words, common.vectors(words)),
        None if folder is None else MaskedLM.from_pretrained(Path(folder), "cpu"),
        load_tagger() if group["tagger"] == "nltk" else MadeUpTagger(),
    )


def traces(
    given: Resources, name: str, jobs: Sequence[common.Job], salts: Sequence[int]
) -> list[dict[str, Any]]:
    """Attack the texts, those with the same victim in lock-step."""
    together: dict[common.Victim, list[int]] = defaultdict(list)
    for place, (job, salt) in enumerate(zip(jobs, salts, strict=True)):
        together[job.victim(salt)].append(place)
    found: dict[int, dict[str, Any]] = {}
    for victim, places in together.items():
        made = [(jobs[place], salts[place]) for place in places]
        found |= zip(places, _traced(given, name, victim, made), strict=True)
    return [found[place] for place in range(len(jobs))]


def _traced(
    given: Resources, name: str, victim: common.Victim, jobs: Sequence[tuple[common.Job, int]]
) -> list[dict[str, Any]]:
    plain, resources = given.recipe(name)
    recipe = TracedRecipe(**{one.name: getattr(plain, one.name) for one in fields(AttackRecipe)})
    if isinstance(plain.ranking, ByLoss):
        recipe = replace(recipe, ranking=TracedRanking(plain.ranking, recipe.steps))
    recipe = replace(recipe, search=traced_search(plain.search, recipe.steps))
    texts = [tuple(job.text) if isinstance(job.text, list) else job.text for job, _ in jobs]
    labels = [job.label(salt) for job, salt in jobs]
    function: Callable[[list[Any]], Any] = victim.__call__
    outcomes = attack(function, texts, labels, recipe, resources=resources)
    return [
        _trace(recipe, job, salt, outcome)
        for (job, salt), outcome in zip(jobs, outcomes, strict=True)
    ]


def _trace(recipe: TracedRecipe, job: common.Job, salt: int, outcome: Any) -> dict[str, Any]:
    assert outcome.status != "error", outcome.error
    steps = recipe.steps[outcome.number]
    final, share = outcome.adversarial, outcome.final_share
    return {
        "name": job.name,
        "salt": salt,
        "words": list(tokenize(outcome.text, recipe.tokenization).words),
        "positions": list(steps.positions),
        "scores": [
            None if steps.scores.get(at) is None else round((steps.scores[at] or 0) * common.GRID)
            for at in steps.positions
        ],
        **common.ordered(recipe.name.split()[0], steps.order, steps.visits),
        "queries": outcome.queries,
        "status": outcome.status,
        "final": list(final) if isinstance(final, tuple) else final,
        "final_score": None if share is None else round((1 - share) * common.GRID),
    }


def cuts(strings: Sequence[Any], whole: int, each: int) -> list[dict[str, Any]]:
    """Words; and what is left without each, and the windows around it.

    The latter for the first ``whole`` strings, then for every ``each``-th.
    """
    found = []
    for place, text in enumerate(strings):
        shown = tokenize(tuple(text) if isinstance(text, list) else text, PRESET)
        one: dict[str, Any] = {"words": list(shown.words)}
        if place < whole or place % each == 0:
            count = len(shown.words)
            left = [shown.without(at).text for at in range(count)]
            one["without"] = [list(one) if isinstance(one, tuple) else one for one in left]
            one["windows"] = [
                [shown.window(at, size) for size in common.WINDOWS] for at in range(count)
            ]
        found.append(one)
    return found


def cases(pairs: Sequence[Any]) -> list[str]:
    """Words in the case of others."""
    return [in_case_of(like, word) for word, like in pairs]

"""`attack`: a recipe against anything that can be a victim, in one call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ranmask.attacks.loop import AttackLoop, Target
from ranmask.attacks.outcome import AttackOutcome
from ranmask.attacks.recipe import AttackRecipe, Budget
from ranmask.attacks.recipes import AttackResources, Preset, build_recipe
from ranmask.attacks.replacements import OpposingWords
from ranmask.attacks.searches import check_search, with_search
from ranmask.attacks.victims import (
    CascadeVictim,
    PartitionedVictim,
    PlainVictim,
    SmoothedVictim,
    Victim,
)
from ranmask.attacks.white_box import adds_up, surrogate_of
from ranmask.errors import OptionError
from ranmask.models.base import BaseClassifier
from ranmask.models.function import as_base
from ranmask.smoothing.cascade import Cascade
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.partitioned import PartitionedClassifier
from ranmask.smoothing.voting import VotingClassifier
from ranmask.words import Text, documents, listed

AnyVictim: TypeAlias = Victim | CertifiedClassifier | BaseClassifier | Callable[[list[Any]], Any]


def attack(
    victim: AnyVictim,
    texts: Sequence[Text],
    labels: Sequence[int],
    recipe: str | AttackRecipe,
    **settings: Any,
) -> list[AttackOutcome]:
    """Try to make a victim say another label than the true one, by changing words.

    The outcome of a text depends on the text, its place in ``texts``, the victim, the recipe and
    the seed, not on the other texts nor on ``together``; but a language model or sentence encoder
    of the attacker's in float16, the default on a GPU, may rank candidates that it finds nearly
    alike by what it read beside them.

    Args:
        victim: A classifier that certifies, however it is smoothed, a `BaseClassifier` or any
            function from a list of texts to a table of scores (both read the whole text), or a
            `Victim`.
        texts: Texts, or pairs of premise and hypothesis.
        labels: Their true classes, by number.  Texts that the victim gets wrong are skipped.
        recipe: One of `RECIPES`, such as ``textfooler`` or ``anywords``; or an `AttackRecipe`.
        settings: Those of `attack_loop`.

    >>> from ranmask.attacks.resources import Vocabulary
    >>> from ranmask.models.testing import keyword_classifier
    >>> words = AttackResources(vocabulary=Vocabulary("made up", ("awful", "film", "poor")))
    >>> [outcome] = attack(
    ...     keyword_classifier, ["a good plot"], [1], "anywords", resources=words, budget=2
    ... )
    >>> outcome.status, outcome.adversarial, outcome.words_changed
    ('succeeded', 'a awful plot', 1)
    """
    texts = listed(texts)
    read = documents(texts)
    if len(texts) != len(labels):
        raise OptionError(f"{len(texts)} texts, but {len(labels)} labels: give one for each")
    loop = attack_loop(victim, recipe, **settings)
    targets = []
    for number, (text, label) in enumerate(zip(texts, labels, strict=True), 1):
        try:
            targets.append(Target(number, text, operator.index(label), read=read[number - 1]))
        except TypeError:
            raise OptionError(f"labels are numbers of classes, not {label!r}") from None
    return list(loop.run(targets))


def attack_loop(
    victim: AnyVictim,
    recipe: str | AttackRecipe,
    *,
    resources: AttackResources | None = None,
    preset: Preset = "ranmask-2021",
    budget: Budget = None,
    most_queries: int | None = None,
    together: int = 128,
    seed: int = 0,
    search: str | None = None,
    surrogate: AnyVictim | None = None,
) -> AttackLoop:
    """What `attack` and `attack_file` run.

    Args:
        victim: As for `attack`.
        recipe: As for `attack`.
        resources: Resources that the recipe needs.
        preset: Settings of a recipe given by name: the paper's, or TextAttack's.
        budget: Most changes, in the recipe's unit: a number, ``radius`` (what the victim certifies
            for the text; no attack succeeds within it, unless that covers a table of synonyms
            only) or ``radius+1``.
        most_queries: Queries a text, after which its search ends.
        together: How many texts are attacked in lock-step.
        seed: Fixes every random choice.
        search: Another way to search among the recipe's candidates, within its constraints: one
            of `searches.SEARCHES`.
        surrogate: For ``transfer`` and ``strongest``: another classifier, which the attacker may
            ask for scores at will.  Default: the victim's own scores over fixed masks, where it
            shows votes only, or masks that are drawn afresh.
    """
    built = build_recipe(recipe, resources, preset) if isinstance(recipe, str) else recipe
    if not isinstance(built, AttackRecipe):
        raise OptionError(f"recipe must be the name of one, or an AttackRecipe, not {recipe!r}")
    check_search(search, surrogate=surrogate is not None)
    attacked = as_victim(victim)
    owned = None if surrogate is None else as_victim(surrogate)
    if owned is not None:
        owned = surrogate_of(owned) or owned
    if search is None and isinstance(built.candidates, OpposingWords) and adds_up(attacked):
        search = "exact"  # needs no query to find the best words
    if search is not None:
        owned = owned or surrogate_of(attacked)
        built = with_search(built, search, attacked, owned)
    return AttackLoop(attacked, built, budget, most_queries, together, seed, owned)


def as_victim(victim: AnyVictim) -> Victim:
    """A victim as it is; what is smoothed; a cascade; a base classifier or function, whole."""
    if isinstance(victim, Victim):
        return victim
    if isinstance(victim, Cascade):
        return CascadeVictim(victim, as_victim(victim.smoothed))
    if isinstance(victim, VotingClassifier):
        return SmoothedVictim(victim)
    if isinstance(victim, PartitionedClassifier):
        return PartitionedVictim(victim)
    return PlainVictim(as_base(victim))

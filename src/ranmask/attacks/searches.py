"""Searches by name, for any recipe: ``--search``.

`margin`     for each rival class, the candidates that bring it closest, by asking the victim
`transfer`   the same, measured on a model that the attacker owns, and tried on the victim
`exact`      the same without a query, where each word votes by itself: no search needs fewer words
`gradient`   the same, candidates chosen by the gradient of the smoothed score, masks known
`beam`, `genetic`, `pso`  the field's searches with many texts at a time, TextAttack's settings
`strongest`  the first four, as far as they go, and the recipe's own; keeps the fewest words
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ranmask.attacks.directed import Directed, Strongest
from ranmask.attacks.edits import AnyEdits
from ranmask.attacks.population import Genetic, Swarm
from ranmask.attacks.recipe import AttackRecipe, Search
from ranmask.attacks.replacements import OpposingWords
from ranmask.attacks.search import Beam, Together
from ranmask.attacks.victims import Victim
from ranmask.attacks.white_box import SLOPED, adds_up, has_slopes
from ranmask.errors import OptionError

_MANY_WORDS = 64  # for each rival: a gradient looks at many words at the cost of one

_SEARCHES: dict[str, tuple[Search, Callable[[Victim, Victim | None], bool], str]] = {
    "exact": (
        Directed("words"),
        lambda victim, surrogate: adds_up(victim),
        "a victim whose copies show one word each to a word table (keep=1, fixed masks)",
    ),
    "transfer": (
        Directed("surrogate"),
        lambda victim, surrogate: surrogate is not None,
        "a surrogate: another model, where the victim has no scores that it hides",
    ),
    "gradient": (
        Directed("gradient"),
        lambda victim, surrogate: has_slopes(victim),
        SLOPED,
    ),
    "margin": (Directed(), lambda victim, surrogate: True, ""),
}
_OF_THE_FIELD: dict[str, Search] = {"beam": Beam(8), "genetic": Genetic(), "pso": Swarm()}
SEARCHES = (*_SEARCHES, *_OF_THE_FIELD, "strongest")


def check_search(name: str | None, *, surrogate: bool) -> None:
    """Refuse a search that does not exist, and a surrogate for one that asks none."""
    if name is not None and name not in SEARCHES:
        raise OptionError(f"search must be one of {', '.join(SEARCHES)}; not {name!r}")
    if surrogate and name not in ("transfer", "strongest"):
        raise OptionError(f"a surrogate goes with search='transfer' or 'strongest', not {name!r}")


def with_search(
    recipe: AttackRecipe, name: str, victim: Victim, surrogate: Victim | None
) -> AttackRecipe:
    """A recipe with another search: the same candidates and constraints."""
    if isinstance(recipe.search, AnyEdits) and name != "strongest":
        raise OptionError(f"search={name!r} replaces words, which {recipe.name} is not about")
    luck = victim.again() is not None  # of the draw, which may flip a text that would stand again
    if name == "strongest":
        there = [search for search, fits, _ in _SEARCHES.values() if fits(victim, surrogate)]
        there = [_sure(search) for search in there] if luck else there
        own = [] if recipe.search in there else [recipe.search]
        search: Search = Strongest((*there, *own, Together()), fewest=not luck)
    elif name in _OF_THE_FIELD:
        search = _OF_THE_FIELD[name]
    else:
        search, fits, needed = _SEARCHES[name]
        if not fits(victim, surrogate):
            raise OptionError(f"search={name!r} needs {needed}")
        search = _sure(search) if luck else search
    candidates = recipe.candidates
    if name == "gradient" and isinstance(candidates, OpposingWords):
        candidates = replace(candidates, each=_MANY_WORDS)
    named = f"{recipe.name} by {name}"
    return replace(recipe, search=search, candidates=candidates, name=named)


def _sure(search: Search) -> Search:
    if isinstance(search, Directed) and search.measured == "surrogate":
        return replace(search, sure=True)
    return search

"""What an attacker may do to a text: the menu of threats, and what each costs.

Let copies show one word each, and let ``D`` be what a word says for the label minus for a rival,
between ``-bound`` and ``bound``.  **The label is proved at ``d`` while the cost of ``d`` is less
than the sum of all ``D``, against every rival**, where the cost of ``d`` is

==============  ====================================================================
substitutions   the ``d`` largest ``D + bound``
edits           the ``d`` largest ``max(D, 0) + bound``
insertions      ``d * bound``
deletions       the ``d`` largest ``max(D, 0)``
characters      the ``d`` largest ``max(D, 0) + 2 bound``
span            the largest sum of ``D + bound`` over ``d`` neighbours
synonyms        the ``d`` largest ``D - min D`` over the word and its synonyms
==============  ====================================================================

`step_costs` is that table, and the only place where it is written as code.  `threat_radii` finds
radii with it; proofs are in docs/certificates.md, "A menu of threats".  This module imports no
numpy, so that `ranmask.options` does not either.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

Threat: TypeAlias = Literal[
    "substitutions", "edits", "insertions", "deletions", "characters", "span", "synonyms"
]
THREATS: tuple[Threat, ...] = get_args(Threat)

MOVING: tuple[Threat, ...] = ("edits", "insertions", "deletions", "characters")
"""Threats that change the number of words, or their places: they need a base classifier that says
of a word the same wherever it stands."""

GROWING: tuple[Threat, ...] = ("edits", "insertions", "characters")
"""Threats that may make a text longer: by a word a step, at most."""

_NEW_WORDS: dict[str, int] = {"edits": 1, "insertions": 1, "deletions": 0, "characters": 2}

COVERS: dict[str, str] = {
    "substitutions": "words are replaced one for one; none is inserted, deleted, split or joined",
    "edits": "each edit replaces, inserts or deletes one word; reordering the words is free",
    "edit-distance": "each edit replaces, inserts or deletes one word; the others keep their order",
    "insertions": "words are inserted, anywhere; those of the text stay, in their order",
    "deletions": "words are deleted, never all of them; the others stay, in their order",
    "characters": "each edit inserts, deletes or replaces one character (a Unicode code point), "
    "blanks included; the text is split into words as it stands",
    "span": "one run of neighbouring words is replaced by as many words, and nothing else",
    "synonyms": "words are replaced only by words that the table {!r} lists for them, in the same "
    "case and with the same punctuation around them",
}
"""What each threat is, as a certificate's ``assumes`` says it; of synonyms, a table's name."""

STEPS: dict[str, str] = {
    "substitutions": "change that many words, any of them, to anything",
    "edits": "replace, insert or delete that many words, to anything and in any order",
    "edit-distance": "replace, insert or delete that many words, the others in their order",
    "insertions": "insert that many words, any and anywhere",
    "deletions": "delete that many words, any of them",
    "characters": "insert, delete or replace that many characters, blanks too",
    "span": "replace that many neighbouring words, by as many",
    "synonyms": "replace that many words by words that the table lists for them",
}
"""What may be done so many times as a radius says."""


def step_costs(threat: str, differences: Any, bound: float, lowest: Any = None) -> Any:
    """What a step costs at each word: the cost of ``d`` steps is the sum of the ``d`` largest.

    Of a ``span`` they are neighbours.  ``differences``: an array of ``D``, integers or floats;
    ``lowest``, for ``synonyms``: for each word the least ``D`` of itself and its synonyms.
    """
    if threat in ("substitutions", "span"):
        return differences + bound
    if threat == "synonyms":
        return differences - lowest
    gone = differences.clip(0) if threat != "insertions" else differences * 0
    return gone + _NEW_WORDS[threat] * bound


def new_words(threat: str) -> int:
    """How many new words a step puts in, at most; where words count once, removal is a knapsack."""
    return _NEW_WORDS.get(threat, 1)

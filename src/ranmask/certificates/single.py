"""Copies that show one word each: the exact certificate is a sort.

Guarantee.  Let ``g`` add up what a base classifier says of every single word of a text.
(`single_word_radius`) ``g`` gives the same label, as the only winner, to every text with the
same number of words that differs in at most ``radius`` of them.  (`edit_radius`) And, if what is
said of a word depends on that word alone, to every text that at most ``radius`` *edits* make of
it: a word replaced, inserted or deleted.  Reordering the words is free.

Assumptions.  Those of `exact`, with the family of all single words.  Edits also need that the
base classifier is blind to a word's position and to the number of words, reads all words, and
that the longer or shorter text is voted on by all of *its* single words.

Proof for substitutions.  With one word a copy, the sets that ``d`` positions meet are those
positions, so the largest cost is the sum of the ``d`` largest weights ``difference + bound``.

Proof for edits.  An edit takes at most one word out of the text and puts at most one in.  After
``d`` edits in any order, and any reordering, the words are those of the text without some
``A``, ``|A| <= d``, and with some ``B``, ``|B| <= d``.  Against each rival the margin is

    margin - sum of A + sum of B  >=  margin - (the d largest positive differences) - d * bound,

since no word's difference lies below ``-bound``.  So edits cost the ``d`` dearest of: replacing a
word for the label, ``bound + difference``; inserting one, ``bound``.

**And that is no more than substitutions cost.**  Say ``p`` words have a positive difference.
Replacing all ``p`` costs their sum plus ``p * bound``, and the margin is at most their sum.  So
the radius is below ``p``: there are always enough words for the label to replace, each of which
costs more than an insertion or a deletion.  Both radii are the same number, with the same worst
words, and are attained by a word whose difference is ``-bound``.

A text is never edited away within its radius: that is below ``p``, which is at most the number
of words.
"""

from __future__ import annotations

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.radius import Radius


def single_word_radius(differences: Ints, bound: int = 1) -> Radius:
    """The largest number of replaced words under which the label stays the only winner.

    The same answer as `exact_radius` over the family of all single words.

    Args:
        differences: Label minus rival for each word, shape (rivals, words), each value at least
            ``-bound``; already lowered by whatever an untouched copy may move.
        bound: The lowest difference is ``-bound``: 1 for votes.
    """
    if differences.size and int(differences.min()) < -bound:
        raise ValueError(f"a difference lies below -{bound}")
    rivals, words = differences.shape
    if not rivals:
        return Radius(words)  # nothing to lose against: a single class
    margins = differences.sum(axis=1)
    if int(margins.min()) <= 0:
        return Radius(None)
    costs = (np.sort(differences, axis=1)[:, ::-1] + bound).cumsum(axis=1)
    proved = (costs < margins[:, None]).sum(axis=1)
    radius = int(proved.min())
    # Of several rivals that allow no more words, the one with the smallest margin is shown.
    in_the_way = np.flatnonzero(proved == radius)
    rival = in_the_way[margins[in_the_way].argmin()]
    worst = np.argsort(-differences[rival], kind="stable")[: radius + 1]
    return Radius(radius, True, tuple(np.sort(worst).tolist()))


def edit_radius(differences: Ints, bound: int = 1) -> Radius:
    """The largest number of word edits under which the label stays the only winner.

    An edit replaces, inserts or deletes one word; reordering is free.  The answer is that of
    `single_word_radius`, whose arguments it takes: the proof above has the reason.
    """
    return single_word_radius(differences, bound)

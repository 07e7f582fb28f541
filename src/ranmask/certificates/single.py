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
import numpy.typing as npt

from ranmask.certificates.coverage import Ints
from ranmask.certificates.radius import Radius

_KEY_BITS = 63  # of a 64-bit integer that is not negative


def single_word_radius(differences: Ints, bound: int = 1) -> Radius:
    """The largest number of replaced words under which the label stays the only winner.

    The same answer as `exact_radius` over the family of all single words.

    Args:
        differences: Label minus rival for each word, shape (rivals, words), each value at least
            ``-bound``; already lowered by whatever an untouched copy may move.
        bound: The lowest difference is ``-bound``: 1 for votes.
    """
    [radius] = single_word_radii(differences, np.array([differences.shape[1]]), bound)
    return radius


def edit_radius(differences: Ints, bound: int = 1) -> Radius:
    """The largest number of word edits under which the label stays the only winner.

    An edit replaces, inserts or deletes one word; reordering is free.  The answer is that of
    `single_word_radius`, whose arguments it takes: the proof above has the reason.
    """
    return single_word_radius(differences, bound)


def single_word_radii(differences: Ints, words: Ints, bound: int = 1) -> list[Radius]:
    """The `single_word_radius` of each of several texts, from one sort.

    Args:
        differences: As for one text, the words of the texts one after another: shape
            (rivals, words of all texts).  Each text has its own label and rivals.
        words: How many words each text has, at least one.
        bound: As for one text.
    """
    if differences.size and int(differences.min()) < -bound:
        raise ValueError(f"a difference lies below -{bound}")
    if not len(differences):
        return [Radius(size) for size in words.tolist()]  # a single class: nothing to lose against
    starts = np.cumsum(words) - words
    margins = np.add.reduceat(differences, starts, axis=1)
    order = dearest_first(differences, words, starts)
    proved = words_below(differences, order, margins, starts, bound)
    radii = proved.min(axis=0)
    certified = margins.min(axis=0) > 0
    # Of several rivals that allow no more words, the one with the smallest margin is shown.
    in_the_way = np.where(proved == radii, margins, np.iinfo(np.int64).max).argmin(axis=0)
    sizes = np.where(certified, radii + 1, 0)
    worst = _first_of_each(order, in_the_way, starts, sizes)
    ends = np.cumsum(sizes).tolist()
    return [
        Radius(radius, True, tuple(worst[end - radius - 1 : end])) if proof else Radius(None)
        for radius, proof, end in zip(radii.tolist(), certified.tolist(), ends, strict=True)
    ]


def words_below(
    differences: Ints, order: Ints, margins: Ints, starts: Ints, bound: int
) -> npt.NDArray[np.int64]:
    """How many words of each text, the dearest first, cost less than its margin, for each rival.

    All words of a text must cost its margin or more.
    """
    weights = differences[np.arange(len(differences))[:, None], order] + bound
    costs = weights.cumsum(axis=1)
    before = costs[:, starts] - weights[:, starts]
    # Costs never fall from word to word, nor from text to text, and all words of a text cost its
    # margin or more: the first cost that reaches the margin lies within the text.
    pairs = zip(costs, before + margins, strict=True)
    return np.array([row.searchsorted(margin) for row, margin in pairs]) - starts


def dearest_first(differences: Ints, words: Ints, starts: Ints) -> Ints:
    """Against each rival, the words of every text by falling difference; equals in their order.

    Indices into ``differences``, in whose part for a text they stay.
    """
    places = np.arange(differences.shape[1])
    texts = np.repeat(np.arange(len(words)), words)
    below = differences.max() - differences
    place_bits = int(places[-1]).bit_length()
    below_bits = int(below.max()).bit_length()
    if place_bits + below_bits + len(words).bit_length() > _KEY_BITS:
        return np.stack([np.lexsort((row, texts)) for row in below])
    # Text, difference and place in one integer: sorting plain integers is many times faster.
    keys = (below << place_bits) + ((texts << (below_bits + place_bits)) + places)
    keys.sort(axis=1)
    order: Ints = keys & ((1 << place_bits) - 1)
    return order


def _first_of_each(
    order: Ints, rivals: npt.NDArray[np.intp], starts: Ints, sizes: Ints
) -> list[int]:
    """The first ``sizes`` words of each text in its rival's order, as rising positions in it."""
    texts = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(texts)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen = np.sort(order[rivals[texts], starts[texts] + rank])  # stays text by text
    positions: list[int] = (chosen - starts[texts]).tolist()
    return positions

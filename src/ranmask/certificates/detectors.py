"""Detectors: what is flagged stays flagged.  Integers in, radii out; docs/detectors.md has proofs.

**Any window** (`window_radii`).  A text is flagged where a window of neighbouring words is, by a
classifier that sees the window and nothing else; the sizes of windows are fixed.

Guarantee.  Words before the first word and after the last, however many, never unflag.  Nor do
``changed`` points, each of which is a word replaced, a word deleted, or a block of any length put
between two words; nor ``insertions`` such blocks alone; nor ``characters`` characters that are
inserted, deleted or replaced, blanks included.  Where more single words are flagged than
``changed``, text may at the same time be put in anywhere, for it takes none of these away.

Proof.  A window that no point meets stands in the new text as it is, and is flagged there.  A
changed word meets the windows over it, and a block those over the gap that it is put into: a point
is a place on a line and a window an interval.  The fewest points that meet all intervals are as
many as the most intervals of which no two share a place; taking always the next one to end finds
those.  With one point fewer, a flagged window is left.  A character changes one word, or, where it
is the blank between two words, joins these: intervals that have a word between them share no such
place.  Each bound is attained by a classifier that flags these windows and nothing else.

**Any segment** (`segment_radii`).  Every word has a value of either sign, at least ``-bound``,
which depends on that word alone, and a text is flagged where the values of neighbouring words, as
many as you like, add up to a threshold.

Guarantee.  Words before and after never unflag, however many.  Nor do, at the same time,
``changed`` words that are replaced, inserted or deleted, one each; nor ``insertions`` blocks of any
length alone; nor ``characters`` characters.

Proof.  Reading on, keep the largest sum of a segment that ends here, 0 for an empty one: the text
is flagged where that reaches the threshold.  Each word adds its value, a replaced one perhaps
``-bound``, and a smaller sum stays the smaller one.  So the least sum that so many replaced words
leave behind each word is found from the one before it, and the fewest with which it never reaches
the threshold are exact, up to `MOST_EDITS`.  To delete a word, which adds 0, does no more harm than
to replace it.  Nor does an inserted word: to replace the last word before it that is left and worth
more than 0 takes as much, and that word's value, from the sum; where there is none, the sum is 0.
A text that is put before begins with a sum of at least 0, and one behind takes nothing back.  A
block cuts all segments over its gap, as it cuts windows.  A character makes two words of one, or
one of two: two edits.

**Never less** (`word_radius`).  Every distinct word has a weight of at least 0, which depends on
that word alone, and a text is flagged where the weights of its distinct words, each counted once,
reach a threshold, which is the same for all texts.

Guarantee.  Words inserted anywhere, however many, never unflag; nor do, at the same time,
``changed`` words that are replaced or deleted, in any order of the words; nor ``characters``
characters.

Proof.  New words add at least 0.  ``d`` changed words take out at most ``d`` occurrences, which
cost at most ``K(d)``, a knapsack (`distinct.most_removed`); to delete them attains it.  A character
changes one word or joins two: ``d`` characters take out at most ``2 d`` occurrences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.certificates.distinct import most_removed
from ranmask.errors import check_cancelled

Window: TypeAlias = tuple[int, int]
"""Words of a text: the position of the first, and of the first behind them."""

Additions: TypeAlias = Literal["nowhere", "ends", "anywhere"]
"""Where text of any length may be added."""

_NEVER = 1 << 60  # no sum of values is so large
_VALUES_AT_ONCE = 1 << 20  # of texts that are read side by side, which bounds memory
MOST_EDITS = 1 << 9
"""Edits of a segment's words that are tried: time grows with them, and with the words."""


@dataclass(frozen=True)
class DetectorRadii:
    """What may be done to a flagged text without unflagging it.

    ``changed``, ``insertions`` and ``characters`` are the most of each; None: nothing is proved,
    not even of the unchanged text.  ``insertions`` is None, too, where there is no limit.
    ``additions`` are harmless at the same time as ``changed`` words, and as ``insertions``.
    """

    changed: int | None = None
    insertions: int | None = None
    characters: int | None = None
    additions: Additions = "nowhere"


def disjoint_windows(windows: Iterable[Window], apart: int = 0) -> list[Window]:
    """As many windows as there can be with at least ``apart`` words between any two.

    ``apart`` -1: neighbours may share a word, so that no two share a gap between words.
    """
    starts: dict[int, int] = {}  # of the shortest window that ends at each place
    for start, stop in windows:
        if stop <= start:
            raise ValueError(f"a window must have at least one word, not {stop - start}")
        starts[stop] = max(start, starts.get(stop, start))
    chosen: list[Window] = []
    free = 0
    for stop in sorted(starts):
        if starts[stop] >= free:
            chosen.append((starts[stop], stop))
            free = stop + apart
    return chosen


def window_radii(windows: Iterable[Window]) -> DetectorRadii:
    """What flagged windows of a text prove."""
    flagged = set(windows)
    if not flagged:
        return DetectorRadii()
    changed, characters = (len(disjoint_windows(flagged, apart)) - 1 for apart in (0, 1))
    if alone := sum(stop - start == 1 for start, stop in flagged):
        return DetectorRadii(changed, None, characters, _where(alone, changed))
    insertions = len(disjoint_windows(flagged, -1)) - 1
    return DetectorRadii(changed, insertions, characters, "ends")


def _where(alone: int, changed: int) -> Additions:
    """Where text may be added while words are changed; ``alone``: words that are flagged alone.

    No block can be put into these.  Where text is added anywhere, only they are left to flag.
    """
    return "anywhere" if alone > changed else "ends"


def disjoint_segments(values: Sequence[int], threshold: int, shared: int = 0) -> list[Window]:
    """As many segments that reach the threshold as there can be, of which no two overlap.

    ``shared`` 1: neighbours may share a word, so that no two share a gap between words.
    """
    chosen: list[Window] = []
    total = start = place = 0
    while place < len(values):
        if total <= 0:
            total, start = 0, place
        total += values[place]
        if total >= threshold:
            chosen.append((start, place + 1))
            # A word that reaches the threshold alone shares no gap with anything.
            place -= shared if start < place else 0
            total = 0
        place += 1
    return chosen


def segment_radii(
    texts: Sequence[Sequence[int]], threshold: int, bound: int
) -> list[DetectorRadii]:
    """What the values of each text's words prove, in their order."""
    _check_threshold(threshold)
    if any(min(values, default=0) < -bound for values in texts):
        raise ValueError(f"a value lies below -{bound}")
    apart = [len(disjoint_segments(values, threshold)) for values in texts]
    # Each segment takes an edit of its own.
    few = [place for place, segments in enumerate(apart) if 0 < segments <= MOST_EDITS]
    fewest = dict(
        zip(few, fewest_edits([texts[place] for place in few], threshold, bound), strict=True)
    )
    radii = [DetectorRadii()] * len(texts)
    for place, values in enumerate(texts):
        if not apart[place]:
            continue
        changed = fewest.get(place, MOST_EDITS + 1) - 1
        if alone := sum(value >= threshold for value in values):
            radii[place] = DetectorRadii(changed, None, changed // 2, _where(alone, changed))
        else:
            insertions = len(disjoint_segments(values, threshold, shared=1)) - 1
            radii[place] = DetectorRadii(changed, insertions, changed // 2, "ends")
    return radii


def fewest_edits(texts: Sequence[Sequence[int]], threshold: int, bound: int) -> list[int]:
    """The fewest words to replace, insert or delete, so that no segment reaches the threshold.

    All words replaced are enough: new ones may be worth ``-bound``.  Texts are read side by side, a
    word of each at a time; those of which more edits are needed than were tried, again with four
    times as many.  Where more than `MOST_EDITS` are needed, one more than that is all that is said.
    """
    found = [0] * len(texts)
    left = list(range(len(texts)))
    most = 8
    while left:
        # The longest first, so that those that go on are the first ones.
        left.sort(key=lambda place: -len(texts[place]))
        start = 0
        while start < len(left):
            longest = len(texts[left[start]])
            some = left[start : start + max(1, _VALUES_AT_ONCE // (longest + most))]
            values = np.zeros((len(some), longest), dtype=np.int64)
            for row, place in enumerate(some):
                values[row, : len(texts[place])] = texts[place]
            lengths = np.array([len(texts[place]) for place in some])
            least = _least_sums(values, lengths, most, threshold, bound)
            for place, sums in zip(some, least, strict=True):
                found[place] = int(np.argmax(sums < threshold)) if sums.min() < threshold else -1
            start += len(some)
        left = [place for place in left if found[place] < 0]
        most *= 4
        if most > MOST_EDITS:
            break
    return [MOST_EDITS + 1 if edits < 0 else edits for edits in found]


def _least_sums(values: Ints, lengths: Ints, most: int, threshold: int, bound: int) -> Ints:
    """The least sum behind the last word that 0 to ``most`` edits leave; `_NEVER` if flagged."""
    least = np.zeros((len(values), most + 1), dtype=np.int64)
    for place in range(values.shape[1]):
        check_cancelled()
        going_on = int((lengths > place).sum())
        sums = least[:going_on]
        kept = sums + values[:going_on, place, None]
        kept[kept >= threshold] = _NEVER
        kept[:, 1:] = np.minimum(kept[:, 1:], sums[:, :-1] - bound)
        least[:going_on] = np.clip(kept, 0, _NEVER)
    return least


def word_radius(weights: Ints, occurrences: Ints, threshold: int) -> DetectorRadii:
    """What the weights of a text's distinct words prove, each with its number of occurrences."""
    _check_threshold(threshold)
    if weights.size and int(weights.min()) < 0:
        raise ValueError("a weight lies below 0")
    spare = int(weights.sum()) - threshold
    if spare < 0:
        return DetectorRadii()
    removed, _ = most_removed(weights, occurrences, _enough(weights, occurrences, spare))
    # Every one of K(0), K(1), ... is at least the one before.
    harmless = int(np.searchsorted(removed, spare, side="right")) - 1
    return DetectorRadii(harmless, None, harmless // 2, "anywhere")


def _enough(weights: Ints, occurrences: Ints, spare: int) -> int:
    """A number of occurrences whose removal costs more than ``spare``: dear and rare words first.

    The threshold is at least 1, so that all words together cost more.
    """
    some = np.flatnonzero(weights)
    order = some[np.argsort(-weights[some] / occurrences[some], kind="stable")]
    costs = np.cumsum(weights[order])
    needed = int(np.searchsorted(costs, spare, side="right")) + 1
    return int(occurrences[order[:needed]].sum())


def _check_threshold(threshold: int) -> None:
    if threshold < 1:
        raise ValueError(f"a threshold must be at least 1, not {threshold}: it would flag no words")

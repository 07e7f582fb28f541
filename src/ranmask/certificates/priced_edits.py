"""Changed characters of a long text: the radius of `characters`, in time in step with the length.

There, a text takes a step for each of its words and each edit that is proved.  Here an edit has a
price.  Let ``w`` be what a choice of ``e`` edits costs above ``e b``, and ``v`` the most that
choices with no word twice bring above their price, the sum of ``w - price e``.  Then

    cost(d) = b d + the largest sum of w for at most d edits  <=  v + (b + price) d

for every price of at least 0 (weak duality), which proves a radius without a look at any ``d``.
The best price is where the choices that it buys cost just the margin.

Whether one edit more is proved is then searched for.  Most often choices that cost the margin are
at hand: before some place those that this price buys, there any, and behind it those of the next
price.  If not, all are tried, word by word, but for those that leave less than the margin whatever
follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, repeat
from math import isqrt
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from ranmask.certificates.coverage import Ints
from ranmask.errors import check_cancelled

Choice: TypeAlias = tuple[int, int, Ints]
"""Old words, edits, and what it costs to begin so at each word: (rivals, words)."""

_NONE = -(2**61)  # no choice brings this
_MOST = 2**60  # what sums stay below


def priced_radii(choices: Sequence[Choice], margins: Ints, bound: int) -> Ints | None:
    """How many changed characters of one text are proved against each rival.

    The fewest are exact; against other rivals more may be proved.  ``margins``, of each rival, are
    what must not be reached.  None: the text is too long for sums in 64 bits.
    """
    words = choices[0][2].shape[1]
    if (2 * bound * words) << (2 * words).bit_length() >= _MOST:
        return None
    market = _Market(choices, bound)
    proved: Ints = np.zeros(len(margins), dtype=np.int64)
    price = low = proved
    high = np.full_like(margins, 2 * bound)  # no choice brings more for an edit
    while True:
        check_cancelled()
        value, edits = (found[:, -1] for found in market.bought(price))
        proved = np.maximum(proved, (margins - value - 1) // (bound + price))
        reached = value + (bound + price) * edits >= margins
        low, high = np.where(reached, price, low), np.where(reached, high, price)
        if (high - low <= 1).all():
            break
        price = (low + high) // 2
    while True:
        rival = int(proved.argmin())
        own = [(size, edits, cost[rival : rival + 1]) for size, edits, cost in choices]
        alone = _Market(own, bound)
        margin, most = int(margins[rival]), int(proved[rival]) + 1
        if alone.reaches(margin, most, int(low[rival]), int(high[rival])):
            return proved
        proved[rival] += 1


class _Market:
    """What a price buys in one text."""

    def __init__(self, choices: Sequence[Choice], bound: int) -> None:
        self._rivals, self._words = choices[0][2].shape
        self._bound = bound
        self._gains = [
            (size, edits, cost[:, : self._words - size + 1] - edits * bound)
            for size, edits, cost in choices
            if size <= self._words
        ]

    def bought(self, prices: Ints, *, backwards: bool = False) -> tuple[Ints, Ints]:
        """The most above a price that the words before each place bring, and for how many edits.

        Of as much, that for most edits.  ``prices`` of each rival; shapes (rivals, words + 1).
        ``backwards``: the words from each place on.
        """
        bits = (2 * self._words).bit_length()  # the lowest count edits: two a word at most
        ending = np.full((3, self._rivals, self._words), _NONE)
        ending[0] = 0
        for size, edits, gain in self._gains:
            net = ((gain - prices[:, None] * edits) << bits) + edits
            own = ending[size - 1, :, size - 1 :]
            np.maximum(own, net[:, ::-1] if backwards else net, out=own)
        sums = _best_sums(ending)
        sums = sums[:, ::-1] if backwards else sums
        return sums >> bits, sums & ((1 << bits) - 1)

    def reaches(self, margin: int, most: int, low: int, high: int) -> bool:
        """Whether choices of at most so many edits cost the margin; of one rival, by two prices."""
        before, spent = (found[0] for found in self.bought(np.array([low])))
        after, more = (found[0] for found in self.bought(np.array([high]), backwards=True))
        for size, edits, gain in ((0, 0, np.zeros((1, self._words + 1), np.int64)), *self._gains):
            end = len(gain[0])
            all_spent = spent[:end] + edits + more[size:]
            cost = before[:end] + low * spent[:end] + gain[0] + after[size:] + high * more[size:]
            if bool((cost[all_spent <= most] + self._bound * most >= margin).any()):
                return True
        after = self.bought(np.array([low]), backwards=True)[0][0]
        return self._searched(margin, most, low, before, after)

    def _searched(self, margin: int, most: int, price: int, before: Ints, after: Ints) -> bool:
        """The same, by trying all choices but those that cannot be among them.

        ``before`` and ``after``: what `bought` says of the price.
        """
        least = margin - (self._bound + price) * most  # above the price
        skip = (1, 0, np.zeros((1, self._words), dtype=np.int64))
        steps: list[tuple[int, int, int, int]] = []  # places, edits, and what they bring
        for size, edits, gain in (skip, *self._gains):
            net = gain[0] - price * edits
            at = np.flatnonzero(before[: len(net)] + net + after[size:] >= least)
            steps += zip(at.tolist(), (at + size).tolist(), repeat(edits), net[at].tolist())
        needed = (least - after).tolist()
        states = {0: _State(0, 0, np.zeros(1, dtype=np.int64))}
        for place, own in groupby(sorted(steps), itemgetter(0)):
            check_cancelled()
            if (state := states.pop(place, None)) is not None:
                for _, to, edits, net in own:
                    reached = state._replace(edits=state.edits + edits, base=state.base + net)
                    if to in states:
                        reached = states[to].or_else(reached).at_least(needed[to])
                    states[to] = reached
        end = states.get(self._words)
        if end is None:
            return False
        spent = end.edits + np.arange(len(end.values))
        cost = end.base + end.values + price * spent + self._bound * most
        return bool((cost[spent <= most] >= margin).any())


class _State(NamedTuple):
    """What choices of at least ``edits``, one more, two more, ... bring: ``base`` and a value."""

    edits: int
    base: int
    values: Ints

    def or_else(self, other: _State) -> _State:
        """The larger of what these and the others bring."""
        first = min(self.edits, other.edits)
        last = max(one.edits + len(one.values) for one in (self, other))
        values = np.full(last - first, _NONE)
        for one in (self, other):
            start = one.edits - first
            own = values[start : start + len(one.values)]
            np.maximum(own, one.values + one.base, out=own)
        return _State(first, 0, values)

    def at_least(self, least: int) -> _State:
        """Without those at either end that bring less."""
        kept = np.flatnonzero(self.base + self.values >= least)
        first, last = (int(kept[0]), int(kept[-1])) if len(kept) else (0, 0)
        return _State(self.edits + first, self.base, self.values[first : last + 1])


def _best_sums(ending: Ints) -> Ints:
    """The most that choices of the first words bring, no word twice: (rivals, words + 1).

    ``ending``: what a choice of one, two or three words brings which ends at each word, (3, rivals,
    words); of one word at least 0.  Blocks of words are gone through side by side, each from three
    beginnings: all words before it are over, or all but the last, or all but the last two.
    """
    _, rivals, words = ending.shape
    length = max(3, isqrt(words))
    blocks = -(-words // length)
    padded = np.full((3, rivals, blocks * length), _NONE)
    padded[0] = 0
    padded[..., :words] = ending
    steps = np.ascontiguousarray(padded.reshape(3, rivals, blocks, length).transpose(3, 0, 1, 2))
    found = np.full((length + 3, 3, rivals, blocks), _NONE)  # behind each word, by the beginning
    for begin in range(3):
        found[2 - begin, begin] = 0
    for place, (one, two, three) in enumerate(steps, 3):
        best = np.maximum(found[place - 1] + one, found[place - 2] + two, out=found[place])
        np.maximum(best, found[place - 3] + three, out=best)
    begun = np.full((blocks, 3, rivals), _NONE)
    begun[0, 0] = 0
    for block in range(1, blocks):
        begun[block] = (found[:-4:-1, :, :, block - 1] + begun[block - 1]).max(axis=1)
    sums = (found[3:] + begun.transpose(1, 2, 0)).max(axis=1)  # (length, rivals, blocks)
    flat = sums.transpose(1, 2, 0).reshape(rivals, -1)[:, :words]
    return np.concatenate([np.zeros((rivals, 1), dtype=np.int64), flat], axis=1)

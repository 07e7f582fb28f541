"""Which words stay visible: the families of kept sets that a smoothed classifier votes over.

A *kept set* is the set of word positions left visible; a *family* is a list of kept sets.  Every
certificate rests on one property: **a family depends on the number of words only**, so that an
attacker who changes words cannot change which copies are voted on.  ``distinct``, which shows each
distinct word once, has a proof of its own; ``fresh`` and ``lm`` are drawn for every text, to
measure what an attack does, and `kept.check_fixed` refuses to certify over them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.kept import FAMILY_CHOICES, FamilyChoice
from ranmask.errors import OptionError, check_cancelled

KeptSets: TypeAlias = npt.NDArray[np.int32]
"""A family as an array of shape (sets, k): each row the kept positions in rising order."""

BLANK = -1
"""In the place of a position: a copy that shows no word."""

FRESH_DRAWS = "splitmix64"
"""How `fresh_sets` are drawn: a run that drew them otherwise is another one."""

FamilyKind: TypeAlias = Literal["all", "sampled", "windows", "distinct", "fresh", "lm"]
Stream: TypeAlias = Literal["family", "selection", "lm"]
_STREAMS: dict[Stream, int] = {"family": 0, "selection": 1, "lm": 3}  # 2 was that of "fresh"

_CHUNK = 1 << 20  # numbers drawn at a time, which fit into a cache
_MANY_DRAWN = 128  # positions of a set, from which on a table says which are taken
_STEP = 0x9E3779B97F4A7C15  # of splitmix64, from each of its numbers to the next
_BEYOND = 64.0  # two logarithms of exponential keys differ by less than 41


@dataclass(frozen=True, eq=False)
class Family:
    """A list of kept sets for texts of ``words`` words.

    If ``kind`` is ``distinct``, ``fresh`` or ``lm`` it belongs to one text.  ``places``, of a
    ``distinct`` one, says which of the sets shows the word at each position; a set in no place is
    `BLANK`, and shows nothing.
    """

    kind: FamilyKind
    words: int
    sets: KeptSets
    places: npt.NDArray[np.int32] | None = None

    @cached_property
    def kept(self) -> int:
        """How many words each copy shows."""
        return int(self.sets.shape[1])

    @cached_property
    def single(self) -> bool:
        """Whether it shows every word, each by itself."""
        return self.kept == 1 and self.kind == "all"

    def __len__(self) -> int:
        return int(self.sets.shape[0])

    def shown(self, copies: int) -> list[list[int]]:
        """The positions of the words that the first ``copies`` copies show."""
        return [[place for place in kept if place != BLANK] for kept in self.sets[:copies].tolist()]


def family(
    words: int,
    kept: int,
    *,
    choice: FamilyChoice = "auto",
    masks: int = 1000,
    seed: int = 0,
) -> Family:
    """The family that is voted over for texts of ``words`` words: at most ``masks`` sets.

    ``all``      every set of ``kept`` positions; refused where there are more than ``masks``.
    ``sampled``  ``masks`` sets drawn once, from ``seed``; the same list for every text of that
                 length, so nothing is left to chance when a text is certified.
    ``windows``  the cyclic runs of ``kept`` neighbouring words: one for each start, or
                 ``masks`` evenly spaced starts where the text has more words than that.
    ``auto``     ``all`` where it fits, else ``sampled``.

    (``distinct`` does not follow from numbers: see `distinct_family`.)
    """
    _check_sizes(words, kept, masks)
    if choice not in FAMILY_CHOICES or choice == "distinct":
        known = [name for name in FAMILY_CHOICES if name != "distinct"]
        raise OptionError(f"family must be one of {', '.join(known)}; not {choice!r}")
    # One set keeps everything where nothing is hidden, so every kind is the same there.
    if choice == "windows" and kept < words:
        return Family("windows", words, windows(words, kept, masks))
    total = math.comb(words, kept)
    if choice == "all" and total > masks:
        raise OptionError(
            f"family='all' needs {total} kept sets ({kept} of {words} words), more than "
            f"masks={masks}: raise masks, or use family='auto' or 'sampled'"
        )
    if choice == "sampled" or total > masks:
        return Family("sampled", words, sampled_sets(words, kept, masks, seed))
    return Family("all", words, all_sets(words, kept))


def family_size(words: int, kept: int, *, choice: FamilyChoice, masks: int) -> int:
    """How many sets `family` has, without making them."""
    if choice == "windows" and kept < words:
        return min(words, masks)
    return masks if choice == "sampled" else min(masks, math.comb(words, kept))


def distinct_family(words: Sequence[Hashable], masks: int, *, blank: bool = False) -> Family:
    """Every distinct word once, where it first stands; at most ``masks`` words are read.

    ``blank`` adds a copy that shows nothing, as the last one.
    """
    check_room(len(words), masks)
    numbers = dict(zip(dict.fromkeys(words), itertools.count()))
    if len(numbers) == len(words):
        return _all_different(len(words), blank)
    count = len(words)
    first = dict(zip(reversed(words), range(count - 1, -1, -1), strict=True))  # the last one stays
    sets = np.fromiter(map(first.__getitem__, numbers), np.int32, len(numbers))
    places = np.fromiter(map(numbers.__getitem__, words), np.int32, count)
    return _distinct(sets, places, blank)


def check_room(words: int, masks: int) -> None:
    """Refuse a text of more words than ``family="distinct"`` may read."""
    if words > masks:
        raise OptionError(
            f"family='distinct' reads all words, and {words} are more than masks={masks}: raise "
            "masks"
        )


@lru_cache(maxsize=1024)
def _all_different(words: int, blank: bool) -> Family:
    places = np.arange(words, dtype=np.int32)
    return _distinct(places, places, blank)


def _distinct(first: npt.NDArray[np.int32], places: npt.NDArray[np.int32], blank: bool) -> Family:
    sets = np.full((len(first) + blank, 1), BLANK, dtype=np.int32)
    sets[: len(first), 0] = first
    return Family("distinct", len(places), _frozen(sets), _frozen(places))


def all_sets(words: int, kept: int) -> KeptSets:
    """Every set of ``kept`` out of ``words`` positions, in lexicographic order."""
    if kept == 1:  # the family of every word table: no need to go through them one by one
        return _frozen(np.arange(words, dtype=np.int32)[:, None])
    flat = np.fromiter(
        itertools.chain.from_iterable(itertools.combinations(range(words), kept)),
        dtype=np.int32,
        count=math.comb(words, kept) * kept,
    )
    return _frozen(flat.reshape(-1, kept))


def windows(words: int, kept: int, masks: int) -> KeptSets:
    """Cyclic runs of ``kept`` neighbours: ``min(words, masks)`` evenly spaced starts."""
    count = min(words, masks)
    starts = np.arange(count, dtype=np.int64) * words // count
    runs = (starts[:, None] + np.arange(kept)) % words
    return _frozen(np.sort(runs, axis=1).astype(np.int32))


def sampled_sets(
    words: int, kept: int, masks: int, seed: int, stream: Stream = "family"
) -> KeptSets:
    """``masks`` independent uniform draws of ``kept`` out of ``words`` positions.

    A pure function of its arguments, pinned by a test: it uses only numpy's raw bit stream, whose
    values numpy promises to keep.  The first sets of a longer sample are those of a shorter one.
    """
    return _smallest_keys(words, kept, masks, seed, stream, lambda keys: keys)


def fresh_sets(words: int, kept: int, masks: int, seeds: Sequence[int]) -> KeptSets:
    """``masks`` uniform draws for each of the ``seeds``, below 2**256; (seeds, masks, kept).

    They prove nothing (`check_fixed`), and are drawn for many texts at once.  The sets of a seed
    follow from it, ``words`` and ``kept`` alone; the first of more ``masks`` are those of fewer.
    """
    _check_sizes(words, kept, masks)
    drawn = min(kept, words - kept)  # what is kept or what is hidden, whichever is less
    keys = _fresh_keys(words, kept, seeds)
    sets = np.empty((len(seeds) * masks, kept), dtype=np.int32)
    step = max(1, _CHUNK // words)
    for start in range(0, len(sets), step):
        check_cancelled()
        text, number = np.divmod(np.arange(start, min(start + step, len(sets))), masks)
        states = keys[text] + number.astype(np.uint64) * np.uint64(drawn * _STEP % 2**64)
        own, chosen = sets[start : start + len(states)], _floyd(words, drawn, states)
        if drawn == kept:
            own[:] = chosen.T
            own.sort(axis=1)
        else:
            shown = np.ones((len(states), words), dtype=bool)
            shown[np.arange(len(states)), chosen] = False
            own[:] = np.nonzero(shown)[1].reshape(-1, kept)
    return _frozen(sets.reshape(len(seeds), masks, kept))


def _fresh_keys(words: int, kept: int, seeds: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Where the numbers of each seed begin among those of splitmix64."""
    spelt = b"".join(seed.to_bytes(32, "little") for seed in seeds)
    keys = np.full(len(seeds), words << 32 | kept, dtype=np.uint64)
    for part in np.frombuffer(spelt, dtype="<u8").astype(np.uint64).reshape(-1, 4).T:
        keys = _splitmix(keys) ^ part
    return _splitmix(keys)


def _floyd(words: int, drawn: int, states: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    """A column of ``drawn`` different positions for each state, by Floyd's method.

    No number's chance is off by more than 2**-44 of itself where a text has less than 1024 words,
    nor by more than 2**-30 where it has less than 100,000; a set's by ``drawn`` times as much.
    """
    bits = np.uint64(words.bit_length())
    turns = np.arange(drawn, dtype=np.uint64)[:, None]
    below = turns + np.uint64(words - drawn + 1)
    numbers = _splitmix(states + turns * np.uint64(_STEP)) >> bits
    chosen = (numbers * below >> (np.uint64(64) - bits)).astype(np.int32)  # of those below
    # To look through all that was chosen takes the square of its number.
    taken = np.zeros((words, len(states)), dtype=bool) if drawn > _MANY_DRAWN else None
    everyone = np.arange(len(states))
    for turn, last in enumerate(range(words - drawn, words)):
        if taken is None:
            chosen[turn, (chosen[:turn] == chosen[turn]).any(axis=0)] = last
        else:
            chosen[turn, taken[chosen[turn], everyone]] = last
            taken[chosen[turn], everyone] = True
    return chosen


def _splitmix(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The number of splitmix64 after each state: integers, the same on every machine."""
    mixed = states + np.uint64(_STEP)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def weighted_sets(weights: npt.ArrayLike, kept: int, masks: int, seed: int) -> KeptSets:
    """``masks`` independent draws that hide words by weight; they prove nothing (`check_fixed`).

    As numpy's ``choice(words, words - kept, replace=False, p=weights / sum)`` draws the hidden
    words.  A word of weight 0 is hidden only when no other word is left to hide, and among such
    words all are alike.  A pure function of its arguments, as `sampled_sets` is (but for the last
    bit of a logarithm).
    """
    given = np.asarray(weights, dtype=np.float64)
    if given.ndim != 1 or not (np.isfinite(given) & (given >= 0)).all():
        raise OptionError(
            f"weights must be a list of finite numbers of at least 0, not {weights!r}"
        )
    words = len(given)
    # In logarithms, for the largest weight may be 1e300 times the smallest.
    logs = np.zeros(words)
    positive = given > 0
    if positive.any():
        logs[positive] = np.log(given[positive])
        logs[~positive] = logs[positive].min() - _BEYOND

    def keys(raw: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
        # An exponential variable over its weight: the smallest is word i with chance w_i / sum,
        # and the others, having no memory, then race on as if for the first time.  The last stay.
        uniform = ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return logs - np.log(-np.log(uniform))

    return _smallest_keys(words, kept, masks, seed, "lm", keys)


def _smallest_keys(
    words: int,
    kept: int,
    masks: int,
    seed: int,
    stream: Stream,
    keys: Callable[[npt.NDArray[np.uint64]], npt.NDArray[Any]],
) -> KeptSets:
    """The positions of the smallest keys, made of independent 64-bit numbers: uniform as they are.

    A row of ``words`` numbers for each set, some rows at a time.
    """
    _check_sizes(words, kept, masks)
    if not (_is_integer(seed) and seed >= 0):
        raise OptionError(f"seed must be a whole number of at least 0, not {seed!r}")
    # As SeedSequence([seed, ...]) reads numbers, but in half the time.
    spelt = int(seed).to_bytes(4 * max(1, -(-int(seed).bit_length() // 32)), "little")
    rest = np.array([_STREAMS[stream], words, kept], dtype="<u4").tobytes()
    entropy = np.frombuffer(spelt + rest, dtype="<u4").astype(np.uint32)
    bits = np.random.PCG64(np.random.SeedSequence(entropy))
    sets = np.empty((masks, kept), dtype=np.int32)
    step = max(1, _CHUNK // words)
    for start in range(0, masks, step):
        check_cancelled()
        rows = min(step, masks - start)
        raw = bits.random_raw(rows * words).reshape(rows, words)
        sets[start : start + rows] = keys(raw).argpartition(kept - 1, axis=1)[:, :kept]
    sets.sort(axis=1)
    return _frozen(sets)


def _check_sizes(words: int, kept: int, masks: int) -> None:
    if not 1 <= kept <= words:
        raise OptionError(f"cannot keep {kept} of {words} words")
    if not (_is_integer(masks) and masks >= 1):
        raise OptionError(f"masks must be a whole number of at least 1, not {masks!r}")


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _frozen(sets: KeptSets) -> KeptSets:
    sets.setflags(write=False)
    return sets

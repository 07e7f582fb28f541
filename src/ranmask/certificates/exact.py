"""The exact certificate: a proof, without probability, from the votes over a fixed family.

Guarantee.  Let ``g`` vote over a fixed family ``F`` of kept sets, and let ``radius`` be what
`exact_radii` finds for a text.  Then ``g`` gives the same label, as the only winner, to every
text with the same number of words that differs from it in at most ``radius`` words.

Assumptions.  (1) ``F`` depends on the number of words only.  (2) What the base classifier says
of a copy is a function of the kept words and their positions: a hidden word leaves no trace.
(3) A copy whose kept words did not change moves by no more than `votes` allows for: uncertain
votes, lowered scores.

Proof (docs/certificates.md, section 3).  Only sets that meet a changed position can change what
they say, and each of those can move, at worst, to the lowest possible difference ``-bound``
between label and rival.  So against each rival the margin falls by at most the weight
``difference + bound`` of the sets that the changed positions meet, and the label stays while that
is less than the margin.  The largest such weight over all choices of ``d`` positions is a maximum
coverage problem (`coverage`).

**Copies that show one word each** (`single_word_radii`).  The sets that ``d`` positions meet are
those positions, so the largest cost is the sum of the ``d`` largest weights: a sort.  If what is
said of a word depends on that word alone, the same radius covers *edits*: words replaced, inserted
or deleted, in any order.

This module knows nothing of texts, models or probabilities; integers decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import DEFAULT_WORK, Coverage, Ints, OutOfWorkError
from ranmask.certificates.families import Family, KeptSets
from ranmask.certificates.kept import check_fixed
from ranmask.certificates.votes import Votes

_KEY_BITS = 63  # of a 64-bit integer that is not negative


@dataclass(frozen=True)
class Radius:
    """``words``: the largest number of changed words that is certified.

    ``None``: not even the unchanged text is certified, for a tie, or a confidence bound that
    fails.  ``tight``: some classifier that says the same of this text's copies loses its only
    winner at ``words + 1``, so that no more can be proved.  ``worst`` are ``words + 1`` positions
    of the greatest known cost: *these are the words that the label hangs on*.
    """

    words: int | None
    tight: bool = True
    worst: tuple[int, ...] = ()


def exact_radii(
    votes: Votes, families: Sequence[Family], threat: str = "substitutions"
) -> list[Radius]:
    """The radius of each text's winner, each over its own fixed family.

    ``threat="edits"`` needs the family of all single words.
    """
    if all(family.single for family in set(families)):
        radii = [
            radius
            for part in votes.parts()
            for radius in single_word_radii(part.differences(part.winners), part.copies, part.bound)
        ]
    else:
        for family in set(families):
            check_fixed(family.kind)
        if threat == "edits":
            raise ValueError("edits are certified over the family of all single words only")
        if any(family.places is not None for family in families):
            raise ValueError("words that count once have a proof of their own: ThreatProofs")
        radii = []
        for place, family in enumerate(families):
            part = votes.part(place, place + 1)
            differences, bound = part.differences(part.winners), part.bound
            if family.single:
                radii += single_word_radii(differences, part.copies, bound)
            else:
                sets, words, complete = family.sets, family.words, family.kind == "all"
                radii.append(exact_radius(sets, differences, words, bound=bound, complete=complete))
    for place in np.flatnonzero(votes.blurred).tolist():
        part, radius = votes.part(place, place + 1), radii[place]
        if radius.tight and not _breaks(part, families[place], radius.worst):
            radii[place] = replace(radius, tight=False)
    return radii


def _breaks(votes: Votes, family: Family, positions: Sequence[int]) -> bool:
    """Whether the winner is no longer ahead of each rival after the worst at these positions.

    Untouched copies say what they were seen to say, and touched ones what a copy can say.
    """
    differences = votes.as_seen.differences(votes.winners)
    if not len(differences):
        return True  # a single class: there is no more to prove
    met = np.isin(family.sets, positions).any(axis=1)
    left = differences[:, ~met].sum(axis=1) - votes.attained * int(met.sum())
    return bool(left.min() <= 0)


def exact_radius(
    sets: KeptSets,
    differences: Ints,
    words: int,
    *,
    bound: int = 1,
    complete: bool = False,
    reserve: int = 0,
    work: int = DEFAULT_WORK,
) -> Radius:
    """The largest number of changed words under which the label stays the only winner.

    ``differences`` are label minus rival for each copy, shape (rivals, sets), each at least
    ``-bound`` (1 for votes), and already lowered by whatever an untouched copy may move.
    ``complete``: the family holds every set of that size exactly once.  ``reserve``: what every
    lead must exceed.  Where the ``work`` of the search is spent, a smaller radius that is still
    proved is returned, with ``tight=False``.
    """
    if differences.size and int(differences.min()) < -bound:
        raise ValueError(f"a difference lies below -{bound}")
    margins = differences.sum(axis=1) - reserve
    if len(margins) and int(margins.min()) <= 0:
        return Radius(None)
    answer = Radius(words)  # nothing to lose against: a single class
    for rival in np.argsort(margins, kind="stable"):
        margin = int(margins[rival])
        # Against no rival can more words be certified than against an earlier one.
        ceiling = words if answer.words is None else answer.words
        problem = Coverage(sets, differences[rival] + bound, words, work, complete)
        against = _radius_against_one(problem, margin, ceiling)
        if against is not None:
            answer = against
    return answer


def _radius_against_one(problem: Coverage, margin: int, ceiling: int) -> Radius | None:
    """The radius against one rival, or None where it is ``ceiling`` or more."""
    worst, cost = problem.greedy(margin, ceiling)
    attack = worst if cost >= margin else None  # the smallest choice known to break the label
    proved, open_or_broken = 0, len(worst) if attack else ceiling + 1
    step_down = True
    changed = open_or_broken - 1
    while open_or_broken - proved > 1:
        try:
            found = problem.search(changed, margin)
        except OutOfWorkError:
            open_or_broken, step_down = changed, False
        else:
            if found is None:
                proved = changed
            else:  # filled up with other positions: costs never fall by adding
                spare = [position for position in worst if position not in found]
                open_or_broken, attack = changed, [*found, *spare][:changed]
        # Greedy is nearly always best, so its size less one is tried first.  Once the work is
        # spent, what is left is a bound that only grows with the number of words: bisect.
        changed = open_or_broken - 1 if step_down else (proved + open_or_broken) // 2
    if proved == ceiling:
        return None
    if attack is not None and len(attack) == proved + 1:
        return Radius(proved, True, tuple(sorted(attack)))
    return Radius(proved, False, tuple(sorted(worst[: proved + 1])))


def single_word_radii(differences: Ints, words: Ints, bound: int = 1) -> list[Radius]:
    """The radii of several texts over the families of all single words, from one sort.

    ``differences`` as for `exact_radius`, the words of the texts one after another: shape (rivals,
    words of all texts); ``words``: how many each text has, at least one.
    """
    if differences.size and int(differences.min()) < -bound:
        raise ValueError(f"a difference lies below -{bound}")
    if not len(differences):
        return [Radius(size) for size in words.tolist()]  # a single class: nothing to lose against
    starts = np.cumsum(words) - words
    margins = np.add.reduceat(differences, starts, axis=1)
    order = dearest_first(differences, words, starts)
    proved = words_below(differences, order, margins, starts, bound)
    return gathered(proved, margins, partial(first_of_each, order, starts))


def radii_against_each(differences: Ints, words: Ints, bound: int = 1) -> Ints:
    """The same against each rival by itself, shape (rivals, texts); -1 where it is not beaten."""
    starts = np.cumsum(words) - words
    margins = np.add.reduceat(differences, starts, axis=1)
    proved = steps_below(falling(differences + bound, words), margins, starts)
    return np.where(margins > 0, proved, -1)


def gathered(
    proved: Ints,
    margins: Ints,
    worst_words: Callable[[Ints, Ints], list[int]],
    tight: npt.NDArray[np.bool_] | None = None,
) -> list[Radius]:
    """The radius of each text from those against each rival, shape (rivals, texts).

    ``worst_words`` are so many positions of each text (second argument), the worst against one
    rival (first argument), text by text.
    """
    radii = proved.min(axis=0)
    certified = margins.min(axis=0) > 0
    # Of several rivals that allow no more words, the one with the smallest margin is shown.
    rivals = np.where(proved == radii, margins, np.iinfo(np.int64).max).argmin(axis=0)
    sizes = np.where(certified, radii + 1, 0)
    worst, ends = worst_words(rivals, sizes), np.cumsum(sizes).tolist()
    sure = [True] * len(radii) if tight is None else tight[rivals, np.arange(len(rivals))].tolist()
    return [
        Radius(radius, known, tuple(worst[end - radius - 1 : end])) if proof else Radius(None)
        for radius, known, proof, end in zip(
            radii.tolist(), sure, certified.tolist(), ends, strict=True
        )
    ]


def words_below(
    differences: Ints, order: Ints, margins: Ints, starts: Ints, bound: int
) -> npt.NDArray[np.int64]:
    """How many words of each text, the dearest first, cost less than its margin, for each rival.

    All words of a text must cost its margin or more.
    """
    rivals = np.arange(len(differences))[:, None]
    return steps_below(differences[rivals, order] + bound, margins, starts)


def steps_below(weights: Ints, margins: Ints, starts: Ints) -> npt.NDArray[np.int64]:
    """The same for ``weights`` that fall within each text."""
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


def falling(costs: Ints, words: Ints) -> Ints:
    """The costs of every text's words, none below 0, the largest first; whose they are is lost."""
    texts = np.repeat(np.arange(len(words)), words)
    most = int(costs.max())
    cost_bits = most.bit_length()
    bits = cost_bits + len(words).bit_length()
    if bits > _KEY_BITS:
        order = dearest_first(costs, words, np.cumsum(words) - words)
        return np.take_along_axis(costs, order, axis=1)
    keys = (texts << cost_bits) + (most - costs)
    keys = keys.astype(np.uint32) if bits <= 32 else keys  # sorted in half the time
    keys.sort(axis=1)
    return most - (keys & ((1 << cost_bits) - 1)).astype(np.int64)


def first_of_each(order: Ints, starts: Ints, rivals: Ints, sizes: Ints) -> list[int]:
    """The first ``sizes`` words of each text in its rival's order, as rising positions in it."""
    texts = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(texts)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen = np.sort(order[rivals[texts], starts[texts] + rank])  # stays text by text
    positions: list[int] = (chosen - starts[texts]).tolist()
    return positions

"""The certificate of copies and a reader together, which reads whole texts and segments of them.

Guarantee.  Let ``g`` add up what the copies and the reader say (`readings`), and let ``radius`` be
what `pyramid_radii` finds for a text.  Then ``g`` gives the same label, as the only winner, to
every text within ``radius`` of it; and where ``radius`` is 1 or more, **whatever the reader says of
whole texts**, the same or another each time.

Assumptions.  Those of `exact` for the copies; and that a segment whose words did not change is read
as before, up to its slack.  Of whole texts nothing is assumed, but for ``radius == 0``.

Proof (docs/certificates.md, "A reader beside the copies").  Whoever changes a word owns the whole
text, whose vote of weight ``B`` is then for the rival at worst: so the label must lead by more than
``B`` without it.  Each segment that holds a changed word falls to minus its weight.  Segments are
nested, so the nodes that changed positions meet form a tree.  The dearest ``d`` positions of a node
are those of its children, merged by falling cost, with the node's own cost added to the first: as
that is the largest already, costs stay sorted.  So each node's cost goes to the dearest word below
it, from the finest segments upwards, and then the largest cost of ``d`` positions is the sum of the
``d`` dearest words: one sort, no search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import (
    Radius,
    dearest_first,
    exact_radius,
    first_of_each,
    gathered,
    words_below,
)
from ranmask.certificates.families import Family
from ranmask.certificates.kept import check_fixed
from ranmask.certificates.readings import Readings, segment_borders
from ranmask.certificates.votes import Votes


def pyramid_radii(votes: Votes, families: Sequence[Family], *, edits: bool = False) -> list[Radius]:
    """The radius of each text's winner, each over its own fixed family, with a reader beside it.

    ``edits``: words may be inserted, deleted and reordered too.  Segments move with every edit, so
    there must be none.
    """
    readings = votes.readings
    assert readings is not None
    if readings.segments is not None and edits:
        raise ValueError("segments are cut by position: they prove nothing against edits")
    radii: list[Radius] = []
    for part in votes.parts():
        some = families[len(radii) : len(radii) + len(part.copies)]
        radii += _proved_without_the_whole(part, some)
    moving = votes.blurred | bool((readings.slack > 0).any())
    unchanged = np.zeros(len(families), dtype=bool) if edits else proved_unchanged(votes)
    for place, radius in enumerate(radii):
        if radius.words is None and unchanged[place]:
            radii[place] = Radius(0, True, (dearest_word(votes, families[place], place),))
        elif moving[place] and radius.tight:  # whether it is attained is not worked out
            radii[place] = replace(radius, tight=False)
    return radii


def _proved_without_the_whole(votes: Votes, families: Sequence[Family]) -> list[Radius]:
    """The radii that hold whatever is said of whole texts; None where the lead is too small."""
    readings = votes.readings
    assert readings is not None
    alone = replace(votes, readings=readings.without_whole)
    labels = alone.winners
    differences, reserve = alone.differences(labels), readings.reserve
    if not len(differences):
        return [Radius(family.words) for family in families]  # a single class: nothing to lose
    for family in families:
        check_fixed(family.kind)
    if all(family.kept == 1 for family in families):
        costs, margins = costs_and_margins(votes, families, labels)
        words = np.array([family.words for family in families])
        starts = np.cumsum(words) - words
        order = dearest_first(costs, words, starts)
        proved = words_below(costs, order, margins, starts, 0)
        return gathered(proved, margins, partial(first_of_each, order, starts))
    if readings.segments is not None:
        raise ValueError("segments go with copies that show one word each")
    radii = []
    for family, start, copies in zip(families, votes.starts, votes.copies, strict=True):
        own = differences[:, start : start + copies]
        every = family.kind == "all"
        bound = votes.bound
        radii.append(
            exact_radius(
                family.sets, own, family.words, bound=bound, complete=every, reserve=reserve
            )
        )
    return radii


def costs_and_margins(votes: Votes, families: Sequence[Family], labels: Ints) -> tuple[Ints, Ints]:
    """What each word costs against each rival, and what may be spent, where copies show one word.

    The largest cost of ``d`` words is that of the ``d`` dearest.
    """
    readings = votes.readings
    assert readings is not None
    differences = votes.differences(labels)
    margins = np.add.reduceat(differences, votes.starts, axis=1) - readings.reserve
    words = np.array([family.words for family in families])
    costs = _costs_of_words(differences + votes.bound, families, words)
    if readings.segments is not None:
        leads = readings.segments.differences(labels)
        margins += leads.sum(axis=2)
        _charge_segments(costs, words, readings.segments, leads)
    return costs, margins


def run_costs(votes: Votes, families: Sequence[Family], labels: Ints) -> tuple[Ints, Ints]:
    """What runs of neighbouring words cost: ``before`` and ``through`` of `spans.run_lengths`.

    A run costs its words, and every segment that it meets: of each level, those from the one
    that holds its first word to the one that holds its last.
    """
    words = np.array([family.words for family in families])
    costs = _costs_of_words(votes.differences(labels) + votes.bound, families, words)
    through = costs.cumsum(axis=1)
    before = through - costs
    segments = votes.readings and votes.readings.segments
    if segments is None:
        return before, through
    fall = segments.differences(labels) + segments.bounds
    last = len(segments.bounds)
    for pieces in reversed(segments.levels):
        sizes = np.diff(segment_borders(words, pieces), axis=1).ravel()
        fallen = fall[:, :, last - pieces : last].reshape(len(costs), -1) * (sizes > 0)
        last -= pieces
        node = np.repeat(np.arange(len(sizes)), sizes)  # that holds each word
        sums = fallen.cumsum(axis=1)
        through += sums[:, node]
        before += (sums - fallen)[:, node]
    return before, through


def _costs_of_words(weights: Ints, families: Sequence[Family], words: Ints) -> Ints:
    """What it costs to change each word, by the copies that show it."""
    if all(family.single for family in families):
        return weights
    starts = np.cumsum(words) - words
    sizes = [len(family) for family in families]
    at = np.concatenate([family.sets[:, 0] for family in families]) + np.repeat(starts, sizes)
    costs = np.zeros((len(weights), int(words.sum())), dtype=np.int64)
    for row, own in zip(costs, weights, strict=True):
        np.add.at(row, at, own)
    return costs


def _charge_segments(costs: Ints, words: Ints, segments: Readings, leads: Ints) -> None:
    """Add what each segment costs to the dearest word in it, from the finest segments upwards."""
    starts = np.cumsum(words) - words
    fall = leads + segments.bounds  # of each segment that is met, shape (rivals, texts, nodes)
    last = len(segments.bounds)
    for pieces in reversed(segments.levels):
        of_level = fall[:, :, last - pieces : last].reshape(len(costs), -1)
        last -= pieces
        borders = segment_borders(words, pieces)
        filled = (borders[:, 1:] > borders[:, :-1]).ravel()
        first = (borders[:, :-1] + starts[:, None]).ravel()[filled]
        dearest = np.maximum.reduceat(costs, first, axis=1)
        sizes = np.diff(np.append(first, costs.shape[1]))
        for row, highest, fallen in zip(costs, dearest, of_level[:, filled], strict=True):
            found = np.flatnonzero(row == np.repeat(highest, sizes))
            owner = np.searchsorted(first, found, side="right") - 1
            _, leader = np.unique(owner, return_index=True)
            row[found[leader]] += fallen


def proved_unchanged(votes: Votes) -> npt.NDArray[np.bool_]:
    """Which texts get the same label again, as the only winner, if not a word is changed."""
    readings = votes.readings
    assert readings is not None
    labels = votes.winners
    margins = np.add.reduceat(votes.differences(labels), votes.starts, axis=1)
    margins = margins + readings.differences(labels).sum(axis=2)
    sure: npt.NDArray[np.bool_] = (margins > 0).all(axis=0) & readings.sure
    return sure


def dearest_word(votes: Votes, family: Family, place: int) -> int:
    """A word that the label hangs on most, by its copies."""
    alone = votes.part(place, place + 1)
    differences = alone.differences(alone.winners)
    closest = differences.sum(axis=1).argmin()
    copy = int(differences[closest].argmax())
    return int(family.sets[copy, 0])

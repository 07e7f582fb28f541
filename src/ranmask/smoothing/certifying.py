"""From ballots to a radius: how each certificate reads the votes of one text, and what it assumes.

Kept sets that depend on the words are refused here too, whoever asks: their votes prove nothing.
Certificates that sample count an uncertain vote against the label; the paper's know of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from ranmask import certificates
from ranmask.certificates import Radius
from ranmask.certificates.families import Family
from ranmask.certificates.kept import check_fixed
from ranmask.options import DEFAULT_MASKS, CertificateKind, SmoothingOptions, Threat
from ranmask.smoothing.votes import BallotBox, Ballots

_DIFFERENCES_AT_ONCE = 1 << 19  # bounds memory where there are many classes

_SUBSTITUTION = "words are replaced one for one; none is inserted, deleted, split or joined"
_EDITS = "each edit replaces, inserts or deletes one word; reordering the words is free"
_LONGER = "a text that grows beyond {} words is refused, not classified"
_PREMISE = "the premise does not change"
_DETERMINISTIC = "the base classifier always says the same of the same visible words"
_IDEAL_VOTE = "the label is that of a vote over all kept sets, of which predict() takes a sample"
_FROM_TABLE = (
    "words are replaced only by words that the table {!r} lists for them, in the same case and "
    "with the same punctuation around them"
)
_SEED = "the text was not chosen by someone who knows the seed {}"
_IDEAL_COPIES = "the label is that of a vote over all random copies, of which predict() draws some"
_TOLERANCE = "recomputing a copy moves no output of the model by more than {:.3g}"
_CHECKED = "checked on up to {} of the copies that are scored together"
_UNCHECKED = "not checked"
_ANSWERS = "the base classifier answers for every copy; a text that it fails on gets no label"


def exact_radii(
    box: BallotBox, families: Sequence[Family], threat: Threat = "substitutions"
) -> list[Radius]:
    """The `exact_radius` of each text, each over its own family."""
    distinct = [family.places for family in families if family.places is not None]
    if len(distinct) < len(families) and not all(map(_is_single, set(families))):
        pairs = zip(box.each(), families, strict=True)
        return [exact_radius(ballots, family, threat) for ballots, family in pairs]
    radii: list[Radius] = []
    # One sort for many texts; and edits have the same radius as substitutions.
    for part in box.parts(max(1, _DIFFERENCES_AT_ONCE // box.ballots.classes)):
        differences, bound = part.differences(part.winners), part.ballots.bound
        if not distinct:
            radii += certificates.single_word_radii(differences, part.copies, bound)
            continue
        places = distinct[len(radii) : len(radii) + len(part)]
        words = np.array([len(one) for one in places])
        radii += certificates.distinct_word_radii(
            differences, part.copies, np.concatenate(places), words, bound
        )
    if not box.ballots.blurred:
        return radii
    return list(map(_checked, box.each(), families, radii))


def exact_radius(ballots: Ballots, family: Family, threat: Threat = "substitutions") -> Radius:
    """The exact certificate of the ballots' winner over a fixed family."""
    check_fixed(family.kind)
    if family.places is not None:
        [radius] = exact_radii(ballots.alone, [family], threat)
        return radius
    return _checked(ballots, family, _proved(ballots, family, threat))


def _proved(ballots: Ballots, family: Family, threat: Threat) -> Radius:
    differences = ballots.differences(ballots.winner)
    if threat == "edits":
        if not _is_single(family):
            raise ValueError("edits are certified over the family of all single words only")
        return certificates.edit_radius(differences, ballots.bound)
    if _is_single(family):
        return certificates.single_word_radius(differences, ballots.bound)
    return certificates.exact_radius(
        family.sets,
        differences,
        family.words,
        bound=ballots.bound,
        complete=family.kind == "all",
    )


def _checked(ballots: Ballots, family: Family, radius: Radius) -> Radius:
    """``radius``, tight only where a classifier that says what was seen fails beyond it."""
    if radius.tight and ballots.blurred and not _breaks(ballots, family, radius.worst):
        return replace(radius, tight=False)
    return radius


def _breaks(ballots: Ballots, family: Family, positions: Sequence[int]) -> bool:
    """Whether the winner is no longer ahead of each rival after the worst at these positions.

    Untouched copies say what they were seen to say, and touched ones what a copy can say.  Where a
    word counts once, this is not worked out.
    """
    if family.places is not None:
        return False
    differences = ballots.as_seen.differences(ballots.winner)
    if not len(differences):
        return True  # a single class: there is no more to prove
    met = np.isin(family.sets, positions).any(axis=1)
    left = differences[:, ~met].sum(axis=1) - ballots.attained * int(met.sum())
    return bool(left.min() <= 0)


def sampled_radius(
    kind: CertificateKind, ballots: Ballots, family: Family, label: int, *, alpha: float, seed: int
) -> Radius:
    """A certificate of ``label`` from an estimation sample that did not select it."""
    check_fixed(family.kind)
    samples, words, kept = len(family), family.words, family.kept
    for_label = ballots.votes == label
    votes = int(for_label.sum())
    if kind == "ablation":
        return certificates.ablation_radius(
            votes_against(ballots, label)[label], samples, words, kept, alpha=alpha
        )
    if kind == "ablation-runner-up":
        counts = votes_against(ballots, label)
        return certificates.runner_up_radius(counts, label, samples, words, kept, alpha=alpha)
    if kind == "paper-as-printed":
        return certificates.printed_radius(votes, samples, words, kept, alpha=alpha)
    beta = None
    if kind == "paper-estimated-beta":
        beta = partial(certificates.estimated_beta, family.sets, for_label, words, seed=seed)
    return certificates.paper_radius(votes, samples, words, kept, alpha=alpha, beta=beta)


def synonym_radius(
    ballots: Ballots, label: int, overlaps: Sequence[Fraction], *, alpha: float
) -> Radius:
    """SAFER's certificate of ``label`` from an estimation sample that did not select it.

    ``overlaps`` belong to all words of the text: 1 for a word that no copy shows.
    """
    counts = votes_against(ballots, label)
    return certificates.synonym_radius(counts, label, len(ballots.votes), overlaps, alpha=alpha)


def votes_against(ballots: Ballots, label: int) -> list[int]:
    """Votes of each class; uncertain ones are taken from the label, and given to every rival."""
    return [
        int(((ballots.votes == one) & ~ballots.uncertain).sum())
        if one == label
        else int(((ballots.votes == one) | ballots.uncertain).sum())
        for one in range(ballots.classes)
    ]


def assumptions(
    kind: CertificateKind,
    options: SmoothingOptions,
    tolerance: float,
    *,
    pair: bool,
    rechecked: int | None = None,
) -> tuple[str, ...]:
    """What a certificate rests on, in words; nothing where it is no guarantee.

    ``rechecked``: most copies of those scored together that were asked about again; None where
    there was no need, because ranmask knows the classifier.
    """
    if kind.startswith("paper"):
        return ()
    assumes = [_SUBSTITUTION]
    if options.threat == "edits":
        assumes = [_EDITS, _LONGER.format(options.masks or DEFAULT_MASKS)]
    if pair:
        assumes.append(_PREMISE)
    if kind != "exact":
        assumes += [_IDEAL_VOTE, _SEED.format(options.seed)]
    return (*assumes, *_repeatable(tolerance, rechecked))


def synonym_assumptions(
    table: str, tolerance: float, seed: int, *, pair: bool, rechecked: int | None = None
) -> tuple[str, ...]:
    """What SAFER's certificate rests on, in words: above all, which words it covers."""
    premise = [_PREMISE] if pair else []
    return (
        _FROM_TABLE.format(table),
        _SUBSTITUTION,
        *premise,
        _IDEAL_COPIES,
        _SEED.format(seed),
        *_repeatable(tolerance, rechecked),
    )


def _is_single(family: Family) -> bool:
    return family.kept == 1 and family.kind == "all"


def _repeatable(tolerance: float, rechecked: int | None) -> tuple[str, ...]:
    same = _TOLERANCE.format(tolerance / 2) if tolerance > 0 else _DETERMINISTIC
    if rechecked is None:
        return (same,)
    checked = _CHECKED.format(rechecked) if rechecked else _UNCHECKED
    return (f"{same} ({checked})", _ANSWERS)

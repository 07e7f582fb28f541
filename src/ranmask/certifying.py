"""From ballots to a radius: how each certificate reads the votes of one text.

Certificates that sample count an uncertain vote against the label; the paper's know of none.
"""

from __future__ import annotations

from functools import partial

from ranmask import certificates
from ranmask.certificates import Radius
from ranmask.families import Family
from ranmask.options import CertificateKind, Threat
from ranmask.voting import Ballots


def exact_radius(ballots: Ballots, family: Family, threat: Threat = "substitutions") -> Radius:
    """The exact certificate of the ballots' winner over a fixed family."""
    differences = ballots.differences(ballots.winner)
    single = family.kept == 1 and family.kind == "all"
    if threat == "edits":
        if not single:
            raise ValueError("edits are certified over the family of all single words only")
        return certificates.edit_radius(differences, ballots.bound)
    if single:
        return certificates.single_word_radius(differences, ballots.bound)
    return certificates.exact_radius(
        family.sets,
        differences,
        family.words,
        bound=ballots.bound,
        complete=family.kind == "all",
    )


def sampled_radius(
    kind: CertificateKind, ballots: Ballots, family: Family, label: int, *, alpha: float, seed: int
) -> Radius:
    """A certificate of ``label`` from an estimation sample that did not select it."""
    samples, words, kept = len(family), family.words, family.kept
    for_label = ballots.votes == label
    votes, sure = int(for_label.sum()), int((for_label & ~ballots.uncertain).sum())
    if kind == "ablation":
        return certificates.ablation_radius(sure, samples, words, kept, alpha=alpha)
    if kind == "ablation-runner-up":
        counts = [
            sure if rival == label else int(((ballots.votes == rival) | ballots.uncertain).sum())
            for rival in range(ballots.classes)
        ]
        return certificates.runner_up_radius(counts, label, samples, words, kept, alpha=alpha)
    if kind == "paper-as-printed":
        return certificates.printed_radius(votes, samples, words, kept, alpha=alpha)
    beta = None
    if kind == "paper-estimated-beta":
        beta = partial(certificates.estimated_beta, family.sets, for_label, words, seed=seed)
    return certificates.paper_radius(votes, samples, words, kept, alpha=alpha, beta=beta)

"""Certificates from random samples, by their names: ablation's, and the paper's for comparison."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from ranmask.certificates.ablation import ablation_radius, runner_up_radius
from ranmask.certificates.exact import Radius
from ranmask.certificates.families import Family
from ranmask.certificates.kept import check_fixed
from ranmask.certificates.paper import estimated_beta, paper_radius, printed_radius
from ranmask.certificates.votes import Votes


def sampled_radius(
    kind: str, votes: Votes, family: Family, label: int, *, alpha: float, seed: int
) -> Radius:
    """A certificate of one text's ``label`` from an estimation sample that did not select it.

    Ablation counts uncertain votes against the label; the paper knows of none.
    """
    check_fixed(family.kind)
    sizes = (len(family), family.words, family.kept)
    counts = votes.against([label])[0].tolist()
    if kind == "ablation":
        return ablation_radius(counts[label], *sizes, alpha=alpha)
    if kind == "ablation-runner-up":
        return runner_up_radius(counts, label, *sizes, alpha=alpha)
    for_label = votes.best == label
    if kind == "paper-as-printed":
        return printed_radius(int(for_label.sum()), *sizes, alpha=alpha)
    beta: Callable[[int], Fraction] | None = None
    if kind == "paper-estimated-beta":
        beta = partial(estimated_beta, family.sets, for_label, family.words, seed=seed)
    return paper_radius(int(for_label.sum()), *sizes, alpha=alpha, beta=beta)

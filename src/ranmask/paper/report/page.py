"""A report: which sections there are, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

from ranmask.paper.published import published
from ranmask.paper.report.blocks import Report, Section
from ranmask.paper.report.experiments import experiments
from ranmask.paper.report.sections import (
    adversarial,
    arithmetic,
    betas,
    certified,
    coverage,
    empirical,
    entropy,
    explainer,
    overview,
    provenance,
    rates,
)
from ranmask.paper.run_data import Kind, Reproduction

_TITLE = "The RanMASK paper, run again"
_KINDS = get_args(Kind)
_SECTIONS: tuple[Callable[[Sequence[Reproduction]], Section | None], ...] = (
    coverage.section,
    explainer.section,
    adversarial.section,
    overview.section,
    certified.section,
    empirical.section,
    betas.section,
    rates.section,
    entropy.section,
    arithmetic.risk_section,
    arithmetic.headline_section,
    provenance.section,
)


def _place(run: Reproduction) -> tuple[int, int]:
    """Where a run stands: by its kind, and among runs of one kind as the paper's tables do."""
    tables = [*published().certified, *published().empirical]
    table = tables.index(run.paper) if run.paper in tables else len(tables)
    return _KINDS.index(run.kind), table


def build(reproductions: Sequence[Reproduction], title: str | None = None) -> Report:
    """The report of some reproductions: a section for whatever they have something for.

    They come in the paper's order of what they are about, and else as they were given.
    ``title``: by default that of the reproduction, where there is one only.
    """
    sizes: dict[str, set[str]] = {}
    for run in reproductions:
        sizes.setdefault(run.title, set()).add(run.size)
    reproductions = [  # whatever is there in two sizes has its size in the title
        replace(run, title=f"{run.title} ({run.size})") if len(sizes[run.title]) > 1 else run
        for run in sorted(reproductions, key=_place)
    ]
    if title is None:
        several = "Runs of ranmask" if overview.only_runs(reproductions) else _TITLE
        title = several if len(experiments(reproductions)) != 1 else reproductions[0].title
    sections = [found for made in _SECTIONS if (found := made(reproductions)) is not None]
    return Report(title, overview.one_sentence(reproductions), sections)

"""A report: which sections there are, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

from ranmask.paper.report.blocks import Report, Section
from ranmask.paper.report.sections import (
    arithmetic,
    betas,
    certified,
    empirical,
    entropy,
    explainer,
    overview,
    provenance,
    rates,
)
from ranmask.paper.run_data import Kind, Reproduction

_TITLE = "The RanMASK paper, run again"
_ORDER = get_args(Kind)
_SECTIONS: tuple[Callable[[Sequence[Reproduction]], Section | None], ...] = (
    overview.section,
    explainer.section,
    certified.section,
    empirical.section,
    betas.section,
    rates.section,
    entropy.section,
    arithmetic.risk_section,
    arithmetic.headline_section,
    provenance.section,
)


def build(reproductions: Sequence[Reproduction], title: str | None = None) -> Report:
    """The report of some reproductions: a section for whatever they have something for.

    They come in the paper's order of what they are about, and else as they were given.
    ``title``: by default that of the reproduction, where there is one only.
    """
    reproductions = sorted(_told_apart(reproductions), key=lambda run: _ORDER.index(run.kind))
    if title is None:
        several = "Runs of ranmask" if overview.only_runs(reproductions) else _TITLE
        title = reproductions[0].title if len(reproductions) == 1 else several
    sections = [found for made in _SECTIONS if (found := made(reproductions)) is not None]
    return Report(title, overview.one_sentence(reproductions), sections)


def _told_apart(reproductions: Sequence[Reproduction]) -> tuple[Reproduction, ...]:
    """The same, with its size in the title of whatever is there in two sizes."""
    titles = [one.title for one in reproductions]
    return tuple(
        replace(one, title=f"{one.title} ({one.size})") if titles.count(one.title) > 1 else one
        for one in reproductions
    )

"""A report: which sections there are, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from ranmask.paper.report.blocks import Report
from ranmask.paper.report.condensed import Reproduction
from ranmask.paper.report.sections import (
    arithmetic,
    betas,
    certified,
    empirical,
    entropy,
    overview,
    provenance,
    rates,
    teaching,
)
from ranmask.paper.reproduction.record import Kind

_TITLE = "The RanMASK paper, run again"
_ORDER = get_args(Kind)


def build(reproductions: Sequence[Reproduction], title: str | None = None) -> Report:
    """The report of some reproductions: a section for whatever they have something for.

    They come in the paper's order of what they are about, and else as they were given.

    ``title``: by default that of the reproduction, where there is one only.
    """
    reproductions = _told_apart(reproductions)
    reproductions = sorted(reproductions, key=lambda one: _ORDER.index(one.kind))
    if title is None:
        several = "Runs of ranmask" if overview.only_runs(reproductions) else _TITLE
        title = reproductions[0].title if len(reproductions) == 1 else several
    possible = (
        overview.section(reproductions),
        teaching.section(reproductions),
        certified.section(reproductions),
        empirical.section(reproductions),
        betas.section(reproductions),
        rates.section(reproductions),
        entropy.section(reproductions),
        arithmetic.risk_section(reproductions),
        arithmetic.headline_section(reproductions),
        provenance.section(reproductions),
    )
    sections = tuple(section for section in possible if section is not None)
    return Report(title, overview.one_sentence(reproductions), sections)


def _told_apart(reproductions: Sequence[Reproduction]) -> tuple[Reproduction, ...]:
    """The same, with its size in the title of whatever is there in two sizes."""
    titles = [one.title for one in reproductions]
    return tuple(
        replace(one, title=f"{one.title} ({one.size})") if titles.count(one.title) > 1 else one
        for one in reproductions
    )

"""From votes to a proved radius: integers and fractions, no torch, no text.

`exact`     a proof over a fixed family of kept sets (the default)
`single`    the same by a sort, where each copy shows one word; covers insertions and deletions
`distinct`  the same, where each distinct word counts once
`ablation`  Levine & Feizi's bound on a random sample, right with probability 1 - alpha
`safer`     votes over random synonyms, likewise; covers replacements from a table only
`paper`     the published algorithms, for comparison; no guarantee
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranmask.certificates.ablation import (
        ablation_radius,
        delta,
        lower_bound,
        runner_up_radius,
        upper_bound,
    )
    from ranmask.certificates.distinct import distinct_word_radii, most_removed
    from ranmask.certificates.exact import (
        all_vote_differences,
        exact_radius,
        sets_met,
        vote_differences,
    )
    from ranmask.certificates.paper import (
        average_share,
        estimated_beta,
        paper_radius,
        printed_radius,
        risk_probability,
    )
    from ranmask.certificates.radius import Radius
    from ranmask.certificates.safer import synonym_radius
    from ranmask.certificates.single import edit_radius, single_word_radii, single_word_radius

__all__ = [
    "Radius",
    "ablation_radius",
    "all_vote_differences",
    "average_share",
    "delta",
    "distinct_word_radii",
    "edit_radius",
    "estimated_beta",
    "exact_radius",
    "lower_bound",
    "most_removed",
    "paper_radius",
    "printed_radius",
    "risk_probability",
    "runner_up_radius",
    "sets_met",
    "single_word_radii",
    "single_word_radius",
    "synonym_radius",
    "upper_bound",
    "vote_differences",
]

_MODULES = ("ablation", "distinct", "exact", "paper", "radius", "safer", "single")


def __getattr__(name: str) -> Any:
    """A public name, imported on first use: `kept` is wanted without numpy."""
    if name in __all__:
        for module in _MODULES:
            if name in vars(found := import_module(f"{__name__}.{module}")):
                return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

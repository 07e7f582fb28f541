"""SAFER (Ye et al. 2020): train on, and vote over, copies with random synonyms.

In every turn a text is read with each word replaced by one of its perturbation set, uniformly;
the trained classifier is smoothed in the same way.  What it certifies are **substitutions from
the table of neighbours only**: see `ranmask.certificates.safer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.models.base import BaseClassifier
from ranmask.models.synonyms import SynonymSets
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
from ranmask.training.defence import Defence
from ranmask.training.defence_options import SaferOptions
from ranmask.training.options import TrainingOptions
from ranmask.words import Document

# Enough to compare checkpoints by.
_VALIDATION: dict[str, Any] = {"masks": 100, "selection_masks": 20}


@dataclass(eq=False)
class Safer(SaferOptions, Defence):
    """Every text is read in a random copy, made of synonyms; certificates cover those alone."""

    neighbours: NeighbourTable
    name = "safer"
    _sets: SynonymSets = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        name = str(self.neighbours.description()["name"])
        self._sets = SynonymSets(self.neighbours.table, size=self.set_size, name=name)

    def description(self) -> dict[str, Any]:
        return {**super().description(), "validation": dict(_VALIDATION)}

    def reads(self, document: Document, seed: int) -> Document:
        return self._sets.one_copy(document, [seed])

    def validator(
        self, base: BaseClassifier, options: TrainingOptions, *, final: bool = False
    ) -> SynonymSmoothedClassifier:
        # At the end too: thousands of copies of every held-out text would take hours.
        tolerance = None if base.votes_only else 0.0  # what screens has one of its own
        return SynonymSmoothedClassifier(
            base, self._sets, seed=options.seed, tolerance=tolerance, **_VALIDATION
        )

    def classifier(
        self, base: BaseClassifier, options: TrainingOptions
    ) -> SynonymSmoothedClassifier:
        return SynonymSmoothedClassifier(base, self._sets, masks=options.masks, seed=options.seed)

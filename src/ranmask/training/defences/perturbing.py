"""Small shifts of word embeddings: where ascent starts, a step of it, and the ball it stays in.

The shift of a text is measured as a whole, over all its tokens and dimensions.  Special tokens,
padding and the premise of a pair are never moved.  Of a text with several copies in a step, each
copy is moved by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ranmask.training.defence import Defence
from ranmask.training.defence_options import AscentOptions
from ranmask.training.step import Step

TINY = 1e-12
"""A gradient this small points nowhere."""


@dataclass(frozen=True)
class Perturbation(AscentOptions, Defence):
    """Gradient ascent in a ball around the embeddings of a text.

    The defaults are those of the paper's published code; there, the first shift may lie outside
    of the ball.  With ``max_norm=0`` training is plain.
    """

    def start(self, step: Step) -> list[Tensor]:
        """A random shift for each part of the step's batch."""
        chances = step.chances()
        return [self._first(places, step.embeddings.weight, chances) for places in step.words]

    def ascended(
        self, step: Step, shifts: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> list[Tensor]:
        """Shifts after a step along the gradients, ready for the next."""
        return [
            self._inside(shift.detach() + self.step_size * self._direction(gradient, places))
            for shift, gradient, places in zip(shifts, gradients, step.words, strict=True)
        ]

    def _first(self, places: Tensor, vectors: Tensor, chances: torch.Generator) -> Tensor:
        dimensions = vectors.shape[1]
        draws = torch.rand(*places.shape, dimensions, generator=chances, device=places.device)
        shift = draws.to(vectors.dtype) * 2 - 1
        shift = shift * places[..., None] * self.initial_magnitude
        if self.norm == "l2":  # as long, whatever the number of words
            numbers = (places.sum(1) * dimensions).clamp(min=1)
            shift = shift / numbers.sqrt()[:, None, None]
        return self._inside(shift)

    def _direction(self, gradient: Tensor, places: Tensor) -> Tensor:
        """The gradient at the places of words, of length 1."""
        # Mixed precision may overflow; the Trainer skips such a step, and so does the ascent.
        usable = torch.where(gradient.isfinite(), gradient, 0.0) * places[..., None]
        return usable / self._length(usable).clamp(min=TINY)

    def _inside(self, shift: Tensor) -> Tensor:
        if self.norm == "linf":
            return shift.clamp(-self.max_norm, self.max_norm)
        length = self._length(shift)
        return torch.where(length > self.max_norm, shift * (self.max_norm / length), shift)

    def _length(self, shift: Tensor) -> Tensor:
        flat = shift.flatten(1)
        length = flat.norm(dim=1) if self.norm == "l2" else flat.abs().amax(dim=1)
        return length[:, None, None]


def gradients(shifts: Sequence[Tensor]) -> list[Tensor]:
    """What a pass back left at `leaves`."""
    found = [shift.grad for shift in shifts]
    assert all(one is not None for one in found)
    return [one for one in found if one is not None]


def leaves(shifts: Sequence[Tensor]) -> list[Tensor]:
    """The same shifts, ready for gradients."""
    return [shift.detach().requires_grad_() for shift in shifts]

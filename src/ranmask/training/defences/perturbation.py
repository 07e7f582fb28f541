"""PGD-K (Madry et al. 2018) and FreeLB (Zhu et al. 2020): gradient ascent near the embeddings.

The shift of a text is measured as a whole, over all its tokens and dimensions.  Special tokens,
padding and the premise of a pair are never moved.  Of a text with several copies in a step, each
copy is moved by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ranmask.training.defence import Defence, Step
from ranmask.training.defence_options import AscentOptions, PgdOptions

TINY = 1e-12
"""A gradient this small points nowhere."""


@dataclass(frozen=True)
class Perturbation(AscentOptions, Defence):
    """The defaults are the paper's published code's, whose first shift may lie outside the ball."""

    def start(self, step: Step) -> list[Tensor]:
        """A random shift for each part of the step's batch."""
        generator, vectors = step.generator(), step.embeddings.weight
        shifts = []
        for places in step.words:
            shape = (*places.shape, vectors.shape[1])
            draws = torch.rand(shape, generator=generator, device=places.device)
            shift = draws.to(vectors.dtype) * 2 - 1
            shift = shift * places[..., None] * self.initial_magnitude
            if self.norm == "l2":  # as long, whatever the number of words
                numbers = (places.sum(1) * shape[-1]).clamp(min=1)
                shift = shift / numbers.sqrt()[:, None, None]
            shifts.append(self._inside(shift))
        return shifts

    def ascended(
        self, step: Step, shifts: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> list[Tensor]:
        """Shifts after a step along the gradients at the places of words."""
        risen = []
        for shift, gradient, places in zip(shifts, gradients, step.words, strict=True):
            # Mixed precision may overflow; the Trainer skips such a step, and so does the ascent.
            usable = torch.where(gradient.isfinite(), gradient, 0.0) * places[..., None]
            direction = usable / self._length(usable).clamp(min=TINY)
            risen.append(self._inside(shift.detach() + self.step_size * direction))
        return risen

    def _inside(self, shift: Tensor) -> Tensor:
        if self.norm == "linf":
            return shift.clamp(-self.max_norm, self.max_norm)
        length = self._length(shift)
        return torch.where(length > self.max_norm, shift * (self.max_norm / length), shift)

    def _length(self, shift: Tensor) -> Tensor:
        flat = shift.flatten(1)
        length = flat.norm(dim=1) if self.norm == "l2" else flat.abs().amax(dim=1)
        return length[:, None, None]


@dataclass(frozen=True)
class Pgd(PgdOptions, Perturbation):
    """The loss after ``steps`` steps of projected gradient ascent on the embeddings.

    Costs ``steps + 1`` passes forward and back.  The tables of the paper have ten steps.
    """

    name = "pgd"

    def loss(self, step: Step) -> Tensor:
        shifts = self.start(step)
        for _ in range(self.steps):
            shifts = leaves(shifts)
            # Gradients of the shifts alone: the weights learn from the last point only.
            slopes = torch.autograd.grad(step.loss(shifts), shifts)
            shifts = self.ascended(step, shifts, slopes)
        return step.loss(shifts)


@dataclass(frozen=True)
class FreeLb(Perturbation):
    """The mean of the losses at ``steps`` points, each an ascent step from the one before.

    One pass back serves twice: its gradients of the weights add up over the points, and its
    gradient of the shift is the next step of the ascent.
    """

    name = "freelb"

    def loss(self, step: Step) -> Tensor:
        shifts = leaves(self.start(step))
        share = step.loss(shifts) / self.steps
        learned = torch.zeros_like(share)
        for _ in range(self.steps - 1):
            step.backward(share)
            learned = learned + share.detach()
            shifts = leaves(self.ascended(step, shifts, gradients(shifts)))
            share = step.loss(shifts) / self.steps
        return share + learned  # its value is the mean, its gradient what is not learned yet


def gradients(shifts: Sequence[Tensor]) -> list[Tensor]:
    """What a pass back left at `leaves`."""
    return [shift.grad for shift in shifts if shift.grad is not None]


def leaves(shifts: Sequence[Tensor]) -> list[Tensor]:
    """The same shifts, ready for gradients."""
    return [shift.detach().requires_grad_() for shift in shifts]

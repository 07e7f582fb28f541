"""FreeLB (Zhu et al. 2020): learn at every point of the ascent, not at its end alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ranmask.training.defences.perturbing import Perturbation, gradients, leaves
from ranmask.training.step import Step


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

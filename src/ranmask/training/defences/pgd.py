"""PGD-K (Madry et al. 2018): train at the worst point that ascent finds near the embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ranmask.training.defence_options import PgdOptions
from ranmask.training.defences.perturbing import Perturbation, leaves
from ranmask.training.step import Step


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
            gradients = torch.autograd.grad(step.loss(shifts), shifts)
            shifts = self.ascended(step, shifts, gradients)
        return step.loss(shifts)

"""Synonym hulls, after DNE (Zhou et al. 2021): train at the worst mixture of a word's synonyms.

A word's embedding is replaced by a convex combination of those of the word and its neighbours: a
point in their convex hull.  The weights are drawn uniformly from the simplex (a Dirichlet
distribution with concentration 1), moved towards a larger loss, and trained at.

The published method also averages random mixtures when it predicts.  Here prediction is plain, or
that of ``ranmask``, whose certificate does not care how its base classifier was trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.training.defence import Defence, Step
from ranmask.training.defence_options import DneOptions
from ranmask.training.defences.hotflip import WordTokens
from ranmask.training.defences.perturbation import TINY, leaves


@dataclass(eq=False)
class Dne(DneOptions, Defence):
    """The loss at a bad point in the convex hulls of the words' synonyms.

    Words that are one token, and their neighbours that are, as they are spelt; other words stay
    where they are.

    A step of ``step_size`` lets the weight that gains most grow by its exponential, before the
    weights of a word are made to sum to 1 again.
    """

    neighbours: NeighbourTable
    name = "dne"
    _tokens: WordTokens = field(init=False, repr=False)
    _others: Tensor = field(init=False, repr=False)

    def begin(self, base: HuggingFaceClassifier) -> None:
        self._tokens = WordTokens(base)
        self._others = self._tokens.neighbours(self.neighbours.table)

    def loss(self, step: Step) -> Tensor:
        generator = step.generator()
        parts = zip(step.parts, step.words, strict=True)
        corners = [self.corners(part["input_ids"], places) for part, places in parts]
        vectors = step.embeddings.weight
        weights = [_drawn(of_part, vectors, generator) for of_part in corners]
        for _ in range(self.steps):
            weights = leaves(weights)
            risen = step.loss(self.shifts(corners, weights, vectors.detach()))
            gradients = torch.autograd.grad(risen, weights)
            pairs = zip(weights, gradients, strict=True)
            weights = [_risen(weight, gradient, self.step_size) for weight, gradient in pairs]
        return step.loss(self.shifts(corners, weights, vectors))

    def corners(self, ids: Tensor, places: Tensor) -> Tensor:
        """The tokens that span the hull of each place, itself the first; -1 for none."""
        others = self._others = self._others.to(ids.device)
        free = (self._tokens.exchangeable(ids) & places)[..., None]
        return torch.cat([ids[..., None], others[ids].masked_fill(~free, -1)], dim=-1)

    def shifts(
        self, corners: Sequence[Tensor], weights: Sequence[Tensor], vectors: Tensor
    ) -> list[Tensor]:
        """From the words' own embeddings to the mixtures."""
        found = []
        for of_part, weight in zip(corners, weights, strict=True):
            spread = functional.embedding(of_part.clamp(min=0), vectors)
            away = spread - spread[..., :1, :]
            found.append(self.hull * torch.einsum("rpc,rpcd->rpd", weight, away))
        return found


def _drawn(corners: Tensor, vectors: Tensor, generator: torch.Generator) -> Tensor:
    """Weights of the corners that there are, uniform on the simplex."""
    draws = torch.empty(corners.shape, device=corners.device).exponential_(generator=generator)
    draws = draws.to(vectors.dtype) * (corners >= 0)
    return draws / draws.sum(-1, keepdim=True)


def _risen(weights: Tensor, gradient: Tensor, step_size: float) -> Tensor:
    """Weights after a step of exponentiated gradient ascent; of a text, the same for all words."""
    usable = torch.where(gradient.isfinite(), gradient, 0.0)
    largest = usable.flatten(1).abs().amax(1).clamp(min=TINY)[:, None, None]
    grown = weights.detach() * torch.exp(step_size * usable / largest)
    return grown / grown.sum(-1, keepdim=True)

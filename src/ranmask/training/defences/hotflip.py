"""Adv-HotFlip (Ebrahimi et al. 2018): flip words by the gradient, and train on both texts.

A flip of token ``x`` at a place into ``v`` changes the loss, to first order, by the gradient at
that place times the difference of their embeddings.  Places do not interact to first order, so
the best flip of each place, and then the best places, are the best flips of all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import torch
from torch import Tensor

from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.certificates.kept import round_half_up
from ranmask.errors import OptionError
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.training.defence import Defence
from ranmask.training.defence_options import HotFlipOptions
from ranmask.training.defences.perturbation import gradients, leaves
from ranmask.training.defences.word_tokens import WordTokens
from ranmask.training.step import Step

_PLACES_AT_ONCE = 2048  # each is compared with every word of the vocabulary


@dataclass(eq=False)
class HotFlip(HotFlipOptions, Defence):
    """Half of the loss on the texts, half on copies with their most telling words flipped.

    At most ``change_rate`` of a text's tokens are flipped; where it is above 0, at least one of a
    text that has any; and only flips that raise the loss to first order.  ``flips``: to any word
    of letters that is one token (``words``, as in the paper's published code), or to one of the
    ``neighbours`` (``synonyms``, as in its text).
    """

    name = "hotflip"
    neighbours: NeighbourTable | None = None
    _tokens: WordTokens = field(init=False, repr=False)
    _candidates: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.flips == "synonyms") != (self.neighbours is not None):
            raise OptionError(
                f"flips={self.flips!r} and {'a' if self.neighbours else 'no'} table of neighbours: "
                "they go together, as in flips='synonyms' and neighbours='jia2019'"
            )

    def begin(self, base: HuggingFaceClassifier) -> None:
        tokens = self._tokens = WordTokens(base)
        table = self.neighbours
        self._candidates = tokens.of_letters() if table is None else tokens.neighbours(table.table)

    def loss(self, step: Step) -> Tensor:
        vectors = step.embeddings.weight
        nothing = leaves(
            [vectors.new_zeros(*places.shape, vectors.shape[1]) for places in step.words]
        )
        half = step.loss(nothing) / 2
        step.backward(half)  # half of the step is learned, and the gradient for the flips is there
        flipped = [
            {**part, "input_ids": self.flipped(step, part["input_ids"], places, gradient)}
            for part, places, gradient in zip(
                step.parts, step.words, gradients(nothing), strict=True
            )
        ]
        return half.detach() + step.loss(parts=flipped) / 2

    def flipped(self, step: Step, ids: Tensor, places: Tensor, gradient: Tensor) -> Tensor:
        """Rows of tokens after their best flips, by the gradient of the loss at each place."""
        gains, best = self._best(ids, gradient, step.embeddings.weight.detach())
        gains = gains.masked_fill(~(self._tokens.exchangeable(ids) & places), -torch.inf)
        most = [self.most(words) for words in places.sum(1).tolist()]
        order = gains.argsort(dim=1, descending=True, stable=True)
        rank = order.argsort(dim=1, stable=True)
        chosen = (rank < torch.tensor(most, device=ids.device)[:, None]) & (gains > 0)
        return torch.where(chosen, best, ids)

    def most(self, tokens: int) -> int:
        """How many of so many tokens of words may be flipped: one at least, where any may be."""
        flips = round_half_up(Fraction(str(self.change_rate)) * tokens)
        return max(1, flips) if self.change_rate else 0

    def _best(self, ids: Tensor, gradient: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """For each place, the largest gain of a flip, and the token to flip to."""
        candidates = self._candidates = self._candidates.to(ids.device)
        flat_ids, flat_gradient = ids.flatten(), gradient.flatten(0, 1).to(vectors.dtype)
        gains, best = [], []
        for start in range(0, len(flat_ids), _PLACES_AT_ONCE):
            some = slice(start, start + _PLACES_AT_ONCE)
            own_ids, slope = flat_ids[some], flat_gradient[some]
            own = (slope * vectors[own_ids]).sum(-1)
            if candidates.ndim == 1:  # the same for every token
                others = candidates.expand(len(own_ids), -1)
                values = slope @ vectors[candidates].T
            else:
                others = candidates[own_ids]
                values = torch.einsum("pd,pcd->pc", slope, vectors[others.clamp(min=0)])
                values = values.masked_fill(others < 0, -torch.inf)
            highest = values.argmax(-1, keepdim=True)
            gains.append(values.gather(1, highest)[:, 0] - own)
            best.append(others.gather(1, highest)[:, 0])
        return torch.cat(gains).view_as(ids), torch.cat(best).view_as(ids)

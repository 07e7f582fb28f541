"""Adv-HotFlip (Ebrahimi et al. 2018): flip words by the gradient, and train on both texts.

A flip of token ``x`` at a place into ``v`` changes the loss, to first order, by the gradient at
that place times the difference of their embeddings.  Places do not interact to first order, so
the best flip of each place, and then the best places, are the best flips of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import torch
from torch import Tensor

from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.certificates.kept import round_half_up
from ranmask.errors import ModelError, OptionError
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.training.defence import Defence, Step
from ranmask.training.defence_options import HotFlipOptions
from ranmask.training.defences.perturbation import gradients, leaves

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


class WordTokens:
    """The tokens of a vocabulary that the tokenizer reads as a word of its own.

    A token may be exchanged where it is such a word, and what follows begins another one or ends
    the text.  Punctuation at a word is a token of its own to most tokenizers, and so a word here.
    """

    def __init__(self, base: HuggingFaceClassifier) -> None:
        tokenizer, encoder = base.tokenizer, base.encoder
        size = base.model.get_input_embeddings().num_embeddings
        decoded = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
        spelt = [text.strip() for text in decoded]
        special = set(tokenizer.all_special_ids) | set(encoder.wordless_ids)
        words = [i for i, text in enumerate(spelt) if text.split() == [text] and i not in special]
        read = encoder.inner_word_ids([spelt[i] for i in words])
        self.ids = {spelt[i]: i for i, tokens in zip(words, read, strict=True) if tokens == (i,)}
        self.whole = torch.zeros(size, dtype=torch.bool)
        self.whole[list(self.ids.values())] = True
        self._ends = self.whole.clone()
        self._ends[sorted(special)] = True

    def of_letters(self) -> Tensor:
        """The tokens of all words that are made of letters."""
        found = [i for word, i in self.ids.items() if word.isalpha()]
        if not found:
            raise ModelError(
                "no token of the vocabulary is a word of letters: nothing can be flipped to"
            )
        return torch.tensor(found)

    def exchangeable(self, ids: Tensor) -> Tensor:
        """Where rows of tokens hold a word that is one token: what follows must begin another."""
        whole = self.whole = self.whole.to(ids.device)
        ends = self._ends = self._ends.to(ids.device)
        after = torch.ones_like(ids, dtype=torch.bool)
        after[:, :-1] = ends[ids[:, 1:]]
        return whole[ids] & after

    def neighbours(self, table: Mapping[str, Sequence[str]]) -> Tensor:
        """For each token its neighbours that are one token too: (tokens, most), -1 for none."""
        found = {
            i: [self.ids[other] for other in table.get(word, ()) if other in self.ids]
            for word, i in self.ids.items()
        }
        most = max(map(len, found.values()), default=0)
        if not most:
            raise ModelError(
                "the table of neighbours and the vocabulary have no pair of words in common: "
                "use another table"
            )
        rows = torch.full((len(self.whole), most), -1)
        for i, others in found.items():
            rows[i, : len(others)] = torch.tensor(others, dtype=torch.long)
        return rows

"""Which tokens stand for words, and which tokens may take their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ranmask.errors import ModelError
from ranmask.models.huggingface import HuggingFaceClassifier


class WordTokens:
    """The tokens of a vocabulary that the tokenizer reads as a word of its own.

    A token may be exchanged where it is such a word, and what follows begins another one or ends
    the text.  Punctuation at a word is a token of its own to most tokenizers, and so a word here.
    """

    def __init__(self, base: HuggingFaceClassifier) -> None:
        tokenizer, encoder = base.tokenizer, base.encoder
        size = base.model.get_input_embeddings().num_embeddings
        spelt = [
            text.strip() for text in tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
        ]
        special = set(tokenizer.all_special_ids) | set(encoder.wordless_ids)
        one_word = [
            i for i, text in enumerate(spelt) if text.split() == [text] and i not in special
        ]
        read = encoder.inner_word_ids([spelt[i] for i in one_word])
        self.ids = {spelt[i]: i for i, tokens in zip(one_word, read, strict=True) if tokens == (i,)}
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

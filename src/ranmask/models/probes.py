"""Random rows and copies, on which ways to compute a model are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ranmask.certificates.families import sampled_sets
from ranmask.certificates.kept import kept_count
from ranmask.errors import ModelError
from ranmask.models.base import MaskedCopies, whole_copy
from ranmask.models.encoding import Ids, TokenRows, WordEncoder
from ranmask.words import Document

ROWS_OF_A_LENGTH = 6


class Probes:
    """Rows of ordinary tokens, the same for every encoder of one vocabulary."""

    def __init__(self, encoder: WordEncoder) -> None:
        self._encoder = encoder
        special = set(encoder.tokenizer.all_special_ids)
        tokens = [token for token in range(len(encoder.tokenizer)) if token not in special]
        self._ordinary = np.array(tokens, dtype=np.int64)

    def tokens(self, count: int, random: np.random.Generator) -> Ids:
        """Tokens that are not special."""
        return random.choice(self._ordinary, size=count)

    def rows(self, seeds: Iterable[int] = (0,)) -> list[TokenRows]:
        """Rows of masked copies of texts of several lengths."""
        rows = []
        for seed in seeds:
            random = np.random.default_rng(seed)
            for words in (3, 10, 25, 50):
                count = min(words, self._encoder.most_words())
                pieces = self._words(count, random)
                sizes = sorted({1, min(2, count), kept_count(count, mask_rate=0.9)})
                sets = [sampled_sets(count, kept, 3, seed) for kept in sizes]
                rows += [self._encoder.lay_out(pieces, kept) for kept in sets]
        return rows

    def all_kinds(self) -> list[TokenRows]:
        """Masked copies, whole texts, as plain classifiers and synonyms show them, and pairs."""
        random = np.random.default_rng(1)
        return [*self.rows(), *(self._whole(words, random) for words in (10, 50)), *self._pairs()]

    def many_lengths(self) -> list[TokenRows]:
        """A few rows of every small length, and of some larger ones; and pairs."""
        random = np.random.default_rng(5)
        lengths = np.repeat((*range(1, 17), 19, 24, 29, 37, 50), ROWS_OF_A_LENGTH)
        return [*(self._whole(words, random) for words in lengths.tolist()), *self._pairs()]

    def longest(self) -> TokenRows:
        """The longest row that the model takes."""
        return self._whole(self._encoder.most_words(), np.random.default_rng(0))

    def copies(self, seed: int = 3) -> MaskedCopies:
        """Copies of a text whose words have one token or more."""
        count = min(12, self._encoder.most_words())
        words = tuple(map(self._spelt, self._words(count, np.random.default_rng(seed))))
        return MaskedCopies(Document(words), count, sampled_sets(count, min(3, count), 256, seed))

    def _whole(self, words: int, random: np.random.Generator) -> TokenRows:
        count = min(words, self._encoder.most_words())
        tokens = [(token,) for token in self.tokens(count, random).tolist()]
        return self._encoder.lay_out(tokens, np.arange(count, dtype=np.int32)[None])

    def _pairs(self) -> Iterator[TokenRows]:
        """Whole pairs, where the model takes any."""
        random = np.random.default_rng(2)
        for words in (5, 20):
            # Pieces of words, most of them: what matters is that the rows are long and filled.
            shown = [self._spelt([token]) for token in self.tokens(2 * words, random).tolist()]
            pair = Document(tuple(shown[:words]), " ".join(shown[words:]))
            try:
                read = self._encoder.words_read(pair)
            except ModelError:
                return  # no pair fits, or the tokenizer knows none
            yield self._encoder.rows(whole_copy(pair, read))

    def _words(self, count: int, random: np.random.Generator) -> list[tuple[int, ...]]:
        """Words of one token and of two, by turns."""
        tokens = self.tokens(2 * count, random).tolist()
        return [tuple(tokens[2 * i : 2 * i + 1 + i % 2]) for i in range(count)]

    def _spelt(self, tokens: Sequence[int]) -> str:
        """A word that has about these tokens."""
        return str(self._encoder.tokenizer.decode(list(tokens))).strip().replace(" ", "") or "a"

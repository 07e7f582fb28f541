"""Rows of kept sets, laid out on the device: the same rows as `encoding` lays out on the host.

A token of a text stands at few different positions: a kept word moves right by the extra tokens of
the kept words before it, its *shift*.  All tokens at all positions are one table, in which a row
is a list of places.  The host makes the table, text by text, and sends kept sets; the device finds
the places, for as many rows at a time as a batch has.

Texts that this does not suit are left to `encoding`: see `SpeltText.suits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ranmask.models.base import MaskedCopies
from ranmask.models.encoding import Ids, WordEncoder
from ranmask.models.gpu.packing import Packing, to_device
from ranmask.models.tokenizing import Frame

FEW_COPIES = 64
"""A text of fewer is laid out faster together with others, on the host."""

_LEAST_SHARING = 2  # tokens of all rows to each entry of the table


@dataclass(frozen=True, eq=False)
class SpeltText:
    """One text with its kept sets, as tokens.

    ``sizes`` are the numbers of tokens of its words, ``shifts`` how many shifts a token may have,
    ``most_extra`` how many extra tokens a row may have, ``lengths`` the tokens of each row.
    """

    copies: MaskedCopies
    frame: Frame
    tokens: Ids
    sizes: Ids
    shifts: int
    most_extra: int
    lengths: Ids

    @property
    def table_size(self) -> int:
        """Entries that the table has for this text alone."""
        return len(self.frame.before) + len(self.tokens) * self.shifts

    @property
    def longest(self) -> int:
        """The most tokens that a row may have, in the masked row."""
        return len(self.frame.before) + len(self.sizes) + self.most_extra + len(self.frame.after)

    def suits(self, encoder: WordEncoder) -> bool:
        """Whether a table pays: no row is cut, no word is empty, and rows share its entries."""
        return (
            self.longest <= encoder.longest
            and bool(self.sizes.min() > 0)
            and _LEAST_SHARING * self.table_size <= int(self.lengths.sum())
        )

    def goes_with(self, other: SpeltText) -> bool:
        """Whether both are of one kind, and so may be in one table."""
        mine, its = self.frame, other.frame
        return (mine.after, mine.body_type) == (its.after, its.body_type)


def spell(copies: Sequence[MaskedCopies], encoder: WordEncoder) -> list[SpeltText]:
    """Texts by the tokens that an encoder gives their words."""
    texts = []
    for text, (words, frame) in zip(copies, encoder.spelt(copies), strict=True):
        sizes = np.array([len(ids) for ids in words], dtype=np.int64)
        tokens = np.array([token for ids in words for token in ids], dtype=np.int64)
        visible = text.kept.shape[1]
        largest = np.sort(sizes - 1)[::-1][:visible]
        extra = int(largest.sum())
        lengths = sizes[text.kept.T].sum(axis=0)  # sums of long rows are far faster than of short
        lengths += len(frame.before) + len(frame.after)
        if encoder.hide == "mask":
            lengths += len(words) - visible
        shifts = 1 + extra - int(largest[-1])
        texts.append(SpeltText(text, frame, tokens, sizes, shifts, extra, lengths))
    return texts


class SharedRows:
    """All rows of texts that share what stands around them, as places of one table.

    The table begins with the mask token at every position, and each token that ends a row at every
    position; then come the texts, each with the tokens that begin its rows and those of its words.
    """

    def __init__(
        self, texts: Sequence[SpeltText], encoder: WordEncoder, device: torch.device
    ) -> None:
        self._masked = encoder.hide == "mask"
        self._after = len(texts[0].frame.after)
        self._most_tokens = max(int(text.sizes.max()) for text in texts)
        self._most_before = max(len(text.frame.before) for text in texts)
        self.lengths = np.concatenate([text.lengths for text in texts])
        self._width = 1 + max(text.longest for text in texts)
        table, text_places, word_places = _table(texts, encoder.mask_id, self._width)
        table[1] += encoder.first_position
        counts = np.array([len(text.sizes) for text in texts])
        of_text = [
            (len(text.frame.before), place, len(text.sizes), text.shifts)
            for text, place in zip(texts, text_places, strict=True)
        ]
        # One more word than there are, without tokens: rows that show fewer words show it too.
        nothing = np.zeros(1, dtype=np.int64)
        of_words = [
            np.concatenate([*(text.sizes for text in texts), nothing]),
            np.concatenate([*word_places, nothing]),
            np.concatenate([*map(np.arange, counts), nothing]),
        ]
        entries, self._words, words, self._text, self._of_text = to_device(
            [
                table,
                _padded(texts, np.cumsum(counts) - counts, int(counts.sum())),
                np.stack(of_words),
                np.repeat(np.arange(len(texts)), [len(text.copies) for text in texts]),
                np.array(of_text).T,
            ],
            device,
        )
        self.tokens, self.positions, self.types = entries
        self._sizes, self._places, self._standing = words
        self._extra = (self._sizes - 1).clamp(min=0)

    def index(self, packing: Packing) -> torch.Tensor:
        """The places in the table of all tokens of a batch, row after row."""
        words = self._words[:, packing.rows]  # of each row: its words are a column
        before, before_place, count, shifts = self._of_text[:, self._text[packing.rows]]
        sizes, extra = self._sizes[words], self._extra[words]
        shift = extra.cumsum(0) - extra
        start, end = packing.starts, packing.starts + packing.lengths
        nowhere = packing.tokens
        places = torch.empty(nowhere + 1, dtype=torch.int64, device=words.device)

        # What begins a row; and a mask token everywhere else, for the others to be written over.
        column = _count_to(packing.longest if self._masked else self._most_before, words)
        stands = start[:, None] + column
        inside = stands < end[:, None] if self._masked else column < before[:, None]
        places[torch.where(inside, stands, nowhere)] = torch.where(
            column < before[:, None], before_place[:, None] + column, column
        )
        # The tokens of kept words.
        moved = self._standing[words] + shift if self._masked else sizes.cumsum(0) - sizes
        piece = _count_to(self._most_tokens, words)[:, None, None]
        places[torch.where(piece < sizes, start + before + moved + piece, nowhere)] = (
            self._places[words] + shift + shifts * piece
        )
        # What ends a row.
        last = _count_to(self._after, words)[:, None]
        position = before + count + extra.sum(0) + last
        places[end - self._after + last] = (1 + last) * self._width + position
        return places[:nowhere]


def _count_to(number: int, like: torch.Tensor) -> torch.Tensor:
    return torch.arange(number, device=like.device)


def _table(
    texts: Sequence[SpeltText], mask_id: int, width: int
) -> tuple[Ids, list[int], list[Ids]]:
    """Tokens, positions and types of the table; where texts and where words begin in it."""
    frame = texts[0].frame
    ends = np.array((mask_id, *frame.after), dtype=np.int64)
    size = len(ends) * width
    everywhere = np.tile(np.arange(width), len(ends))
    parts = [[np.repeat(ends, width), everywhere, np.full(size, frame.body_type)]]
    text_places: list[int] = []
    word_places: list[Ids] = []
    for text in texts:
        before = np.array(text.frame.before, dtype=np.int64)
        offsets = np.cumsum(text.sizes) - text.sizes
        # Of each token: the word that it belongs to, and which token of that word it is.
        word = np.repeat(np.arange(len(text.sizes)), text.sizes)
        stands = len(before) + word + np.arange(len(word)) - offsets[word]
        moved = (stands[:, None] + np.arange(text.shifts)).ravel()
        parts += [
            [before, np.arange(len(before)), np.zeros_like(before)],
            [np.repeat(text.tokens, text.shifts), moved, np.full(len(moved), frame.body_type)],
        ]
        text_places.append(size)
        word_places.append(size + len(before) + offsets * text.shifts)
        size += text.table_size
    return np.concatenate(parts, axis=1), text_places, word_places


def _padded(texts: Sequence[SpeltText], first_words: Ids, nothing: int) -> Ids:
    """The words that each row shows, a column a row; ``nothing`` where it shows fewer."""
    most = max(text.copies.kept.shape[1] for text in texts)
    words = np.full((most, sum(len(text.copies) for text in texts)), nothing, dtype=np.int64)
    row = 0
    for text, first in zip(texts, first_words.tolist(), strict=True):
        kept = text.copies.kept
        words[: kept.shape[1], row : row + len(kept)] = kept.T + first
        row += len(kept)
    return words

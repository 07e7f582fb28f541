"""Rows of kept sets, laid out on the device: the same rows as `encoding` lays out on the host.

A token of a text stands at few different positions: a kept word moves right by the extra tokens of
the kept words before it, its *shift*.  All tokens at all positions are one table, in which a row
is a list of places.  The host makes the table, of many texts at once, and sends kept sets; the
device finds the places, for as many rows at a time as a batch has.

Texts that this does not suit are left to `encoding`: see `SpeltTexts.suit`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from ranmask.models.base import MaskedCopies
from ranmask.models.encoding import Ids, NumberedWords, WordEncoder
from ranmask.models.gpu.packing import Packing, numbered, ranges, to_device
from ranmask.models.tokenizing import Frame

FEW_COPIES = 64
"""A text of fewer is laid out faster together with others, on the host."""

# Of the table, to each token of all rows: an entry costs a small part of what a row's token does.
_MOST_ENTRIES = 2


@dataclass(frozen=True, eq=False)
class SpeltTexts:
    """Texts with their kept sets, as tokens; numbers of each text, and of each row of all.

    ``rows`` are the numbers of copies, ``visible`` of words that each shows, ``shifts`` how many
    shifts a token may have, ``most_extra`` how many extra tokens a row may have.  ``sizes`` are the
    numbers of tokens of all words.  ``kept`` has the words that a row shows, among all words, a
    column a row; where it shows fewer than others, one more word than there are, without tokens.
    ``lengths`` are the tokens of each row.
    """

    words: NumberedWords
    frames: Sequence[Frame]
    rows: Ids
    visible: Ids
    shifts: Ids
    most_extra: Ids
    sizes: Ids
    kept: Ids
    lengths: Ids

    @cached_property
    def before(self) -> Ids:
        """Tokens before the words."""
        return np.array([len(frame.before) for frame in self.frames])

    @cached_property
    def tokens(self) -> Ids:
        """Of all rows of each text."""
        return np.add.reduceat(self.lengths, np.cumsum(self.rows) - self.rows)

    @cached_property
    def table_sizes(self) -> Ids:
        """Entries that the table has for each text alone."""
        own: Ids = np.add.reduceat(self.sizes, self.words.first_words)
        return self.before + own * self.shifts

    @cached_property
    def longest(self) -> Ids:
        """The most tokens that a row of each text may have, in the masked row."""
        after = [len(frame.after) for frame in self.frames]
        return self.before + self.words.counts + self.most_extra + after

    def suit(self, encoder: WordEncoder) -> npt.NDArray[np.bool_]:
        """Which may be laid out by a table: no row is cut, no word is empty, the table is small."""
        fits = self.longest <= encoder.longest
        spelt = np.minimum.reduceat(self.sizes, self.words.first_words) > 0
        small = self.table_sizes <= _MOST_ENTRIES * self.tokens
        return np.asarray(fits & spelt & small)

    def batches(self, encoder: WordEncoder, tokens: int) -> Iterator[list[int]]:
        """Texts that suit and may share a table, in their order, of about so many tokens."""
        batch: list[int] = []
        left = 0
        of_rows = self.tokens.tolist()
        for text in np.flatnonzero(self.suit(encoder)).tolist():
            if batch and (left < of_rows[text] or not self._go_together(batch[0], text)):
                yield batch
                batch = []
            left = tokens if not batch else left
            batch.append(text)
            left -= of_rows[text]
        if batch:
            yield batch

    def _go_together(self, text: int, other: int) -> bool:
        mine, its = self.frames[text], self.frames[other]
        return mine is its or (mine.after, mine.body_type) == (its.after, its.body_type)


def spell(copies: Sequence[MaskedCopies], encoder: WordEncoder) -> SpeltTexts:
    """Texts by the tokens that an encoder gives their words."""
    words, frames = encoder.numbered(copies), encoder.frames(copies)
    counts, first_words, sizes = words.counts, words.first_words, words.sizes[words.numbers]
    rows = np.array([len(text) for text in copies])
    visible = np.array([text.kept.shape[1] for text in copies])
    # The extra tokens of a text's words, the most first: of all texts, by one sort.
    text, number = numbered(counts)
    most = int(sizes.max())
    extra = most - 1 - (np.sort(text * (most + 1) + most - sizes) - text * (most + 1))
    most_extra = np.add.reduceat(np.where(number < visible[text], extra, 0), first_words)
    shifts = 1 + most_extra - extra[first_words + visible - 1]
    kept = np.full((int(visible.max()), int(rows.sum())), len(sizes))
    first_rows = np.cumsum(rows) - rows
    for count in np.unique(visible).tolist():
        alike = np.flatnonzero(visible == count)
        sets = np.concatenate([copies[place].kept for place in alike.tolist()])
        first = np.repeat(first_words[alike], rows[alike])
        kept[:count, ranges(first_rows[alike], rows[alike])] = sets.T + first
    around = np.array([len(frame.before) + len(frame.after) for frame in frames])
    if encoder.hide == "mask":
        around = around + counts - visible
    lengths = np.append(sizes, 0)[kept].sum(axis=0) + np.repeat(around, rows)
    return SpeltTexts(words, frames, rows, visible, shifts, most_extra, sizes, kept, lengths)


class SharedRows:
    """All rows of texts that share what stands after them, as places of one table.

    ``lengths`` are their tokens; `index` finds those of a batch, on the device.
    """

    def __init__(
        self, spelt: SpeltTexts, texts: Sequence[int], encoder: WordEncoder, device: torch.device
    ) -> None:
        which = np.array(texts)
        rows = ranges((np.cumsum(spelt.rows) - spelt.rows)[which], spelt.rows[which])
        words = ranges(spelt.words.first_words[which], spelt.words.counts[which])
        counts, before, shifts = spelt.words.counts[which], spelt.before[which], spelt.shifts[which]
        self._masked = encoder.hide == "mask"
        self._after = len(spelt.frames[texts[0]].after)
        self._most_tokens = int(spelt.sizes[words].max())
        self._most_before = int(before.max())
        self.lengths = spelt.lengths[rows]
        self._width = 1 + int(spelt.longest[which].max())
        # One more word than there are, without tokens: rows that show fewer words show it too.
        among = np.full(len(spelt.sizes) + 1, len(words))
        among[words] = np.arange(len(words))
        kept = among[spelt.kept[: int(spelt.visible[which].max()), rows]]
        table, before_places, word_places = _table(
            spelt, which, words, encoder.mask_id, self._width
        )
        table[1] += encoder.first_position
        standing = numbered(counts)[1]
        of_words = [np.append(own, 0) for own in (spelt.sizes[words], word_places, standing)]
        entries, self._words, each, self._text, self._of_text = to_device(
            [
                table,
                kept,
                np.stack(of_words),
                np.repeat(np.arange(len(which)), spelt.rows[which]),
                np.stack([before, before_places, counts, shifts]),
            ],
            device,
        )
        self.tokens, self.positions, self.types = entries
        self._sizes, self._places, self._standing = each
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
    spelt: SpeltTexts, texts: Ids, words: Ids, mask_id: int, width: int
) -> tuple[Ids, Ids, Ids]:
    """Tokens, positions and types of the table; where texts and where words begin in it.

    First what stands anywhere: a mask token, and what ends a row.  Then what begins the texts, and
    then every token of their ``words`` at all of its positions.
    """
    frames = [spelt.frames[text] for text in texts.tolist()]
    ends = np.array((mask_id, *frames[0].after), dtype=np.int64)
    counts, before, shifts = spelt.words.counts[texts], spelt.before[texts], spelt.shifts[texts]
    begins = np.fromiter(itertools.chain.from_iterable(frame.before for frame in frames), np.int64)
    text, standing = numbered(counts)
    sizes, kind = spelt.sizes[words], spelt.words.numbers[words]
    first_tokens = np.cumsum(spelt.words.sizes) - spelt.words.sizes
    word, piece = numbered(sizes)
    tokens = spelt.words.tokens[first_tokens[kind[word]] + piece]
    stands = (before[text] + standing)[word] + piece
    entry, shift = numbered(shifts[text[word]])
    everywhere = len(ends) * width
    columns = [
        (np.repeat(ends, width), begins, tokens[entry]),
        (np.tile(np.arange(width), len(ends)), numbered(before)[1], stands[entry] + shift),
        (np.full(everywhere, frames[0].body_type), np.zeros_like(begins)),
    ]
    types = np.full(len(entry), frames[0].body_type)
    table = np.stack([*map(np.concatenate, columns[:2]), np.concatenate([*columns[2], types])])
    own = sizes * shifts[text]
    before_places = everywhere + np.cumsum(before) - before
    return table, before_places, everywhere + len(begins) + np.cumsum(own) - own

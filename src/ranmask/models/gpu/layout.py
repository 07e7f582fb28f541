"""Rows of kept sets, laid out on the device: the same rows as `encoding` lays out on the host.

A token of a text stands at few different positions: a kept word moves right by the extra tokens of
the kept words before it, its *shift*.  All tokens at all positions are one table, in which a row
is a list of places.  The host sends the words' tokens, of many texts at once, and kept sets; the
device makes the table, and finds the places, for as many rows at a time as a batch has.

Texts that this does not suit are left to `encoding`: see `SpeltTexts.suit`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from ranmask.models.base import MaskedCopies
from ranmask.models.encoding import NumberedWords, WordEncoder
from ranmask.models.flat import Ids, numbered, ranges
from ranmask.models.gpu.packing import Packing, short, to_device
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
    kept: npt.NDArray[np.int32]
    lengths: Ids

    @cached_property
    def standing(self) -> tuple[Ids, Ids]:
        """The text of each word, and its place there."""
        return numbered(self.words.counts)

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
        """Texts that suit and may share a table, in their order.

        The table has at most `_MOST_ENTRIES` entries for each of ``tokens``.
        """
        batch: list[int] = []
        left = 0
        entries = self.table_sizes.tolist()
        for text in np.flatnonzero(self.suit(encoder)).tolist():
            if batch and (left < entries[text] or not self._go_together(batch[0], text)):
                yield batch
                batch = []
            left = left if batch else _MOST_ENTRIES * tokens
            batch.append(text)
            left -= entries[text]
        if batch:
            yield batch

    def some(self, texts: Sequence[int]) -> SpeltTexts:
        """Some of the texts."""
        if len(texts) == len(self.frames):
            return self
        which = np.array(texts)
        rows = ranges((np.cumsum(self.rows) - self.rows)[which], self.rows[which])
        words = ranges(self.words.first_words[which], self.words.counts[which])
        among = np.full(len(self.sizes) + 1, len(words), dtype=np.int32)
        among[words] = np.arange(len(words))
        numbers, counts = self.words.numbers[words], self.words.counts[which]
        return SpeltTexts(
            words=replace(self.words, numbers=numbers, counts=counts),
            frames=[self.frames[text] for text in texts],
            rows=self.rows[which],
            visible=self.visible[which],
            shifts=self.shifts[which],
            most_extra=self.most_extra[which],
            sizes=self.sizes[words],
            kept=among[self.kept[: int(self.visible[which].max()), rows]],
            lengths=self.lengths[rows],
        )

    def _go_together(self, text: int, other: int) -> bool:
        mine, its = self.frames[text], self.frames[other]
        return mine is its or (mine.after, mine.body_type) == (its.after, its.body_type)


def spell(copies: Sequence[MaskedCopies], encoder: WordEncoder) -> SpeltTexts:
    """Texts by the tokens that an encoder gives their words."""
    words, frames = encoder.numbered(copies), encoder.frames(copies)
    counts, first_words, sizes = words.counts, words.first_words, words.sizes[words.numbers]
    rows, visible = np.array([text.kept.shape for text in copies]).T
    # The extra tokens of a text's words, the most first: of all texts, by one sort.
    text, number = numbered(counts)
    most = int(sizes.max())
    ordered = np.sort(short(text * (most + 1) + most - sizes), kind="stable")
    extra = most - 1 - (ordered - text * (most + 1))
    most_extra = np.add.reduceat(np.where(number < visible[text], extra, 0), first_words)
    shifts = 1 + most_extra - extra[first_words + visible - 1]
    kept = np.full((int(visible.max()), int(rows.sum())), len(sizes), dtype=np.int32)
    bounds = [0, *np.cumsum(rows).tolist()]
    for start, stop in pairwise([0, *(np.flatnonzero(np.diff(visible)) + 1).tolist(), len(rows)]):
        sets = np.concatenate([own.kept for own in copies[start:stop]])
        first = np.repeat(first_words[start:stop].astype(np.int32), rows[start:stop])
        np.add(sets.T, first, out=kept[: sets.shape[1], bounds[start] : bounds[stop]])
    around = np.array([len(frame.before) + len(frame.after) for frame in frames])
    if encoder.hide == "mask":
        around = around + counts - visible
    shown = np.append(sizes, 0).astype(np.int32).take(kept)
    lengths = shown.sum(axis=0, dtype=np.int32) + np.repeat(around, rows)
    return SpeltTexts(words, frames, rows, visible, shifts, most_extra, sizes, kept, lengths)


class SharedRows:
    """All rows of texts that share what stands after them, as places of one table.

    ``lengths`` are their tokens; `index` finds those of a batch, on the device.
    """

    def __init__(self, spelt: SpeltTexts, encoder: WordEncoder, device: torch.device) -> None:
        frames, (text, standing) = spelt.frames, spelt.standing
        self._masked = encoder.hide == "mask"
        self._after = len(frames[0].after)
        self._body_type = frames[0].body_type
        self._first_position = encoder.first_position
        self._most_tokens = int(spelt.sizes.max())
        self._most_before = int(spelt.before.max())
        self._width = int(spelt.longest.max())
        self._size = (1 + self._after) * self._width + int(spelt.table_sizes.sum())
        self.lengths = spelt.lengths
        ends = np.array((encoder.mask_id, *frames[0].after))
        begins = np.fromiter(itertools.chain.from_iterable(own.before for own in frames), np.int64)
        of_begins = np.stack([begins, numbered(spelt.before)[1]])
        shifts = spelt.shifts[text]
        entries = spelt.sizes * shifts
        word_places = len(ends) * self._width + len(begins) + np.cumsum(entries) - entries
        # One more word than there are, without tokens: rows that show fewer words show it too.
        of_words = [np.append(own, 0) for own in (spelt.sizes, word_places, standing)]
        before_places = len(ends) * self._width + np.cumsum(spelt.before) - spelt.before
        word_tokens, each = _word_tokens(spelt, shifts), np.stack(of_words)
        of_text = np.stack([spelt.before, before_places, spelt.words.counts, spelt.shifts])
        sent = [ends, of_begins, word_tokens, spelt.kept, each, spelt.rows, of_text]
        there = to_device(sent, device)
        self._ends, self._begins, self._tokens, self._words, of_each, rows, self._of_text = there
        self._text = torch.repeat_interleave(rows, output_size=len(self.lengths))
        self._sizes, self._places, self._standing = of_each
        self._extra = (self._sizes - 1).clamp(min=0)

    def table(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Tokens, positions and types of the table.

        First what stands anywhere: a mask token, and what ends a row.  Then what begins the texts,
        and then every token of their words at all of its positions.
        """
        ends, (begins, first), (tokens, stands, shifts) = self._ends, self._begins, self._tokens
        everywhere = len(ends) * self._width
        own = everywhere + len(begins)
        entry = torch.repeat_interleave(shifts, output_size=self._size - own)
        shift = _count_to(len(entry), ends) - (shifts.cumsum(0) - shifts)[entry]
        anywhere = _count_to(self._width, ends)
        # Not all words have all shifts: no row has what would stand behind the longest one's end.
        stands = (stands[entry] + shift).clamp(max=self._width - 1)
        positions = torch.cat([anywhere.repeat(len(ends)), first, stands])
        types = torch.full_like(positions, self._body_type)
        types[everywhere:own] = 0
        found = torch.cat([ends[:, None].expand(-1, self._width).flatten(), begins, tokens[entry]])
        return found, positions + self._first_position, types

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


def _word_tokens(spelt: SpeltTexts, shifts: Ids) -> Ids:
    """Every token of all words, where it stands without a shift, and how many shifts it has."""
    text, standing = spelt.standing
    first_tokens = np.cumsum(spelt.words.sizes) - spelt.words.sizes
    word, piece = numbered(spelt.sizes)
    tokens = spelt.words.tokens[first_tokens[spelt.words.numbers[word]] + piece]
    stands = (spelt.before[text] + standing)[word] + piece
    return np.stack([tokens, stands, shifts[word]])

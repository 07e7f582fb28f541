"""From kept sets to rows of tokens, without tokenising a masked text even once.

Guarantee: **a hidden word leaves no trace.**  A row is a function of the kept words, their
positions and the number of words.  To that end

* each word is tokenised by itself, once, and in one way (`tokenizing`); a hidden word stands for
  exactly one token, whatever its own tokens are;
* only the first `words_read` words are read, a number that does not depend on any word;
* a kept word gives at most ``TOKENS_PER_WORD`` tokens of its first ``CHARACTERS_PER_WORD``
  characters, so that it cannot push the others out; rows too long for the model are cut *after*
  hiding;
* text that spells a special token (``[SEP]``, ``<s>``, ``[MASK]``) is read as plain characters,
  or as the unknown token.  An ordinary token that was named by ``mask_token`` can be written: such
  a word looks hidden where it is shown, but which words are hidden is decided by positions alone.

With ``hide="mask"`` a hidden word is one mask token.  With ``hide="drop"`` its mask token is left
out, and the others keep the positions that they have in the masked row.

This module knows tokens but no model, and does not import torch.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.families import KeptSets
from ranmask.errors import ModelError
from ranmask.models.base import DeletedCopies, DrawnCopies, MaskedCopies, shown
from ranmask.models.flat import Ids, flat_tokens, number_words, numbered
from ranmask.models.tokenizing import Frame, RowFormat, frame_of, mask_id_of, split_one_way
from ranmask.words import Document, Hiding

_WordSet: TypeAlias = tuple[bool, tuple[str, ...]]
"""Words to draw one from, and whether it begins a text."""

TOKENS_PER_WORD = 16
CHARACTERS_PER_WORD = 256

_CACHED_WORDS = 100_000
_CACHED_SETS = 10_000
_ROWS_LAID_OUT = 2048  # of several texts at once: they are as wide as the widest


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows of one text's copies, padded on the right to a common width.

    ``ids`` and ``positions`` have shape (copies, width); row i uses its first ``lengths[i]``
    places.  From ``first_body_place`` on, tokens are of type ``body_type``; before it, of type 0.
    """

    ids: Ids
    positions: Ids
    lengths: Ids
    first_body_place: int
    body_type: int

    def __len__(self) -> int:
        return len(self.lengths)

    def some(self, rows: npt.NDArray[Any]) -> TokenRows:
        """Some of the rows."""
        ids, positions = self.ids[rows], self.positions[rows]
        return replace(self, ids=ids, positions=positions, lengths=self.lengths[rows])

    def part(self, start: int, stop: int) -> TokenRows:
        """The rows from ``start`` up to ``stop``, no wider than the longest of them."""
        rows, lengths = slice(start, stop), self.lengths[start:stop]
        width = int(lengths.max())
        ids, positions = self.ids[rows, :width], self.positions[rows, :width]
        return TokenRows(ids, positions, lengths, self.first_body_place, self.body_type)


@dataclass(frozen=True, eq=False)
class NumberedWords:
    """The words of texts, one text after another, as ``numbers`` in a list of distinct words.

    ``sizes`` are the numbers of tokens of the distinct words, ``tokens`` those tokens; ``counts``
    the words of each text.
    """

    numbers: Ids
    counts: Ids
    sizes: Ids
    tokens: Ids

    @property
    def first_words(self) -> Ids:
        """Where the words of each text begin."""
        return np.cumsum(self.counts) - self.counts


class WordEncoder:
    """Turns a text and its kept sets into token rows, as a model ``takes`` them.

    Random splits are switched off in the tokenizer.  ``mask_token``: another token to stand for a
    hidden word than the tokenizer's own.
    """

    def __init__(
        self, tokenizer: Any, takes: RowFormat, hide: Hiding, mask_token: str | None = None
    ) -> None:
        split_one_way(tokenizer)
        self.tokenizer = tokenizer
        self.longest, self.pad_id, self.types = takes.longest, takes.pad_id, takes.types
        self.first_position = takes.first_position
        self.hide = hide
        self.mask_token = mask_token
        self.mask_id = mask_id_of(tokenizer, mask_token)
        unknown = tokenizer.unk_token_id
        self._unknown = self.pad_id if unknown is None else int(unknown)
        self._special = set(tokenizer.all_special_ids) - {self._unknown}
        # Tokens that never stand for a word of a text; what is unknown does.
        self.wordless_ids = sorted({*self._special, self.mask_id, self.pad_id})
        self._single, _ = frame_of(tokenizer)
        self._most_premise_tokens = self.longest // 2
        self._pair: tuple[Frame, tuple[int, ...]] | None = None
        self._known: dict[str, tuple[int, ...]] = {}
        self._known_sets: dict[_WordSet, tuple[Ids, Ids]] = {}
        if self.longest < len(self._single.before) + len(self._single.after) + 1:
            raise ModelError(f"the model takes rows of {self.longest} tokens only: no word fits in")

    def words_read(self, document: Document) -> int:
        """How many words fit when each is one token; nothing of the words themselves counts."""
        return min(len(document.words), self.most_words(pair=document.premise is not None))

    def most_words(self, pair: bool = False) -> int:
        """The most words of a text, or of a hypothesis, that are read."""
        if not pair:
            return self.longest - len(self._single.before) - len(self._single.after)
        frame, middle = self._pair_frame()
        special = len(frame.before) + len(middle) + len(frame.after)
        room = self.longest - special - self._most_premise_tokens
        if room < 1:
            raise ModelError(f"the model takes rows of {self.longest} tokens only: no pair fits in")
        return room

    def rows(self, copies: MaskedCopies) -> TokenRows:
        """Token rows of all copies of one text."""
        [rows] = self.rows_of_all([copies])
        return rows

    def rows_of_all(self, copies: Sequence[MaskedCopies]) -> list[TokenRows]:
        """Token rows of all copies of many texts, in their order.

        Texts of few copies, as an attack asks for by the thousand, are laid out together.
        """
        words, frames = self.numbered(copies), self.frames(copies)
        first_words = words.first_words
        visible = [(text.document.premise, text.kept.shape[1]) for text in copies]
        rows = []
        for start, stop in _blocks([len(text) for text in copies], visible):
            kept_sets = [text.kept for text in copies[start:stop]]
            repeats, kept = [len(sets) for sets in kept_sets], np.concatenate(kept_sets)
            shown = words.numbers[np.repeat(first_words[start:stop], repeats)[:, None] + kept]
            counts = np.repeat(words.counts[start:stop], repeats)
            distinct = words.sizes, words.tokens
            rows.append(self._place(distinct, shown, kept, counts, frames[start]))
        return rows

    def rows_of_each(self, copies: Sequence[MaskedCopies]) -> list[TokenRows]:
        """What `rows` gives for each text: those that show as many words are laid out together."""
        order = sorted(range(len(copies)), key=lambda place: copies[place].kept.shape[1])
        places, rows = iter(order), {}
        for block in self.rows_of_all([copies[place] for place in order]):
            start = 0
            while start < len(block):
                place = next(places)
                stop = start + len(copies[place])
                rows[place] = block.part(start, stop)
                start = stop
        return [rows[place] for place in range(len(copies))]

    def rows_of_drawn(self, texts: Sequence[DrawnCopies]) -> list[TokenRows]:
        """The rows that `rows_of_all` lays out for random copies one by one.

        But the sets that words are drawn from are tokenised once; copies choose among their tokens.
        """
        visible = [(text.document.premise, len(text.sets)) for text in texts]
        return [
            self._choose(texts[start:stop], self._frame(visible[start][0]))
            for start, stop in _blocks([len(text) for text in texts], visible)
        ]

    def rows_of_deleted(self, text: DeletedCopies) -> tuple[list[TokenRows], Ids]:
        """The rows that `rows_of_all` lays out for copies that lack words, one by one.

        But each word is tokenised once, and copies of as many words are laid out together.  Also
        which copy each row is.
        """
        kept = np.minimum(text.stays.sum(axis=1), text.words_read)
        # Each word twice, as it begins a text and as it follows another; and what is left of none.
        words = [word[:CHARACTERS_PER_WORD] for word in (*text.document.words, *shown((), ()))]
        spelt = [*words, *(f" {word}" for word in words)]
        distinct = flat_tokens(self._tokens_of(spelt))
        frame = self._frame(text.document.premise)
        rows, order = [], np.argsort(kept, kind="stable")
        for copies in np.split(order, np.flatnonzero(np.diff(kept[order])) + 1):
            count = int(kept[copies[0]])
            chosen = np.full((len(copies), 1), len(words) - 1)
            if count:
                places = np.nonzero(text.stays[copies])[1]
                sizes = text.stays[copies].sum(axis=1)
                first = np.cumsum(sizes) - sizes
                chosen = places[first[:, None] + np.arange(count)]
            chosen = chosen + len(words) * (np.arange(chosen.shape[1]) > 0)
            standing = np.broadcast_to(np.arange(chosen.shape[1]), chosen.shape)
            counts = np.full(len(copies), chosen.shape[1])
            rows.append(self._place(distinct, chosen, standing, counts, frame))
        return rows, order

    def spelt(self, copies: Sequence[MaskedCopies]) -> list[tuple[list[tuple[int, ...]], Frame]]:
        """What rows are laid out from: the tokens of a text's words, and what stands around."""
        words = self.numbered(copies)
        ids = [tuple(own.tolist()) for own in np.split(words.tokens, np.cumsum(words.sizes)[:-1])]
        texts = np.split(words.numbers, words.first_words[1:])[: len(copies)]
        spelt = [[ids[number] for number in numbers.tolist()] for numbers in texts]
        return list(zip(spelt, self.frames(copies), strict=True))

    def numbered(self, copies: Sequence[MaskedCopies]) -> NumberedWords:
        """The words of texts; all that are new are tokenised in one call of the tokenizer."""
        words = [text.document.words[: text.words_read] for text in copies]
        # All but the first word of a text follow a blank, which byte-level tokenizers read.
        numbers, counts, inner = number_words(words)
        firsts = defaultdict[str, int](itertools.count(len(inner)).__next__)
        numbers[np.cumsum(counts) - counts] = [firsts[own[0]] for own in words]
        spelt = [f" {word[:CHARACTERS_PER_WORD]}" for word in inner]
        spelt += [word[:CHARACTERS_PER_WORD] for word in firsts]
        sizes, tokens = flat_tokens(self._tokens_of(spelt))
        return NumberedWords(numbers, counts, sizes, tokens)

    def frames(self, copies: Sequence[MaskedCopies]) -> list[Frame]:
        """What stands around the words of each text."""
        premises = [text.document.premise for text in copies]
        known = {premise: self._frame(premise) for premise in dict.fromkeys(premises)}
        return [known[premise] for premise in premises]

    def inner_word_ids(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """The tokens of words that do not begin a text, all of them."""
        return self._plain_ids([f" {word}" for word in words])

    def lay_out(
        self, words: Sequence[tuple[int, ...]], kept: KeptSets, frame: Frame | None = None
    ) -> TokenRows:
        """Rows of the copies of one text, by the tokens of its words."""
        counts = np.full(len(kept), len(words))
        return self._place(flat_tokens(words), kept, kept, counts, frame or self._single)

    def _choose(self, texts: Sequence[DrawnCopies], frame: Frame) -> TokenRows:
        """Rows of texts with as many words."""
        sets = [[(place == 0, words) for place, words in enumerate(text.sets)] for text in texts]
        numbers, _, distinct = number_words(sets)
        sizes, tokens = map(np.concatenate, zip(*map(self._tokens_of_set, distinct), strict=True))
        words = np.array([len(words) for _, words in distinct])
        starts = (np.cumsum(words) - words)[numbers].reshape(len(texts), -1)
        pairs = zip(texts, starts, strict=True)
        shown = np.concatenate([text.choices + own for text, own in pairs])
        kept = np.broadcast_to(np.arange(shown.shape[1]), shown.shape)
        counts = np.full(len(shown), shown.shape[1])
        return self._place((sizes, tokens), shown, kept, counts, frame)

    def _place(
        self,
        words: tuple[Ids, Ids],
        kept_words: npt.NDArray[np.integer],
        kept: npt.NDArray[np.integer],
        word_counts: Ids,
        frame: Frame,
    ) -> TokenRows:
        """Rows of copies that show words of a list: the sizes and tokens of ``words``.

        Row ``i`` of ``kept_words`` has the places in that list of what copy ``i`` shows, row ``i``
        of ``kept`` where they stand among its ``word_counts[i]`` words.
        """
        sizes, tokens = words
        copies, visible = kept.shape
        before, after = (np.array(ids, dtype=np.int64) for ids in (frame.before, frame.after))
        room = self.longest - len(after)  # the first position that no word's token may take
        offsets = np.cumsum(sizes) - sizes

        # Where each kept word starts in the masked row: one place for each hidden word before it,
        # and the tokens of the kept words before it.
        kept_sizes = sizes[kept_words]
        kept_before = np.cumsum(kept_sizes, axis=1) - kept_sizes
        starts = len(before) + (kept - np.arange(visible)) + kept_before
        ends = np.minimum(len(before) + word_counts - visible + kept_sizes.sum(axis=1), room)

        # All tokens of all kept words, flat: their row, position and id.
        word, within = numbered(kept_sizes.ravel())
        row = word // visible
        position = starts.ravel()[word] + within
        token = tokens[offsets[kept_words].ravel()[word] + within]
        fits = position < room
        row, position, token = row[fits], position[fits], token[fits]

        if self.hide == "mask":
            lengths, place = ends + len(after), position
        else:
            per_row = np.bincount(row, minlength=copies)
            lengths = len(before) + per_row + len(after)
            first = np.cumsum(per_row) - per_row
            place = len(before) + np.arange(len(row)) - first[row]

        # No model reads an empty row: words without tokens, with nothing around them, are one.
        lengths = np.maximum(lengths, 1)
        width = int(lengths.max())
        fill = self.mask_id if self.hide == "mask" else self.pad_id
        ids = np.full((copies, width), fill, dtype=np.int64)
        positions = np.broadcast_to(np.arange(width), (copies, width)).copy()
        ids[:, : len(before)] = before
        ids[row, place] = token
        positions[row, place] = position
        everyone = np.arange(copies)[:, None]
        tail = (lengths - len(after))[:, None] + np.arange(len(after))
        ids[everyone, tail] = after
        positions[everyone, tail] = ends[:, None] + np.arange(len(after))
        beyond = np.arange(width) >= lengths[:, None]
        ids[beyond] = self.pad_id
        positions[beyond] = 0
        return TokenRows(ids, positions, lengths, len(before), frame.body_type)

    def _frame(self, premise: str | None) -> Frame:
        if premise is None:
            return self._single
        frame, middle = self._pair_frame()
        tokens = self._plain_ids([premise])[0][: self._most_premise_tokens]
        return Frame((*frame.before, *tokens, *middle), frame.after, frame.body_type)

    def _pair_frame(self) -> tuple[Frame, tuple[int, ...]]:
        if self._pair is None:
            frame, middle = frame_of(self.tokenizer, pair=True)
            self._pair = frame if self.types else replace(frame, body_type=0), middle
        return self._pair

    def _tokens_of_set(self, key: _WordSet) -> tuple[Ids, Ids]:
        """How many tokens each word of a set has, and those."""
        known = self._known_sets.get(key)
        if known is None:
            first, words = key
            spelt = [("" if first else " ") + word[:CHARACTERS_PER_WORD] for word in words]
            known = flat_tokens(self._tokens_of(spelt))
            if len(self._known_sets) >= _CACHED_SETS:
                self._known_sets.clear()
            self._known_sets[key] = known
        return known

    def _tokens_of(self, spelt: Sequence[str]) -> list[tuple[int, ...]]:
        """The tokens of words as they are spelt, with the blank before them."""
        # Looked up once and kept at hand: another thread may empty the cache meanwhile.
        found = list(map(self._known.get, spelt))
        unread = zip(spelt, found, strict=True)
        new: dict[str, tuple[int, ...]] = {word: () for word, ids in unread if ids is None}
        if new:
            if len(self._known) + len(new) > _CACHED_WORDS:
                self._known.clear()
            read = [ids[:TOKENS_PER_WORD] for ids in self._plain_ids(list(new))]
            new = dict(zip(new, read, strict=True))
            self._known |= new
        return [new[word] if ids is None else ids for word, ids in zip(spelt, found, strict=True)]

    def _plain_ids(self, texts: list[str]) -> list[tuple[int, ...]]:
        encoded = self.tokenizer(
            texts, add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        # Some vocabularies hold special tokens as ordinary pieces too.
        return [
            tuple(self._unknown if token in self._special else token for token in ids)
            for ids in encoded["input_ids"]
        ]


def _blocks(
    copies: Sequence[int], visible: Sequence[tuple[str | None, int]]
) -> Iterator[tuple[int, int]]:
    """Runs of texts to lay out together: few copies each, that show as many words.

    ``visible`` has a text's premise and that number.  A text with a premise is laid out alone.
    """
    start = rows = 0
    for place, count in enumerate(copies):
        fits = rows + count <= _ROWS_LAID_OUT and visible[place] == visible[start]
        if place > start and not (fits and visible[place][0] is None):
            yield start, place
            start, rows = place, 0
        rows += count
    if copies:
        yield start, len(copies)

"""From kept sets to rows of tokens, without tokenising a masked text even once.

Guarantee: **a hidden word leaves no trace.**  A row is a function of the kept words, their
positions and the number of words.  To that end

* each word is tokenised by itself, once, and in one way (`splitting`); a hidden word stands for
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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.certificates.families import KeptSets
from ranmask.errors import ModelError
from ranmask.models.base import DrawnCopies, Hiding, MaskedCopies
from ranmask.models.frames import Frame, pair_frame, single_frame
from ranmask.models.splitting import split_one_way
from ranmask.words import Document

Ids: TypeAlias = npt.NDArray[np.int64]

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


class WordEncoder:
    """Turns a text and its kept sets into token rows.

    Args:
        tokenizer: A Hugging Face tokenizer.  Random splits are switched off in it (`splitting`).
        longest: The longest row that the model takes, in tokens.
        hide: ``mask`` or ``drop``.
        mask_token: Another token to stand for a hidden word than the tokenizer's own.
        pad_id: The token that fills short rows up; the tokenizer's own by default.
        types: Whether the model tells premise and hypothesis apart by token types.
    """

    def __init__(
        self,
        tokenizer: Any,
        longest: int,
        hide: Hiding,
        mask_token: str | None = None,
        *,
        pad_id: int | None = None,
        types: bool = True,
    ) -> None:
        split_one_way(tokenizer)
        self.tokenizer = tokenizer
        self.longest = longest
        self.hide = hide
        self.mask_token = mask_token
        self.mask_id = _mask_id(tokenizer, mask_token)
        self.types = types
        pad = tokenizer.pad_token_id if pad_id is None else pad_id
        self.pad_id = 0 if pad is None else int(pad)
        unknown = tokenizer.unk_token_id
        self._unknown = self.pad_id if unknown is None else int(unknown)
        self._special = set(tokenizer.all_special_ids) - {self._unknown}
        # Tokens that never stand for a word of a text; what is unknown does.
        self.wordless_ids = sorted({*self._special, self.mask_id, self.pad_id})
        self._single = single_frame(tokenizer)
        self._pair: tuple[Frame, tuple[int, ...]] | None = None
        self._known: dict[str, tuple[int, ...]] = {}
        self._known_sets: dict[tuple[bool, tuple[str, ...]], tuple[Ids, Ids]] = {}
        if self.longest < len(self._single.before) + len(self._single.after) + 1:
            raise ModelError(f"the model takes rows of {longest} tokens only: no word fits in")

    def words_read(self, document: Document) -> int:
        """How many words fit when each is one token; nothing of the words themselves counts."""
        return min(len(document.words), self.most_words(pair=document.premise is not None))

    def most_words(self, pair: bool = False) -> int:
        """The most words of a text, or of a hypothesis, that are read."""
        if not pair:
            return self.longest - len(self._single.before) - len(self._single.after)
        frame, middle = self._pair_frame()
        special = len(frame.before) + len(middle) + len(frame.after)
        room = self.longest - special - self._most_premise_tokens()
        if room < 1:
            raise ModelError(f"the model takes rows of {self.longest} tokens only: no pair fits in")
        return room

    def rows(self, copies: MaskedCopies) -> TokenRows:
        """Token rows of all copies of one text."""
        [words] = self._tokenise([_words_read(copies)])
        return self._lay_out([words], [copies.kept], self._frame(copies.document.premise))

    def rows_of_all(self, copies: Sequence[MaskedCopies]) -> list[TokenRows]:
        """Token rows of all copies of many texts, in their order.

        Texts of few copies, as an attack asks for by the thousand, are laid out together.
        """
        words = self._tokenise([_words_read(one) for one in copies])
        return [
            self._lay_out(
                words[start:stop],
                [one.kept for one in copies[start:stop]],
                self._frame(copies[start].document.premise),
            )
            for start, stop in _blocks(
                [len(one) for one in copies],
                [None if one.document.premise is not None else one.kept.shape[1] for one in copies],
            )
        ]

    def spelt(self, copies: Sequence[MaskedCopies]) -> list[tuple[list[tuple[int, ...]], Frame]]:
        """What rows are laid out from: the tokens of a text's words, and what stands around."""
        words = self._tokenise([_words_read(one) for one in copies])
        frames = [self._frame(one.document.premise) for one in copies]
        return list(zip(words, frames, strict=True))

    def rows_of_drawn(self, texts: Sequence[DrawnCopies]) -> list[TokenRows]:
        """Token rows of random copies of texts, in their order: all words are visible.

        The same rows as `rows_of_all` lays out for the copies one by one; but the sets that
        words are drawn from are tokenised once, and copies choose among their tokens.
        """
        return [
            self._choose(texts[start:stop], self._frame(texts[start].premise))
            for start, stop in _blocks(
                [len(one) for one in texts],
                [None if one.premise is not None else len(one.sets) for one in texts],
            )
        ]

    def _choose(self, texts: Sequence[DrawnCopies], frame: Frame) -> TokenRows:
        """Rows of texts with as many words."""
        offsets: dict[tuple[bool, tuple[str, ...]], int] = {}
        parts: list[tuple[Ids, Ids]] = []
        known = 0
        chosen = []
        for text in texts:
            starts = []
            for place, words in enumerate(text.sets):
                key = (place == 0, words)
                if key not in offsets:
                    offsets[key] = known
                    parts.append(self._tokens_of_set(key))
                    known += len(words)
                starts.append(offsets[key])
            chosen.append(text.choices + np.array(starts))
        sizes, tokens = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        shown = np.concatenate(chosen)
        kept = np.broadcast_to(np.arange(shown.shape[1]), shown.shape)
        counts = np.full(len(shown), shown.shape[1])
        return _place(
            sizes,
            tokens,
            shown,
            kept,
            counts,
            frame,
            self.longest,
            self.mask_id,
            self.pad_id,
            self.hide,
        )

    def _tokens_of_set(self, key: tuple[bool, tuple[str, ...]]) -> tuple[Ids, Ids]:
        """How many tokens each word of a set has, and those; ``key`` says if it begins a text."""
        known = self._known_sets.get(key)
        if known is None:
            first, words = key
            spelt = [("" if first else " ") + word[:CHARACTERS_PER_WORD] for word in words]
            tokens = self._tokens_of(spelt)
            flat = [token for word in spelt for token in tokens[word]]
            sizes = np.array([len(tokens[word]) for word in spelt])
            known = sizes, np.array(flat, dtype=np.int64)
            if len(self._known_sets) >= _CACHED_SETS:
                self._known_sets.clear()
            self._known_sets[key] = known
        return known

    def inner_word_ids(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """The tokens of words that do not begin a text, all of them."""
        return self._plain_ids([f" {word}" for word in words])

    def lay_out(self, words: Sequence[tuple[int, ...]], kept: KeptSets) -> TokenRows:
        """Rows of a single text for words whose tokens are known."""
        return self._lay_out([words], [kept], self._single)

    def _lay_out(
        self,
        texts: Sequence[Sequence[tuple[int, ...]]],
        kept: Sequence[KeptSets],
        frame: Frame,
    ) -> TokenRows:
        return _lay_out(texts, kept, frame, self.longest, self.mask_id, self.pad_id, self.hide)

    def _frame(self, premise: str | None) -> Frame:
        if premise is None:
            return self._single
        frame, middle = self._pair_frame()
        tokens = self._plain_ids([premise])[0][: self._most_premise_tokens()]
        return Frame((*frame.before, *tokens, *middle), frame.after, frame.body_type)

    def _pair_frame(self) -> tuple[Frame, tuple[int, ...]]:
        if self._pair is None:
            frame, middle = pair_frame(self.tokenizer)
            self._pair = frame if self.types else replace(frame, body_type=0), middle
        return self._pair

    def _most_premise_tokens(self) -> int:
        return self.longest // 2

    def _tokenise(self, texts: Sequence[Sequence[str]]) -> list[list[tuple[int, ...]]]:
        """The tokens of every word of every text; all new words in one call of the tokenizer."""
        # A word inside a text follows a blank, which byte-level tokenizers read as part of it.
        spelt = [
            [
                (" " if place else "") + word[:CHARACTERS_PER_WORD]
                for place, word in enumerate(words)
            ]
            for words in texts
        ]
        known = self._tokens_of(word for words in spelt for word in words)
        return [list(map(known.__getitem__, words)) for words in spelt]

    def _tokens_of(self, spelt: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The tokens of words as they are spelt, with the blank before them."""
        # Looked up once and kept at hand: another thread may empty the cache meanwhile.
        found = {word: self._known.get(word) for word in spelt}
        known = {word: ids for word, ids in found.items() if ids is not None}
        new = [word for word in found if word not in known]
        if new:
            if len(self._known) + len(new) > _CACHED_WORDS:
                self._known.clear()
            for word, read in zip(new, self._plain_ids(new), strict=True):
                known[word] = self._known[word] = read[:TOKENS_PER_WORD]
        return known

    def _plain_ids(self, texts: list[str]) -> list[tuple[int, ...]]:
        encoded = self.tokenizer(
            texts, add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        # Some vocabularies hold special tokens as ordinary pieces too.
        return [
            tuple(self._unknown if token in self._special else token for token in ids)
            for ids in encoded["input_ids"]
        ]


def _words_read(copies: MaskedCopies) -> tuple[str, ...]:
    return copies.document.words[: copies.words_read]


def _blocks(copies: Sequence[int], words: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """Runs of texts to lay out together: few copies each, that show as many words.

    A text whose number of words is None has a premise, and is laid out alone.
    """
    start = rows = 0
    for place, (count, shown) in enumerate(zip(copies, words, strict=True)):
        alike = rows + count <= _ROWS_LAID_OUT and shown is not None and shown == words[start]
        if place > start and not alike:
            yield start, place
            start, rows = place, 0
        rows += count
    if copies:
        yield start, len(copies)


def _lay_out(
    texts: Sequence[Sequence[tuple[int, ...]]],
    kept_sets: Sequence[KeptSets],
    frame: Frame,
    longest: int,
    mask_id: int,
    pad_id: int,
    hide: Hiding,
) -> TokenRows:
    """Rows of the copies of texts, each a list of words' tokens with kept sets of its own."""
    kept = np.concatenate(kept_sets)
    counts = np.array([len(words) for words in texts], dtype=np.int64)
    repeats = [len(sets) for sets in kept_sets]
    # Of each copy: how many words its text has, and where they begin among all words.
    word_counts = np.repeat(counts, repeats)
    kept_words = np.repeat(np.cumsum(counts) - counts, repeats)[:, None] + kept
    sizes = np.array([len(ids) for words in texts for ids in words], dtype=np.int64)
    tokens = np.array([token for words in texts for ids in words for token in ids], dtype=np.int64)
    return _place(
        sizes, tokens, kept_words, kept, word_counts, frame, longest, mask_id, pad_id, hide
    )


def _place(
    sizes: Ids,
    tokens: Ids,
    kept_words: npt.NDArray[np.integer],
    kept: npt.NDArray[np.integer],
    word_counts: Ids,
    frame: Frame,
    longest: int,
    mask_id: int,
    pad_id: int,
    hide: Hiding,
) -> TokenRows:
    """Rows of copies that show words of a list, told by their places in that list.

    ``sizes`` and ``tokens`` are those of the list's words, one after another; row ``i`` of
    ``kept_words`` names the words that copy ``i`` shows, and of ``kept`` where they stand among
    its ``word_counts[i]`` words.
    """
    copies, visible = kept.shape
    before = np.array(frame.before, dtype=np.int64)
    after = np.array(frame.after, dtype=np.int64)
    room = longest - len(after)  # the first position that no word's token may take

    offsets = np.cumsum(sizes) - sizes

    # Where each kept word starts in the masked row: one place for each hidden word before it,
    # and the tokens of the kept words before it.
    kept_sizes = sizes[kept_words]
    kept_before = np.cumsum(kept_sizes, axis=1) - kept_sizes
    starts = len(before) + (kept - np.arange(visible)) + kept_before
    ends = np.minimum(len(before) + word_counts - visible + kept_sizes.sum(axis=1), room)

    # All tokens of all kept words, flat: their row, position and id.
    flat_sizes = kept_sizes.ravel()
    within = np.arange(int(flat_sizes.sum())) - np.repeat(
        np.cumsum(flat_sizes) - flat_sizes, flat_sizes
    )
    row = np.repeat(np.repeat(np.arange(copies), visible), flat_sizes)
    position = np.repeat(starts.ravel(), flat_sizes) + within
    token = tokens[np.repeat(offsets[kept_words].ravel(), flat_sizes) + within]
    fits = position < room
    row, position, token = row[fits], position[fits], token[fits]

    if hide == "mask":
        lengths, place = ends + len(after), position
    else:
        per_row = np.bincount(row, minlength=copies)
        lengths = len(before) + per_row + len(after)
        first = np.cumsum(per_row) - per_row
        place = len(before) + np.arange(len(row)) - first[row]

    # No model reads an empty row: words without tokens, with nothing around them, are one token.
    lengths = np.maximum(lengths, 1)
    width = int(lengths.max())
    ids = np.full((copies, width), mask_id if hide == "mask" else pad_id, dtype=np.int64)
    positions = np.broadcast_to(np.arange(width), (copies, width)).copy()
    ids[:, : len(before)] = before
    ids[row, place] = token
    positions[row, place] = position
    everyone = np.arange(copies)[:, None]
    tail = (lengths - len(after))[:, None] + np.arange(len(after))
    ids[everyone, tail] = after
    positions[everyone, tail] = ends[:, None] + np.arange(len(after))
    beyond = np.arange(width) >= lengths[:, None]
    ids[beyond] = pad_id
    positions[beyond] = 0
    return TokenRows(ids, positions, lengths, len(before), frame.body_type)


def _mask_id(tokenizer: Any, mask_token: str | None) -> int:
    if mask_token is None:
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"{type(tokenizer).__name__} has no mask token: name a token of its vocabulary "
                "that stands for a hidden word with mask_token=..."
            )
        return int(tokenizer.mask_token_id)
    found = tokenizer.convert_tokens_to_ids(mask_token)
    if found is None or (found == tokenizer.unk_token_id and mask_token != tokenizer.unk_token):
        raise ModelError(f"mask_token {mask_token!r} is not a token of the model's vocabulary")
    return int(found)

"""The words that a table with a vocabulary knows, and which of them a changed character makes."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

_ANY = "\0"  # stands for any one character: a known word holds letters and digits only


class KnownWords:
    """Known words by number, ``places``; everything is asked and answered in normal forms.

    >>> known = KnownWords(["cat", "cart", "art", "bat"])
    >>> [known.words[place] for place in sorted(known.changed("cat"))]
    ['cart', 'bat']
    >>> [known.words[place] for place in known.joined("c", "t")]
    ['cat']
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self.places = {word: place for place, word in enumerate(self.words)}
        self.longest = max(map(len, self.words), default=0)
        self._shortest = min(map(len, self.words), default=0)

    def changed(self, word: str) -> set[int]:
        """Other known words that one letter inserted, deleted or replaced makes of a word."""
        found: set[int] = set()
        if len(word) <= self.longest + 1:
            for at in range(len(word) + 1):
                before, after = word[:at], word[at:]
                found.update(self._patterns.get(before + _ANY + after, ()))
                found.update(self._patterns.get(before + _ANY + after[1:], ()) if after else ())
                found.add(self.places.get(before + after[1:], -1))
        return found - {-1, self.places.get(word)}

    def cuts(self, word: str) -> Iterator[tuple[int, int]]:
        """Both parts that a blank cuts a word into, between two letters or in the place of one.

        Only where one is known; -1 is the other.
        """
        places, most = self.places, len(word) - 1
        near = self.longest + 1
        for at in {*range(1, min(near, most) + 1), *range(max(1, most - near + 1), most + 1)}:
            before = places.get(word[:at], -1)
            for after in (places.get(word[at:], -1), places.get(word[at + 1 :], -1)):
                if before >= 0 or after >= 0:
                    yield before, after

    def parts(self, word: str) -> set[int]:
        """The known words that stand inside a word, itself included."""
        inside = {
            word[end - size : end]
            for size in range(self._shortest, min(self.longest, len(word)) + 1)
            for end in range(size, len(word) + 1)
        }
        return set(map(self.places.__getitem__, inside & self.places.keys()))

    def begins_and_ends(self, word: str) -> tuple[bool, bool]:
        """Whether a longer known word begins with this one, and whether one ends with it."""
        return _begun(self._sorted, word), _begun(self._mirrored, word[::-1])

    def joined(self, first: str, second: str) -> list[int]:
        """The known words that are two words, with at most a letter between them."""
        if len(first) + len(second) > self.longest:
            return []
        found = list(self._patterns.get(first + _ANY + second, ()))
        return found + [place for place in [self.places.get(first + second)] if place is not None]

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.words)

    @cached_property
    def _mirrored(self) -> list[str]:
        return sorted(word[::-1] for word in self.words)

    @cached_property
    def _patterns(self) -> dict[str, list[int]]:
        """Known words with any character in the place of one of theirs."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(self.words):
            for at in range(len(word)):
                found[word[:at] + _ANY + word[at + 1 :]].append(place)
        return dict(found)


def _begun(words: Sequence[str], beginning: str) -> bool:
    """Whether one of these sorted words is longer and begins so."""
    at = bisect_right(words, beginning)
    return at < len(words) and words[at].startswith(beginning)

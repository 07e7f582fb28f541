"""What a word table reads of a word: hashes of a few forms of it and of its character n-grams.

Pinned by tests: a saved table means nothing under other features.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ranmask.models.normalising import PUNCTUATION

WHOLE = 2**8
"""The weight of a whole form of a word; its n-grams share another, each less than this."""

FORMS = 3
"""How many of a word's features are whole forms; the others are n-grams."""

_GRAMS = (3, 4, 5)
_MOST_CHARACTERS_IN_GRAMS = 64  # the rest of a longer word counts in its whole forms only
_LOWER, _CASED, _RAW, _GRAM = (zlib.crc32(kind) for kind in (b"lower", b"cased", b"raw", b"gram"))

_ALL_BITS = 0xFFFFFFFF
# The table of CRC-32, from its values for single bytes: the first step inverts the byte, the
# last step everything.
_STEP = np.array([zlib.crc32(bytes([255 ^ one])) ^ 0xFF000000 for one in range(256)], np.uint32)


def features(words: Iterable[str]) -> tuple[npt.NDArray[np.int64], ...]:
    """Hashes of the features of words, all in a row; their weights; and where each word starts.

    First `FORMS` whole forms, each of weight `WHOLE`: without punctuation at the ends and in
    lower case; without punctuation; as it stands.  Then the n-grams of the first, between ``<``
    and ``>``; the n of them weigh ``WHOLE / sqrt(n)`` each.  A word of punctuation only is its
    own form.
    """
    forms = [_forms(word) for word in words]
    shown = [one for _, one in forms]
    lengths = np.array([len(one) for one in shown], dtype=np.int64)
    grams = np.sum([np.maximum(lengths - size + 1, 0) for size in _GRAMS], axis=0)
    starts = np.cumsum(FORMS + grams) - (FORMS + grams)
    whole = starts[:, None] + np.arange(FORMS)
    hashes = np.empty(int((FORMS + grams).sum()), dtype=np.int64)
    hashes[whole] = [found for found, _ in forms]
    weights = np.repeat([_gram_weight(count) for count in grams.tolist()], FORMS + grams)
    weights[whole] = WHOLE
    plain = np.array([one.isascii() for one in shown])
    text = "".join(one for one in shown if one.isascii())
    _fill_plain_grams(hashes, text, lengths[plain], starts[plain])
    for place in np.flatnonzero(~plain).tolist():
        found = _grams(shown[place])
        start = int(starts[place]) + FORMS
        hashes[start : start + len(found)] = found
    return hashes, weights, starts


def _forms(word: str) -> tuple[tuple[int, ...], str]:
    """Hashes of the whole forms, and what n-grams are cut from."""
    cased = word.strip(PUNCTUATION) or word
    lower = cased.lower()
    hashes = (
        zlib.crc32(lower.encode(), _LOWER),
        zlib.crc32(cased.encode(), _CASED),
        zlib.crc32(word.encode(), _RAW),
    )
    return hashes, f"<{lower[:_MOST_CHARACTERS_IN_GRAMS]}>"


def _grams(shown: str) -> list[int]:
    return [
        zlib.crc32(shown[start : start + size].encode(), _GRAM)
        for size in _GRAMS
        for start in range(len(shown) - size + 1)
    ]


def _fill_plain_grams(
    hashes: npt.NDArray[np.int64],
    shown: str,
    lengths: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
) -> None:
    """Put the `_grams` of ASCII words, all steps of CRC-32 for all places at once, in ``hashes``.

    ``shown``: what they are cut from, one word after another; ``lengths`` of each.
    """
    letters = np.frombuffer(shown.encode() + bytes(max(_GRAMS)), dtype=np.uint8)
    places = np.arange(len(shown)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    left = np.repeat(lengths, lengths) - places
    targets = np.repeat(starts + FORMS, lengths) + places
    state = np.full(len(shown), _GRAM ^ _ALL_BITS, dtype=np.uint32)
    for size in range(1, max(_GRAMS) + 1):
        read = letters[size - 1 : size - 1 + len(shown)]
        state = _STEP[(state ^ read) & 0xFF] ^ (state >> 8)
        if size in _GRAMS:
            inside = left >= size
            hashes[targets[inside]] = state[inside] ^ _ALL_BITS
            targets += np.repeat(np.maximum(lengths - size + 1, 0), lengths)


@functools.cache
def _gram_weight(count: int) -> int:
    # The integer nearest to WHOLE / sqrt(count), without floating point.
    return (math.isqrt(4 * WHOLE * WHOLE // count) + 1) // 2

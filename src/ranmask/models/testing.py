"""Classifiers that need no model, for tests, benchmarks and first steps.

`keyword_classifier` is deterministic and instant, and can be named on the command line:
``ranmask certify --model ranmask.models.testing:keyword_classifier --keep 1 "..."``.
"""

from __future__ import annotations

import zlib

POSITIVE = {"good", "great", "fine", "excellent", "wonderful", "superb", "love", "best"}
NEGATIVE = {"bad", "poor", "awful", "terrible", "dreadful", "boring", "hate", "worst"}


def keyword_classifier(texts: list[str]) -> list[list[float]]:
    """Scores of (negative, positive): which list of key words a text shows more of."""
    rows = []
    for text in texts:
        words = text.lower().split()
        negative = sum(word in NEGATIVE for word in words)
        positive = sum(word in POSITIVE for word in words)
        seen = 2 + negative + positive
        rows.append([(1 + negative) / seen, (1 + positive) / seen])
    return rows


def hashing_classifier(texts: list[str]) -> list[list[float]]:
    """Scores of three classes that change wildly with every visible word and position."""
    rows = []
    for text in texts:
        digest = zlib.crc32(text.encode())
        parts = [1 + (digest >> shift) % 97 for shift in (0, 8, 16)]
        rows.append([part / sum(parts) for part in parts])
    return rows

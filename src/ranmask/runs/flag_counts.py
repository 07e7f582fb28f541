"""How often a detector flags what it should, and what it should not.

Intervals are Clopper-Pearson's, 95 %: how far the share on all texts that are drawn alike may lie
from that of these.  Long texts have more words to be flagged by, so false alarms are counted by
length, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ranmask.certificates.sampled import lower_bound, upper_bound
from ranmask.results import Detection

LENGTHS = (10, 30, 100, 300)
"""Most words of a text in each bucket of lengths but the last."""

_OUTSIDE = 0.05  # of the interval


@dataclass
class Share:
    """``part`` of ``whole`` texts."""

    part: int = 0
    whole: int = 0

    def add(self, counted: bool) -> None:
        """Count a text."""
        self.part += counted
        self.whole += 1

    def values(self) -> dict[str, Any]:
        """The share and its interval, as plain JSON values; nothing of no texts."""
        if not self.whole:
            return {"texts": 0}
        tail = _OUTSIDE / 2
        return {
            "texts": self.whole,
            "share": self.part / self.whole,
            "interval": [
                lower_bound(self.part, self.whole, tail),
                upper_bound(self.part, self.whole, tail),
            ],
        }


@dataclass
class FlagCounts:
    """How often texts are flagged that should be, and that should not.

    ``recall`` and ``false_positives``: of texts of the class, and of others.  ``certified``: of
    texts of the class, those that are flagged and proved to stay so at each number of changed words
    in ``words``, whatever is added where the detector allows additions; at 0, by additions alone.
    ``groups``: the same of texts that were counted with each name of a group.
    """

    words: tuple[int, ...] = (0, 1, 2, 5)
    recall: Share = field(default_factory=Share)
    false_positives: Share = field(default_factory=Share)
    certified: dict[int, Share] = field(default_factory=dict)
    by_length: dict[str, Share] = field(default_factory=dict)
    groups: dict[str, FlagCounts] = field(default_factory=dict)

    def add(
        self, flagged: bool, radius: int | None, words: int, expected: bool, group: object = None
    ) -> None:
        """Count a text, which should be flagged where it is ``expected``."""
        if group is not None:
            own = self.groups.setdefault(str(group), FlagCounts(self.words))
            own.add(flagged, radius, words, expected)
        if not expected:
            self.false_positives.add(flagged)
            self.by_length.setdefault(length_name(words), Share()).add(flagged)
            return
        self.recall.add(flagged)
        for changed in self.words:
            proved = flagged and radius is not None and radius >= changed
            self.certified.setdefault(changed, Share()).add(proved)

    def values(self) -> dict[str, Any]:
        """All shares as plain JSON values."""
        names = [length_name(most) for most in (*LENGTHS, LENGTHS[-1] + 1)]
        groups = sorted(self.groups.items())
        by = {"by": {name: group.values() for name, group in groups}} if groups else {}
        return {
            "recall": self.recall.values(),
            "false_positives": self.false_positives.values(),
            "certified_recall": {
                str(changed): share.values() for changed, share in self.certified.items()
            },
            "false_positives_by_words": {
                name: self.by_length[name].values() for name in names if name in self.by_length
            },
            **by,
        }


def length_name(words: int) -> str:
    """The bucket of a text's length, as ``31-100``.

    >>> length_name(31), length_name(301)
    ('31-100', '301-')
    """
    least = 1
    for most in LENGTHS:
        if words <= most:
            return f"{least}-{most}"
        least = most + 1
    return f"{least}-"


def counted(
    found: Iterable[Detection], expected: Iterable[bool], groups: Iterable[object] | None = None
) -> FlagCounts:
    """What detections of labelled texts amount to; ``groups``: the one of each, None of none."""
    counts = FlagCounts()
    pairs = zip(found, expected, strict=True)
    named = itertools.repeat(None) if groups is None else groups
    for (detection, flag), group in zip(pairs, named, strict=False):
        counts.add(detection.flagged, detection.radius, detection.words, flag, group)
    return counts

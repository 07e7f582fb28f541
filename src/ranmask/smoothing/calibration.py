"""Where a detector's threshold is set: at a rate of false alarms, on whole documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ranmask.errors import DataError
from ranmask.smoothing.detectors import Detector
from ranmask.words import Text


def calibrated(
    detector: Detector, texts: Sequence[Text], expected: Sequence[bool], rate: Fraction
) -> Detector:
    """The detector with the smallest threshold that flags a share of at most ``rate``.

    That is of the texts that are not ``expected`` to be flagged; nothing is asked of the others.
    """
    harmless = [text for text, flag in zip(texts, expected, strict=True) if not flag]
    if not harmless:
        raise DataError(
            f"there is no text of a class other than {detector.positive!r} to set the threshold by"
        )
    # Nothing reaches such a threshold, so nothing is proved in vain.
    unreached = detector.with_threshold(float(1 << 40))
    scores = (found.score for found in unreached.detect(harmless))
    points = sorted((round(Fraction(score) * detector.unit) for score in scores), reverse=True)
    allowed = int(rate * len(points))
    least = points[allowed] + 1 if allowed < len(points) else 1
    return detector.with_threshold(max(least, 1) / detector.unit)


def too_few(harmless: int, rate: Fraction) -> str | None:
    """What so few texts cannot show of a rate of false alarms; None where they are enough."""
    if not rate or harmless * rate >= 1:
        return None
    return (
        f"too few texts of other classes ({harmless}) to show a rate of {float(rate):.3g}: none of "
        f"them is flagged; use at least {math.ceil(1 / rate)}"
    )

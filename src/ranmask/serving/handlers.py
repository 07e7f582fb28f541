"""From the texts of a request to its results: the calls that the command line makes.

This module knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ranmask.errors import OptionError, RanmaskError
from ranmask.results import Certificate, Prediction
from ranmask.serving.context import RequestContext
from ranmask.serving.problems import is_callers, shown
from ranmask.serving.sizing import ReadText
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.words import Document, Text

_TEXTS_AT_ONCE = 64  # between two looks at whether anybody still waits

Classify = Callable[[Sequence[Document]], Sequence[Prediction | Certificate]]


def predicted(
    smoothed: CertifiedClassifier, texts: Sequence[ReadText], context: RequestContext
) -> list[dict[str, Any]]:
    """A prediction for each text as a dictionary, or ``{"error": ...}``."""
    return classified(smoothed.predict, texts, context)


def certified(
    smoothed: CertifiedClassifier, texts: Sequence[ReadText], context: RequestContext
) -> list[dict[str, Any]]:
    """A certificate for each text as a dictionary, or ``{"error": ...}``."""
    smoothed.check_certifiable()
    return classified(smoothed.certify, texts, context)


def classified(
    classify: Classify, texts: Sequence[ReadText], context: RequestContext
) -> list[dict[str, Any]]:
    """A result for each text as a dictionary, or ``{"error": ...}`` where it cannot be used."""
    answers: list[dict[str, Any]] = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        context.check()
        answers += _group(classify, texts[start : start + _TEXTS_AT_ONCE])
    return answers


def _group(classify: Classify, texts: Sequence[ReadText]) -> list[dict[str, Any]]:
    results = iter(_each(classify, [text for text in texts if isinstance(text, Document)]))
    return [
        next(results) if isinstance(text, Document) else {"error": shown(text.reason)}
        for text in texts
    ]


def _each(classify: Classify, texts: Sequence[Document]) -> list[dict[str, Any]]:
    """All at once; where that fails, one by one, so that one text does not spoil the others."""
    try:
        return [result.to_dict() for result in classify(texts)] if texts else []
    except RanmaskError as error:
        if len(texts) > 1:
            return [answer for text in texts for answer in _each(classify, [text])]
        if not is_callers(error):
            raise
        return [{"error": shown(str(error).removeprefix("text 0: "))}]


def attacked(
    smoothed: CertifiedClassifier, text: Text, budget: Any, label_id: int | None, seconds: float
) -> dict[str, Any]:
    """What became of an attack on one text, as a dictionary, and the names of the classes."""
    from ranmask.serving.explaining import attack_once

    [clean] = smoothed.predict([text])
    if label_id is not None and label_id >= len(clean.votes):
        raise OptionError(
            f"label_id must lie between 0 and {len(clean.votes) - 1}, not {label_id!r}"
        )
    true = clean.label_id if label_id is None else label_id
    outcome = attack_once(smoothed, text, true, budget, seconds)
    labels = None if smoothed.labels is None else list(smoothed.labels)
    return {**outcome.to_dict(), "labels": labels}

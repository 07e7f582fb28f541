"""The results of the texts of a request, some at a time; one bad text does not spoil the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ranmask.errors import ClassifierError, RanmaskError
from ranmask.results import Certificate, Detection, Prediction
from ranmask.serving.context import RequestContext
from ranmask.serving.problems import is_callers, shown
from ranmask.serving.sizing import ReadText
from ranmask.serving.telemetry import log_failure
from ranmask.serving.workers import Answer
from ranmask.words import Document

MODEL_FAILED = "the model failed on this text"
"""All that a caller is told of what a model raised; the log has the rest."""

_TEXTS_AT_ONCE = 64  # between two looks at whether anybody still waits
_COPIES_AT_ONCE = 8192  # of texts with many: what was done before a deadline is answered

Classify: TypeAlias = Callable[[Sequence[Document]], Sequence[Prediction | Certificate | Detection]]


def classified(
    classify: Classify,
    texts: Sequence[ReadText],
    context: RequestContext,
    done: Answer | None = None,
    at_once: int = _TEXTS_AT_ONCE,
) -> Answer:
    """A result for each text as a dictionary, or ``{"error": ...}`` where it cannot be used.

    They are put into ``done``, ``at_once`` of them at a time.
    """
    answers: Answer = [] if done is None else done
    for start in range(0, len(texts), at_once):
        group = texts[start : start + at_once]
        documents = [text for text in group if isinstance(text, Document)]
        results = iter(_each(classify, documents, context))
        answers += [
            next(results) if isinstance(text, Document) else {"error": shown(text.reason)}
            for text in group
        ]
    return answers


def _each(
    classify: Classify, texts: Sequence[Document], context: RequestContext
) -> list[dict[str, Any]]:
    """All at once; where that fails, one by one, so that one text does not spoil the others."""
    context.check()
    try:
        return [result.to_dict() for result in classify(texts)] if texts else []
    except RanmaskError as error:
        if len(texts) > 1:
            return [answer for text in texts for answer in _each(classify, [text], context)]
        if is_callers(error):
            return [{"error": shown(str(error).removeprefix("text 0: "))}]
        if not isinstance(error, ClassifierError):
            raise
        log_failure(MODEL_FAILED, error)
        return [{"error": MODEL_FAILED}]


def texts_at_once(texts: int, copies: int) -> int:
    """How many of so many texts are classified together, by the copies that they have in all."""
    return max(1, min(_TEXTS_AT_ONCE, _COPIES_AT_ONCE * texts // max(1, copies)))

"""A detector as the service hosts it.  A table is shared as it is, a model as classifiers' are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranmask.models.readers import ModelReader
from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.reading import SharedReader
from ranmask.serving.scorer import BatchScorer, PoolFigures
from ranmask.serving.sizing import ReadText
from ranmask.smoothing.detectors import Detector
from ranmask.smoothing.window_detector import WindowDetector
from ranmask.words import Document

DETECT = "detect"
"""The question that detectors answer, and no classifier does."""

WORD_VALUES = "word_values"
"""The option of a request to be told what each word adds to the score."""


@dataclass(frozen=True, eq=False)
class HostedDetector:
    """A loaded detector; ``pool`` scores the windows of one whose model is ours."""

    source: object
    loaded: Detector
    about: dict[str, Any]
    pool: BatchScorer | None
    asking: FairSemaphore = field(default_factory=FairSemaphore)  # of another model

    def shared(self, context: RequestContext) -> Detector:
        """The detector as one request sees it."""
        if not isinstance(self.loaded, WindowDetector):
            return self.loaded
        if self.pool is not None:
            return self.loaded.with_reader(ModelReader(self.pool.classifier(context)))
        reader = self.loaded.reader
        turns = None if reader.threads else self.asking
        return self.loaded.with_reader(SharedReader(reader, turns, context))

    def copies(self, texts: Sequence[ReadText], options: Mapping[str, Any]) -> int:
        """The windows that a model is asked about, or the words that are looked up, at most."""
        usable = [text for text in texts if isinstance(text, Document) and text.premise is None]
        return self.loaded.calls(usable) or sum(len(text.words) for text in usable)

    def figures(self) -> PoolFigures:
        """What its pool has done; nothing where it has none."""
        return PoolFigures() if self.pool is None else self.pool.figures()

    def close(self, timeout: float | None) -> None:
        """End its pool; see `BatchScorer.close`."""
        if self.pool is not None:
            self.pool.close(timeout)

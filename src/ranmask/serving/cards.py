"""What a user may know of a model that is served: plain JSON values, no path of this machine."""

from __future__ import annotations

from typing import Any

from ranmask.options import REQUEST_OPTIONS, SynonymOptions
from ranmask.options.fields import option_fields
from ranmask.smoothing.detector_store import GUARDS
from ranmask.smoothing.detectors import Detector
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier

CLASSIFIER, DETECTOR = "classifier", "detector"

_PRIVATE = "model"  # of a base classifier's description: it may be a path of this machine


def classifier_card(
    name: str, loaded: SmoothedClassifier | SynonymSmoothedClassifier
) -> dict[str, Any]:
    """Of a classifier: its classes, and how it is smoothed."""
    by_masks = isinstance(loaded, SmoothedClassifier)
    known = ("certificate", *option_fields(SynonymOptions))
    description = loaded.description()
    return {
        "name": name,
        "kind": CLASSIFIER,
        "smoothing": "masks" if by_masks else "synonyms",
        "labels": description["labels"],
        "options": description["options"],
        "request_options": [name for name in REQUEST_OPTIONS if by_masks or name in known],
        "tolerance": description["tolerance"],
        "order_free": loaded.base.order_free,
        "synonyms": loaded.synonyms.name if by_masks and loaded.synonyms else None,
        "pairs": loaded.base.pairs,
        "base": public(description["base"]),
        "reader": (description.get("reader") or {}).get("kind"),
    }


def detector_card(name: str, model: str, detector: Detector) -> dict[str, Any]:
    """Of a detector: what it flags, from which score on, and what is proved of a flag."""
    description = public(detector.description())
    return {
        "name": name,
        "kind": DETECTOR,
        "detector": detector.kind,
        "positive": detector.positive,
        "labels": list(detector.labels),
        "flags": GUARDS.get(model),
        "threshold": detector.threshold,
        "promise": detector.promise,
        "sizes": description.get("sizes", []),
        "base": description["model"],
    }


def public(described: Any) -> Any:
    """A description without what may be a path of this machine."""
    if isinstance(described, dict):
        return {
            key: public(value)
            for key, value in described.items()
            if key != _PRIVATE or isinstance(value, dict)
        }
    return [public(value) for value in described] if isinstance(described, list) else described

"""Certified robustness for text classifiers.

Wrap any classifier, and every prediction comes with a number that is proved: change any
``radius`` words of the text, to anything, and the label stays.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranmask.attacks.api import attack
    from ranmask.attacks.outcome import AttackOutcome
    from ranmask.attacks.runs import attack_file
    from ranmask.data.rows import Columns
    from ranmask.errors import (
        ClassifierError,
        DataError,
        MissingDependencyError,
        ModelError,
        OptionError,
        OutputError,
        RanmaskError,
        ReaderWarning,
        ServiceError,
        TextError,
    )
    from ranmask.models.base import BaseClassifier
    from ranmask.models.blend import Blend
    from ranmask.models.function import FunctionClassifier
    from ranmask.models.huggingface import HuggingFaceClassifier
    from ranmask.models.readers import FunctionReader, Reader
    from ranmask.models.synonyms import SynonymSets
    from ranmask.models.word_table import WordTable
    from ranmask.options import SmoothingOptions
    from ranmask.results import Certificate, Detection, Prediction
    from ranmask.runs.api import certify_file, predict_file
    from ranmask.runs.detect import detect_file
    from ranmask.runs.shards.run import Sharding
    from ranmask.runs.stored import read_results
    from ranmask.runs.task import RunEvents
    from ranmask.serving.client import Client
    from ranmask.smoothing.cascade import Cascade
    from ranmask.smoothing.deletion import DeletionSmoothedClassifier
    from ranmask.smoothing.detector_store import load_detector
    from ranmask.smoothing.detectors import SegmentDetector, WordDetector
    from ranmask.smoothing.endpoint import EndpointReader
    from ranmask.smoothing.partitioned import PartitionedClassifier
    from ranmask.smoothing.protected import ProtectedClassifier
    from ranmask.smoothing.smoothed import SmoothedClassifier
    from ranmask.smoothing.store import load_classifier, load_default
    from ranmask.smoothing.synonyms import SynonymSmoothedClassifier
    from ranmask.smoothing.window_detector import WindowDetector
    from ranmask.training.estimator import RanmaskClassifier
    from ranmask.training.protect_options import ProtectOptions
    from ranmask.training.protecting import protect
    from ranmask.training.publishing import push_to_hub

__version__ = "0.1.0"

# Where each public name lives; imported on first use, so `import ranmask` costs nothing.
_HOMES = {
    "AttackOutcome": "ranmask.attacks.outcome",
    "BaseClassifier": "ranmask.models.base",
    "Blend": "ranmask.models.blend",
    "Cascade": "ranmask.smoothing.cascade",
    "Certificate": "ranmask.results",
    "ClassifierError": "ranmask.errors",
    "Client": "ranmask.serving.client",
    "Columns": "ranmask.data.rows",
    "DataError": "ranmask.errors",
    "DeletionSmoothedClassifier": "ranmask.smoothing.deletion",
    "Detection": "ranmask.results",
    "EndpointReader": "ranmask.smoothing.endpoint",
    "FunctionClassifier": "ranmask.models.function",
    "FunctionReader": "ranmask.models.readers",
    "HuggingFaceClassifier": "ranmask.models.huggingface",
    "MissingDependencyError": "ranmask.errors",
    "ModelError": "ranmask.errors",
    "OptionError": "ranmask.errors",
    "OutputError": "ranmask.errors",
    "PartitionedClassifier": "ranmask.smoothing.partitioned",
    "Prediction": "ranmask.results",
    "ProtectOptions": "ranmask.training.protect_options",
    "ProtectedClassifier": "ranmask.smoothing.protected",
    "RanmaskClassifier": "ranmask.training.estimator",
    "RanmaskError": "ranmask.errors",
    "Reader": "ranmask.models.readers",
    "ReaderWarning": "ranmask.errors",
    "RunEvents": "ranmask.runs.task",
    "SegmentDetector": "ranmask.smoothing.detectors",
    "ServiceError": "ranmask.errors",
    "Sharding": "ranmask.runs.shards.run",
    "SmoothedClassifier": "ranmask.smoothing.smoothed",
    "SmoothingOptions": "ranmask.options",
    "SynonymSets": "ranmask.models.synonyms",
    "SynonymSmoothedClassifier": "ranmask.smoothing.synonyms",
    "TextError": "ranmask.errors",
    "WindowDetector": "ranmask.smoothing.window_detector",
    "WordDetector": "ranmask.smoothing.detectors",
    "WordTable": "ranmask.models.word_table",
    "attack": "ranmask.attacks.api",
    "attack_file": "ranmask.attacks.runs",
    "certify_file": "ranmask.runs.api",
    "detect_file": "ranmask.runs.detect",
    "load_classifier": "ranmask.smoothing.store",
    "load_default": "ranmask.smoothing.store",
    "load_detector": "ranmask.smoothing.detector_store",
    "predict_file": "ranmask.runs.api",
    "protect": "ranmask.training.protecting",
    "push_to_hub": "ranmask.training.publishing",
    "read_results": "ranmask.runs.stored",
}

__all__ = [
    "AttackOutcome",
    "BaseClassifier",
    "Blend",
    "Cascade",
    "Certificate",
    "ClassifierError",
    "Client",
    "Columns",
    "DataError",
    "DeletionSmoothedClassifier",
    "Detection",
    "EndpointReader",
    "FunctionClassifier",
    "FunctionReader",
    "HuggingFaceClassifier",
    "MissingDependencyError",
    "ModelError",
    "OptionError",
    "OutputError",
    "PartitionedClassifier",
    "Prediction",
    "ProtectOptions",
    "ProtectedClassifier",
    "RanmaskClassifier",
    "RanmaskError",
    "Reader",
    "ReaderWarning",
    "RunEvents",
    "SegmentDetector",
    "ServiceError",
    "Sharding",
    "SmoothedClassifier",
    "SmoothingOptions",
    "SynonymSets",
    "SynonymSmoothedClassifier",
    "TextError",
    "WindowDetector",
    "WordDetector",
    "WordTable",
    "__version__",
    "attack",
    "attack_file",
    "certify_file",
    "detect_file",
    "load_classifier",
    "load_default",
    "load_detector",
    "predict_file",
    "protect",
    "push_to_hub",
    "read_results",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ranmask' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

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
    from ranmask.errors import (
        ClassifierError,
        DataError,
        MissingDependencyError,
        ModelError,
        OptionError,
        OutputError,
        RanmaskError,
        TextError,
    )
    from ranmask.models.base import BaseClassifier
    from ranmask.models.blend import Blend
    from ranmask.models.function import FunctionClassifier
    from ranmask.models.huggingface import HuggingFaceClassifier
    from ranmask.models.synonyms import SynonymSets
    from ranmask.models.word_table import WordTable
    from ranmask.options import SmoothingOptions
    from ranmask.results import Certificate, Prediction
    from ranmask.smoothing.cascade import Cascade
    from ranmask.smoothing.smoothed import SmoothedClassifier
    from ranmask.smoothing.store import load_default
    from ranmask.smoothing.synonyms import SynonymSmoothedClassifier

__version__ = "0.1.0"

# Where each public name lives; imported on first use, so `import ranmask` costs nothing.
_HOMES = {
    "AttackOutcome": "ranmask.attacks.outcome",
    "BaseClassifier": "ranmask.models.base",
    "Blend": "ranmask.models.blend",
    "Cascade": "ranmask.smoothing.cascade",
    "Certificate": "ranmask.results",
    "ClassifierError": "ranmask.errors",
    "DataError": "ranmask.errors",
    "FunctionClassifier": "ranmask.models.function",
    "HuggingFaceClassifier": "ranmask.models.huggingface",
    "MissingDependencyError": "ranmask.errors",
    "ModelError": "ranmask.errors",
    "OptionError": "ranmask.errors",
    "OutputError": "ranmask.errors",
    "Prediction": "ranmask.results",
    "RanmaskError": "ranmask.errors",
    "SmoothedClassifier": "ranmask.smoothing.smoothed",
    "SmoothingOptions": "ranmask.options",
    "SynonymSets": "ranmask.models.synonyms",
    "SynonymSmoothedClassifier": "ranmask.smoothing.synonyms",
    "TextError": "ranmask.errors",
    "WordTable": "ranmask.models.word_table",
    "attack": "ranmask.attacks.api",
    "load_default": "ranmask.smoothing.store",
}

__all__ = [
    "AttackOutcome",
    "BaseClassifier",
    "Blend",
    "Cascade",
    "Certificate",
    "ClassifierError",
    "DataError",
    "FunctionClassifier",
    "HuggingFaceClassifier",
    "MissingDependencyError",
    "ModelError",
    "OptionError",
    "OutputError",
    "Prediction",
    "RanmaskError",
    "SmoothedClassifier",
    "SmoothingOptions",
    "SynonymSets",
    "SynonymSmoothedClassifier",
    "TextError",
    "WordTable",
    "__version__",
    "attack",
    "load_default",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ranmask' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

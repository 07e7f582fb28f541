"""Certified robustness for text classifiers.

Wrap any classifier, and every prediction comes with a number that is proved: change any
``radius`` words of the text, to anything, and the label stays.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranmask.attacks.attacking import attack
    from ranmask.attacks.outcome import AttackOutcome
    from ranmask.cascade import Cascade
    from ranmask.classifiers.base import BaseClassifier
    from ranmask.classifiers.blend import Blend
    from ranmask.classifiers.function import FunctionClassifier
    from ranmask.classifiers.huggingface import HuggingFaceClassifier
    from ranmask.classifiers.word_table import WordTable
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
    from ranmask.loading import load_default
    from ranmask.options import SmoothingOptions
    from ranmask.results import Certificate, Prediction
    from ranmask.smoothing import SmoothedClassifier
    from ranmask.synonym_smoothing import SynonymSmoothedClassifier
    from ranmask.synonyms import SynonymSets

__version__ = "0.1.0"

# Where each public name lives; imported on first use, so `import ranmask` costs nothing.
_HOMES = {
    "AttackOutcome": "ranmask.attacks.outcome",
    "BaseClassifier": "ranmask.classifiers.base",
    "Blend": "ranmask.classifiers.blend",
    "Cascade": "ranmask.cascade",
    "Certificate": "ranmask.results",
    "ClassifierError": "ranmask.errors",
    "DataError": "ranmask.errors",
    "FunctionClassifier": "ranmask.classifiers.function",
    "HuggingFaceClassifier": "ranmask.classifiers.huggingface",
    "MissingDependencyError": "ranmask.errors",
    "ModelError": "ranmask.errors",
    "OptionError": "ranmask.errors",
    "OutputError": "ranmask.errors",
    "Prediction": "ranmask.results",
    "RanmaskError": "ranmask.errors",
    "SmoothedClassifier": "ranmask.smoothing",
    "SmoothingOptions": "ranmask.options",
    "SynonymSets": "ranmask.synonyms",
    "SynonymSmoothedClassifier": "ranmask.synonym_smoothing",
    "TextError": "ranmask.errors",
    "WordTable": "ranmask.classifiers.word_table",
    "attack": "ranmask.attacks.attacking",
    "load_default": "ranmask.loading",
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

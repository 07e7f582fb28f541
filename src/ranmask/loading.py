"""A model by name, as the command line gives it: a folder, a hub id, or ``module:function``."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError, OptionError
from ranmask.smoothing import SmoothedClassifier

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_MODEL_ONLY = ("device", "dtype", "revision")


def load_classifier(model: str, **options: Any) -> SmoothedClassifier:
    """A smoothed classifier from a model's name; options that are None are left out."""
    given = {key: value for key, value in options.items() if value is not None}
    if _FUNCTION.fullmatch(model) and not Path(model).is_dir():
        for key in _MODEL_ONLY:
            if key in given:
                raise OptionError(f"{key}={given[key]!r} means nothing for a Python function")
        return SmoothedClassifier(_import(model), **given)
    return SmoothedClassifier.from_pretrained(model, **given)


def _import(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module beside the user's files, as `python -m` would find it
    try:
        module = importlib.import_module(module_name)
        return getattr(module, attribute)
    except ImportError as error:
        raise ModelError(
            f"cannot import {module_name!r} for the model {name!r}: {error}"
        ) from error
    except AttributeError as error:
        raise ModelError(f"module {module_name!r} has no {attribute!r}") from error

"""A model by name: one that comes with ranmask, a folder, a hub id, or ``module:function``."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranmask.classifiers import record
from ranmask.classifiers.blend import Blend
from ranmask.errors import ModelError, OptionError, OutputError
from ranmask.smoothing import SmoothedClassifier

DEFAULT_MODEL = "news"
SHIPPED = {
    "news": "news topics, a compact encoder and a word table",
    "news-words": "news topics, a word table",
    "reviews-words": "film reviews, a word table",
}
"""Models that come with ranmask, offline; each folder holds a card (README.md)."""

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_MODEL_ONLY = ("device", "dtype", "revision")


def load_default(name: str = DEFAULT_MODEL, **options: Any) -> SmoothedClassifier:
    """A classifier that comes with ranmask: no download, no training.

    ``news`` (the default) and ``news-words`` tell World, Sports, Business and Sci/Tech apart;
    ``reviews-words`` tells negative from positive film reviews.  ``options`` are those of
    `SmoothedClassifier.from_pretrained`.

    >>> table = load_default("reviews-words")
    >>> [result] = table.certify(["A wonderful film , superb acting and a moving , perfect story"])
    >>> result.label
    'positive'
    """
    return SmoothedClassifier.from_pretrained(str(shipped_folder(name)), **options)


def shipped_folder(name: str) -> Path:
    """Where a model that comes with ranmask lies."""
    if name not in SHIPPED:
        raise OptionError(f"no model {name!r} comes with ranmask; there are {', '.join(SHIPPED)}")
    folder = Path(__file__).parent / "models" / name
    if not folder.is_dir():
        raise ModelError(f"the model {name!r} is missing from this installation: {folder} is gone")
    return folder


def load_classifier(model: str, **options: Any) -> SmoothedClassifier:
    """A smoothed classifier from a model's name; options that are None are left out.

    The names in `SHIPPED` win over folders of that name: write ``./news`` for the folder.
    """
    given = {key: value for key, value in options.items() if value is not None}
    if model in SHIPPED:
        return load_default(model, **given)
    if _FUNCTION.fullmatch(model) and not Path(model).is_dir():
        for key in _MODEL_ONLY:
            if key in given:
                raise OptionError(f"{key}={given[key]!r} means nothing for a Python function")
        return SmoothedClassifier(_import(model), **given)
    return SmoothedClassifier.from_pretrained(model, **given)


def blend_folders(parts: Sequence[str], output: Path) -> SmoothedClassifier:
    """Copy the models in the folders ``parts`` into one folder that holds their `Blend`.

    The blend is smoothed as the first part is, by the mean of the scores.  Files are copied as
    they are, so that weights keep the type they are stored in.
    """
    folders = [shipped_folder(part) if part in SHIPPED else Path(part) for part in parts]
    for folder in folders:
        if not folder.is_dir():
            raise ModelError(f"there is no model folder {str(folder)!r}")
        if output.resolve().is_relative_to(folder.resolve()):
            raise OutputError(f"{output} lies inside {folder}: name another folder")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise OutputError(f"{output} exists and is not an empty folder: name another one")
    loaded = [SmoothedClassifier.from_pretrained(str(folder)) for folder in folders]
    first = loaded[0].options
    blended = SmoothedClassifier(
        Blend([one.base for one in loaded]),
        keep=first.keep,
        mask_rate=first.mask_rate,
        ensemble="score",
    )
    names = [f"part{number}" for number in range(1, len(parts) + 1)]
    partial = output.with_name(output.name + ".partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        for name, folder in zip(names, folders, strict=True):
            shutil.copytree(folder, partial / name)
        record.write(partial, record.BLEND, blended.options.to_dict(), names)
        partial.replace(output)
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error}") from error
    return blended


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

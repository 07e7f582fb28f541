"""Models for what only masks can do: other ways of smoothing are refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranmask.cli.options import tame_libraries
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.smoothing.smoothed import SmoothedClassifier


def masked_smoothing(asked: str, model: str | None) -> dict[str, Any]:
    """How a model was saved to be smoothed; refused where that is not by masks alone.

    ``asked`` is the option or command that needs masks, as it was typed.
    """
    from pathlib import Path

    from ranmask.models import model_config
    from ranmask.smoothing.store import DEFAULT_MODEL, SHIPPED, shipped_folder

    name = model or DEFAULT_MODEL
    path = (shipped_folder(name) if name in SHIPPED else Path(name)) / model_config.FILE_NAME
    if not path.is_file():
        return {}
    known = model_config.read(path)
    if known.kind == model_config.SYNONYMS:
        raise OptionError(
            f"{asked} means nothing for {name!r}, which is smoothed by synonyms (safer): give a "
            "model that is smoothed by masks"
        )
    if known.kind == model_config.CASCADE:
        raise OptionError(
            f"{asked} means nothing for {name!r}, which is a cascade: give its smoothed part, "
            f"{str(path.parent / 'smoothed')!r}"
        )
    return known.smoothing


def load_masked(model: str | None, options: dict[str, Any]) -> SmoothedClassifier:
    """A classifier that `masked_smoothing` let pass; options that are None are left out."""
    tame_libraries()
    from ranmask.smoothing.smoothed import SmoothedClassifier
    from ranmask.smoothing.store import DEFAULT_MODEL, load_classifier

    classifier = load_classifier(model or DEFAULT_MODEL, **options)
    assert isinstance(classifier, SmoothedClassifier)
    return classifier

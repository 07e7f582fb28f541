"""The model of a command; where only masks will do, others are refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranmask.cli.command import Given
from ranmask.cli.options import ModelChoice, tame_libraries
from ranmask.errors import OptionError
from ranmask.options import SmoothingOptions

if TYPE_CHECKING:
    from ranmask.smoothing.interface import CertifiedClassifier
    from ranmask.smoothing.smoothed import SmoothedClassifier


def load(given: Given, **more: Any) -> CertifiedClassifier:
    """The classifier that was asked for; ``more`` options take the place of those given."""
    tame_libraries()
    from ranmask.smoothing.store import DEFAULT_MODEL, load_classifier

    options = {**given.of(SmoothingOptions, ModelChoice), **more}
    return load_classifier(options.pop("model", None) or DEFAULT_MODEL, **options)


def load_masked(given: Given, **more: Any) -> SmoothedClassifier:
    """A classifier that `masked_smoothing` let pass."""
    classifier = load(given, **more)
    from ranmask.smoothing.smoothed import SmoothedClassifier

    assert isinstance(classifier, SmoothedClassifier)
    return classifier


def masked_smoothing(asked: str, given: Given) -> dict[str, Any]:
    """How a model was saved to be smoothed; refused where that is not by masks alone.

    ``asked`` is the option or command that needs masks, as it was typed.
    """
    from pathlib import Path

    from ranmask.models import model_config
    from ranmask.smoothing.store import DEFAULT_MODEL, SHIPPED, shipped_folder

    name = given.get("model") or DEFAULT_MODEL
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

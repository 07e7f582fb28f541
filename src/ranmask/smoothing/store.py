"""A model by name: one that comes with ranmask, a folder, a hub id, or ``module:function``."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError, OptionError, OutputError
from ranmask.models import SHIPPED_FOLDER, model_config, pretrained
from ranmask.models.base import BaseClassifier
from ranmask.models.blend import Blend
from ranmask.models.cached import cached
from ranmask.models.imports import imported, is_import_name
from ranmask.options import DELETIONS, CascadeOptions, ModelOptions, SmoothingOptions
from ranmask.options.fields import check_saved
from ranmask.results.files import draft, writing
from ranmask.smoothing import reader_store
from ranmask.smoothing.cascade import Cascade
from ranmask.smoothing.deletion import DeletionSmoothedClassifier
from ranmask.smoothing.detector_store import GUARDS
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.smoothing.partitioned import PartitionedClassifier
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.smoothing.reader_store import Access
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.synonyms import SynonymSmoothedClassifier

DEFAULT_MODEL = "news"
SHIPPED = {
    "news": "news topics, a word table and a compact encoder that reads the whole text",
    "news-words": "news topics, a word table",
    "reviews": "film reviews, a word table and a compact encoder that reads it whole and in parts",
    "reviews-words": "film reviews, a word table",
}
"""Models that come with ranmask, offline; each folder holds a card (README.md)."""

_MODEL_ONLY = ("device", "dtype", "revision")


def load_default(name: str = DEFAULT_MODEL, **options: Any) -> SmoothedClassifier:
    """A classifier that comes with ranmask: no download, no training.

    ``news`` (the default) and ``news-words`` tell World, Sports, Business and Sci/Tech apart;
    ``reviews`` and ``reviews-words`` tell negative from positive film reviews.  ``options`` are
    those of `SmoothedClassifier.from_pretrained`.

    >>> table = load_default("reviews-words")
    >>> [result] = table.certify(["A wonderful film , superb acting and a moving , perfect story"])
    >>> result.label
    'positive'
    """
    loaded = _loaded(shipped_folder(name), options)
    assert isinstance(loaded, SmoothedClassifier)
    return loaded


def shipped_folder(name: str) -> Path:
    """Where a model that comes with ranmask lies."""
    if name not in SHIPPED:
        raise OptionError(f"no model {name!r} comes with ranmask; there are {', '.join(SHIPPED)}")
    folder = SHIPPED_FOLDER / name
    if not folder.is_dir():
        raise ModelError(f"the model {name!r} is missing from this installation: {folder} is gone")
    return folder


def load_classifier(model: str, **options: Any) -> CertifiedClassifier:
    """A classifier from a model's name; options that are None are left out.

    ``cache``: a file that keeps the answers of a function (``module:name``) or an endpoint, as
    `cached` does; ``reader``: a model that reads whole texts beside the copies.
    The names in `SHIPPED` win over folders of that name: write ``./news`` for the folder.
    """
    if model in GUARDS:
        raise ModelError(
            f"{model!r} is a detector, which flags texts and has no votes to certify: use ranmask "
            f"detect or ranmask.load_detector({model!r}), or write './{model}' for a folder of "
            "that name"
        )
    given = {key: value for key, value in options.items() if value is not None}
    if model not in SHIPPED and not is_import_name(model):
        check_spelling(model)
        model, revision = pretrained.local_folder(model, given.pop("revision", None))
        given |= {} if revision is None else {"revision": revision}
    cache = given.pop("cache", None)
    reader = given.pop("reader", None)
    key = given.pop("reader_key", None)
    if cache is not None and not any(map(reader_store.keeps_answers, (model, reader))):
        raise reader_store.no_cache(cache)
    if isinstance(reader, str):
        own = cache if reader_store.keeps_answers(reader) else None
        reader = reader_store.named(reader, Access(key, own))
    if _protected(model):
        given["reader"] = reader
    elif reader is not None:
        weights = given.pop("reader_weights", None)
        own = cache if is_import_name(model) else None
        smoothed = load_classifier(model, cache=own, **given)
        if not isinstance(smoothed, SmoothedClassifier):
            raise OptionError(f"a reader cannot stand beside {model!r}, which does not vote")
        return ProtectedClassifier.beside(smoothed, reader, weights)
    if given.get("certificate") in DELETIONS and not is_import_name(model):
        folder = shipped_folder(model) if model in SHIPPED else model
        return DeletionSmoothedClassifier.from_pretrained(str(folder), **given)
    if model in SHIPPED:
        return _loaded(shipped_folder(model), given)
    if is_import_name(model):
        for key in _MODEL_ONLY:
            if key in given:
                raise OptionError(f"{key}={given[key]!r} means nothing for a Python function")
        function = imported(model)
        function = function if cache is None else cached(function, cache, name=model)
        if given.get("certificate") in DELETIONS:
            return DeletionSmoothedClassifier(function, **given)
        return SmoothedClassifier(function, **given)
    return _loaded(model, given)


def _loaded(model: str | Path, given: dict[str, Any]) -> CertifiedClassifier:
    """A classifier from its folder, or the hub."""
    known = model_config.of_folder(Path(model))
    kind = None if known is None else known.kind
    if kind == model_config.PROTECTED:
        return ProtectedClassifier.from_pretrained(str(model), **given)
    if kind == model_config.PARTITIONS:
        return PartitionedClassifier.from_pretrained(str(model), **given)
    if kind == model_config.DELETION:
        return DeletionSmoothedClassifier.from_pretrained(str(model), **given)
    if kind == model_config.SYNONYMS:
        return SynonymSmoothedClassifier.from_pretrained(str(model), **given)
    if known is not None and kind == model_config.CASCADE:
        return _load_cascade(Path(model), known, given)
    return SmoothedClassifier.from_pretrained(str(model), **given)


def _protected(model: str) -> bool:
    """Whether a model has a reader of its own, which another takes the place of."""
    folder = SHIPPED_FOLDER / model if model in SHIPPED else Path(model)
    known = model_config.of_folder(folder)
    return known is not None and known.kind == model_config.PROTECTED


def load_with_any_keep(model: str, **options: Any) -> CertifiedClassifier:
    """A classifier of which only the base is used, or whose ``keep`` is chosen later.

    A model that was never smoothed has no ``keep`` of its own, and one that masks no word has none.
    """
    known = None if model in SHIPPED else model_config.of_folder(Path(model))
    masked = (model_config.ENCODER, model_config.WORDS, model_config.BLEND)
    if known is not None and known.kind not in masked:
        return load_classifier(model, **options)
    return load_classifier(model, **{**options, "keep": 1})


def blend_folders(parts: Sequence[str], output: Path) -> SmoothedClassifier:
    """Copy the models in the folders ``parts`` into one folder that holds their `Blend`.

    The blend is smoothed as the first part is, by the mean of the scores.  Files are copied as
    they are, so that weights keep the type they are stored in.
    """
    folders = _free_of(output, parts)
    loaded = [SmoothedClassifier.from_pretrained(str(folder)) for folder in folders]
    first = loaded[0].options
    blend = Blend([part.base for part in loaded])
    # Where a part is not blind to order, a word cannot count once: what is said of it differs.
    once = first.family == "distinct" and blend.order_free
    blended = SmoothedClassifier(
        blend,
        keep=first.keep,
        mask_rate=first.mask_rate,
        family="distinct" if once else None,
        masks=first.masks if once else None,
        ensemble="score",
    )
    names = [f"part{number}" for number in range(1, len(parts) + 1)]
    inside = dict(zip(names, folders, strict=True))
    _copy_into(output, inside, model_config.BLEND, blended.options.to_dict())
    return blended


def cascade_folders(
    plain: str,
    smoothed: str,
    detector: str,
    output: Path,
    threshold: float = CascadeOptions.threshold,
) -> Cascade:
    """Copy three models into one folder that holds their `Cascade`, which carries no certificate.

    Files are copied as they are, so that the parts stay what they are by themselves.
    """
    given = _free_of(output, (plain, smoothed, detector))
    whole = [folder.resolve() for folder in given]  # ./news is no name of a shipped model
    folders = dict(zip(model_config.CASCADE_PARTS, whole, strict=True))
    cascade = _cascade(folders, threshold, device="cpu")
    _copy_into(output, folders, model_config.CASCADE, {"threshold": cascade.threshold})
    return cascade


def check_spelling(model: str) -> None:
    """Raise where a name is almost that of a shipped model; the hub is not asked for it."""
    if model in SHIPPED or "/" in model or Path(model).exists():
        return
    if meant := difflib.get_close_matches(model.lower(), [*SHIPPED, *GUARDS], 1):
        raise ModelError(f"there is no model or folder {model!r}: did you mean {meant[0]!r}?")


def _load_cascade(folder: Path, known: model_config.ModelConfig, given: dict[str, Any]) -> Cascade:
    """A cascade from its folder; how texts are masked and certified is the smoothed part's."""
    for key in ("labels", "revision"):
        if key in given:
            raise OptionError(f"{key}={given[key]!r} means nothing for a cascade: leave it out")
    check_saved(known.path, known.smoothing, CascadeOptions)
    folders = {part: folder / part for part in known.parts}
    for part, inside in folders.items():
        if not inside.is_dir():
            raise ModelError(f"the cascade in {str(folder)!r} has no folder {part!r}")
    return _cascade(folders, CascadeOptions(**known.smoothing).threshold, **given)


def _cascade(
    folders: Mapping[str, Path],
    threshold: float,
    *,
    device: str | None = None,
    dtype: str | None = None,
    **smoothing: Any,
) -> Cascade:
    def computed(part: str) -> dict[str, Any]:
        known = model_config.of_folder(folders[part])
        if known is not None and known.kind in model_config.WITHOUT_TORCH:
            return {}
        return {"device": device, "dtype": dtype}

    def whole(part: str) -> BaseClassifier:
        known = pretrained.saved_config(str(folders[part]))
        saved = known.smoothing
        check_saved(known.path, saved, SmoothingOptions, ModelOptions)
        hiding = {key: saved[key] for key in ("hide", "mask_token") if key in saved}
        return pretrained.load(str(folders[part]), **hiding, **computed(part))

    smoothed = load_classifier(str(folders["smoothed"]), **computed("smoothed"), **smoothing)
    return Cascade(whole("plain"), smoothed, whole("detector"), threshold)


def _free_of(output: Path, parts: Sequence[str]) -> list[Path]:
    """The folders of the parts; refused where they cannot be copied to ``output``."""
    folders = [shipped_folder(part) if part in SHIPPED else Path(part) for part in parts]
    for folder in folders:
        if not folder.is_dir():
            raise ModelError(f"there is no model folder {str(folder)!r}")
        if output.resolve().is_relative_to(folder.resolve()):
            raise OutputError(f"{output} lies inside {folder}: name another folder")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise OutputError(f"{output} exists and is not an empty folder: name another one")
    return folders


def _copy_into(
    output: Path, parts: Mapping[str, Path], kind: str, options: Mapping[str, Any]
) -> None:
    """Write a folder of copied folders and their record: all of it, or nothing."""
    with writing(output), draft(output) as place:
        shutil.rmtree(place, ignore_errors=True)
        for name, folder in parts.items():
            shutil.copytree(folder, place / name)
        model_config.write(place, kind, options, list(parts))

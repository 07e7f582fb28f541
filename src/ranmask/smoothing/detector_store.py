"""Detectors in folders: ``ranmask.json`` has threshold and classes, ``model/`` the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError, OptionError
from ranmask.models import SHIPPED_FOLDER, model_config, pretrained
from ranmask.models.word_table import WordTable
from ranmask.options.fields import check_saved
from ranmask.smoothing import reader_store
from ranmask.smoothing.detectors import (
    MODEL,
    Detector,
    DetectorOptions,
    SegmentDetector,
    TableDetector,
    WordDetector,
)
from ranmask.smoothing.reader_store import Access
from ranmask.smoothing.window_detector import WindowDetector

GUARDS = {
    "spam": "spam, in mails and in messages",
    "spam-sms": "spam, in short messages alone",
    "toxicity": "toxic comments",
    "injection": "prompt injections and jailbreaks",
}
"""Detectors that come with ranmask, offline; each folder holds a card (README.md)."""


def detector_folder(model: str | Path) -> Path:
    """Where a detector lies; the names in `GUARDS` win over folders: write ``./spam`` for one."""
    if not isinstance(model, str) or model not in GUARDS:
        return Path(model)
    folder = SHIPPED_FOLDER / model
    if not folder.is_dir():
        raise ModelError(f"the guard {model!r} is missing from this installation: {folder} is gone")
    return folder


def is_detector(model: str) -> bool:
    """Whether a name, a folder or a hub id is that of a detector."""
    folder = detector_folder(model)
    if _on_hub(folder):
        return pretrained.saved_config(model).kind == model_config.DETECTOR
    known = model_config.of_folder(folder)
    return known is not None and known.kind == model_config.DETECTOR


def needs_reader(model: str) -> bool:
    """Whether a detector's folder only names its model, so that it must be named again."""
    return (detector_folder(model) / MODEL / reader_store.FILE_NAME).is_file()


def _on_hub(folder: Path) -> bool:
    """Whether what is no folder may be the id of a model."""
    named = len(folder.parts) == 2 and folder.parts[0] not in (folder.anchor, "..")
    return named and not folder.is_dir()


def load_detector(
    folder: str | Path,
    *,
    reader: object = None,
    cache: str | Path | None = None,
    device: str | None = None,
) -> Detector:
    """A detector by name (`GUARDS`), from a folder that was saved, or by its id on the hub.

    ``reader``: the model of a `WindowDetector`, or its name, where the folder cannot hold it
    (a function, or a pipeline in memory).  ``cache``: a file that keeps the answers of a reader
    that is named.  ``device``: where an encoder in the folder computes.

    >>> guard = load_detector("spam")
    >>> [found] = guard.detect(["You have won a FREE prize! Call 09061701461 now to claim it"])
    >>> found.flagged
    True
    """
    path = detector_folder(folder)
    if _on_hub(path):
        path = Path(pretrained.local_folder(str(folder))[0])
    known = model_config.of_folder(path)
    if known is None or known.kind != model_config.DETECTOR:
        if str(folder) in (shipped.name for shipped in SHIPPED_FOLDER.iterdir()):
            what = "is a classifier"
        elif known is None:
            what = "holds no model of ranmask's" if path.is_dir() else "is no folder"
        else:
            what = f"holds a model of kind {known.kind!r}"
        raise ModelError(
            f"{str(folder)!r} {what}, no detector: name one that comes with ranmask "
            f"({', '.join(GUARDS)}), train one (ranmask train --kind words --monotone), or put "
            "one around a model (ranmask detect --calibrate)"
        )
    if cache is not None and not isinstance(reader, str):
        raise reader_store.no_cache(cache)
    if reader is not None and device is not None:
        raise OptionError(f"device={device!r} means nothing for a reader that is given")
    pretrained.check_computed(path, [MODEL], {"device": device})
    check_saved(known.path, known.smoothing, DetectorOptions)
    saved: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in known.smoothing.items()
    }
    try:
        options = DetectorOptions(**saved)
        if isinstance(reader, str):
            reader = reader_store.named(reader, Access(cache=cache), options.labels)
        return _loaded(path, options, reader, {"device": device})
    except OptionError as error:
        raise ModelError(f"{known.path}: {error}") from error


def _loaded(
    path: Path, options: DetectorOptions, reader: object, computed: Mapping[str, str | None]
) -> Detector:
    how: dict[str, Any] = {"positive": options.positive, "labels": options.labels}
    if options.detector != "windows":
        if reader is not None:
            raise ModelError(f"{str(path)!r} is a word table: it needs no reader")
        table = WordTable.load(path / MODEL)
        kind: type[TableDetector]
        kind = WordDetector if options.detector == "words" else SegmentDetector
        return kind(table, threshold=options.points / kind.unit, **how)
    if reader is None:
        reader = reader_store.load(path / MODEL, computed)
    threshold = options.points / WindowDetector.unit
    how |= {"sizes": options.sizes, "tolerance": options.tolerance}
    return WindowDetector(reader, threshold=threshold, **how)

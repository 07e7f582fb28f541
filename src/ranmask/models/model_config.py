"""``ranmask.json``: what kind of model a folder holds, and how it is smoothed.

How many words the model was trained to see, how hidden words are hidden, how copies vote.
Versioned JSON; nothing in it is code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError
from ranmask.results.files import read_json, write_json

FILE_NAME = "ranmask.json"
FILE_VERSION = 1

ENCODER, WORDS, BLEND, CASCADE = "encoder", "words", "blend", "cascade"
COMPACT = "compact"  # an encoder of one layer, which needs no torch (`compact_encoder`)
PROTECTED = "protected"  # copies, and a reader beside them
DETECTOR = "detector"  # flags texts (`smoothing.detectors`); its model is in a folder inside
PARTITIONS = "partitions"  # word tables that vote (`smoothing.partitioned`), in folders inside
SYNONYMS = "synonyms"  # an encoder that is smoothed by the synonyms in synonyms.json beside it
DELETION = "deletion"  # an encoder that is smoothed by deleted words
KINDS = (
    *(ENCODER, WORDS, BLEND, CASCADE, SYNONYMS, DELETION),
    *(PROTECTED, DETECTOR, COMPACT, PARTITIONS),
)

WITHOUT_TORCH = (WORDS, COMPACT)
"""Kinds that numpy computes: they have neither a device nor a number type to choose."""

CASCADE_PARTS = ("plain", "smoothed", "detector")
"""The folders inside that of a cascade."""

PROTECTED_PARTS = ("copies", "reader")
"""The folders inside that of a protected classifier."""

_PARTS = {CASCADE: CASCADE_PARTS, PROTECTED: PROTECTED_PARTS}


@dataclass(frozen=True)
class ModelConfig:
    """``kind`` of the model, one of `KINDS`, and its smoothing.

    ``parts`` names the folders inside that hold the parts of a blend, of `PARTITIONS`, of a
    `PROTECTED` one, or of a `CASCADE`, whose ``smoothing`` is its threshold: how it is smoothed,
    that part's folder says.
    Whoever uses ``smoothing`` checks it first (`ranmask.options.check_saved`).
    """

    kind: str
    smoothing: dict[str, Any]
    parts: tuple[str, ...] = ()
    path: Path = Path(FILE_NAME)


def write(folder: Path, kind: str, smoothing: Mapping[str, Any], parts: Sequence[str] = ()) -> None:
    """Write the config of a model into ``folder``; options that are None are left out."""
    given = {key: value for key, value in smoothing.items() if value is not None}
    record: dict[str, Any] = {"format": "ranmask", "version": FILE_VERSION, "kind": kind}
    if parts:
        record["parts"] = list(parts)
    record["smoothing"] = given
    write_json(folder / FILE_NAME, record)


def of_folder(folder: Path) -> ModelConfig | None:
    """The config of the model in a folder; None where it has none."""
    path = folder / FILE_NAME
    return read(path) if path.is_file() else None


def read(path: Path) -> ModelConfig:
    """The config in the file ``path``; one without a kind is an encoder's."""
    record = read_json(path, format="ranmask", version=FILE_VERSION, error=ModelError)
    kind = record.get("kind", ENCODER)
    if kind not in KINDS:
        raise ModelError(f"{path} has kind {kind!r}; this ranmask knows {', '.join(KINDS)}")
    options = record.get("smoothing")
    if not isinstance(options, dict):
        raise ModelError(f"{path} has no table of options under 'smoothing'")
    if kind not in (BLEND, PARTITIONS, *_PARTS):
        return ModelConfig(kind, options, path=path)
    parts = record.get("parts", [])
    if kind in _PARTS and parts != list(_PARTS[kind]):
        expected = ", ".join(_PARTS[kind])
        raise ModelError(f"{path} has parts={parts!r}; those of kind {kind!r} are {expected}")
    if (
        not isinstance(parts, list)
        or len(parts) < 2
        or not all(isinstance(part, str) and Path(part).name == part != ".." for part in parts)
    ):
        raise ModelError(f"{path} has parts={parts!r}, not two or more folders inside it")
    return ModelConfig(kind, options, tuple(parts), path)

"""``ranmask.json``: what kind of model a folder holds, and how it is smoothed.

How many words the model was trained to see, how hidden words are hidden, how copies vote.
Versioned JSON; nothing in it is code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError

FILE_NAME = "ranmask.json"
FILE_VERSION = 1

ENCODER, WORDS = "encoder", "words"
KINDS = (ENCODER, WORDS)

_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "keep": int,
    "mask_rate": (int, float),
    "family": str,
    "masks": int,
    "selection_masks": int,
    "ensemble": str,
    "certificate": str,
    "alpha": (int, float),
    "seed": int,
    "threat": str,
    "labels": list,
    "hide": str,
    "mask_token": str,
    "tolerance": (int, float),
}


@dataclass(frozen=True)
class Record:
    """``kind`` of the model (`ENCODER`, or `WORDS` for a word table) and smoothing options."""

    kind: str
    smoothing: dict[str, Any]


def write(folder: Path, kind: str, smoothing: Mapping[str, Any]) -> None:
    """Write the record of a model into ``folder``; options that are None are left out."""
    given = {key: value for key, value in smoothing.items() if value is not None}
    record = {"format": "ranmask", "version": FILE_VERSION, "kind": kind, "smoothing": given}
    (folder / FILE_NAME).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> Record:
    """The record in the file ``path``; one without a kind is an encoder's."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelError(f"cannot read {path}: {error}") from error
    if not isinstance(record, dict) or record.get("format") != "ranmask":
        raise ModelError(f"{path} is not a ranmask record")
    if record.get("version") != FILE_VERSION:
        raise ModelError(
            f"{path} has version {record.get('version')!r}; this ranmask reads {FILE_VERSION}"
        )
    kind = record.get("kind", ENCODER)
    if kind not in KINDS:
        raise ModelError(f"{path} has kind {kind!r}; this ranmask knows {' and '.join(KINDS)}")
    options = record.get("smoothing")
    if not isinstance(options, dict):
        raise ModelError(f"{path} has no table of options under 'smoothing'")
    for key, value in options.items():
        if key not in _OPTIONS:
            raise ModelError(f"{path} has the option {key!r}, which this ranmask does not know")
        if not isinstance(value, _OPTIONS[key]):
            raise ModelError(f"{path} has {key}={value!r}, which is of the wrong type")
    return Record(kind, options)

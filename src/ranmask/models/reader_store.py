"""Readers by name, and in the folders of protected classifiers.

A folder holds a model (with its ``ranmask.json``), or ``reader.json``: an endpoint's settings, the
name of a function, or that the reader must be given again (``given``), for a pipeline in memory
cannot be saved without running code when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ranmask.errors import ModelError
from ranmask.models import pretrained
from ranmask.models.imports import imported, is_import_name
from ranmask.models.readers import ModelReader, Reader, as_reader
from ranmask.results.files import read_json, write_json

FILE_NAME = "reader.json"
FORMAT, VERSION = "ranmask-reader", 1

_WHOLE = {"mask_rate": 0.0, "ensemble": "score"}  # a model that is shown every word


def named(name: str, labels: Sequence[str] | None = None) -> Reader:
    """A reader by name: a model's folder, a hub id, or ``module:attribute``.

    ``labels``: the classes, for a model that does not say them.
    """
    if is_import_name(name):
        return _imported(name, labels)
    if (Path(name) / FILE_NAME).is_file():
        return load(Path(name))
    return ModelReader(pretrained.load(name))


def save(reader: Reader, folder: Path, labels: tuple[str, ...] | None) -> None:
    """Write a reader to a folder of its own."""
    if isinstance(reader, ModelReader):
        pretrained.save(reader.base, str(folder), options=_WHOLE, labels=labels)
        return
    folder.mkdir(parents=True, exist_ok=True)
    record = {"format": FORMAT, "version": VERSION, **reader.saved()}
    write_json(folder / FILE_NAME, record)


def load(folder: Path, computed: Mapping[str, str | None] | None = None) -> Reader:
    """The reader in a folder; one that cannot be saved is asked for."""
    path = folder / FILE_NAME
    if not path.is_file():
        return ModelReader(pretrained.load_part(folder.parent, folder.name, computed or {}))
    record = read_json(path, format=FORMAT, version=VERSION, error=ModelError)
    kind = record.get("kind")
    if kind == "function" and isinstance(record.get("function"), str):
        reader = _imported(record["function"], record.get("labels"))
        reader.repeatable = reader.repeatable or record.get("repeatable") is True
        return reader
    if kind == "given":
        raise ModelError(
            f"the reader of {str(folder.parent)!r} was {record.get('was', 'an object')}, which no "
            "file can hold: give it again, as reader=... (on the command line: --reader "
            "module:name)"
        )
    raise ModelError(f"{path} has a reader of kind {kind!r}, which this ranmask does not know")


def _imported(name: str, labels: Sequence[str] | None) -> Reader:
    reader = as_reader(imported(name), labels)
    reader.name = name
    return reader

"""Readers by name, and in the folders of protected classifiers.

A folder holds a model (with its ``ranmask.json``), or ``reader.json``: an endpoint's settings, the
name of a function, or that the reader must be given again (``given``), for a pipeline in memory
cannot be saved without running code when it is loaded.  The key of an endpoint is in no file, and
no file chooses which one is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranmask.errors import ModelError
from ranmask.models import pretrained
from ranmask.models.imports import imported, is_import_name
from ranmask.models.readers import ModelReader, Reader, as_reader
from ranmask.results.files import read_json, write_json
from ranmask.smoothing.endpoint import EndpointReader

FILE_NAME = "reader.json"
FORMAT, VERSION = "ranmask-reader", 1

_WHOLE = {"mask_rate": 0.0, "ensemble": "score"}  # a model that is shown every word


@dataclass(frozen=True)
class EndpointAccess:
    """What an endpoint is asked with: the variable that holds its key, and a file of answers."""

    key_variable: str | None = None
    cache: Path | None = None


def named(
    name: str, access: EndpointAccess | None = None, labels: Sequence[str] | None = None
) -> Reader:
    """A reader by name: a model's folder, a hub id, ``module:attribute``, or a ``reader.json``.

    ``labels``: the classes, for a model that does not say them.
    """
    if is_import_name(name):
        return _imported(name, labels)
    path = Path(name)
    if path.suffix == ".json" and path.is_file():
        return _of_file(path, access)
    if (path / FILE_NAME).is_file():
        return load(path, access=access)
    return ModelReader(pretrained.load(name))


def save(reader: Reader, folder: Path, labels: tuple[str, ...] | None) -> None:
    """Write a reader to a folder of its own."""
    if isinstance(reader, ModelReader):
        pretrained.save(reader.base, str(folder), options=_WHOLE, labels=labels)
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE_NAME, {"format": FORMAT, "version": VERSION, **reader.saved()})


def load(
    folder: Path,
    computed: Mapping[str, str | None] | None = None,
    access: EndpointAccess | None = None,
) -> Reader:
    """The reader in a folder; one that cannot be saved is asked for."""
    path = folder / FILE_NAME
    if path.is_file():
        return _of_file(path, access)
    return ModelReader(pretrained.load_part(folder.parent, folder.name, computed or {}))


def _of_file(path: Path, access: EndpointAccess | None) -> Reader:
    record = read_json(path, format=FORMAT, version=VERSION, error=ModelError)
    kind = record.get("kind")
    if kind == "endpoint":
        given = access or EndpointAccess()
        key, cache = given.key_variable, given.cache
        return EndpointReader.from_saved(record, path, key_variable=key, cache=cache)
    if kind == "function" and isinstance(record.get("function"), str):
        reader = _imported(record["function"], record.get("labels"))
        reader.repeatable = reader.repeatable or record.get("repeatable") is True
        return reader
    if kind == "given":
        raise ModelError(
            f"the reader of {path} was {record.get('was', 'an object')}, which no file can hold: "
            "give it again, as reader=... (on the command line: --reader module:name)"
        )
    raise ModelError(f"{path} has a reader of kind {kind!r}, which this ranmask does not know")


def _imported(name: str, labels: Sequence[str] | None) -> Reader:
    reader = as_reader(imported(name), labels)
    reader.name = name
    return reader

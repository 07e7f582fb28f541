"""Readers by name, and in the folders of protected classifiers.

A folder holds a model (with its ``ranmask.json``), or ``reader.json``: an endpoint's settings, the
name of a function, or what the reader was (``given``), for a pipeline in memory cannot be saved
without running code when it is loaded.  Such a reader is named again whenever the folder is loaded.
The key of an endpoint is in no file, and no file chooses which one is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError, OptionError
from ranmask.models import SHIPPED_FOLDER, pretrained
from ranmask.models.cached import cached
from ranmask.models.imports import imported, is_import_name
from ranmask.models.readers import ModelReader, Reader, as_reader
from ranmask.results.files import read_json, write_json
from ranmask.smoothing.endpoint import EndpointReader

FILE_NAME = "reader.json"
FORMAT, VERSION = "ranmask-reader", 1

_WHOLE = {"mask_rate": 0.0, "ensemble": "score"}  # a model that is shown every word


@dataclass(frozen=True)
class Access:
    """What a reader is asked with: the variable that holds its key, and a file of answers."""

    key_variable: str | None = None
    cache: str | Path | None = None


def named(name: str, access: Access | None = None, labels: Sequence[str] | None = None) -> Reader:
    """A reader by name: a model's folder, a hub id, ``module:attribute``, or a ``reader.json``.

    ``labels``: the classes, for a model that does not say them.
    """
    if is_import_name(name):
        model = imported(name)
        if access is not None and access.cache is not None:
            model = cached(model, access.cache, name=name)
        reader = as_reader(model, labels)
        reader.name = name
        return reader
    path = Path(name)
    if path.suffix == ".json" and path.is_file():
        return _of_file(path, access)
    if access is not None and access.cache is not None:
        raise no_cache(access.cache)
    shipped = SHIPPED_FOLDER / name
    return ModelReader(pretrained.load(str(shipped) if shipped.is_dir() else name))


def keeps_answers(name: object) -> bool:
    """Whether a cache keeps what a model of this name says: a function, or an endpoint."""
    return isinstance(name, str) and (is_import_name(name) or name.endswith(".json"))


def no_cache(path: str | Path) -> OptionError:
    """What is wrong where a cache would keep nothing."""
    return OptionError(
        f"cache={str(path)!r} keeps answers of functions (module:name) and endpoints, and none is "
        "named here: leave it out"
    )


def save(reader: Reader, folder: Path, labels: tuple[str, ...] | None) -> None:
    """Write a reader to a folder of its own."""
    if isinstance(reader, ModelReader):
        pretrained.save(reader.base, str(folder), options=_WHOLE, labels=labels)
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE_NAME, {"format": FORMAT, "version": VERSION, **reader.saved()})


def load(folder: Path, computed: Mapping[str, str | None] | None = None) -> Reader:
    """The reader in a folder, if it is a model.

    Another is only named there.  A folder may come from elsewhere, so no function that it names is
    run, and no text is sent to an address that it names, before the user has named them, too.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return ModelReader(pretrained.load_part(folder.parent, folder.name, computed or {}))
    record = _record(path)
    whose = f"the reader of {str(folder.parent)!r} is"
    if record.get("kind") == "endpoint":
        raise ModelError(
            f"{whose} at {record.get('url')!r}, where texts would be sent: if that is meant, give "
            f"reader={str(path)!r}"
        )
    if record.get("kind") == "function":
        name = record.get("function")
        raise ModelError(
            f"{whose} the Python object {name!r}, which a folder cannot hold: if you trust it, "
            f"give reader={name!r}"
        )
    raise ModelError(
        f"{whose} {record.get('was', 'an object')}, which a folder cannot hold: give it again, as "
        "reader=... (on the command line: --reader module:name)"
    )


def again(folder: Path) -> str | None:
    """What to name as the reader when a protected folder is loaded; None: it is in there."""
    path = folder / "reader" / FILE_NAME
    if not path.is_file():
        return None
    record = _record(path)
    known = {"endpoint": str(path), "function": str(record.get("function"))}
    return known.get(str(record.get("kind")), "module:name")


def _of_file(path: Path, access: Access | None) -> Reader:
    record = _record(path)
    if record.get("kind") != "endpoint":
        raise ModelError(f"{path} is no endpoint's: name a function as module:name, not by a file")
    given = access or Access()
    key, cache = given.key_variable, given.cache
    return EndpointReader.from_saved(record, path, key_variable=key, cache=cache)


def _record(path: Path) -> dict[str, Any]:
    return read_json(path, format=FORMAT, version=VERSION, error=ModelError)

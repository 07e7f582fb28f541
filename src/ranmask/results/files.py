"""Files that are whole or absent, versioned, and written by one process at a time.

Every file that ranmask writes goes through here: to a draft beside its place, which then takes that
place.  What goes wrong is an `OutputError` where something is written, else a `DataError`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ranmask.errors import DataError, OutputError, RanmaskError

DRAFT = ".tmp"
"""How the name of a draft ends."""

_STREAMS = ("-", "/dev/stdout", "/dev/stderr")  # regular files where a shell redirects them
# The measured tolerance may vary between runs, and each result names its own.
_COMPACT = (",", ":")
_MAY_VARY = ("finished", "tolerance", "path")


def check_file(path: Path) -> None:
    """Raise where ``path`` is no place for a file that is written, and perhaps read again."""
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # from Python 3.14 on, the questions below hide what is wrong with a name
        if path.is_dir():
            problem = "it is a folder; give the name of a file"
        elif str(path) in _STREAMS or (path.exists() and not path.is_file()):
            problem = "it is no ordinary file, and could not be read again; give another name"
        elif not path.resolve().parent.is_dir():
            problem = f"there is no folder {path.resolve().parent}; make it first"
        elif not os.access(path if path.exists() else path.resolve().parent, os.W_OK):
            problem = "permission denied"
        else:
            return
    except OSError as error:  # a name that is too long, a folder that may not be searched
        problem = error.strerror or str(error)
    raise OutputError(f"cannot write {path}: {problem}")


def check_new_file(path: Path) -> None:
    """Raise where a file is there already, or could not be."""
    if path.is_file():
        raise OutputError(f"{path} exists: choose another output, or delete it")
    check_file(path)


def make_folder(path: Path) -> None:
    """Make a folder, and those that it lies in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {path}: {error.strerror}") from error


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong with a file that is there to be read, as a `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


@contextlib.contextmanager
def writing(path: Path, *, resumed: bool = False) -> Iterator[None]:
    """What goes wrong with a file, as an `OutputError`; ``resumed``: the same call goes on."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        kept = ". What was written before is complete: run it again to resume" if resumed else ""
        raise OutputError(f"cannot write {path}: {error.strerror or error}{kept}") from error


@contextlib.contextmanager
def draft(path: Path, *, shared: bool = False, durable: bool = False) -> Iterator[Path]:
    """A place to write to, which becomes ``path`` when the block ends well, and goes if not.

    ``shared``: several processes may write it at once, and the last one stays.  ``durable``: it is
    on the disk when this is over, also after a loss of power.
    """
    mine = path.with_name(f"{path.name}.{os.getpid()}{DRAFT}" if shared else path.name + DRAFT)
    try:
        yield mine
        if durable:
            _flush(mine)
        mine.replace(path)
        if durable:
            _flush(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            mine.unlink(missing_ok=True)
        raise


def write_file(
    path: Path, content: str | bytes, *, shared: bool = False, durable: bool = False
) -> None:
    """Replace a file in one step: a reader finds the old one or the new one, whole."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with writing(path), draft(path, shared=shared, durable=durable) as place:
        place.write_bytes(data)


def write_json(path: Path, content: Mapping[str, Any], **how: bool) -> None:
    """Replace a JSON file, as `write_file` does."""
    write_file(path, json.dumps(content, indent=2) + "\n", **how)


def read_json(
    path: Path,
    *,
    format: str | None = None,
    version: int | None = None,
    error: type[RanmaskError] = DataError,
) -> dict[str, Any]:
    """The JSON object in a file; another ``format`` or ``version`` is refused."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise error(f"cannot read {path}: {why}") from problem
    if not isinstance(found, dict):
        raise error(f"{path} holds no JSON object")
    if format is not None and version is not None:
        check_format(found, format, version, str(path), error)
    return found


def check_format(
    found: Mapping[str, Any],
    format: str,
    version: int,
    where: str,
    error: type[RanmaskError] = DataError,
) -> None:
    """Refuse what has another format, or a version that this ranmask does not read."""
    if found.get("format") != format:
        raise error(f"{where} has format {found.get('format')!r}, not {format!r}")
    if found.get("version") != version:
        raise error(
            f"{where}: version {found.get('version')!r} is not {version}, the one this ranmask "
            "reads: use the ranmask that wrote it, or run again"
        )


def lock(file: IO[Any] | int, path: Path, *, wait: bool = False) -> None:
    """Be the only writer of ``path`` until ``file``, or its descriptor, is closed."""
    try:
        import fcntl
    except ImportError:
        return  # not a POSIX system: two writers are not noticed there
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        raise OutputError(f"another run is writing {path}") from error


def differences(one: object, other: object, name: str = "") -> Iterator[str]:
    """Names of the settings in which two records differ, but for those that may.

    A digest is named after what it is of.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            if key not in _MAY_VARY:
                what = name if name and key == "sha256" else key
                yield from differences(one.get(key), other.get(key), what)
    elif one != other:
        yield name


def check_same_run(recorded: Mapping[str, Any], mine: Mapping[str, Any], path: Path) -> None:
    """Refuse to go on with the results of another run."""
    differing = set(differences(dict(recorded), dict(mine)))
    if differing:
        raise another_run(path, sorted(differing))


def another_run(path: Path, differing: Sequence[str]) -> OutputError:
    """What is raised where a file is that of a run with other settings."""
    return OutputError(
        f"{path} belongs to another run (different: {', '.join(differing)}): give the same options "
        "to resume it, or choose another output"
    )


def fingerprint(description: Mapping[str, Any]) -> str:
    """A digest that two descriptions share where one run may go on with the other's results."""
    spelt = json.dumps(_settled(description), sort_keys=True)
    return hashlib.sha256(spelt.encode()).hexdigest()


def line_bytes(values: Mapping[str, Any]) -> bytes:
    """A line of JSON."""
    try:
        return (json.dumps(values, ensure_ascii=False, separators=_COMPACT) + "\n").encode("utf-8")
    except UnicodeEncodeError:
        # A text read from a file can hold half a surrogate pair; ASCII escapes keep it as it was.
        return (json.dumps(values, separators=_COMPACT) + "\n").encode("ascii")


def _settled(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _settled(one) for key, one in value.items() if key not in _MAY_VARY}


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

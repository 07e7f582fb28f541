"""Files of text: read whole, or an error that names the file; and their digests."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ranmask.errors import DataError


def read_text(path: Path) -> str:
    """A UTF-8 text; a name that ends in ``.gz`` is unpacked."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as file:
                return file.read()
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except (OSError, EOFError, zlib.error) as error:  # not gzip, cut short, or damaged
        raise DataError(f"cannot read {path}: {error}") from error


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""The lines of a UTF-8 text with their numbers from 1, without their ends.

    Only a line feed ends a line: vocabularies hold words such as ``\x85``.
    """
    lines = read_text(path).split("\n")
    for number, line in enumerate(lines, 1):
        if line or number < len(lines):
            yield number, line.removesuffix("\r")


def files_digest(paths: Iterable[Path]) -> str:
    """SHA-256 of the files one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()

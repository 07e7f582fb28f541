"""Files that resources are read from: text, JSON, vectors, NLTK's data; and their digests."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.data import data_folder
from ranmask.errors import DataError

STOP_WORDS = "corpora/stopwords/english"
TAGGER = "taggers/averaged_perceptron_tagger_eng/averaged_perceptron_tagger_eng"
"""Of the files ``.weights.json``, ``.tagdict.json`` and ``.classes.json``."""
UNIVERSAL_TAGS = "taggers/universal_tagset/en-ptb.map"
SHIPPED = Path(__file__).with_name("shipped")
"""What comes with ranmask; its NOTICE.md says on which terms."""


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


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path} is not JSON: {error}") from None


def read_vectors(path: Path) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Words and their vectors, from a text with a word and its numbers a line."""
    words: list[str] = []
    rows: list[npt.NDArray[np.float32]] = []
    for number, line in read_lines(path):
        word, *numbers = line.rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and word.isdigit() and numbers[0].isdigit():
            continue  # word2vec's first line: how many words, and how many numbers each
        try:
            row = np.fromiter(map(float, numbers), dtype=np.float32, count=len(numbers))
        except ValueError as error:
            raise DataError(f"{path}: {word!r} and numbers expected: {error}", number) from None
        if not numbers or (rows and len(row) != len(rows[0])):
            wanted = f"{len(rows[0])} numbers" if rows else "numbers"
            raise DataError(f"{path}: {word!r} has {len(numbers)} numbers, not {wanted}", number)
        words.append(word)
        rows.append(row)
    if not rows:
        raise DataError(f"{path} is empty: expected a word and its numbers a line")
    return words, np.stack(rows)


def read_matrix(path: Path) -> npt.NDArray[np.floating]:
    """The matrix of numbers in an ``.npy`` file."""
    try:
        matrix = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not isinstance(matrix, np.ndarray) or not np.issubdtype(matrix.dtype, np.floating):
        raise DataError(f"{path} is not a matrix of floating-point numbers")
    return matrix


def files_digest(paths: Iterable[Path]) -> str:
    """SHA-256 of the files one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def nltk_file(file: str, folder: str | Path | None = None) -> Path:
    """A file of NLTK's data, such as `STOP_WORDS`, perhaps packed (``.gz``); nothing is downloaded.

    It is looked for in ``folder`` alone; else in the folders that the variable NLTK_DATA lists, or
    in ``nltk`` of ranmask's data folder and ``~/nltk_data``, where NLTK's downloader puts it; then
    among what comes with ranmask.
    """
    data = data_folder()
    listed = list(filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep)))
    usual = [*([] if data is None else [data / "nltk"]), Path("~/nltk_data")]
    # Where someone said where, other data is never taken instead.
    named = [folder] if folder is not None else [*(listed or usual), SHIPPED / "nltk"]
    places = [Path(place).expanduser() for place in named]
    for path in (place / name for place in places for name in (file, f"{file}.gz")):
        if path.is_file():
            return path
    raise DataError(
        f"there is no NLTK file {file} in {', '.join(map(str, places))}: run 'python -m "
        f"nltk.downloader -d FOLDER {Path(file).parent.name}' and set NLTK_DATA=FOLDER"
    )

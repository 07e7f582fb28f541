"""Outcome files ``results/peers/*.json``: one method, on one corpus, under one threat.

    python -m benchmarks.peers_records            # checks every file

A file is written by `write` (or by hand in the same shape: `PeerRecord` has the fields, `check`
the rules) and read by `read_all`; docs/peers.md is made of these files and of nothing else.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal

from benchmarks.settings import REPOSITORY
from ranmask.errors import DataError
from ranmask.paper.typed_json import from_json, read_object, to_json

FOLDER = REPOSITORY / "results" / "peers"
FORMAT, VERSION = "ranmask-peer", 1
ALL = "all"  # the size "every word at once", "unlimited"

# What an attacker may do.  `edits`: replaced, inserted, deleted words (Levenshtein on words);
# `synonyms`: any number of words, each by a word of the table; `additions`: any number of words
# put before, after or between those of the text.
Threat = Literal["substitutions", "edits", "characters", "synonyms", "additions"]
Corpus = Literal["agnews", "sst2", "imdb", "sms_spam", "enron_spam", "other"]
Guarantee = Literal["proof", "1 - alpha", "none"]
Source = Literal["measured here, our code", "measured here, their code", "published"]


@dataclass(frozen=True)
class Texts:
    """The texts of a figure: how many, and which rows (``first 200 of agnews test``)."""

    count: int
    rows: str
    sha256: str | None = None


@dataclass(frozen=True)
class Code:
    """Code of others that was run, or that the figure was published with."""

    repository: str
    commit: str | None = None


@dataclass(frozen=True)
class PeerRecord:
    """One row of docs/peers.md.

    ``certified``: certified accuracy, a share of *all* texts, by size: the number of changed words
    (characters) as a string, or `ALL`.  ``certified`` of a method without a guarantee is what its
    authors count.  A published figure at no such size has no ``certified``, and stands in ``note``;
    ``accuracy`` is None where it was not published.  Of a detector, accuracy is its recall.
    ``setting`` tells rows of the same method apart (``p_del .9``).  ``commands`` make the figures
    again, with names for folders; ``where`` is the place of a published figure.  ``seconds`` are
    of certifying one text, on ``hardware``, with the model loaded.
    """

    method: str
    threat: Threat
    corpus: Corpus
    guarantee: Guarantee
    source: Source
    ours: bool
    accuracy: float | None
    certified: Mapping[str, float]
    model: str
    texts: Texts | None
    setting: str = ""
    alpha: float | None = None
    seconds: float | None = None
    training: str = ""
    training_seconds: float | None = None
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    hardware: str = ""
    commands: tuple[str, ...] = ()
    code: Code | None = None
    where: str = ""
    note: str = ""

    def check(self, where: str) -> None:
        """Refuse what cannot be a row: `DataError`."""
        published = self.source == "published"
        if not self.certified and not (published and self.note):
            raise DataError(f"{where}: certified has no size in it, and no note says why")
        if self.accuracy is None and not published:
            raise DataError(f"{where}: what was measured has an accuracy")
        for size, share in self.certified.items():
            if size != ALL and not (size.isdecimal() and int(size) >= 1):
                raise DataError(f"{where}: certified has the size {size!r}: '1', '2', ..., '{ALL}'")
            if not isinstance(share, int | float) or not 0 <= share <= 1:
                raise DataError(f"{where}: certified at {size} is {share!r}, not a share")
        shares = [self.certified[size] for size in self.sizes()]
        if shares != sorted(shares, reverse=True):
            raise DataError(f"{where}: certified grows with the size: {shares}")
        if (
            shares
            and self.accuracy is not None
            and self.guarantee != "none"
            and (self.accuracy < shares[0])
        ):
            raise DataError(f"{where}: more is certified ({shares[0]}) than right")
        if (self.alpha is not None) != (self.guarantee == "1 - alpha"):
            raise DataError(f"{where}: alpha belongs to the guarantee '1 - alpha', and only there")
        if published:
            if not self.where:
                raise DataError(f"{where}: a published figure needs `where` it was read")
        elif not (self.commands and self.hardware and self.versions and self.texts):
            raise DataError(f"{where}: what was measured needs commands, hardware, versions, texts")
        if self.source == "measured here, their code" and not (self.code and self.code.commit):
            raise DataError(f"{where}: code of others needs its repository and commit")

    def sizes(self) -> list[str]:
        """The sizes in ascending order, `ALL` last."""
        return sorted(self.certified, key=lambda size: (size == ALL, len(size), size))


def certified_by_size(shares: Sequence[float], most: int) -> dict[str, float]:
    """``certified`` from shares at 0, 1, 2, ... changes; behind the last one it is 0."""
    return {
        str(size): round(float(shares[size]), 4) if size < len(shares) else 0.0
        for size in range(1, most + 1)
    }


def share(right: Iterable[bool]) -> float:
    """The share of those that are right, as it is written."""
    values = list(right)
    return round(sum(values) / len(values), 4)


def certified_by_radius(radii: Sequence[float], most: int) -> dict[str, float]:
    """``certified`` from the radius of each text; -1 is a wrong label or no certificate."""
    sizes = range(1, most + 1)
    return {str(size): share(radius >= size for radius in radii) for size in sizes}


def versions(*packages: str) -> dict[str, str]:
    """Python's version, and those of the packages."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in packages
    }


def read_all(folder: Path | None = None) -> dict[str, PeerRecord]:
    """Every outcome file by its name."""
    return {path.stem: read(path) for path in sorted((folder or FOLDER).glob("*.json"))}


def read(path: Path) -> PeerRecord:
    found = read_object(path, FORMAT, VERSION)
    del found["format"], found["version"]
    return from_json(PeerRecord, found, path.name, by_hand=True)


def write(name: str, record: PeerRecord, folder: Path | None = None) -> Path:
    """``name`` is ``corpus-threat-method``, in small letters."""
    record.check(name)
    path = (folder or FOLDER) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    written = {"format": FORMAT, "version": VERSION} | to_json(record)
    path.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return path


def main() -> None:
    for name, record in read_all().items():
        print(f"{name}: {record.method}, accuracy {record.accuracy}")


if __name__ == "__main__":
    main()

"""Settings put into what a recipe says: ``{texts}``, ``{rival.options}``, alone or in a word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranmask.errors import DataError

_NAMED = re.compile(r"\{[^{}]+\}")
_DEEPEST = 20  # settings that name settings; deeper, they name each other in a circle


class Filled:
    """Fills settings into the words of a recipe; ``path``: the recipe, for what goes wrong.

    >>> filled = Filled({"rate": 0.9, "fit": ["--rows", "{rows}"], "rows": 8}, Path("my.toml"))
    >>> filled.text("mask{rate}"), filled.value("{rate}")
    ('mask0.9', 0.9)
    >>> list(filled.words(["train", "{fit}"]))
    ['train', '--rows', '8']
    """

    def __init__(self, known: Mapping[str, Any], path: Path) -> None:
        self._known = known
        self._path = path

    def value(self, given: Any, depth: int = 0) -> Any:
        """A setting itself where ``given`` names one and nothing else, with its type."""
        if not isinstance(given, str):
            return given
        if _NAMED.fullmatch(given):
            if depth > _DEEPEST:
                raise DataError(
                    f"the recipe {self._path} has settings that name each other: {given}"
                )
            return self.value(self._lookup(given[1:-1]), depth + 1)
        return _NAMED.sub(lambda match: self._inside(match.group(), given, depth + 1), given)

    def words(self, given: Sequence[Any], depth: int = 0) -> Iterator[str]:
        """Words with their settings; one that is a list becomes as many words."""
        for word in given:
            found = self.value(word, depth)
            if isinstance(found, list):
                yield from self.words(found, depth + 1)
            elif isinstance(found, Mapping):
                raise DataError(
                    f"the recipe {self._path} has a table as a word of a command: {word!r}"
                )
            else:
                yield str(found)

    def text(self, given: str) -> str:
        """A name with its settings."""
        return self._single(self.value(given), given)

    def _inside(self, named: str, whole: str, depth: int) -> str:
        return self._single(self.value(named, depth), whole)

    def _single(self, found: Any, given: str) -> str:
        if isinstance(found, list | Mapping):
            raise DataError(
                f"the recipe {self._path} has a list or a table inside of {given!r}: only a word "
                "of a command that is nothing else can be a list"
            )
        return str(found)

    def _lookup(self, name: str) -> Any:
        found: Any = self._known
        for part in name.split("."):
            if not isinstance(found, Mapping) or part not in found:
                raise DataError(
                    f"the recipe {self._path} names a setting {name!r} that is not there"
                )
            found = found[part]
        return found

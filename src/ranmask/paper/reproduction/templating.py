"""Settings put into what a recipe says: ``{texts}``, ``{rival.options}``, alone or in a word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranmask.errors import DataError

_NAMED = re.compile(r"\{[^{}]+\}")
_DEEPEST = 20  # settings that name settings; deeper, they name each other in a circle


class Template:
    """Fills settings into the words of a recipe; ``path``: the recipe, for what goes wrong.

    >>> template = Template({"rate": 0.9, "fit": ["--rows", "{rows}"], "rows": 8}, Path("my.toml"))
    >>> template.text("mask{rate}"), template.value("{rate}")
    ('mask0.9', 0.9)
    >>> list(template.words(["train", "{fit}"]))
    ['train', '--rows', '8']
    """

    def __init__(self, settings: Mapping[str, Any], path: Path) -> None:
        self._settings = settings
        self._whose = f"the recipe {path}"

    def value(self, given: Any, depth: int = 0) -> Any:
        """A setting itself where ``given`` names one and nothing else, with its type."""
        if not isinstance(given, str):
            return given
        if not _NAMED.fullmatch(given):
            return _NAMED.sub(lambda match: self.text(match.group(), given, depth + 1), given)
        if depth > _DEEPEST:
            raise DataError(f"{self._whose} has settings that name each other: {given}")
        found: Any = self._settings
        for part in given[1:-1].split("."):
            if not isinstance(found, Mapping) or part not in found:
                raise DataError(f"{self._whose} names a setting {given[1:-1]!r} that is not there")
            found = found[part]
        return self.value(found, depth + 1)

    def words(self, given: Sequence[Any], depth: int = 0) -> Iterator[str]:
        """Words with their settings; one that is a list becomes as many words."""
        for word in given:
            found = self.value(word, depth)
            if isinstance(found, list):
                yield from self.words(found, depth + 1)
            elif isinstance(found, Mapping):
                raise DataError(f"{self._whose} has a table as a word of a command: {word!r}")
            else:
                yield str(found)

    def text(self, given: str, whole: str = "", depth: int = 0) -> str:
        """A name with its settings; ``whole``: what it is a part of."""
        found = self.value(given, depth)
        if isinstance(found, list | Mapping):
            raise DataError(
                f"{self._whose} has a list or a table inside of {whole or given!r}: only a word "
                "of a command that is nothing else can be a list"
            )
        return str(found)

"""One text under attack, and the chances that it draws from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ranmask.attacks.tokenization import CutText
from ranmask.results import Certificate


class Chance(Protocol):
    """A source of random numbers."""

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""

    def one_of(self, letters: str) -> str:
        """One character of ``letters``."""


class SeededChance:
    """Random numbers that follow from a seed and the names of what they are for."""

    def __init__(self, *names: object) -> None:
        digest = hashlib.sha256(repr(names).encode("utf-8", "backslashreplace")).digest()
        self._bits = np.random.PCG64(int.from_bytes(digest[:16], "big"))

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""
        # The bias is below count / 2**64.
        return int(self._bits.random_raw()) % count

    def one_of(self, letters: str) -> str:
        """One character of ``letters``."""
        return letters[self.below(len(letters))]

    def sample(self, count: int, size: int) -> list[int]:
        """``size`` different numbers below ``count``, in random order."""
        keys = self._bits.random_raw(count)
        order: list[int] = np.argsort(keys, kind="stable")[:size].tolist()
        return order


@dataclass
class Attempt:
    """One text under attack: what it was, and what the engine keeps count of.

    ``budget``: most words (by `ranmask.words`) that may differ from the original; None: any.
    ``certificate``: of the original text, where the recipe asks for it.
    ``most_queries``: after which the search must end; None: any number.
    """

    number: int
    original: CutText
    label: int
    seed: int
    budget: int | None = None
    certificate: Certificate | None = None
    most_queries: int | None = None
    queries: int = 0
    clean_shares: Sequence[float] = ()

    @property
    def queries_left(self) -> int | None:
        """How many more texts the victim may be asked about; None: any number."""
        return None if self.most_queries is None else self.most_queries - self.queries

    @property
    def exhausted(self) -> bool:
        """No query is left, the search must end."""
        return self.queries_left == 0

    def chance(self, *names: object) -> SeededChance:
        """Random numbers of this attempt's own, whatever else is attacked with it."""
        return SeededChance(self.seed, self.number, *names)

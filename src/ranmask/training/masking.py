"""Which words each text shows in each epoch: a pure function of seed, epoch and row.

Nothing here remembers anything, so a run that was killed draws the same masks again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ranmask import families
from ranmask.certificates.exact import sets_met
from ranmask.families import FamilyChoice, KeptSets, Retention


@dataclass(frozen=True)
class Turn:
    """One text's turn in training; ``progress`` runs from 0 to 1 over the phase."""

    row: int
    epoch: int
    progress: float


@dataclass(frozen=True, eq=False)
class Draw:
    """Kept sets of one text, and how many of all sets each stands for."""

    words: int
    sets: KeptSets
    family: FamilyChoice

    @property
    def kept(self) -> int:
        """How many words each copy shows."""
        return int(self.sets.shape[1])

    def met(self, changed: int) -> int:
        """How many of the drawn copies ``changed`` words meet, at most (expected, if sampled)."""
        drawn = len(self.sets)
        if self.family == "windows":
            most = Fraction(min(changed * self.kept, self.words), self.words)
        else:
            total = math.comb(self.words, self.kept)
            most = Fraction(sets_met(self.words, self.kept, min(changed, self.words)), total)
        return min(drawn, math.ceil(most * drawn))

    @property
    def words_per_copy(self) -> float:
        """Turns a sum over copies into words: of ``words`` copies, one word meets ``kept``."""
        return self.words / (self.kept * len(self.sets))


@dataclass(frozen=True)
class MaskingPlan:
    """How copies are drawn in one phase of training."""

    retentions: tuple[Retention, ...]
    family: FamilyChoice
    copies: int
    ramp: float
    seed: int

    def draw(self, words: int, turn: Turn) -> Draw:
        """The kept sets of a text of ``words`` words: all there are, or ``copies`` random ones."""
        bits = np.random.PCG64(np.random.SeedSequence([self.seed, turn.epoch, turn.row]))
        retention = self.retentions[int(bits.random_raw()) % len(self.retentions)]
        kept = retention.count(words)
        if self.ramp > 0:
            hidden_share = min(Fraction(1), Fraction(turn.progress) / Fraction(self.ramp))
            kept = families.ramped_count(words, kept, hidden_share)
        if self.family == "windows" and kept < words:
            sets = families.windows(words, kept, words)
        elif math.comb(words, kept) <= self.copies:
            sets = families.all_sets(words, kept)
        else:
            keys = bits.random_raw(self.copies * words).reshape(self.copies, words)
            chosen = np.argpartition(keys, kept - 1, axis=1)[:, :kept]
            return Draw(words, np.sort(chosen, axis=1).astype(np.int32), self.family)
        if len(sets) > self.copies:
            sets = sets[np.sort(np.argsort(bits.random_raw(len(sets)))[: self.copies])]
        return Draw(words, sets, self.family)


class Turns:
    """All epochs of a phase as one sequence: item ``i`` is a pure function of ``i``.

    Every epoch is a fresh permutation of the rows, cut to whole batches; where there are fewer
    rows than a batch, rows repeat.
    """

    def __init__(self, rows: int, epochs: int, batch: int, seed: int) -> None:
        self.steps_per_epoch = max(1, rows // batch)
        self._per_epoch = self.steps_per_epoch * batch
        self._rows = rows
        self._epochs = epochs
        self._seed = seed
        self._order: tuple[int, np.ndarray] | None = None

    def __len__(self) -> int:
        return self._per_epoch * self._epochs

    def __getitem__(self, index: int) -> Turn:
        epoch, place = divmod(index, self._per_epoch)
        if self._order is None or self._order[0] != epoch:
            bits = np.random.PCG64(np.random.SeedSequence([self._seed, epoch]))
            self._order = epoch, np.argsort(bits.random_raw(self._rows), kind="stable")
        row = int(self._order[1][place % self._rows])
        return Turn(row, epoch, index / len(self))

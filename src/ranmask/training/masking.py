"""Which words each text shows in each epoch: a pure function of seed, phase, epoch and row.

Nothing here remembers anything, so a run that was killed draws the same masks again.  Pinned by
a test: only numpy's raw bit stream (whose values numpy promises to keep) and our own selection
rules are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ranmask.certificates import families
from ranmask.certificates.exact import sets_met
from ranmask.certificates.families import KeptSets
from ranmask.certificates.kept import FamilyChoice, Retention, ramped_count

_STEPS, _TEXTS = 1 << 16, 1 << 17  # keep these draws apart from those of masks and of rows


@dataclass(frozen=True)
class Turn:
    """One text's turn in training; ``progress`` runs from 0 to 1 over the phase."""

    row: int
    epoch: int
    progress: float


@dataclass(frozen=True, eq=False)
class Draw:
    """The kept sets that were drawn for one text of ``words`` words."""

    words: int
    sets: KeptSets
    family: FamilyChoice

    @property
    def kept(self) -> int:
        """How many words each copy shows."""
        return int(self.sets.shape[1])

    def met(self, changed: int) -> int:
        """How many of the drawn copies ``changed`` words meet, at most.

        Where not all sets were drawn, their share of all sets, rounded up.
        """
        drawn = len(self.sets)
        if self.family == "windows":
            most = Fraction(min(changed * self.kept, self.words), self.words)
        else:
            total = math.comb(self.words, self.kept)
            most = Fraction(sets_met(self.words, self.kept, changed), total)
        return math.ceil(most * drawn)

    @property
    def words_per_copy(self) -> float:
        """Turns a sum over copies into words: of ``words`` copies, one word meets ``kept``."""
        return self.words / (self.kept * len(self.sets))


@dataclass(frozen=True)
class MaskingPlan:
    """How copies are drawn in one phase of training; phases draw independently."""

    retentions: tuple[Retention, ...]
    family: FamilyChoice
    copies: int
    ramp: float
    seed: int
    phase: int = 0

    def draw(self, words: int, turn: Turn) -> Draw:
        """The kept sets of a text of ``words`` words: all there are, or ``copies`` random ones.

        Of several retentions, one is drawn for all copies.  During the ramp fewer words are
        hidden: from none, at the start of the phase, to all that are to be hidden.
        """
        draws = bits(self.seed, 2 * self.phase + 1, turn.epoch, turn.row)
        retention = self.retentions[int(draws.random_raw()) % len(self.retentions)]
        kept = retention.count(words)
        if self.ramp > 0:
            hidden_share = min(Fraction(1), Fraction(turn.progress) / Fraction(self.ramp))
            kept = ramped_count(words, kept, hidden_share)
        if self.family == "windows" and kept < words:
            sets = families.windows(words, kept, words)
            if len(sets) > self.copies:
                sets = sets[np.sort(_order(draws, len(sets))[: self.copies])]
        elif math.comb(words, kept) <= self.copies:
            sets = families.all_sets(words, kept)
        else:
            keys = draws.random_raw(self.copies * words).reshape(self.copies, words)
            chosen = np.argpartition(keys, kept - 1, axis=1)[:, :kept]
            sets = np.sort(chosen, axis=1).astype(np.int32)
        return Draw(words, sets, self.family)

    def step_seed(self, first: Turn) -> int:
        """What the random choices of a step follow from; ``first`` is its first turn."""
        return self._seed(_STEPS, first)

    def text_seed(self, turn: Turn) -> int:
        """What the random choices for a text follow from, apart from its masks."""
        return self._seed(_TEXTS, turn)

    def _seed(self, stream: int, turn: Turn) -> int:
        return int(bits(self.seed, stream + self.phase, turn.epoch, turn.row).random_raw() >> 1)


class Turns:
    """All epochs of a phase as one sequence: item ``i`` is a pure function of ``i``.

    Every epoch is a fresh permutation of the rows, cut to whole batches; where there are fewer
    rows than a batch, rows repeat.
    """

    def __init__(self, rows: int, epochs: int, batch: int, seed: int, phase: int = 0) -> None:
        self.steps_per_epoch = max(1, rows // batch)
        self._per_epoch = self.steps_per_epoch * batch
        self._rows = rows
        self._epochs = epochs
        self._seed = seed
        self._phase = phase
        self._latest: tuple[int, npt.NDArray[np.intp]] | None = None

    def __len__(self) -> int:
        return self._per_epoch * self._epochs

    def __getitem__(self, index: int) -> Turn:
        if not 0 <= index < len(self):
            raise IndexError(index)
        epoch, place = divmod(index, self._per_epoch)
        row = int(self._permutation(epoch)[place % self._rows])
        return Turn(row, epoch, index / len(self))

    def _permutation(self, epoch: int) -> npt.NDArray[np.intp]:
        if self._latest is None or self._latest[0] != epoch:
            self._latest = epoch, _order(bits(self._seed, 2 * self._phase, epoch), self._rows)
        return self._latest[1]


def bits(*key: int) -> np.random.PCG64:
    """A stream of its own for each key.  Numpy pads keys with zeros: ``(1,)`` is ``(1, 0)``."""
    return np.random.PCG64(np.random.SeedSequence(key))


def _order(draws: np.random.PCG64, size: int) -> npt.NDArray[np.intp]:
    """A random permutation of the numbers below ``size``."""
    return np.argsort(draws.random_raw(size), kind="stable")

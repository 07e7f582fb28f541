"""Which words, or tokens, a text shows in an epoch: a pure function of seed, phase, epoch and row.

A run that was killed draws the same masks again.  Pinned by a test: only numpy's raw bit stream
(whose values numpy promises to keep) and our own selection rules are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranmask.certificates import families
from ranmask.certificates.deletion import drawn
from ranmask.certificates.families import KeptSets
from ranmask.certificates.kept import (
    DeletionRates,
    FamilyChoice,
    Retention,
    ramped_count,
    sets_met,
)
from ranmask.models.base import shown
from ranmask.models.flat import Ids
from ranmask.words import Document

# Streams of their own: the order of rows and the masks of a phase have 2 * phase and the next.
_STEPS, _TEXTS = 1 << 16, 1 << 17
_HELD_OUT_TOKENS, _TRAINING_TOKENS = 3, 1
_FATES, _MASKED, _RANDOM = 10, 8, 1  # of ten predicted tokens


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
        return _met(self.family == "windows", self.words, self.kept, len(self.sets), changed)

    @property
    def words_per_copy(self) -> float:
        """Turns a sum over copies into words: of ``words`` copies, one word meets ``kept``."""
        return self.words / (self.kept * len(self.sets))


@lru_cache(maxsize=1 << 16)
def _met(windows: bool, words: int, kept: int, drawn: int, changed: int) -> int:
    if windows:
        most = Fraction(min(changed * kept, words), words)
    else:
        most = Fraction(sets_met(words, kept, changed), math.comb(words, kept))
    return math.ceil(most * drawn)


@dataclass(frozen=True)
class MaskingPlan:
    """How copies are drawn in one phase of training; phases draw independently.

    ``rates``: at which words are deleted before, if any are.
    """

    retentions: tuple[Retention, ...]
    family: FamilyChoice
    copies: int
    ramp: float
    seed: int
    phase: int = 0
    rates: DeletionRates | None = None

    def shortened(self, document: Document, turn: Turn) -> Document:
        """The text without the words that are deleted in this turn, where any are."""
        if self.rates is None:
            return document
        words = len(document.words)
        draws = _bits(self.seed, 2 * self.phase + 1, turn.epoch, turn.row)
        stays = drawn(draws, words, self.rates.of(words)).tolist()
        return replace(document, words=shown(document.words, stays))

    def draw(self, words: int, turn: Turn) -> Draw:
        """The kept sets of a text of ``words`` words: all there are, or ``copies`` random ones.

        Of several retentions, one is drawn for all copies.  During the ramp fewer words are
        hidden: from none, at the start of the phase, to all that are to be hidden.
        """
        draws = _bits(self.seed, 2 * self.phase + 1, turn.epoch, turn.row)
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
        return int(_bits(self.seed, stream + self.phase, turn.epoch, turn.row).random_raw() >> 1)


class HiddenTokens(NamedTuple):
    """A row of tokens as it is shown; at ``places``, which rise, ``targets`` are to be found."""

    shown: Ids
    places: npt.NDArray[np.intp]
    targets: Ids


@dataclass(frozen=True, eq=False)
class TokenMasking:
    """How tokens are hidden from a language model.

    Of the tokens that ``ordinary`` knows, a share of ``rate`` is predicted, and at least one.
    Each is shown as the mask token (in 8 of 10 cases), as any ordinary token (1), or as it is (1).
    ``ordinary`` says of every id of the vocabulary whether it may be predicted: special and
    unknown tokens may not.  ``held_out`` draws independently of training.
    """

    ordinary: npt.NDArray[np.bool_]
    mask_id: int
    rate: float
    seed: int
    held_out: bool = False

    @cached_property
    def _known(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.ordinary)

    def hide(self, ids: Ids, turn: Turn) -> HiddenTokens:
        """The row of tokens ``ids``, without padding, as it is shown in this turn."""
        candidates = np.flatnonzero(self.ordinary[ids])
        count = min(len(candidates), max(1, int(self.rate * len(candidates) + 0.5)))
        stream = _HELD_OUT_TOKENS if self.held_out else _TRAINING_TOKENS
        draws = _bits(self.seed, stream, turn.epoch, turn.row)
        places = np.sort(candidates[_order(draws, len(candidates))[:count]])
        fates = draws.random_raw(count) % _FATES
        others = self._known[draws.random_raw(count) % len(self._known)]
        shown = ids.copy()
        shown[places] = np.select(
            [fates < _MASKED, fates < _MASKED + _RANDOM], [self.mask_id, others], ids[places]
        )
        return HiddenTokens(shown, places, ids[places])


@dataclass(frozen=True)
class Turns:
    """All epochs of a phase as one sequence: item ``i`` is a pure function of ``i``.

    Every epoch is a fresh permutation of the rows, cut to whole batches; where there are fewer
    rows than a batch, rows repeat.
    """

    rows: int
    epochs: int
    batch: int
    seed: int
    phase: int = 0

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has."""
        return max(1, self.rows // self.batch)

    def __len__(self) -> int:
        return self.steps_per_epoch * self.batch * self.epochs

    def __getitem__(self, index: int) -> Turn:
        if not 0 <= index < len(self):
            raise IndexError(index)
        epoch, place = divmod(index, self.steps_per_epoch * self.batch)
        order = permutation(self.rows, self.seed, 2 * self.phase, epoch)
        return Turn(int(order[place % self.rows]), epoch, index / len(self))


@lru_cache(maxsize=2)
def permutation(size: int, *key: int) -> npt.NDArray[np.intp]:
    """A random order of the numbers below ``size``, of a stream of its own for each key."""
    return _order(_bits(*key), size)


def _bits(*key: int) -> np.random.PCG64:
    """A stream of its own for each key.  Numpy pads keys with zeros: ``(1,)`` is ``(1, 0)``."""
    return np.random.PCG64(np.random.SeedSequence(key))


def _order(draws: np.random.PCG64, size: int) -> npt.NDArray[np.intp]:
    return np.argsort(draws.random_raw(size), kind="stable")

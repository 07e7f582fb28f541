"""Which tokens of a text a language model has to predict, and what it is shown in their place.

A pure function of seed, epoch, row and the text's own tokens, as `masking` is: other texts of the
batch and earlier draws do not count, so a run that was killed hides the same tokens again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranmask.models.encoding import Ids
from ranmask.training.masking import Turn, bits

_TRAINING, _HELD_OUT = 1, 3  # streams of their own; `masking.Turns` draws the order from stream 0
_FATES, _MASKED, _RANDOM = 10, 8, 1  # of ten predicted tokens


@dataclass(frozen=True, eq=False)
class HiddenTokens:
    """A row of tokens as it is shown; at ``places``, which rise, ``targets`` are to be found."""

    shown: Ids
    places: npt.NDArray[np.intp]
    targets: Ids


@dataclass(frozen=True, eq=False)
class TokenMasking:
    """How tokens are hidden.

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

    def hide(self, ids: Ids, turn: Turn) -> HiddenTokens:
        """The row of tokens ``ids``, without padding, as it is shown in this turn."""
        candidates = np.flatnonzero(self.ordinary[ids])
        count = min(len(candidates), max(1, int(self.rate * len(candidates) + 0.5)))
        stream = _HELD_OUT if self.held_out else _TRAINING
        draws = bits(self.seed, stream, turn.epoch, turn.row)
        keys = draws.random_raw(len(candidates))
        places = np.sort(candidates[np.argsort(keys, kind="stable")[:count]])
        fates = draws.random_raw(count) % _FATES
        known = np.flatnonzero(self.ordinary)
        others = known[draws.random_raw(count) % len(known)]
        shown = ids.copy()
        shown[places] = np.select(
            [fates < _MASKED, fates < _MASKED + _RANDOM], [self.mask_id, others], ids[places]
        )
        return HiddenTokens(shown, places, ids[places])

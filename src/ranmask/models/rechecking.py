"""Asks a classifier again: whether it says the same of the same copy, in other company.

A certificate rests on that, and nobody can prove it of a Python function.  So of the copies that
are scored together a few are scored once more, in a batch of their own and in another order.  The
first time the clearest of them is asked about a third time, alone, and from then on with all
others: its answer must stay as it was.  **This finds careless functions, not malicious ones**:
certificates say what was checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranmask.errors import ClassifierError, OptionError, blaming, shortened
from ranmask.models.base import (
    BaseClassifier,
    DeletedCopies,
    DrawnCopies,
    MaskedCopies,
    Scores,
)

DEFAULT_COPIES = 4
"""Copies of those scored together that are asked about again."""

_ONE_IN = 8  # of a text with few copies, fewer are


class Recheck:
    """Remembers one answer, and compares others.

    ``copies``: most copies of those scored together that are asked about again; 0: none.
    """

    def __init__(self, base: BaseClassifier, copies: int) -> None:
        if isinstance(copies, bool) or not isinstance(copies, int) or copies < 0:
            raise OptionError(f"recheck must be a whole number of at least 0, not {copies!r}")
        self.copies = copies
        self._base, self._remembered = base.without_memory, base.remembered
        self._first: tuple[MaskedCopies, Scores] | None = None

    def check(
        self,
        asked: Sequence[MaskedCopies] | Sequence[DrawnCopies] | Sequence[DeletedCopies],
        said: Sequence[Scores],
        tolerance: float,
    ) -> None:
        """Raise `ClassifierError`, which names the text, where an answer moves too far.

        Nobody else may change the arrays of what was ``said``.  Each output may move by half of the
        ``tolerance``, as `BaseClassifier.tolerance`.
        """
        if not self.copies or not said:
            return
        chosen = self._choose(said)
        copies = [asked[text].alone(row) for text, row in chosen]
        before = [said[text][row] for text, row in chosen]
        texts: list[int | None] = [text for text, _ in chosen]
        clearest = (texts[-1], copies[-1], before[-1])
        # In company of the first copy of all, whose answer must have stayed; else of itself.
        first = (None, *self._first) if self._first is not None else clearest
        others = zip(texts[:-1], copies[:-1], before[:-1], strict=True)
        self._ask([*others, first, clearest], tolerance)
        if self._first is None:
            # Where a function alternates, one of two calls has another turn.
            self._ask([clearest], tolerance)
            self._first = clearest[1:]

    def _choose(self, said: Sequence[Scores]) -> list[tuple[int, int]]:
        """Text and row of the copies to ask about: the clearest answer last, others spread."""
        ends = np.cumsum([len(rows) for rows in said])
        total = int(ends[-1])
        number = min(self.copies, max(1, total // _ONE_IN))
        clear = np.ptp(np.concatenate(said), axis=1)
        clearest = total - 1 - int(clear[::-1].argmax())
        spread = np.linspace(total - 1, 0, number + 1).round().astype(np.intp).tolist()
        others = [place for place in spread if place != clearest][: number - 1]
        places = np.array([*others, clearest])
        texts = np.searchsorted(ends, places, side="right")
        rows = places - np.concatenate(([0], ends))[texts]
        return [*zip(texts.tolist(), rows.tolist(), strict=True)]

    def _ask(
        self, batch: Sequence[tuple[int | None, MaskedCopies, Scores]], tolerance: float
    ) -> None:
        with blaming([text for text, _, _ in batch]):
            now = np.concatenate(self._base.score([copy for _, copy, _ in batch]))
        for (text, copy, before), after in zip(batch, now, strict=True):
            moved = float(np.abs(after - before).max()) if len(after) == len(before) else np.inf
            if moved <= tolerance / 2:
                continue
            hint = ""
            if moved < np.inf:
                hint = (
                    f" If these are rounding errors, give a tolerance well above {2 * moved:.2g}."
                )
            if self._remembered is not None:
                hint += (
                    f" If {self._remembered} keeps answers of another version of it, name the "
                    "model, or the file, anew."
                )
            whose = "a copy of an earlier text"  # may be somebody else's: it is not quoted
            if text is not None:
                shown = " ".join(copy.document.words[place] for place in copy.kept[0].tolist())
                whose = f"the copy that shows {shortened(shown)!r}"
            raise ClassifierError(
                f"the base classifier said {before.tolist()} of {whose}, and {after.tolist()} when "
                "it was asked again in another batch: it must be deterministic and judge each text "
                f"by itself.{hint} recheck=0 leaves this check out, and certificates may then be "
                "false",
                text,
            )

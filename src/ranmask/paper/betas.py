"""The paper's beta of texts, and how far a chosen set of positions can push it.

``beta`` is the chance that a copy which shows a changed word still votes for the label; the paper
puts its average over random positions, or the label's share of all votes, in its place.  **Nothing
here is a guarantee**: `BetaEstimate.largest` shows why (docs/certificates.md, section 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.certificates.paper import Counts, Overlaps, average_share, random_positions
from ranmask.errors import OptionError
from ranmask.results import BetaEstimate
from ranmask.smoothing.masks import MaskedText
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.words import Text

DEFAULT_DRAWS = 200
"""The paper's n_r."""
DEFAULT_BETA_MASKS = 10_000
"""The paper's n_k."""
DEFAULT_CHANGED = 10


class BetaEstimator:
    """Estimates beta for 1 to ``changed`` changed words.  Proves nothing.

    The label is the winner of the estimation sample's votes, ``masks`` kept sets a text.

    Args:
        smoothed: A vote ensemble.
        changed: The largest number of changed words.
        draws: How many random choices of positions the average is over.

    >>> from ranmask.models.testing import keyword_classifier
    >>> smoothed = SmoothedClassifier(keyword_classifier, keep=1, certificate="ablation")
    >>> [beta] = BetaEstimator(smoothed, changed=2).estimate(["good good bad"])
    >>> beta.label_id, [round(share, 2) for share in (beta.share, *beta.average, *beta.largest)]
    (1, [0.67, 0.7, 0.65, 1.0, 1.0])
    """

    def __init__(
        self,
        smoothed: SmoothedClassifier,
        *,
        changed: int = DEFAULT_CHANGED,
        draws: int = DEFAULT_DRAWS,
    ) -> None:
        for name, value in (("changed", changed), ("draws", draws)):
            if value < 1:
                raise OptionError(f"{name} must be a whole number of at least 1, not {value!r}")
        if smoothed.options.ensemble != "vote":
            raise OptionError(
                f"beta is a share of votes, not of ensemble={smoothed.options.ensemble!r}: use "
                "ensemble='vote'"
            )
        self.smoothed = smoothed
        self.changed = changed
        self.draws = draws

    def estimate(self, texts: Sequence[Text]) -> list[BetaEstimate]:
        """One estimate for each text, in their order."""
        found = []
        for scored in self.smoothed.scored(texts, "estimation"):
            labels = scored.votes.winners.tolist()
            answers = self.smoothed.answers(scored, labels)
            for place, (text, answer) in enumerate(zip(scored.texts, answers, strict=True)):
                votes = scored.votes.part(place, place + 1)
                found.append(self._estimate(text, votes.best == labels[place], answer))
        return found

    def _estimate(
        self, text: MaskedText, for_label: npt.NDArray[np.bool_], answer: dict[str, Any]
    ) -> BetaEstimate:
        words = text.family.words
        overlaps = Overlaps.of(text.kept, for_label, words)
        most = min(self.changed, words)
        greedy = _shares(*overlaps.greedy_counts(most))
        average: list[float | None] = []
        largest: list[float | None] = []
        for changed in range(1, most + 1):
            seed = self.smoothed.options.seed
            votes, met = overlaps.counts(random_positions(words, changed, self.draws, seed))
            mean = average_share(votes, met)
            average.append(None if mean is None else float(mean))
            largest.append(max(*_shares(votes, met), greedy[changed - 1]))
        missing = [None] * (self.changed - most)
        return BetaEstimate(
            **answer,
            share=int(for_label.sum()) / len(for_label),
            changed=tuple(range(1, self.changed + 1)),
            average=(*average, *missing),
            largest=(*largest, *missing),
        )


def _shares(votes: Counts, copies: Counts) -> list[float]:
    """``votes / copies``, 0 where there is no copy: the quotients of integers, rounded once."""
    pairs = zip(votes.tolist(), copies.tolist(), strict=True)
    return [some / all_of_them if all_of_them else 0.0 for some, all_of_them in pairs]

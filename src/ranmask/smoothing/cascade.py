"""A detector in front: texts that look attacked go to the smoothed classifier, others do not.

**The cascade as a whole carries no certificate**: an attacker who fools the detector and the plain
classifier needs to change no more words than those allow, however large the smoothed classifier's
radius is.  What it offers is the plain classifier's accuracy on clean texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.certificates.votes import as_scores
from ranmask.errors import ModelError, blaming
from ranmask.models import model_config, pretrained
from ranmask.models.base import BaseClassifier, Scores, check_gives_scores, score_full_texts
from ranmask.models.model_config import CASCADE_PARTS
from ranmask.options import CascadeOptions
from ranmask.results import CascadeCertificate, CascadePrediction, Certificate, Prediction
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.words import Document, Text, documents

CLEAN, ATTACKED = "clean", "attacked"
DETECTOR_LABELS = (CLEAN, ATTACKED)
"""The classes of a detector."""

PLAIN, SMOOTHED, DETECTOR = CASCADE_PARTS
"""The two paths, and what chooses between them."""

_ABOUT = (
    "the guarantee is for `label` ({}), the smoothed classifier's; none is given for "
    "`shown_label`, which follows from a detector and a plain classifier"
)
_GRID = 2.0**-16  # suspicions are rounded to it: computed in another batch they move a little


class Cascade:
    """A plain and a smoothed classifier of the same classes, and a detector that chooses.

    **The cascade as a whole carries no certificate.**  `predict` shows the plain label of a text
    whose suspicion is at most ``threshold``, and the smoothed label of any other.  `certify`
    always certifies, and what it proves is about the smoothed label alone.

    Args:
        plain: Reads whole texts.
        smoothed: A `SmoothedClassifier`, or anything else that predicts and certifies.
        detector: Reads whole texts; its classes are ``clean`` and ``attacked``.
        threshold: From 0 to 1.  At 1 every text is plain's.
    """

    def __init__(
        self,
        plain: BaseClassifier,
        smoothed: CertifiedClassifier,
        detector: BaseClassifier,
        threshold: float = CascadeOptions.threshold,
    ) -> None:
        CascadeOptions(threshold)
        if isinstance(smoothed, Cascade):
            raise ModelError(
                "the smoothed part of a cascade is a cascade itself: give the classifier that is "
                "smoothed inside it"
            )
        if set(detector.labels or ()) != set(DETECTOR_LABELS):
            named = "unnamed" if detector.labels is None else ", ".join(detector.labels)
            raise ModelError(
                f"a detector has the classes {' and '.join(DETECTOR_LABELS)}, this one's are "
                f"{named}: train it with `ranmask cascade detector`"
            )
        for part in (plain, detector):
            check_gives_scores(part, "a cascade")
        if plain.labels != smoothed.labels:
            shown = [", ".join(part.labels or ("unnamed",)) for part in (plain, smoothed)]
            raise ModelError(
                f"the plain classifier has the classes {shown[0]}, the smoothed one {shown[1]}: "
                "they must be the same, in the same order"
            )
        self.plain = plain
        self.smoothed = smoothed
        self.detector = detector
        self.threshold = float(threshold)
        self._attacked = (detector.labels or DETECTOR_LABELS).index(ATTACKED)

    @property
    def base(self) -> BaseClassifier:
        """The plain classifier."""
        return self.plain

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes, where they are known."""
        return self.plain.labels

    def description(self) -> dict[str, Any]:
        """What determines the results, as plain JSON values."""
        return {
            "kind": "cascade",
            "threshold": self.threshold,
            "plain": self.plain.description(),
            "smoothed": self.smoothed.description(),
            "detector": self.detector.description(),
        }

    def check_certifiable(self) -> None:
        """Raise `OptionError` where the smoothed classifier can certify nothing."""
        self.smoothed.check_certifiable()

    def save_pretrained(self, folder: str) -> None:
        """Save the three parts and the threshold; `store.load_classifier` loads them."""
        place = Path(folder)
        whole = {"mask_rate": 0.0, "ensemble": "score"}
        pretrained.save(self.plain, str(place / PLAIN), options=whole, labels=self.labels)
        self.smoothed.save_pretrained(str(place / SMOOTHED))
        names = self.detector.labels
        pretrained.save(self.detector, str(place / DETECTOR), options=whole, labels=names)
        model_config.write(
            place, model_config.CASCADE, {"threshold": self.threshold}, model_config.CASCADE_PARTS
        )

    def suspicions(self, texts: Sequence[Text | Document]) -> npt.NDArray[np.float64]:
        """The detector's score of ``attacked`` for each text, from 0 to 1."""
        if not texts:
            return np.zeros(0)
        rows = score_full_texts(self.detector, documents(texts))
        scores = as_scores(rows, self.detector.outputs)
        return np.rint(scores[:, self._attacked] / _GRID) * _GRID

    def suspected(self, suspicions: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Which texts take the smoothed path: those whose suspicion is above the threshold."""
        return suspicions > self.threshold

    def plain_predictions(self, texts: Sequence[Text | Document]) -> list[Prediction]:
        """What the plain classifier says of each text, whatever the detector says."""
        if not texts:
            return []
        read = documents(texts)
        rows = score_full_texts(self.plain, read)
        shares: Scores = as_scores(rows, self.plain.outputs)
        labels = rows.argmax(axis=1).tolist()
        names = self.labels or tuple(map(str, range(rows.shape[1])))
        return [
            Prediction(
                label=names[label],
                label_id=label,
                votes=tuple(int(place == label) for place in range(len(row))),
                scores=tuple(row),
                words=len(text.words),
                words_read=self.plain.words_read(text),
                kept=self.plain.words_read(text),
                masks=1,
                family="whole text",
                ensemble="score",
            )
            for text, label, row in zip(read, labels, shares.tolist(), strict=True)
        ]

    def predict(self, texts: Sequence[Text | Document]) -> list[CascadePrediction]:
        """The label that is shown, **with no certificate**, and the path that it comes from."""
        read = documents(texts)
        suspicions = self.suspicions(read)
        places = np.flatnonzero(self.suspected(suspicions)).tolist()
        with blaming(places):
            found = self.smoothed.predict([read[place] for place in places]) if places else []
        shown = self._shown(read, dict(zip(places, found, strict=True)))
        return [
            CascadePrediction(**vars(answer), path=path, suspicion=float(suspicion))
            for (answer, path), suspicion in zip(shown, suspicions, strict=True)
        ]

    def certify(self, texts: Sequence[Text | Document]) -> list[CascadeCertificate]:
        """The smoothed label with what is proved about it, and the label that is shown.

        Guarantee: that of the smoothed classifier, for ``label``.  Nothing is proved of
        ``shown_label``.
        """
        read = documents(texts)
        proved = self.smoothed.certify(read)
        suspicions = self.suspicions(read)
        places = np.flatnonzero(self.suspected(suspicions)).tolist()
        shown = self._shown(read, {place: proved[place] for place in places})
        return [
            CascadeCertificate(
                **vars(replace(result, assumes=(*result.assumes, _ABOUT.format(result.label)))),
                shown_label=answer.label,
                shown_label_id=answer.label_id,
                path=path,
                suspicion=float(suspicion),
            )
            for result, (answer, path), suspicion in zip(proved, shown, suspicions, strict=True)
        ]

    def _shown(
        self, texts: Sequence[Document], smoothed: Mapping[int, Prediction | Certificate]
    ) -> list[tuple[Prediction | Certificate, str]]:
        """What is shown of each text, and its path: the smoothed answer by place, else plain's."""
        places = [place for place in range(len(texts)) if place not in smoothed]
        with blaming(places):
            plain = self.plain_predictions([texts[place] for place in places])
        others = iter(plain)
        return [
            (smoothed[place], SMOOTHED) if place in smoothed else (next(others), PLAIN)
            for place in range(len(texts))
        ]

"""The settings that a sweep tries: ways to smooth one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction

from ranmask.certificates.kept import FamilyChoice, Retention, kept_count
from ranmask.errors import ClassifierError
from ranmask.options import DEFAULT_MASKS, ENSEMBLES, Ensemble, SmoothingOptions
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.words import Text


@dataclass(frozen=True)
class Setting:
    """One way to smooth a model.  Checked when built."""

    keep: int | None
    mask_rate: float | None
    family: FamilyChoice
    ensemble: Ensemble
    masks: int

    def __post_init__(self) -> None:
        SmoothingOptions(**asdict(self))

    @property
    def name(self) -> str:
        """A few words for tables and pictures."""
        shown = f"rate {self.mask_rate:g}" if self.keep is None else f"keep {self.keep}"
        return f"{shown}, {self.family}, {self.ensemble}"

    @property
    def flags(self) -> tuple[str, ...]:
        """The options of ``ranmask certify`` that mean this setting."""
        return tuple(
            part
            for key, value in asdict(self).items()
            if value is not None
            for part in (f"--{key.replace('_', '-')}", str(value))
        )

    def kept(self, words: int) -> int:
        """How many of a text's words a copy shows."""
        return kept_count(words, keep=self.keep, mask_rate=self.mask_rate)


def retentions_near(own: Retention | None) -> list[Retention]:
    """How many words to try to show: what the model was saved with, and its neighbours."""
    if own is None:
        return [Retention(keep=keep) for keep in (1, 2, 3)]
    if own.mask_rate is None:
        near = [(own.keep or 0) + step for step in (-1, 0, 1)]
        return [Retention(keep=keep) for keep in near if keep >= 1]
    visible = 1 - Fraction(str(own.mask_rate))
    shares = [share for share in (2 * visible, visible, visible / 2) if share < 1]
    return [Retention(mask_rate=float(1 - share)) for share in shares]


def supported_ensembles(classifier: SmoothedClassifier, text: Text) -> tuple[Ensemble, ...]:
    """The ensembles that mean something for a model; ``text`` is shown to it where that decides.

    Normalised logits want logits.  Scores of a function are added up if they lie in [0, 1].
    """
    if classifier.base.outputs != "scores":
        return ENSEMBLES
    try:
        SmoothedClassifier(classifier.base, keep=1, ensemble="score").predict([text])
    except ClassifierError:
        return ("vote",)
    return ("vote", "score")


def grid(
    options: SmoothingOptions,
    own: Retention | None,
    *,
    retentions: Sequence[Retention] = (),
    choices: Sequence[FamilyChoice] = (),
    ensembles: Sequence[Ensemble] = (),
    masks: int | None = None,
) -> list[Setting]:
    """Every combination, without repeats; what is not given follows the model's own options.

    ``own`` is how many words the model was saved to be shown.  Its own family and number of
    masks go with that.  With others a family of *all* kept sets could be too large, so there it
    becomes ``auto``, of at most 1,000.
    """
    # These are certified for single words only.
    edits = any(threat not in ("substitutions", "span") for threat in options.all_threats)
    if not retentions:
        retentions = [Retention(keep=1)] if edits else retentions_near(own)
    found: dict[Setting, None] = {}
    for retention in retentions:
        large = options.voting_family in ("all", "distinct")
        default = "auto" if large and retention != own and not edits else options.voting_family
        for choice in choices or (default,):
            most = options.masks or DEFAULT_MASKS
            if (retention, choice) != (own, options.voting_family) and not edits:
                most = min(most, DEFAULT_MASKS)
            for ensemble in ensembles or (options.ensemble,):
                shown = retention.keep, retention.mask_rate
                found[Setting(*shown, choice, ensemble, masks or most)] = None
    return list(found)

"""How the table of a detector is trained; nothing heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from ranmask.errors import OptionError
from ranmask.options.fields import Checked, option
from ranmask.training import shared_options as shared

Additions: TypeAlias = Literal["anywhere", "ends"]


@dataclass(frozen=True)
class DetectorTraining(Checked, kind="monotone", group="Detector"):
    """A word table that flags a class, and where its threshold is set.  Checked when built."""

    monotone: bool = option("Of words: train a detector; what is flagged stays flagged.", False)
    additions: Additions = option(
        "Where added text must never unflag: anywhere; or at the ends, before and after, which "
        "finds more in long texts.",
        "anywhere",
    )
    positive: str | None = option("The class to flag.", unset="the second of two")
    false_positives: str = option(
        "Share of other validation texts that may be flagged, as 1% or 0.01.", "1%"
    )
    by: str | None = option(
        "Column of the data: rates are also given for each of its values, as of source."
    )
    word_limit: float | None = option(
        "How much one word may count, of additions at the ends: with more, single words are found; "
        "with less, more changed words are proved.",
        unset="2",
        above=0,
    )
    epochs: int = option("Epochs of training.", 10, least=1, group="Training")
    learning_rate: float = shared.schedule_option(shared.LEARNING_RATE, 0.02, above=0)
    batch_size: int = shared.batch_size(64)
    weight_decay: float = shared.schedule_option(shared.SQUARED, 1e-6, least=0)
    class_weights: shared.ClassWeights = option(
        "balanced: both sides count the same, however few texts one has; or none. Of additions at "
        "the ends, harmless texts then count three times as much.",
        "balanced",
        group="Training",
    )
    buckets: int = shared.size_option("Rows of the table.", 1 << 18, least=1)
    most_words: int = shared.most_words(group="Training")
    seed: int = shared.random_seed(group="Training")

    def __post_init__(self) -> None:
        super().__post_init__()
        share_of(self.false_positives)
        if self.word_limit is not None and self.additions == "anywhere":
            raise OptionError(
                f"word_limit={self.word_limit} goes with additions='ends': elsewhere no word "
                "speaks against a flag, and none is limited"
            )

    @property
    def limit(self) -> float:
        """How much one word may count."""
        return 2.0 if self.word_limit is None else self.word_limit


def share_of(given: str) -> Fraction:
    """A share from 0 up to 1, as ``1%``, ``0.01`` or ``1/100``."""
    try:
        number, percent = given.strip().removesuffix("%"), given.strip().endswith("%")
        share = Fraction(number.strip()) / (100 if percent else 1)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share < 1:
        raise OptionError(f"false_positives must be a share below 1, as 1% or 0.01, not {given!r}")
    return share

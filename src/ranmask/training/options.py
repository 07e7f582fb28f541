"""How encoders and masked language models are trained; no torch is imported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ranmask.certificates.kept import DeletionRates, Retention
from ranmask.errors import OptionError
from ranmask.options import Ensemble
from ranmask.options.fields import Checked, option, option_fields
from ranmask.training import shared_options as shared
from ranmask.words import Hiding

Head: TypeAlias = Literal["choice", "approval"]
VoteLoss: TypeAlias = Literal["certified", "margin"]

_LARGE, _LARGE_RATE, _SMALL_RATE = 50_000_000, 5e-5, 2e-4  # parameters; learning rates

MARGIN_WIDTH = 0.1
"""Width of the margin loss's hinge, in scores."""

WHOLE_TEXTS: dict[str, Any] = {"mask_rate": 0.0, "hide": "mask", "ensemble": "score"}
"""Options of training that hides no word: one copy shows all of a text, and decides alone."""

DELETION_VALIDATION: dict[str, Any] = {"masks": 200, "selection_masks": 50}
"""Copies of a held-out text that lack words at random: thousands of each would take hours."""


@dataclass(frozen=True)
class TrainingOptions(Checked, kind="encoder", group="Training"):
    """Masked training, then vote training.

    The defaults of the first are the paper's but for class weights, and for the learning rate of
    encoders that are smaller than its own.

    **Masked training** (``epochs``, at most): cross-entropy on copies of each text with fresh
    random masks every epoch.  It stops after ``patience`` evaluations without a better certified
    accuracy on validation.  **Vote training** (``vote_epochs``): several copies of a text are
    added up as the smoothed classifier does, and the loss is on the margin of the sum.
    """

    keep: tuple[int, ...] = shared.mask_option(
        "Words that copies show; several, as 1,2,3, are mixed, and the first is certified. Beside "
        "--mask-rate, with --family deletion: on average, of longer texts.",
        (),
        least=1,
    )
    mask_rate: float | None = shared.mask_option(
        "Or: share of words that is hidden.", least=0, below=1
    )
    hide: Hiding = shared.mask_option(
        "drop leaves hidden words out, mask shows a token for each.", "drop"
    )
    family: Literal["auto", "windows", "deletion"] = shared.mask_option(
        "Kept sets that training draws: at random (auto) or windows; or deletion: every word is "
        "deleted with the chance --mask-rate.",
        "auto",
    )
    head: Head = shared.size_option(
        "choice (softmax), or approval (a sigmoid for each class: a word may speak for two).",
        "choice",
    )
    pair_head: bool = shared.size_option(
        "For pairs: both encodings, concatenated, and two layers.", False
    )
    epochs: int = option(shared.EPOCHS, 20, least=0)
    copies: int = shared.mask_option("Masked copies of a text in a step.", 1, least=1)
    ramp: float = shared.mask_option(
        "Share of masked training in which the number of hidden words rises, from none.",
        0.0,
        least=0,
        most=1,
    )
    patience: int | None = option(
        "Evaluations without gain before it stops.", 3, unset="never", least=1
    )
    vote_epochs: int = shared.vote_option("Epochs of vote training after it.", 0, least=0)
    vote_copies: int = shared.vote_option("Most copies of a text in a vote.", 64, least=1)
    vote_loss: VoteLoss = shared.vote_option(
        "certified: counts texts that are not certified; margin: a hinge.", "certified"
    )
    target_words: int = shared.vote_option(
        "Changed words to be certified against: certified accuracy is averaged from 0 up to "
        "it, in the loss and where the best checkpoint is chosen.",
        5,
        least=1,
    )
    temperature: float | None = shared.vote_option(
        shared.TEMPERATURE, unset="target / 2.5", above=0
    )
    accuracy_weight: float = shared.vote_option(shared.ACCURACY_WEIGHT, 1.0, least=0)
    margin: float = shared.vote_option(shared.MARGIN, 0.55, least=0)
    class_weights: shared.ClassWeights = shared.class_weights("balanced")
    positive: str | None = shared.positive()
    learning_rate: float | None = shared.schedule_option(
        shared.LEARNING_RATE,
        unset="2e-4, 5e-5 from 50M parameters",
        above=0,
        most=shared.LARGEST_RATE,
    )
    vote_learning_rate: float | None = shared.vote_option(
        "The same for vote training.", unset="the same", above=0, most=shared.LARGEST_RATE
    )
    weight_decay: float = shared.weight_decay(1e-6)
    batch_size: int = shared.batch_size(32)
    accumulate: int = shared.accumulate(1)
    gradient_clip: float = shared.gradient_clip(1.0)
    layers: int | None = shared.size_option(
        "Keep only the first layers of the base.", unset="all", least=1
    )
    vocabulary: int | None = shared.size_option(
        "Keep only the most frequent tokens.", unset="all", least=100
    )
    longest: int | None = shared.size_option(shared.LONGEST, unset="as the base", least=8)
    weights: shared.WeightType = shared.weights("float32")
    evaluate_every: int | None = shared.evaluate_every()
    validation_rows: int = shared.validation_rows(500)
    ensemble: Ensemble | None = shared.saved_option(
        "How copies are added up.", unset="vote; score after vote training"
    )
    masks: int | None = shared.saved_option("Most copies a text.", unset="1000", least=1)
    seed: int = shared.random_seed(below=2**32)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deletes_words:
            self._check_deletion()
        _ = self.retentions
        if self.epochs + self.vote_epochs == 0:
            raise OptionError(
                "epochs and vote_epochs are both 0: nothing would be trained", "epochs"
            )

    @property
    def retentions(self) -> tuple[Retention, ...]:
        """How many words copies show; the first is what the saved classifier uses."""
        if self.deletes_words:  # of what is left of a text, all are shown
            return (Retention(mask_rate=0.0),)
        if self.mask_rate is not None or not self.keep:
            return (Retention(self.keep[0] if self.keep else None, self.mask_rate),)
        return tuple(Retention(keep) for keep in self.keep)

    @property
    def hides_words(self) -> bool:
        """Whether any word is hidden at all; a deleted one is not."""
        return self.mask_rate != 0 and not self.deletes_words

    @property
    def deletes_words(self) -> bool:
        """Whether words are deleted at random, as the saved classifier's copies lack them."""
        return self.family == "deletion"

    @property
    def rates(self) -> DeletionRates | None:
        """With what chance words are deleted, if they are."""
        if not self.deletes_words or self.mask_rate is None:
            return None
        return DeletionRates(self.mask_rate, self.keep[0] if self.keep else None)

    @property
    def hiding(self) -> Hiding:
        """How the encoder hides words, where it hides any."""
        return "mask" if self.deletes_words else self.hide

    def _check_deletion(self) -> None:
        if not self.mask_rate:
            raise OptionError(
                f"family='deletion' needs mask_rate, the chance that a word is deleted, as 0.9; "
                f"not {self.mask_rate!r}",
                "mask_rate",
            )
        if len(self.keep) > 1:
            raise OptionError(
                f"family='deletion' takes one keep, not {', '.join(map(str, self.keep))}: copies "
                "of longer texts have so many words on average",
                "keep",
            )
        fields = option_fields(TrainingOptions)
        for name in ("copies", "ramp", "vote_epochs", "ensemble"):
            if getattr(self, name) != fields[name].default:
                raise OptionError(
                    f"{name}={getattr(self, name)!r} means nothing with family='deletion', which "
                    "trains on one random copy of a text at a time: leave it out",
                    name,
                )

    @property
    def step_width(self) -> float:
        """The temperature of the certified loss, in words."""
        return self.temperature or self.target_words / 2.5

    def smoothing(self) -> dict[str, Any]:
        """The options that the trained classifier is smoothed with."""
        if self.deletes_words:
            keep = self.keep[0] if self.keep else None
            how = {"mask_rate": self.mask_rate, "keep": keep}
            return {**how, "masks": self.masks, "seed": self.seed}
        first = self.retentions[0]
        return {
            "keep": first.keep,
            "mask_rate": first.mask_rate,
            "family": None if self.family == "auto" else self.family,
            "ensemble": self.ensemble or ("score" if self.vote_epochs else "vote"),
            "masks": self.masks,
        }

    def settled(self, parameters: int) -> TrainingOptions:
        """These options with the learning rate filled in, for an encoder of so many parameters.

        It is the paper's for one of BERT-base's size.  A small one learns nothing with that from a
        few thousand texts (docs/training.md).
        """
        if self.learning_rate is not None:
            return self
        return replace(self, learning_rate=_LARGE_RATE if parameters >= _LARGE else _SMALL_RATE)


@dataclass(frozen=True)
class MlmOptions(Checked, kind="mlm", group="Training"):
    """How a masked language model is trained.  Checked when built.

    As BERT's, 80 % of the tokens to predict are shown as the mask token, 10 % as a random token,
    and 10 % as they are; in every epoch they are others.  The learning rate is for a base without
    a head; 5e-5 suits one that is a masked language model already.
    """

    epochs: int = option(shared.EPOCHS, 3, least=1)
    mask_rate: float = shared.mask_option(
        "Share of tokens that are predicted.", 0.15, above=0, below=1
    )
    learning_rate: float = shared.schedule_option(
        shared.LEARNING_RATE, 3e-4, above=0, most=shared.LARGEST_RATE
    )
    warmup: float = shared.schedule_option(
        "Share of the steps in which it rises.", 0.06, least=0, below=1
    )
    weight_decay: float = shared.weight_decay(0.01)
    batch_size: int = shared.batch_size(32)
    accumulate: int = shared.accumulate(1)
    gradient_clip: float = shared.gradient_clip(1.0)
    longest: int = shared.size_option(shared.LONGEST, 128, least=16)
    weights: shared.WeightType = shared.weights("float32")
    evaluate_every: int | None = shared.evaluate_every()
    validation_rows: int = shared.validation_rows(500)
    seed: int = shared.random_seed(below=2**32)

"""How an encoder is trained: names, defaults, and which go together."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

from ranmask.certificates.families import FamilyChoice, Retention
from ranmask.errors import OptionError
from ranmask.models.base import Hiding, check_hiding
from ranmask.options import ENSEMBLES, Ensemble, check_choice

ClassWeights: TypeAlias = Literal["none", "balanced"]
Head: TypeAlias = Literal["choice", "approval"]
VoteLoss: TypeAlias = Literal["certified", "margin"]
WeightType: TypeAlias = Literal["float32", "float16"]

_LARGE, _LARGE_RATE, _SMALL_RATE = 50_000_000, 5e-5, 2e-4  # parameters; learning rates

WHOLE_TEXTS: dict[str, Any] = {"mask_rate": 0.0, "hide": "mask", "ensemble": "score"}
"""Options of training that hides no word: one copy shows all of a text, and decides alone."""

_SEEDS = 2**32  # what numpy and torch take alike


@dataclass(frozen=True)
class TrainingOptions:
    """Masked training, then vote training.

    The defaults of the first are the paper's but for class weights, and for the learning rate of
    encoders that are smaller than its own.

    **Masked training** (``epochs``, at most): cross-entropy on copies of each text with fresh
    random masks every epoch.  It stops after ``patience`` evaluations without a better certified
    accuracy on validation.  **Vote training** (``vote_epochs``): several copies of a text are
    added up as the smoothed classifier does, and the loss is on the margin of the sum.

    Args:
        keep: Words that each copy shows; several are mixed, and the first is certified.
        mask_rate: Or the share of words that is hidden, as in the paper.
        hide: ``drop`` leaves hidden words out, ``mask`` shows a mask token for each.
        family: Which kept sets training draws: random ones (``auto``) or ``windows``.
        head: ``choice`` is a softmax over the classes; ``approval`` scores each by itself
            (sigmoid), which lets a word speak for two classes at once.
        pair_head: The paper's head for pairs, a two-layer network over both sentences' encodings.
        epochs: Most epochs of masked training.
        copies: Masked copies of a text in a step of masked training.
        ramp: Share of masked training during which the number of hidden words rises to its
            target, from none.
        patience: Evaluations without gain before masked training stops; None: never.
        vote_epochs: Epochs of vote training after it.
        vote_copies: Most copies of a text in a step of vote training.
        vote_loss: ``certified`` counts texts that are not certified (`losses.certified_loss`);
            ``margin`` is a hinge on the averaged margin.
        target_words: Certified accuracy is averaged over 0 ... target_words changed words, in the
            certified loss and where the best checkpoint is chosen.
        temperature: Width of the certified loss's step, in words; target_words / 2.5 by default.
        accuracy_weight: Weight of plain accuracy in the certified loss; 0 counts certified texts
            only, and may give up on a class.
        margin: What the margin loss pushes the averaged margin past.
        class_weights: ``balanced`` makes every class count the same in the losses, and where the
            best checkpoint is chosen, however few texts it has; ``none``: every text does.
        learning_rate: Peak of the cosine schedule; by default by the size of the encoder
            (`default_learning_rate`).  ``vote_learning_rate`` for vote training.
        weight_decay: AdamW's.
        batch_size: Texts that are computed at once, on each device.
        accumulate: Such batches in a step.
        gradient_clip: Largest norm of the gradient.
        layers: Keep only the first layers of the encoder; None: all.
        vocabulary: Keep only so many tokens, the most frequent in train; None: all.
        longest: Longest row that the model reads, in tokens; None: as the base.
        weights: Type that weights are stored in; float16 halves the file.
        evaluate_every: Steps between evaluations, each a checkpoint; an epoch by default.
        validation_rows: Rows of validation that an evaluation certifies.
        ensemble: How the saved classifier adds up copies; by default ``score`` after vote
            training and ``vote`` otherwise.
        masks: Most copies that evaluation, and the saved classifier, use; None: the default.
        seed: Fixes the head, the order of rows, every mask, and dropout.
    """

    keep: tuple[int, ...] = ()
    mask_rate: float | None = None
    hide: Hiding = "drop"
    family: FamilyChoice = "auto"
    head: Head = "choice"
    pair_head: bool = False
    epochs: int = 20
    copies: int = 1
    ramp: float = 0.0
    patience: int | None = 3
    vote_epochs: int = 0
    vote_copies: int = 64
    vote_loss: VoteLoss = "certified"
    target_words: int = 5
    temperature: float | None = None
    accuracy_weight: float = 1.0
    margin: float = 0.55
    class_weights: ClassWeights = "balanced"
    learning_rate: float | None = None
    vote_learning_rate: float | None = None
    weight_decay: float = 1e-6
    batch_size: int = 32
    accumulate: int = 1
    gradient_clip: float = 1.0
    layers: int | None = None
    vocabulary: int | None = None
    longest: int | None = None
    weights: WeightType = "float32"
    evaluate_every: int | None = None
    validation_rows: int = 500
    ensemble: Ensemble | None = None
    masks: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _ = self.retentions
        check_hiding(self.hide)
        check_choice("family", self.family, ("auto", "windows"))
        check_choice("head", self.head, get_args(Head))
        if not isinstance(self.pair_head, bool):
            raise OptionError(f"pair_head must be True or False, not {self.pair_head!r}")
        check_choice("vote_loss", self.vote_loss, get_args(VoteLoss))
        check_choice("class_weights", self.class_weights, get_args(ClassWeights))
        check_choice("weights", self.weights, get_args(WeightType))
        if self.ensemble is not None:
            check_choice("ensemble", self.ensemble, ENSEMBLES)
        check_seed(self.seed)
        for name in ("epochs", "vote_epochs"):
            check_at_least(name, getattr(self, name), 0, whole=True)
        sizes = "copies", "vote_copies", "target_words", "batch_size", "accumulate"
        for name in (*sizes, "validation_rows"):
            check_at_least(name, getattr(self, name), 1, whole=True)
        for name, least in (
            ("patience", 1),
            ("layers", 1),
            ("evaluate_every", 1),
            ("masks", 1),
            ("vocabulary", 100),
            ("longest", 8),
        ):
            if getattr(self, name) is not None:
                check_at_least(name, getattr(self, name), least, whole=True)
        for name in ("weight_decay", "ramp", "margin", "accuracy_weight"):
            check_at_least(name, getattr(self, name), 0)
        for name in ("learning_rate", "gradient_clip", "vote_learning_rate", "temperature"):
            value = getattr(self, name)
            if value is None and name != "gradient_clip":
                continue
            check_above_0(name, value)
        if self.ramp > 1:
            raise OptionError(f"ramp is a share of masked training, at most 1; not {self.ramp!r}")
        if self.epochs + self.vote_epochs == 0:
            raise OptionError("epochs and vote_epochs are both 0: nothing would be trained")

    @property
    def retentions(self) -> tuple[Retention, ...]:
        """How many words copies show; the first is what the saved classifier uses."""
        if not isinstance(self.keep, tuple):
            raise OptionError(f"keep must be a tuple of whole numbers, not {self.keep!r}")
        if self.mask_rate is not None or not self.keep:
            return (Retention(self.keep[0] if self.keep else None, self.mask_rate),)
        return tuple(Retention(keep) for keep in self.keep)

    @property
    def hides_words(self) -> bool:
        """Whether any word is hidden at all."""
        return self.mask_rate != 0

    @property
    def step_width(self) -> float:
        """The temperature of the certified loss, in words."""
        return self.temperature or self.target_words / 2.5

    def smoothing(self) -> dict[str, Any]:
        """The options that the trained classifier is smoothed with."""
        first = self.retentions[0]
        return {
            "keep": first.keep,
            "mask_rate": first.mask_rate,
            "family": None if self.family == "auto" else self.family,
            "ensemble": self.ensemble or ("score" if self.vote_epochs else "vote"),
            "masks": self.masks,
        }

    def settled(self, parameters: int) -> TrainingOptions:
        """These options with the learning rate filled in, for an encoder of so many parameters."""
        if self.learning_rate is not None:
            return self
        return replace(self, learning_rate=default_learning_rate(parameters))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "keep": list(self.keep)}


def default_learning_rate(parameters: int) -> float:
    """The peak for an encoder of so many parameters: the paper's for one of BERT-base's size.

    A small one learns nothing with that from a few thousand texts (docs/training.md).
    """
    return _LARGE_RATE if parameters >= _LARGE else _SMALL_RATE


def check_at_least(name: str, value: object, least: int, whole: bool = False) -> None:
    """Refuse what is no number, or a smaller one."""
    if not _is_number(value) or (whole and not isinstance(value, int)) or value < least:
        kind = "whole number" if whole else "number"
        raise OptionError(f"{name} must be a {kind} of at least {least}, not {value!r}")


def check_above_0(name: str, value: object) -> None:
    """Refuse what is no number above 0."""
    if not _is_number(value) or value <= 0:
        raise OptionError(f"{name} must be a number above 0, not {value!r}")


def check_seed(seed: object) -> None:
    """Refuse what numpy and torch do not take alike."""
    check_at_least("seed", seed, 0, whole=True)
    if not isinstance(seed, int) or seed >= _SEEDS:
        raise OptionError(f"seed must be a whole number below 2**32, not {seed!r}")


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

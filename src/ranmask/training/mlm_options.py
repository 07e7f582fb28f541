"""How a masked language model is trained: names, defaults, and their limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, get_args

from ranmask.errors import OptionError
from ranmask.options import check_choice
from ranmask.training.options import WeightType, check_above_0, check_at_least, check_seed

_SHORTEST = 16  # tokens in which the special ones, a premise and a hypothesis have some room


@dataclass(frozen=True)
class MlmOptions:
    """How a masked language model is trained.  Checked when built.

    Args:
        epochs: How often every text is read, each time with other tokens hidden.
        mask_rate: Share of a text's tokens that are predicted.  As BERT's, 80 % of them are shown
            as the mask token, 10 % as a random token, and 10 % as they are.
        learning_rate: Peak of the cosine schedule.  The default is for a base without a head;
            5e-5 suits one that is a masked language model already.
        warmup: Share of the steps in which the learning rate rises to it.
        weight_decay: AdamW's.
        batch_size: Texts that are computed at once.
        accumulate: Such batches in a step.
        gradient_clip: Largest norm of the gradient.
        longest: Most tokens of a text that are read, special ones included; or as many as the
            base takes, where that is less.
        weights: Type that weights are stored in; float16 halves the file.
        evaluate_every: Steps between evaluations, each a checkpoint; an epoch by default.
        validation_rows: Rows of validation that an evaluation reads.
        seed: Fixes the head, the order of rows, every hidden token, and dropout.
    """

    epochs: int = 3
    mask_rate: float = 0.15
    learning_rate: float = 3e-4
    warmup: float = 0.06
    weight_decay: float = 0.01
    batch_size: int = 32
    accumulate: int = 1
    gradient_clip: float = 1.0
    longest: int = 128
    weights: WeightType = "float32"
    evaluate_every: int | None = None
    validation_rows: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_choice("weights", self.weights, get_args(WeightType))
        for name in ("epochs", "batch_size", "accumulate", "validation_rows"):
            check_at_least(name, getattr(self, name), 1, whole=True)
        check_at_least("longest", self.longest, _SHORTEST, whole=True)
        if self.evaluate_every is not None:
            check_at_least("evaluate_every", self.evaluate_every, 1, whole=True)
        for name in ("weight_decay", "warmup"):
            check_at_least(name, getattr(self, name), 0)
        for name in ("learning_rate", "gradient_clip", "mask_rate"):
            check_above_0(name, getattr(self, name))
        for name in ("mask_rate", "warmup"):
            if getattr(self, name) >= 1:
                raise OptionError(f"{name} is a share, below 1; not {getattr(self, name)!r}")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

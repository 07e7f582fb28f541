"""How masked language models are trained; no torch is imported."""

from __future__ import annotations

from dataclasses import dataclass

from ranmask.options.fields import Checked, option
from ranmask.training import shared_options as shared


@dataclass(frozen=True)
class MlmOptions(Checked, kind="mlm", group="Training"):
    """How a masked language model is trained.  Checked when built.

    As BERT's, 80 % of the tokens to predict are shown as the mask token, 10 % as a random token,
    and 10 % as they are; in every epoch they are others.  The learning rate is for a base without
    a head; 5e-5 suits one that is a masked language model already.
    """

    epochs: int = option(shared.EPOCHS, 3, least=1)
    mask_rate: float = option(
        "Share of tokens that are predicted.", 0.15, above=0, below=1, group=shared.MASKS
    )
    learning_rate: float = option(shared.LEARNING_RATE, 3e-4, above=0, group=shared.SCHEDULE)
    warmup: float = option(
        "Share of the steps in which it rises.", 0.06, least=0, below=1, group=shared.SCHEDULE
    )
    weight_decay: float = shared.weight_decay(0.01)
    batch_size: int = shared.batch_size(32)
    accumulate: int = shared.accumulate(1)
    gradient_clip: float = shared.gradient_clip(1.0)
    longest: int = option(shared.LONGEST, 128, least=16, group=shared.SIZES)
    weights: shared.WeightType = shared.weights("float32")
    evaluate_every: int | None = shared.evaluate_every()
    validation_rows: int = shared.validation_rows(500)
    seed: int = shared.random_seed(below=2**32)

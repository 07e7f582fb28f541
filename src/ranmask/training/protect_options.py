"""How a model is protected; checked when built."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ranmask.options import SEED
from ranmask.options.fields import Checked, option
from ranmask.training.table_options import WordTableOptions

MOST_LEVELS = 5
MOST_WORDS = 50
"""Changed words that figures are counted for at most."""

_choice_option = partial(option, group="The choice")
WORDS = partial(_choice_option, "Numbers of changed words that matter.", least=1, most=MOST_WORDS)
GIVE_UP = partial(
    _choice_option,
    "Points of accuracy that may be given up against the model alone; without labels, of "
    "agreement with it.",
    least=0,
    most=100,
)


@dataclass(frozen=True)
class ProtectOptions(Checked, group="Training"):
    """How a model is protected.

    ``words`` and ``give_up`` say what is chosen: the weights of the model with the largest mean of
    the certified shares at ``words``, among those that give up no more.
    """

    words: tuple[int, ...] = WORDS((1, 2, 5))
    give_up: float = GIVE_UP(1.0)
    levels: int = _choice_option(
        "Levels that the model may read: 1: whole texts; 2: halves, too; 3: quarters, ...; those "
        "that prove too little for their calls are left out.",
        1,
        least=1,
        most=MOST_LEVELS,
    )
    target_words: int | None = option(
        "Most changed words that the table is trained for.",
        unset="the mean of --words",
        least=1,
        most=MOST_WORDS,
    )
    balanced: bool = _choice_option(
        "Count every class alike, in the choice and in its figures: for rare classes that matter.",
        False,
    )
    sure: float = option(
        "Least score of the model's own label that a table learns from.", 0.0, least=0, most=1
    )
    held_out: float = option(
        "Share of the texts to choose by and to measure on.", 0.2, above=0, most=0.5
    )
    epochs: int | None = option("Epochs of a table.", unset="8", least=1)
    buckets: int = option("Rows of the table.", WordTableOptions.buckets, least=1)
    seed: int = SEED(0)

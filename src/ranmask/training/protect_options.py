"""How a model is protected; checked when built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ranmask.options.fields import Checked, Option

CHOICE = "The choice"
MOST_WORDS = 50
"""Changed words that figures are counted for at most."""

GiveUp = Annotated[
    float,
    Option(
        "Points of accuracy that may be given up against the model alone; without labels, of "
        "agreement with it.",
        least=0,
        most=100,
        group=CHOICE,
    ),
]
Words = Annotated[
    tuple[int, ...],
    Option("Numbers of changed words that matter.", least=1, most=MOST_WORDS, group=CHOICE),
]


@dataclass(frozen=True)
class ProtectOptions(Checked):
    """How a model is protected.

    ``words`` and ``give_up`` say what is chosen: the weight of the model with the largest mean of
    the certified shares at ``words``, among those that give up no more.
    """

    GROUP: ClassVar[str] = "Training"

    words: Words = (1, 2, 5)
    give_up: GiveUp = 1.0
    target_words: Annotated[
        int | None,
        Option(
            "Most changed words that the table is trained for.",
            unset="the mean of --words",
            least=1,
            most=MOST_WORDS,
        ),
    ] = None
    sure: Annotated[
        float,
        Option("Least score of the model's own label that a table learns from.", least=0, most=1),
    ] = 0.0
    held_out: Annotated[
        float, Option("Share of the texts to choose by and to measure on.", above=0, most=0.5)
    ] = 0.2
    epochs: Annotated[int | None, Option("Epochs of a table.", unset="8", least=1)] = None
    seed: Annotated[int, Option("Fixes whatever is drawn at random.", least=0)] = 0

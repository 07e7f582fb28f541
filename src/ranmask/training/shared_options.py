"""Options that several kinds of training have, and the groups that they stand in."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

from ranmask.options.fields import option

ClassWeights: TypeAlias = Literal["none", "balanced"]
WeightType: TypeAlias = Literal["float32", "float16"]

MASKS, VOTES = "Masks", "Vote training"
"""Groups of options that mean nothing where no word is hidden."""
SCHEDULE, SIZES, SAVED = "Learning", "Size of the model", "Saved classifier"

EPOCHS = "Most epochs of (masked) training."
LEARNING_RATE = "Peak of the schedule."
LARGEST_RATE = 1e36  # a step of Adam, ten times as large at first, is still a float32
TEXTS = "Texts that are computed at once."
TEMPERATURE = "Width of the certified loss, in words."
ACCURACY_WEIGHT = "Weight of plain accuracy in the loss; 0 may give up on a class."
LONGEST = "Most tokens of a text that are read."
MARGIN = "Margin to reach."
SQUARED = "Of squared weights."

mask_option = partial(option, group=MASKS)
vote_option = partial(option, group=VOTES)
schedule_option = partial(option, group=SCHEDULE)
size_option = partial(option, group=SIZES)
saved_option = partial(option, group=SAVED)

class_weights = partial(
    option, "balanced: every class counts the same, however few texts it has; or none."
)
positive = partial(
    option, "Class, by its name, that the card holds against all others: ROC, certified recall."
)
random_seed = partial(option, "Seed of all that is drawn at random.", 0, least=0)
most_words = partial(
    option, "Words of a text that are trained on, which bounds memory.", 800, least=1
)
batch_size = partial(schedule_option, TEXTS, least=1)
accumulate = partial(schedule_option, "Batches in a step.", least=1)
gradient_clip = partial(schedule_option, "Largest norm of the gradient.", above=0)
weight_decay = partial(schedule_option, "AdamW's.", least=0)
weights = partial(size_option, "Type that weights are stored in.")
evaluate_every = partial(
    option, "Steps between evaluations, each a checkpoint.", unset="an epoch", least=1
)
validation_rows = partial(option, "Texts that an evaluation reads.", least=1)

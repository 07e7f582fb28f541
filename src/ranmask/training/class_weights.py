"""What a text of each class counts in a loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ranmask.training.shared_options import ClassWeights


def class_weights(
    labels: Sequence[int] | npt.NDArray[np.int64], classes: int, kind: ClassWeights
) -> npt.NDArray[np.float32] | None:
    """What a text of each class counts: (classes,), with a mean of 1 over the texts.

    ``balanced``: every class counts as much as any other, however few texts it has.  ``none``:
    every text counts the same, which is None.

    >>> class_weights([0, 0, 0, 1], 2, "balanced").tolist()
    [0.6666666865348816, 2.0]
    """
    if kind == "none":
        return None
    texts = np.bincount(labels, minlength=classes).clip(min=1).astype(np.float32)
    return len(labels) * np.reciprocal(classes * texts)

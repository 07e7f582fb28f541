"""What a base classifier's rows mean: scores, logits of one choice, or approvals.

One place turns them into scores in [0, 1] and says how far those may move.
"""

from __future__ import annotations

import numpy as np

from ranmask.errors import ClassifierError
from ranmask.models.base import Outputs, Scores


def as_scores(rows: Scores, outputs: Outputs) -> Scores:
    """Each class's score in [0, 1]: a softmax of logits, a sigmoid of approvals."""
    if outputs == "logits":
        powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        shares: Scores = powers / powers.sum(axis=1, keepdims=True)
        return shares
    if outputs == "approvals":
        small = np.exp(-np.abs(rows))  # never overflows
        approvals: Scores = np.where(rows >= 0, 1, small) / (1 + small)
        return approvals
    if float(rows.min()) < 0 or float(rows.max()) > 1:
        raise ClassifierError(
            f"scores lie between 0 and 1, but the base classifier returned "
            f"{float(rows.min()):g} to {float(rows.max()):g}. Return probabilities, or wrap it "
            "in FunctionClassifier(..., outputs='logits'), or use ensemble='vote'"
        )
    return rows


def largest_move(tolerance: float, outputs: Outputs) -> float:
    """How far one score may move where the difference of two outputs moves by ``tolerance``."""
    if outputs == "logits":
        # Log-odds against all rivals move by at most the tolerance; a sigmoid's slope is 1/4.
        return tolerance / 4
    if outputs == "approvals":
        return tolerance / 8  # each logit stands alone and moves by half the tolerance
    return tolerance / 2

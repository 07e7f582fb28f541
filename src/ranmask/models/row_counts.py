"""Batch sizes in which a model may give a row the same bits whatever else is in the batch.

To be tried cheapest first (`numerics`).  On a CPU the last resort is one row a batch.
"""

from __future__ import annotations

from typing import Any

import torch

from ranmask.models.batching import RowCount

ALONE = RowCount(1, 1)

_CPU = (RowCount(4), RowCount(16), RowCount(64, 64), ALONE)
_CPU_HALF = (RowCount(64, 64), ALONE)  # rounding hides most of what there is to see
_GPU = (RowCount(64), RowCount(1024), RowCount(4096), RowCount(1024, 1024))

_PROBED = 16  # rows


def row_counts(model: Any) -> tuple[RowCount, ...]:
    """What to try for a model, in its dtype and on its device."""
    if model.device.type != "cpu":
        return _GPU
    if not _steady_attention(model.config):
        return (ALONE,)
    return _CPU if model.dtype == torch.float32 else _CPU_HALF


def _steady_attention(config: Any) -> bool:
    """Whether PyTorch's attention for heads of this size gives a row the same bits at any place.

    With several threads it does not for narrow heads, whose sums follow from where the memory of a
    thread begins.  In logits that shows in one row of hundreds: hence a look at attention itself.
    """
    heads, width = (getattr(config, name, 0) for name in ("num_attention_heads", "hidden_size"))
    if not heads or width % heads:
        return True  # another kind of attention
    generator = torch.Generator().manual_seed(0)
    order = torch.arange(_PROBED).flip(0)
    attend = torch.nn.functional.scaled_dot_product_attention
    for length in (*range(2, 20), 25, 33, 47, 64):
        shape = (3, _PROBED, length, heads, width // heads)
        rows = torch.randn(shape, generator=generator)  # transposed, as models lay heads out
        parts = [attend(*rows[:, some].transpose(2, 3)) for some in order.view(-1, 4)]
        if not torch.equal(attend(*rows.transpose(2, 3))[order], torch.cat(parts)):
            return False
    return True

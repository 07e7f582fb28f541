"""MPNet's relative positions, read from ``position_ids``.

Transformers takes them from a token's place in its row, so that the words of a row would move
together where others are left out.  `follow_position_ids` makes a model use the positions that it
is given; where none are given it computes what it did before.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import torch
from transformers.models.mpnet import modeling_mpnet

MPNetEncoder: Any = modeling_mpnet.MPNetEncoder  # whose types transformers does not tell
MPNetModel: Any = modeling_mpnet.MPNetModel

_positions: ContextVar[torch.Tensor | None] = ContextVar("positions", default=None)
"""Those of the forward pass that this thread is in: threads may share a model."""


class PositionedEncoder(MPNetEncoder):  # type: ignore[misc]
    """An encoder whose relative positions are differences of those that its model was given."""

    def compute_position_bias(self, x: torch.Tensor, *given: Any, **named: Any) -> Any:
        """What is added to the scores of attention, (rows, heads, tokens, tokens)."""
        positions = _positions.get()
        if positions is None:
            return super().compute_position_bias(x, *given, **named)
        distances = positions[:, None, :] - positions[:, :, None]
        buckets = self.relative_position_bucket(distances)
        return self.relative_attention_bias(buckets).permute(0, 3, 1, 2).contiguous()


class PositionedModel(MPNetModel):  # type: ignore[misc]
    """A model that hands ``position_ids`` on to its encoder."""

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        *given: Any,
        **named: Any,
    ) -> Any:
        """As MPNetModel's own."""
        before = _positions.set(position_ids)
        try:
            return super().forward(input_ids, attention_mask, position_ids, *given, **named)
        finally:
            _positions.reset(before)


PositionedModel.__name__ = MPNetModel.__name__  # which save_pretrained writes down


def follow_position_ids(model: Any) -> None:
    """Let every MPNet in ``model`` follow its ``position_ids``; its weights stay as they are."""
    for module in model.modules():
        if type(module) is MPNetModel:
            module.__class__ = PositionedModel
            module.encoder.__class__ = PositionedEncoder

"""The last layer of an encoder, computed only for the one row that the head reads.

Classification heads of BERT and its kin read the first row of the last layer.  The other rows of
that layer (queries, attention, feed-forward) are never looked at, so they need not be computed:
the same function, about an eighth less work for six layers.

`first_row_model` builds a second model object that shares every weight with the first, and leaves
the first untouched.  It is used only after its logits have been compared (`numerics`).
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import nn


def first_row_model(model: Any) -> Any | None:
    """``model`` with a last layer that computes the first row only; None where it cannot be."""
    path = [model.base_model_prefix, "encoder", "layer"]
    clones = [_shallow(model)]
    for name in path:
        child = clones[-1]._modules.get(name)
        if child is None:
            return None
        clones.append(_shallow(child))
        clones[-2]._modules[name] = clones[-1]
    layers = clones[-1]
    if not isinstance(layers, nn.ModuleList) or not len(layers):
        return None
    last = layers[-1]
    known = getattr(model.config, "_attn_implementation", None) in ("sdpa", "eager")
    if not (known and hasattr(last, "feed_forward_chunk") and hasattr(last, "attention")):
        return None
    layers._modules[str(len(layers) - 1)] = _FirstRowLayer(last)
    return clones[0]


def _shallow(module: nn.Module) -> nn.Module:
    """A copy that shares parameters and children, but not the table of children."""
    clone = copy.copy(module)
    clone._modules = dict(module._modules)
    return clone


class _FirstRowLayer(nn.Module):
    """A BERT layer whose output has one row: the first."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        *_: Any,
        **__: Any,
    ) -> torch.Tensor:
        attention = self.layer.attention.self
        first = hidden_states[:, :1]
        if attention_mask is not None:
            attention_mask = attention_mask[..., :1, :]
        query = self._heads(attention.query(first))
        key = self._heads(attention.key(hidden_states))
        value = self._heads(attention.value(hidden_states))
        context = _attend(query, key, value, attention_mask, attention.scaling)
        joined = context.transpose(1, 2).reshape(len(first), 1, -1)
        row: torch.Tensor = self.layer.feed_forward_chunk(
            self.layer.attention.output(joined, first)
        )
        return row

    def _heads(self, rows: torch.Tensor) -> torch.Tensor:
        size = self.layer.attention.self.attention_head_size
        return rows.view(*rows.shape[:-1], -1, size).transpose(1, 2)


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
) -> torch.Tensor:
    """Attention from one query a head, added up by PyTorch itself.

    For a single query, libraries choose the order of a sum by how a row lies in memory, which
    follows from its place in the batch; and fused attention cuts keys by the number of rows.
    """
    scores = (query * key).sum(dim=-1, keepdim=True) * scale
    if mask is not None:
        seen = mask.transpose(-1, -2)
        hidden = torch.where(seen, 0.0, -math.inf) if seen.dtype == torch.bool else seen
        scores = scores + hidden.to(scores.dtype)
    return (scores.softmax(dim=-2) * value).sum(dim=-2, keepdim=True)

"""The forward pass over a packed batch: what the model computes, and nothing that it throws away.

- What a token at a position gives, up to the first layer's projections, depends on nothing else.
  It is computed once (`PackedEncoder.start`), however many copies show it there.
- The head reads the first row of the last layer.  Of the other rows that layer needs only keys
  and values.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import linear

from ranmask.classifiers.engine.operations import Operations
from ranmask.classifiers.engine.packing import Packing
from ranmask.classifiers.engine.weights import Encoder, Layer


@dataclass(frozen=True, eq=False)
class Start:
    """Tokens at positions: their embeddings, and what the first layer projects them to."""

    hidden: torch.Tensor
    projected: torch.Tensor


class PackedEncoder:
    """Logits of packed rows, in the dtype and on the device of the model's parts."""

    def __init__(self, parts: Encoder, operations: Operations) -> None:
        self._parts = parts
        self._operations = operations

    def for_parts(self, parts: Encoder) -> PackedEncoder:
        """Another model, computed by the same operations."""
        return PackedEncoder(parts, self._operations)

    @property
    def device(self) -> torch.device:
        """Where the model is now."""
        return self._parts.words.weight.device

    def refresh(self) -> None:
        """Follow weights that were trained since."""
        self._parts.refresh()

    def start(self, tokens: torch.Tensor, positions: torch.Tensor, types: torch.Tensor) -> Start:
        """A table of tokens at positions, to be used by any number of rows."""
        parts = self._parts
        summed = parts.words(tokens)
        if parts.types is not None:
            summed = summed + parts.types(types)
        hidden = parts.norm(summed + parts.positions(positions))
        if parts.projection is not None:
            hidden = parts.projection(hidden)
        return Start(hidden, parts.layers[0].query_key_value(hidden))

    def logits(self, start: Start, index: torch.Tensor | None, packing: Packing) -> torch.Tensor:
        """Logits of the rows of ``packing``, whose tokens are the rows ``index`` of ``start``.

        ``index`` None: the tokens are the rows of ``start`` as they stand.
        """
        parts, operations = self._parts, self._operations
        *layers, last = parts.layers
        hidden, projected = start.hidden, start.projected
        for number, layer in enumerate(layers):
            if number:
                projected = layer.query_key_value(hidden)
            context = operations.attend(projected, index, packing, parts.heads, parts.scale)
            hidden = self._after_attention(layer, context, hidden, index)
            index = None
        firsts = packing.starts if index is None else index[packing.starts]
        first = hidden[firsts]
        if layers:
            query = last.query_key_value(first, 0, 1)
            key_value = last.query_key_value(hidden, 1, 3)
        else:
            width = projected.shape[1] // 3
            query, key_value = projected[firsts, :width], projected[:, width:]
        context = operations.attend_first(
            query, key_value, index, packing, parts.heads, parts.scale
        )
        return parts.head(self._after_attention(last, context, first, None))

    def _after_attention(
        self,
        layer: Layer,
        context: torch.Tensor,
        residual: torch.Tensor,
        index: torch.Tensor | None,
    ) -> torch.Tensor:
        """The rest of a layer; ``residual`` is what came into it, by ``index`` where given."""
        operations = self._operations
        out = linear(context, layer.output.weight, layer.output.bias)
        hidden = operations.add_and_norm(out, residual, index, layer.output_norm)
        inner = linear(hidden, layer.inner.weight, layer.inner.bias)
        active = operations.activate(layer.activation, inner)
        outer = linear(active, layer.outer.weight, layer.outer.bias)
        return operations.add_and_norm(outer, hidden, None, layer.outer_norm)

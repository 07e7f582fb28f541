"""The forward pass over a packed batch: what the model computes, and nothing that it throws away.

- A token at a position gives the same up to the first layer's projections, in every copy: it is
  computed once (`PackedEncoder.start`).
- The head reads the first row of the last layer.  The other rows of it need only keys and values.

Libraries choose the order of a product's sums by its number of rows, but all of more than some few
alike.  So that a row has the same bits in any batch, no product has fewer (`_LEAST_ROWS`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch.nn.functional import pad

from ranmask.models.gpu.operations import TorchOperations
from ranmask.models.gpu.packing import Packing
from ranmask.models.gpu.weights import Encoder, Layer

_LEAST_ROWS = {"cuda": 2048, "cpu": 16}  # from which on all were seen to be added up alike


class Start(NamedTuple):
    """Tokens at positions: their embeddings, and what the first layer projects them to."""

    hidden: torch.Tensor
    projected: torch.Tensor


class PackedEncoder:
    """Logits of packed rows, in the dtype and on the device of the model's parts."""

    def __init__(self, parts: Encoder, operations: TorchOperations) -> None:
        self._parts = parts
        self._operations = operations

    @property
    def device(self) -> torch.device:
        """Where the model is now."""
        return self._parts.words.weight.device

    def refresh(self) -> None:
        """Follow weights that were trained since."""
        for layer in self._parts.layers:
            layer.query_key_value.refresh()

    def start(self, tokens: torch.Tensor, positions: torch.Tensor, types: torch.Tensor) -> Start:
        """A table of tokens at positions, to be used by any number of rows."""
        parts = self._parts
        summed = parts.words(tokens)
        if parts.types is not None:
            summed = summed + parts.types(types)
        hidden = parts.norm(summed + parts.positions(positions))
        if parts.projection is not None:
            hidden = _steadily(parts.projection, hidden)
        return Start(hidden, _steadily(parts.layers[0].query_key_value, hidden))

    def logits(self, start: Start, index: torch.Tensor | None, packing: Packing) -> torch.Tensor:
        """Logits of the rows of ``packing``, whose tokens are the rows ``index`` of ``start``.

        ``index`` None: the tokens are the rows of ``start`` as they stand.
        """
        parts, operations = self._parts, self._operations
        attention = parts.heads, parts.scale
        *layers, last = parts.layers
        hidden, projected = start.hidden, start.projected
        for number, layer in enumerate(layers):
            if number:
                projected = _steadily(layer.query_key_value, hidden)
            context = operations.attend(projected, None, index, packing, *attention)
            hidden = self._after_attention(layer, context, hidden, index)
            index = None
        firsts = packing.starts if index is None else index[packing.starts]
        first = hidden[firsts]
        if layers:
            query = _steadily(partial(last.query_key_value, first=0, last=1), first)
            key_value = _steadily(partial(last.query_key_value, first=1, last=3), hidden)
        else:
            width = projected.shape[1] // 3
            query, key_value = projected[firsts, :width], projected[:, width:]
        context = operations.attend(key_value, query, index, packing, *attention)
        return _steadily(parts.head, self._after_attention(last, context, first, None))

    def _after_attention(
        self,
        layer: Layer,
        context: torch.Tensor,
        residual: torch.Tensor,
        index: torch.Tensor | None,
    ) -> torch.Tensor:
        """The rest of a layer; ``residual`` is what came into it, by ``index`` where given."""
        operations = self._operations
        out = _steadily(layer.output, context)
        hidden = operations.add_and_norm(out, residual, index, layer.output_norm)
        active = operations.activate(layer.activation, _steadily(layer.inner, hidden))
        outer = _steadily(layer.outer, active)
        return operations.add_and_norm(outer, hidden, None, layer.outer_norm)


def _steadily(product: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
    """What ``product`` makes of rows, each by itself, of which there are enough."""
    missing = _LEAST_ROWS.get(rows.device.type, 0) - len(rows)
    if missing <= 0:
        return product(rows)
    return product(pad(rows, (0, 0, 0, missing)))[: len(rows)]

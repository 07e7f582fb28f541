"""The forward pass over a packed batch: what the model computes, and nothing that it throws away.

- A token at a position gives the same up to the first layer's projections, in every copy: it is
  computed once (`PackedEncoder.start`).
- The head reads the first row of the last layer.  The other rows of it need only keys and values.

Libraries choose the order of a product's sums by its number of rows, but all of more than some few
alike.  So that a row has the same bits in any batch, no product has fewer (`_LEAST_ROWS`).

`TorchOperations` is what a layer does besides products, in plain PyTorch; `kernels` does the same
faster.  Where ``index`` is given, a token's row is that row of a table, which copies share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import pad, scaled_dot_product_attention

from ranmask.models.gpu.packing import Packing
from ranmask.models.gpu.weights import Encoder, Layer

_LEAST_ROWS = {"cuda": 2048, "cpu": 16}  # from which on all were seen to be added up alike
# Not cuDNN's: it plans for every new number of rows and length, which takes longer than computing.
_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Start(NamedTuple):
    """Tokens at positions: their embeddings, and what the first layer projects them to."""

    positions: torch.Tensor
    hidden: torch.Tensor
    projected: torch.Tensor


class Relative(NamedTuple):
    """Relative positions: those of a batch's tokens, and what each distance adds to a score.

    ``bias`` is (heads, distances), from the farthest before a token to the farthest behind it.
    """

    positions: torch.Tensor
    bias: torch.Tensor

    @property
    def nearest(self) -> int:
        """The column of ``bias`` for distance 0."""
        return self.bias.shape[1] // 2

    def between(self, asking: torch.Tensor, asked: torch.Tensor) -> torch.Tensor:
        """What is added for rows of positions, (rows, heads, asking, asked)."""
        distances = asked[:, None, :] - asking[:, :, None] + self.nearest
        return self.bias[:, distances].transpose(0, 1)


class TorchOperations:
    """By PyTorch alone: rows of one length at a time, so that none is padded."""

    def attend(
        self,
        projected: torch.Tensor,
        query: torch.Tensor | None,
        index: torch.Tensor | None,
        packing: Packing,
        heads: int,
        scale: float,
        relative: Relative | None = None,
    ) -> torch.Tensor:
        """Attention within rows: from every token, or from the first of each row.

        From every token: ``projected`` holds queries, keys and values, (tokens, 3 * width).  From
        the first: ``query`` holds their queries, (rows, width), and ``projected`` the rest.
        """
        own = projected if index is None else projected[index]
        from_all = query is None
        if query is None:
            query, key, value = own.chunk(3, dim=1)
        else:
            key, value = own.chunk(2, dim=1)
        out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        asked = token = 0
        for length, rows in packing.runs:
            queries = length if from_all else 1
            mine = slice(asked, asked + queries * rows)
            some = slice(token, token + length * rows)
            added = None
            if relative is not None:
                positions = relative.positions[some].view(rows, length)
                added = relative.between(positions[:, :queries], positions)
            with sdpa_kernel(_BACKENDS):
                context = scaled_dot_product_attention(
                    query[mine].view(rows, queries, heads, -1).transpose(1, 2),
                    key[some].view(rows, length, heads, -1).transpose(1, 2),
                    value[some].view(rows, length, heads, -1).transpose(1, 2),
                    attn_mask=added,
                    scale=scale,
                )
            out[mine] = context.transpose(1, 2).reshape(rows * queries, -1)
            asked, token = mine.stop, some.stop
        return out

    def add_and_norm(
        self,
        rows: torch.Tensor,
        residual: torch.Tensor,
        index: torch.Tensor | None,
        norm: nn.LayerNorm,
    ) -> torch.Tensor:
        """The norm of ``rows`` plus ``residual``.  ``rows`` may be overwritten."""
        normed: torch.Tensor = norm(rows.add_(residual if index is None else residual[index]))
        return normed

    def activate(
        self, activation: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor
    ) -> torch.Tensor:
        """What ``activation`` makes of ``rows``, which may be overwritten."""
        return activation(rows)


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
        return Start(positions, hidden, _steadily(parts.layers[0].query_key_value, hidden))

    def logits(self, start: Start, index: torch.Tensor | None, packing: Packing) -> torch.Tensor:
        """Logits of the rows of ``packing``, whose tokens are the rows ``index`` of ``start``.

        ``index`` None: the tokens are the rows of ``start`` as they stand.
        """
        parts, operations = self._parts, self._operations
        attention = parts.heads, parts.scale, self._relative(start.positions, index)
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

    def _relative(self, positions: torch.Tensor, index: torch.Tensor | None) -> Relative | None:
        """Relative positions of a batch's tokens, for models that use them."""
        if self._parts.bias is None:
            return None
        farthest = self._parts.positions.num_embeddings - 1
        distances = torch.arange(-farthest, farthest + 1, device=positions.device)
        bias = self._parts.bias(distances).T.contiguous()
        return Relative(positions if index is None else positions[index], bias)

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

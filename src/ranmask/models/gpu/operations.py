"""What a layer does besides products of matrices, written plainly: for any device and dtype.

`Operations` is the seam to kernels that do the same faster (`kernels`).  Where ``index`` is given,
a token's row is not its own but that row of a table, which all copies of a text share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from ranmask.models.gpu.packing import Packing

# Not cuDNN's: it plans for every new number of rows and length, which takes longer than computing.
_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Operations(Protocol):
    """Attention within rows, and a residual with its norm."""

    def attend(
        self,
        query_key_value: torch.Tensor,
        index: torch.Tensor | None,
        packing: Packing,
        heads: int,
        scale: float,
    ) -> torch.Tensor:
        """Every token to every token of its row: (tokens, 3 * width) to (tokens, width)."""

    def attend_first(
        self,
        query: torch.Tensor,
        key_value: torch.Tensor,
        index: torch.Tensor | None,
        packing: Packing,
        heads: int,
        scale: float,
    ) -> torch.Tensor:
        """The first token of each row to its row: (rows, width), (tokens, 2 * width) to rows."""

    def add_and_norm(
        self,
        rows: torch.Tensor,
        residual: torch.Tensor,
        index: torch.Tensor | None,
        norm: nn.LayerNorm,
    ) -> torch.Tensor:
        """The norm of ``rows`` plus ``residual``.  ``rows`` may be overwritten."""

    def activate(
        self, activation: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor
    ) -> torch.Tensor:
        """What ``activation`` makes of ``rows``, which may be overwritten."""


class PlainOperations:
    """`Operations` by PyTorch alone: rows of one length at a time, so that none is padded."""

    def attend(
        self,
        query_key_value: torch.Tensor,
        index: torch.Tensor | None,
        packing: Packing,
        heads: int,
        scale: float,
    ) -> torch.Tensor:
        own = query_key_value if index is None else query_key_value[index]
        query, key, value = own.chunk(3, dim=1)
        return _run_by_run(query, key, value, packing, heads, scale)

    def attend_first(
        self,
        query: torch.Tensor,
        key_value: torch.Tensor,
        index: torch.Tensor | None,
        packing: Packing,
        heads: int,
        scale: float,
    ) -> torch.Tensor:
        own = key_value if index is None else key_value[index]
        key, value = own.chunk(2, dim=1)
        return _run_by_run(query, key, value, packing, heads, scale)

    def add_and_norm(
        self,
        rows: torch.Tensor,
        residual: torch.Tensor,
        index: torch.Tensor | None,
        norm: nn.LayerNorm,
    ) -> torch.Tensor:
        normed: torch.Tensor = norm(rows.add_(residual if index is None else residual[index]))
        return normed

    def activate(
        self, activation: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor
    ) -> torch.Tensor:
        return activation(rows)


def _run_by_run(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    packing: Packing,
    heads: int,
    scale: float,
) -> torch.Tensor:
    """Attention from all tokens of each row, or from its first: as many as ``query`` has."""
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    from_all = len(query) == packing.tokens
    asked = token = 0
    for length, rows in packing.runs:
        queries = length if from_all else 1
        own = slice(asked, asked + queries * rows)
        some = slice(token, token + length * rows)
        with sdpa_kernel(_BACKENDS):
            context = scaled_dot_product_attention(
                query[own].view(rows, queries, heads, -1).transpose(1, 2),
                key[some].view(rows, length, heads, -1).transpose(1, 2),
                value[some].view(rows, length, heads, -1).transpose(1, 2),
                scale=scale,
            )
        out[own] = context.transpose(1, 2).reshape(rows * queries, -1)
        asked, token = own.stop, some.stop
    return out

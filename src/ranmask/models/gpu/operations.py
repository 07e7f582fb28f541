"""What a layer does besides products of matrices.

`TorchOperations` is plain PyTorch, for any device and dtype; `kernels` does the same faster.  Where
``index`` is given, a token's row is not its own but that row of a table, which all copies of a
text share.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from ranmask.models.gpu.packing import Packing

# Not cuDNN's: it plans for every new number of rows and length, which takes longer than computing.
_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


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
            with sdpa_kernel(_BACKENDS):
                context = scaled_dot_product_attention(
                    query[mine].view(rows, queries, heads, -1).transpose(1, 2),
                    key[some].view(rows, length, heads, -1).transpose(1, 2),
                    value[some].view(rows, length, heads, -1).transpose(1, 2),
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

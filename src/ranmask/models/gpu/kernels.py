"""`TorchOperations` by Triton kernels, for NVIDIA GPUs.

Attention takes a group of whole rows in one program (`packing`): scores of all pairs of their
tokens are one small product, of which those within a row are kept.  So rows of a few tokens cost
little more than their bytes.  A longer row is a loop over its keys.

All is added up in float32; in float32 products are exact to its last bits (no TF32).  A row has the
same bits in any batch: see `packing`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import nn

from ranmask.models.gpu.forward import Relative, TorchOperations
from ranmask.models.gpu.packing import Packing

_LOG2_E = 1.4426950408889634
_GELU = "GELUActivation"  # the exact one, by the error function
_AT_ONCE = 2048
_LEAST = 16  # of rows and columns in a product


class TritonOperations(TorchOperations):
    """The same on a GPU."""

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
        first = query is not None
        if query is None:
            query, key, value = projected.chunk(3, dim=1)
            out = query.new_empty(packing.tokens, query.shape[1])
        else:
            key, value = projected.chunk(2, dim=1)
            out = query.new_empty(query.shape)
        positions = bias = packing.owner  # not read
        distances = nearest = 0
        if relative is not None:
            positions, bias = relative.positions, relative.bias
            distances, nearest = bias.shape[1], relative.nearest
        size = out.shape[1] // heads
        block = max(_LEAST, triton.next_power_of_2(size))
        for part in packing.groups:
            tiles = part.groups if first else part.tiles
            keys, warps = _shape(part.columns, block, out.dtype)
            _attention[(len(tiles) * heads,)](
                query,
                key,
                value,
                out,
                packing.owner if index is None else index,
                packing.owner,
                positions[packing.starts] if first and relative is not None else positions,
                positions,
                bias,
                tiles,
                query.stride(0),
                key.stride(0),
                out.stride(0),
                scale * _LOG2_E,
                heads,
                distances,
                nearest,
                SIZE=size,
                BLOCK=block,
                QUERIES=max(_LEAST, part.columns // 2) if first else part.columns,
                KEYS=keys,
                FIRST=first,
                SLOTS=part.shared,
                INDEXED=index is not None,
                RELATIVE=relative is not None,
                num_warps=warps,
            )
        return out

    def add_and_norm(
        self,
        rows: torch.Tensor,
        residual: torch.Tensor,
        index: torch.Tensor | None,
        norm: nn.LayerNorm,
    ) -> torch.Tensor:
        count, width = rows.shape
        at_once = 4
        _add_and_norm[(triton.cdiv(count, at_once),)](
            rows,
            residual,
            rows if index is None else index,
            norm.weight,
            norm.bias,
            count,
            norm.eps,
            width,
            ROWS=at_once,
            BLOCK=triton.next_power_of_2(width),
            INDEXED=index is not None,
            num_warps=4,
        )
        return rows

    def activate(
        self, activation: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor
    ) -> torch.Tensor:
        if type(activation).__name__ != _GELU:
            return activation(rows)
        count = rows.numel()
        _gelu[(triton.cdiv(count, _AT_ONCE),)](
            rows, count, BLOCK=_AT_ONCE, EXACT=rows.dtype == torch.float32, num_warps=4
        )
        return rows


def _shape(columns: int, size: int, dtype: torch.dtype) -> tuple[int, int]:
    """Keys of one product, and warps of a program.

    In half precision as measured.  Products of float32 are done without tensor cores and hold more
    in registers; so that these suffice, a program takes fewer keys at a time and has more warps.
    """
    if dtype == torch.float32:
        return min(columns, 32), 1 if columns == _LEAST else max(1, columns * size // 512)
    return columns, 1 if columns < 64 or size <= 32 else 2


@triton.jit
def _attention(
    query,
    key,
    value,
    out,
    index,
    owner,
    query_positions,
    positions,
    bias,
    tiles,
    query_stride,
    key_stride,
    out_stride,
    scale,
    heads,
    distances,
    nearest,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    FIRST: tl.constexpr,
    SLOTS: tl.constexpr,
    INDEXED: tl.constexpr,
    RELATIVE: tl.constexpr,
):
    """One head of one tile: (first query, end of queries, first key, end of keys, length, slot)."""
    tile = tl.program_id(0) // heads
    head = tl.program_id(0) % heads
    # Places of a batch fit into 32 bits; in 64, float32 of 64 columns no longer fits the registers.
    first_query = tl.load(tiles + 6 * tile).to(tl.int32)
    end_query = tl.load(tiles + 6 * tile + 1).to(tl.int32)
    first_key = tl.load(tiles + 6 * tile + 2).to(tl.int32)
    end_key = tl.load(tiles + 6 * tile + 3).to(tl.int32)
    place = tl.arange(0, BLOCK)
    column = head * SIZE + place
    asked = first_query + tl.arange(0, QUERIES)
    is_asked = asked < end_query
    columns = end_key - first_key
    if SLOTS:
        length = tl.load(tiles + 6 * tile + 4).to(tl.int32)
        slot = tl.load(tiles + 6 * tile + 5).to(tl.int32)
        columns = (columns // length) << slot
        if not FIRST:
            inside = tl.arange(0, QUERIES) & ((1 << slot) - 1)
            asked = first_query + (tl.arange(0, QUERIES) >> slot) * length + inside
            is_asked = (inside < length) & (asked < end_query)
    if FIRST:  # one query a row
        query_row = tl.where(is_asked, asked, -1)
        query_place = asked.to(tl.int64)
    else:
        query_row = tl.load(owner + asked, mask=is_asked, other=-1)
        if INDEXED:
            query_place = tl.load(index + asked, mask=is_asked, other=0).to(tl.int64)
        else:
            query_place = asked.to(tl.int64)
    queries = tl.load(
        query + query_place[:, None] * query_stride + column[None, :],
        mask=is_asked[:, None] & (place < SIZE)[None, :],
        other=0.0,
    )
    if RELATIVE:  # what a distance adds begins at the column of distance 0
        query_position = tl.load(query_positions + asked, mask=is_asked, other=0).to(tl.int32)
        own_bias = bias + head * distances + nearest
    best = tl.full((QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    context = tl.zeros((QUERIES, BLOCK), tl.float32)
    for from_column in range(0, columns, KEYS):
        read = first_key + from_column + tl.arange(0, KEYS)
        is_read = read < end_key
        if SLOTS:
            number = from_column + tl.arange(0, KEYS)
            within = number & ((1 << slot) - 1)
            read = first_key + (number >> slot) * length + within
            is_read = (within < length) & (read < end_key)
        key_row = tl.load(owner + read, mask=is_read, other=-2)
        if INDEXED:
            key_place = tl.load(index + read, mask=is_read, other=0).to(tl.int64)
        else:
            key_place = read.to(tl.int64)
        offsets = key_place[:, None] * key_stride + column[None, :]
        there = is_read[:, None] & (place < SIZE)[None, :]
        keys = tl.load(key + offsets, mask=there, other=0.0)
        values = tl.load(value + offsets, mask=there, other=0.0)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        if RELATIVE:
            key_position = tl.load(positions + read, mask=is_read, other=0).to(tl.int32)
            distance = key_position[None, :] - query_position[:, None]
            scores += tl.load(own_bias + distance).to(tl.float32) * 1.4426950408889634
        scores = tl.where(query_row[:, None] == key_row[None, :], scores, -float("inf"))
        higher = tl.maximum(best, tl.max(scores, axis=1))
        # A place without a query has no key either: its weights must not become nan.
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        weights = tl.exp2(scores - safe[:, None])
        fade = tl.exp2(best - safe)
        total = total * fade + tl.sum(weights, axis=1)
        context = context * fade[:, None] + tl.dot(
            weights.to(values.dtype), values, input_precision="ieee"
        )
        best = higher
    context = context / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(
        out + asked.to(tl.int64)[:, None] * out_stride + column[None, :],
        context.to(out.dtype.element_ty),
        mask=is_asked[:, None] & (place < SIZE)[None, :],
    )


@triton.jit
def _add_and_norm(
    rows,
    residual,
    index,
    weight,
    bias,
    count,
    epsilon,
    width,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    INDEXED: tl.constexpr,
):
    """``rows`` become the norm of rows plus residual; both are added up in float32."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    is_row = row < count
    there = is_row[:, None] & (column < width)[None, :]
    if INDEXED:
        place = tl.load(index + row, mask=is_row, other=0).to(tl.int64)
    else:
        place = row.to(tl.int64)
    own = row.to(tl.int64)[:, None] * width + column[None, :]
    summed = tl.load(rows + own, mask=there, other=0.0).to(tl.float32)
    summed += tl.load(
        residual + place[:, None] * width + column[None, :], mask=there, other=0.0
    ).to(tl.float32)
    mean = tl.sum(summed, axis=1) / width
    centred = tl.where(there, summed - mean[:, None], 0.0)
    variance = tl.sum(centred * centred, axis=1) / width
    scaled = centred / tl.sqrt_rn(variance + epsilon)[:, None]
    scaled *= tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)[None, :]
    scaled += tl.load(bias + column, mask=column < width, other=0.0).to(tl.float32)[None, :]
    tl.store(rows + own, scaled.to(rows.dtype.element_ty), mask=there)


@triton.jit
def _gelu(rows, count, BLOCK: tl.constexpr, EXACT: tl.constexpr):
    """``rows`` become their GELU, by the error function.

    If not EXACT, that function is off by up to 1.5e-7 (Abramowitz and Stegun, 7.1.26), a thousandth
    of what rounding to half precision does; the exact one takes longer than to read and write.
    """
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = place < count
    x = tl.load(rows + place, mask=there, other=0.0).to(tl.float32)
    if EXACT:
        doubled = 1.0 + tl.erf(x * 0.7071067811865476)
    else:
        z = tl.abs(x) * 0.7071067811865476
        t = 1.0 / (1.0 + 0.3275911 * z)
        series = 1.061405429 * t - 1.453152027
        series = series * t + 1.421413741
        series = series * t - 0.284496736
        series = series * t + 0.254829592
        beyond = series * t * tl.exp2(z * z * -1.4426950408889634)
        doubled = tl.where(x < 0.0, beyond, 2.0 - beyond)
    tl.store(rows + place, (0.5 * x * doubled).to(rows.dtype.element_ty), mask=there)

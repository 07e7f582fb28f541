"""Which packed scorer computes a model: one that was seen to compute the same function, or none."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from ranmask.errors import ModelError
from ranmask.models import numerics
from ranmask.models.base import Scores
from ranmask.models.batching import Batch
from ranmask.models.encoding import WordEncoder
from ranmask.models.gpu.operations import TorchOperations
from ranmask.models.gpu.scoring import PackedScorer
from ranmask.models.gpu.weights import encoder_parts
from ranmask.models.hub import first_line
from ranmask.models.probes import Probes

_COARSE_STEPS = 32  # of a smaller dtype's rounding, by which its logits may differ


def select(
    model: Any,
    exact: Any,
    run: Callable[[Any, Batch], Scores],
    encoder: WordEncoder,
    first_position: int,
    tokens: int,
) -> tuple[PackedScorer | None, list[str]]:
    """The fastest scorer for ``model`` whose logits are the model's own; and why others are not.

    Compared in single precision, where rounding hides nothing: ``exact`` is the same model in it.
    In the model's own dtype only coarse errors would show, and are looked for.

    Args:
        model: The model, on the device and in the dtype to run in.
        exact: The same in float32, on the same device.
        run: Logits of a batch by a model's own forward.
        encoder: What makes token rows for the model.
        first_position: The position that the model gives to a row's first token.
        tokens: Most tokens of a batch.
    """
    try:
        encoder_parts(model)
    except ModelError as error:
        return None, [str(error)]
    random = Probes(encoder)
    kinds, copies = random.all_kinds(), random.copies()
    probes = [kinds, [kinds[0], random.longest()], [encoder.rows(copies)]]
    own = [numerics.padded_logits(partial(run, exact), rows, encoder) for rows in probes]

    def build(model: Any, operations: TorchOperations, limit: float) -> PackedScorer:
        scorer = PackedScorer(model, operations, encoder, first_position, tokens)
        found = [*map(scorer.score_rows, probes), scorer.score([copies])]
        for logits, expected in zip(found, [*own, own[-1]], strict=True):
            difference = numerics.relative_difference(logits, expected)
            if not difference <= limit:  # nan is not
                raise ModelError(f"it moves logits by {difference:.1e} of their size")
        return scorer

    coarse = max(numerics.SAME_LIMIT, _COARSE_STEPS * torch.finfo(model.dtype).eps)
    complaints: list[str] = []
    for operations in _operations(model.device):
        try:
            build(exact, operations, numerics.SAME_LIMIT)
            return build(model, operations, coarse), complaints
        except Exception as error:  # whatever a compiler or a driver raises: the next may work
            name = type(operations).__name__
            complaints.append(f"{name} cannot be used: {first_line(error)}")
    return None, complaints


def _operations(device: torch.device) -> Iterator[TorchOperations]:
    """What may be tried on a device, fastest first."""
    if device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        from ranmask.models.gpu.kernels import TritonOperations

        yield TritonOperations()
    yield TorchOperations()

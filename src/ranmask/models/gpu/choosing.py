"""Which engine computes a model: one that was seen to compute the same function, or none."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ranmask.errors import ModelError
from ranmask.models import numerics
from ranmask.models.base import Scores
from ranmask.models.batching import Batch
from ranmask.models.encoding import WordEncoder
from ranmask.models.gpu.forward import PackedEncoder
from ranmask.models.gpu.operations import Operations, PlainOperations
from ranmask.models.gpu.scoring import PackedEngine
from ranmask.models.gpu.weights import encoder_parts, known_parts
from ranmask.models.opening import first_line

_COARSE_STEPS = 32  # of a smaller dtype's rounding, by which its logits may differ


@dataclass(frozen=True, eq=False)
class Choice:
    """An engine, or None; and in words what was tried and could not be used."""

    engine: PackedEngine | None
    complaints: tuple[str, ...] = ()


def choose(
    model: Any,
    exact: Any,
    run: Callable[[Any, Batch], Scores],
    encoder: WordEncoder,
    first_position: int,
    tokens: int,
) -> Choice:
    """The fastest engine for ``model`` that passes comparison with the model's own forward.

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
    if encoder_parts(model) is None:
        return Choice(None, (f"the structure of {type(model).__name__} is not known to it",))
    build = partial(_build, encoder=encoder, first_position=first_position, tokens=tokens)
    plain = _probe(partial(run, exact), encoder)
    coarse = max(numerics.SAME_LIMIT, _COARSE_STEPS * torch.finfo(model.dtype).eps)
    complaints = []
    for operations in _operations(model.device):
        try:
            _check(build(exact, operations), plain, numerics.SAME_LIMIT, encoder)
            engine = build(model, operations)
            _check(engine, plain, coarse, encoder)
        except Exception as error:  # whatever a compiler or a driver raises: the next may work
            name = type(operations).__name__
            complaints.append(f"{name} cannot be used: {first_line(error)}")
        else:
            return Choice(engine, tuple(complaints))
    return Choice(None, tuple(complaints))


def _build(
    model: Any,
    operations: Operations,
    *,
    encoder: WordEncoder,
    first_position: int,
    tokens: int,
) -> PackedEngine:
    return PackedEngine(
        PackedEncoder(known_parts(model), operations), encoder, first_position, tokens
    )


def _operations(device: torch.device) -> Iterator[Operations]:
    """What may be tried on a device, fastest first."""
    if device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        from ranmask.models.gpu.kernels import TritonOperations

        yield TritonOperations()
    yield PlainOperations()


def _probe(forward: Callable[[Batch], Scores], encoder: WordEncoder) -> list[Scores]:
    batches = [*numerics.probe_batches(encoder), numerics.probe_copies(encoder)[1]]
    return [forward(batch) for batch in batches]


def _check(engine: PackedEngine, plain: list[Scores], limit: float, encoder: WordEncoder) -> None:
    """Rows in batches, and copies laid out by the engine itself."""
    copies, batch = numerics.probe_copies(encoder)
    found = [*_probe(engine.score_batch, encoder), engine.score([copies])[batch.places]]
    for one, expected in zip(found, [*plain, plain[-1]], strict=True):
        difference = numerics.relative_difference(one, expected)
        if not difference <= limit:  # nan is not
            raise ModelError(f"it moves logits by {difference:.1e} of their size")

"""Where a model is trained: on which devices, and by which of the processes of ``torchrun``."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate import PartialState  # type: ignore[import-untyped]

from ranmask.errors import OptionError

Outcome = TypeVar("Outcome")

_LONGEST_WAIT = timedelta(days=1)  # the others wait while the first certifies validation


def count() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def on_gpu(device: str | None) -> bool:
    """Whether to train on a GPU: where there is one, unless ``device`` is ``cpu``."""
    available = torch.cuda.is_available()
    if device not in (None, "cpu", "cuda"):
        raise OptionError(
            f"device must be cpu or cuda to train on, not {device!r}; CUDA_VISIBLE_DEVICES chooses "
            "among several GPUs"
        )
    if device == "cuda" and not available:
        raise OptionError("device='cuda' cannot be used: PyTorch finds no GPU")
    return available and device != "cpu"


def devices(on_gpu: bool) -> int:
    """How many devices compute a batch each.

    One process computes on all GPUs, which is the Trainer's old way; of several, each on one.
    """
    alone = count() == 1
    return torch.cuda.device_count() if on_gpu and alone else count()


def meet(cpu: bool) -> None:
    """Connect the processes; nothing happens where there is one only."""
    if count() > 1 and not dist.is_initialized():
        PartialState(cpu=cpu, timeout=_LONGEST_WAIT)
        # Left to the end of the interpreter, its threads may outlive it and abort the process.
        atexit.register(lambda: dist.destroy_process_group() if dist.is_initialized() else None)


def by_the_first(action: Callable[[], Outcome]) -> Outcome:
    """Do it in the first process; all wait for it, and get what it returned or raised."""
    if count() == 1:
        return action()
    outcome: list[Any] = [None, None]
    if dist.get_rank() == 0:
        try:
            outcome[0] = action()
        except Exception as error:  # raised in all processes, below
            outcome[1] = error
    dist.broadcast_object_list(outcome, src=0)
    result, problem = outcome
    if problem is not None:
        raise problem
    return result  # type: ignore[no-any-return]

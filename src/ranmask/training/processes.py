"""Several processes that train one model, as ``torchrun`` starts them: who acts, who waits."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from ranmask.errors import MissingDependencyError

try:
    import torch.distributed as dist
    from accelerate import PartialState  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingDependencyError("PyTorch or accelerate", "train") from error

Outcome = TypeVar("Outcome")

_LONGEST_WAIT = timedelta(days=1)  # the others wait while the first certifies validation


def count() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def meet(cpu: bool) -> None:
    """Connect the processes; nothing happens where there is one only."""
    if count() > 1 and not dist.is_initialized():
        PartialState(cpu=cpu, timeout=_LONGEST_WAIT)
        # Left to the end of the interpreter, its threads may outlive it and abort the process.
        atexit.register(_part)


def _part() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


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

"""What training starts from: a base model with its tokenizer, and a device to run on."""

from __future__ import annotations

from typing import Any

from ranmask.errors import MissingDependencyError, OptionError
from ranmask.models import hub

try:
    import torch
except ImportError as error:
    raise MissingDependencyError("PyTorch or transformers", "train") from error


def load_base(base: str, loader: str, **given: Any) -> tuple[Any, Any, list[str]]:
    """A model by an ``Auto...`` class, its tokenizer, and the weights that its files lack.

    Where the base has no head of that kind, a new one is drawn from torch's generator.
    """
    return hub.load_pretrained(loader, base, called="the base encoder ", **given)


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

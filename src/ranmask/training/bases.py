"""What training starts from: a base model with its tokenizer, and a device to run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ranmask.errors import MissingDependencyError, ModelError, OptionError
from ranmask.models import opening

try:
    import torch
    import transformers

    from ranmask.models import pair_head
except ImportError as error:
    raise MissingDependencyError("PyTorch or transformers", "train") from error


def load_base(base: str, kind: Any, **given: Any) -> tuple[Any, Any, dict[str, Any]]:
    """A model of an ``AutoModelFor...`` kind, its tokenizer, and what was not in its files.

    Where the base has no head of that kind, a new one is drawn from torch's generator.
    """
    opening.check_folder(base)
    pair_head.register()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(base, trust_remote_code=False)
        model, report = kind.from_pretrained(
            base,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            **given,
        )
    except Exception as error:  # loaders raise all sorts of things over a damaged folder
        shown = opening.first_line(error)
        instead = "" if Path(base).is_dir() else ". Without a network, give a folder with --base"
        raise ModelError(f"cannot load the base encoder {base!r}: {shown}{instead}") from error
    if set(range(len(tokenizer))) <= set(tokenizer.all_special_ids):
        raise ModelError(f"the base encoder {base!r} has no tokenizer files: save them there too")
    return model, tokenizer, report


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

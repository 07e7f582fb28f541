"""What every loader of a Hugging Face model needs: a folder that is there, a device, quiet.

Torch and transformers are handed in by those who have imported them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ranmask.errors import ModelError, OptionError


def check_folder(folder_or_id: str) -> None:
    """Say plainly what is wrong with a path; what looks like none is a hub id.

    A path that does not exist must not be looked up on the hub by its name.
    """
    looks_like_a_path = folder_or_id.startswith((".", "/", "~")) or folder_or_id.count("/") > 1
    if not folder_or_id or (looks_like_a_path and not Path(folder_or_id).is_dir()):
        raise ModelError(f"there is no model folder {folder_or_id!r}")
    path = Path(folder_or_id)
    if path.is_file():
        raise ModelError(f"{folder_or_id!r} is a file: name the folder of a model")
    if path.is_dir() and not (path / "config.json").is_file():
        raise ModelError(
            f"the folder {folder_or_id!r} holds no model: it has no config.json, as Hugging Face "
            "models do, nor is it a folder that a finished ranmask train wrote"
        )


def usable_device(torch: Any, device: str | None) -> Any:
    """The device that was named, once it works; else a GPU if there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        where = torch.device(device)
        torch.zeros(1, device=where).item()
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"device {device!r} cannot be used: {first_line(error)}") from error
    return where


@contextmanager
def no_bars(transformers: Any) -> Iterator[None]:
    """No progress bar for reading a file; downloads have bars of their own."""
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()


def reads_types(model: Any) -> bool:
    """Whether a model tells segments apart, so that token types are passed to it, always.

    Never to others: GPT-2, XLM and their kin look a type up among their words, and even types that
    are all zero change what they say.
    """
    kinds = getattr(model.config, "type_vocab_size", None)
    takes = inspect.signature(model.forward).parameters
    return "token_type_ids" in takes and isinstance(kinds, int) and kinds > 1


def padding_id(model: Any, tokenizer: Any) -> int:
    """The token that fills short rows up: the model's own, by which some find a row's last token.

    A tokenizer may name another one, or none.
    """
    known = model.get_input_embeddings().num_embeddings
    for named in (getattr(model.config, "pad_token_id", None), tokenizer.pad_token_id):
        if isinstance(named, int) and 0 <= named < known:
            return named
    return 0


def first_line(error: BaseException) -> str:
    """What an error says, in a line."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

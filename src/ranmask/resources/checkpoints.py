"""Hugging Face models that are no classifiers: loading them, and running them over token rows.

Weights are safetensors; nothing is unpickled and no code that comes with a model is run.  A hub
id goes through the ordinary ``from_pretrained``, which may download; a folder never does.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ranmask.classifiers.batching import Batch, batches
from ranmask.classifiers.encoding import TokenRows
from ranmask.errors import MissingDependencyError, ModelError, OptionError

DEFAULT_LONGEST = 512
"""Longest row where neither model nor tokenizer names a limit."""

_CPU_LEAST_ROWS, _GPU_LEAST_ROWS = 32, 2048


class Checkpoint:
    """A model with its tokenizer, to be run and never trained.

    Args:
        model: A Hugging Face model, on the device and in the dtype to run in.
        tokenizer: Its tokenizer.
        source: Its folder or hub id, for the record.
        longest: The longest row in tokens, if less than the model takes.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        source: str | None = None,
        longest: int | None = None,
    ) -> None:
        self.model = model
        self.model.train(False)
        self.tokenizer = tokenizer
        self.source = source or str(model.config.name_or_path)
        embeddings = model.get_input_embeddings()
        if len(tokenizer) > embeddings.num_embeddings:
            raise ModelError(
                f"the tokenizer knows {len(tokenizer)} tokens, the model only "
                f"{embeddings.num_embeddings}: they do not belong together"
            )
        limits = [_longest_row(model, tokenizer), *([] if longest is None else [longest])]
        self.longest = min(limits)
        pad = tokenizer.pad_token_id
        self.pad_id = 0 if pad is None else int(pad)
        self.on_cpu = model.device.type == "cpu"
        self._takes_types = "token_type_ids" in inspect.signature(model.forward).parameters

    def rows(self, texts: Sequence[str]) -> list[TokenRows]:
        """One row for each text, special tokens included, cut to the longest that the model takes.

        A text that spells a special token gets that token.
        """
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts), truncation=True, max_length=self.longest, verbose=False
        )
        return [_row(ids or [self.pad_id]) for ids in encoded["input_ids"]]

    def outputs(self, rows: Sequence[TokenRows], tokens: int) -> Iterator[tuple[Batch, Any]]:
        """What the model says of rows, in batches of at most ``tokens`` tokens, shortest first."""
        import torch

        if not rows:
            return
        least_rows = _CPU_LEAST_ROWS if self.on_cpu else _GPU_LEAST_ROWS
        for batch in batches(rows, tokens=tokens, least_rows=least_rows, pad_id=self.pad_id):
            inputs = {"input_ids": torch.from_numpy(batch.ids)}
            if batch.visible is not None:
                inputs["attention_mask"] = torch.from_numpy(batch.visible)
            if self._takes_types and batch.types.any():
                inputs["token_type_ids"] = torch.from_numpy(batch.types)
            there = {name: value.to(self.model.device) for name, value in inputs.items()}
            with torch.inference_mode():
                output = self.model(**there)
            yield batch, output

    def description(self) -> dict[str, object]:
        """Which model it is; a retrained one is another, whatever its folder."""
        return {
            "name": Path(self.source).name if Path(self.source).is_dir() else self.source,
            "source": self.source,
            "sha256": self._digest,
            "longest": self.longest,
            "device": self.model.device.type,
        }

    @cached_property
    def _digest(self) -> str:
        """Of weights and vocabulary."""
        import torch

        digest = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy())
        return digest.hexdigest()


def load(
    loader: Literal["AutoModel", "AutoModelForMaskedLM"],
    folder_or_id: str | Path,
    device: str | None = None,
) -> tuple[Any, Any, tuple[str, ...]]:
    """A model in single precision, its tokenizer, and the weights that its file did not have.

    Those weights were drawn at random: whether that matters is for the caller to say.  A GPU is
    used if there is one and no other ``device`` is named.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingDependencyError("PyTorch or transformers", "hf") from error
    source = existing(folder_or_id)
    where = _device(torch, device)
    try:
        with _silence(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
            model, report = getattr(transformers, loader).from_pretrained(
                source,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
            )
    except Exception as error:  # loaders raise all sorts of things over a damaged folder
        raise ModelError(f"cannot load {source!r}: {_first_line(error)}") from error
    if set(range(len(tokenizer))) <= set(tokenizer.all_special_ids):
        raise ModelError(f"{source!r} has no tokenizer files: save the tokenizer there too")
    return model.to(where), tokenizer, tuple(sorted(report["missing_keys"]))


def existing(folder_or_id: str | Path) -> str:
    """The name, once it is clear that it is no path to a folder that is not there.

    Such a path must not be looked up on the hub by its name.
    """
    name = str(folder_or_id)
    if name.startswith("~"):
        name = str(Path(name).expanduser())
    looks_like_a_path = name.startswith((".", "/")) or name.count("/") > 1
    is_a_path = looks_like_a_path or isinstance(folder_or_id, Path)
    if not name or (is_a_path and not Path(name).is_dir()):
        raise ModelError(f"there is no model folder {name!r}")
    return name


def listed(names: Sequence[str]) -> str:
    """Names of weights for a message: the first few."""
    return ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")


def _row(ids: Sequence[int]) -> TokenRows:
    size = len(ids)
    positions = np.arange(size, dtype=np.int64)[None]
    return TokenRows(np.array([ids], dtype=np.int64), positions, np.array([size]), size, 0)


def _longest_row(model: Any, tokenizer: Any) -> int:
    limits = [DEFAULT_LONGEST]
    positions = getattr(model.config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        limits.append(positions - _first_position(model))
    if isinstance(tokenizer.model_max_length, int):
        limits.append(tokenizer.model_max_length)
    return min(limits)


def _first_position(model: Any) -> int:
    """The position of a row's first token: RoBERTa and its kin count on from their padding."""
    import torch

    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            return 0 if module.padding_idx is None else module.padding_idx + 1
    return 0


@contextmanager
def _silence(transformers: Any) -> Iterator[None]:
    """No bar for reading a file, no table of the weights that it has too many or too few of."""
    logging = transformers.utils.logging
    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _device(torch: Any, device: str | None) -> Any:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        where = torch.device(device)
        torch.zeros(1, device=where).item()
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"device {device!r} cannot be used: {_first_line(error)}") from error
    return where


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

"""Hugging Face models that are no classifiers: loading them, and running them over token rows.

Weights are safetensors; nothing is unpickled and no code that comes with a model is run.  A hub
id goes through the ordinary ``from_pretrained``, which may download; a folder never does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ranmask.errors import ModelError
from ranmask.models import hub, identity
from ranmask.models.batching import Batch, batches
from ranmask.models.encoding import TokenRows
from ranmask.models.row_format import RowFormat
from ranmask.models.splitting import split_one_way

LONGEST = 512
"""Longest row, whatever the model takes: what attacks read is sentences."""

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
        split_one_way(tokenizer)
        self.tokenizer = tokenizer
        self.source = source or str(model.config.name_or_path)
        takes = RowFormat.of(model, tokenizer)
        self.longest = min(LONGEST, takes.longest, longest or LONGEST)
        self.pad_id = takes.pad_id
        self.on_cpu = model.device.type == "cpu"
        self._reads_types = takes.types

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
            with torch.inference_mode():
                output = self.model(**batch.inputs(self._reads_types, self.model.device))
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
        return identity.digest(self.model, self.tokenizer)


def load(
    loader: Literal["AutoModel", "AutoModelForMaskedLM"],
    folder_or_id: str | Path,
    device: str | None = None,
) -> tuple[Any, Any, tuple[str, ...]]:
    """A model in single precision, its tokenizer, and the weights that its file did not have.

    Those weights were drawn at random: whether that matters is for the caller to say.  A GPU is
    used if there is one and no other ``device`` is named.
    """
    source = existing(folder_or_id)
    model, tokenizer, missing = hub.load_pretrained(loader, source)
    return model.to(hub.usable_device(device)), tokenizer, tuple(missing)


def existing(folder_or_id: str | Path) -> str:
    """The name, once it is clear that it is no path to a folder that is not there.

    Such a path must not be looked up on the hub by its name.
    """
    name = str(folder_or_id)
    if name.startswith("~"):
        name = str(Path(name).expanduser())
    hub.check_folder(name)
    if isinstance(folder_or_id, Path) and not folder_or_id.expanduser().is_dir():
        raise ModelError(f"there is no model folder {name!r}")
    return name


def listed(names: Sequence[str]) -> str:
    """Names of weights for a message: the first few."""
    return ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")


def _row(ids: Sequence[int]) -> TokenRows:
    size = len(ids)
    positions = np.arange(size, dtype=np.int64)[None]
    return TokenRows(np.array([ids], dtype=np.int64), positions, np.array([size]), size, 0)

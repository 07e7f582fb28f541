"""Hugging Face models that are no classifiers: loading them, and running them over token rows.

Weights are safetensors; nothing is unpickled and no code that comes with a model is run.  A hub
id goes through the ordinary ``from_pretrained``, which may download; a folder never does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ranmask.errors import ModelError, OptionError
from ranmask.models import hub, identity
from ranmask.models.batching import Batch, batches
from ranmask.models.encoding import TokenRows
from ranmask.models.flat import flat_tokens, number_words, numbered, ranges
from ranmask.models.tokenizing import (
    RowFormat,
    frame_of,
    plain,
    split_one_way,
    splits_at_blanks,
)

LONGEST = 512
"""Longest row, whatever the model takes: what attacks read is sentences."""

_CACHED_WORDS = 100_000
_LEAST_ROWS = (32, 2048)  # of a batch, on a CPU and on a GPU
_ATTENTION = ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")  # cuDNN's plans for every new shape
_choosing = threading.Lock()  # of attention: the choice is the whole process's


class Checkpoint:
    """A model with its tokenizer, to be run and never trained.

    Args:
        model: A Hugging Face model, on the device and in the dtype to run in.
        tokenizer: Its tokenizer.
        source: Its folder or hub id, for the record.
        longest: The longest row in tokens, if less than the model takes.
    """

    kind: ClassVar[str]
    loader: ClassVar[str]
    """The class of transformers that loads it."""
    untrained: ClassVar[str]
    """What a file that lacks weights is not."""
    advice: ClassVar[str] = ""
    batch_tokens: ClassVar[tuple[int, int]]
    """Most tokens of a batch, on a CPU and on a GPU."""

    def __init__(
        self, model: Any, tokenizer: Any, *, source: str | None = None, longest: int | None = None
    ) -> None:
        self.model = model
        self.model.train(False)
        split_one_way(tokenizer)
        self.tokenizer = tokenizer
        self.source = source or str(model.config.name_or_path)
        takes = RowFormat.of(model, tokenizer)
        self.longest = min(LONGEST, takes.longest, longest or LONGEST)
        self._pad_id = takes.pad_id
        self._reads_types = takes.types
        frame = frame_of(tokenizer)[0] if splits_at_blanks(tokenizer) else None
        self._frame = None if frame is None else (frame.before, frame.after)
        self._read: dict[str, tuple[int, ...]] = {}

    @classmethod
    def from_pretrained(
        cls, folder_or_id: str | Path, device: str | None = None, dtype: str | None = None
    ) -> Self:
        """A model by its folder or hub id; on a GPU if there is one.

        ``dtype``: by default ``float16`` on a GPU, else ``float32``.  Refused where the file lacks
        weights that are used: they would be drawn at random.
        """
        source = str(folder_or_id)
        if source.startswith("~"):
            source = str(Path(source).expanduser())
        hub.check_folder(source)  # a folder that is not there must not be looked up on the hub
        if isinstance(folder_or_id, Path) and not Path(source).is_dir():
            raise ModelError(f"there is no model folder {source!r}")
        where = hub.usable_device(device)
        if dtype is None:
            dtype = "float16" if where.type == "cuda" else "float32"
        if dtype not in hub.DTYPES:
            raise OptionError(f"dtype must be one of {', '.join(hub.DTYPES)}; not {dtype!r}")
        model, tokenizer, missing = hub.load_pretrained(cls.loader, source, dtype=dtype)
        if missing := list(filter(cls.needs, missing)):
            raise ModelError(
                f"{source!r} is not {cls.untrained}: it has no weights for "
                f"{hub.listed(missing)}{cls.advice}"
            )
        limit = cls.limit(hub.folder_of_package(source) or source)
        return cls(model.to(where), tokenizer, source=source, longest=limit)

    @classmethod
    def needs(cls, weight: str) -> bool:
        """Whether what is read from the model depends on a weight."""
        return True

    @classmethod
    def limit(cls, source: str) -> int | None:
        """Most tokens of a row, where a file beside the model names a limit."""
        return None

    def rows(self, texts: Sequence[str]) -> TokenRows:
        """One row for each text, special tokens included, cut to the longest that the model takes.

        A text that spells a special token gets that token.
        """
        numbers, counts, parts = number_words(self._parts(texts))
        read = self._tokens_of([part for part in parts if isinstance(part, str)])
        ids = (read[part] if isinstance(part, str) else part for part in parts)
        of_parts, tokens = flat_tokens(list(ids))
        sizes, first = of_parts[numbers], np.cumsum(of_parts) - of_parts
        tokens = tokens[ranges(first[numbers], sizes)]
        lengths = np.add.reduceat(sizes, np.cumsum(counts) - counts)
        if lengths.max(initial=0) > self.longest:
            row, place = numbered(lengths)
            last = len(self._frame[1]) if self._frame else 0  # what ends a row stays
            tokens = tokens[(place < self.longest - last) | (place >= lengths[row] - last)]
        used = np.arange(min(lengths.max(initial=1), self.longest)) < lengths[:, None]
        rows = np.full(used.shape, self._pad_id, dtype=np.int64)
        rows[used] = tokens
        positions = np.broadcast_to(np.arange(used.shape[1]), rows.shape)
        lengths = np.clip(lengths, 1, self.longest)  # no model reads an empty row
        return TokenRows(rows, positions, lengths, used.shape[1], 0)

    def _parts(self, texts: Sequence[str]) -> list[tuple[str | tuple[int, ...], ...]]:
        """What each row is made of: words that are read one by one, and tokens."""
        apart = [self._frame is not None and plain(text) for text in texts]
        others = [text for text, known in zip(texts, apart, strict=True) if not known]
        how = {"truncation": True, "max_length": self.longest, "verbose": False}
        read = iter(self.tokenizer(others, **how)["input_ids"] if others else ())
        before, after = self._frame or ((), ())
        return [
            (before, *text.split(), after) if known else (tuple(next(read)),)
            for text, known in zip(texts, apart, strict=True)
        ]

    def _tokens_of(self, words: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """At least of these words: the tokens of each, without special tokens."""
        known = self._read
        new = list(dict.fromkeys(word for word in words if word not in known))
        if new:
            if len(known) + len(new) > _CACHED_WORDS:
                known = self._read = {}
                new = list(dict.fromkeys(words))
            read = self.tokenizer(new, add_special_tokens=False, verbose=False)["input_ids"]
            known.update(zip(new, read, strict=True))
        return known

    def outputs(self, rows: TokenRows | Sequence[TokenRows]) -> Iterator[tuple[Batch, Any]]:
        """What the model says of rows, in batches, shortest first."""
        return ((batch, self.output(batch)) for batch in self.batches(rows))

    def batches(self, rows: TokenRows | Sequence[TokenRows]) -> Iterator[Batch]:
        """Rows in batches, shortest first."""
        if not len(rows):
            return iter(())
        rows = [rows] if isinstance(rows, TokenRows) else rows
        gpu = self.model.device.type != "cpu"
        sizes = {"tokens": self.batch_tokens[gpu], "least_rows": _LEAST_ROWS[gpu]}
        return batches(rows, **sizes, pad_id=self._pad_id)

    def output(self, batch: Batch) -> Any:
        """What the model says of a batch."""
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        inputs = batch.inputs(self._reads_types, self.model.device)
        with torch.inference_mode():
            if self.model.device.type != "cuda":
                return self.model(**inputs)
            # Of two threads that chose at once, the later would leave its choice for good.
            with _choosing, sdpa_kernel([getattr(SDPBackend, name) for name in _ATTENTION]):
                return self.model(**inputs)

    @property
    def dtype(self) -> str:
        """What the model computes in, as ``float32``."""
        return str(self.model.get_input_embeddings().weight.dtype).removeprefix("torch.")

    def description(self) -> dict[str, Any]:
        """Which model it is; a retrained one is another, whatever its folder."""
        return {
            "kind": self.kind,
            "name": Path(self.source).name if Path(self.source).is_dir() else self.source,
            "source": self.source,
            "sha256": self._digest,
            "longest": self.longest,
            "device": self.model.device.type,
            **({} if self.dtype == "float32" else {"dtype": self.dtype}),
        }

    def _not_numbers(self, what: str) -> ModelError:
        """Of which nothing can be read."""
        advice = "get its weights again"
        if self.dtype != "float32":
            advice = f"load it with dtype='float32' (a command: use --device cpu), or {advice}"
        return ModelError(f"{self.source!r} gives {what} that are not numbers: {advice}")

    @cached_property
    def _digest(self) -> str:
        return identity.digest(self.model, self.tokenizer)

"""Sentences as unit vectors, whose products say how much alike two sentences are.

TextFooler and BERT-Attack use the Universal Sentence Encoder; a Hugging Face encoder is what can
be had more easily, and results made with it say so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ranmask.attacks.resources import checkpoints
from ranmask.attacks.resources.checkpoints import Checkpoint
from ranmask.attacks.resources.universal_sentence_encoder import (
    SAVED_MODEL,
    UniversalSentenceEncoder,
)
from ranmask.errors import ModelError

_CPU_TOKENS, _GPU_TOKENS = 4096, 1 << 17


class SentenceEncoder(Protocol):
    """What attacks need of a sentence encoder."""

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row for each sentence."""

    def description(self) -> dict[str, object]:
        """What a result records."""


class HuggingFaceSentenceEncoder:
    """The mean of a model's last hidden states over a sentence's tokens, made a unit vector.

    That is how all-MiniLM-L6-v2, all-mpnet-base-v2 and their kin are meant to be used.  A longer
    sentence is cut to ``longest`` tokens.

    Args:
        model: An encoder without a head, on the device and in the dtype to run in.
        tokenizer: Its tokenizer.
        source: Its folder or hub id, for the record.
        longest: Most tokens of a sentence, if fewer than the model takes.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, source: str | None = None, longest: int | None = None
    ) -> None:
        self._checkpoint = Checkpoint(model, tokenizer, source=source, longest=longest)
        self._tokens = _CPU_TOKENS if self._checkpoint.on_cpu else _GPU_TOKENS

    @classmethod
    def from_pretrained(
        cls, folder_or_id: str | Path, device: str | None = None
    ) -> HuggingFaceSentenceEncoder:
        """An encoder by its folder or hub id; on a GPU if there is one.

        Where the folder has ``sentence_bert_config.json``, its ``max_seq_length`` holds.
        """
        model, tokenizer, missing = checkpoints.load("AutoModel", folder_or_id, device)
        source = checkpoints.existing(folder_or_id)
        # The mean over tokens does not pass through a pooler.
        needed = [name for name in missing if "pooler" not in name.split(".")]
        if needed:
            raise ModelError(
                f"{source!r} is not a trained encoder: it has no weights for "
                f"{checkpoints.listed(needed)}"
            )
        return cls(model, tokenizer, source=source, longest=_max_seq_length(source))

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row for each sentence; each distinct sentence is computed once."""
        import torch

        distinct = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
        rows = self._checkpoint.rows(list(distinct))
        found = np.empty((len(rows), self._checkpoint.model.config.hidden_size), dtype=np.float32)
        for batch, output in self._checkpoint.outputs(rows, self._tokens):
            states = output.last_hidden_state.float()
            if batch.visible is None:
                mean = states.mean(dim=1)
            else:
                visible = torch.from_numpy(batch.visible).to(states.device).unsqueeze(2)
                mean = (states * visible).sum(dim=1) / visible.sum(dim=1)
            found[batch.places] = torch.nn.functional.normalize(mean, dim=1).cpu().numpy()
        return found[np.array([distinct[sentence] for sentence in sentences], dtype=np.intp)]

    def description(self) -> dict[str, object]:
        """What a result records."""
        return {"kind": "sentence-encoder", **self._checkpoint.description(), "pooling": "mean"}


def load_sentence_encoder(
    source: str | Path, device: str | None = None
) -> HuggingFaceSentenceEncoder | UniversalSentenceEncoder:
    """The Universal Sentence Encoder from a folder with a SavedModel; else a Hugging Face encoder.

    ``device`` is for the latter: TensorFlow chooses its own.
    """
    if (Path(source).expanduser() / SAVED_MODEL).is_file():
        return UniversalSentenceEncoder.load(source)
    return HuggingFaceSentenceEncoder.from_pretrained(source, device)


def _max_seq_length(source: str) -> int | None:
    """The limit that sentence-transformers keeps beside a model; None where there is none."""
    from transformers.utils.hub import cached_file

    try:
        path = cached_file(source, "sentence_bert_config.json")
    except OSError:
        return None
    if path is None:
        return None
    try:
        limit = json.loads(Path(path).read_text(encoding="utf-8"))["max_seq_length"]
    except (ValueError, KeyError, TypeError):
        limit = None
    if limit is None:
        return None
    if not isinstance(limit, int) or limit < 1:
        raise ModelError(f"{path} has a max_seq_length of {limit!r}: it must be a number of tokens")
    return limit

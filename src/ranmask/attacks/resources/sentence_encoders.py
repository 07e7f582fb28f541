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

from ranmask.attacks.resources.checkpoints import Checkpoint
from ranmask.attacks.resources.files import files_digest
from ranmask.errors import DataError, MissingDependencyError, ModelError

SAVED_MODEL = "saved_model.pb"
_SENTENCES = 256  # a pass of the Universal Sentence Encoder
_OUTPUTS = ("outputs", "default")


class SentenceEncoder(Protocol):
    """What attacks need of a sentence encoder."""

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row for each sentence; each distinct sentence is computed once."""

    def description(self) -> dict[str, Any]:
        """What a result records."""


class HuggingFaceSentenceEncoder(Checkpoint):
    """The mean of a model's last hidden states over a sentence's tokens, made a unit vector.

    That is how all-MiniLM-L6-v2, all-mpnet-base-v2 and their kin are meant to be used.  A longer
    sentence is cut to ``longest`` tokens.
    """

    kind = "sentence-encoder"
    loader = "AutoModel"
    untrained = "a trained encoder"
    batch_tokens = (4096, 1 << 17)

    @classmethod
    def needs(cls, weight: str) -> bool:
        """The mean over tokens does not pass through a pooler."""
        return "pooler" not in weight.split(".")

    @classmethod
    def limit(cls, source: str) -> int | None:
        """The ``max_seq_length`` that sentence-transformers keeps beside a model, if it does."""
        from transformers.utils.hub import cached_file

        try:
            path = str(cached_file(source, "sentence_bert_config.json"))
            limit = json.loads(Path(path).read_text(encoding="utf-8"))["max_seq_length"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise ModelError(
                f"{path} has a max_seq_length of {limit!r}: it must be a number of tokens"
            )
        return limit

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row for each sentence; each distinct sentence is computed once."""
        import torch

        distinct = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
        rows = self.rows(list(distinct))
        found = np.empty((len(rows), self.model.config.hidden_size), dtype=np.float32)
        for batch, output in self.outputs(rows):
            states = output.last_hidden_state.float()
            if batch.visible is None:
                mean = states.mean(dim=1)
            else:
                visible = torch.from_numpy(batch.visible).to(states.device).unsqueeze(2)
                mean = (states * visible).sum(dim=1) / visible.sum(dim=1)
            found[batch.places] = torch.nn.functional.normalize(mean, dim=1).cpu().numpy()
        if not np.isfinite(found).all():
            raise self._not_numbers("vectors")
        return found[np.array([distinct[sentence] for sentence in sentences], dtype=np.intp)]

    def description(self) -> dict[str, Any]:
        return {**super().description(), "pooling": "mean"}


class UniversalSentenceEncoder:
    """Unit vectors of sentences from Google's release, a TensorFlow Hub SavedModel.

    A SavedModel is a program that TensorFlow runs: load only one that you trust.
    """

    def __init__(self, module: Any, folder: Path) -> None:
        self._module = module
        self._folder = folder

    @classmethod
    def load(cls, folder: str | Path) -> UniversalSentenceEncoder:
        """Read the unpacked archive of tfhub.dev/google/universal-sentence-encoder."""
        folder = Path(folder).expanduser()
        if not (folder / SAVED_MODEL).is_file():
            raise DataError(
                f"{folder} is no SavedModel: it has no {SAVED_MODEL}. Unpack the archive of "
                "tfhub.dev/google/universal-sentence-encoder there"
            )
        try:
            import tensorflow
        except ImportError:
            raise MissingDependencyError("tensorflow", "use") from None
        # TensorFlow 1 modules have no tag of their own, and say so by this file.
        tags: Any = [] if (folder / "tfhub_module.pb").is_file() else None
        try:
            module = tensorflow.saved_model.load(str(folder), tags=tags)
        except Exception as error:  # a damaged folder raises all sorts of things
            raise ModelError(f"cannot load {folder}: {error}") from error
        return cls(module, folder)

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row for each sentence; each distinct sentence is computed once."""
        distinct = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
        asked = list(distinct) or [""]  # even of no sentence at all, the rows have a width
        starts = range(0, len(asked), _SENTENCES)
        parts = [self._vectors(asked[start : start + _SENTENCES]) for start in starts]
        return np.concatenate(parts)[[distinct[sentence] for sentence in sentences] or slice(0)]

    def description(self) -> dict[str, Any]:
        """What a result records."""
        variables = sorted((self._folder / "variables").glob("*"))
        return {
            "kind": "sentence-encoder",
            "name": "universal-sentence-encoder",
            "source": str(self._folder),
            "sha256": files_digest([self._folder / SAVED_MODEL, *variables]),
        }

    def _vectors(self, sentences: list[str]) -> npt.NDArray[np.float32]:
        given: Any
        if callable(self._module):
            given = self._module(sentences)
        else:  # a TensorFlow 1 module
            import tensorflow

            given = self._module.signatures["default"](tensorflow.constant(sentences))
        if isinstance(given, dict):
            given = next(given[name] for name in _OUTPUTS if name in given)
        vectors: npt.NDArray[np.float32] = np.asarray(given, dtype=np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors


def load_sentence_encoder(
    source: str | Path, device: str | None = None, dtype: str | None = None
) -> HuggingFaceSentenceEncoder | UniversalSentenceEncoder:
    """The Universal Sentence Encoder from a folder with a SavedModel; else a Hugging Face encoder.

    ``device`` and ``dtype`` are for the latter, which runs in float16 on a GPU where nothing else
    is said: TensorFlow chooses its own.
    """
    if (Path(source).expanduser() / SAVED_MODEL).is_file():
        return UniversalSentenceEncoder.load(source)
    return HuggingFaceSentenceEncoder.from_pretrained(source, device, dtype)

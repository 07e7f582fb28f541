"""The Universal Sentence Encoder as Google released it, for those who have its folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.attacks.resources.files import files_digest
from ranmask.errors import DataError, MissingDependencyError, ModelError

SAVED_MODEL = "saved_model.pb"
_SENTENCES = 256  # a pass
_OUTPUTS = ("outputs", "default")


class UniversalSentenceEncoder:
    """Unit vectors of sentences from a TensorFlow Hub SavedModel.

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
        # Even of no sentence at all, the rows have a width.
        asked = list(distinct) or [""]
        parts = [
            self._vectors(asked[start : start + _SENTENCES])
            for start in range(0, len(asked), _SENTENCES)
        ]
        rows = np.array([distinct[sentence] for sentence in sentences], dtype=np.intp)
        return np.concatenate(parts)[rows]

    def description(self) -> dict[str, object]:
        """What a result records."""
        return {
            "kind": "sentence-encoder",
            "name": "universal-sentence-encoder",
            "source": str(self._folder),
            "sha256": self._digest,
        }

    @cached_property
    def _digest(self) -> str:
        variables = sorted((self._folder / "variables").glob("*"))
        return files_digest([self._folder / SAVED_MODEL, *variables])

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

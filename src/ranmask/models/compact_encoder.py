"""Encoders of one layer, computed by numpy: those that come with ranmask need no torch.

The head of a BERT reads the first token of the last layer.  With one layer, that token is the only
one that looks at the others, ``h_t``, which therefore need neither keys nor values of their own:

    q (K h_t + b)                 =  (q K) h_t + q b    (a softmax drops q b, the same for all t)
    sum over t of p_t (V h_t + b) =  V (sum of p_t h_t) + b

Each row of tokens is computed by itself, in double precision.  So its bits do not depend on what is
computed beside it; and machines that add up in another order agree up to `TOLERANCE`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ranmask.errors import ModelError, OutputError
from ranmask.models import model_config
from ranmask.models.base import (
    BaseClassifier,
    MaskedCopies,
    Scores,
    by_text,
    check_hiding,
    checked_scores,
)
from ranmask.models.encoding import TokenRows, WordEncoder
from ranmask.models.fast_tokenizer import FastTokenizer
from ranmask.models.tokenizing import RowFormat
from ranmask.words import Document, Hiding

_Floats: TypeAlias = npt.NDArray[np.floating]

TOLERANCE = 2.0**-30
"""How far the difference of two logits moves between machines, at most: 100,000 times what is seen,
for sums of doubles taken in other orders."""

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_EMBEDDINGS, _LAYER = "bert.embeddings.", "bert.encoder.layer.0."
_TABLES = [f"{_EMBEDDINGS}{name}_embeddings" for name in ("word", "position", "token_type")]
_NORMS = [
    f"{part}LayerNorm" for part in (_EMBEDDINGS, f"{_LAYER}attention.output.", f"{_LAYER}output.")
]
_QUERY, _KEY, _VALUE = (f"{_LAYER}attention.self.{name}" for name in ("query", "key", "value"))
_ATTENDED = f"{_LAYER}attention.output.dense"
_WIDER, _NARROWER = f"{_LAYER}intermediate.dense", f"{_LAYER}output.dense"
_POOLER, _HEAD = "bert.pooler.dense", "classifier"
_BLOCK = 8192  # numbers
_MUST_BE = {
    "model_type": "bert",
    "num_hidden_layers": 1,
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
}


class CompactEncoder(BaseClassifier):
    """A BERT of one layer that classifies texts, from the files that transformers writes.

    Args:
        config: What ``config.json`` says.
        weights: Arrays by the names that transformers gives them.
        tokenizer: Its tokenizer.
        hide: How words are hidden, as for `HuggingFaceClassifier`.
        mask_token: A token to hide words by, where the tokenizer names none.
    """

    repeatable = True

    def __init__(
        self,
        config: Mapping[str, Any],
        weights: Mapping[str, _Floats],
        tokenizer: FastTokenizer,
        *,
        hide: Hiding = "mask",
        mask_token: str | None = None,
    ) -> None:
        check_hiding(hide)
        for name, value in _MUST_BE.items():
            if config.get(name, value) != value:
                raise ModelError(
                    f"{name} must be {value!r} in a compact encoder, not {config[name]!r}: load it "
                    "as an encoder, with torch"
                )
        self._config, self._weights = dict(config), dict(weights)
        names = config["id2label"]
        self.labels: tuple[str, ...] = tuple(str(names[str(i)]) for i in range(len(names)))
        several = config.get("problem_type") == "multi_label_classification"
        self.outputs = "approvals" if several else "logits"
        self._words, positions, types = (weights[f"{name}.weight"] for name in _TABLES)
        self._positions, self._types = positions.astype(np.float64), types.astype(np.float64)
        self._norms = {name: self._pair(name) for name in _NORMS}
        self._epsilon = float(config["layer_norm_eps"])
        heads, width = int(config["num_attention_heads"]), self._words.shape[1]
        dense = (_QUERY, _ATTENDED, _WIDER, _NARROWER, _POOLER, _HEAD)
        self._dense = {name: _in_blocks(*self._pair(name)) for name in dense}
        # Of each head: what a query asks of a token, and what it takes from it.
        self._key = self._pair(_KEY)[0].reshape(heads, -1, width) * math.sqrt(heads / width)
        values, self._value_bias = self._pair(_VALUE)
        self._value = values.reshape(heads, -1, width)
        limits = [len(self._positions), tokenizer.model_max_length or len(self._positions)]
        pad_id, types_differ = int(config.get("pad_token_id") or 0), len(self._types) > 1
        takes = RowFormat(min(limits), pad_id, types_differ, 0)
        if len(tokenizer) > len(self._words):
            raise ModelError(
                f"the tokenizer knows {len(tokenizer)} tokens, the model only {len(self._words)}"
            )
        self.encoder = WordEncoder(tokenizer, takes, hide, mask_token)
        row = self.score_rows([self.encoder.lay_out([(0,)], np.zeros((1, 1), np.int32))])
        if row.shape != (1, len(self.labels)):
            raise ModelError(f"{len(self.labels)} classes are named, and {row.shape[1]} are scored")

    @classmethod
    def load(
        cls, folder: str | Path, *, hide: Hiding = "mask", mask_token: str | None = None
    ) -> CompactEncoder:
        """The encoder in ``folder``."""
        from safetensors.numpy import load

        place = Path(folder)
        try:
            config = json.loads((place / _CONFIG).read_text(encoding="utf-8"))
            weights = load((place / _WEIGHTS).read_bytes())
            tokenizer = FastTokenizer.load(place)
            return cls(config, weights, tokenizer, hide=hide, mask_token=mask_token)
        except ModelError as error:
            raise ModelError(f"{place}: {error}") from error
        except Exception as error:  # readers raise all sorts of things over a damaged folder
            told = f"{type(error).__name__}: {error}"
            raise ModelError(f"{place} holds no compact encoder, or is damaged: {told}") from error

    def save(
        self, folder: str | Path, smoothing: Mapping[str, Any], labels: Sequence[str] | None = None
    ) -> None:
        """Write the encoder, with other names for its classes if given, into ``folder``."""
        from safetensors.numpy import save

        place, names = Path(folder), self.labels if labels is None else labels
        named = {
            "id2label": dict(enumerate(names)),
            "label2id": {n: i for i, n in enumerate(names)},
        }
        hiding = {"hide": self.encoder.hide, "mask_token": self.encoder.mask_token}
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / _CONFIG).write_text(json.dumps(self._config | named, indent=2) + "\n")
            (place / _WEIGHTS).write_bytes(save(self._weights, {"format": "pt"}))
            self.encoder.tokenizer.save(place)
            model_config.write(place, model_config.COMPACT, {**smoothing, **hiding})
        except OSError as error:
            raise OutputError(f"cannot write a model to {place}: {error}") from error

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> CompactEncoder:
        return CompactEncoder(
            self._config,
            self._weights,
            self.encoder.tokenizer,
            hide=self.encoder.hide if hide is None else hide,
            mask_token=self.encoder.mask_token if mask_token is None else mask_token,
        )

    @property
    def tolerance(self) -> float:
        """The same on any machine that adds doubles."""
        return TOLERANCE

    def words_read(self, document: Document) -> int:
        return self.encoder.words_read(document)

    def description(self) -> dict[str, object]:
        about = {"hide": self.encoder.hide, "mask_id": self.encoder.mask_id}
        return {"kind": "compact", "sha256": self.digest, **about}

    @cached_property
    def digest(self) -> str:
        """sha256 of everything that decides what this encoder says."""
        read = json.loads(self.encoder.tokenizer.backend_tokenizer.to_str())
        special, longest = self.encoder.wordless_ids, self.encoder.longest
        about = [self.labels, self.outputs, len(self._key), self._epsilon, special, longest, read]
        content = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
        for name, array in sorted(self._weights.items()):
            content.update(f"{name} {array.shape}\n".encode())
            content.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return content.hexdigest()

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        return by_text(self.score_rows(self.encoder.rows_of_all(copies)), copies)

    def score_rows(self, rows: Sequence[TokenRows]) -> Scores:
        """Logits of token rows, in their order, each computed by itself."""
        logits = [self._logits(text, place) for text in rows for place in range(len(text))]
        return checked_scores(logits, len(logits), None)

    def _logits(self, text: TokenRows, place: int) -> Scores:
        length = int(text.lengths[place])
        types = np.where(np.arange(length) < text.first_body_place, 0, text.body_type)
        tokens = self._words[text.ids[place, :length]].astype(np.float64)
        tokens += self._positions[text.positions[place, :length]]
        tokens += self._types[types]
        tokens = self._normed(tokens, _NORMS[0])
        first = tokens[0]
        query = self._through(_QUERY, first).reshape(len(self._key), -1)
        # Not by BLAS: see `_in_blocks`.
        asked = np.einsum("hk,tk->ht", np.einsum("hd,hdk->hk", query, self._key), tokens)
        shares = np.exp(asked - asked.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        mixed = np.einsum("ht,tk->hk", shares, tokens)
        taken = np.einsum("hk,hdk->hd", mixed, self._value).ravel() + self._value_bias
        seen = self._normed(self._through(_ATTENDED, taken) + first, _NORMS[1])
        wide = _gelu(self._through(_WIDER, seen))
        row = self._normed(self._through(_NARROWER, wide) + seen, _NORMS[2])
        return self._through(_HEAD, np.tanh(self._through(_POOLER, row)))

    def _pair(self, name: str) -> tuple[Scores, Scores]:
        weight, bias = (self._weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return weight.astype(np.float64), bias.astype(np.float64)

    def _through(self, name: str, vector: Scores) -> Scores:
        blocks, bias = self._dense[name]
        passed: Scores = (blocks @ vector).ravel() + bias
        return passed

    def _normed(self, rows: Scores, name: str) -> Scores:
        weight, bias = self._norms[name]
        normed: Scores = rows - rows.mean(axis=-1, keepdims=True)
        variance = np.square(normed).mean(axis=-1, keepdims=True)
        normed /= np.sqrt(variance + self._epsilon)
        normed *= weight
        normed += bias
        return normed


def _in_blocks(weight: Scores, bias: Scores) -> tuple[Scores, Scores]:
    """A matrix in blocks of rows, too small for BLAS to share one out among threads.

    Threads that wait for each other cost more than such a product, and might add up in another
    order where there are more of them.
    """
    rows, width = weight.shape
    fitting = range(1, max(2, _BLOCK // width + 1))
    size = max(size for size in fitting if rows % size == 0)
    return weight.reshape(-1, size, width), bias


def _gelu(vector: Scores) -> Scores:
    scaled = (vector * math.sqrt(0.5)).tolist()
    return vector * 0.5 * (1.0 + np.fromiter(map(math.erf, scaled), np.float64, len(scaled)))

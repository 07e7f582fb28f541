"""The parts of an encoder of BERT's kind, found in a Hugging Face model by its class.

Weights stay where they are: parts are the model's own modules, so whoever trains the model trains
these.  Only the three projections of attention are copied, side by side, to be one product; the
copy is made again when one of them has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import nn

from ranmask.errors import ModelError

_CLASSIFIER_READS_ROWS = (
    *("RobertaForSequenceClassification", "XLMRobertaForSequenceClassification"),
    *("CamembertForSequenceClassification", "ElectraForSequenceClassification"),
)
_ATTENTIONS = ("sdpa", "eager")

# Where query, key and value, and then the other parts of a `Layer` are.
_BERT_LAYER = attrgetter(
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "intermediate.intermediate_act_fn", "output.dense", "output.LayerNorm"),
)
_MPNET_LAYER = attrgetter(
    *("attention.attn.q", "attention.attn.k", "attention.attn.v"),
    *("attention.attn.o", "attention.LayerNorm"),
    *("intermediate.dense", "intermediate.intermediate_act_fn", "output.dense", "output.LayerNorm"),
)
_DISTILBERT_LAYER = attrgetter(
    *("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    *("attention.out_lin", "sa_layer_norm"),
    *("ffn.lin1", "ffn.activation", "ffn.lin2", "output_layer_norm"),
)


class SideBySide:
    """Linear layers over the same input, as one."""

    def __init__(self, *parts: nn.Linear) -> None:
        self._parts = parts
        self._seen: tuple[tuple[int, int], ...] = ()
        self.refresh()

    def refresh(self) -> None:
        """Copy the parts' weights anew where they are not those that were copied."""
        tensors = [tensor for part in self._parts for tensor in (part.weight, part.bias)]
        seen = tuple((tensor.data_ptr(), _version(tensor)) for tensor in tensors)
        if seen != self._seen:
            with torch.no_grad():
                self.weight = torch.cat([part.weight for part in self._parts])
                self.bias = torch.cat([part.bias for part in self._parts])
            self._seen = seen

    def __call__(self, rows: torch.Tensor, first: int = 0, last: int | None = None) -> torch.Tensor:
        """What the parts from ``first`` up to, not including, ``last`` give, side by side."""
        size = len(self.bias) // len(self._parts)
        some = slice(first * size, None if last is None else last * size)
        return nn.functional.linear(rows, self.weight[some], self.bias[some])


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: attention, its output with a residual, a network of two layers with another."""

    query_key_value: SideBySide
    output: nn.Linear
    output_norm: nn.LayerNorm
    inner: nn.Linear
    activation: Callable[[torch.Tensor], torch.Tensor]
    outer: nn.Linear
    outer_norm: nn.LayerNorm


@dataclass(frozen=True, eq=False)
class Encoder:
    """All parts of a model.  ``head`` takes the last layer's first rows, (rows, width), to logits.

    ``types``, ``projection`` and ``bias`` are None where a model has none.  ``bias`` is what is
    added to the scores of attention for distances between tokens: (distances, heads).
    """

    words: nn.Embedding
    positions: nn.Embedding
    types: nn.Embedding | None
    norm: nn.LayerNorm
    projection: nn.Linear | None
    layers: tuple[Layer, ...]
    heads: int
    scale: float
    head: Callable[[torch.Tensor], torch.Tensor]
    bias: Callable[[torch.Tensor], torch.Tensor] | None = None


def encoder_parts(model: Any) -> Encoder:
    """The parts of ``model``; refused where its class, or something in it, is not known here."""
    name = type(model).__name__
    config = model.config
    known = getattr(config, "_attn_implementation", None) in _ATTENTIONS
    if known and not getattr(config, "is_decoder", False) and config.num_hidden_layers >= 1:
        try:
            if name == "DistilBertForSequenceClassification":
                return _distilbert(model)
            if name == "MPNetForSequenceClassification":
                return _mpnet(model)
            if name == "BertForSequenceClassification":
                pooler = model.bert.pooler
                return _bert(model.bert, lambda first: model.classifier(pooler(first[:, None])))
            if name in _CLASSIFIER_READS_ROWS:
                return _bert(model.base_model, lambda first: model.classifier(first[:, None]))
        except AttributeError:  # built otherwise than the versions that we know
            pass
    raise ModelError(f"the structure of {name} is not known to it")


def _bert(body: Any, head: Callable[[torch.Tensor], torch.Tensor]) -> Encoder:
    attention = body.encoder.layer[0].attention.self
    return Encoder(
        words=body.embeddings.word_embeddings,
        positions=body.embeddings.position_embeddings,
        types=body.embeddings.token_type_embeddings,
        norm=body.embeddings.LayerNorm,
        projection=getattr(body, "embeddings_project", None),
        layers=_layers(body.encoder.layer, _BERT_LAYER),
        heads=attention.num_attention_heads,
        scale=attention.scaling,
        head=head,
    )


def _distilbert(model: Any) -> Encoder:
    body = model.distilbert
    attention = body.transformer.layer[0].attention
    return Encoder(
        words=body.embeddings.word_embeddings,
        positions=body.embeddings.position_embeddings,
        types=None,
        norm=body.embeddings.LayerNorm,
        projection=None,
        layers=_layers(body.transformer.layer, _DISTILBERT_LAYER),
        heads=attention.n_heads,
        scale=attention.scaling,
        head=lambda first: model.classifier(model.pre_classifier(first).relu()),
    )


def _mpnet(model: Any) -> Encoder:
    body = model.mpnet
    encoder, attention = body.encoder, body.encoder.layer[0].attention.attn
    return Encoder(
        words=body.embeddings.word_embeddings,
        positions=body.embeddings.position_embeddings,
        types=None,
        norm=body.embeddings.LayerNorm,
        projection=None,
        layers=_layers(encoder.layer, _MPNET_LAYER),
        heads=attention.num_attention_heads,
        scale=attention.attention_head_size**-0.5,
        head=lambda first: model.classifier(first[:, None]),
        bias=lambda distances: encoder.relative_attention_bias(
            encoder.relative_position_bucket(distances)
        ),
    )


def _layers(layers: Any, parts: Callable[[Any], Any]) -> tuple[Layer, ...]:
    return tuple(
        Layer(SideBySide(query, key, value), *others)
        for query, key, value, *others in map(parts, layers)
    )

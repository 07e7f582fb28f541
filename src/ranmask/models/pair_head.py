"""The paper's head for pairs: both sentences' encodings, side by side, into a two-layer network.

Premise and hypothesis go through the encoder together.  The encoding of a sentence is the mean of
the last hidden states of its tokens.

A logit is a function of the row of tokens alone: whatever leaves no trace in a row (`encoding`)
leaves none here.  Separators say which tokens belong to which sentence.  Special tokens and padding
belong to neither; mask tokens stand for words and do.  A token that is hidden from attention counts
for nothing, so leaving it out (``hide="drop"``) is the same.  A sentence without tokens has the
zero vector: single texts can be read, though nothing is learned of them.

Folders of such models load through the Auto classes of transformers once `register` was called.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from ranmask.errors import MissingDependencyError, ModelError

try:
    import torch
    import transformers
    from torch import nn
    from transformers.modeling_outputs import SequenceClassifierOutput
except ImportError as error:
    raise MissingDependencyError("PyTorch or transformers", "hf") from error

MODEL_TYPE = "ranmask-pair"


def _of_encoder(name: str) -> property:
    """A setting that is the encoder's."""
    return property(
        lambda config: getattr(config.encoder_config, name, None),
        lambda config, value: setattr(config.encoder_config, name, value),
    )


class PairConfig(transformers.PretrainedConfig):  # type: ignore[no-untyped-call]
    """What a `PairHeadModel` is built from.

    ``head_width``: units between the two layers of the head; as wide as the encoder by default.
    ``separator_id`` ends the premise; ``special_ids``, which it is one of, stand for no word.
    """

    model_type = MODEL_TYPE
    sub_configs: ClassVar[dict[str, Any]] = {"encoder_config": transformers.AutoConfig}

    encoder_config: Any = None
    head_width: int | None = None
    head_dropout: float = 0.1
    separator_id: int | None = None
    special_ids: Any = ()

    # What ranmask and transformers ask a classifier's config for.
    max_position_embeddings = _of_encoder("max_position_embeddings")
    initializer_range = _of_encoder("initializer_range")
    vocab_size = _of_encoder("vocab_size")
    type_vocab_size = _of_encoder("type_vocab_size")
    num_hidden_layers = _of_encoder("num_hidden_layers")

    def __post_init__(self, **given: Any) -> None:
        if isinstance(self.encoder_config, dict):  # as read from a file
            own = dict(self.encoder_config)
            self.encoder_config = transformers.AutoConfig.for_model(own.pop("model_type"), **own)
        self.special_ids = list(self.special_ids)
        super().__post_init__(**given)  # type: ignore[no-untyped-call]


class PairHeadModel(transformers.PreTrainedModel):  # type: ignore[no-untyped-call]
    """An encoder under the paper's head for pairs; see above."""

    config_class = PairConfig
    reads_pairs: ClassVar[bool] = True
    base_model_prefix = "backbone"
    # The encoder chooses its attention by itself: the head has none.
    _supports_sdpa = _supports_flash_attn = _supports_flex_attn = True
    _supports_attention_backend = True

    def __init__(self, config: PairConfig) -> None:
        super().__init__(config)
        if config.encoder_config is None or config.separator_id is None:
            raise ModelError(
                "a pair head needs the encoder's config and the separator's id: build it with "
                "PairHeadModel.around(encoder, tokenizer)"
            )
        auto: Any = transformers.AutoModel
        self._set_backbone(auto.from_config(config.encoder_config))
        size: int = config.encoder_config.hidden_size
        width = size if config.head_width is None else config.head_width
        self.head = nn.Sequential(
            nn.Linear(2 * size, width),
            nn.Tanh(),
            nn.Dropout(config.head_dropout),
            nn.Linear(width, len(config.id2label or ())),
        )
        self.post_init()  # type: ignore[no-untyped-call]

    @classmethod
    def around(cls, encoder: Any, tokenizer: Any) -> PairHeadModel:
        """An encoder under a new head, which is drawn from torch's generator.

        ``encoder`` becomes part of the model.  The classes are those that its config names.
        """
        own = encoder.config
        separator, special = _frame_ids(tokenizer)
        config = PairConfig(
            encoder_config=own,
            separator_id=separator,
            special_ids=special,
            id2label=own.id2label,
            label2id=own.label2id,
            problem_type=own.problem_type,
        )
        model = cls(config)
        model._set_backbone(encoder)
        return model

    def _set_backbone(self, encoder: Any) -> None:
        # A pooler is never looked at, and several devices want a gradient for every weight.
        if "add_pooling_layer" in inspect.signature(type(encoder).__init__).parameters:
            encoder.pooler = None
        encoder.config.name_or_path = ""  # a path of the machine that trained it, for no reader
        self.backbone = encoder
        self.config.encoder_config = encoder.config
        self._takes = frozenset(inspect.signature(encoder.forward).parameters)

    def get_input_embeddings(self) -> Any:
        return self.backbone.get_input_embeddings()

    def set_input_embeddings(self, value: Any) -> None:
        self.backbone.set_input_embeddings(value)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """Logits of rows of tokens; ``token_type_ids`` are left out where the encoder has none."""
        given = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None and "token_type_ids" in self._takes:
            given["token_type_ids"] = token_type_ids
        if position_ids is not None:
            if "position_ids" not in self._takes:
                raise ModelError(
                    f"{type(self.backbone).__name__} takes no position_ids, so hide='drop' is not "
                    "possible. Use hide='mask'"
                )
            given["position_ids"] = position_ids
        hidden = self.backbone(**given).last_hidden_state
        sides = self._sides(input_ids, attention_mask)
        # Sums are products of matrices: rows of another width than the hidden states' are an error.
        sums = torch.bmm(sides.to(hidden.dtype), hidden)
        means = sums / sides.sum(dim=-1, keepdim=True).clamp(min=1).to(sums.dtype)
        return SequenceClassifierOutput(logits=self.head(means.flatten(start_dim=1)))

    def _sides(self, ids: torch.Tensor, visible: torch.Tensor | None) -> torch.Tensor:
        """Which tokens are words of the premise, and which of the hypothesis: (rows, 2, width)."""
        shown = torch.ones_like(ids, dtype=torch.bool) if visible is None else visible.bool()
        separators = shown & (ids == self.config.separator_id)
        second = separators.cumsum(dim=1) > 0
        words = shown
        for token in self.config.special_ids:
            words = words & (ids != token)
        return torch.stack([words & ~second, words & second], dim=1)


def with_pair_head(model: Any, tokenizer: Any) -> PairHeadModel:
    """An encoder under a new pair head; one that has a pair head keeps it, with this tokenizer."""
    if not isinstance(model, PairHeadModel):
        return PairHeadModel.around(model, tokenizer)
    model.config.separator_id, model.config.special_ids = _frame_ids(tokenizer)
    return model


def _frame_ids(tokenizer: Any) -> tuple[int, list[int]]:
    """The separator, and every token that stands for no word."""
    separator = tokenizer.sep_token_id
    if separator is None:
        raise ModelError(
            f"{type(tokenizer).__name__} has no separator token, by which a pair head tells "
            "premise and hypothesis apart: use a base whose tokenizer has one, or train without "
            "pair_head"
        )
    wordlike = {tokenizer.mask_token_id, tokenizer.unk_token_id}
    return int(separator), sorted(set(tokenizer.all_special_ids) - wordlike)


def register() -> None:
    """Tell the Auto classes of transformers of this model, so that its folders load."""
    transformers.AutoConfig.register(MODEL_TYPE, PairConfig, exist_ok=True)
    for kind in (transformers.AutoModel, transformers.AutoModelForSequenceClassification):
        kind.register(PairConfig, PairHeadModel, exist_ok=True)

"""What rows of tokens a Hugging Face model takes."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from ranmask.errors import ModelError

DEFAULT_LONGEST = 512
"""Longest row where neither model nor tokenizer names a limit."""


@dataclass(frozen=True)
class RowFormat:
    """What a model and its tokenizer say of rows.

    Args:
        longest: The longest row, in tokens.
        pad_id: The token that fills short rows up: the model's own, by which some find a row's
            last token; a tokenizer may name another one, or none.
        types: Whether the model tells segments apart, so that token types are passed to it,
            always.  Never to others: GPT-2, XLM and their kin look a type up among their words,
            and even types that are all zero change what they say.
        first_position: The position of a row's first token.  RoBERTa and its kin give padding the
            position ``padding_idx`` and count on from there.
    """

    longest: int
    pad_id: int
    types: bool
    first_position: int

    @classmethod
    def of(cls, model: Any, tokenizer: Any) -> RowFormat:
        """Refused where the tokenizer knows tokens that the model does not."""
        config = model.config
        known = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > known:
            raise ModelError(
                f"the tokenizer knows {len(tokenizer)} tokens, the model only {known}: they do "
                "not belong together"
            )
        first = _first_position(model)
        limits = [DEFAULT_LONGEST]
        positions = getattr(config, "max_position_embeddings", None)
        if isinstance(positions, int) and positions > 0:
            limits = [positions - first]
        if isinstance(tokenizer.model_max_length, int) and tokenizer.model_max_length < 10**6:
            limits.append(tokenizer.model_max_length)
        named = (getattr(config, "pad_token_id", None), tokenizer.pad_token_id)
        pad_ids = [token for token in named if isinstance(token, int) and 0 <= token < known]
        kinds = getattr(config, "type_vocab_size", None)
        takes = inspect.signature(model.forward).parameters
        types = "token_type_ids" in takes and isinstance(kinds, int) and kinds > 1
        return cls(min(limits), pad_ids[0] if pad_ids else 0, types, first)


def _first_position(model: Any) -> int:
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "padding_idx"):
            return 0 if module.padding_idx is None else int(module.padding_idx) + 1
    return 0

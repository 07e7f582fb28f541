"""What a tokenizer and its model say of rows of tokens: one split of a word, frames, limits.

BPE dropout and the sampling of unigram models are ways to train that stay switched on in a saved
tokenizer: two processes with the same model would then give the same text two labels.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from typing import Any

from ranmask.errors import ModelError

_PROBE = "a"
_LONGEST_ROW = 512  # where neither model nor tokenizer names a limit

_AT_RANDOM = {"dropout": "BPE dropout", "alpha": "unigram sampling"}
_WORDS = 64  # to be split ...
_PIECES = 4  # ... of so many tokens each: splits that are rare show in long words
_LONGEST = 256  # in characters
_TIMES = 4  # in each of ...
_CALLS = 2


@dataclass(frozen=True)
class Frame:
    """The tokens around the body of a row: special tokens, and the premise of a pair."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    body_type: int


def frame_of(tokenizer: Any, pair: bool = False) -> tuple[Frame, tuple[int, ...]]:
    """What comes before a text, or a premise, and after it, or the hypothesis; and between both."""
    probe: list[int] = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
    encoded = tokenizer(*[_PROBE] * (2 if pair else 1), return_token_type_ids=True)
    ids, types = encoded["input_ids"], encoded["token_type_ids"]
    first = body = _find(ids, probe, 0)
    end = first + len(probe)
    if pair:
        body = _find(ids, probe, end)
    if any(types[:body]) or len(set(types[body:])) > 1:
        raise ModelError(
            "the tokenizer gives token types that ranmask does not know how to lay out: "
            f"{types[:body]} before and {types[body:]} from the text on"
        )
    frame = Frame(tuple(ids[:first]), tuple(ids[body + len(probe) :]), int(types[body]))
    return frame, tuple(ids[end:body])


def _find(ids: list[int], part: list[int], start: int) -> int:
    for place in range(start, len(ids) - len(part) + 1):
        if ids[place : place + len(part)] == part:
            return place
    raise ModelError("cannot tell which special tokens the tokenizer puts around a text")


def splits_at_blanks(tokenizer: Any) -> bool:
    """Whether it reads every word of a text of `plain` characters by itself, as BERT's do."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    parts = ("normalizer", "pre_tokenizer", "model")
    kinds = [type(getattr(backend, part, None)).__name__ for part in parts]
    if kinds != ["BertNormalizer", "BertPreTokenizer", "WordPiece"]:
        return False
    added = (str(token.content) for token in backend.get_added_tokens_decoder().values())
    return tokenizer.truncation_side == "right" and all(token.split() == [token] for token in added)


def plain(text: str) -> bool:
    """Whether a text has ASCII characters only, and no blanks but spaces and line feeds."""
    return text.isascii() and text.replace("\n", " ").isprintable()


def mask_id_of(tokenizer: Any, mask_token: str | None) -> int:
    """The token that stands for a hidden word: the tokenizer's own, or another that is named."""
    if mask_token is None:
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"{type(tokenizer).__name__} has no mask token: name a token of its vocabulary "
                "that stands for a hidden word with mask_token=..."
            )
        return int(tokenizer.mask_token_id)
    found = tokenizer.convert_tokens_to_ids(mask_token)
    if found is None or (found == tokenizer.unk_token_id and mask_token != tokenizer.unk_token):
        raise ModelError(f"mask_token {mask_token!r} is not a token of the model's vocabulary")
    return int(found)


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
        first = 0
        for name, module in model.named_modules():
            if name.endswith("position_embeddings") and hasattr(module, "padding_idx"):
                first = 0 if module.padding_idx is None else int(module.padding_idx) + 1
                break
        limits = [_LONGEST_ROW]
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


def split_one_way(tokenizer: Any) -> None:
    """Switch random splits off, with a warning, and refuse a tokenizer that still has two answers.

    What a fast tokenizer is known to draw at random is switched off in it.  Whether any other does
    is seen by splitting words made from its vocabulary several times: splits that differ once in
    many thousand words, or between processes only, are not found.
    """
    model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    for setting, name in _AT_RANDOM.items():
        value = getattr(model, setting, None)
        if value:
            setattr(model, setting, None)
            warnings.warn(
                f"the tokenizer splits words at random ({name}, {setting}={value:.3g}): this was "
                "switched off, since a text must have one answer",
                RuntimeWarning,
                stacklevel=3,
            )
    sampling = getattr(tokenizer, "sp_model_kwargs", None) or {}
    if sampling.get("enable_sampling"):
        raise ModelError(
            f"{type(tokenizer).__name__} splits words at random: take enable_sampling out of the "
            "sp_model_kwargs in its tokenizer_config.json"
        )
    words = _long_words(tokenizer)
    how = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
    answers = [tokenizer(words * _TIMES, **how)["input_ids"] for _ in range(_CALLS if words else 0)]
    for place, word in enumerate(words):
        if len({tuple(ids) for answer in answers for ids in answer[place :: len(words)]}) > 1:
            raise ModelError(
                f"{type(tokenizer).__name__} splits {word!r} in one way and then in another, so "
                "that a text would have several answers: use a tokenizer that splits words in one "
                "way"
            )


def _long_words(tokenizer: Any) -> list[str]:
    """Words of several tokens each, from all over the vocabulary."""
    special = set(tokenizer.all_special_ids)
    tokens = [token for token in range(len(tokenizer)) if token not in special]
    step = max(1, len(tokens) // (_WORDS * _PIECES))
    chosen = tokens[::step][: _WORDS * _PIECES]
    spelt = [chosen[start : start + _PIECES] for start in range(0, len(chosen), _PIECES)]
    words = ("".join(str(tokenizer.decode(ids)).split())[:_LONGEST] for ids in spelt)
    return [word for word in words if word]

"""One text, one answer: tokenizers that split words at random are made not to, or refused.

BPE dropout and the sampling of unigram models are ways to train.  They stay switched on in a saved
tokenizer, which then reads one word in several ways: two processes with the same model would give
the same text two labels.
"""

from __future__ import annotations

import warnings
from typing import Any

from ranmask.errors import ModelError

_AT_RANDOM = {"dropout": "BPE dropout", "alpha": "unigram sampling"}
_WORDS = 64  # to be split ...
_PIECES = 4  # ... of so many tokens each: splits that are rare show in long words
_LONGEST = 256  # in characters
_TIMES = 4  # in each of ...
_CALLS = 2


def split_one_way(tokenizer: Any) -> None:
    """Switch random splits off, with a warning, and refuse a tokenizer that still has two answers.

    What a fast tokenizer is known to draw at random is switched off in it.  Whether any other does
    is seen by splitting words made from its vocabulary several times: splits that differ once in
    many thousand words, or between processes only, are not found.
    """
    _switch_off(tokenizer)
    sampling = getattr(tokenizer, "sp_model_kwargs", None) or {}
    if sampling.get("enable_sampling"):
        raise ModelError(
            f"{type(tokenizer).__name__} splits words at random: take enable_sampling out of the "
            "sp_model_kwargs in its tokenizer_config.json"
        )
    words = _long_words(tokenizer)
    answers = [_splits(tokenizer, words * _TIMES) for _ in range(_CALLS)]
    for place, word in enumerate(words):
        if len({split for answer in answers for split in answer[place :: len(words)]}) > 1:
            raise ModelError(
                f"{type(tokenizer).__name__} splits {word!r} in one way and then in another, so "
                "that a text would have several answers: use a tokenizer that splits words in one "
                "way"
            )


def _switch_off(tokenizer: Any) -> None:
    model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    for setting, name in _AT_RANDOM.items():
        value = getattr(model, setting, None)
        if value:
            setattr(model, setting, None)
            warnings.warn(
                f"the tokenizer splits words at random ({name}, {setting}={value:.3g}): this was "
                "switched off, since a text must have one answer",
                RuntimeWarning,
                stacklevel=4,
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


def _splits(tokenizer: Any, words: list[str]) -> list[tuple[int, ...]]:
    if not words:
        return []
    encoded = tokenizer(words, add_special_tokens=False, split_special_tokens=True, verbose=False)
    return [tuple(ids) for ids in encoded["input_ids"]]

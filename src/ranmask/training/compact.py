"""Making a base encoder smaller before it is trained: fewer layers, fewer tokens.

At one to three visible words an encoder needs its word knowledge more than its depth.  Tokens
that are left out are spelt with shorter pieces, which all stay, so every word can still be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch

from ranmask.errors import OptionError


def keep_layers(model: Any, layers: int) -> None:
    """Leave only the first ``layers`` layers of the encoder."""
    stack = getattr(getattr(model.base_model, "encoder", None), "layer", None)
    if not isinstance(stack, torch.nn.ModuleList):
        raise OptionError(
            f"layers={layers} cannot be applied: {type(model).__name__} is not built as "
            "encoder.layer, as BERT and RoBERTa are"
        )
    if layers > len(stack):
        raise OptionError(f"layers={layers}, but the encoder has only {len(stack)}")
    model.base_model.encoder.layer = stack[:layers]
    model.config.num_hidden_layers = layers


def keep_tokens(model: Any, tokenizer: Any, words: Iterable[str], size: int) -> Any:
    """Leave only ``size`` tokens of a WordPiece vocabulary; returns the new tokenizer.

    Kept are the special tokens, every single character (alone and as a continuation), and then
    the most frequent tokens of ``words``.
    """
    kind = type(tokenizer.backend_tokenizer.model).__name__
    if kind != "WordPiece":
        raise OptionError(
            f"vocabulary={size} needs a WordPiece tokenizer, as BERT's; this one is {kind}"
        )
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    counts = _token_counts(tokenizer, words)
    special = set(tokenizer.all_special_tokens)
    needed = [t for t in vocabulary if t in special or len(t.removeprefix("##")) == 1]
    if len(needed) > size:
        raise OptionError(
            f"vocabulary={size} is too small: special tokens and single characters are "
            f"{len(needed)}"
        )
    by_count = sorted(vocabulary, key=lambda t: (-counts[vocabulary[t]], vocabulary[t]))
    chosen = set(needed)
    for token in by_count:
        if len(chosen) == size:
            break
        chosen.add(token)
    kept = sorted(chosen, key=vocabulary.__getitem__)
    embeddings = model.get_input_embeddings()
    rows = embeddings.weight.detach()[[vocabulary[token] for token in kept]].clone()
    small = torch.nn.Embedding(len(kept), rows.shape[1])
    small.weight = torch.nn.Parameter(rows)
    model.set_input_embeddings(small)
    model.config.vocab_size = len(kept)
    lower = bool(getattr(tokenizer, "do_lower_case", True))
    reduced = type(tokenizer)(
        vocab={token: index for index, token in enumerate(kept)},
        do_lower_case=lower,
        model_max_length=tokenizer.model_max_length,
    )
    padding = reduced.pad_token_id
    model.config.pad_token_id = padding
    small.padding_idx = padding
    return reduced


def _token_counts(tokenizer: Any, words: Iterable[str]) -> Counter[int]:
    counted = Counter(words)
    distinct = list(counted)
    counts: Counter[int] = Counter()
    encoded = tokenizer(distinct, add_special_tokens=False, verbose=False)["input_ids"]
    for word, ids in zip(distinct, encoded, strict=True):
        for token in ids:
            counts[token] += counted[word]
    return counts

"""Making a base encoder smaller before it is trained: fewer layers, fewer tokens.

At one to three visible words an encoder needs its word knowledge more than its depth.  Tokens
that are left out are spelt with shorter pieces: single characters all stay, so every word whose
characters are known can still be read.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import transformers

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
    the most frequent tokens of ``words``.  Everything else of the tokenizer stays as it is.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    kind = type(getattr(backend, "model", tokenizer)).__name__
    if kind != "WordPiece":
        raise OptionError(
            f"vocabulary={size} needs a WordPiece tokenizer, as BERT's; this one is {kind}"
        )
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    added = {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}
    chosen = {t for t in vocabulary if t in added or len(t.removeprefix("##")) == 1}
    if len(chosen) > size:
        raise OptionError(
            f"vocabulary={size} is too small: special tokens and single characters are "
            f"{len(chosen)}"
        )
    of_words = Counter(words)
    counts: Counter[int] = Counter()
    encoded = tokenizer(list(of_words), add_special_tokens=False, verbose=False)["input_ids"]
    for ids, times in zip(encoded, of_words.values(), strict=True):
        for token in ids:
            counts[token] += times
    rest = sorted(vocabulary.keys() - chosen, key=lambda t: (-counts[vocabulary[t]], vocabulary[t]))
    chosen.update(rest[: size - len(chosen)])
    kept = sorted(chosen, key=vocabulary.__getitem__)
    _cut_embeddings(model, [vocabulary[token] for token in kept])
    return _reduced(tokenizer, {token: index for index, token in enumerate(kept)})


def _cut_embeddings(model: Any, kept: list[int]) -> None:
    """Leave only these rows of the embeddings, and renumber the tokens that the config names."""
    place = {old: new for new, old in enumerate(kept)}
    embeddings = model.get_input_embeddings()
    small = torch.nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
        embeddings.weight.detach()[kept].clone(),
        freeze=False,
        padding_idx=place.get(embeddings.padding_idx),
    )
    model.set_input_embeddings(small)
    model.config.vocab_size = len(kept)
    for name, value in list(vars(model.config).items()):
        if name.endswith("_token_id") and value is not None:
            setattr(model.config, name, place.get(value))


def _reduced(tokenizer: Any, ids: dict[str, int]) -> Any:
    """The same tokenizer with other ids, by way of its file: only that form of it is public."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        path = Path(folder) / "tokenizer.json"
        saved = json.loads(path.read_text(encoding="utf-8"))
        saved["model"]["vocab"] = ids
        for token in saved["added_tokens"]:
            token["id"] = ids[token["content"]]
        if saved.get("padding"):
            saved["padding"]["pad_id"] = ids[saved["padding"]["pad_token"]]
        frame = saved.get("post_processor") or {}
        for token in frame.get("special_tokens", {}).values():
            token["ids"] = [ids[name] for name in token["tokens"]]
        for end in ("cls", "sep"):  # another form of the same
            if end in frame:
                frame[end][1] = ids[frame[end][0]]
        path.write_text(json.dumps(saved), encoding="utf-8")
        (Path(folder) / "vocab.txt").unlink(missing_ok=True)
        return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)

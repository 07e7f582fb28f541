"""Which Hugging Face model it is: a digest of everything that decides what it answers.

Runs are resumed, and shards joined, where the digest is the same.  It covers the weights, the
model's class and config, and how the tokenizer reads a text; not where they were loaded from, by
which version of a library, nor the number type, which descriptions name.  It is the same after
saving and loading.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Of a config: names, and what saving and loading may change without any effect on an answer.
_NAMES = frozenset(
    ("_name_or_path", "name_or_path", "transformers_version", "architectures", "label2id", "dtype")
)
# Of what a slow tokenizer was built from: where it came from; its files are read instead.
_ORIGINS = frozenset(("name_or_path", "is_local", "local_files_only", "backend", "tokenizer_class"))
# Of a fast tokenizer: every call says anew whether it cuts and fills up rows.
_CALLS = frozenset(("truncation", "padding"))


def digest(model: Any, tokenizer: Any) -> str:
    """Of weights, config and tokenizer: another answer is another model, whatever its folder."""
    import torch

    about = {
        "class": type(model).__name__,
        "config": _config(model.config.to_dict()),
        "tokenizer": _tokenizer(tokenizer),
    }
    # A key may be a number before saving, and a string after.
    keyed = json.loads(json.dumps(about, default=str))
    content = hashlib.sha256(json.dumps(keyed, sort_keys=True).encode())
    for name, tensor in sorted(model.state_dict().items()):
        content.update(f"{name} {tuple(tensor.shape)}\n".encode())
        content.update(tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return content.hexdigest()


def _tokenizer(tokenizer: Any) -> dict[str, Any]:
    """How a text becomes tokens, as plain values."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        # At the top alone: a vocabulary has these words, too.
        read = json.loads(backend.to_str())
        how = {key: value for key, value in read.items() if key not in _CALLS}
    else:
        how = _slow(tokenizer)
    return {
        "how": how,
        "special": {name: str(token) for name, token in tokenizer.special_tokens_map.items()},
        "special_ids": sorted(tokenizer.all_special_ids),
        "longest": tokenizer.model_max_length,
        "cut": tokenizer.truncation_side,
        "split_special_tokens": tokenizer.split_special_tokens,
    }


def _slow(tokenizer: Any) -> dict[str, Any]:
    """A tokenizer in Python: its class, its files, and what else it was built from."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            written = tokenizer.save_vocabulary(folder) or ()
        except NotImplementedError:
            written = ()  # characters or bytes: there is no file
        files = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in written]
    elsewhere = {*tokenizer.special_tokens_map, "added_tokens_decoder", "model_max_length"}
    given = {
        key: value
        for key, value in tokenizer.init_kwargs.items()
        if key not in _ORIGINS | elsewhere and not key.endswith("_file")
    }
    return {
        "class": type(tokenizer).__name__,
        "vocabulary": tokenizer.get_vocab(),
        "added": {index: repr(token) for index, token in tokenizer.added_tokens_decoder.items()},
        "files": files,
        "given": given,
    }


def _config(value: Any) -> Any:
    """A config without names, and so the configs within it."""
    if isinstance(value, Mapping):
        return {key: _config(inner) for key, inner in value.items() if key not in _NAMES}
    return value

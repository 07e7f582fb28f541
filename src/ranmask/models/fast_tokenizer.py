"""The ``tokenizer.json`` of a model's folder, read by the library `tokenizers` alone.

It answers what `WordEncoder` asks of a tokenizer, as the tokenizer of transformers does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE, _CONFIG = "tokenizer.json", "tokenizer_config.json"


class FastTokenizer:
    """A tokenizer with its special tokens.  Text that spells one is read as plain characters.

    ``named`` is what ``tokenizer_config.json`` says, such as ``{"mask_token": "[MASK]"}``.
    """

    def __init__(self, backend: Any, named: dict[str, Any]) -> None:
        self.backend_tokenizer = backend
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        self._named = named
        self._special = {
            key: token["content"] if isinstance(token, dict) else token
            for key, token in named.items()
            if key.endswith("_token") and isinstance(token, str | dict)
        }

    @classmethod
    def load(cls, folder: Path) -> FastTokenizer:
        """The tokenizer in a folder; raises whatever a damaged file makes its readers raise."""
        from tokenizers import Tokenizer

        named = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        return cls(Tokenizer.from_str((folder / _FILE).read_text(encoding="utf-8")), named)

    def save(self, folder: Path) -> None:
        """Write both files."""
        (folder / _FILE).write_text(self.backend_tokenizer.to_str(pretty=True), encoding="utf-8")
        (folder / _CONFIG).write_text(json.dumps(self._named, indent=2) + "\n", encoding="utf-8")

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))

    def __call__(
        self,
        text: str | list[str],
        pair: str | None = None,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = True,
        return_token_type_ids: bool = True,
        verbose: bool = False,
    ) -> dict[str, Any]:
        """Ids and types of the tokens of a text, of a pair, or of each text of a list."""
        if isinstance(text, list):
            read = self.backend_tokenizer.encode_batch(text, add_special_tokens=add_special_tokens)
            return {"input_ids": [row.ids for row in read]}
        row = self.backend_tokenizer.encode(text, pair, add_special_tokens=add_special_tokens)
        return {"input_ids": row.ids, "token_type_ids": row.type_ids}

    def decode(self, ids: list[int]) -> str:
        """The text of tokens."""
        return str(self.backend_tokenizer.decode(ids, skip_special_tokens=False))

    def convert_tokens_to_ids(self, token: str | None) -> int | None:
        """The number of a token; None for one that is not in the vocabulary."""
        found = None if token is None else self.backend_tokenizer.token_to_id(token)
        return None if found is None else int(found)

    @property
    def unk_token(self) -> str | None:
        """What stands for characters that are not in the vocabulary."""
        return self._special.get("unk_token")

    @property
    def unk_token_id(self) -> int | None:
        """Its number."""
        return self.convert_tokens_to_ids(self.unk_token)

    @property
    def mask_token_id(self) -> int | None:
        """The number of the token that stands for a hidden word."""
        return self.convert_tokens_to_ids(self._special.get("mask_token"))

    @property
    def all_special_ids(self) -> list[int]:
        """The numbers of all special tokens."""
        found = map(self.convert_tokens_to_ids, self._special.values())
        return sorted({token for token in found if token is not None})

    @property
    def model_max_length(self) -> int | None:
        """The longest row that it says a model takes."""
        longest = self._named.get("model_max_length")
        return longest if isinstance(longest, int) else None

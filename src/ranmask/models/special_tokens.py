"""The special tokens that a tokenizer puts around a text or a pair, found by asking it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ranmask.errors import ModelError

_PROBE = "a"


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

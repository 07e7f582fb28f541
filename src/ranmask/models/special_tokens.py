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


def single_frame(tokenizer: Any) -> Frame:
    """What a tokenizer puts around a single text."""
    probe = _probe_ids(tokenizer)
    encoded = tokenizer(_PROBE, return_token_type_ids=True)
    ids, types = encoded["input_ids"], encoded["token_type_ids"]
    start = _find(ids, probe, 0)
    return _checked_frame(ids[:start], ids[start + len(probe) :], types[:start], types[start:])


def pair_frame(tokenizer: Any) -> tuple[Frame, tuple[int, ...]]:
    """What comes before the premise and after the hypothesis; what stands between them."""
    probe = _probe_ids(tokenizer)
    encoded = tokenizer(_PROBE, _PROBE, return_token_type_ids=True)
    ids, types = encoded["input_ids"], encoded["token_type_ids"]
    first = _find(ids, probe, 0)
    second = _find(ids, probe, first + len(probe))
    middle = ids[first + len(probe) : second]
    frame = _checked_frame(ids[:first], ids[second + len(probe) :], types[:second], types[second:])
    return frame, tuple(middle)


def _checked_frame(
    before: list[int], after: list[int], types_before: list[int], types_after: list[int]
) -> Frame:
    if any(types_before) or len(set(types_after)) > 1:
        raise ModelError(
            "the tokenizer gives token types that ranmask does not know how to lay out: "
            f"{types_before} before and {types_after} from the text on"
        )
    return Frame(tuple(before), tuple(after), int(types_after[0]))


def _probe_ids(tokenizer: Any) -> list[int]:
    ids: list[int] = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
    return ids


def _find(ids: list[int], part: list[int], start: int) -> int:
    for place in range(start, len(ids) - len(part) + 1):
        if ids[place : place + len(part)] == part:
            return place
    raise ModelError("cannot tell which special tokens the tokenizer puts around a text")

"""Where two traces differ, and why.

A reason is given only where the inputs themselves show it; whatever else differs is a defect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

STEPS = ("words", "positions", "scores", "order", "visits", "queries", "outcome")

TIED = (
    "two words are equally important (deleting either of two equal neighbours leaves the same "
    "text): TextAttack's order of them is that of an unstable sort over an unordered set, ours "
    "takes the earlier first"
)
CHINESE = "TextAttack cuts texts with Chinese characters by jieba, we do not"
LOWER = (
    "TextAttack looks for words in the lower-cased text, which is longer than the text itself for "
    "some letters, so that its windows are off by as much"
)


def steps(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace by the steps that are compared."""
    outcome = (trace["status"], trace["final"], trace["final_score"])
    return {**{step: trace[step] for step in STEPS[:-1]}, "outcome": outcome}


def compared(
    theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How many texts are identical in each step, and those that are not."""
    same = dict.fromkeys(STEPS, 0)
    differences = []
    for their, our in zip(theirs, ours, strict=True):
        assert their["name"] == our["name"]
        one, other = steps(their), steps(our)
        apart = [step for step in STEPS if one[step] != other[step]]
        for step in STEPS:
            same[step] += step not in apart
        if apart:
            differences.append(
                {"text": their["name"], "steps": apart, "why": _why(their, our, apart)}
            )
    statuses = [trace["status"] for trace in theirs]
    counts = {
        "texts": len(theirs),
        **{name: statuses.count(name) for name in ("succeeded", "failed", "skipped")},
        "queries": sum(trace["queries"] for trace in theirs),
        "words_visited": sum(len(trace["visits"]) for trace in theirs),
        "candidates": sum(len(found) for trace in theirs for _, found in trace["visits"]),
        "identical_in_every_step": len(theirs) - len(differences),
        "identical": same,
    }
    return counts, differences


def _why(their: dict[str, Any], our: dict[str, Any], apart: Sequence[str]) -> str | None:
    tied = len(set(their["scores"])) < len(their["scores"])
    if tied and not set(apart) & {"words", "positions", "scores"}:
        return TIED
    return None


def compared_cuts(
    strings: Sequence[Any], theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The same for cuts; a difference is named by the string's place."""
    totals = {"words": 0, "without": 0, "windows": 0}
    same = dict(totals)
    differences = []
    for place, (text, their, our) in enumerate(zip(strings, theirs, ours, strict=True)):
        for step in their:
            totals[step] += 1
            if their[step] == our[step]:
                same[step] += 1
            else:
                differences.append({"string": place, "step": step, "why": _why_cut(text, step)})
    return {"strings": totals, "identical": same}, differences


def _why_cut(text: Any, step: str) -> str | None:
    whole = text if isinstance(text, str) else "\n".join(text)
    if re.search("[\u4e00-\u9fff]", whole):
        return CHINESE
    if step == "windows" and len(whole.lower()) != len(whole):
        return LOWER
    return None

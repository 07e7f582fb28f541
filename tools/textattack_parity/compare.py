"""Where two traces differ, and why.

A reason is given only where the inputs themselves show it; whatever else differs is a defect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

STEPS = ("words", "positions", "scores", "order", "visits", "queries", "outcome")

REASONS = {
    "tied": (
        "Two words are equally important, as when either of two equal neighbours is deleted. "
        "TextAttack's order of the two is that of an unstable sort; ranmask takes the earlier one."
    ),
    "one word": (
        "The only word of a text, or of a hypothesis, is deleted to rank it. TextAttack asks the "
        "victim about an empty text, ranmask asks nothing: the word comes last."
    ),
    "several words": (
        "A candidate has whitespace in it, or is cut into several words or into none. TextAttack "
        "tries it, ranmask drops it: to change the number of words is no substitution."
    ),
    "across a pair": (
        "In TextAttack CLARE merges the last word of a premise with the first of the hypothesis."
    ),
    "either word": (
        "When a word is inserted TextAttack counts it and the next one as new, and compares "
        "sentences around the one that a set of their positions gives first: the second, if the "
        "first is at 7, 15, 23, ...; ranmask always takes the first."
    ),
    "chinese": "TextAttack cuts strings with Chinese characters by jieba, ranmask does not.",
    "lower case": (
        "TextAttack looks for the places of words in the lower-cased text, which is longer than "
        "the text for some letters; its windows are off by as much."
    ),
}
"""Why results differ."""


def steps(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace by the steps that are compared."""
    outcome = (trace["status"], trace["final"], trace["final_score"])
    return {**{step: trace[step] for step in STEPS[:-1]}, "outcome": outcome}


def difference(their: dict[str, Any], our: dict[str, Any]) -> tuple[list[str], str | None]:
    """The steps in which two traces of a text differ, and why: a key of `REASONS`, or None."""
    assert their["name"] == our["name"]
    one, other = steps(their), steps(our)
    apart = [step for step in STEPS if one[step] != other[step]]
    return apart, _why(their, our, set(apart)) if apart else None


def compared(
    theirs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How many texts are identical in each step, and those that are not."""
    same = dict.fromkeys(STEPS, 0)
    differences = []
    for their, our in zip(theirs, ours, strict=True):
        apart, why = difference(their, our)
        for step in STEPS:
            same[step] += step not in apart
        if apart:
            differences.append({"text": their["name"], "steps": apart, "why": why})
    statuses = [trace["status"] for trace in theirs]
    counts = {
        "texts": len(theirs),
        **{name: statuses.count(name) for name in ("succeeded", "failed", "skipped")},
        "queries": sum(trace["queries"] for trace in theirs),
        "words_visited": sum(len(trace["visits"]) for trace in theirs),
        "candidates": sum(
            at if isinstance(found, str) else len(found)
            for trace in theirs
            for at, found in trace["visits"]
        ),
        "identical_in_every_step": len(theirs) - len(differences),
        "identical": same,
    }
    return counts, differences


def _why(their: dict[str, Any], our: dict[str, Any], apart: set[str]) -> str | None:
    if "scores" in apart and not apart & {"words", "positions"}:
        pairs = zip(their["scores"], our["scores"], strict=True)
        unasked = our["scores"].count(None) == 1 and all(b in (a, None) for a, b in pairs)
        return "one word" if unasked else None
    if apart & {"words", "positions", "scores"}:
        return None
    if "order" in apart:
        pairs = zip(their["order"], our["order"], strict=True)
        one, other = next(pair for pair in pairs if pair[0] != pair[1])
        scores = dict(zip(their["positions"], their["scores"], strict=True))
        return "tied" if scores[one] == scores[other] else None
    if "visits" in apart:
        visits = zip(their["visits"], our["visits"], strict=False)
        [count, one], [fewer, other] = next(pair for pair in visits if pair[0] != pair[1])
        if isinstance(one, str):  # a digest
            if isinstance(their["final"], list) and fewer < count:
                return "across a pair"
            return "either word" if len(their["words"]) > 7 else None
        more = [word for word in one if word not in other]
        less = [word for word in other if word not in one]
        return "several words" if not less and not any(map(one_word, more)) else None
    return None


def one_word(shown: Any) -> bool:
    """Whether a replacement is one word; a whole text stands for one that could not be told."""
    runs = re.findall(r"[\w'*@`-]+", shown) if isinstance(shown, str) else []
    return len([run for run in runs if run.strip("'-_*@")]) == 1 and not re.search(r"\s", shown)


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
        return "chinese"
    if step == "windows" and len(whole.lower()) != len(whole):
        return "lower case"
    return None

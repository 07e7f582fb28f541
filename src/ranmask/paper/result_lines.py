"""Lines of result files as the small records that reports are made of; texts stay behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ranmask.attacks.outcome import AttackOutcome
from ranmask.errors import DataError
from ranmask.paper.run_data import (
    Adversarial,
    Attacked,
    Betas,
    Certified,
    Examples,
    Measures,
    Predicted,
    Reading,
    Result,
)
from ranmask.paper.typed_json import JsonObject, without_folders
from ranmask.results import RESULT_VERSION

COMMANDS: dict[Measures, str] = {
    "certified": "certify",
    "attack": "attack",
    "predict": "predict",
    "beta": "beta",
    "examples": "certify",
    "adversarial": "attack",
}
"""The command that writes the lines of each measurement."""

_DECIMALS = 6  # of entropies and shares: a vote among 10,000 moves the fourth
_NOT_SMOOTHING = ("base", "labels", "tolerance", "given_tolerance")


def condense(measures: Measures, lines: Sequence[JsonObject], record: JsonObject) -> Result:
    """The lines of a finished run, checked against each other."""
    _check_rows(lines)
    if measures == "attack":
        return _attacked(lines, record)
    if measures == "adversarial":
        kept = ("text", "status", "adversarial")
        return Adversarial(tuple({key: line[key] for key in kept} for line in lines))
    used = [line for line in lines if line.get("error") is None]
    for line in used:
        if line.get("version") != RESULT_VERSION:
            raise DataError(
                f"{line.where}: result version {line.get('version')!r} is not {RESULT_VERSION}, "
                "the one this ranmask reads: use the ranmask that wrote it, or run again"
            )
    if measures == "examples":
        labels = record.inner("classifier").get("labels")
        return Examples(tuple(map(dict, lines)), tuple(labels or ()))
    make = {"certified": _certified, "predict": _predicted, "beta": _betas}[measures]
    return make(used, len(lines) - len(used))


def first_error(lines: Sequence[JsonObject]) -> str | None:
    """Why there is nothing to condense: the first error, where every line has one."""
    if not lines:
        return "it has no rows"
    found = [line["error"] for line in lines if line.get("error") is not None]
    if len(found) < len(lines):
        return None
    return f"all {len(lines)} rows have errors, the first: {found[0]}"


def _check_rows(lines: Sequence[JsonObject]) -> None:
    before = 0
    for line in lines:
        row = line["row"]
        if not isinstance(row, int) or row <= before:
            raise DataError(
                f"{line.where}: row {row!r} comes after row {before}, but rows only go up: "
                "the file was changed after the run; run again"
            )
        before = row


def _certified(lines: Sequence[JsonObject], errors: int) -> Result:
    first = lines[0]
    others = list(first.get("others") or {})
    for line in lines:
        if list(line.get("others") or {}) != others or line["certificate"] != first["certificate"]:
            raise DataError(f"{line.where}: other certificates than in the first line: run again")
    # What a certificate found on each line; the first one's is the line itself.
    found = {first["certificate"]: lines} | {
        name: [line.inner("others").inner(name) for line in lines] for name in others
    }
    return Certified(
        rows=_each(lines, "row"),
        words=_each(lines, "words"),
        masks=max(line["masks"] for line in lines),
        readings=tuple(
            Reading(
                certificate=name,
                guarantee=all(_each(entries, "guarantee")),
                correct=_correct(lines, entries),
                radius=_each(entries, "radius"),
            )
            for name, entries in found.items()
        ),
        errors=errors,
        threat=first["threat"],
        expected=_each(lines, "expected_id"),
    )


def _correct(lines: Sequence[JsonObject], found: Sequence[JsonObject]) -> tuple[bool, ...]:
    for line in lines:
        if "expected_id" not in line:
            raise DataError(
                f"{line.where}: row {line['row']} has no true label: run again with "
                "--label-column, or with --data"
            )
    pairs = zip(_each(lines, "expected_id"), _each(found, "label_id"), strict=True)
    return tuple(bool(expected == label) for expected, label in pairs)


def _predicted(lines: Sequence[JsonObject], errors: int) -> Result:
    scored = all(line["scores"] is not None for line in lines)
    return Predicted(
        rows=_each(lines, "row"),
        correct=_correct(lines, lines),
        vote_entropy=tuple(_entropy(line["votes"]) for line in lines),
        score_entropy=tuple(_entropy(_positive(line)) for line in lines) if scored else None,
        words=_each(lines, "words"),
        errors=errors,
        expected=_each(lines, "expected_id"),
    )


def _positive(line: JsonObject) -> list[float]:
    """Mean scores; mean logits by their exponentials, whose shares are the softmax."""
    scores: list[float] = line["scores"]
    if line["ensemble"] != "logit":
        return scores
    return [math.exp(score - max(scores)) for score in scores]


def _entropy(weights: Sequence[float]) -> float:
    """In nats, of the weights as shares; nothing at all is taken for even shares."""
    whole = sum(weights)
    if not whole:
        return round(math.log(len(weights)), _DECIMALS)
    shares = [weight / whole for weight in weights if weight > 0]
    return round(sum(-share * math.log(share) for share in shares), _DECIMALS)


def _betas(lines: Sequence[JsonObject], errors: int) -> Result:
    changed = tuple(lines[0]["changed"])
    columns: dict[str, tuple[Any, ...]] = {}
    for key in ("average", "largest"):
        for line in lines:
            if tuple(line["changed"]) != changed or len(line[key]) != len(changed):
                raise DataError(
                    f"{line.where}: betas for other numbers of changed words than in the first "
                    "line: run again"
                )
        columns[key] = tuple(
            tuple(None if beta is None else round(beta, _DECIMALS) for beta in betas)
            for betas in zip(*_each(lines, key), strict=True)
        )
    return Betas(
        rows=_each(lines, "row"),
        words=_each(lines, "words"),
        changed=changed,
        share=tuple(round(share, _DECIMALS) for share in _each(lines, "share")),
        errors=errors,
        **columns,
    )


def _attacked(lines: Sequence[JsonObject], record: JsonObject) -> Attacked:
    outcomes = []
    for line in lines:
        try:
            outcomes.append(AttackOutcome.from_dict(line))
        except (DataError, TypeError) as error:
            raise DataError(f"{line.where}: {error}: run again") from error
    return Attacked(
        attack=record.inner("recipe")["name"],
        victim=_victim(record["classifier"]),
        rows=tuple(outcome.number for outcome in outcomes),
        statuses=tuple(outcome.status for outcome in outcomes),
        words=tuple(outcome.words for outcome in outcomes),
        changed=tuple(
            outcome.words_changed if outcome.status == "succeeded" else 0 for outcome in outcomes
        ),
        queries=tuple(outcome.queries for outcome in outcomes),
        confirmed=tuple(outcome.rechecked for outcome in outcomes),
        expected=tuple(outcome.label for outcome in outcomes),
    )


def _victim(classifier: dict[str, Any]) -> dict[str, Any] | None:
    """How a victim was smoothed: its description without its base classifier."""
    if classifier.get("kind") == "plain":
        return None
    if classifier.get("kind") == "cascade":
        smoothed = _victim(classifier.get("smoothed", {}))
        threshold = classifier.get("threshold")
        return {"kind": "cascade", "threshold": threshold, "smoothed": smoothed}
    kept = {key: value for key, value in classifier.items() if key not in _NOT_SMOOTHING}
    hide = (classifier.get("base") or {}).get("hide")
    described: dict[str, Any] = without_folders({**kept, **({"hide": hide} if hide else {})})
    return described


def _each(lines: Sequence[JsonObject], key: str) -> tuple[Any, ...]:
    return tuple(line[key] for line in lines)

"""Lines of result files as the small records that reports are made of; texts stay behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ranmask.attacks.outcome import AttackOutcome
from ranmask.errors import DataError
from ranmask.paper.report.files import Line, without_folders
from ranmask.paper.report.run_data import (
    Attacked,
    Betas,
    Certified,
    Examples,
    Predicted,
    Reading,
    Result,
)
from ranmask.paper.reproduction.record import Measures
from ranmask.results import RESULT_VERSION

COMMANDS: dict[Measures, str] = {
    "certified": "certify",
    "attack": "attack",
    "predict": "predict",
    "beta": "beta",
    "examples": "certify",
}
"""The command that writes the lines of each measurement."""

_DECIMALS = 6  # of entropies and shares: a vote among 10,000 moves the fourth
_NOT_SMOOTHING = ("base", "labels", "tolerance", "given_tolerance")


def condense(measures: Measures, lines: Sequence[Line], record: Line) -> Result:
    """The lines of a finished run, checked against each other."""
    _check_rows(lines)
    if measures == "attack":
        return _attacked(lines, record)
    used = [line for line in lines if line.get("error") is None]
    for line in used:
        if line.get("version") != RESULT_VERSION:
            raise DataError(
                f"{line.where}: result version {line.get('version')!r} is not {RESULT_VERSION}, "
                "the one this ranmask reads: use the ranmask that wrote it, or run again"
            )
    errors = len(lines) - len(used)
    if measures == "examples":
        classifier = Line(record["classifier"], f"{record.where}: classifier")
        return Examples(tuple(map(dict, lines)), tuple(classifier.get("labels") or ()))
    if measures == "certified":
        return _certified(used, errors)
    if measures == "predict":
        return _predicted(used, errors)
    return _betas(used, errors)


def first_error(lines: Sequence[Line]) -> str | None:
    """Why there is nothing to condense: the first error, where every line has one."""
    if not lines:
        return "it has no rows"
    found = [line["error"] for line in lines if line.get("error") is not None]
    if len(found) < len(lines):
        return None
    return f"all {len(lines)} rows have errors, the first: {found[0]}"


def _check_rows(lines: Sequence[Line]) -> None:
    before = 0
    for line in lines:
        row = line["row"]
        if not isinstance(row, int) or row <= before:
            raise DataError(
                f"{line.where}: row {row!r} comes after row {before}, but rows only go up: "
                "the file was changed after the run; run again"
            )
        before = row


def _certified(lines: Sequence[Line], errors: int) -> Certified:
    first = lines[0]
    others = list(first.get("others") or {})
    for line in lines:
        if list(line.get("others") or {}) != others or line["certificate"] != first["certificate"]:
            raise DataError(f"{line.where}: other certificates than in the first line: run again")
    return Certified(
        rows=_of_each(lines, "row"),
        words=_of_each(lines, "words"),
        masks=max(line["masks"] for line in lines),
        readings=(
            Reading(
                certificate=first["certificate"],
                guarantee=all(line["guarantee"] for line in lines),
                correct=tuple(_right(line, line["label_id"]) for line in lines),
                radius=_of_each(lines, "radius"),
            ),
            *(_other(lines, name) for name in others),
        ),
        errors=errors,
        threat=first["threat"],
        expected=_of_each(lines, "expected_id"),
    )


def _other(lines: Sequence[Line], name: str) -> Reading:
    found = [Line(line["others"][name], f"{line.where}: {name}") for line in lines]
    return Reading(
        certificate=name,
        guarantee=all(one["guarantee"] for one in found),
        correct=tuple(
            _right(line, one["label_id"]) for line, one in zip(lines, found, strict=True)
        ),
        radius=_of_each(found, "radius"),
    )


def _right(line: Line, label_id: int) -> bool:
    if "expected_id" not in line:
        raise DataError(
            f"{line.where}: row {line['row']} has no true label: run again with --label-column, "
            "or with --data"
        )
    return bool(line["expected_id"] == label_id)


def _predicted(lines: Sequence[Line], errors: int) -> Predicted:
    scored = all(line["scores"] is not None for line in lines)
    return Predicted(
        rows=_of_each(lines, "row"),
        correct=tuple(_right(line, line["label_id"]) for line in lines),
        vote_entropy=tuple(_entropy(line["votes"]) for line in lines),
        score_entropy=tuple(_entropy(_positive(line)) for line in lines) if scored else None,
        words=_of_each(lines, "words"),
        errors=errors,
        expected=_of_each(lines, "expected_id"),
    )


def _positive(line: Line) -> list[float]:
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


def _betas(lines: Sequence[Line], errors: int) -> Betas:
    changed = tuple(lines[0]["changed"])
    for line in lines:
        lengths = {len(line["average"]), len(line["largest"])}
        if tuple(line["changed"]) != changed or lengths != {len(changed)}:
            raise DataError(
                f"{line.where}: betas for other numbers of changed words than in the first line: "
                "run again"
            )
    return Betas(
        rows=_of_each(lines, "row"),
        words=_of_each(lines, "words"),
        changed=changed,
        share=tuple(round(line["share"], _DECIMALS) for line in lines),
        average=_by_changed(lines, "average", len(changed)),
        largest=_by_changed(lines, "largest", len(changed)),
        errors=errors,
    )


def _by_changed(
    lines: Sequence[Line], key: str, numbers: int
) -> tuple[tuple[float | None, ...], ...]:
    """For each number of changed words, what every text has there."""
    return tuple(
        tuple(
            None if line[key][place] is None else round(line[key][place], _DECIMALS)
            for line in lines
        )
        for place in range(numbers)
    )


def _attacked(lines: Sequence[Line], record: Line) -> Attacked:
    outcomes = []
    for line in lines:
        try:
            outcomes.append(AttackOutcome.from_dict(line))
        except (DataError, TypeError) as error:
            raise DataError(f"{line.where}: {error}: run again") from error
    return Attacked(
        attack=Line(record["recipe"], f"{record.where}: recipe")["name"],
        victim=_victim(record["classifier"]),
        rows=tuple(one.number for one in outcomes),
        statuses=tuple(one.status for one in outcomes),
        words=tuple(one.words for one in outcomes),
        changed=tuple(one.words_changed if one.status == "succeeded" else 0 for one in outcomes),
        queries=tuple(one.queries for one in outcomes),
        confirmed=tuple(one.rechecked for one in outcomes),
        expected=tuple(one.label for one in outcomes),
    )


def _victim(classifier: dict[str, Any]) -> dict[str, Any] | None:
    """How a victim was smoothed: its description without its base classifier."""
    if classifier.get("kind") == "plain":
        return None
    if classifier.get("kind") == "cascade":
        smoothed = _victim(classifier.get("smoothed", {}))
        return {
            "kind": "cascade",
            "threshold": classifier.get("threshold"),
            "smoothed": smoothed,
        }
    kept = {key: value for key, value in classifier.items() if key not in _NOT_SMOOTHING}
    hide = (classifier.get("base") or {}).get("hide")
    described: dict[str, Any] = without_folders({**kept, **({"hide": hide} if hide else {})})
    return described


def _of_each(lines: Sequence[Line], key: str) -> tuple[Any, ...]:
    return tuple(line[key] for line in lines)

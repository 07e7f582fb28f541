"""What became of one attacked text: a frozen record, to and from versioned JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, TypeAlias

from ranmask.errors import DataError
from ranmask.words import Text, split

OUTCOME_VERSION = 1

Status: TypeAlias = Literal["succeeded", "failed", "skipped", "error"]


@dataclass(frozen=True)
class Change:
    """One changed word: ``position`` counts the words of the text (of the hypothesis), from 0.

    ``premise`` is True for a word of the premise of a pair, counted in the premise.
    """

    position: int
    before: str
    after: str
    premise: bool = False


@dataclass(frozen=True)
class AttackOutcome:
    """One attacked text.

    ``status``: ``succeeded`` (the victim now says another label than the true one), ``failed``,
    ``skipped`` (the victim was wrong before the attack began), or ``error`` (then ``error`` says
    what happened, and only the first four fields are filled in).
    ``text`` and ``adversarial``: before and after; after a failure, the best text of the search.
    ``label``: the true class; ``clean_label`` and ``final_label``: what the victim says.
    ``queries``: texts that the victim was asked about, the first one included.
    ``words_changed``: by `ranmask.words`, at most ``budget``.  ``radius``: what was certified.
    ``clean_share`` and ``final_share``: the true class's share of the votes, or its mean score.
    ``entropy``: of the victim's shares for the text before the attack, in nats.
    ``rechecked``: whether a success is still one on fresh masks; None unless it succeeded.  Where
    the victim draws no masks, or the same for every text, there is nothing to draw afresh: True.
    ``reverted``: share of random maskings of a few words under which a plain victim gets the
    adversarial text right again; None where that was not measured.
    """

    number: int
    text: Text | None
    label: int | None
    status: Status
    error: str | None = None
    adversarial: Text | None = None
    clean_label: int | None = None
    final_label: int | None = None
    queries: int = 0
    words: int = 0
    words_changed: int = 0
    changes: tuple[Change, ...] = ()
    budget: int | None = None
    radius: int | None = None
    clean_share: float | None = None
    final_share: float | None = None
    entropy: float | None = None
    rechecked: bool | None = None
    reverted: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping with a version number; ``row`` is the number."""
        values = {"version": OUTCOME_VERSION, "row": self.number, **asdict(self)}
        del values["number"]
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The record that `to_dict` wrote; keys that are not its own are left alone."""
        version = data.get("version")
        if version != OUTCOME_VERSION:
            raise DataError(
                f"attack outcome version {version!r} is not {OUTCOME_VERSION}, the one this "
                "ranmask reads"
            )
        values = {**data, "number": data.get("row")}
        missing = [field.name for field in fields(cls) if field.name not in values]
        if missing or values["number"] is None:
            raise DataError(f"not an AttackOutcome: no {', '.join(missing or ['row'])}")
        for name in ("text", "adversarial"):
            if isinstance(values[name], list):
                values[name] = tuple(values[name])
        values["changes"] = tuple(Change(**change) for change in values["changes"])
        return cls(**{field.name: values[field.name] for field in fields(cls)})


def changes_between(before: Text, after: Text) -> tuple[Change, ...]:
    """The words in which two texts of as many words differ."""
    parts = zip(
        *((text,) if isinstance(text, str) else text for text in (before, after)), strict=True
    )
    pair = not isinstance(before, str)
    return tuple(
        Change(position, old, new, premise=pair and part == 0)
        for part, (one, other) in enumerate(parts)
        for position, (old, new) in enumerate(zip(split(one), split(other), strict=True))
        if old != new
    )

"""What a detector says of a text: flagged or not, by what, and what is proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from ranmask.errors import DataError
from ranmask.results.records import RESULT_VERSION


@dataclass(frozen=True)
class Detection:
    """Whether a text is flagged, and what is proved: of flagged texts alone, under ``assumes``.

    ``score`` is flagged where it reaches ``threshold``.  ``detector`` says what it is: of
    ``windows`` the highest score of one, of ``segments`` the largest sum of neighbouring values, of
    ``words`` the sum of the weights.  ``spans``: by what it is flagged, each the position of a
    first word and of the first behind it: windows or segments that do not overlap; or words, the
    heaviest first, that reach the threshold alone.

    **What is flagged stays flagged** where nothing but the following is done.  ``additions``: text
    of any length is added ``anywhere``, or at the ``ends``, before and after, set off by a blank.
    At the same time, at most ``radius`` words are replaced or deleted; or, of segments, inserted;
    or, of windows, blocks of any length are inserted inside.  Or at most ``insertions`` such blocks
    are inserted, and nothing else (None: ``additions`` say all).  Or at most ``characters``
    characters, blanks included, are inserted, deleted or replaced.  ``radius`` None: nothing is
    proved.

    ``words``: how many the text has.  ``failed``: windows that the model gave no answer for.
    """

    flagged: bool
    score: float
    words: int
    radius: int | None
    insertions: int | None
    characters: int | None
    additions: Literal["nowhere", "ends", "anywhere"]
    spans: tuple[tuple[int, int], ...]
    failed: int
    positive: str
    detector: str
    threshold: float
    assumes: tuple[str, ...]

    def certified(self, words: int) -> bool:
        """Whether the text is flagged, and proved to stay so after any ``words`` changed words."""
        return self.flagged and self.radius is not None and words <= self.radius

    @property
    def proved(self) -> str:
        """What is proved, in words."""
        if not self.flagged:
            return "not flagged"
        if self.radius is None:
            return "flagged, and nothing is proved"
        where = "anywhere" if self.additions == "anywhere" else "before or after"
        least = self.radius + 1
        changed = "1 word" if least == 1 else f"{least} words"
        inside = ""
        if self.insertions is not None:
            places = self.insertions + 1
            inside = f", or text put in at {places} place{'s' if places > 1 else ''} inside"
        return (
            f"stays flagged whatever is added {where}; at least {changed} must be changed{inside}"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping with a version number."""
        values: dict[str, Any] = {"version": RESULT_VERSION, **vars(self)}
        return values | {
            "spans": [list(span) for span in self.spans],
            "assumes": list(self.assumes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The record that `to_dict` wrote; keys that are not its own are left alone."""
        version = data.get("version")
        if version != RESULT_VERSION:
            raise DataError(
                f"result version {version!r} is not {RESULT_VERSION}, the one this ranmask reads"
            )
        missing = [field.name for field in fields(cls) if field.name not in data]
        if missing:
            raise DataError(f"not a {cls.__name__}: no {', '.join(missing)}")
        values = {field.name: data[field.name] for field in fields(cls)}
        spans = tuple((int(start), int(stop)) for start, stop in values["spans"])
        return cls(**values | {"spans": spans, "assumes": tuple(values["assumes"])})

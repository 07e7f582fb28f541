"""What a detector says of a text: flagged or not, by what, and what is proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from ranmask.results.records import Record, check_count


@dataclass(frozen=True)
class Detection(Record):
    """Whether a text is flagged, and what is proved: of flagged texts alone, under ``assumes``.

    ``score`` is flagged where it reaches ``threshold``.  ``detector`` says what it is: of
    ``windows`` the highest score of one, of ``segments`` the largest sum of neighbouring values, of
    ``words`` the sum of the weights.  ``spans``: by what it is flagged, each the position of a
    first word and of the first behind it: windows or segments that do not overlap; or words, the
    heaviest first, that reach the threshold alone.

    **What is flagged stays flagged** where nothing but the following is done.  ``additions``: text
    of any length is added ``anywhere``, or at the ``ends``, before and after, set off by a blank.
    At the same time, at most ``radius`` words are replaced or deleted; or, of segments, inserted;
    or, of windows, blocks of any length are inserted inside.  Or, beside additions, at most
    ``insertions`` such blocks are inserted (None: any number), and no word is changed.  Or at most
    ``characters`` characters, blanks included, are inserted, deleted or replaced.  ``radius`` None:
    nothing is proved.

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
        check_count("words", words)
        return self.flagged and self.radius is not None and words <= self.radius

    @property
    def proved(self) -> str:
        """What is proved, in words."""
        if not self.flagged:
            return "not flagged"
        if self.radius is None:
            return "flagged, and nothing is proved"
        least = self.radius + 1
        words = "1 word" if least == 1 else f"{least} words"
        if self.additions == "anywhere":
            return f"stays flagged whatever is added anywhere; at least {words} must be changed"
        put_in, most = "put in", 0
        if self.detector == "windows":
            put_in, most = f"text{'s' if least > 1 else ''} put in", self.radius
        unchanged = ""
        if self.insertions is None:
            unchanged = ", and at least 1 word changed"
        elif self.insertions > most:
            unchanged = f", at {self.insertions + 1} places if no word is changed"
        return (
            "stays flagged whatever is added before or after; inside, at least "
            f"{words} must be changed or {put_in}{unchanged}"
        )


@dataclass(frozen=True)
class ShownDetection(Detection):
    """What is said of a text, and what each of its words adds to the score.

    ``word_values``: one number a word.  Of ``words`` its weight, which counts once however often
    the word stands there; of ``segments`` its value, below 0 where it speaks against a flag.  None
    of ``windows``, whose model reads words together.
    """

    word_values: tuple[float, ...] | None

    @classmethod
    def of(cls, found: Detection, word_values: tuple[float, ...] | None) -> Self:
        """A detection with the values of its words."""
        return cls(**vars(found), word_values=word_values)

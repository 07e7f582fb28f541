"""What every certificate answers with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Radius:
    """``words``: the largest number of changed words that is certified.

    ``None`` means that not even the unchanged text is certified: a tie, or a confidence bound
    that fails.  ``tight`` is False when a larger number might be provable too; when it is True,
    some classifier that says the same of this text's copies, and moves by nothing when it is
    asked again, loses its only winner at ``words + 1`` (a tie counts as lost, though it goes to
    the lowest id).  ``worst`` are ``words + 1`` positions of the greatest known cost: *these are
    the words that the label hangs on*.
    """

    words: int | None
    tight: bool = True
    worst: tuple[int, ...] = ()

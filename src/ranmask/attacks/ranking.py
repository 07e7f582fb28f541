"""In which order words are attacked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ranmask.attacks.attempt import Attempt
from ranmask.attacks.recipe import Ranking
from ranmask.attacks.requests import Dialogue, Judge
from ranmask.attacks.tokenization import CutText
from ranmask.words import split


class ByLoss(Ranking):
    """By what the victim loses when it does not see the word: one query a word."""

    @abstractmethod
    def hidden(self, text: CutText, position: int) -> CutText:
        """The text without its word at ``position``."""

    def order(self, attempt: Attempt, positions: Sequence[int]) -> Dialogue[list[int]]:
        """Ties go to the earlier word."""
        original = attempt.original
        within = positions[: attempt.queries_left]  # of a long text, not more than can be asked
        asked = {position: self.hidden(original, position) for position in within}
        # A text cannot be asked about when its only word is gone; then there is no order to find.
        asked = {position: text for position, text in asked.items() if split(text.parts[-1])}
        judged = yield Judge(tuple(asked.values()), near=original)
        scores = {position: answer.score for position, answer in zip(asked, judged, strict=False)}
        return sorted(positions, key=lambda position: -scores.get(position, 0.0))


class ByDeletion(ByLoss):
    """By deleting the word."""

    def hidden(self, text: CutText, position: int) -> CutText:
        """The text without the word."""
        return text.without(position)


@dataclass(frozen=True)
class ByUnknown(ByLoss):
    """By showing an unknown word in its place."""

    token: str = "[UNK]"  # noqa: S105  not a password

    def hidden(self, text: CutText, position: int) -> CutText:
        """The text with the unknown word."""
        return text.shown_as(position, self.token)


class AtRandom(Ranking):
    """In a random order: what an attacker does who sees labels only."""

    def order(self, attempt: Attempt, positions: Sequence[int]) -> Dialogue[list[int]]:
        """An order of this attempt's own."""
        order = attempt.chance("order").sample(len(positions), len(positions))
        return [positions[place] for place in order]
        yield  # a dialogue that asks nothing


class ByCertificate(Ranking):
    """The certificate's worst choice of words, and no other where it names some.

    Positions of the certificate are words, so it goes with the cut into words only.
    """

    needs_certificate = True

    def order(self, attempt: Attempt, positions: Sequence[int]) -> Dialogue[list[int]]:
        """In the order of the text."""
        original, certificate = attempt.original, attempt.certificate
        critical = () if certificate is None else certificate.critical_words
        premise = len(split(original.parts[0])) if len(original.parts) > 1 else 0
        worst = {premise + position for position in critical}
        chosen = [position for position in positions if position in worst]
        return chosen or list(positions)
        yield  # a dialogue that asks nothing

"""A `ModelWrapper` over a smoothed classifier, for those who live in TextAttack.

TextAttack needs an environment of its own (docs/textattack.md).  Word tables, blends of them and
any function work there as they are; for a Hugging Face model, give a function that calls it.

    from textattack.attack_recipes import DeepWordBugGao2018
    from ranmask import load_default
    from ranmask.attacks.textattack import SmoothedModelWrapper

    attack = DeepWordBugGao2018.build(SmoothedModelWrapper(load_default("news-words")))
    attack.attack("Stocks fell on Monday as oil prices rose", 2)

Rows are shares of the votes, or mean scores, as the attacks of ranmask see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ranmask.attacks.api import AnyVictim, as_victim
from ranmask.attacks.victims import GRID, Question
from ranmask.models.base import Scores
from ranmask.words import Text, document, split

try:
    from textattack.models.wrappers import ModelWrapper
except ImportError:  # it has nothing that is needed here but its name
    ModelWrapper = object


class SmoothedModelWrapper(ModelWrapper):  # type: ignore[misc]  # TextAttack has no types
    """Answers TextAttack's queries with the shares of a victim, smoothed or plain."""

    def __init__(self, victim: AnyVictim) -> None:
        self.victim = as_victim(victim)
        self.model = victim  # TextAttack looks at its type

    def __call__(self, text_input_list: Sequence[Any], **_: Any) -> list[list[float]]:
        """Shares of the classes, a row a text; a text without words says nothing of any class."""
        texts = [_as_text(text) for text in text_input_list]
        read = {text: document(text) for text in texts if _has_words(text)}
        asked = {text: Question(0, words, words) for text, words in read.items()}
        rows: dict[Text, list[float]] = {}
        if asked:
            answers = self.victim.answer(list(asked.values()))
            for text, label, shares in zip(asked, answers.labels, answers.shares, strict=True):
                rows[text] = _summing_to_one(shares, int(label))
        return [rows[text] if _has_words(text) else self._unsure for text in texts]

    @cached_property
    def _unsure(self) -> list[float]:
        labels = self.victim.labels
        classes = len(self(["?"])[0]) if labels is None else len(labels)
        return [1 / classes] * classes


def _as_text(text: Any) -> Text:
    return text if isinstance(text, str) else (str(text[0]), str(text[1]))


def _has_words(text: Text) -> bool:
    return bool(split(text if isinstance(text, str) else text[1]))


def _summing_to_one(shares: Scores, label: int) -> list[float]:
    """Shares that sum to 1, or TextAttack takes the whole batch for logits, with the label first.

    Rounded shares do not: what is missing goes to the least likely class, so that the others, and
    so the scores of an attack, are those that ranmask sees.
    """
    row: list[float] = shares.tolist()
    missing = 1 - sum(row)
    others = [place for place, share in enumerate(row) if place != label and share + missing >= 0]
    row[min(others, key=row.__getitem__, default=label)] += missing
    first = row.index(max(row))
    if first != label:  # the two are so close that rounding made them tie
        row[first] -= GRID
        row[label] += GRID
    return row

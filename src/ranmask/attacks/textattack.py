"""A `ModelWrapper` over a smoothed classifier, for those who live in TextAttack.

TextAttack is no dependency of ranmask: it pins older libraries, so it needs an environment of its
own, with ``pip install ranmask[hf] "transformers<5" textattack`` in it and, for a Hugging Face
model, a function as the base classifier.  A word table, a blend of tables and any function work
there as they are.

    from textattack.attack_recipes import TextFoolerJin2019
    from ranmask import load_default
    from ranmask.attacks.textattack import SmoothedModelWrapper

    recipe = TextFoolerJin2019.build(SmoothedModelWrapper(load_default("news-words")))

Rows are shares of the votes, or mean scores, as the engine of ranmask sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ranmask.attacks.victims import AnyVictim, Question, as_victim
from ranmask.errors import MissingDependencyError
from ranmask.words import Text, split

try:
    from textattack.models.wrappers import ModelWrapper
except ImportError as error:
    raise MissingDependencyError("TextAttack", "textattack") from error


class SmoothedModelWrapper(ModelWrapper):  # type: ignore[misc]  # TextAttack has no types
    """Answers TextAttack's queries with the shares of a victim, smoothed or plain."""

    def __init__(self, victim: AnyVictim) -> None:
        self.victim = as_victim(victim)
        self.model = victim  # TextAttack looks at its type

    def __call__(self, text_input_list: Sequence[Any], **_: Any) -> Any:
        """Shares of the classes, a row a text; a text without words says nothing of any class."""
        texts = [_as_text(text) for text in text_input_list]
        asked = [
            Question(0, text, text)
            for text in texts
            if split(text if isinstance(text, str) else text[1])
        ]
        if not asked:
            raise ValueError("no text has a word")
        shares = iter(self.victim.answer(asked).shares)
        rows = []
        for text in texts:
            known = split(text if isinstance(text, str) else text[1])
            rows.append(next(shares) if known else None)
        classes = len(next(row for row in rows if row is not None))
        return [[1 / classes] * classes if row is None else row.tolist() for row in rows]


def _as_text(text: Any) -> Text:
    return text if isinstance(text, str) else (str(text[0]), str(text[1]))

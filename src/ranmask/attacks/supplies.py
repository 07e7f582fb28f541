"""What recipes are made with: resources, given explicitly, and the preset's settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ranmask.attacks.tokenization import Cutting
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.attacks.resources.masked_lm import MaskedLM
    from ranmask.attacks.resources.neighbours import Neighbours
    from ranmask.attacks.resources.sentence_encoder import SentenceEncoder
    from ranmask.attacks.resources.stop_words import StopWords
    from ranmask.attacks.resources.tagging import Tagger
    from ranmask.attacks.vocabulary import Vocabulary

Preset: TypeAlias = Literal["ranmask-2021", "textattack-0.3.11"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
"""``ranmask-2021``: the settings of the paper's runs.  ``textattack-0.3.11``: the library's now."""

CUTTINGS: dict[Preset, Cutting] = {
    "ranmask-2021": "textattack-2021",
    "textattack-0.3.11": "textattack-0.3.11",
}


@dataclass(frozen=True)
class Supplies:
    """Resources that recipes may need; nothing is fetched that is not given.

    Args:
        neighbours: Synonyms, or word vectors (`resources.neighbours.load_neighbours`).
        sentence_encoder: Compares sentences (`load_sentence_encoder`); without one a recipe leaves
            that constraint out and says so in its name.
        masked_lm: A masked language model (`MaskedLM.from_pretrained`).
        tagger: Parts of speech (`load_tagger`); left out as the sentence encoder is.
        stop_words: Words that are never replaced, instead of the recipe's own list.
        vocabulary: Words for ``anywords`` and ``critical``.
    """

    neighbours: Neighbours | None = None
    sentence_encoder: SentenceEncoder | None = None
    masked_lm: MaskedLM | None = None
    tagger: Tagger | None = None
    stop_words: StopWords | None = None
    vocabulary: Vocabulary | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not callable(getattr(value, "description", None)):
                raise OptionError(
                    f"{field.name} must be a resource that a loader made, not a "
                    f"{type(value).__name__}"
                )

    def need(self, recipe: str, name: str, how: str) -> Any:
        """A resource that a recipe cannot do without."""
        value = getattr(self, name)
        if value is None:
            raise OptionError(f"the recipe {recipe} needs {name}: {how}")
        return value

    def describe(self, *names: str) -> dict[str, Any]:
        """What the named resources are, None for those that are not there."""
        known = {field.name for field in fields(self)}
        assert known.issuperset(names)
        return {
            name: None if getattr(self, name) is None else getattr(self, name).description()
            for name in names
        }


def name_with(recipe: str, supplies: Supplies, *optional: str) -> str:
    """The recipe's name, with what it had to do without."""
    missing = [name.replace("_", " ") for name in optional if getattr(supplies, name) is None]
    return f"{recipe} without {' and '.join(missing)}" if missing else recipe

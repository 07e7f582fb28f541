"""The options of defences, without torch; the classes that train inherit from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ranmask.models import SYNONYM_SET_SIZE
from ranmask.options.fields import Checked, option

Norm: TypeAlias = Literal["l2", "linf"]
Flips: TypeAlias = Literal["words", "synonyms"]


@dataclass(frozen=True)
class AscentOptions(Checked, kind="freelb", group="Defences"):
    """Gradient ascent in a ball around the embeddings of a text."""

    steps: int = option("Steps of ascent.", 3, least=1)
    step_size: float = option("Length of a step.", 0.3, least=0)
    initial_magnitude: float = option("Random shift before it.", 0.5, least=0)
    max_norm: float = option("Largest shift; 0: plain training.", 0.05, least=0)
    norm: Norm = option("Measures shifts; linf: the largest single number.", "l2")


@dataclass(frozen=True)
class PgdOptions(AscentOptions, kind="pgd"):
    """As many steps as the tables of the paper have."""

    steps: int = option("Steps of ascent.", 10, least=1)


@dataclass(eq=False, kw_only=True)
class HotFlipOptions(Checked, kind="hotflip", group="Defences"):
    """Which words are flipped, and to what."""

    change_rate: float = option("Share of words to flip.", 0.2, least=0, most=1)
    flips: Flips = option("Flip to any words or to synonyms.", "words")


@dataclass(eq=False, kw_only=True)
class DneOptions(Checked, kind="dne", group="Defences"):
    """Ascent on the weights of mixtures of synonyms."""

    steps: int = option("Steps of ascent.", 3, least=0)
    step_size: float = option("Length of a step.", 1.0, least=0)
    hull: float = option("Share of the synonyms' hull; 0: the word alone.", 1.0, least=0, most=1)


@dataclass(eq=False, kw_only=True)
class SaferOptions(Checked, kind="safer", group="Defences"):
    """Random synonyms in the place of words."""

    set_size: int = option(
        "Most words that take turns in a word's place.", SYNONYM_SET_SIZE, least=1
    )


@dataclass(frozen=True)
class AugmentOptions(Checked, kind="augment", group="Defences"):
    """Which training texts are attacked, and how."""

    attacked: tuple[str, ...] = option(
        "Training texts that were attacked already, by ranmask attack.", (), repeated=True
    )
    victim: str | None = option("Model to attack them with.", unset="trained for it")
    recipe: str = option("The attack.", "textfooler")
    share: str = option("Share of the rows to attack.", "1/2")


DEFENCES: tuple[type[Checked], ...] = (
    *(AscentOptions, PgdOptions, HotFlipOptions),
    *(DneOptions, SaferOptions, AugmentOptions),
)
"""All of them, for the flags of ``ranmask train``."""

"""The options of defences, without torch; the classes that train inherit from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from ranmask.models import SYNONYM_SET_SIZE
from ranmask.options.fields import Checked, Option

Norm: TypeAlias = Literal["l2", "linf"]
Flips: TypeAlias = Literal["words", "synonyms"]


@dataclass(frozen=True)
class AscentOptions(Checked):
    """Gradient ascent in a ball around the embeddings of a text."""

    KIND: ClassVar[str] = "freelb"
    GROUP: ClassVar[str] = "Defences"

    steps: Annotated[int, Option("Steps of ascent.", least=1)] = 3
    step_size: Annotated[float, Option("Length of a step.", least=0)] = 0.3
    initial_magnitude: Annotated[float, Option("Random shift before it.", least=0)] = 0.5
    max_norm: Annotated[float, Option("Largest shift; 0: plain training.", least=0)] = 0.05
    norm: Annotated[Norm, Option("Measures shifts; linf: the largest single number.")] = "l2"


@dataclass(frozen=True)
class PgdOptions(AscentOptions):
    """As many steps as the tables of the paper have."""

    KIND: ClassVar[str] = "pgd"

    steps: Annotated[int, Option("Steps of ascent.", least=1)] = 10


@dataclass(eq=False, kw_only=True)
class HotFlipOptions(Checked):
    """Which words are flipped, and to what."""

    KIND: ClassVar[str] = "hotflip"
    GROUP: ClassVar[str] = "Defences"

    change_rate: Annotated[float, Option("Share of words to flip.", least=0, most=1)] = 0.2
    flips: Annotated[Flips, Option("Flip to any words or to synonyms.")] = "words"


@dataclass(eq=False, kw_only=True)
class DneOptions(Checked):
    """Ascent on the weights of mixtures of synonyms."""

    KIND: ClassVar[str] = "dne"
    GROUP: ClassVar[str] = "Defences"

    steps: Annotated[int, Option("Steps of ascent.", least=0)] = 3
    step_size: Annotated[float, Option("Length of a step.", least=0)] = 1.0
    hull: Annotated[
        float, Option("Share of the synonyms' hull; 0: the word alone.", least=0, most=1)
    ] = 1.0


@dataclass(eq=False, kw_only=True)
class SaferOptions(Checked):
    """Random synonyms in the place of words."""

    KIND: ClassVar[str] = "safer"
    GROUP: ClassVar[str] = "Defences"

    set_size: Annotated[int, Option("Most words that take turns in a word's place.", least=1)] = (
        SYNONYM_SET_SIZE
    )


@dataclass(frozen=True)
class AugmentOptions(Checked):
    """Which training texts are attacked, and how."""

    KIND: ClassVar[str] = "augment"
    GROUP: ClassVar[str] = "Defences"

    attacked: Annotated[
        tuple[str, ...],
        Option("Training texts that were attacked already, by ranmask attack.", repeated=True),
    ] = ()
    victim: Annotated[str | None, Option("Model to attack them with.", unset="trained for it")] = (
        None
    )
    recipe: Annotated[str, Option("The attack.")] = "textfooler"
    share: Annotated[str, Option("Share of the rows to attack.")] = "1/2"


DEFENCES: tuple[type[Checked], ...] = (
    *(AscentOptions, PgdOptions, HotFlipOptions),
    *(DneOptions, SaferOptions, AugmentOptions),
)
"""All of them, for the flags of ``ranmask train``."""

"""What ``ranmask train --defence`` means for the other options of the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.corpora import Corpus
    from ranmask.training.defence import Defence
    from ranmask.training.options import TrainingOptions
    from ranmask.training.records import Report

DEFAULT = "ranmask"
DEFAULT_RECIPE = "textfooler"

_OF_DEFENCES = (
    *("steps", "step_size", "initial_magnitude", "max_norm", "norm"),
    *("change_rate", "flips", "hull", "set_size", "neighbours"),
)
_OF_AUGMENTATION = ("attacked", "victim", "recipe", "share", "sentence_encoder", "attack_lm")
_OF_MASKING = (
    *("keep", "mask_rate", "hide", "family", "copies", "ramp"),
    *("vote_epochs", "vote_copies", "vote_loss", "vote_learning_rate", "target_words"),
    *("temperature", "accuracy_weight", "margin"),
)
_OF_SMOOTHING = ("ensemble", "masks")


@dataclass(frozen=True)
class Divided:
    """The options that were given: for training, for the defence, and for its attacks."""

    training: dict[str, Any]
    defence: Defence
    attacks: dict[str, Any] | None
    """None where no training text is attacked."""

    def corpus(
        self,
        base: str,
        train: Corpus,
        validation: Corpus,
        output: Path,
        options: TrainingOptions,
        report: Report,
        device: str | None,
    ) -> Corpus:
        """What is trained on: ``train``, with attacked texts where the defence wants them."""
        if self.attacks is None:
            return train
        return _augmented(self.attacks, base, train, validation, output, options, report, device)


def divided(name: str, given: Mapping[str, Any]) -> Divided:
    """Options by what they belong to; those that mean nothing with a defence are refused."""
    from ranmask.defences.building import build, parts_of
    from ranmask.training.options import WHOLE_TEXTS

    masked, own = parts_of(name)
    attacks = None
    left = dict(given)
    if own == "augment":
        names = (*_OF_AUGMENTATION, "neighbours")
        attacks = {key: left.pop(key) for key in names if key in left}
    for key in _OF_AUGMENTATION:
        if key in left:
            raise _nothing(key, name)
    defence = build(name, {key: left.pop(key) for key in _OF_DEFENCES if key in left})
    if masked:
        return Divided(left, defence, attacks)
    for key in (*_OF_MASKING, *(() if own == "safer" else _OF_SMOOTHING)):
        if key in left:
            raise _nothing(key, name, ", which hides no word")
    whole = WHOLE_TEXTS | ({"ensemble": "vote"} if own == "safer" else {})
    return Divided({**whole, **left}, defence, attacks)


def _nothing(option: str, defence: str, why: str = "") -> OptionError:
    flag = "--" + option.replace("_", "-")
    return OptionError(f"{flag} means nothing with --defence {defence}{why}: leave it out")


def _augmented(
    given: dict[str, Any],
    base: str,
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: TrainingOptions,
    report: Report,
    device: str | None,
) -> Corpus:
    from ranmask.defences.augment import AttackPlan, attacked_rows, augmented_corpus
    from ranmask.progress import progress

    files = [Path(name) for name in given.pop("attacked", [])]
    if files:
        for key in given:
            raise OptionError(
                f"--{key.replace('_', '-')} means nothing with --attacked, whose texts were "
                "attacked already: leave it out"
            )
        return augmented_corpus(base, train, validation, output, options, None, attacked=files)
    victim = given.pop("victim", None)
    share = _share(given.pop("share", "1/2"))
    recipe = given.pop("recipe", DEFAULT_RECIPE)
    rows = attacked_rows(train, without=validation, share=share, seed=options.seed)
    plan = AttackPlan(
        recipe, _supplies(recipe, rows, given, device), share=share, seed=options.seed
    )
    with progress(len(rows)) as advance:
        return augmented_corpus(
            base,
            train,
            validation,
            output,
            options,
            plan,
            victim=victim,
            report=report,
            device=device,
            started=lambda done, _: advance(done),
            advance=lambda _: advance(1),
        )


def _supplies(recipe: str, rows: Any, given: dict[str, Any], device: str | None) -> Any:
    from ranmask.attacks.recipes import check_names
    from ranmask.cli_supplies import supplies_for

    check_names(recipe, "ranmask-2021")
    return supplies_for(recipe, rows, **given, device=device)


def _share(given: str) -> Fraction:
    try:
        share = Fraction(given)
    except (ValueError, ZeroDivisionError):
        raise OptionError(f"--share must be a number, as 0.5 or 1/2, not {given!r}") from None
    if not 0 < share <= 1:
        raise OptionError(f"--share must be above 0 and at most 1, not {given!r}")
    return share

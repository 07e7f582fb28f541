"""What ``ranmask train --defence`` means for the other options of the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.data import Corpus
    from ranmask.training.defence import Defence
    from ranmask.training.options import TrainingOptions

DEFAULT = "ranmask"
DEFAULT_RECIPE = "textfooler"
DEFAULT_SHARE = "1/2"

_OF_DEFENCES = (
    *("steps", "step_size", "initial_magnitude", "max_norm", "norm"),
    *("change_rate", "flips", "hull", "set_size", "neighbours"),
)
_OF_AUGMENTATION = ("attacked", "victim", "recipe", "share")
_OF_ATTACKS = ("neighbours", "tagger", "stop_words", "sentence_encoder", "attack_lm")
_OF_MASKING = (
    *("keep", "mask_rate", "hide", "family", "copies", "ramp"),
    *("vote_epochs", "vote_copies", "vote_loss", "vote_learning_rate", "target_words"),
    *("temperature", "accuracy_weight", "margin"),
)


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
        device: str | None,
    ) -> Corpus:
        """What is trained on: ``train``, with attacked texts where the defence wants them."""
        if self.attacks is None:
            return train
        from ranmask.cli.progress import progress
        from ranmask.cli.train_printing import TrainingLog
        from ranmask.runs.task import RunEvents
        from ranmask.training.defences.attacked_half import AttackPlan, attacked_rows
        from ranmask.training.defences.augment import VICTIM, augmented_corpus, beside

        files = [Path(name) for name in self.attacks.get("attacked", [])]
        if files:
            for key in self.attacks:
                if key != "attacked":
                    raise OptionError(
                        f"{_flag(key)} means nothing with --attacked, whose texts were attacked "
                        "already: leave it out"
                    )
            return augmented_corpus(base, train, validation, output, options, None, attacked=files)
        share, recipe = _share(self.attacks["share"]), self.attacks["recipe"]
        rows = attacked_rows(train, without=validation, share=share, seed=options.seed)
        plan = AttackPlan(
            recipe, _resources(recipe, rows, self.attacks, device), share=share, seed=options.seed
        )
        with progress(len(rows)) as advance:
            return augmented_corpus(
                base,
                train,
                validation,
                output,
                options,
                plan,
                victim=self.attacks.get("victim"),
                report=TrainingLog(beside(output, VICTIM)),
                device=device,
                events=RunEvents(started=lambda rows, done: advance(done), progress=advance),
            )


def divided(name: str, given: Mapping[str, Any]) -> Divided:
    """Options by what they belong to; those that mean nothing with a defence are refused."""
    from ranmask.training.defences.building import build, parts_of
    from ranmask.training.options import WHOLE_TEXTS

    masked, own = parts_of(name)
    left = dict(given)
    attacks = None
    if own == "augment":
        attacks = _taken(left, (*_OF_AUGMENTATION, *_OF_ATTACKS))
    of_defence = _taken(left, _OF_DEFENCES)
    if attacks is not None and "attacked" not in attacks:
        attacks = {"recipe": DEFAULT_RECIPE, "share": DEFAULT_SHARE, **attacks}
        of_defence |= {key: attacks[key] for key in ("recipe", "share")}
    defence = build(name, of_defence)
    refused = dict.fromkeys((*_OF_AUGMENTATION, *_OF_ATTACKS), "")
    if not masked:
        refused |= dict.fromkeys(_OF_MASKING, ", which hides no word")
        # The folder of SAFER keeps how many copies it certifies with; it certifies votes alone.
        of_smoothing = ("ensemble",) if own == "safer" else ("ensemble", "masks")
        refused |= dict.fromkeys(of_smoothing, ", which adds up no scores")
    for key, why in refused.items():
        if key in left:
            raise OptionError(
                f"{_flag(key)} means nothing with --defence {name}{why}: leave it out"
            )
    if masked:
        return Divided(left, defence, attacks)
    whole = WHOLE_TEXTS | ({"ensemble": "vote"} if own == "safer" else {})
    return Divided({**whole, **left}, defence, attacks)


def _taken(given: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {key: given.pop(key) for key in names if key in given}


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def _resources(recipe: str, rows: Any, given: dict[str, Any], device: str | None) -> Any:
    from ranmask.attacks.recipes import check_names
    from ranmask.cli.resources import resources_for

    check_names(recipe, "ranmask-2021")
    resources = {key: given[key] for key in _OF_ATTACKS if key in given}
    return resources_for(recipe, rows, **resources, device=device)


def _share(given: str) -> Fraction:
    try:
        share = Fraction(given)
    except (ValueError, ZeroDivisionError):
        raise OptionError(f"--share must be a number, as 0.5 or 1/2, not {given!r}") from None
    if not 0 < share <= 1:
        raise OptionError(f"--share must be above 0 and at most 1, not {given!r}")
    return share

"""Adversarial data augmentation: texts that fooled a plain model are learned from, too.

Three steps, each of which is a file or a folder that is resumed, and not made again:

1. **A victim**: a plain model trained on ``train``, in ``<output>.victim/``.
2. **Attacks**: half of the rows of ``train``, chosen by the seed, are attacked by a recipe; what
   became of each is a line of ``<output>.attacked.jsonl``.
3. **Training** on all of ``train`` and the texts whose attack succeeded, each with its true
   class, in ``<output>/``.  That is `train_encoder` with the corpus that `augmented_corpus` gives.

A victim or files of attacked texts that there are already take the place of the first step, or of
the first two.  Where no attack succeeded the third step is plain training, bit by bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ranmask.attacks.adversarial_data import augmented, read_attacked
from ranmask.attacks.victims import PlainVictim
from ranmask.data import Corpus
from ranmask.errors import OptionError
from ranmask.runs.task import RunEvents
from ranmask.smoothing.store import load_with_any_keep
from ranmask.training.defence import Defence
from ranmask.training.defences.attacked_half import AttackPlan, attack_half
from ranmask.training.defences.victim import as_recorded, check_free, train_victim
from ranmask.training.options import TrainingOptions
from ranmask.training.records import Report

VICTIM = ".victim"
"""How the folder of the first step ends."""


@dataclass(frozen=True)
class Augment(Defence):
    """Plain or masked training; it is the data that differ, which their own note describes.

    Args:
        recipe: The attack; None where files of attacked texts were given.
        share: Of the training rows, which part was attacked.
    """

    name = "augment"
    recipe: str | None = None
    share: str | None = None


def augmented_corpus(
    base: str,
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: TrainingOptions,
    plan: AttackPlan | None,
    *,
    victim: str | None = None,
    attacked: Sequence[Path] = (),
    report: Report | None = None,
    device: str | None = None,
    events: RunEvents | None = None,
) -> Corpus:
    """The first two steps: what is trained on in the third.

    Args:
        base: The encoder that the victim starts from.
        train: The training set.
        validation: What is held out; no text of it is attacked or added.
        output: The folder of the third step, beside which the first two write.
        options: How the model is trained in the end; the victim is trained so on whole texts.
        plan: How ``train`` is attacked; None where files are given.
        victim: A trained model to attack, instead of one that is trained for it.
        attacked: Files of attacked texts, instead of the first two steps.
        report: Told every line of the victim's training log.
        device: As in `train_encoder`.
        events: As in `attack_half`.
    """
    check_free(output, {"kind": "encoder", "base": base, "options": as_recorded(options)})
    files = list(attacked)
    if files and (victim is not None or plan is not None):
        raise OptionError(
            "files of attacked texts take the place of a victim and its attack: give either"
        )
    if not files:
        if plan is None:
            raise OptionError("name a recipe to attack the training set with, or attacked files")
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise OptionError(
                "the training set is attacked by one process: attack it without torchrun first, "
                "and give the file of attacked texts to all processes"
            )
        recipe = plan.built()  # what can be refused is refused before the victim is trained
        if recipe.ranking.needs_certificate or isinstance(plan.budget or recipe.budget, str):
            raise OptionError(
                f"the recipe {recipe.name} asks for a certificate, which a plain victim has not: "
                "attack it with `ranmask attack --budget N` and give the file with --attacked, or "
                "name another recipe"
            )
        if victim is None:
            folder = beside(output, VICTIM)
            train_victim(base, train, validation, folder, options, report=report, device=device)
            victim = str(folder)
        files = [beside(output, ".attacked.jsonl")]
        base_of = load_with_any_keep(victim, device=device)
        attack_half(
            PlainVictim(base_of.base, base_of.labels),
            train,
            files[0],
            replace(plan, recipe=recipe),
            without=validation,
            events=events,
        )
    return augmented(train, read_attacked(files), without=validation)


def beside(output: Path, ending: str) -> Path:
    """A name beside the folder of the third step."""
    return output.with_name(output.name + ending)

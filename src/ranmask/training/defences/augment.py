"""Adversarial data augmentation: texts that fooled a plain model are learned from, too.

Three steps, each of which is a file or a folder that is resumed, and not made again:

1. **A victim**: a plain model trained on ``train``, in ``<output>.victim/``.
2. **Attacks**: half of the rows of ``train``, chosen by the seed, are attacked by a recipe; what
   became of each is a line of ``<output>.attacked.jsonl``.
3. **Training** on all of ``train`` and the texts whose attack succeeded, each with its true
   class, in ``<output>/``.  That is `train_encoder` with the corpus that `augmented_corpus` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ranmask.attacks.adversarial_data import augmented, read_attacked
from ranmask.attacks.api import AnyVictim, as_victim
from ranmask.attacks.loop import AttackLoop
from ranmask.attacks.outcome import AttackSummary
from ranmask.attacks.recipe import AttackRecipe
from ranmask.attacks.runs import attack_rows
from ranmask.attacks.victims import PlainVictim
from ranmask.certificates.kept import round_half_up
from ranmask.data import Corpus
from ranmask.data.rows import Row, RowSource
from ranmask.errors import OptionError
from ranmask.options.fields import option_fields
from ranmask.runs.task import RunEvents, class_ids
from ranmask.smoothing.store import load_with_any_keep
from ranmask.training.defence import Defence
from ranmask.training.masking import permutation
from ranmask.training.options import WHOLE_TEXTS, TrainingOptions
from ranmask.training.records import Report, RunFolder, check_one_process

VICTIM = ".victim"
"""How the folder of the first step ends."""
HALF = Fraction(1, 2)

_CHOICE = 20_230_817  # keeps the choice of rows apart from other draws with the same seed


@dataclass(frozen=True)
class Augment(Defence):
    """Plain or masked training; it is the data that differ, which their own note describes.

    ``recipe`` is None where files of attacked texts were given.
    """

    name = "augment"
    recipe: str | None = None
    share: str | None = None


@dataclass(frozen=True)
class AttackPlan:
    """How the training set is attacked.

    ``share``: the part of its rows that is; ``seed`` fixes which, and every random choice of the
    attack.  ``together``: how many texts are attacked in lock-step.
    """

    recipe: AttackRecipe
    share: Fraction = HALF
    seed: int = 0
    together: int = 64


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
    """The first two steps: what is trained on in the third, in the folder ``output``.

    No text of ``validation`` is attacked or added.  ``options`` are those of the third step; the
    victim is trained so on whole texts, unless ``victim`` names a trained model to attack.
    ``attacked`` are files of attacked texts, instead of the first two steps.
    """
    # What the third step would refuse is refused before anything is trained.
    known = {"kind": "encoder", "base": base, "options": options.to_dict()}
    RunFolder(output, known).check(in_part=True)
    files = list(attacked)
    if files and (victim is not None or plan is not None):
        raise OptionError(
            "files of attacked texts take the place of a victim and its attack: give either"
        )
    if not files:
        if plan is None:
            raise OptionError("name a recipe to attack the training set with, or attacked files")
        check_one_process(
            "the training set is attacked",
            "attack it without torchrun first, and give the file of attacked texts to all of them",
        )
        recipe = plan.recipe
        if recipe.ranking.needs_certificate or isinstance(recipe.budget, str):
            raise OptionError(
                f"the recipe {recipe.name} asks for a certificate, which a plain victim has not: "
                "attack it with `ranmask attack --budget N` and give the file of attacked texts, "
                "or name another recipe"
            )
        if victim is None:
            from ranmask.training.encoder import train_encoder

            folder, plain = beside(output, VICTIM), victim_options(options)
            known = {"base": base, "options": plain.to_dict(), "defence": Defence().description()}
            data = {"train": train, "validation": validation}
            known |= {name: {"sha256": corpus.sha256} for name, corpus in data.items()}
            if not RunFolder(folder, known).check(in_part=True, finished=True):
                train_encoder(base, train, validation, folder, plain, report=report, device=device)
            victim = str(folder)
        files = [beside(output, ".attacked.jsonl")]
        model = load_with_any_keep(victim, device=device)
        attacked_model = PlainVictim(model.base, model.labels)
        attack_half(attacked_model, train, files[0], plan, without=validation, events=events)
    return augmented(train, read_attacked(files), without=validation)


def beside(output: Path, ending: str) -> Path:
    """A name beside the folder of the third step."""
    return output.with_name(output.name + ending)


def victim_options(options: TrainingOptions) -> TrainingOptions:
    """The same training, on whole texts: no word is hidden, and nothing is voted on."""
    masking: dict[str, Any] = {"keep": (), "vote_epochs": 0, "copies": 1, "ramp": 0.0}
    plain = {**masking, "family": "auto", "masks": None, **WHOLE_TEXTS}
    return replace(options, epochs=max(1, options.epochs), **plain)


def attacked_rows(
    train: Corpus, *, without: Corpus | None = None, share: Fraction = HALF, seed: int = 0
) -> list[Row]:
    """The rows of ``train`` to attack, in their order, numbered by their place from 1.

    Their places follow from the seed and the number of rows.  Rows whose text is in ``without``
    too are left out: what is held out must not be learned from.
    """
    option_fields(TrainingOptions)["seed"].check(seed)
    if not 0 < share <= 1:
        raise OptionError(f"share must be above 0 and at most 1, not {share}")
    held_out = set(without.texts) if without is not None else set()
    rows = len(train.texts)
    order = permutation(rows, _CHOICE, seed, rows)
    return [
        Row(place + 1, train.texts[place], train.label_names[train.labels[place]])
        for place in sorted(order[: round_half_up(share * rows)].tolist())
        if train.texts[place] not in held_out
    ]


def attack_half(
    victim: AnyVictim,
    train: Corpus,
    output: Path,
    plan: AttackPlan,
    *,
    without: Corpus | None = None,
    events: RunEvents | None = None,
) -> AttackSummary:
    """Attack a share of ``train`` and write what became of each row to the file ``output``.

    The same call again goes on where it was interrupted; a complete file is left as it is.  The
    victim's classes are those of ``train``, in the same order.  ``without``: held-out rows, whose
    texts are not attacked.
    """
    attacked = as_victim(victim)
    if class_ids(train.label_names, attacked.labels) != list(range(len(train.label_names))):
        raise OptionError(
            f"the victim has the classes {', '.join(attacked.labels or ())}, {train.name} has "
            f"{', '.join(train.label_names)}: their order must be the same"
        )
    rows = attacked_rows(train, without=without, share=plan.share, seed=plan.seed)
    source = {**train.description(), "share": str(plan.share), "texts": len(rows)}
    output.parent.mkdir(parents=True, exist_ok=True)
    attack = AttackLoop(attacked, plan.recipe, together=plan.together, seed=plan.seed)
    described = RowSource(rows, len(rows), source)
    return attack_rows(attack, described, output, labels=train.label_names, events=events)

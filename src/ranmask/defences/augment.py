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

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ranmask import attack_runs
from ranmask.attacked import augmented, read_attacked
from ranmask.attacks.engine import Engine
from ranmask.attacks.outcome import AttackOutcome
from ranmask.attacks.recipe import Budget, Recipe
from ranmask.attacks.recipes import build_recipe
from ranmask.attacks.summary import AttackSummary
from ranmask.attacks.supplies import Preset, Supplies
from ranmask.attacks.victims import AnyVictim, PlainVictim, as_victim
from ranmask.corpora import Corpus
from ranmask.data import Row
from ranmask.errors import OptionError, OutputError
from ranmask.families import round_half_up
from ranmask.loading import load_with_any_keep
from ranmask.runs import class_ids
from ranmask.training.defence import Defence
from ranmask.training.options import WHOLE_TEXTS, TrainingOptions, check_seed
from ranmask.training.records import RECORD, Report, RunFolder

HALF = Fraction(1, 2)
VICTIM = ".victim"
"""How the folder of the first step ends."""

_CHOICE = 20_230_817  # keeps this choice of rows apart from other draws with the same seed


def attacked_rows(
    train: Corpus, *, without: Corpus | None = None, share: Fraction = HALF, seed: int = 0
) -> list[Row]:
    """The rows of ``train`` to attack, in their order, numbered by their place from 1.

    Which places they have is a pure function of the seed and the number of rows.  Of those, rows
    whose text is in ``without`` too are left out, for what is held out must not be learned from.
    """
    check_seed(seed)
    if not 0 < share <= 1:
        raise OptionError(f"share must be above 0 and at most 1, not {share}")
    held_out = set(without.texts) if without is not None else set()
    return [
        Row(place + 1, train.texts[place], train.label_names[train.labels[place]])
        for place in _places(len(train.texts), share, seed)
        if train.texts[place] not in held_out
    ]


def _places(rows: int, share: Fraction, seed: int) -> list[int]:
    import numpy as np

    # The raw stream and a stable sort, which numpy promises to keep.
    bits = np.random.PCG64(np.random.SeedSequence([_CHOICE, seed, rows]))
    order = np.argsort(bits.random_raw(rows), kind="stable")
    return sorted(order[: round_half_up(share * rows)].tolist())


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


@dataclass(frozen=True)
class AttackPlan:
    """How the training set is attacked.

    Args:
        recipe: A recipe of the engine, or its name.
        supplies: Resources of a recipe that is given by name; ``preset``: its settings.
        share: Of the rows, which part is attacked.
        seed: Fixes which rows, and every random choice of the attack.
        budget: Most words that may change; the recipe's own where None.
        most_queries: Queries a text, after which its search ends; None: no limit.
        together: How many texts are attacked in lock-step.
    """

    recipe: str | Recipe
    supplies: Supplies | None = None
    preset: Preset = "ranmask-2021"
    share: Fraction = HALF
    seed: int = 0
    budget: Budget = None
    most_queries: int | None = None
    together: int = 64

    def built(self) -> Recipe:
        """The recipe, made with its supplies."""
        if isinstance(self.recipe, Recipe):
            return self.recipe
        return build_recipe(self.recipe, self.supplies, self.preset)


def attack_half(
    victim: AnyVictim,
    train: Corpus,
    output: Path,
    plan: AttackPlan,
    *,
    without: Corpus | None = None,
    started: Callable[[int, int], None] = lambda done, rows: None,
    advance: Callable[[AttackOutcome], None] = lambda outcome: None,
) -> AttackSummary:
    """Attack a share of ``train`` and write what became of each row to the file ``output``.

    The same call again goes on where it was interrupted; a file that is complete is left as it
    is, and nothing is attacked.

    Args:
        victim: What is attacked; its classes are those of ``train``, in the same order.
        train: The training set.
        output: The file of outcomes; ``<output>.run.json`` beside it describes the run.
        plan: How it is attacked.
        without: Held-out rows, whose texts are not attacked.
        started: Told how many rows were done before, and how many there are.
        advance: Told each new outcome.
    """
    attacked = as_victim(victim)
    if class_ids(train.label_names, attacked.labels) != list(range(len(train.label_names))):
        raise OptionError(
            f"the victim has the classes {', '.join(attacked.labels or ())}, {train.name} has "
            f"{', '.join(train.label_names)}: their order must be the same"
        )
    rows = attacked_rows(train, without=without, share=plan.share, seed=plan.seed)
    engine = Engine(
        attacked,
        plan.built(),
        budget=plan.budget,
        most_queries=plan.most_queries,
        together=plan.together,
        seed=plan.seed,
    )
    source = {**train.description(), "share": str(plan.share), "texts": len(rows)}
    output.parent.mkdir(parents=True, exist_ok=True)
    return attack_runs.run_to_file(
        engine,
        rows,
        source,
        output,
        labels=train.label_names,
        started=lambda done: started(done, len(rows)),
        advance=advance,
    )


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
    started: Callable[[int, int], None] = lambda done, rows: None,
    advance: Callable[[AttackOutcome], None] = lambda outcome: None,
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
        started: As in `attack_half`.
        advance: As in `attack_half`.
    """
    _check_free(output, {"kind": "encoder", "base": base, "options": _plain(options)})
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
        if recipe.needs_certificate or isinstance(plan.budget or recipe.budget, str):
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
            started=started,
            advance=advance,
        )
    return augmented(train, read_attacked(files), without=validation)


def victim_options(options: TrainingOptions) -> TrainingOptions:
    """The same training, on whole texts: no word is hidden, and nothing is voted on."""
    masking: dict[str, Any] = {"keep": (), "vote_epochs": 0, "copies": 1, "ramp": 0.0}
    plain = {**masking, "family": "auto", "masks": None, **WHOLE_TEXTS}
    return replace(options, epochs=max(1, options.epochs), **plain)


def train_victim(
    base: str,
    train: Corpus,
    validation: Corpus,
    folder: Path,
    options: TrainingOptions,
    *,
    report: Report | None = None,
    device: str | None = None,
) -> None:
    """Train the plain model that is attacked; one that is complete in ``folder`` is left there."""
    from ranmask.training.encoder import train_encoder

    plain = victim_options(options)
    found = _finished_run(folder)
    if found is None:
        train_encoder(base, train, validation, folder, plain, report=report, device=device)
        return
    wanted = {
        "base": base,
        "train": train.sha256,
        "validation": validation.sha256,
        "options": _plain(plain),
        "defence": Defence().description(),
    }
    there = {
        **{key: found.get(key) for key in ("base", "options", "defence")},
        **{key: found.get(key, {}).get("sha256") for key in ("train", "validation")},
    }
    differing = [key for key, value in wanted.items() if there[key] != value]
    if differing:
        raise OutputError(
            f"{folder} holds the victim of another run, with another {', '.join(differing)}: "
            "name another output, or delete it"
        )


def _finished_run(folder: Path) -> dict[str, Any] | None:
    """The description of a training run that is complete; None of any other folder."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # training says what is wrong with it
    complete = isinstance(record, dict) and record.get("complete") is True
    return record.get("run", {}) if complete else None


def _check_free(output: Path, known: Mapping[str, Any]) -> None:
    """Refuse a folder that the third step would refuse, before anything is trained.

    ``known`` is what is known of that run by now: its data are not.
    """
    run = RunFolder(output, {})
    if _finished_run(output) is not None or not (output / RECORD).is_file():
        run.check()
        return
    there = json.loads((output / RECORD).read_text(encoding="utf-8")).get("run", {})
    differing = [key for key, value in known.items() if there.get(key) != value]
    if differing:
        raise OutputError(
            f"{output} holds another training run, which differs in {', '.join(differing)}: name "
            "another folder, or delete it"
        )


def _plain(options: TrainingOptions) -> Any:
    """As a record holds them."""
    return json.loads(json.dumps(options.to_dict()))


def beside(output: Path, ending: str) -> Path:
    """A name beside the folder of the third step."""
    return output.with_name(output.name + ending)

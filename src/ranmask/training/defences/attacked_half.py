"""Half of a training set, attacked: which rows, how, and what became of each, in a file."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ranmask.attacks.api import AnyVictim, as_victim
from ranmask.attacks.loop import AttackLoop
from ranmask.attacks.recipe import AttackRecipe, Budget
from ranmask.attacks.recipes import AttackResources, Preset, build_recipe
from ranmask.attacks.runs import attack_rows
from ranmask.attacks.summary import AttackSummary
from ranmask.certificates.families import round_half_up
from ranmask.data import Corpus
from ranmask.data.rows import Row
from ranmask.data.sources import RowSource
from ranmask.errors import OptionError
from ranmask.runs.task import RunEvents, class_ids
from ranmask.training.options import check_seed

HALF = Fraction(1, 2)

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
class AttackPlan:
    """How the training set is attacked.

    Args:
        recipe: A recipe of the engine, or its name.
        resources: Resources of a recipe that is given by name; ``preset``: its settings.
        share: Of the rows, which part is attacked.
        seed: Fixes which rows, and every random choice of the attack.
        budget: Most words that may change; the recipe's own where None.
        most_queries: Queries a text, after which its search ends; None: no limit.
        together: How many texts are attacked in lock-step.
    """

    recipe: str | AttackRecipe
    resources: AttackResources | None = None
    preset: Preset = "ranmask-2021"
    share: Fraction = HALF
    seed: int = 0
    budget: Budget = None
    most_queries: int | None = None
    together: int = 64

    def built(self) -> AttackRecipe:
        """The recipe, made with its resources."""
        if isinstance(self.recipe, AttackRecipe):
            return self.recipe
        return build_recipe(self.recipe, self.resources, self.preset)


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

    The same call again goes on where it was interrupted; a file that is complete is left as it
    is, and nothing is attacked.

    Args:
        victim: What is attacked; its classes are those of ``train``, in the same order.
        train: The training set.
        output: The file of outcomes; ``<output>.run.json`` beside it describes the run.
        plan: How it is attacked.
        without: Held-out rows, whose texts are not attacked.
        events: Who is told of the cost, of progress and of rows that failed.
    """
    attacked = as_victim(victim)
    if class_ids(train.label_names, attacked.labels) != list(range(len(train.label_names))):
        raise OptionError(
            f"the victim has the classes {', '.join(attacked.labels or ())}, {train.name} has "
            f"{', '.join(train.label_names)}: their order must be the same"
        )
    rows = attacked_rows(train, without=without, share=plan.share, seed=plan.seed)
    engine = AttackLoop(
        attacked,
        plan.built(),
        budget=plan.budget,
        most_queries=plan.most_queries,
        together=plan.together,
        seed=plan.seed,
    )
    source = {**train.description(), "share": str(plan.share), "texts": len(rows)}
    output.parent.mkdir(parents=True, exist_ok=True)
    described = RowSource(rows, len(rows), source)
    return attack_rows(engine, described, output, labels=train.label_names, events=events)

"""``ranmask attack``: parse, call, print."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from ranmask.cli.certify import NOT_CERTIFIED
from ranmask.cli.command import Given, command
from ranmask.cli.models import load
from ranmask.cli.options import (
    ColumnOptions,
    LmOption,
    ModelChoice,
    OutputOptions,
    ResourceOptions,
    ShardingOptions,
    SourceOptions,
    tame_libraries,
    word_losses_from,
)
from ranmask.cli.resources import resources_for
from ranmask.cli.running import shown_events
from ranmask.errors import OptionError
from ranmask.options import SmoothingOptions
from ranmask.options.fields import Option

if TYPE_CHECKING:
    from ranmask.attacks.loop import AttackLoop
    from ranmask.attacks.outcome import AttackOutcome, AttackSummary
    from ranmask.attacks.recipe import Budget
    from ranmask.attacks.victims import Victim
    from ranmask.data.rows import Row
    from ranmask.data.sources import RowSource
    from ranmask.runs.shards.run import Sharding


@dataclass(frozen=True, kw_only=True)
class AttackCommand(OutputOptions):
    """Which attack, and how far it goes."""

    GROUP: ClassVar[str] = "Attack"

    recipe: Annotated[
        str,
        Option(
            "textfooler, bert-attack, deepwordbug, several-words, labels-only; or, to test "
            "certificates, anywords, critical."
        ),
    ]
    preset: Annotated[
        str, Option("ranmask-2021 (the paper's settings) or textattack-0.3.11 (today's).")
    ] = "ranmask-2021"
    plain: Annotated[bool, Option("Attack the base classifier, which reads the whole text.")] = (
        False
    )
    budget: Annotated[
        str | None,
        Option(
            "Most words that may change: a number, radius (what the victim certifies for the "
            "text) or radius+1.",
            unset="any; radius+1 for anywords and critical",
        ),
    ] = None
    most_queries: Annotated[
        int | None, Option("Queries a text, then the search ends.", unset="any")
    ] = None
    together: Annotated[int, Option("Texts attacked in lock-step.")] = 64
    vocabulary: Annotated[
        Path | None,
        Option("A text file of words for anywords and critical.", unset="the words of the texts"),
    ] = None
    show: Annotated[
        int, Option("How many attacked texts to print, before and after, side by side.")
    ] = 3

    def settings(self, seed: int) -> dict[str, Any]:
        """How the engine attacks."""
        return {
            "budget": self._budget(),
            "most_queries": self.most_queries,
            "together": self.together,
            "seed": seed,
        }

    def _budget(self) -> Budget:
        if self.budget is None or self.budget in ("radius", "radius+1"):
            return self.budget  # type: ignore[return-value]  # it is one of the literals
        try:
            return int(self.budget)
        except ValueError:
            raise OptionError(
                f"--budget must be a number of words, radius or radius+1, not {self.budget!r}"
            ) from None


@command(
    AttackCommand,
    SourceOptions,
    ModelChoice,
    ResourceOptions,
    SmoothingOptions,
    LmOption,
    ShardingOptions,
    ColumnOptions,
    without=NOT_CERTIFIED,
)
def attack(given: Given) -> bool:
    """Attack a classifier: replace words until it says another label, and count how often it does.

    With --output, outcomes are appended as they come; the same command again resumes.
    """
    from ranmask.attacks.recipes import check_names, uses

    asked = given.build(AttackCommand)
    check_names(asked.recipe, asked.preset)
    sharding = given.build(ShardingOptions).sharding(asked.output)
    if sharding is not None and asked.vocabulary is None and "vocabulary" in uses(asked.recipe):
        raise OptionError(
            f"--recipe {asked.recipe} takes its words from all texts, of which a worker sees a "
            "shard: give them with --vocabulary"
        )
    source = _source(given, whole=sharding is None)
    settings = asked.settings(given.get("seed", 0))
    rows = source.rows if sharding is None else []
    make = partial(_engine, given, asked, settings, source.label_names, rows)
    if asked.output is None:
        return _show(make(), source, asked)
    return _write(make, source, asked.output, sharding, asked)


def _engine(
    given: Given,
    asked: AttackCommand,
    settings: dict[str, Any],
    label_names: Sequence[str] | None,
    rows: Iterable[Row],
) -> AttackLoop:
    """What attacks; ``rows`` give it words where a recipe takes them from the texts."""
    tame_libraries()
    from ranmask.attacks.loop import AttackLoop
    from ranmask.attacks.recipes import build_recipe
    from ranmask.runs.task import class_ids

    loaded = resources_for(asked.recipe, rows, given, given.get("device"))
    built = build_recipe(asked.recipe, loaded, asked.preset)  # type: ignore[arg-type]  # checked
    engine = AttackLoop(_victim(given, asked.plain), built, **settings)
    if label_names:
        class_ids(label_names, engine.victim.labels)  # told before the first text
    return engine


def _source(given: Given, *, whole: bool) -> RowSource:
    """The rows to attack; ``whole``: all in memory, to be read more than once."""
    asked, columns = given.build(SourceOptions), given.build(ColumnOptions).columns()
    if (asked.input is None) == (asked.data is None):
        raise OptionError("give a file with --input, or a corpus with --data: one of them")
    if asked.input is not None and columns.label is None:
        raise OptionError("an attack needs the right labels: name their column with --label-column")
    from ranmask.data.sources import RowSource, first_rows

    source = asked.open(columns, rows_of_a_file=True)
    if asked.input is None:
        return source
    source = first_rows(source, asked.rows)
    if not whole:
        return source
    rows = list(source.rows)
    return RowSource(rows, len(rows), source.description)


def _victim(given: Given, plain: bool) -> Victim:
    from ranmask.attacks.api import as_victim
    from ranmask.attacks.victims import PlainVictim
    from ranmask.smoothing.store import DEFAULT_MODEL, load_with_any_keep

    if not plain:
        return as_victim(load(given, word_losses=word_losses_from(given)))
    smoothing = given.of(SmoothingOptions, LmOption).keys() - {"seed"}
    given.refuse((*smoothing, "recheck"), "with --plain, which masks no word")
    options = given.of(SmoothingOptions, ModelChoice)
    # How it would be smoothed does not matter: the base classifier reads the whole text.
    loaded = load_with_any_keep(options.pop("model", None) or DEFAULT_MODEL, **options)
    return PlainVictim(loaded.base, loaded.labels)


def _show(engine: AttackLoop, source: RowSource, asked: AttackCommand) -> bool:
    """Attack, and print what became of each text.  Returns whether a row failed."""
    from ranmask.attacks.runs import AttackTask, targets
    from ranmask.cli.terminal import progress

    start = time.monotonic()
    task = AttackTask(engine, engine.victim.labels or tuple(source.label_names or ()) or None)
    summary = task.summary()
    readable = sys.stdout.isatty() and not asked.as_json
    examples: list[AttackOutcome] = []
    with progress(source.total) as advance:
        for outcome in engine.run(targets(source.rows, task.labels)):
            summary.count(outcome)
            if outcome.status in ("succeeded", "failed"):
                examples = [*examples, outcome][: asked.show]
            advance(1)
            if not readable:
                sys.stdout.write(json.dumps(outcome.to_dict()) + "\n")
                sys.stdout.flush()
    _print(engine.recipe.name, summary, examples if readable else [])
    _print_pace(engine.victim, time.monotonic() - start)
    return summary.errors > 0


def _write(
    make: Callable[[], AttackLoop],
    source: RowSource,
    output: Path,
    sharding: Sharding | None,
    asked: AttackCommand,
) -> bool:
    """Attack, and write what became of each text.  Returns whether a row failed."""
    from ranmask.attacks.runs import attack_rows, read_outcomes

    start = time.monotonic()
    made: list[AttackLoop] = []

    def kept() -> AttackLoop:
        made.append(make())
        return made[0]

    with shown_events(source.total, output, sharding) as events:
        engine = kept if sharding is None else make
        summary = attack_rows(engine, source, output, sharding=sharding, events=events)
    attacked = (one for one in read_outcomes(output) if one.status in ("succeeded", "failed"))
    readable = sys.stdout.isatty() and not asked.as_json
    _print(asked.recipe, summary, list(itertools.islice(attacked, asked.show)) if readable else [])
    if made:
        _print_pace(made[0].victim, time.monotonic() - start)
    return summary.errors > 0


def _print(recipe: str, summary: AttackSummary, examples: Sequence[AttackOutcome]) -> None:
    from rich.console import Console

    from ranmask.cli import attack_printing

    labels = None if summary.labels is None else tuple(summary.labels)
    for outcome in examples:
        attack_printing.print_outcome(Console(), outcome, labels)
    attack_printing.print_attack_summary(Console(stderr=True), recipe, summary)


def _print_pace(victim: Victim, seconds: float) -> None:
    from rich.console import Console

    from ranmask.attacks.victims import PlainVictim
    from ranmask.cli import attack_printing

    if not isinstance(victim, PlainVictim):
        attack_printing.print_pace(Console(stderr=True), victim.copies_scored, seconds)

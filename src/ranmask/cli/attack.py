"""``ranmask attack``: parse, call, print."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ranmask.attacks.outcome import AttackOutcome, AttackSummary
from ranmask.cli.certify import NOT_CERTIFIED
from ranmask.cli.command import Given, command
from ranmask.cli.loading import load, resources_for
from ranmask.cli.options import (
    STANDARD,
    ColumnOptions,
    InputOptions,
    LmOption,
    ModelChoice,
    OutputOptions,
    Printed,
    ResourceOptions,
    ShardingOptions,
    open_input,
)
from ranmask.cli.running import cost_events, shown_events
from ranmask.cli.terminal import error_console, printed_lines, progress, tame_libraries
from ranmask.data.rows import Row, RowSource
from ranmask.errors import ClassifierError, OptionError, TextError
from ranmask.options import SmoothingOptions
from ranmask.options.fields import option, option_fields
from ranmask.words import document

if TYPE_CHECKING:
    from ranmask.attacks.loop import AttackLoop
    from ranmask.attacks.recipe import Budget
    from ranmask.attacks.victims import Victim


_OF_RECIPES = (
    *("preset", "search", "surrogate", "plain"),
    *("most_queries", "together", "vocabulary", "show"),
)


@dataclass(frozen=True, kw_only=True)
class AttackCommand(OutputOptions, group="Attack"):
    """Which attack, and how far it goes."""

    recipe: str | None = option(
        "textfooler, bert-attack, bae, pwws, a2t, a2t-mlm, hotflip, alzantot, faster-alzantot, "
        "pso, deepwordbug, textbugger, clare, bad-characters, several-words, labels-only; or, to "
        "test certificates, anywords, critical, insertions, appending, deletions, edits, "
        "characters.",
        unset="of texts given here: words that matter to the model, put anywhere",
    )
    preset: str = option(
        "ranmask-2021 (the paper's settings) or textattack-0.3.11 (today's).", "ranmask-2021"
    )
    search: str | None = option(
        "Another search among the recipe's candidates: margin, transfer, exact, gradient, beam, "
        "genetic, pso; or strongest, which keeps the fewest changed words of several.",
        unset="the recipe's own",
    )
    surrogate: str | None = option(
        "For transfer and strongest: a model that the attacker may ask for scores at will, read as "
        "the victim is.",
        unset="the victim's own scores, where it shows votes or fresh masks",
    )
    plain: bool = option("Attack the base classifier, which reads the whole text.", False)
    budget: str | None = option(
        "Most changes, in the recipe's unit (words; characters): a number, radius (what the "
        "victim certifies for the text) or radius+1.",
        unset="any; radius+1 for those that test certificates",
    )
    most_queries: int | None = option("Queries a text, then the search ends.", unset="any")
    together: int = option("Texts attacked in lock-step.", 128)
    vocabulary: Path | None = option(
        "A text file of words that recipes may put anywhere.", unset="the words of the texts"
    )
    show: int = option("How many attacked texts to print, before and after, side by side.", 3)


@command(
    AttackCommand,
    InputOptions,
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

    Of texts given here the label to change is the classifier's own.  With --output, outcomes are
    appended as they come; the same command again resumes.

    Example: ranmask attack --recipe textfooler --model my-table --data sms_spam --rows 20
    """
    from ranmask.attacks.recipes import check_names, uses
    from ranmask.attacks.runs import attack_rows, rare_collections, read_outcomes
    from ranmask.attacks.searches import check_search

    asked = given.build(AttackCommand)
    if asked.recipe is None:
        return _attack_texts(given, asked)
    check_names(asked.recipe, asked.preset)
    check_search(asked.search, surrogate=asked.surrogate is not None)
    sharding = given.build(ShardingOptions).sharding(asked.output)
    if sharding is not None and asked.vocabulary is None and "vocabulary" in uses(asked.recipe):
        raise OptionError(
            f"--recipe {asked.recipe} takes its words from all texts, of which a worker sees a "
            "shard: give them with --vocabulary"
        )
    source = open_input(given, asked.output, attacked=True)
    rows: Iterable[Row] = []
    if sharding is None:  # all in memory, to be read more than once
        rows = list(source.rows)
        source = replace(source, rows=rows, total=len(rows))
    make = partial(_loop, given, asked, asked.recipe, source.label_names, rows)
    start = time.monotonic()
    loops: list[AttackLoop] = []

    def made() -> AttackLoop:
        loops.append(make())
        return loops[0]

    outcomes: Iterable[AttackOutcome]
    with rare_collections():
        if asked.output is None:
            if _unlabelled(given):
                source = replace(source, rows=_with_own_labels(rows, made().victim))
            name, outcomes, summary = _show(loops[0] if loops else made(), source, asked.printed)
        else:
            with shown_events(source.total, asked.output, sharding) as events:
                loop = made if sharding is None else make
                summary = attack_rows(loop, source, asked.output, sharding=sharding, events=events)
            name = loops[0].recipe.name if loops else asked.recipe
            outcomes = read_outcomes(asked.output)
    if asked.printed is None:
        _print(outcomes, asked.show, summary.labels)
    if not _unlabelled(given):
        from ranmask.cli import attack_printing

        attack_printing.print_attack_summary(error_console(), name, summary)
        if loops and not asked.plain:
            copies, seconds = loops[0].victim.copies_scored, time.monotonic() - start
            attack_printing.print_pace(error_console(), copies, seconds)
    return summary.errors > 0


def _attack_texts(given: Given, asked: AttackCommand) -> bool:
    """Attack texts without a recipe, as the page of the service does."""
    if not _unlabelled(given):
        raise OptionError("name a --recipe, as textfooler; or give the text to attack")
    rows = open_input(given, asked.output, attacked=True).rows
    given.refuse((*_OF_RECIPES, *option_fields(ResourceOptions)), "without --recipe")
    budget = _budget(asked.budget)
    from ranmask.serving.explaining import attack_once

    smoothed = load(given)
    failed = False
    with printed_lines(asked.printed) as write:
        for row in rows:
            try:
                found = attack_once(smoothed, row.text or "", budget=budget)
                outcome = replace(found, number=row.number)
            except (TextError, ClassifierError) as error:
                outcome = AttackOutcome(
                    row.number, row.text, None, "error", row.error or error.reason
                )
                failed = True
            if write is None:
                _print([outcome], 1, smoothed.labels)
            else:
                write(outcome.to_dict())
    return failed


def _unlabelled(given: Given) -> bool:
    """Whether texts are attacked of which nobody said the label."""
    standard = given.get("input") == STANDARD and "label_column" not in given
    return "texts" in given or standard


def _print(outcomes: Iterable[AttackOutcome], most: int, labels: Sequence[str] | None) -> None:
    """Some attacked texts, before and after."""
    from rich.console import Console

    from ranmask.cli.attack_printing import print_outcome

    attacked = (outcome for outcome in outcomes if outcome.status != "skipped")
    for outcome in itertools.islice(attacked, most):
        print_outcome(Console(), outcome, None if labels is None else tuple(labels))


def _budget(given: str | None) -> Budget:
    if given is None or given in ("radius", "radius+1"):
        return given  # type: ignore[return-value]  # it is one of the literals
    try:
        return int(given)
    except ValueError:
        raise OptionError(f"--budget must be a number, radius or radius+1, not {given!r}") from None


def _loop(
    given: Given,
    asked: AttackCommand,
    recipe: str,
    label_names: Sequence[str] | None,
    rows: Iterable[Row],
) -> AttackLoop:
    """What attacks; ``rows`` give it words where a recipe takes them from the texts."""
    tame_libraries()
    from ranmask.attacks.api import attack_loop
    from ranmask.runs.task import class_ids

    # What is missing is told before a victim is loaded, which may take a while.
    resources = resources_for(recipe, rows, given, given.get("device"))
    surrogate = None
    if asked.surrogate is not None:
        surrogate = _victim(Given({**given, "model": asked.surrogate}), asked.plain)
    loop = attack_loop(
        _victim(given, asked.plain),
        recipe,
        resources=resources,
        preset=asked.preset,  # type: ignore[arg-type]  # checked
        budget=_budget(asked.budget),
        most_queries=asked.most_queries,
        together=asked.together,
        seed=given.get("seed", 0),
        search=asked.search,
        surrogate=surrogate,
    )
    if label_names:
        class_ids(label_names, loop.victim.labels)  # told before the first text
    return loop


def _victim(given: Given, plain: bool) -> Victim:
    from ranmask.attacks.api import as_victim
    from ranmask.attacks.victims import PlainVictim
    from ranmask.smoothing.store import DEFAULT_MODEL, load_with_any_keep

    if not plain:
        return as_victim(load(given))
    smoothing = given.of(SmoothingOptions, LmOption).keys() - {"seed"}
    given.refuse((*smoothing, "recheck"), "with --plain, which masks no word")
    options = given.of(SmoothingOptions, ModelChoice)
    # How it would be smoothed does not matter: the base classifier reads the whole text.
    loaded = load_with_any_keep(options.pop("model", None) or DEFAULT_MODEL, **options)
    return PlainVictim(loaded.base, loaded.labels)


def _with_own_labels(rows: Iterable[Row], victim: Victim) -> Iterator[Row]:
    """Texts of which nobody said the label: what the victim says of them, as they are."""
    from ranmask.attacks.victims import Question

    for row in rows:
        try:
            text = document(row.text)
            [label] = victim.answer([Question(row.number, text, text)]).labels.tolist()
            victim.forget(row.number)
            yield replace(row, label=victim.labels[label] if victim.labels else label)
        except (TextError, ClassifierError) as error:
            yield replace(row, error=error.reason)


def _show(
    loop: AttackLoop, source: RowSource, printed: Printed
) -> tuple[str, list[AttackOutcome], AttackSummary]:
    """Attack all texts; where people do not read them, outcomes are printed as they come."""
    from ranmask.attacks.runs import AttackTask, targets
    from ranmask.runs.task import tell

    task = AttackTask(loop, loop.victim.labels or tuple(source.label_names or ()) or None)
    summary = task.summary()
    outcomes = []
    events = cost_events(source.total, loop.together)
    with progress(source.total) as advance, printed_lines(printed) as write:
        for outcome in loop.run(targets(source.rows, task.labels)):
            summary.count(outcome)
            advance(1)
            tell(events, [outcome.to_dict()])
            if write is None:
                outcomes.append(outcome)
            else:
                write(outcome.to_dict())
    return loop.recipe.name, outcomes, summary

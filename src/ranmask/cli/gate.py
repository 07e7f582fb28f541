"""``ranmask gate``: parse, call, print."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ranmask.cli.command import Given, command
from ranmask.cli.loading import load, resources_for
from ranmask.cli.options import (
    ColumnOptions,
    ModelChoice,
    PositiveOption,
    ResourceOptions,
    SourceOptions,
    open_input,
)
from ranmask.cli.running import shown_events
from ranmask.cli.terminal import say
from ranmask.data.rows import RowSource
from ranmask.data.splits import corpus_rows
from ranmask.options import SmoothingOptions
from ranmask.options.fields import REQUIRED, Checked, option, option_fields
from ranmask.results.files import check_file, make_folder, write_file, write_json
from ranmask.words import usable

if TYPE_CHECKING:
    from ranmask.attacks.loop import AttackLoop
    from ranmask.evaluation.gate import GateReport
    from ranmask.runs.task import RunEvents

NOT_REACHED = 4


@dataclass(frozen=True, kw_only=True)
class GateCommand(Checked, group="Gate"):
    """What a model must reach, and where that is written."""

    require: tuple[str, ...] = option(
        "A requirement, as 'recall@fpr=1% >= .8'; give it several times.", REQUIRED, repeated=True
    )
    by_interval: bool = option(
        "Requirements must hold at the worse end of the 95 % interval, too.", False
    )
    calibrate: str | None = option(
        "Corpus or file that thresholds for fpr are set on.", unset="the texts measured"
    )
    calibrate_split: str = option("Part of it; all: every row of a file.", "validation")
    attack_rows: int = option("How many of the first rows are attacked.", 200, least=1)
    most_queries: int | None = option("Queries a text, then its attack ends.", unset="any", least=1)
    output: Path | None = option(
        "Folder for the files of the runs, which the same command resumes.",
        unset="none: nothing is resumed",
        group="Output",
    )
    card: Path | None = option("Markdown file for the card.", unset="printed", group="Output")
    json_file: Path | None = option("JSON file of it.", flag="json", group="Output")
    junit: Path | None = option("JUnit XML file.", group="Output")
    sarif: Path | None = option("SARIF file.", group="Output")


@command(
    GateCommand,
    SourceOptions,
    ModelChoice,
    PositiveOption,
    ResourceOptions,
    SmoothingOptions,
    ColumnOptions,
    without=("sampling", "keep_columns"),
)
def gate(given: Given) -> int | bool:
    """Measure a model against requirements: exit code 0 if all hold, 4 if one does not.

    The model may be a detector, too, such as spam, which names the positive class.  Figures:
    accuracy, balanced accuracy, errors, precision, recall, f1, false-positive rate, auc, average
    precision, median radius, certified accuracy@WORDS, certified recall@WORDS, robust
    accuracy(RECIPE), robust recall(RECIPE).  Those of a positive class take fpr=RATE: recall@fpr=1%
    is the recall at a threshold that flags 1 % of the other texts; certified recall@2,fpr=1%.

    Example: ranmask gate --model spam-sms --data sms_spam --require 'recall >= .9'
    """
    from ranmask.attacks.recipes import RECIPES
    from ranmask.evaluation.gate import run_gate
    from ranmask.evaluation.requirements import parse_requirement
    from ranmask.smoothing.store import DEFAULT_MODEL

    asked = given.build(GateCommand)
    requirements = [parse_requirement(text, RECIPES) for text in asked.require]
    recipes = {r.figure.recipe for r in requirements} - {None}
    attacking = (*option_fields(ResourceOptions), "attack_rows", "most_queries")
    if not recipes:
        given.refuse(attacking, "where no requirement names an attack")
    if "calibrate" not in given:
        given.refuse(["calibrate_split"], "without --calibrate")
    if asked.output is not None:
        make_folder(asked.output)
    for path in (asked.card, asked.json_file, asked.junit, asked.sarif):
        if path is not None:
            check_file(path)
    source = open_input(given, attacked=True)
    rows = list(source.rows)
    source = replace(source, rows=rows, total=len(rows))
    calibration = None
    if asked.calibrate is not None:
        columns = given.build(ColumnOptions).columns()
        wanted = columns if columns.wanted else None
        calibration = corpus_rows(asked.calibrate, asked.calibrate_split, columns=wanted)
    with ExitStack() as stack:
        folder = asked.output or Path(stack.enter_context(TemporaryDirectory()))
        classifier = _load(given, source)

        def events(total: int, output: Path) -> AbstractContextManager[RunEvents]:
            say(f"{output.stem}: {total:,} texts")
            return shown_events(total, output)

        report = run_gate(
            classifier,
            source,
            requirements,
            folder,
            model=given.get("model") or DEFAULT_MODEL,
            positive=given.get("positive"),
            calibration=calibration,
            attack=partial(_attack, given, classifier, asked.most_queries),
            attacked_rows=asked.attack_rows,
            by_interval=asked.by_interval,
            events=events,
        )
    _write(report, asked)
    return report.errors > 0 if report.passed else NOT_REACHED


def _load(given: Given, source: RowSource) -> Any:
    """The classifier, or the detector, that was asked for."""
    from ranmask.smoothing.detector_store import is_detector, load_detector

    name = given.get("model")
    if name is None or not is_detector(name):
        return load(given)

    others = given.of(SmoothingOptions, ModelChoice).keys() - {"model", "reader", "cache"}
    given.refuse(sorted(others), f"for {name!r}, which is a detector")
    detector = load_detector(name, reader=given.get("reader"), cache=given.get("cache"))
    texts: Any = [row.text for row in source.rows if usable(row.text)]
    if calls := detector.calls(texts):
        say(f"asking the model about at most {calls:,} windows of {len(texts):,} texts")
    return detector


def _attack(
    given: Given, classifier: Any, most_queries: int | None, recipe: str, source: RowSource
) -> AttackLoop:
    from ranmask.attacks.api import attack_loop
    from ranmask.attacks.recipes import uses

    # What another recipe needs is not this one's.
    used = {"attack_lm" if name == "masked_lm" else name for name in uses(recipe)}
    foreign = option_fields(ResourceOptions).keys() - used
    own = Given({name: value for name, value in given.items() if name not in foreign})
    return attack_loop(
        classifier,
        recipe,
        resources=resources_for(recipe, source.rows, own, given.get("device")),
        most_queries=most_queries,
        seed=given.get("seed", 0),
    )


def _write(report: GateReport, asked: GateCommand) -> None:
    from ranmask.evaluation import gate_card

    card = gate_card.markdown(report)
    if asked.card is None:
        print(card, end="")
    else:
        write_file(asked.card, card)
    if asked.json_file is not None:
        write_json(asked.json_file, report.to_dict())
    for path, made in ((asked.junit, gate_card.junit), (asked.sarif, gate_card.sarif)):
        if path is not None:
            write_file(path, made(report))
    for check in report.requirements:
        if not report.reached(check):
            say(f"failed: {gate_card.sentence(report, check)}")
    say("gate passed" if report.passed else "gate failed")

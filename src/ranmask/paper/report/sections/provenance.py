"""What was run: commands, versions, data, time; and what was not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranmask.paper.report.beside import shortened
from ranmask.paper.report.blocks import Block, Bullets, Code, Fold, Heading, Section, Span, text
from ranmask.paper.report.experiments import experiments, variant_label
from ranmask.paper.report.names import attack_name
from ranmask.paper.report.tables import Cell, Table, table
from ranmask.paper.run_data import Adversarial, Attacked, Examples, Reproduction, Step, Trained

LISTINGS = ("Steps", "Commands")
"""Titles of the folds that list every step of a run."""

_STATES = {"done": "done", "failed": "failed", "todo": "not run"}
_RUN = """
    `{name}`, size **{size}**, {seconds}. Machine: {machine}.
    """


def section(reproductions: Sequence[Reproduction]) -> Section:
    """One part for each reproduction."""
    blocks: list[Block] = []
    for experiment in experiments(reproductions):
        for run in experiment.runs:
            before = None if run is experiment.run else experiment.run
            heading = f"{run.title}: {variant_label(run)}" if before else run.title
            blocks += [Heading(heading), *_reproduction(run, before)]
    return Section("What was run", "provenance", blocks)


def _reproduction(run: Reproduction, before: Reproduction | None = None) -> list[Block]:
    """What was run; of a variant of ``before`` only what it did, and what is new in it."""
    if not run.steps:
        return text("Nothing: all of it follows from numbers that the paper prints.")
    known = [step.seconds for step in run.steps if step.seconds is not None]
    machine = ", ".join(f"{key} {_value(value)}" for key, value in run.machine.items())
    blocks = text(
        _RUN,
        name=run.folder_name,
        size=run.size,
        seconds=f"{_seconds(sum(known))} in all" if known else "time not recorded",
        machine=machine or "not recorded",
    )
    known_notes = set(_notes(before)) if before else set()
    notes = [note for note in dict.fromkeys(_notes(run)) if note not in known_notes]
    blocks += [Bullets([(Span(note),) for note in notes])] if notes else []
    asked = [step for step in run.steps if not before or step.state != "todo" or step.error]
    left = [step for step in asked if step.state != "done"]
    if left:
        blocks += text("**Not run.** What follows from these steps is missing above:")
        nothing = {"failed": "no reason recorded", "todo": "not started"}
        reasons = [
            f", {_STATES[step.state]}: {shortened(step.error or nothing[step.state])}"
            for step in left
        ]
        pairs = zip(left, reasons, strict=True)
        blocks.append(Bullets([(Span(step.name, "code"), Span(why)) for step, why in pairs]))
    if run.settings and not before:
        settings = [(key, _value(value)) for key, value in run.settings.items()]
        given = table("As the recipe gave them", ["<setting", "<value"], settings)
        blocks.append(Fold("Settings", [given]))
    steps, commands_of = LISTINGS
    blocks.append(Fold(steps, [_steps(asked)]))
    commands = [step.command for step in asked if step.command]
    return [*blocks, Fold(commands_of, [Code(commands)])] if commands else blocks


def _notes(run: Reproduction) -> Iterator[str]:
    """What the data were, partial ones by name."""
    for step in run.steps:
        what, source = "measured on", step.data
        if isinstance(step.result, Trained):
            what, source = "trained on", step.result.run.get("train")
        if isinstance(source, Mapping) and source.get("name"):
            yield f"{what} {_source(source)}"
        asked = str(step.place.get("attack", ""))
        if isinstance(step.result, Attacked) and asked and step.result.attack != asked:
            yield f"{attack_name(asked)} was run as {step.result.attack}"


def _source(source: Mapping[str, Any]) -> str:
    rows = f"{source['rows']:,} rows" if isinstance(source.get("rows"), int) else None
    spelt = ", ".join(str(part) for part in (source["name"], source.get("split"), rows) if part)
    return f"{spelt}: {source['note']}" if source.get("note") else spelt


def _steps(steps: Sequence[Step]) -> Table:
    return table(
        "Each step is an ordinary ranmask command",
        ["<step", "<measures", "<state", "texts", "errors", "time"],
        [
            (
                step.name,
                step.measures,
                Cell(_STATES[step.state], strong=step.state != "done"),
                *_texts(step),
                "–" if step.seconds is None else _seconds(step.seconds),
            )
            for step in steps
        ],
    )


def _texts(step: Step) -> tuple[str, str]:
    """How many texts a step had, and how many of them have errors."""
    match step.result:
        case None | Trained():
            return "–", "–"
        case Examples(lines) | Adversarial(lines):
            return str(len(lines)), "0"
        case Attacked(rows=rows, statuses=statuses):
            return str(len(rows)), str(statuses.count("error"))
        case result:
            return str(len(result.rows)), str(result.errors)


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

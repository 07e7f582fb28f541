"""What was run: commands, versions, data, time; and what was not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranmask.paper.report.blocks import (
    Block,
    Bullets,
    Code,
    Fold,
    Heading,
    Paragraph,
    Prose,
    Section,
    Span,
    prose,
)
from ranmask.paper.report.condensed import Attacked, Examples, Reproduction, Step, Trained
from ranmask.paper.report.counting import attack_name
from ranmask.paper.report.symbols import DASH
from ranmask.paper.report.tables import Cell, Column, Table, row

_STATES = {"done": "done", "failed": "failed", "todo": "not run"}


def section(reproductions: Sequence[Reproduction]) -> Section:
    """One part for each reproduction."""
    blocks: list[Block] = []
    for one in reproductions:
        blocks += [Heading(one.title), *_reproduction(one)]
    return Section("What was run", "provenance", tuple(blocks))


def missing(reproduction: Reproduction) -> list[Step]:
    """Steps without a result."""
    return [step for step in reproduction.steps if step.state != "done"]


def _reproduction(one: Reproduction) -> list[Block]:
    if not one.steps:
        return [Paragraph(prose("Nothing: all of it follows from numbers that the paper prints."))]
    blocks: list[Block] = [
        Paragraph(
            prose(
                "`{name}`, size **{size}**: {done} of {steps} steps done, {seconds}. "
                "Machine: {machine}.",
                name=one.name,
                size=one.size,
                done=len(one.steps) - len(missing(one)),
                steps=len(one.steps),
                seconds=_in_all([step.seconds for step in one.steps]),
                machine=_spelt(one.machine) or "not recorded",
            )
        )
    ]
    notes = list(dict.fromkeys(_notes(one)))
    if notes:
        blocks.append(Bullets(tuple((Span(note),) for note in notes)))
    absent = missing(one)
    if absent:
        blocks.append(
            Paragraph(prose("**Not run.** What follows from these steps is missing above:"))
        )
        blocks.append(Bullets(tuple(_reason(step) for step in absent)))
    if one.settings:
        settings = tuple(row(key, _value(value)) for key, value in one.settings.items())
        two = (Column("setting", numeric=False), Column("value", numeric=False))
        blocks.append(Fold("Settings", (Table("As the recipe gave them", two, settings),)))
    blocks.append(Fold("Steps", (_steps(one),)))
    commands = tuple(step.command for step in one.steps if step.command)
    if commands:
        blocks.append(Fold("Commands", (Code(commands),)))
    return blocks


def _notes(one: Reproduction) -> Iterator[str]:
    """What the data were, partial ones by name."""
    for step in one.steps:
        sources: list[tuple[str, object]] = [("measured on", step.data)]
        if isinstance(step.result, Trained):
            sources = [("trained on", step.result.run.get("train"))]
        for what, source in sources:
            if isinstance(source, Mapping) and source.get("name"):
                yield f"{what} {_source(source)}"
        asked = str(step.place.get("attack", ""))
        if isinstance(step.result, Attacked) and asked and step.result.attack != asked:
            yield f"{attack_name(asked)} was run as {step.result.attack}"


def _source(source: Mapping[str, Any]) -> str:
    parts = [str(source["name"])]
    if source.get("split"):
        parts.append(str(source["split"]))
    spelt = ", ".join(parts)
    if isinstance(source.get("rows"), int):
        spelt += f", {source['rows']:,} rows"
    return f"{spelt}: {source['note']}" if source.get("note") else spelt


def _reason(step: Step) -> Prose:
    state = "failed" if step.state == "failed" else "not run"
    reason = step.error or ("no reason recorded" if step.state == "failed" else "not started")
    return (Span(step.name, "code"), Span(f", {state}: {reason}"))


def _steps(one: Reproduction) -> Table:
    rows = []
    for step in one.steps:
        texts, errors = _texts(step)
        rows.append(
            row(
                step.name,
                step.measures,
                Cell(_STATES[step.state], strong=step.state != "done"),
                texts,
                errors,
                DASH if step.seconds is None else _seconds(step.seconds),
            )
        )
    return Table(
        caption="Each step is an ordinary ranmask command",
        columns=(
            Column("step", numeric=False),
            Column("measures", numeric=False),
            Column("state", numeric=False),
            Column("texts"),
            Column("errors"),
            Column("time"),
        ),
        rows=tuple(rows),
    )


def _texts(step: Step) -> tuple[str, str]:
    result = step.result
    if result is None or isinstance(result, Trained):
        return DASH, DASH
    if isinstance(result, Examples):
        return str(len(result.lines)), "0"
    statuses: Sequence[str] = getattr(result, "statuses", ())
    errors = getattr(result, "errors", 0) + statuses.count("error")
    return str(len(result.rows)), str(errors)


def _in_all(seconds: Sequence[float | None]) -> str:
    known = [one for one in seconds if one is not None]
    return f"{_seconds(sum(known))} in all" if known else "time not recorded"


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"


def _spelt(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_value(value)}" for key, value in values.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

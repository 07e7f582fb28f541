"""docs/paper.md: the paper's tables and figures beside ours, from ``results/reproduced/*.json``.

    python -m benchmarks.reproduced_page [--fill] RUN...

condenses reproductions into ``results/reproduced`` first, each variant (another seed, another base)
into a file of its own, whose remarks stay; without arguments the page alone is written again, with
its figures.  ``--fill`` takes of a reproduction only what is open in ``results/reproduced`` or met
more texts, and the models of that; a run that was set to other ``texts`` fills the same record.
``python -m benchmarks.results_page`` writes the page, too.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path, PurePath

from benchmarks.settings import REPOSITORY
from ranmask.errors import OptionError, RanmaskError
from ranmask.paper.reading import read, read_several, write
from ranmask.paper.report.blocks import Fold, Section
from ranmask.paper.report.markdown import picture_files, render
from ranmask.paper.report.page import build
from ranmask.paper.report.sections.provenance import LISTINGS
from ranmask.paper.run_data import Reproduction, Step, model_name

REPRODUCED = REPOSITORY / "results" / "reproduced"
PAGE = REPOSITORY / "docs" / "paper.md"
FIGURES = REPOSITORY / "docs" / "figures"
FINDINGS = REPRODUCED / "findings.md"
"""Written by hand, from the page."""

_TEXTS = "texts"

_FIRST = """Written by `python -m benchmarks.reproduced_page` from the files in
`results/reproduced`, which [`ranmask reproduce`](reproduction.md) made. The findings in short, what
is open, and what it will take: [results.md](results.md#the-papers-tables-and-figures-run-again).
The files also hold each step's command, as it was typed then, and its time: `ranmask report
results/reproduced/agnews-certified.json` shows them. Where `certify --compare` sampled by itself,
today's recipes add `--family sampled`.

"""


def reproductions() -> list[Reproduction]:
    return list(read_several([REPRODUCED]))


def paper_page(runs: list[Reproduction]) -> tuple[str, dict[str, str]]:
    """The page as Markdown, and its figures by file name."""
    report = build(runs)
    report = replace(report, sections=[_without_listings(part) for part in report.sections])
    text = render(report, PurePath(FIGURES.name))
    title, about, rest = text.split("\n\n", 2)
    return f"{title}\n\n{about}\n\n{_FIRST}{rest}", picture_files(report)


def _without_listings(section: Section) -> Section:
    """A section without the folds that list every step: they are half of a page."""
    shown = [
        block
        for block in section.blocks
        if not (isinstance(block, Fold) and block.title in LISTINGS)
    ]
    return replace(section, blocks=shown)


def filled(before: Reproduction, run: Reproduction) -> Reproduction:
    """``before``, with what of ``run`` was open in it or met more texts, and the models of that.

    A model of which other cells stay is not replaced, either.  Refuses a run whose other settings
    differ: rows of both in one table would compare badly.
    """
    others = [
        f"{key} is {run.settings[key]!r} there and {value!r} here"
        for key, value in before.settings.items()
        if key != _TEXTS and _plain(run.settings.get(key, value)) != _plain(value)
    ]
    if others:
        raise OptionError(
            f"{run.folder_name} was run with other settings than the record it would fill "
            f"({'; '.join(others)}): condense it without --fill"
        )
    done = {_cell(step): step for step in run.steps if step.state == "done"}
    taken = {
        _cell(step)
        for step in before.steps
        if _cell(step) in done
        and (step.state != "done" or _texts(done[_cell(step)]) > _texts(step))
    }
    victims = {_victim(done[cell]) for cell in taken}
    victims -= {_victim(step) for step in before.steps if _cell(step) not in taken and step.result}
    taken |= {_cell(step) for step in before.steps if step.name in victims} & done.keys()
    steps = [done[_cell(step)] if _cell(step) in taken else step for step in before.steps]
    settings = dict(before.settings)
    if _TEXTS in settings and _TEXTS in run.settings:
        settings[_TEXTS] = max(settings[_TEXTS], run.settings[_TEXTS])
    return replace(before, steps=tuple(steps), settings=settings)


def _plain(value: object) -> object:
    """A setting without the folder or the hub's owner of a model."""
    return model_name(value) if isinstance(value, str) else value


def _cell(step: Step) -> tuple[str, str]:
    """Which step it is: its cell of the table, for names may hold numbers of texts."""
    return step.measures, json.dumps(step.place, sort_keys=True) if step.place else step.name


def _victim(step: Step) -> str:
    """The name of the training whose model the step asks, if it asks one."""
    return step.command.partition("--model ")[2].split(" ")[0]


def _texts(step: Step) -> int:
    return len(getattr(step.result, "rows", ()))


def _as_kept(run: Reproduction) -> Reproduction:
    """``run``, as one of the recipe's own texts, where such a record is kept, of any seed."""
    variant = {key: value for key, value in run.variant.items() if key != _TEXTS}
    same = replace(run, variant=variant)
    first = replace(run, variant={key: value for key, value in variant.items() if key != "seed"})
    beside = any(_path(one).exists() for one in (same, first))
    return same if beside and not _path(run).exists() else run


def _path(run: Reproduction) -> Path:
    return REPRODUCED / f"{run.folder_name}.json"


def _over(before: Reproduction | None, run: Reproduction, fill: bool) -> Reproduction:
    """What is written of a run: remarks are by hand, and no run has them."""
    if before is None:
        return run
    return filled(before, run) if fill else replace(run, remarks=run.remarks or before.remarks)


def summary_part() -> str:
    """What docs/results.md says of it."""
    lines = [
        "## The paper's tables and figures, run again",
        "",
        "**[paper.md](paper.md)** puts every table and figure of the paper beside ours, with "
        "intervals, and says where the order of the methods agrees with the paper.",
        "",
    ]
    return "\n".join(lines) + "\n" + FINDINGS.read_text(encoding="utf-8")


def write_page() -> None:
    """Write the page and its figures; figures that are no longer shown are deleted."""
    text, figures = paper_page(reproductions())
    PAGE.write_text(text, encoding="utf-8")
    FIGURES.mkdir(exist_ok=True)
    for old in FIGURES.glob("*.svg"):
        if old.name not in figures:
            old.unlink()
    for name, content in figures.items():
        (FIGURES / name).write_text(content, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders or files")
    parser.add_argument("--fill", action="store_true", help="take what is open or met more texts")
    options = parser.parse_args()
    if options.fill and not options.runs:
        parser.error("--fill takes steps from a RUN: name one")
    try:
        records: dict[Path, Reproduction] = {}
        for run in read_several(options.runs):
            kept = _as_kept(run) if options.fill else run
            path = _path(kept)
            before = records.get(path) or (read(path) if path.exists() else None)
            records[path] = _over(before, kept, options.fill)
        REPRODUCED.mkdir(exist_ok=True)
        for path, record in records.items():
            write(record, path)
        write_page()
    except RanmaskError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()

"""docs/paper.md: the paper's tables and figures beside ours, from ``results/reproduced/*.json``.

    python -m benchmarks.reproduced_page [--fill] RUN...

condenses reproductions into ``results/reproduced`` first, each variant (another seed, another base)
into a file of its own, whose remarks stay; without arguments the page alone is written again, with
its figures.  ``--fill`` takes of a reproduction only the steps that are open in
``results/reproduced``.
``python -m benchmarks.results_page`` writes the page, too.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path, PurePath

from benchmarks.settings import REPOSITORY
from ranmask.errors import RanmaskError
from ranmask.paper.reading import read, read_several, write
from ranmask.paper.report.blocks import Fold, Section
from ranmask.paper.report.markdown import picture_files, render
from ranmask.paper.report.page import build
from ranmask.paper.report.sections.provenance import LISTINGS
from ranmask.paper.run_data import Reproduction

REPRODUCED = REPOSITORY / "results" / "reproduced"
PAGE = REPOSITORY / "docs" / "paper.md"
FIGURES = REPOSITORY / "docs" / "figures"
FINDINGS = REPRODUCED / "findings.md"
"""Written by hand, from the page."""

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
    """``before``, and of ``run`` what was not done in it."""
    done = {step.name: step for step in run.steps if step.state == "done"}
    steps = [step if step.state == "done" else done.get(step.name, step) for step in before.steps]
    return replace(before, steps=tuple(steps))


def _condensed(run: Reproduction) -> Path:
    return REPRODUCED / f"{run.folder_name}.json"


def _over_what_is_there(run: Reproduction, fill: bool) -> Reproduction:
    """What is written of a run: remarks are by hand, and no run has them."""
    if not _condensed(run).exists():
        return run
    before = read(_condensed(run))
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
    parser.add_argument("--fill", action="store_true", help="take only steps that are open here")
    options = parser.parse_args()
    if options.fill and not options.runs:
        parser.error("--fill takes steps from a RUN: name one")
    try:
        runs = [_over_what_is_there(run, options.fill) for run in read_several(options.runs)]
        REPRODUCED.mkdir(exist_ok=True)
        for run in runs:
            write(run, _condensed(run))
        write_page()
    except RanmaskError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()

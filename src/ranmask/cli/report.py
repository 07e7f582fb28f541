"""``ranmask report``: parse, call, write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranmask.cli.terminal import say
from ranmask.errors import OptionError
from ranmask.paper.reading import read_several, sources, write
from ranmask.results.files import check_file, make_folder, write_file


def report(
    *runs: Annotated[
        Path,
        Parameter(
            required=True,
            help="Folders that `ranmask reproduce` wrote, condensed files, or result files.",
        ),
    ],
    output: Annotated[Path, Parameter(help="HTML file for the report.")] = Path("report.html"),
    markdown: Annotated[Path | None, Parameter(help="The same as Markdown, in this file.")] = None,
    figures: Annotated[
        Path | None,
        Parameter(help="Folder for the charts as SVG files; the Markdown shows them."),
    ] = None,
    condensed: Annotated[
        Path | None,
        Parameter(
            help="Also write what the report is made of, without texts: a small JSON file that "
            "this command reads like a folder.",
        ),
    ] = None,
    title: Annotated[str | None, Parameter(help="Another title.")] = None,
) -> None:
    """Write one page of HTML that sets reproductions beside the paper, and explains them.

    It reads files only: no model, no network, nothing to install to look at it.

    Example: ranmask report runs --output report.html
    """
    from ranmask.paper.report.html import render as html
    from ranmask.paper.report.markdown import picture_files
    from ranmask.paper.report.markdown import render as text
    from ranmask.paper.report.page import build

    _check_outputs(
        [path for path in (output, markdown, condensed) if path is not None],
        {path for run in runs for path in sources(run)},
    )
    reproductions = read_several(runs)
    if condensed is not None and len(reproductions) != 1:
        raise OptionError(
            f"--condensed holds one run, and {len(reproductions)} were given: condense them one by "
            "one"
        )
    made = build(reproductions, title)
    files = {output: html(made)}
    if figures is not None:
        make_folder(figures)
        files |= {figures / name: content for name, content in picture_files(made).items()}
    if markdown is not None:
        files[markdown] = text(made, _as_seen_from(markdown, figures))
    for path, content in files.items():
        write_file(path.resolve(), content, shared=True)  # a link stays a link
    if condensed is not None:
        write(reproductions[0], condensed)
    say(f"{output}: {len(made.sections)} sections")


def _check_outputs(outputs: list[Path], inputs: set[Path]) -> None:
    """Raise where a file could not be written, or would be written over another."""
    taken = dict.fromkeys(inputs, "what the report is made of")
    for path in outputs:
        check_file(path)
        if path.resolve() in taken:
            raise OptionError(
                f"{path} is {taken[path.resolve()]}, and would be written over: give another name"
            )
        taken[path.resolve()] = "another output of this command"


def _as_seen_from(markdown: Path, figures: Path | None) -> Path | None:
    if figures is None:
        return None
    try:
        return Path(os.path.relpath(figures.resolve(), markdown.resolve().parent))
    except ValueError:  # another drive: there is no way from here to there
        return figures.resolve()

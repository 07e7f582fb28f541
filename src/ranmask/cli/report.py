"""``ranmask report``: parse, call, write."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ranmask.errors import OptionError, OutputError
from ranmask.results.files import check_file, write_file

Runs = Annotated[
    list[Path],
    typer.Argument(
        help="Folders that `ranmask reproduce` wrote, condensed files, or result files.",
        show_default=False,
    ),
]


def report(
    runs: Runs,
    output: Annotated[Path, typer.Option(help="HTML file for the report.")] = Path("report.html"),
    markdown: Annotated[
        Path | None, typer.Option(help="The same as Markdown, in this file.", show_default=False)
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the charts as SVG files; the Markdown shows them.", show_default=False
        ),
    ] = None,
    condensed: Annotated[
        Path | None,
        typer.Option(
            help="Also write what the report is made of, without texts: a small JSON file that "
            "this command reads like a folder.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Another title.", show_default=False)] = None,
) -> None:
    """One page of HTML that shows reproductions beside the paper, and explains them.

    It reads files only: no model, no network, nothing to install to look at it.
    """
    if condensed is not None and len(runs) != 1:
        raise OptionError(
            f"--condensed holds one run, and {len(runs)} were given: condense them one by one"
        )
    from ranmask.paper.report.html import render as html
    from ranmask.paper.report.markdown import picture_files
    from ranmask.paper.report.markdown import render as text
    from ranmask.paper.report.page import build
    from ranmask.paper.report.reading import read_several, sources, write

    _check_outputs(
        [path for path in (output, markdown, condensed) if path is not None],
        {path for run in runs for path in sources(run)},
    )
    reproductions = read_several(runs)
    made = build(reproductions, title)
    _write({output: html(made)})
    if figures is not None:
        _make_folder(figures)
        _write({figures / name: content for name, content in picture_files(made).items()})
    if markdown is not None:
        _write({markdown: text(made, _as_seen_from(markdown, figures))})
    if condensed is not None:
        write(reproductions[0], condensed)
    typer.echo(f"{output}: {len(made.sections)} sections", err=True)


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


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {path}: {error.strerror}") from error


def _write(files: Mapping[Path, str]) -> None:
    """Write each file whole or not at all."""
    for path, content in files.items():
        write_file(path.resolve(), content, shared=True)  # a link stays a link


def _as_seen_from(markdown: Path, figures: Path | None) -> Path | None:
    if figures is None:
        return None
    try:
        return Path(os.path.relpath(figures.resolve(), markdown.resolve().parent))
    except ValueError:  # another drive: there is no way from here to there
        return figures.resolve()

"""The command line: parse, call, print.

Exit codes: 0 all rows done; 1 the run could not be done or finished; 2 wrong usage or options;
3 finished, but some rows have errors; 130 interrupted.  Heavy libraries are imported when a
command needs them, so that ``ranmask --help`` answers at once.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranmask import __version__
from ranmask.cli_attack import attack
from ranmask.cli_cascade import build, detector, report
from ranmask.cli_inputs import Source, open_input
from ranmask.cli_options import (
    Alpha,
    AsJson,
    CertificateOption,
    DataName,
    Device,
    Dtype,
    Ensemble,
    Family,
    FirstRows,
    Hide,
    Input,
    Keep,
    LabelColumn,
    Labels,
    LanguageModel,
    MaskRate,
    Masks,
    MaskToken,
    Model,
    Output,
    PairColumns,
    Sampling,
    Seed,
    SelectionMasks,
    Split,
    TextColumn,
    Texts,
    Threat,
    Tolerance,
    columns_from,
    names_from,
    quiet_libraries,
    word_losses_from,
)
from ranmask.cli_training import train
from ranmask.cli_tuning import tune
from ranmask.errors import OptionError, RanmaskError

if TYPE_CHECKING:
    from ranmask.data import Row
    from ranmask.interface import TextClassifier
    from ranmask.runs import Classify, Outcome

FAILED, WRONG_USAGE, SOME_ROWS_FAILED, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Certified robustness for text classifiers: labels with a proved radius, in words.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some rows have errors, 130 interrupted.",
)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", show_default=False)
    ] = False,
) -> None:
    if version:
        typer.echo(f"ranmask {__version__}")
        raise typer.Exit
    del context


@app.command()
def certify(
    texts: Texts = None,
    model: Model = None,
    keep: Keep = None,
    mask_rate: MaskRate = None,
    input: Input = None,
    data: DataName = None,
    split: Split = None,
    rows: FirstRows = None,
    output: Output = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_columns: PairColumns = None,
    family: Family = None,
    masks: Masks = None,
    selection_masks: SelectionMasks = None,
    ensemble: Ensemble = None,
    certificate: CertificateOption = None,
    threat: Threat = None,
    alpha: Alpha = None,
    seed: Seed = None,
    labels: Labels = None,
    mask_token: MaskToken = None,
    hide: Hide = None,
    tolerance: Tolerance = None,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Label texts, and prove how many words can be changed, to anything, without effect.

    With --input and --output, results are appended as they come; the same command again resumes.
    """
    options = {
        "keep": keep,
        "mask_rate": mask_rate,
        "family": family,
        "masks": masks,
        "selection_masks": selection_masks,
        "ensemble": ensemble,
        "certificate": certificate,
        "threat": threat,
        "alpha": alpha,
        "seed": seed,
        "labels": names_from(labels),
        "mask_token": mask_token,
        "hide": hide,
        "tolerance": tolerance,
        "device": device,
        "dtype": dtype,
    }
    with _errors_as_exit_codes():
        columns = columns_from(text_column, pair_columns, label_column)
        source = open_input(texts, input, data, split, rows, columns)
        _command("certify", source, model, options, output, as_json)


@app.command()
def predict(
    texts: Texts = None,
    model: Model = None,
    keep: Keep = None,
    mask_rate: MaskRate = None,
    input: Input = None,
    data: DataName = None,
    split: Split = None,
    rows: FirstRows = None,
    output: Output = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_columns: PairColumns = None,
    family: Family = None,
    masks: Masks = None,
    ensemble: Ensemble = None,
    sampling: Sampling = None,
    lm: LanguageModel = None,
    seed: Seed = None,
    labels: Labels = None,
    mask_token: MaskToken = None,
    hide: Hide = None,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Label texts by the vote of their masked copies, without a certificate."""
    options: dict[str, Any] = {
        "keep": keep,
        "mask_rate": mask_rate,
        "family": family,
        "masks": masks,
        "ensemble": ensemble,
        "sampling": sampling,
        "seed": seed,
        "labels": names_from(labels),
        "mask_token": mask_token,
        "hide": hide,
        "device": device,
        "dtype": dtype,
    }
    with _errors_as_exit_codes():
        columns = columns_from(text_column, pair_columns, label_column)
        source = open_input(texts, input, data, split, rows, columns)
        options["word_losses"] = word_losses_from(lm, sampling, device)
        _command("predict", source, model, options, output, as_json)


def _command(
    command: str,
    source: Source,
    model: str | None,
    options: dict[str, Any],
    output: Path | None,
    as_json: bool,
) -> None:
    if output is not None and source.origin is None:
        raise OptionError("--output goes with --input or --data; texts given here are printed")
    classifier, classify = _load(model, options, command)
    if source.origin is not None and source.origin.get("label_names"):
        from ranmask.runs import class_ids

        class_ids(source.origin["label_names"], classifier.labels)  # told before the first row
    if output is None or source.origin is None:
        failed = _show(source.rows, classifier, classify, command, as_json, total=source.total)
    else:
        failed = _write(source, classifier, classify, command, output)
    if failed:
        raise typer.Exit(SOME_ROWS_FAILED)


def _show(
    rows: Iterable[Row],
    classifier: TextClassifier,
    classify: Classify,
    command: str,
    as_json: bool,
    total: int,
) -> bool:
    """Print results: a table on a terminal, else JSON lines.  Returns whether a row failed."""
    from rich.console import Console

    from ranmask import rendering, runs
    from ranmask.results import CascadePrediction, Certificate

    certified = command == "certify"
    labels = classifier.labels
    lines: list[dict[str, Any]] = []

    def outcomes() -> Iterator[tuple[Outcome, dict[str, Any]]]:
        for outcome in runs.classify_rows(rows, classify):
            line = outcome.to_dict(labels)
            lines.append({key: line[key] for key in _SUMMARISED if key in line})
            yield outcome, line

    if as_json or not sys.stdout.isatty():
        for _, line in outcomes():
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    else:
        console = Console()
        table = rendering.result_table(certified)
        example = None
        with _progress(total) as advance:
            for outcome, _ in outcomes():
                rendering.add_outcome(table, outcome, certified)
                if isinstance(outcome.result, Certificate | CascadePrediction):
                    example = outcome.result
                advance(1)
        console.print(table)
        if example is not None:
            rendering.explain(console, example)
    summary, counts = runs.summarise(lines)
    if counts["labelled"]:
        rendering.print_summary(Console(stderr=True), summary, counts, certified)
    return counts["errors"] > 0


_SUMMARISED = ("error", "correct", "radius", "words")


def _write(
    source: Source,
    classifier: TextClassifier,
    classify: Classify,
    command: str,
    output: Path,
) -> bool:
    """Append results to a file and resume it.  Returns whether a row failed."""
    from rich.console import Console

    from ranmask import rendering, runs

    origin = source.origin or {}
    description = runs.run_description(command, origin, classifier.description(), __version__)
    console = Console(stderr=True)
    example = None
    with runs.ResultFile(output, description) as results:
        todo = (row for row in source.rows if row.number > results.done)
        if results.done:
            console.print(f"resuming {output} after row {results.done}")
        try:
            with _progress(source.total, done=results.done) as advance:
                for outcome in runs.classify_rows(todo, classify):
                    results.write([outcome.to_dict(classifier.labels)])
                    example = outcome.result or example
                    advance(1)
        except KeyboardInterrupt:
            console.print(f"interrupted: the same command resumes {output}")
            raise
        summary, counts = runs.summarise(results.lines())
        certified = command == "certify"
        results.finish(rendering.summary_values(summary, counts, certified))
        rendering.print_summary(console, summary, counts, certified)
    if example is not None and rendering.needs_words(example):
        rendering.explain(console, example)
    return counts["errors"] > 0


def _load(
    model: str | None, options: dict[str, Any], command: str
) -> tuple[TextClassifier, Classify]:
    from ranmask.loading import DEFAULT_MODEL, load_classifier

    quiet_libraries()
    classifier = load_classifier(model or DEFAULT_MODEL, **options)
    if command != "certify":
        return classifier, classifier.predict
    classifier.check_certifiable()  # told once, not for every row
    return classifier, classifier.certify


def _progress(total: int, done: int = 0) -> Any:
    from ranmask.progress import progress

    return progress(total, done)


@app.command()
def blend(
    parts: Annotated[
        list[str], typer.Argument(help="Folders of two or more models of the same classes.")
    ],
    output: Annotated[Path, typer.Option(help="Folder for the blend.", show_default=False)],
) -> None:
    """Make one classifier of several: the mean of their scores, certified as one."""
    with _errors_as_exit_codes():
        quiet_libraries()
        from ranmask.loading import blend_folders

        blend_folders(parts, output)
        typer.echo(f"{output}: {len(parts)} parts", err=True)


@app.command("attack", help=attack.__doc__)
@functools.wraps(attack)
def _attack(*args: Any, **kwargs: Any) -> None:
    with _errors_as_exit_codes():
        if attack(*args, **kwargs):
            raise typer.Exit(SOME_ROWS_FAILED)


@app.command("train", help=train.__doc__)
@functools.wraps(train)
def _train(*args: Any, **kwargs: Any) -> None:
    with _errors_as_exit_codes():
        train(*args, **kwargs)


@app.command("tune", help=tune.__doc__)
@functools.wraps(tune)
def _tune(*args: Any, **kwargs: Any) -> None:
    with _errors_as_exit_codes():
        tune(*args, **kwargs)


cascade = typer.Typer(
    no_args_is_help=True,
    help="Plain for clean texts, smoothed for suspicious ones: build a cascade and look at it.",
)
app.add_typer(cascade, name="cascade")


def _in_cascade(command: Callable[..., None]) -> None:
    @cascade.command(command.__name__, help=command.__doc__)
    @functools.wraps(command)
    def called(*args: Any, **kwargs: Any) -> None:
        with _errors_as_exit_codes():
            command(*args, **kwargs)


for _command_of_cascade in (detector, build, report):
    _in_cascade(_command_of_cascade)


@contextmanager
def _errors_as_exit_codes() -> Iterator[None]:
    """Every error on purpose becomes one line on standard error and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader went away, as `head` does.  Nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
    except RanmaskError as error:
        typer.echo(f"error: {error}", err=True)
        code = WRONG_USAGE if isinstance(error, OptionError) else FAILED
        raise typer.Exit(code) from None


def main() -> None:
    """The ``ranmask`` command."""
    app()


if __name__ == "__main__":
    main()

"""``ranmask tune``: parse, call, print."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ranmask.cli.options import (
    Device,
    Dtype,
    Hide,
    LabelColumn,
    Labels,
    Model,
    PairColumns,
    SkipBadRows,
    TextColumn,
    columns_from,
    tame_libraries,
)
from ranmask.cli.train_options import Data
from ranmask.errors import OptionError
from ranmask.results.files import check_file

if TYPE_CHECKING:
    from fractions import Fraction

    from ranmask.data import Corpus
    from ranmask.evaluation.settings import Setting
    from ranmask.evaluation.tuning import Measured, Rule
    from ranmask.smoothing.smoothed import SmoothedClassifier

_T = TypeVar("_T")

_SplitOption = Annotated[
    str,
    typer.Option(
        "--split",
        help="Part of the corpus: validation is what training does not learn from. all: every row "
        "of a file that the model has not learned from.",
    ),
]
_RowsOption = Annotated[int, typer.Option("--rows", help="Only the first rows of it.")]
_Keeps = Annotated[
    str | None,
    typer.Option(
        "--keep",
        help="Words that copies show, as 1,2,3.",
        show_default="the model's, one less, one more",
    ),
]
_Rates = Annotated[
    str | None,
    typer.Option("--mask-rate", help="And shares hidden, as 0.8,0.9.", show_default=False),
]
_Families = Annotated[
    str | None,
    typer.Option(
        "--family", help="auto, all, sampled, windows, distinct: some.", show_default="the model's"
    ),
]
_Ensembles = Annotated[
    str | None,
    typer.Option(
        "--ensemble", help="vote, score, logit: some.", show_default="all that suit the model"
    ),
]
_Thresholds = Annotated[
    str, typer.Option("--threshold", help="Radii below which no answer is given.")
]
_At = Annotated[int, typer.Option("--at", help="Changed words that matter most.")]
_RuleOption = Annotated[
    str,
    typer.Option(
        "--rule",
        help="Picks by score (mean CR@0 to CR@at), by paper (median radius); frontier: all of it.",
    ),
]
_Masks = Annotated[
    int | None, typer.Option("--masks", help="Most copies a text.", show_default="the model's")
]
_Output = Annotated[
    Path | None,
    typer.Option("--output", help="JSON file; resumed if it exists.", show_default=False),
]
_Svg = Annotated[
    Path | None, typer.Option("--svg", help="SVG file for the picture.", show_default=False)
]


def tune(
    data: Data,
    model: Model = None,
    split: _SplitOption = "validation",
    rows: _RowsOption = 500,
    keep: _Keeps = None,
    mask_rate: _Rates = None,
    family: _Families = None,
    ensemble: _Ensembles = None,
    masks: _Masks = None,
    threshold: _Thresholds = "0,1,2,3",
    at: _At = 3,
    rule: _RuleOption = "score",
    output: _Output = None,
    svg: _Svg = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_columns: PairColumns = None,
    labels: Labels = None,
    skip_bad_rows: SkipBadRows = False,
    hide: Hide = None,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Measure a model under several settings, and show which are worth choosing.

    Prints accuracy and certified accuracy of each, and the best as options of ranmask certify.
    With --output, the same command again resumes.
    """
    from ranmask.data import load_corpus
    from ranmask.evaluation.tuning import check_families
    from ranmask.smoothing import store
    from ranmask.smoothing.smoothed import SmoothedClassifier

    wanted = _Wanted(keep, mask_rate, family, ensemble, masks, threshold, at, rule)
    if output is not None:
        check_file(output)
    if svg is not None:
        from ranmask.evaluation.frontier_plot import check_plot

        check_plot(svg)
    columns = columns_from(text_column, pair_columns, label_column)
    wanted_columns = columns if columns.wanted else None
    corpus = load_corpus(data, split, columns=wanted_columns, skip_bad_rows=skip_bad_rows)
    corpus = corpus.take(rows)
    tame_libraries()
    name = model or store.DEFAULT_MODEL
    given = {
        "hide": hide,
        "labels": None if labels is None else [label.strip() for label in labels.split(",")],
        "device": device,
        "dtype": dtype,
    }
    # A model that was never smoothed has no keep of its own; which one it is loaded with does not
    # matter, since every setting brings its own.
    classifier = store.load_with_any_keep(name, **given)
    if not isinstance(classifier, SmoothedClassifier):
        raise OptionError(f"{name} is not smoothed by masking words, which is what tune varies")
    classifier.check_certifiable()  # certify would refuse whatever is advised here
    settings = wanted.settings(name, classifier, corpus)
    check_families(classifier, corpus.texts, settings)
    typer.echo(_rows_used(corpus), err=True)
    measured = _measure(classifier, corpus, settings, wanted, output)
    picked = wanted.picked(measured)
    _show(measured, wanted, picked, classifier.labels or corpus.label_names)
    shown = {key: value for key, value in given.items() if value is not None}
    if labels is not None:
        shown["labels"] = labels
    _advise(name, shown, measured, wanted, picked)
    if svg is not None:
        from ranmask.evaluation.frontier_plot import write_plot

        title = f"{name} on {corpus.name}, {len(corpus.texts):,} {corpus.split} texts"
        write_plot(svg, measured, at=at, picked=picked, title=title)


class _Wanted:
    """What the command line asked for, checked before anything is read."""

    rule: Rule

    def __init__(
        self,
        keep: str | None,
        mask_rate: str | None,
        family: str | None,
        ensemble: str | None,
        masks: int | None,
        threshold: str,
        at: int,
        rule: str,
    ) -> None:
        from ranmask.certificates.families import FAMILY_CHOICES, Retention
        from ranmask.evaluation.tuning import RULES
        from ranmask.options import ENSEMBLES, check_choice

        self.retentions = [
            Retention(keep=number)
            for number in _listed("--keep", keep, int, "whole numbers, as 2 or 1,2,3")
        ] + [
            Retention(mask_rate=number)
            for number in _listed("--mask-rate", mask_rate, float, "shares, as 0.9 or 0.8,0.9")
        ]
        self.families: list[Any] = _listed("--family", family, str, "names")
        self.ensembles: list[Any] = _listed("--ensemble", ensemble, str, "names")
        for one in self.families:
            check_choice("--family", one, FAMILY_CHOICES)
        for one in self.ensembles:
            check_choice("--ensemble", one, ENSEMBLES)
        check_choice("--rule", rule, RULES)
        if masks is not None and masks < 1:
            raise OptionError(f"--masks must be a whole number of at least 1, not {masks}")
        self.masks = masks
        self.thresholds = _listed("--threshold", threshold, int, "whole numbers, as 0,1,2")
        for number in self.thresholds:
            if number < 0:
                raise OptionError(f"--threshold takes numbers of at least 0, not {number}")
        if at < 1:
            raise OptionError(f"--at must be a whole number of at least 1, not {at}")
        self.at = at
        self.rule = rule  # type: ignore[assignment]

    def settings(self, model: str, classifier: SmoothedClassifier, corpus: Corpus) -> list[Setting]:
        from ranmask.evaluation.settings import grid, supported_ensembles

        ensembles = self.ensembles
        if not ensembles:
            supported = supported_ensembles(classifier, corpus.texts[0])
            ensembles = list(dict.fromkeys((*supported, classifier.options.ensemble)))
        return grid(
            classifier.options,
            _own_retention(model, classifier),
            retentions=self.retentions,
            choices=self.families,
            ensembles=ensembles,
            masks=self.masks,
        )

    def picked(self, measured: Sequence[Measured]) -> Measured | None:
        from ranmask.evaluation.tuning import pick

        return pick(measured, self.rule, self.at)


def _listed(flag: str, given: str | None, kind: Callable[[str], _T], what: str) -> list[_T]:
    if given is None:
        return []
    try:
        return [kind(part.strip()) for part in given.split(",")]
    except ValueError:
        raise OptionError(f"{flag} takes {what}; not {given!r}") from None


def _own_retention(model: str, classifier: SmoothedClassifier) -> Any:
    """How many words the model was saved to be shown, None where it does not say."""
    from ranmask.certificates.families import Retention
    from ranmask.models.function import FunctionClassifier
    from ranmask.models.pretrained import saved_options
    from ranmask.smoothing import store

    if isinstance(classifier.base, FunctionClassifier):
        return None
    place = str(store.shipped_folder(model)) if model in store.SHIPPED else model
    saved = saved_options(place)
    keep, rate = saved.get("keep"), saved.get("mask_rate")
    return None if keep is None and rate is None else Retention(keep, rate)


def _measure(
    classifier: SmoothedClassifier,
    corpus: Corpus,
    settings: Sequence[Setting],
    wanted: _Wanted,
    output: Path | None,
) -> list[Measured]:
    """Measure what is not in the file yet, and write it there."""
    from ranmask.cli.progress import progress
    from ranmask.evaluation.tuning import sweep
    from ranmask.evaluation.tuning_file import TuneFile

    expected = _class_ids(corpus, classifier)
    file = None
    if output is not None:
        described = classifier.description()
        model = {key: described[key] for key in ("base", "labels", "given_tolerance")}
        model |= {"seed": classifier.options.seed, "threat": classifier.options.threat}
        file = TuneFile(output, data=corpus.description(), model=model, settings=settings)
    measured = [] if file is None else list(file.measured)
    if measured:
        typer.echo(f"resuming {output} after {len(measured)} of {len(settings)} settings", err=True)
    left = settings[len(measured) :]
    texts = len(corpus.texts)
    try:
        pace = _Pace(classifier, corpus, left)
        with progress(texts * len(settings), done=texts * len(measured)) as advance:
            for one in sweep(classifier, corpus.texts, expected, left, advance=advance):
                measured.append(one)
                pace.done(one.setting)
                if file is not None:
                    file.write(
                        measured, at=wanted.at, thresholds=wanted.thresholds, rule=wanted.rule
                    )
    except KeyboardInterrupt:
        if output is not None:
            typer.echo(f"interrupted: the same command resumes {output}", err=True)
        raise
    if file is not None and not left:  # other thresholds, perhaps
        file.write(measured, at=wanted.at, thresholds=wanted.thresholds, rule=wanted.rule)
    return measured


def _class_ids(corpus: Corpus, classifier: SmoothedClassifier) -> list[int]:
    """The labels of the corpus as numbers of the model's classes."""
    from ranmask.runs.task import class_ids

    found = class_ids(corpus.label_names, classifier.labels)
    return [found[label] for label in corpus.labels]


class _Pace:
    """Says what the settings will cost before the first, and how far it is after each.

    On a terminal a bar shows the second.
    """

    def __init__(
        self, classifier: SmoothedClassifier, corpus: Corpus, settings: Sequence[Setting]
    ) -> None:
        from ranmask.evaluation.tuning import costs

        self._started = time.monotonic()
        self._left: dict[Setting, float] = {}
        if not settings:
            return
        found = costs(classifier, corpus.texts, settings)
        for cost in found:
            for setting in cost.settings:
                self._left[setting] = cost.seconds / len(cost.settings)
            first, *others = cost.settings
            name = " and ".join([first.name, *(one.ensemble for one in others)])
            copies = f"{cost.copies:,} masked copies"
            typer.echo(f"{name}: {copies}, about {_duration(cost.seconds)}", err=True)
        total = sum(cost.copies for cost in found)
        seconds = sum(cost.seconds for cost in found)
        typer.echo(
            f"{len(settings)} settings, {len(corpus.texts):,} texts: {total:,} copies, about "
            f"{_duration(seconds)} in all, as a few texts took; --rows, --masks and --keep make it "
            "less",
            err=True,
        )
        self._started = time.monotonic()

    def done(self, setting: Setting) -> None:
        """One more setting was measured."""
        del self._left[setting]
        if self._left and not sys.stderr.isatty():
            typer.echo(
                f"{setting.name}: measured, {_duration(time.monotonic() - self._started)} so far; "
                f"still to go: {len(self._left)} of the settings, about "
                f"{_duration(sum(self._left.values()))}",
                err=True,
            )


def _duration(seconds: float) -> str:
    """A time that was estimated, in few digits."""
    if seconds < 1:
        return "1 second" if seconds > 0.5 else "less than a second"
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.1f} minutes"


def _rows_used(corpus: Corpus) -> str:
    """How many rows are measured on, of how many, and why not all."""
    whole = corpus.source_rows
    some = whole is not None and len(corpus.texts) < whole
    of_all = f" of {whole:,} rows" if some else " rows"
    why = f" ({corpus.note})" if corpus.note else ""
    said = f"{corpus.name}, {corpus.split}: {len(corpus.texts):,}{of_all}{why}"
    if some and corpus.split == "validation" and Path(corpus.name).is_file():
        said += (
            ". The others are what `ranmask train --data` of this file learns from; for a file "
            "that the model has not learned from, --split all takes every row, up to --rows"
        )
    return said


# Printing.


def _show(
    measured: Sequence[Measured],
    wanted: _Wanted,
    picked: Measured | None,
    names: Sequence[str],
) -> None:
    from ranmask.evaluation.tuning import frontier
    from ranmask.metrics import certified_values, class_lines

    at = wanted.at
    best = frontier(measured, at)
    head = ["setting", "accuracy", "balanced", "MCB"]
    head += [f"CR@{changed}" for changed in range(1, at + 1)]
    _table(
        [*head, "s/text", "frontier"],
        [
            [
                one.setting.name,
                _share(one.accuracy),
                _share(one.summary.classes.balanced),
                _median(one),
                *(_share(one.certified_accuracy(changed)) for changed in range(1, at + 1)),
                f"{one.seconds:.2g}",
                "*" if one in best else "",
            ]
            for one in measured
        ],
    )
    typer.echo(
        f"MCB: median radius.  CR@d: right, and proved to stay so whichever d words are changed.\n"
        f"*: nothing here has more accuracy without less CR@{at}, or the other way round.\n"
        f"balanced: mean recall of the classes.  Naming the largest class for every text has "
        f"accuracy {_share(measured[0].summary.classes.majority)}."
    )
    if picked is not None:
        typer.echo(f"\n{picked.setting.name}, by class:")
        for line in class_lines(certified_values(picked.summary, names)["classes"]):
            typer.echo(line)
        if not picked.summary.beats_majority():
            typer.echo(
                "warning: it is no more accurate than naming the largest class for every text: "
                "its radii say nothing of what it has learned"
            )
    if picked is None or not wanted.thresholds:
        return
    typer.echo(f"\nIf {picked.setting.name} answers only where the radius reaches a threshold:")
    found = [picked.abstention(threshold, at) for threshold in wanted.thresholds]
    _table(
        ["threshold", "answered", "right of those", f"stays@{at}", f"never wrong@{at}"],
        [
            [
                str(one.threshold),
                _share(one.coverage),
                "N/A" if one.accuracy is None else _share(one.accuracy),
                _share(one.certified_accuracy[at]),
                _share(one.never_wrong[at]),
            ]
            for one in found
        ],
    )
    # Outputs that move when they are computed again may cost an answer, though never a label.
    but = ", but for votes as near as the tolerance" if picked.tolerance else ""
    typer.echo(
        f"stays@{at}: of all texts, answered right whichever {at} words are changed{but}.\n"
        f"never wrong@{at}: answered right, or not at all."
    )


def _advise(
    model: str,
    given: dict[str, Any],
    measured: Sequence[Measured],
    wanted: _Wanted,
    picked: Measured | None,
) -> None:
    """The chosen settings as commands."""
    from ranmask.evaluation.tuning import frontier

    if picked is None:
        chosen = frontier(measured, wanted.at)
        typer.echo("\nOn the frontier:")
    else:
        chosen = [picked]
        figure = f"largest mean of CR@0 to CR@{wanted.at}, {_share(picked.score(wanted.at))}"
        if wanted.rule == "paper":
            figure = f"largest median radius, {_median(picked)}"
        typer.echo(f"\nPicked by --rule {wanted.rule} ({figure}):")
    more = [part for key, value in given.items() for part in (f"--{key}", str(value))]
    for one in chosen:
        command = ["ranmask", "certify", "--model", model, *one.setting.flags, *more]
        typer.echo(shlex.join(command))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns, the first to the left and the others to the right; coloured on a terminal."""
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            first, *others = zip(row, widths, strict=True)
            cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
            typer.echo("  ".join(cells).rstrip())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left", no_wrap=not place)
    for row in rows:
        table.add_row(*row, style="bold" if row[-1] == "*" else None)
    Console().print(table)


def _share(value: Fraction) -> str:
    return f"{float(value):.3f}"


def _median(one: Measured) -> str:
    return "N/A" if one.median_radius is None else str(one.median_radius)

"""``ranmask tune``: parse, call, print."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from ranmask.certificates.kept import FamilyChoice, Retention
from ranmask.cli.command import Given, command
from ranmask.cli.options import ColumnOptions, Data, ModelChoice, SkipBadRows, tame_libraries
from ranmask.cli.terminal import say
from ranmask.errors import OptionError
from ranmask.options import Ensemble
from ranmask.options.fields import Checked, Option
from ranmask.results.files import check_file

if TYPE_CHECKING:
    from fractions import Fraction

    from ranmask.data import Corpus
    from ranmask.evaluation.settings import Setting
    from ranmask.evaluation.tuning import Measured
    from ranmask.smoothing.smoothed import SmoothedClassifier


@dataclass(frozen=True, kw_only=True)
class TuneCommand(Checked):
    """Which settings are measured, on what, and how one is picked."""

    GROUP: ClassVar[str] = "Settings"

    data: Data
    split: Annotated[
        str,
        Option(
            "Part of the corpus: validation is what training does not learn from. all: every row "
            "of a file that the model has not learned from."
        ),
    ] = "validation"
    rows: Annotated[int, Option("Only the first rows of it.", least=1)] = 500
    skip_bad_rows: SkipBadRows = False
    keep: Annotated[
        tuple[int, ...],
        Option(
            "Words that copies show, as 1,2,3.", unset="the model's, one less, one more", least=1
        ),
    ] = ()
    mask_rate: Annotated[
        tuple[float, ...], Option("And shares hidden, as 0.8,0.9.", least=0, below=1)
    ] = ()
    family: Annotated[
        tuple[FamilyChoice, ...],
        Option("auto, all, sampled, windows, distinct: some.", unset="the model's"),
    ] = ()
    ensemble: Annotated[
        tuple[Ensemble, ...],
        Option("vote, score, logit: some.", unset="all that suit the model"),
    ] = ()
    masks: Annotated[int | None, Option("Most copies a text.", unset="the model's", least=1)] = None
    threshold: Annotated[
        tuple[int, ...], Option("Radii below which no answer is given.", least=0)
    ] = (0, 1, 2, 3)
    at: Annotated[int, Option("Changed words that matter most.", least=1)] = 3
    rule: Annotated[
        Literal["score", "paper", "frontier"],
        Option(
            "Picks by score (mean CR@0 to CR@at), by paper (median radius); frontier: all of it."
        ),
    ] = "score"
    output: Annotated[Path | None, Option("JSON file; resumed if it exists.", group="Output")] = (
        None
    )
    svg: Annotated[Path | None, Option("SVG file for the picture.", group="Output")] = None

    def settings(self, model: str, classifier: SmoothedClassifier, corpus: Corpus) -> list[Setting]:
        """The settings to measure."""
        from ranmask.evaluation.settings import grid, supported_ensembles

        ensembles: Sequence[Ensemble] = self.ensemble
        if not ensembles:
            supported = supported_ensembles(classifier, corpus.texts[0])
            ensembles = list(dict.fromkeys((*supported, classifier.options.ensemble)))
        kept = [Retention(keep=keep) for keep in self.keep]
        return grid(
            classifier.options,
            _own_retention(model, classifier),
            retentions=[*kept, *(Retention(mask_rate=rate) for rate in self.mask_rate)],
            choices=self.family,
            ensembles=ensembles,
            masks=self.masks,
        )

    def picked(self, measured: Sequence[Measured]) -> Measured | None:
        """The setting that the rule chooses."""
        from ranmask.evaluation.tuning import pick

        return pick(measured, self.rule, self.at)


@command(
    TuneCommand,
    ModelChoice,
    ColumnOptions,
    without=("mask_token", "tolerance", "recheck", "keep_columns"),
)
def tune(given: Given) -> None:
    """Measure a model under several settings, and show which are worth choosing.

    Prints accuracy and certified accuracy of each, and the best as options of ranmask certify.
    With --output, the same command again resumes.
    """
    from ranmask.data import load_corpus
    from ranmask.evaluation.tuning import check_families
    from ranmask.smoothing import store
    from ranmask.smoothing.smoothed import SmoothedClassifier

    asked = given.build(TuneCommand)
    if asked.output is not None:
        check_file(asked.output)
    if asked.svg is not None:
        from ranmask.evaluation.frontier_plot import check_plot

        check_plot(asked.svg)
    columns = given.build(ColumnOptions).columns()
    name = given.get("model") or store.DEFAULT_MODEL
    store.check_spelling(name)
    corpus = load_corpus(
        asked.data,
        asked.split,
        columns=columns if columns.wanted else None,
        skip_bad_rows=asked.skip_bad_rows,
    ).take(asked.rows)
    tame_libraries()
    options = given.of(ModelChoice)
    options.pop("model", None)
    # A model that was never smoothed has no keep of its own; which one it is loaded with does not
    # matter, since every setting brings its own.
    classifier = store.load_with_any_keep(name, **options)
    if not isinstance(classifier, SmoothedClassifier):
        raise OptionError(f"{name} is not smoothed by masking words, which is what tune varies")
    classifier.check_certifiable()  # certify would refuse whatever is advised here
    settings = asked.settings(name, classifier, corpus)
    check_families(classifier, corpus.texts, settings)
    say(_rows_used(corpus))
    measured = _measure(classifier, corpus, settings, asked)
    picked = asked.picked(measured)
    show(measured, asked, picked, classifier.labels or corpus.label_names)
    _advise(name, options, measured, asked, picked)
    if asked.svg is not None:
        from ranmask.evaluation.frontier_plot import write_plot

        title = f"{name} on {corpus.name}, {len(corpus.texts):,} {corpus.split} texts"
        write_plot(asked.svg, measured, at=asked.at, picked=picked, title=title)


def _own_retention(model: str, classifier: SmoothedClassifier) -> Retention | None:
    """How many words the model was saved to be shown, None where it does not say."""
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
    asked: TuneCommand,
) -> list[Measured]:
    """Measure what is not in the file yet, and write it there."""
    from ranmask.cli.terminal import progress
    from ranmask.evaluation.tuning import sweep
    from ranmask.evaluation.tuning_file import TuneFile
    from ranmask.runs.task import class_ids

    numbers = class_ids(corpus.label_names, classifier.labels)
    expected = [numbers[label] for label in corpus.labels]
    file = None
    if asked.output is not None:
        described = classifier.description()
        model = {key: described[key] for key in ("base", "labels", "given_tolerance")}
        model |= {"seed": classifier.options.seed, "threat": classifier.options.threat}
        file = TuneFile(asked.output, data=corpus.description(), model=model, settings=settings)
    measured = [] if file is None else list(file.measured)
    if measured:
        say(f"resuming {asked.output} after {len(measured)} of {len(settings)} settings")
    left = settings[len(measured) :]

    def write() -> None:
        if file is not None:
            file.write(measured, at=asked.at, thresholds=asked.threshold, rule=asked.rule)

    texts = len(corpus.texts)
    try:
        pace = Pace(classifier, corpus, left)
        with progress(texts * len(settings), done=texts * len(measured)) as advance:
            for found in sweep(classifier, corpus.texts, expected, left, advance=advance):
                measured.append(found)
                pace.done(found.setting)
                write()
    except KeyboardInterrupt:
        if asked.output is not None:
            say(f"interrupted: the same command resumes {asked.output}")
        raise
    if not left:  # other thresholds, perhaps
        write()
    return measured


class Pace:
    """Says what the settings will cost before the first, and how far it is after each.

    On a terminal a bar shows the second.
    """

    def __init__(
        self, classifier: SmoothedClassifier, corpus: Corpus, settings: Sequence[Setting]
    ) -> None:
        from ranmask.evaluation.tuning import costs

        self._left: dict[Setting, float] = {}
        found = costs(classifier, corpus.texts, settings) if settings else []
        for cost in found:
            self._left |= dict.fromkeys(cost.settings, cost.seconds / len(cost.settings))
            first, *others = cost.settings
            name = " and ".join([first.name, *(setting.ensemble for setting in others)])
            say(f"{name}: {cost.copies:,} masked copies, about {_duration(cost.seconds)}")
        if found:
            copies = sum(cost.copies for cost in found)
            say(
                f"{len(settings)} settings, {len(corpus.texts):,} texts: {copies:,} copies, about "
                f"{_duration(sum(cost.seconds for cost in found))} in all, as a few texts took; "
                "--rows, --masks and --keep make it less"
            )
        self._started = time.monotonic()

    def done(self, setting: Setting) -> None:
        """One more setting was measured."""
        del self._left[setting]
        if self._left and not sys.stderr.isatty():
            say(
                f"{setting.name}: measured, {_duration(time.monotonic() - self._started)} so far; "
                f"still to go: {len(self._left)} of the settings, about "
                f"{_duration(sum(self._left.values()))}"
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


def show(
    measured: Sequence[Measured],
    asked: TuneCommand,
    picked: Measured | None,
    names: Sequence[str],
) -> None:
    """Print what was measured, by class for the setting that was picked."""
    from ranmask.evaluation.tuning import frontier
    from ranmask.metrics import certified_values, class_lines

    at = asked.at
    best = frontier(measured, at)
    changes = range(1, at + 1)
    figures = ["accuracy", "balanced", "MCB", *(f"CR@{d}" for d in changes), "s/text"]
    print_table(
        ["setting", *figures, "frontier"],
        [
            [
                found.setting.name,
                _share(found.summary.accuracy),
                _share(found.summary.classes.balanced),
                _median(found),
                *(_share(found.summary.certified_accuracy(d)) for d in changes),
                f"{found.seconds:.2g}",
                "*" if found in best else "",
            ]
            for found in measured
        ],
    )
    _print(
        f"MCB: median radius.  CR@d: right, and proved to stay so whichever d words are changed.\n"
        f"*: nothing here has more accuracy without less CR@{at}, or the other way round.\n"
        f"balanced: mean recall of the classes.  Naming the largest class for every text has "
        f"accuracy {_share(measured[0].summary.classes.majority)}."
    )
    if picked is None:
        return
    _print(f"\n{picked.setting.name}, by class:")
    for line in class_lines(certified_values(picked.summary, names)["classes"]):
        _print(line)
    if not picked.summary.beats_majority():
        _print(
            "warning: it is no more accurate than naming the largest class for every text: "
            "its radii say nothing of what it has learned"
        )
    _print(f"\nIf {picked.setting.name} answers only where the radius reaches a threshold:")
    answers = [picked.abstention(threshold, at) for threshold in asked.threshold]
    print_table(
        ["threshold", "answered", "right of those", f"stays@{at}", f"never wrong@{at}"],
        [
            [
                str(found.threshold),
                _share(found.coverage),
                "N/A" if found.accuracy is None else _share(found.accuracy),
                _share(found.certified_accuracy[at]),
                _share(found.never_wrong[at]),
            ]
            for found in answers
        ],
    )
    # Outputs that move when they are computed again may cost an answer, though never a label.
    but = ", but for votes as near as the tolerance" if picked.tolerance else ""
    _print(
        f"stays@{at}: of all texts, answered right whichever {at} words are changed{but}.\n"
        f"never wrong@{at}: answered right, or not at all."
    )


def _advise(
    model: str,
    options: dict[str, Any],
    measured: Sequence[Measured],
    asked: TuneCommand,
    picked: Measured | None,
) -> None:
    """The chosen settings as commands."""
    from ranmask.evaluation.tuning import frontier

    if picked is None:
        chosen = frontier(measured, asked.at)
        _print("\nOn the frontier:")
    else:
        chosen = [picked]
        figure = f"largest mean of CR@0 to CR@{asked.at}, {_share(picked.score(asked.at))}"
        if asked.rule == "paper":
            figure = f"largest median radius, {_median(picked)}"
        _print(f"\nPicked by --rule {asked.rule} ({figure}):")
    more = [
        part
        for name, value in options.items()
        for part in (f"--{name}", ",".join(value) if isinstance(value, tuple) else str(value))
    ]
    for found in chosen:
        command = ["ranmask", "certify", "--model", model, *found.setting.flags, *more]
        _print(shlex.join(command))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns, the first to the left and the others to the right; coloured on a terminal."""
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            first, *others = zip(row, widths, strict=True)
            cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
            _print("  ".join(cells).rstrip())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left", no_wrap=not place)
    for row in rows:
        table.add_row(*row, style="bold" if row[-1] == "*" else None)
    Console().print(table)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _share(value: Fraction) -> str:
    return f"{float(value):.3f}"


def _median(found: Measured) -> str:
    return "N/A" if found.summary.median_radius is None else str(found.summary.median_radius)

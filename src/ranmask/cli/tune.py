"""``ranmask tune``: parse, call, print."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ranmask.certificates.kept import FamilyChoice, Retention
from ranmask.cli.command import Given, command
from ranmask.cli.options import DATA, SKIP_BAD_ROWS, ColumnOptions, ModelChoice, PositiveOption
from ranmask.cli.terminal import progress, resumed_later, say
from ranmask.data import Corpus, load_corpus
from ranmask.errors import OptionError
from ranmask.models.imports import is_import_name
from ranmask.options import Ensemble
from ranmask.options.fields import Checked, option
from ranmask.results.files import check_file, write_file
from ranmask.training.protect_options import GIVE_UP, WORDS

if TYPE_CHECKING:
    from ranmask.evaluation.settings import Setting
    from ranmask.evaluation.tuning import Measured
    from ranmask.smoothing.smoothed import SmoothedClassifier


@dataclass(frozen=True, kw_only=True)
class TuneCommand(Checked, group="Settings"):
    """Which settings are measured, on what, and how one is picked."""

    data: str | None = DATA(unset="none, for a folder of ranmask protect")
    split: str = option(
        "Part of the corpus: validation is what training does not learn from. all: every row "
        "of a file that the model has not learned from.",
        "validation",
    )
    rows: int = option("Only the first rows of it.", 500, least=1)
    skip_bad_rows: bool = SKIP_BAD_ROWS(False)
    keep: tuple[int, ...] = option(
        "Words that copies show, as 1,2,3.", (), unset="the model's, one less, one more", least=1
    )
    mask_rate: tuple[float, ...] = option("And shares hidden, as 0.8,0.9.", (), least=0, below=1)
    family: tuple[FamilyChoice, ...] = option(
        "auto, all, sampled, windows, distinct: some.", (), unset="the model's"
    )
    ensemble: tuple[Ensemble, ...] = option(
        "vote, score, logit: some.", (), unset="all that suit the model"
    )
    masks: int | None = option("Most copies a text.", unset="the model's", least=1)
    threshold: tuple[int, ...] = option(
        "Radii below which no answer is given.", (0, 1, 2, 3), least=0
    )
    at: int = option("Changed words that matter most.", 3, least=1)
    rule: Literal["score", "paper", "frontier"] = option(
        "Picks by score (mean CR@0 to CR@at), by paper (median radius); frontier: all of it.",
        "score",
    )
    output: Path | None = option("JSON file; resumed if it exists.", group="Output")
    svg: Path | None = option("SVG file for the picture.", group="Output")


@dataclass(frozen=True, kw_only=True)
class ChoiceCommand(Checked, group="A folder of ranmask protect"):
    """How the weight of a protected model is chosen anew."""

    words: tuple[int, ...] | None = WORDS(unset="as before", group="A folder of ranmask protect")
    give_up: float | None = GIVE_UP(unset="as before", group="A folder of ranmask protect")
    save: bool = option("Give the model the weights that are chosen.", False)


@command(
    TuneCommand,
    ChoiceCommand,
    ModelChoice,
    ColumnOptions,
    PositiveOption,
    without=("mask_token", "tolerance", "recheck", "keep_columns"),
)
def tune(given: Given) -> None:
    """Measure a model under several settings, and show which are worth choosing.

    Prints accuracy and certified accuracy of each, and the best as options of ranmask certify.
    With --output, the same command again resumes.  A folder of ranmask protect needs no data: its
    choice is drawn again, by --give-up and --words, and the model is not asked.

    Example: ranmask tune --model my-table --data mails.csv
    """
    from ranmask.cli.tune_printing import advise, print_positive, show
    from ranmask.evaluation.tuning import SYMMETRIC, check_families, frontier, pick
    from ranmask.evaluation.tuning_file import figures
    from ranmask.runs.task import class_number
    from ranmask.smoothing import store
    from ranmask.smoothing.smoothed import SmoothedClassifier

    asked = given.build(TuneCommand)
    if asked.data is None:
        _choose_anew(given)
        return
    given.refuse(given.of(ChoiceCommand), "with --data")
    if asked.output is not None:
        check_file(asked.output)
    if asked.svg is not None:
        from ranmask.evaluation.frontier_plot import check_plot, plot_svg

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
    options = given.of(ModelChoice)
    options.pop("model", None)
    # A model that was never smoothed has no keep of its own; which one it is loaded with does not
    # matter, since every setting brings its own.
    classifier = store.load_with_any_keep(name, **options)
    if not isinstance(classifier, SmoothedClassifier):
        raise OptionError(f"{name} is not smoothed by masking words, which is what tune varies")
    classifier.check_certifiable()  # certify would refuse whatever is advised here
    threat = classifier.options.threat
    if threat not in SYMMETRIC:
        say(f"measured against substitutions; certify shows what {name} proves against {threat}")
        threat = "substitutions"
    classifier = classifier.with_options(threat=threat, threats=None)
    settings = _settings(asked, name, classifier, corpus)
    check_families(classifier, corpus.texts, settings)
    say(_rows_used(corpus))
    names = classifier.labels or tuple(corpus.label_names)
    positive = None if "positive" not in given else class_number(given["positive"], names)
    measured = _measure(classifier, corpus, settings, asked, positive)
    at, picked = asked.at, pick(measured, asked.rule, asked.at)
    found = figures(measured, at=at, thresholds=asked.threshold, rule=asked.rule, names=names)
    show(measured, picked, found)
    if positive is not None:
        print_positive(measured, names[positive], at)
    advise(name, options, [picked] if picked else frontier(measured, at), found)
    if asked.svg is not None:
        title = f"{name} on {corpus.name}, {len(corpus.texts):,} {corpus.split} texts"
        write_file(asked.svg, plot_svg(measured, at=at, picked=picked, title=title))


def _choose_anew(given: Given) -> None:
    """Other weights for a protected model, from what was measured of it."""
    from ranmask.cli.choice_printing import PICTURE, show_choice, write_picture
    from ranmask.training.protecting import save_choice
    from ranmask.training.protection import RECORD, read_protection

    asked, name = given.build(ChoiceCommand), given.get("model")
    if name is None or not (Path(name) / RECORD).is_file():
        raise OptionError(
            "tune needs --data, the texts to measure on; only a folder that `ranmask protect` "
            "wrote has its measurements with it"
        )
    given.refuse(
        given.keys() - {"model", "svg", "words", "give_up", "save"},
        "without --data, for a folder of ranmask protect",
    )
    folder = Path(name)
    protection = read_protection(folder).redrawn(asked.words, asked.give_up)
    if asked.save:
        (folder / PICTURE).unlink(missing_ok=True)  # none rather than a wrong one
        save_choice(folder, protection)
        write_picture(folder / PICTURE, protection)
    if (svg := given.get("svg")) is not None:
        write_picture(svg, protection)
    show_choice(protection, name, saved=asked.save)


def _settings(
    asked: TuneCommand, model: str, classifier: SmoothedClassifier, corpus: Corpus
) -> list[Setting]:
    """The settings to measure; by default near what the model was saved with, if it says so."""
    from ranmask.evaluation.settings import grid, supported_ensembles
    from ranmask.models.pretrained import saved_options
    from ranmask.smoothing import store

    saved = {}
    if not is_import_name(model):
        place = str(store.shipped_folder(model)) if model in store.SHIPPED else model
        saved = saved_options(place)
    keep, rate = saved.get("keep"), saved.get("mask_rate")
    supported: Sequence[Ensemble] = ()
    if not asked.ensemble:
        supported = supported_ensembles(classifier, corpus.texts[0])
        supported = list(dict.fromkeys((*supported, classifier.options.ensemble)))
    return grid(
        classifier.options,
        None if keep is None and rate is None else Retention(keep, rate),
        retentions=[
            *(Retention(keep=keep) for keep in asked.keep),
            *(Retention(mask_rate=rate) for rate in asked.mask_rate),
        ],
        choices=asked.family,
        ensembles=asked.ensemble or supported,
        masks=asked.masks,
    )


def _measure(
    classifier: SmoothedClassifier,
    corpus: Corpus,
    settings: Sequence[Setting],
    asked: TuneCommand,
    positive: int | None,
) -> list[Measured]:
    """Measure what is not in the file yet, and write it there."""
    from ranmask.evaluation.tuning import sweep
    from ranmask.evaluation.tuning_file import TuneFile
    from ranmask.runs.cost import about, duration
    from ranmask.runs.task import class_ids

    numbers = class_ids(corpus.label_names, classifier.labels)
    expected = [numbers[label] for label in corpus.labels]
    file = None
    measured: list[Measured] = []
    if asked.output is not None:
        described = classifier.description()
        model = {key: described[key] for key in ("base", "labels", "given_tolerance")}
        model |= {"seed": classifier.options.seed, "threat": classifier.options.threat}
        record: dict[str, Any] = {"data": corpus.description(), "model": model}
        file = TuneFile(asked.output, **record, settings=settings, positive=positive)
        measured = list(file.measured)
    if measured:
        say(f"resuming {asked.output} after {len(measured)} of {len(settings)} settings")
    left = settings[len(measured) :]

    def write() -> None:
        if file is not None:
            file.write(measured, at=asked.at, thresholds=asked.threshold, rule=asked.rule)

    texts = len(corpus.texts)
    with resumed_later(asked.output):
        still = _announce(classifier, corpus, left)
        started = time.monotonic()
        with progress(texts * len(settings), done=texts * len(measured)) as advance:
            how: dict[str, Any] = {"positive": positive, "advance": advance}
            for found in sweep(classifier, corpus.texts, expected, left, **how):
                measured.append(found)
                del still[found.setting]
                if still and not sys.stderr.isatty():  # a terminal has the bar
                    say(
                        f"{found.setting.name}: measured, {duration(time.monotonic() - started)} "
                        f"so far; still to go: {len(still)} of the settings, "
                        f"{about(sum(still.values()))}"
                    )
                write()
    if not left:  # other thresholds, perhaps
        write()
    return measured


def _announce(
    classifier: SmoothedClassifier, corpus: Corpus, settings: Sequence[Setting]
) -> dict[Setting, float]:
    """Say what the settings will cost; returns the seconds of each."""
    from ranmask.evaluation.tuning import costs
    from ranmask.runs.cost import about

    seconds: dict[Setting, float] = {}
    found = costs(classifier, corpus.texts, settings) if settings else []
    for cost in found:
        seconds |= dict.fromkeys(cost.settings, cost.seconds / len(cost.settings))
        first, *others = cost.settings
        name = " and ".join([first.name, *(setting.ensemble for setting in others)])
        say(f"{name}: {cost.copies:,} masked copies, {about(cost.seconds)}")
    if found:
        copies = sum(cost.copies for cost in found)
        say(
            f"{len(settings)} settings, {len(corpus.texts):,} texts: {copies:,} copies, "
            f"{about(sum(cost.seconds for cost in found))} in all, as a few texts took; "
            "--rows, --masks and --keep make it less"
        )
    return seconds


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

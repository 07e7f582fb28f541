"""``ranmask train``: parse, call, print."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ranmask.cli.command import Given, command
from ranmask.cli.loading import resources_for
from ranmask.cli.options import DATA, SKIP_BAD_ROWS, ColumnOptions, ResourceOptions
from ranmask.cli.terminal import progress, resumed_later
from ranmask.cli.training_log import TrainingLog
from ranmask.data import Corpus, joined, load_corpus, load_splits
from ranmask.data.rows import Columns
from ranmask.errors import OptionError
from ranmask.options import DEVICE, LABELS
from ranmask.options.fields import REQUIRED, Checked, option, option_fields
from ranmask.training.defence_options import DEFENCES, AugmentOptions
from ranmask.training.detector_options import DetectorTraining
from ranmask.training.options import WHOLE_TEXTS, MlmOptions, TrainingOptions
from ranmask.training.shared_options import MASKS, VOTES
from ranmask.training.table_options import WordTableOptions

if TYPE_CHECKING:
    from ranmask.training.defence import Defence

_KINDS: dict[str, type] = {
    kind.KIND: kind for kind in (TrainingOptions, WordTableOptions, MlmOptions)
}
_DEFAULT_DEFENCE = "ranmask"
_DEFENCES: dict[str, type] = {kind.KIND: kind for kind in DEFENCES}
_OF_SYNONYMS = ("hotflip", "dne", "safer")  # defences that read a table of neighbours
_BELOW_MAJORITY = 4
"""The exit code of a finished training that has learned nothing, where that was asked for."""


@dataclass(frozen=True, kw_only=True)
class TrainCommand(Checked, group="Model and data"):
    """What ``ranmask train`` trains, and on what."""

    data: str = DATA(REQUIRED)
    output: Path = option("Folder for the model; resumed if it exists.", REQUIRED)
    kind: Literal["encoder", "words", "mlm"] = option(
        "words: a table of word scores; mlm: a masked language model, for attacks.", "encoder"
    )
    base: str | None = option("Folder or hub id of the encoder to start from.")
    defence: str | None = option(
        "none, ranmask, pgd, freelb, hotflip, dne, augment or safer; ranmask+freelb and the "
        "like do both.",
        unset=_DEFAULT_DEFENCE,
        group="Defences",
    )
    validation: str | None = option("Texts to choose by.", unset="its own, or carved")
    also: tuple[str, ...] = option("More training texts, of the same classes.", (), repeated=True)
    rows: int | None = option("Use only so many rows.", unset="all", least=1)
    held_out: int | None = option("Only the first rows of validation.", unset="all", least=1)
    labels: tuple[str, ...] | None = LABELS()
    skip_bad_rows: bool = SKIP_BAD_ROWS(False)
    fail_below_majority: bool = option(
        "Exit code 4 if it does not beat naming the largest class always.", False
    )
    device: str | None = DEVICE()

    def corpora(self, columns: Columns, *, by_text: bool = False) -> tuple[Corpus, Corpus]:
        """What is learned from, and what is held out; ``by_text`` as in `load_splits`."""
        wanted = columns if columns.wanted else None
        how: dict[str, Any] = {"columns": wanted, "skip_bad_rows": self.skip_bad_rows}
        learned, held_out = load_splits(
            self.data,
            validation=self.validation,
            label_names=self.labels and list(self.labels),
            by_text=by_text,
            **how,
        )
        for name in self.also:
            how["columns"] = replace(columns, keep=()) if Path(name).exists() else None
            # All of a file.
            for part in ("train", "validation") if Path(name).is_file() else ("train",):
                more = load_corpus(name, part, label_names=learned.label_names, **how)
                learned = joined(learned, more, without=held_out)
        return learned.take(self.rows), held_out.take(self.held_out)


_COMMON = (TrainCommand, ColumnOptions, TrainingOptions)


@command(
    TrainCommand,
    *_KINDS.values(),
    DetectorTraining,
    *DEFENCES,
    ResourceOptions,
    ColumnOptions,
    without=("most_words", "whole_weight", "keep_columns"),
)
def train(given: Given) -> int | None:
    """Train a classifier for certified labels, a defence to compare with, or a masked LM.

    The best checkpoint is the one with the best certified accuracy on validation; of a language
    model, the one with the lowest loss.  The same command again resumes.

    Example: ranmask train --data mails.csv --kind words --output my-table
    """
    asked = given.build(TrainCommand)
    columns = given.build(ColumnOptions).columns()
    because = f"with --kind {asked.kind}"
    if asked.kind != "encoder":
        given.refuse(["defence"], because)
    if asked.kind == "words":
        given.refuse(["base", "device"], because)
    elif asked.base is None:
        instead = ", or train a word table with --kind words" if asked.kind == "encoder" else ""
        raise OptionError(
            f"an {asked.kind} needs a base to start from: name a folder or a hub id with --base"
            f"{instead}"
        )
    if asked.kind == "mlm":
        given.refuse(["fail_below_majority"], because)
    log = TrainingLog(asked.output)
    with resumed_later(asked.output):
        _train(given, asked, columns, log)
    if asked.fail_below_majority and log.beats_majority is False:
        return _BELOW_MAJORITY
    return None


def _train(given: Given, asked: TrainCommand, columns: Columns, log: TrainingLog) -> None:
    if asked.kind == "words" and given.get("monotone"):
        _train_detector(given, asked, columns, log)
        return
    of_encoders = (*DEFENCES, ResourceOptions) if asked.kind == "encoder" else ()
    known = (TrainCommand, ColumnOptions, _KINDS[asked.kind], *of_encoders)
    given.refuse_others(*known, because=f"with --kind {asked.kind}")
    how: dict[str, Any] = {"report": log, "device": asked.device}
    options: Any
    if asked.kind == "encoder":
        how["defence"], options = defended(
            given, _DEFAULT_DEFENCE if asked.defence is None else asked.defence
        )
    else:
        options = given.build(_KINDS[asked.kind])
    partitioned = asked.kind == "words" and options.partitions is not None
    if partitioned:
        because = "with --partitions, where every row is to stand for itself"
        given.refuse(["rows", "also"], because)
    learned, held_out = asked.corpora(columns, by_text=partitioned)
    if partitioned:
        from ranmask.training.partitions import train_partitions

        train_partitions(learned, held_out, asked.output, options, report=log)
    elif asked.kind == "words":
        from ranmask.training.word_table import train_words

        train_words(learned, held_out, asked.output, options, report=log)
    elif asked.kind == "mlm":
        from ranmask.training.mlm import train_mlm

        train_mlm(str(asked.base), learned, held_out, asked.output, options, **how)
    else:
        from ranmask.training.encoder import train_encoder

        if how["defence"].name == "augment":
            learned = _augmented(given, asked, options, learned, held_out)
        train_encoder(str(asked.base), learned, held_out, asked.output, options, **how)


def _train_detector(given: Given, asked: TrainCommand, columns: Columns, log: TrainingLog) -> None:
    known = (TrainCommand, ColumnOptions, DetectorTraining)
    given.refuse_others(*known, because="with --monotone")
    given.refuse(["fail_below_majority"], "with --monotone")
    options = given.build(DetectorTraining)
    from ranmask.training.detector import train_detector

    if options.by is not None:
        columns = replace(columns, keep=(options.by,))
    learned, held_out = asked.corpora(columns)
    train_detector(learned, held_out, asked.output, options, report=log)


def defended(given: Given, name: str) -> tuple[Defence, TrainingOptions]:
    """A defence and how it is trained; options that mean nothing with it are refused."""
    from ranmask.training.defences import build, parts_of

    masked, own = parts_of(name)
    taken = given.of(_DEFENCES[own]) if own in _DEFENCES else {}
    if own in _OF_SYNONYMS and "neighbours" in given:
        taken["neighbours"] = given["neighbours"]
    because = f"with --defence {name}"
    if own == "augment":
        given.refuse_others(*_COMMON, AugmentOptions, ResourceOptions, because=because)
        wanted = given.build(AugmentOptions)
        taken = {} if wanted.attacked else {"recipe": wanted.recipe, "share": wanted.share}
    else:
        foreign = given.keys() - taken.keys() - given.of(*_COMMON).keys()
        given.refuse(foreign, because)
    if not masked:
        fields = option_fields(TrainingOptions).items()
        hidden = (name for name, field in fields if field.group in (MASKS, VOTES))
        given.refuse(hidden, f"{because}, which hides no word")
        # The folder of SAFER keeps how many copies it certifies with; it certifies votes alone.
        added = ("ensemble",) if own == "safer" else ("ensemble", "masks")
        given.refuse(added, f"{because}, which adds up no scores")
    whole = {} if masked else WHOLE_TEXTS | ({"ensemble": "vote"} if own == "safer" else {})
    options = TrainingOptions(**{**whole, **given.of(TrainingOptions)})
    return build(name, taken), options


def _augmented(
    given: Given,
    asked: TrainCommand,
    options: TrainingOptions,
    learned: Corpus,
    held_out: Corpus,
) -> Corpus:
    """The training texts, and those of them that were attacked with success."""
    from ranmask.attacks.recipes import build_recipe, check_names
    from ranmask.runs.task import RunEvents
    from ranmask.training.defences import augment

    where = (str(asked.base), learned, held_out, asked.output, options)
    wanted = given.build(AugmentOptions)
    if wanted.attacked:
        given.refuse(
            given.of(AugmentOptions, ResourceOptions).keys() - {"attacked"},
            "with --attacked, whose texts were attacked already",
        )
        return augment.augmented_corpus(
            *where, None, attacked=[Path(name) for name in wanted.attacked]
        )
    share = _share(wanted.share)
    rows = augment.attacked_rows(learned, without=held_out, share=share, seed=options.seed)
    check_names(wanted.recipe, "ranmask-2021")
    resources = resources_for(wanted.recipe, rows, given, asked.device)
    plan = augment.AttackPlan(build_recipe(wanted.recipe, resources), share, options.seed)
    with progress(len(rows)) as advance:
        return augment.augmented_corpus(
            *where,
            plan,
            victim=wanted.victim,
            report=TrainingLog(augment.beside(asked.output, augment.VICTIM)),
            device=asked.device,
            events=RunEvents(started=lambda rows, done: advance(done), progress=advance),
        )


def _share(given: str) -> Fraction:
    try:
        share = Fraction(given)
    except (ValueError, ZeroDivisionError):
        raise OptionError(
            f"share must be a number, as 0.5 or 1/2, not {given!r}", "share"
        ) from None
    if not 0 < share <= 1:
        raise OptionError(f"share must be above 0 and at most 1, not {given!r}", "share")
    return share

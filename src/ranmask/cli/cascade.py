"""``ranmask cascade``: parse, call, print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranmask.cli.command import Given, command
from ranmask.cli.options import DTYPE, NumberType
from ranmask.cli.terminal import print_lines, resumed_later, say
from ranmask.cli.training_log import TrainingLog
from ranmask.errors import OptionError
from ranmask.metrics import class_lines, class_values
from ranmask.options import DEVICE, CascadeOptions
from ranmask.options.fields import REQUIRED, Checked, option, option_fields
from ranmask.results.files import check_file, write_json
from ranmask.training.options import WHOLE_TEXTS, TrainingOptions

if TYPE_CHECKING:
    from ranmask.evaluation.cascade_report import CascadeReport

_ATTACKED = "File that `ranmask attack --output` wrote; several."


@dataclass(frozen=True, kw_only=True)
class DetectorCommand(Checked, group="Model and data"):
    """What a detector learns from."""

    attacked: tuple[str, ...] = option(_ATTACKED, REQUIRED, repeated=True)
    base: str = option("Folder or hub id of the encoder to start from.", REQUIRED)
    output: Path = option("Folder for the model; resumed if it exists.", REQUIRED)
    rows: int | None = option("Use only so many rows.", unset="all", least=1)
    device: str | None = DEVICE()


_SHARED = {
    *("epochs", "batch_size", "learning_rate", "patience"),
    *("evaluate_every", "validation_rows", "layers", "seed"),
}


@command(DetectorCommand, TrainingOptions, without=option_fields(TrainingOptions).keys() - _SHARED)
def detector(given: Given) -> None:
    """Train a detector: which texts were attacked?

    It learns from texts before and after successful attacks.  Attack training texts for it, and
    keep those that the cascade is measured on apart.  The same command again resumes.
    """
    from ranmask.attacks.adversarial_data import detector_corpora, read_attacked
    from ranmask.training.encoder import train_encoder

    asked = given.build(DetectorCommand)
    options = TrainingOptions(**{**WHOLE_TEXTS, **given.of(TrainingOptions)})
    learned, held_out = detector_corpora(read_attacked([Path(path) for path in asked.attacked]))
    log, learned = TrainingLog(asked.output), learned.take(asked.rows)
    how = (learned, held_out, asked.output, options)
    with resumed_later(asked.output):
        train_encoder(asked.base, *how, report=log, device=asked.device)


def build(
    plain: Annotated[str, Parameter(help="Folder of the plain model, for clean texts.")],
    smoothed: Annotated[str, Parameter(help="Folder of the smoothed model, for the others.")],
    detector: Annotated[str, Parameter(help="Folder of the detector.")],
    /,
    *,
    output: Annotated[Path, Parameter(help="Folder for the cascade.")],
    threshold: Annotated[
        float, Parameter(help="Suspicion above which a text is taken for attacked.")
    ] = CascadeOptions.threshold,
) -> None:
    """Copy three models into one folder: a cascade, which as a whole carries no certificate."""
    from ranmask.smoothing.store import cascade_folders

    cascade_folders(plain, smoothed, detector, output, threshold)
    say(f"{output}: a cascade, threshold {threshold:g}")


@dataclass(frozen=True, kw_only=True)
class ReportCommand(Checked):
    """Which cascade is measured, and on what."""

    model: str = option("Folder of a cascade.", REQUIRED, short="m")
    attacked: tuple[str, ...] = option(_ATTACKED, REQUIRED, repeated=True)
    output: Path | None = option("JSON file for the report.")
    certify: bool = option("Also certify the texts.", True)
    device: str | None = DEVICE()
    dtype: NumberType | None = DTYPE()


@command(ReportCommand)
def report(given: Given) -> None:
    """Measure a cascade on texts that were attacked, none of which it was trained on.

    The attack is the file's, made for its own victim.  To attack the cascade itself, as a whole:
    ranmask attack --model FOLDER.
    """
    from ranmask.attacks.adversarial_data import read_attacked
    from ranmask.evaluation.cascade_report import measure
    from ranmask.smoothing.cascade import Cascade
    from ranmask.smoothing.store import load_classifier

    asked = given.build(ReportCommand)
    found = read_attacked([Path(path) for path in asked.attacked])
    if asked.output is not None:
        check_file(asked.output)
    cascade = load_classifier(asked.model, device=asked.device, dtype=asked.dtype)
    if not isinstance(cascade, Cascade):
        raise OptionError(f"{asked.model} is not a cascade: make one with `ranmask cascade build`")
    if asked.certify:
        cascade.check_certifiable()  # told before anything is measured
    measured = measure(cascade, found.outcomes, certified=asked.certify)
    if asked.output is not None:
        about = {"model": cascade.description(), "recipes": list(found.recipes)}
        write_json(asked.output, {**measured.to_dict(), "about": about})
    _print_report(measured)


def _print_report(report: CascadeReport) -> None:
    """Accuracies with their intervals, the paths taken, the detector, what is proved."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("", style="bold")
    for heading in ("clean accuracy", "balanced", "under the transferred attack"):
        table.add_column(heading, justify="right")
    for name in ("plain", "smoothed", "cascade"):
        accuracy = getattr(report, name)
        table.add_row(
            name,
            _share(accuracy.clean, report.texts),
            f"{float(100 * report.clean_classes(name).balanced):.1f}%",
            _share(accuracy.robust, report.texts),
        )
    console.print(table)
    shown = report.clean_classes("cascade")
    by_class = {"clean": shown, "attacked": report.robust_classes("cascade")}
    lines = [
        f"majority class alone {float(100 * shown.majority):.1f}%; the cascade's recall by class:",
        *class_lines(class_values(by_class, report.class_names)),
        f"{report.texts} texts: {report.succeeded} attacked with success, {report.failed} without, "
        f"{report.skipped} wrong before (counted as wrong under the attack)",
        f"smoothed path, above {report.threshold:g}: of clean texts "
        f"{_share(report.clean_paths.smoothed, report.clean_paths.texts)}, of attacked texts "
        f"{_share(report.attacked_paths.smoothed, report.attacked_paths.texts)}",
    ]
    if report.roc is not None:
        lines.append(f"detector: AUC {float(report.roc.area):.3f}")
    if report.proved is not None:
        lines.append(
            f"certified variant: label right {_share(report.proved.right, report.texts)}; proved "
            f"harmless {_share(report.proved.harmless, report.succeeded)} of the successful attacks"
        )
    lines.append(
        "the cascade as a whole carries no certificate; against an attacker who asks it: "
        "ranmask attack --model CASCADE"
    )
    print_lines(console, *lines)


def _share(part: int, whole: int) -> str:
    from ranmask.evaluation.intervals import wilson_interval

    if not whole:
        return "none"
    low, high = (100 * end for end in wilson_interval(part, whole))
    return f"{100 * part / whole:.1f}% ({low:.1f} to {high:.1f})"

"""``ranmask cascade``: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranmask.cli import train_options as option
from ranmask.cli.options import Device, Dtype, Seed, tame_libraries
from ranmask.cli.train_printing import TrainingLog
from ranmask.errors import OptionError
from ranmask.results.files import check_file, write_json

AttackedFiles = Annotated[
    list[Path],
    typer.Option(
        "--attacked", help="File that `ranmask attack --output` wrote; several.", show_default=False
    ),
]


def detector(
    attacked: AttackedFiles,
    base: Annotated[
        str, typer.Option(help="Folder or hub id of the encoder to start from.", show_default=False)
    ],
    output: option.ModelFolder,
    rows: option.Rows = None,
    epochs: option.Epochs = None,
    batch_size: option.BatchSize = None,
    learning_rate: option.LearningRate = None,
    patience: option.Patience = None,
    evaluate_every: option.EvaluateEvery = None,
    validation_rows: option.ValidationRows = None,
    layers: option.Layers = None,
    seed: Seed = None,
    device: Device = None,
) -> None:
    """Train a detector: which texts were attacked?

    It learns from texts before and after successful attacks.  Attack training texts for it, and
    keep those that the cascade is measured on apart.  The same command again resumes.
    """
    given = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "patience": patience,
        "evaluate_every": evaluate_every,
        "validation_rows": validation_rows,
        "layers": layers,
        "seed": seed,
    }
    tame_libraries()
    from ranmask.attacks.adversarial_data import detector_corpora, read_attacked
    from ranmask.training.encoder import train_encoder
    from ranmask.training.options import WHOLE_TEXTS, TrainingOptions

    chosen = {name: value for name, value in given.items() if value is not None}
    options = TrainingOptions(**{**WHOLE_TEXTS, **chosen})
    learned, held_out = detector_corpora(read_attacked(attacked))
    with TrainingLog(output) as log:
        train_encoder(
            base, learned.take(rows), held_out, output, options, report=log, device=device
        )


def build(
    plain: Annotated[str, typer.Argument(help="Folder of the plain model, for clean texts.")],
    smoothed: Annotated[str, typer.Argument(help="Folder of the smoothed model, for the others.")],
    detector: Annotated[str, typer.Argument(help="Folder of the detector.")],
    output: Annotated[Path, typer.Option(help="Folder for the cascade.", show_default=False)],
    threshold: Annotated[
        float, typer.Option(help="Suspicion above which a text is taken for attacked.")
    ] = 0.5,
) -> None:
    """Copy three models into one folder: a cascade, which as a whole carries no certificate."""
    tame_libraries()
    from ranmask.smoothing.store import cascade_folders

    cascade_folders(plain, smoothed, detector, output, threshold)
    typer.echo(f"{output}: a cascade, threshold {threshold:g}", err=True)


def report(
    model: Annotated[
        str, typer.Option("--model", "-m", help="Folder of a cascade.", show_default=False)
    ],
    attacked: AttackedFiles,
    output: Annotated[
        Path | None, typer.Option(help="JSON file for the report.", show_default=False)
    ] = None,
    certified: Annotated[
        bool, typer.Option("--certify/--no-certify", help="Also certify the texts.")
    ] = True,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Measure a cascade on texts that were attacked, none of which it was trained on.

    The attack is the file's, made for its own victim.  To attack the cascade itself, as a whole:
    ranmask attack --model FOLDER.
    """
    tame_libraries()
    from rich.console import Console

    from ranmask.attacks.adversarial_data import read_attacked
    from ranmask.cli.cascade_printing import print_report
    from ranmask.evaluation.cascade_report import measure
    from ranmask.smoothing.cascade import Cascade
    from ranmask.smoothing.store import load_classifier

    found = read_attacked(attacked)
    if output is not None:
        check_file(output)
    cascade = load_classifier(model, device=device, dtype=dtype)
    if not isinstance(cascade, Cascade):
        raise OptionError(f"{model} is not a cascade: make one with `ranmask cascade build`")
    if certified:
        cascade.check_certifiable()  # told before anything is measured
    measured = measure(cascade, found.outcomes, certified=certified)
    if output is not None:
        about = {"model": cascade.description(), "recipes": list(found.recipes)}
        write_json(output, {**measured.to_dict(), "about": about})
    print_report(Console(), measured)

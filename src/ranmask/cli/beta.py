"""``ranmask beta``: parse, call, print."""

from __future__ import annotations

from typing import Any

from ranmask.cli.inputs import open_input
from ranmask.cli.models import load_masked, masked_smoothing
from ranmask.cli.options import (
    BetaMasks,
    Changed,
    DataName,
    Device,
    Draws,
    Dtype,
    FirstRows,
    Hide,
    Input,
    Keep,
    KeepColumns,
    LabelColumn,
    Labels,
    MaskRate,
    MaskToken,
    Model,
    Output,
    PairColumns,
    Seed,
    SkipBadRows,
    Split,
    TextColumn,
    Texts,
    columns_from,
    names_from,
)
from ranmask.cli.running import classify

_OF_CERTIFICATES = ("certificate", "selection_masks", "alpha")


def beta(
    texts: Texts = None,
    model: Model = None,
    keep: Keep = None,
    mask_rate: MaskRate = None,
    input: Input = None,
    data: DataName = None,
    split: Split = None,
    rows: FirstRows = None,
    skip_bad_rows: SkipBadRows = False,
    output: Output = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_columns: PairColumns = None,
    keep_columns: KeepColumns = None,
    masks: BetaMasks = None,
    draws: Draws = None,
    changed: Changed = None,
    seed: Seed = None,
    labels: Labels = None,
    mask_token: MaskToken = None,
    hide: Hide = None,
    device: Device = None,
    dtype: Dtype = None,
) -> bool:
    """Estimate the paper's beta: how copies that show a changed word vote; this proves nothing.

    Prints JSON lines.  With --output they are appended as they come; the same command again
    resumes.
    """
    from ranmask.runs.result_file import check_result_file
    from ranmask.runs.task import ClassifyTask

    columns = columns_from(text_column, pair_columns, label_column, keep_columns)
    source = open_input(
        *(texts, input, data, split, rows, columns), output=output, skip_bad_rows=skip_bad_rows
    )
    if output is not None:
        check_result_file(output)
    masked_smoothing("beta", model)
    from ranmask.paper.betas import (
        DEFAULT_BETA_MASKS,
        DEFAULT_CHANGED,
        DEFAULT_DRAWS,
        BetaEstimator,
    )

    options: dict[str, Any] = {
        "keep": keep,
        "mask_rate": mask_rate,
        "masks": DEFAULT_BETA_MASKS if masks is None else masks,
        "seed": seed,
        "labels": names_from(labels),
        "mask_token": mask_token,
        "hide": hide,
        "device": device,
        "dtype": dtype,
        # Votes of a random sample, however the model was saved to vote and to be certified.
        "certificate": "ablation",
        "ensemble": "vote",
        "threat": "substitutions",
        "sampling": "fixed",
    }
    smoothed = load_masked(model, options)
    estimator = BetaEstimator(
        smoothed,
        changed=DEFAULT_CHANGED if changed is None else changed,
        draws=DEFAULT_DRAWS if draws is None else draws,
    )
    description = smoothed.description()
    described = {
        **{k: v for k, v in description["options"].items() if k not in _OF_CERTIFICATES},
        "changed": estimator.changed,
        "draws": estimator.draws,
    }
    task = ClassifyTask(
        "beta", smoothed.labels, estimator.estimate, {**description, "options": described}
    )
    return classify(lambda: task, source, output)

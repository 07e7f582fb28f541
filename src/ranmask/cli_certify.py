"""``ranmask certify`` and ``ranmask predict``: parse, call, print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranmask.cli_inputs import open_input
from ranmask.cli_models import load_masked, masked_smoothing
from ranmask.cli_options import (
    Alpha,
    AsJson,
    CertificateOption,
    Compare,
    Copies,
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
from ranmask.cli_running import Task, check_output, run_task
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ranmask.interface import TextClassifier
    from ranmask.results import Comparison, ShownCertificate
    from ranmask.words import Text


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
    compare: Compare = False,
    copies: Copies = None,
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
) -> bool:
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
    columns = columns_from(text_column, pair_columns, label_column)
    source = open_input(texts, input, data, split, rows, columns)
    check_output(output, source)
    if compare:
        task = _comparing(model, options, copies)
    elif copies is not None:
        task = _showing(model, options, copies)
    else:
        task = _certifying(model, options)
    return run_task(task, source, output, as_json)


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
) -> bool:
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
    columns = columns_from(text_column, pair_columns, label_column)
    source = open_input(texts, input, data, split, rows, columns)
    options["word_losses"] = word_losses_from(lm, sampling, device)
    check_output(output, source)
    classifier = _load(model, options)
    task = Task("predict", classifier.labels, classifier.predict, classifier.description())
    return run_task(task, source, output, as_json)


def _load(model: str | None, options: dict[str, Any]) -> TextClassifier:
    quiet_libraries()
    from ranmask.loading import DEFAULT_MODEL, load_classifier

    return load_classifier(model or DEFAULT_MODEL, **options)


def _certifying(model: str | None, options: dict[str, Any]) -> Task:
    classifier = _load(model, options)
    classifier.check_certifiable()  # told once, not for every row
    return Task("certify", classifier.labels, classifier.certify, classifier.description())


def _comparing(model: str | None, options: dict[str, Any], copies: int | None) -> Task:
    """Several certificates of the same votes, where nothing else that was asked forbids it."""
    if copies is not None:
        raise OptionError(f"--copies {copies} does not go with --compare: ask for one of them")
    for name in ("certificate", "family"):
        if options[name] is not None:
            raise OptionError(
                f"--{name} {options[name]} means nothing with --compare, which reads one random "
                "sample of copies by four certificates: leave one of the two out"
            )
    saved = masked_smoothing("--compare", model)
    for name, needed in (("ensemble", "vote"), ("threat", "substitutions")):
        value = options[name] or saved.get(name, needed)
        if value != needed:
            raise OptionError(
                f"--compare needs --{name} {needed}, not {value!r}: the other certificates know "
                "nothing else"
            )
    from ranmask.families import check_fixed

    check_fixed(saved.get("sampling", "fixed"))
    # Any certificate that samples: the options are then those of samples, with their defaults.
    smoothed = load_masked(model, {**options, "certificate": "ablation"})
    from ranmask.results import Comparison
    from ranmask.smoothing import COMPARED

    def classify(texts: Sequence[Text]) -> list[Comparison]:
        return [Comparison.of(kinds) for kinds in smoothed.compare(texts, COMPARED)]

    description = smoothed.description()
    described = {**description["options"], "compare": list(COMPARED)}
    del described["certificate"]
    return Task("certify", smoothed.labels, classify, {**description, "options": described})


def _showing(model: str | None, options: dict[str, Any], copies: int) -> Task:
    """The exact certificate, and some of the copies that it rests on."""
    masked_smoothing("--copies", model)
    smoothed = load_masked(model, options)

    def classify(texts: Sequence[Text]) -> list[ShownCertificate]:
        return smoothed.certify_showing(texts, copies)

    classify([])  # what is wrong with the options is told once, not for every row
    description = smoothed.description()
    described = {**description["options"], "copies": copies}
    return Task("certify", smoothed.labels, classify, {**description, "options": described})

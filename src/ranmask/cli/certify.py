"""``ranmask certify`` and ``ranmask predict``: parse, call, print."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ranmask.cli.inputs import open_input
from ranmask.cli.models import load_masked, masked_smoothing
from ranmask.cli.options import (
    Address,
    Alpha,
    AsJson,
    CertificateOption,
    Compare,
    Copies,
    CpusPerWorker,
    DataName,
    Device,
    Dtype,
    EngineName,
    Ensemble,
    Family,
    FirstRows,
    GpusPerWorker,
    Hide,
    Input,
    Keep,
    KeepColumns,
    LabelColumn,
    Labels,
    LanguageModel,
    MaskRate,
    Masks,
    MaskToken,
    Model,
    Output,
    PairColumns,
    Recheck,
    Sampling,
    Seed,
    SelectionMasks,
    ShardRows,
    SkipBadRows,
    Split,
    TextColumn,
    Texts,
    Threat,
    Tolerance,
    Workers,
    columns_from,
    names_from,
    tame_libraries,
    word_losses_from,
)
from ranmask.cli.running import classify, sharding_from
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ranmask.results import Comparison, ShownCertificate
    from ranmask.runs.task import ClassifyTask
    from ranmask.smoothing.interface import CertifiedClassifier
    from ranmask.words import Text

_OF_CERTIFICATES = ("family", "masks", "selection_masks", "ensemble", "threat", "alpha")


def certify(
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
    recheck: Recheck = None,
    device: Device = None,
    dtype: Dtype = None,
    shard_rows: ShardRows = None,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    as_json: AsJson = False,
) -> bool:
    """Label texts, and prove how many words can be changed, to anything, without effect.

    With --input and --output, results are appended as they come; the same command again resumes.
    """
    sharding = sharding_from(
        *(shard_rows, engine, workers, address, cpus_per_worker, gpus_per_worker), output=output
    )
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
        "recheck": recheck,
        "device": device,
        "dtype": dtype,
    }
    columns = columns_from(text_column, pair_columns, label_column, keep_columns)
    source = open_input(
        *(texts, input, data, split, rows, columns), output=output, skip_bad_rows=skip_bad_rows
    )
    make = partial(_certify_task, model, options, compare, copies)
    return classify(make, source, output, sharding=sharding, as_json=as_json)


def predict(
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
    family: Family = None,
    masks: Masks = None,
    ensemble: Ensemble = None,
    sampling: Sampling = None,
    lm: LanguageModel = None,
    seed: Seed = None,
    labels: Labels = None,
    mask_token: MaskToken = None,
    hide: Hide = None,
    recheck: Recheck = None,
    device: Device = None,
    dtype: Dtype = None,
    shard_rows: ShardRows = None,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    as_json: AsJson = False,
) -> bool:
    """Label texts by the vote of their masked copies, without a certificate."""
    sharding = sharding_from(
        *(shard_rows, engine, workers, address, cpus_per_worker, gpus_per_worker), output=output
    )
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
        "recheck": recheck,
        "device": device,
        "dtype": dtype,
    }
    columns = columns_from(text_column, pair_columns, label_column, keep_columns)
    source = open_input(
        *(texts, input, data, split, rows, columns), output=output, skip_bad_rows=skip_bad_rows
    )
    make = partial(_predict_task, model, options, lm)
    return classify(make, source, output, sharding=sharding, as_json=as_json)


def _certify_task(
    model: str | None, options: dict[str, Any], compare: bool, copies: int | None
) -> ClassifyTask:
    if compare:
        return _comparing(model, options, copies)
    if copies is not None:
        return _showing(model, options, copies)
    return _certifying(model, options)


def _predict_task(model: str | None, options: dict[str, Any], lm: str | None) -> ClassifyTask:
    from ranmask.runs.task import ClassifyTask

    losses = word_losses_from(lm, options["sampling"], options["device"])
    classifier = _load(model, {**options, "word_losses": losses})
    return ClassifyTask("predict", classifier.labels, classifier.predict, classifier.description())


def _load(model: str | None, options: dict[str, Any]) -> CertifiedClassifier:
    tame_libraries()
    from ranmask.smoothing.store import DEFAULT_MODEL, load_classifier

    return load_classifier(model or DEFAULT_MODEL, **options)


def _certifying(model: str | None, options: dict[str, Any]) -> ClassifyTask:
    from ranmask.runs.task import ClassifyTask

    classifier = _load(model, options)
    classifier.check_certifiable()  # told once, not for every row
    return ClassifyTask("certify", classifier.labels, classifier.certify, classifier.description())


def _comparing(model: str | None, options: dict[str, Any], copies: int | None) -> ClassifyTask:
    """Several certificates, each as `certify --certificate` gives it with the same options."""
    if copies is not None:
        raise OptionError(f"--copies {copies} does not go with --compare: ask for one of them")
    if options["certificate"] is not None:
        raise OptionError(
            f"--certificate {options['certificate']} means nothing with --compare, which shows "
            "four certificates: leave one of the two out"
        )
    saved = masked_smoothing("--compare", model)
    threat = options["threat"] or saved.get("threat", "substitutions")
    if threat != "substitutions":
        raise OptionError(
            f"--compare needs --threat substitutions, not {threat!r}: the other certificates know "
            "nothing else"
        )
    from ranmask.certificates.families import check_fixed

    check_fixed(saved.get("sampling", "fixed"))
    # Loaded as it was saved; `for_certificate` says which options belong to which certificate.
    given = {name: options[name] for name in _OF_CERTIFICATES if options[name] is not None}
    votes = {"ensemble": "vote"} if options["ensemble"] == "vote" else {}
    smoothed = load_masked(model, {**options, **dict.fromkeys(_OF_CERTIFICATES), **votes})
    from ranmask.options import for_certificate
    from ranmask.results import Comparison
    from ranmask.runs.task import ClassifyTask
    from ranmask.smoothing.smoothed import COMPARED

    def compare(texts: Sequence[Text]) -> list[Comparison]:
        return [Comparison.of(kinds) for kinds in smoothed.compare(texts, COMPARED, **given)]

    exact, *others = (smoothed.with_options(**for_certificate(kind, given)) for kind in COMPARED)
    sample = others[0].options.resolved()
    description = exact.description()
    described = {
        **description["options"],
        "compare": list(COMPARED),
        "estimation_masks": sample.masks,
        "selection_masks": sample.selection_masks,
        "alpha": sample.alpha,
    }
    del described["certificate"]
    return ClassifyTask(
        "certify",
        smoothed.labels,
        compare,
        {**description, "options": described},
        compared=COMPARED,
    )


def _showing(model: str | None, options: dict[str, Any], copies: int) -> ClassifyTask:
    """The exact certificate, and some of the copies that it rests on."""
    from ranmask.runs.task import ClassifyTask

    masked_smoothing("--copies", model)
    smoothed = load_masked(model, options)

    def show(texts: Sequence[Text]) -> list[ShownCertificate]:
        return smoothed.certify_showing(texts, copies)

    show([])  # what is wrong with the options is told once, not for every row
    description = smoothed.description()
    described = {**description["options"], "copies": copies}
    return ClassifyTask("certify", smoothed.labels, show, {**description, "options": described})

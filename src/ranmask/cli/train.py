"""``ranmask train``: parse, call, print."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ranmask.cli import defences
from ranmask.cli import train_options as option
from ranmask.cli.attack_options import AttackLm, EncoderSource, StopWordSource, TaggerSource
from ranmask.cli.options import (
    Device,
    Ensemble,
    LabelColumn,
    Labels,
    Masks,
    PairColumns,
    Seed,
    SkipBadRows,
    TextColumn,
    columns_from,
    names_from,
    tame_libraries,
)
from ranmask.cli.train_printing import TrainingLog
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.data import Corpus

_NOT_TRAINING = {
    *("data", "output", "kind", "base", "defence", "validation", "also", "rows", "held_out"),
    *("text_column", "label_column", "pair_columns", "labels", "skip_bad_rows", "device"),
    "fail_below_majority",
}
BELOW_MAJORITY = 4
"""The exit code of a finished training that has learned nothing, where that was asked for."""


def train(
    data: option.Data,
    output: option.ModelFolder,
    kind: option.Kind = "encoder",
    base: option.Base = None,
    defence: option.DefenceName = None,
    keep: option.Keeps = None,
    mask_rate: option.TrainMaskRate = None,
    validation: option.ValidationData = None,
    also: option.Also = None,
    rows: option.Rows = None,
    held_out: option.HeldOut = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_columns: PairColumns = None,
    labels: Labels = None,
    skip_bad_rows: SkipBadRows = False,
    hide: option.TrainHide = None,
    family: option.TrainFamily = None,
    head: option.Head = None,
    epochs: option.Epochs = None,
    copies: option.Copies = None,
    ramp: option.Ramp = None,
    patience: option.Patience = None,
    vote_epochs: option.VoteEpochs = None,
    vote_copies: option.VoteCopies = None,
    vote_loss: option.VoteLossName = None,
    target_words: option.TargetWords = None,
    temperature: option.Temperature = None,
    accuracy_weight: option.AccuracyWeight = None,
    margin: option.Margin = None,
    class_weights: option.ClassWeightsName = None,
    warm_epochs: option.WarmEpochs = None,
    feature_dropout: option.FeatureDropout = None,
    buckets: option.Buckets = None,
    learning_rate: option.LearningRate = None,
    vote_learning_rate: option.VoteLearningRate = None,
    warmup: option.Warmup = None,
    weight_decay: option.WeightDecay = None,
    batch_size: option.BatchSize = None,
    accumulate: option.Accumulate = None,
    gradient_clip: option.GradientClip = None,
    layers: option.Layers = None,
    vocabulary: option.Vocabulary = None,
    longest: option.Longest = None,
    weights: option.Weights = None,
    evaluate_every: option.EvaluateEvery = None,
    validation_rows: option.ValidationRows = None,
    pair_head: option.PairHead = None,
    fail_below_majority: option.FailBelowMajority = False,
    steps: option.Steps = None,
    step_size: option.StepSize = None,
    initial_magnitude: option.InitialMagnitude = None,
    max_norm: option.MaxNorm = None,
    norm: option.NormName = None,
    change_rate: option.ChangeRate = None,
    flips: option.FlipsTo = None,
    hull: option.Hull = None,
    set_size: option.SetSize = None,
    neighbours: option.Neighbours = None,
    attacked: option.Attacked = None,
    victim: option.Victim = None,
    recipe: option.AttackRecipe = None,
    share: option.Share = None,
    tagger: TaggerSource = None,
    stop_words: StopWordSource = None,
    sentence_encoder: EncoderSource = None,
    attack_lm: AttackLm = None,
    ensemble: Ensemble = None,
    masks: Masks = None,
    seed: Seed = None,
    device: Device = None,
) -> None:
    """Train a classifier whose labels can be certified, a rival of it, or a masked language model.

    The best checkpoint is the one with the best certified accuracy on validation; of a language
    model, the one with the lowest loss.  The same command again resumes.
    """
    given = {
        name: value
        for name, value in locals().items()
        if value is not None and name not in _NOT_TRAINING
    }
    if kind not in ("encoder", "words", "mlm"):
        raise OptionError(f"--kind must be encoder, words or mlm, not {kind!r}")
    if kind != "encoder" and defence is not None:
        raise OptionError(f"--defence means nothing with --kind {kind}: leave it out")
    columns = columns_from(text_column, pair_columns, label_column)
    tame_libraries()
    source = (
        *(data, validation, also or [], rows, held_out),
        *(columns, names_from(labels), skip_bad_rows),
    )
    if kind == "words":
        from ranmask.training.word_table import WordTableOptions

        refused = {"base": base, "device": device}
        given |= {name: value for name, value in refused.items() if value is not None}
        table_options = _built(WordTableOptions, given, kind)
        log = _train_words(*_corpora(*source), output, table_options)
        _check_learned(log, fail_below_majority)
        return
    if base is None:
        instead = ", or train a word table with --kind words" if kind == "encoder" else ""
        raise OptionError(
            f"an {kind} needs a base to start from: name a folder or a hub id with --base{instead}"
        )
    if kind == "mlm":
        if fail_below_majority:
            raise OptionError("--fail-below-majority means nothing with --kind mlm: leave it out")
        from ranmask.training.mlm_options import MlmOptions

        mlm_options = _built(MlmOptions, given, kind)
        _train_mlm(base, *_corpora(*source), output, mlm_options, device)
        return
    from ranmask.training.options import TrainingOptions

    if keep is not None:
        given["keep"] = _numbers(keep)
    name = defences.DEFAULT if defence is None else defence
    divided = defences.divided(name, given)
    options = _built(TrainingOptions, divided.training, kind)
    log = _train_encoder(base, *_corpora(*source), output, options, divided, device)
    _check_learned(log, fail_below_majority)


def _check_learned(log: TrainingLog, asked: bool) -> None:
    """End with a code of its own where a model learned nothing; the log has said so."""
    if asked and log.beats_majority is False:
        raise typer.Exit(BELOW_MAJORITY)


def _built(options: Any, given: dict[str, Any], kind: str) -> Any:
    """The options of one kind; those of the others are refused by name."""
    known = {field.name for field in fields(options)}
    for name in given:
        if name not in known:
            flag = "--" + name.replace("_", "-")
            raise OptionError(f"{flag} means nothing with --kind {kind}: leave it out")
    return options(**given)


def _corpora(
    data: str,
    validation: str | None,
    also: list[str],
    rows: int | None,
    held_out_rows: int | None,
    columns: Any,
    names: list[str] | None,
    skip_bad_rows: bool,
) -> tuple[Corpus, Corpus]:
    from ranmask.data import joined, load_corpus, load_splits

    wanted = columns if columns.wanted else None
    learned, held_out = load_splits(
        data,
        validation=validation,
        columns=wanted,
        label_names=names,
        skip_bad_rows=skip_bad_rows,
    )
    for name in also:
        known = learned.label_names
        of_file = wanted if Path(name).exists() else None
        parts = ["train", "validation"] if Path(name).is_file() else ["train"]  # all of a file
        for part in parts:
            more = load_corpus(
                name, part, columns=of_file, label_names=known, skip_bad_rows=skip_bad_rows
            )
            learned = joined(learned, more, without=held_out)
    return learned.take(rows), held_out.take(held_out_rows)


def _train_words(learned: Corpus, held_out: Corpus, output: Path, options: Any) -> TrainingLog:
    from ranmask.training.word_table import train_words

    with TrainingLog(output) as log:
        train_words(learned, held_out, output, options, report=log)
    return log


def _train_encoder(
    base: str,
    learned: Corpus,
    held_out: Corpus,
    output: Path,
    options: Any,
    divided: defences.Divided,
    device: str | None,
) -> TrainingLog:
    from ranmask.training.encoder import train_encoder

    with TrainingLog(output) as log:
        learned = divided.corpus(base, learned, held_out, output, options, device)
        train_encoder(
            base,
            learned,
            held_out,
            output,
            options,
            defence=divided.defence,
            report=log,
            device=device,
        )
    return log


def _train_mlm(
    base: str, learned: Corpus, held_out: Corpus, output: Path, options: Any, device: str | None
) -> None:
    from ranmask.training.mlm import train_mlm

    with TrainingLog(output) as log:
        train_mlm(base, learned, held_out, output, options, report=log, device=device)


def _numbers(keep: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in keep.split(","))
    except ValueError:
        raise OptionError(f"--keep takes whole numbers, as 2 or 1,2,3; not {keep!r}") from None

"""``ranmask attack``: parse, call, print."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranmask.cli import attack_options as option
from ranmask.cli.inputs import open_input
from ranmask.cli.options import (
    Address,
    AsJson,
    CpusPerWorker,
    DataName,
    Device,
    Dtype,
    EngineName,
    Ensemble,
    Family,
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
    ShardRows,
    SkipBadRows,
    Split,
    TextColumn,
    Workers,
    columns_from,
    names_from,
    tame_libraries,
    word_losses_from,
)
from ranmask.cli.resources import resources_for
from ranmask.cli.running import sharding_from, shown_events
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.attacks.loop import AttackLoop
    from ranmask.attacks.outcome import AttackOutcome
    from ranmask.attacks.recipe import Budget
    from ranmask.attacks.summary import AttackSummary
    from ranmask.attacks.victims import Victim
    from ranmask.data.rows import Columns, Row
    from ranmask.data.sources import RowSource
    from ranmask.runs.shards.run import Sharding


def attack(
    recipe: option.RecipeName,
    model: Model = None,
    input: Input = None,
    data: DataName = None,
    split: Split = None,
    texts: option.TextCount = None,
    skip_bad_rows: SkipBadRows = False,
    output: Output = None,
    preset: option.PresetName = "ranmask-2021",
    plain: option.Plain = False,
    budget: option.BudgetOption = None,
    most_queries: option.MostQueries = None,
    together: option.Together = 64,
    neighbours: option.NeighbourSource = None,
    tagger: option.TaggerSource = None,
    sentence_encoder: option.EncoderSource = None,
    attack_lm: option.AttackLm = None,
    stop_words: option.StopWordSource = None,
    vocabulary: option.VocabularySource = None,
    keep: Keep = None,
    mask_rate: MaskRate = None,
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
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_columns: PairColumns = None,
    keep_columns: KeepColumns = None,
    device: Device = None,
    dtype: Dtype = None,
    show: option.Show = 3,
    shard_rows: ShardRows = None,
    workers: Workers = None,
    engine: EngineName = None,
    address: Address = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    as_json: AsJson = False,
) -> bool:
    """Attack a classifier: replace words until it says another label, and count how often it does.

    With --output, outcomes are appended as they come; the same command again resumes.
    """
    from ranmask.attacks.recipes import check_names, uses

    check_names(recipe, preset)
    sharding = sharding_from(
        *(shard_rows, engine, workers, address, cpus_per_worker, gpus_per_worker), output=output
    )
    if sharding is not None and vocabulary is None and "vocabulary" in uses(recipe):
        raise OptionError(
            f"--recipe {recipe} takes its words from all texts, of which a worker sees a shard: "
            "give them with --vocabulary"
        )
    columns = columns_from(text_column, pair_columns, label_column, keep_columns)
    whole = sharding is None
    source = _source(input, data, split, texts, columns, whole=whole, skip_bad_rows=skip_bad_rows)
    options = {
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
    resources = {
        "neighbours": neighbours,
        "tagger": tagger,
        "sentence_encoder": sentence_encoder,
        "attack_lm": attack_lm,
        "stop_words": stop_words,
        "vocabulary": vocabulary,
        "device": device,
    }
    settings = {
        "budget": _budget(budget),
        "most_queries": most_queries,
        "together": together,
        "seed": seed or 0,
    }
    victim = partial(_victim, model, plain, options, lm)
    rows = source.rows if sharding is None else []
    make = partial(_engine, recipe, preset, resources, victim, settings, source.label_names, rows)
    if output is None:
        return _show(make(), source, show, as_json)
    return _write(make, source, output, sharding, recipe, show, as_json)


def _engine(
    recipe: str,
    preset: str,
    resources: dict[str, Any],
    victim: Callable[[], Victim],
    settings: dict[str, Any],
    label_names: Sequence[str] | None,
    rows: Iterable[Row],
) -> AttackLoop:
    """What attacks; ``rows`` give it words where a recipe takes them from the texts."""
    tame_libraries()
    from ranmask.attacks.loop import AttackLoop
    from ranmask.attacks.recipes import build_recipe
    from ranmask.runs.task import class_ids

    loaded = resources_for(recipe, rows, **resources)
    built = build_recipe(recipe, loaded, preset)  # type: ignore[arg-type]  # checked before
    engine = AttackLoop(victim(), built, **settings)
    if label_names:
        class_ids(label_names, engine.victim.labels)  # told before the first text
    return engine


def _source(
    input_path: Path | None,
    data: str | None,
    split: str | None,
    texts: int | None,
    columns: Columns,
    *,
    whole: bool,
    skip_bad_rows: bool,
) -> RowSource:
    """The rows to attack; ``whole``: all in memory, to be read more than once."""
    if (input_path is None) == (data is None):
        raise OptionError("give a file with --input, or a corpus with --data: one of them")
    if input_path is not None and columns.label is None:
        raise OptionError("an attack needs the right labels: name their column with --label-column")
    if texts is not None and texts < 1:
        raise OptionError(f"--texts must be at least 1, not {texts}")
    if data is not None:
        return open_input(None, None, data, split, texts, columns, skip_bad_rows=skip_bad_rows)
    from ranmask.data.sources import RowSource, first_rows

    source = open_input(None, input_path, None, split, None, columns, skip_bad_rows=skip_bad_rows)
    source = first_rows(source, texts)
    if not whole:
        return source
    rows = list(source.rows)
    return RowSource(rows, len(rows), source.description)


def _victim(model: str | None, plain: bool, options: dict[str, Any], lm: str | None) -> Victim:
    from ranmask.attacks.api import as_victim
    from ranmask.attacks.victims import PlainVictim
    from ranmask.smoothing.store import DEFAULT_MODEL, load_classifier, load_with_any_keep

    name = model or DEFAULT_MODEL
    if plain:
        smoothing = ("keep", "mask_rate", "family", "masks", "ensemble", "sampling", "recheck")
        for key in (*smoothing, "lm"):
            if (lm if key == "lm" else options[key]) is not None:
                flag = "--" + key.replace("_", "-")
                raise OptionError(f"{flag} means nothing with --plain, which masks no word")
        rest = {key: value for key, value in options.items() if key not in smoothing}
        # How it would be smoothed does not matter: the base classifier reads the whole text.
        loaded = load_with_any_keep(name, **rest)
        return PlainVictim(loaded.base, loaded.labels)
    losses = word_losses_from(lm, options["sampling"], options["device"])
    return as_victim(load_classifier(name, **options, word_losses=losses))


def _budget(given: str | None) -> Budget:
    if given is None or given in ("radius", "radius+1"):
        return given  # type: ignore[return-value]  # it is one of the literals
    try:
        return int(given)
    except ValueError:
        raise OptionError(
            f"--budget must be a number of words, radius or radius+1, not {given!r}"
        ) from None


def _show(engine: AttackLoop, source: RowSource, show: int, as_json: bool) -> bool:
    """Attack, and print what became of each text.  Returns whether a row failed."""
    from ranmask.attacks.runs import AttackTask, targets
    from ranmask.cli.progress import progress

    start = time.monotonic()
    task = AttackTask(engine, engine.victim.labels or tuple(source.label_names or ()) or None)
    summary = task.summary()
    readable = sys.stdout.isatty() and not as_json
    examples: list[AttackOutcome] = []
    with progress(source.total) as advance:
        for outcome in engine.run(targets(source.rows, task.labels)):
            summary.count(outcome)
            if outcome.status in ("succeeded", "failed"):
                examples = [*examples, outcome][:show]
            advance(1)
            if not readable:
                sys.stdout.write(json.dumps(outcome.to_dict()) + "\n")
                sys.stdout.flush()
    _print(engine.recipe.name, summary, examples if readable else [])
    _print_pace(engine.victim, time.monotonic() - start)
    return summary.errors > 0


def _write(
    make: Callable[[], AttackLoop],
    source: RowSource,
    output: Path,
    sharding: Sharding | None,
    recipe: str,
    show: int,
    as_json: bool,
) -> bool:
    """Attack, and write what became of each text.  Returns whether a row failed."""
    from ranmask.attacks.runs import attack_rows, read_outcomes

    start = time.monotonic()
    made: list[AttackLoop] = []

    def kept() -> AttackLoop:
        made.append(make())
        return made[0]

    with shown_events(source.total, output, sharding) as events:
        engine = kept if sharding is None else make
        summary = attack_rows(engine, source, output, sharding=sharding, events=events)
    attacked = (one for one in read_outcomes(output) if one.status in ("succeeded", "failed"))
    readable = sys.stdout.isatty() and not as_json
    _print(recipe, summary, list(itertools.islice(attacked, show)) if readable else [])
    if made:
        _print_pace(made[0].victim, time.monotonic() - start)
    return summary.errors > 0


def _print(recipe: str, summary: AttackSummary, examples: Sequence[AttackOutcome]) -> None:
    from rich.console import Console

    from ranmask.cli import attack_printing

    labels = None if summary.labels is None else tuple(summary.labels)
    for outcome in examples:
        attack_printing.print_outcome(Console(), outcome, labels)
    attack_printing.print_attack_summary(Console(stderr=True), recipe, summary)


def _print_pace(victim: Victim, seconds: float) -> None:
    from rich.console import Console

    from ranmask.attacks.victims import PlainVictim
    from ranmask.cli import attack_printing

    if not isinstance(victim, PlainVictim):
        attack_printing.print_pace(Console(stderr=True), victim.copies_scored, seconds)

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
from ranmask.cli.inputs import Source, open_input
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
from ranmask.cli.running import check_output
from ranmask.cli.sharding import print_attacked, run_sharded, sharding_from
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.attacks.loop import AttackLoop
    from ranmask.attacks.outcome import AttackOutcome
    from ranmask.attacks.recipe import Budget
    from ranmask.attacks.runs import AttackWork
    from ranmask.attacks.summary import AttackSummary
    from ranmask.attacks.victims import Victim
    from ranmask.data.rows import Columns, Row


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
    columns = columns_from(text_column, pair_columns, label_column)
    whole = sharding is None
    source = _source(input, data, split, texts, columns, whole=whole, skip_bad_rows=skip_bad_rows)
    check_output(output, source, sharded=sharding is not None)
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
    names = (source.origin or {}).get("label_names")
    victim = partial(_victim, model, plain, options, lm)
    make = partial(_engine, recipe, preset, resources, victim, settings, names)
    if sharding is not None and output is not None:
        return run_sharded(sharding, partial(_sharded, make, names), source, output, print_attacked)
    return _run(make(source.rows), source, output, show, as_json)


def _engine(
    recipe: str,
    preset: str,
    resources: dict[str, Any],
    victim: Callable[[], Victim],
    settings: dict[str, Any],
    label_names: list[str] | None,
    rows: Iterable[Row],
) -> AttackLoop:
    """What attacks; ``rows`` give it words where a recipe takes them from the texts."""
    tame_libraries()
    from ranmask.attacks.loop import AttackLoop
    from ranmask.attacks.recipes import build_recipe
    from ranmask.runs.run import class_ids

    loaded = resources_for(recipe, rows, **resources)
    built = build_recipe(recipe, loaded, preset)  # type: ignore[arg-type]  # checked before
    engine = AttackLoop(victim(), built, **settings)
    if label_names:
        class_ids(label_names, engine.victim.labels)  # told before the first text
    return engine


def _sharded(
    make: Callable[[Iterable[Row]], AttackLoop], label_names: list[str] | None
) -> AttackWork:
    """What a worker does with a shard; called in the worker."""
    from ranmask.attacks.runs import AttackWork

    engine = make([])
    return AttackWork(engine, _labels(engine, label_names))


def _source(
    input_path: Path | None,
    data: str | None,
    split: str | None,
    texts: int | None,
    columns: Columns,
    *,
    whole: bool,
    skip_bad_rows: bool,
) -> Source:
    """The rows to attack; ``whole``: all in memory, to be read more than once."""
    if (input_path is None) == (data is None):
        raise OptionError("give a file with --input, or a corpus with --data: one of them")
    if input_path is not None and columns.label is None:
        raise OptionError("an attack needs the right labels: name their column with --label-column")
    if texts is not None and texts < 1:
        raise OptionError(f"--texts must be at least 1, not {texts}")
    if data is not None:
        return open_input(None, None, data, split, texts, columns, skip_bad_rows=skip_bad_rows)
    source = open_input(None, input_path, None, split, None, columns, skip_bad_rows=skip_bad_rows)
    first = itertools.islice(source.rows, texts)
    origin = {**(source.origin or {}), "texts": texts}
    if not whole:
        return Source(first, source.total if texts is None else min(texts, source.total), origin)
    rows = list(first)
    return Source(rows, len(rows), origin)


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


def _run(engine: AttackLoop, source: Source, output: Path | None, show: int, as_json: bool) -> bool:
    from rich.console import Console

    from ranmask.attacks import runs
    from ranmask.attacks.summary import AttackSummary
    from ranmask.attacks.victims import PlainVictim
    from ranmask.cli import attack_printing
    from ranmask.cli.progress import progress

    notes = Console(stderr=True)
    start = time.monotonic()
    labels = _labels(engine, (source.origin or {}).get("label_names"))
    readable = sys.stdout.isatty() and not as_json
    examples: list[AttackOutcome] = []

    def seen(outcome: AttackOutcome) -> None:
        if len(examples) < show and outcome.status in ("succeeded", "failed"):
            examples.append(outcome)

    if output is None:
        summary = AttackSummary()
        with progress(source.total) as advance:
            for outcome in engine.run(runs.targets(source.rows, labels)):
                summary.add(outcome)
                seen(outcome)
                advance(1)
                if not readable:
                    sys.stdout.write(json.dumps(outcome.to_dict()) + "\n")
                    sys.stdout.flush()
    else:
        summary = _to_file(engine, source, output, seen, notes)
    if readable:
        console = Console()
        for outcome in examples:
            attack_printing.print_outcome(console, outcome, labels)
    attack_printing.print_attack_summary(notes, engine.recipe.name, summary, labels)
    if not isinstance(engine.victim, PlainVictim):
        seconds = time.monotonic() - start
        attack_printing.print_pace(notes, engine.victim.copies_scored, seconds)
    return summary.errors > 0


def _labels(engine: AttackLoop, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """The victim's names of its classes; a function has none, and is taken to have the data's."""
    return engine.victim.labels or (tuple(names) if names else None)


def _to_file(
    engine: AttackLoop,
    source: Source,
    output: Path,
    seen: Callable[[AttackOutcome], None],
    notes: Any,
) -> AttackSummary:
    from ranmask.attacks import runs
    from ranmask.cli.attack_printing import say
    from ranmask.cli.progress import progress

    with progress(source.total) as advance:

        def started(done: int) -> None:
            if done:
                say(notes, f"resuming {output}: {done} texts are done")
                advance(done)

        def note(outcome: AttackOutcome) -> None:
            seen(outcome)
            advance(1)

        try:
            return runs.run_to_file(
                engine,
                source.rows,
                source.origin or {},
                output,
                labels=_labels(engine, (source.origin or {}).get("label_names")),
                started=started,
                advance=note,
            )
        except KeyboardInterrupt:
            say(notes, f"interrupted: the same command resumes {output}")
            raise

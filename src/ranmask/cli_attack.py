"""``ranmask attack``: parse, call, print."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranmask.cli_inputs import Source, open_input
from ranmask.cli_options import (
    AsJson,
    DataName,
    Device,
    Dtype,
    Ensemble,
    Family,
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
    Split,
    TextColumn,
    columns_from,
    names_from,
    quiet_libraries,
    word_losses_from,
)
from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.attacks.engine import Engine
    from ranmask.attacks.outcome import AttackOutcome
    from ranmask.attacks.recipe import Budget
    from ranmask.attacks.supplies import Supplies
    from ranmask.attacks.victims import Victim
    from ranmask.data import Columns

RecipeName = Annotated[
    str,
    typer.Option(
        "--recipe",
        help="textfooler, bert-attack, deepwordbug, several-words, labels-only; or, to test "
        "certificates, anywords, critical.",
        show_default=False,
    ),
]
TextCount = Annotated[
    int | None, typer.Option("--texts", help="Only the first texts.", show_default="all")
]
PresetName = Annotated[
    str,
    typer.Option(help="ranmask-2021 (the paper's settings) or textattack-0.3.11 (today's)."),
]
Plain = Annotated[
    bool,
    typer.Option(
        "--plain",
        help="Attack the base classifier, which reads the whole text.",
        show_default=False,
    ),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget",
        help="Most words that may change: a number, radius (what the victim certifies for the "
        "text) or radius+1.",
        show_default="any; radius+1 for anywords and critical",
    ),
]
MostQueries = Annotated[
    int | None, typer.Option(help="Queries a text, then the search ends.", show_default="any")
]
Together = Annotated[int, typer.Option(help="Texts attacked in lock-step.")]
Show = Annotated[
    int, typer.Option(help="How many attacked texts to print, before and after, side by side.")
]
NeighbourSource = Annotated[
    str | None,
    typer.Option(
        "--neighbours",
        help="Synonyms: jia2019, safer2020, dne, a JSON table, or the counter-fitted vectors.",
        show_default="jia2019",
    ),
]
EncoderSource = Annotated[
    str | None,
    typer.Option(
        "--sentence-encoder",
        help="Folder or hub id of a sentence encoder, or of the Universal Sentence Encoder.",
        show_default="none; the recipe's name says so",
    ),
]
TaggerSource = Annotated[
    str | None,
    typer.Option("--tagger", help="nltk, a folder with NLTK's data, or none.", show_default="nltk"),
]
StopWordSource = Annotated[
    str | None,
    typer.Option(
        "--stop-words",
        help="textfooler, nltk, none, or a file with a word a line.",
        show_default="the recipe's",
    ),
]
AttackLm = Annotated[
    str | None,
    typer.Option(
        "--attack-lm",
        help="Folder or hub id of the masked language model of bert-attack.",
        show_default=False,
    ),
]
VocabularySource = Annotated[
    Path | None,
    typer.Option(
        "--vocabulary",
        help="A text file of words for anywords and critical.",
        show_default="the words of the texts",
    ),
]

_SYNONYM_RECIPES = ("textfooler", "several-words", "labels-only")
_WORD_RECIPES = ("anywords", "critical")
DEFAULT_NEIGHBOURS = "jia2019"


def attack(
    recipe: RecipeName,
    model: Model = None,
    input: Input = None,
    data: DataName = None,
    split: Split = None,
    texts: TextCount = None,
    output: Output = None,
    preset: PresetName = "ranmask-2021",
    plain: Plain = False,
    budget: BudgetOption = None,
    most_queries: MostQueries = None,
    together: Together = 64,
    neighbours: NeighbourSource = None,
    tagger: TaggerSource = None,
    sentence_encoder: EncoderSource = None,
    attack_lm: AttackLm = None,
    stop_words: StopWordSource = None,
    vocabulary: VocabularySource = None,
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
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_columns: PairColumns = None,
    device: Device = None,
    dtype: Dtype = None,
    show: Show = 3,
    as_json: AsJson = False,
) -> bool:
    """Attack a classifier: replace words until it says another label, and count how often it does.

    With --output, outcomes are appended as they come; the same command again resumes.
    """
    from ranmask.attacks.recipes import build_recipe, check_names

    check_names(recipe, preset)
    most_words = _budget(budget)
    source = _source(
        input, data, split, texts, columns_from(text_column, pair_columns, label_column)
    )
    quiet_libraries()
    supplies = _supplies(
        recipe,
        source,
        neighbours=neighbours,
        tagger=tagger,
        sentence_encoder=sentence_encoder,
        attack_lm=attack_lm,
        stop_words=stop_words,
        vocabulary=vocabulary,
        device=device,
    )
    from ranmask.attacks.engine import Engine

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
        "device": device,
        "dtype": dtype,
    }
    built = build_recipe(recipe, supplies, preset)  # type: ignore[arg-type]  # checked there
    engine = Engine(
        _victim(model, plain, options, lm),
        built,
        budget=most_words,
        most_queries=most_queries,
        together=together,
        seed=seed or 0,
        sentence_encoder=supplies.sentence_encoder,
        masked_lm=supplies.masked_lm,
    )
    names = (source.origin or {}).get("label_names")
    if names:
        from ranmask.runs import class_ids

        class_ids(names, engine.victim.labels)  # told before the first text
    return _run(engine, source, output, show, as_json)


def _source(
    input_path: Path | None,
    data: str | None,
    split: str | None,
    texts: int | None,
    columns: Columns,
) -> Source:
    """The rows to attack, all in memory: an attack asks about each of them many times."""
    if (input_path is None) == (data is None):
        raise OptionError("give a file with --input, or a corpus with --data: one of them")
    if input_path is not None and columns.label is None:
        raise OptionError("an attack needs the right labels: name their column with --label-column")
    if texts is not None and texts < 1:
        raise OptionError(f"--texts must be at least 1, not {texts}")
    if data is not None:
        return open_input(None, None, data, split, texts, columns)
    source = open_input(None, input_path, None, split, None, columns)
    rows = list(itertools.islice(source.rows, texts))
    origin = {**(source.origin or {}), "texts": texts}
    return Source(rows, len(rows), origin)


def _victim(model: str | None, plain: bool, options: dict[str, Any], lm: str | None) -> Victim:
    from ranmask.attacks.victims import PlainVictim, SmoothedVictim
    from ranmask.loading import DEFAULT_MODEL, load_classifier

    name = model or DEFAULT_MODEL
    if plain:
        smoothing = ("keep", "mask_rate", "family", "masks", "ensemble", "sampling")
        for key in (*smoothing, "lm"):
            if (lm if key == "lm" else options[key]) is not None:
                flag = "--" + key.replace("_", "-")
                raise OptionError(f"{flag} means nothing with --plain, which masks no word")
        rest = {key: value for key, value in options.items() if key not in smoothing}
        # How it would be smoothed does not matter: the base classifier reads the whole text.
        loaded = load_classifier(name, **{**rest, "keep": 1})
        return PlainVictim(loaded.base, loaded.labels)
    losses = word_losses_from(lm, options["sampling"], options["device"])
    return SmoothedVictim(load_classifier(name, **options, word_losses=losses))


def _budget(given: str | None) -> Budget:
    if given is None or given in ("radius", "radius+1"):
        return given  # type: ignore[return-value]  # it is one of the literals
    try:
        return int(given)
    except ValueError:
        raise OptionError(
            f"--budget must be a number of words, radius or radius+1, not {given!r}"
        ) from None


def _supplies(
    recipe: str,
    source: Source,
    *,
    neighbours: str | None,
    tagger: str | None,
    sentence_encoder: str | None,
    attack_lm: str | None,
    stop_words: str | None,
    vocabulary: Path | None,
    device: str | None,
) -> Supplies:
    """The resources that the recipe uses; those that it does not use are refused by name."""
    from ranmask.attacks.supplies import Supplies
    from ranmask.resources.neighbours import load_neighbours
    from ranmask.resources.sentence_encoder import load_sentence_encoder
    from ranmask.resources.stop_words import load_stop_words
    from ranmask.resources.tagging import load_tagger

    synonyms = recipe in _SYNONYM_RECIPES
    plausible = recipe not in _WORD_RECIPES
    for flag, value, used in (
        ("--neighbours", neighbours, synonyms),
        ("--tagger", tagger, synonyms),
        ("--sentence-encoder", sentence_encoder, synonyms or recipe == "bert-attack"),
        ("--attack-lm", attack_lm, recipe == "bert-attack"),
        ("--stop-words", stop_words, plausible),
        ("--vocabulary", vocabulary, not plausible),
    ):
        if value is not None and not used:
            raise OptionError(f"{flag} means nothing with --recipe {recipe}: leave it out")
    model = None
    if attack_lm is not None:
        from ranmask.resources.masked_lm import MaskedLM

        model = MaskedLM.from_pretrained(attack_lm, device=device)
    return Supplies(
        neighbours=load_neighbours(neighbours or DEFAULT_NEIGHBOURS) if synonyms else None,
        tagger=load_tagger(None if tagger in (None, "nltk") else tagger)
        if synonyms and tagger != "none"
        else None,
        sentence_encoder=None
        if sentence_encoder is None
        else load_sentence_encoder(sentence_encoder, device=device),
        masked_lm=model,
        stop_words=None if stop_words is None else load_stop_words(stop_words),
        vocabulary=None if plausible else _vocabulary(source, vocabulary),
    )


def _vocabulary(source: Source, path: Path | None) -> Any:
    from ranmask.attacks.vocabulary import read_vocabulary, vocabulary_of
    from ranmask.words import usable

    if path is not None:
        return read_vocabulary(path)
    texts = (row.text for row in source.rows if row.text is not None and usable(row.text))
    return vocabulary_of(texts, "the attacked texts")


def _run(engine: Engine, source: Source, output: Path | None, show: int, as_json: bool) -> bool:
    from rich.console import Console

    from ranmask import attack_rendering, attack_runs
    from ranmask.attacks.summary import AttackSummary
    from ranmask.attacks.victims import SmoothedVictim
    from ranmask.progress import progress

    notes = Console(stderr=True)
    start = time.monotonic()
    labels = engine.victim.labels
    readable = sys.stdout.isatty() and not as_json
    examples: list[AttackOutcome] = []

    def seen(outcome: AttackOutcome) -> None:
        if len(examples) < show and outcome.status in ("succeeded", "failed"):
            examples.append(outcome)

    if output is None:
        summary = AttackSummary()
        with progress(source.total) as advance:
            for outcome in engine.run(attack_runs.targets(source.rows, labels)):
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
            attack_rendering.print_outcome(console, outcome, labels)
    attack_rendering.print_attack_summary(notes, engine.recipe.name, summary)
    if isinstance(engine.victim, SmoothedVictim):
        seconds = time.monotonic() - start
        attack_rendering.print_pace(notes, engine.victim.copies_scored, seconds)
    return summary.errors > 0


def _to_file(
    engine: Engine,
    source: Source,
    output: Path,
    seen: Callable[[AttackOutcome], None],
    notes: Any,
) -> Any:
    from ranmask import attack_runs
    from ranmask.progress import progress

    with progress(source.total) as advance:

        def started(done: int) -> None:
            if done:
                notes.print(f"resuming {output}: {done} texts are done", highlight=False)
                advance(done)

        def note(outcome: AttackOutcome) -> None:
            seen(outcome)
            advance(1)

        try:
            return attack_runs.run_to_file(
                engine, source.rows, source.origin or {}, output, started=started, advance=note
            )
        except KeyboardInterrupt:
            notes.print(f"interrupted: the same command resumes {output}")
            raise

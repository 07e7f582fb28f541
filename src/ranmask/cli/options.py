"""The options of the commands, written once, and how they are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranmask.errors import OptionError

if TYPE_CHECKING:
    from ranmask.data.rows import Columns
    from ranmask.smoothing.masks import WordLosses

Texts = Annotated[list[str] | None, typer.Argument(help="Texts to classify.", show_default=False)]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="news, news-words or reviews-words (they come with ranmask), a model folder, a hub "
        "id, or module:function.",
        envvar="RANMASK_MODEL",
        show_default="news",
    ),
]
Input = Annotated[
    Path | None,
    typer.Option(help="A txt, csv, tsv, jsonl or parquet file.", show_default=False),
]
DataName = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Or a corpus by name (agnews, sst2, imdb, snli, hate, sms_spam, enron_spam, "
        "spamassassin, jigsaw_part, injection), with its labels.",
        show_default=False,
    ),
]
Split = Annotated[
    str | None, typer.Option(help="Part of the corpus.", show_default="test, with --data")
]
FirstRows = Annotated[
    int | None,
    typer.Option("--rows", help="Only the first rows of the corpus.", show_default="all"),
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="JSONL file for the results, resumed if it exists (with --shard-rows: a folder); "
        "without it they are printed.",
        show_default=False,
    ),
]
SkipBadRows = Annotated[
    bool,
    typer.Option(
        "--skip-bad-rows",
        help="Leave out rows of --data without a usable text or label, and say how many.",
        show_default=False,
    ),
]
ShardRows = Annotated[
    int | None,
    typer.Option(
        help="For large inputs: write a Parquet file for every so many rows, computed by worker "
        "processes, to the folder --output.",
        show_default=False,
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option("--engine", help="Who computes shards: local or ray.", show_default="local"),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Processes that compute shards, each with a model of its own.",
        show_default="1; with --engine ray as many as fit",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="Ray cluster to use.", show_default="RAY_ADDRESS, else one on this machine"),
]
CpusPerWorker = Annotated[
    int | None,
    typer.Option(help="Threads of each worker; its numbers may depend on it.", show_default="1"),
]
GpusPerWorker = Annotated[
    float | None, typer.Option(help="GPUs of each Ray worker.", show_default="0")
]
TextColumn = Annotated[
    str | None, typer.Option(help="Column that holds the text.", show_default="text")
]
LabelColumn = Annotated[
    str | None, typer.Option(help="Column that holds the true label.", show_default=False)
]
PairColumns = Annotated[
    str | None,
    typer.Option(
        help="Two columns, premise,hypothesis; only the hypothesis is masked.", show_default=False
    ),
]
KeepColumns = Annotated[
    str | None,
    typer.Option(
        help="Columns of the input, separated by commas, that results repeat; id always is.",
        show_default=False,
    ),
]
Keep = Annotated[int | None, typer.Option(help="Words that each copy shows.", show_default=False)]
MaskRate = Annotated[
    float | None, typer.Option(help="Or: share of words that is hidden.", show_default=False)
]
Family = Annotated[
    str | None, typer.Option(help="auto, all, sampled, windows or distinct.", show_default="auto")
]
Masks = Annotated[
    int | None,
    typer.Option(
        help="Most copies a text.",
        show_default="1000, or 5000 to estimate from; 100 of --sampling fresh or lm",
    ),
]
SelectionMasks = Annotated[
    int | None, typer.Option(help="Copies that select the label (not exact).", show_default="1000")
]
Ensemble = Annotated[str | None, typer.Option(help="vote, score or logit.", show_default="vote")]
CertificateOption = Annotated[
    str | None,
    typer.Option(
        help="exact, ablation, ablation-runner-up; without guarantee: paper, paper-as-printed, "
        "paper-estimated-beta. Models smoothed by synonyms: safer.",
        show_default="exact",
    ),
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare",
        help="Four certificates side by side, each as --certificate gives it: exact, ablation, "
        "paper, paper-as-printed.",
        show_default=False,
    ),
]
Copies = Annotated[
    int | None,
    typer.Option(
        help="Add what the first copies of each text show and vote for, so many of them.",
        show_default=False,
    ),
]
Changed = Annotated[
    int | None, typer.Option(help="Most words that are changed.", show_default="10")
]
Draws = Annotated[
    int | None,
    typer.Option(help="Random choices of changed words to average over.", show_default="200"),
]
BetaMasks = Annotated[
    int | None, typer.Option("--masks", help="Random copies a text.", show_default="10000")
]
Threat = Annotated[
    str | None,
    typer.Option(
        help="substitutions; or edits (insertions, deletions and reordering too), for classifiers "
        "of single words.",
        show_default="substitutions",
    ),
]
Sampling = Annotated[
    str | None,
    typer.Option(
        help="fixed; or, proving nothing, masks drawn for each text: fresh, or lm (words that "
        "--lm predicts badly are hidden more often).",
        show_default="fixed",
    ),
]
LanguageModel = Annotated[
    str | None,
    typer.Option("--lm", help="Folder of a masked language model.", show_default=False),
]
Alpha = Annotated[
    float | None, typer.Option(help="Chance of error (not exact).", show_default="0.05")
]
Seed = Annotated[int | None, typer.Option(help="Fixes sampled kept sets.", show_default="0")]
Labels = Annotated[
    str | None,
    typer.Option(help="Names of the classes, separated by commas.", show_default="the model's"),
]
MaskToken = Annotated[
    str | None, typer.Option(help="What stands for a hidden word.", show_default="the model's")
]
Hide = Annotated[
    str | None, typer.Option(help="mask or drop.", show_default="as trained, else mask")
]
Tolerance = Annotated[
    float | None,
    typer.Option(help="How far outputs may move when recomputed.", show_default="measured"),
]
Recheck = Annotated[
    int | None,
    typer.Option(
        help="Of the copies scored together, how many are scored again, in another batch, and must "
        "get the same answer; 0 for functions whose every call is dear.",
        show_default="4 for functions, 0 for models",
    ),
]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, ...", show_default="a GPU if there is one")
]
Dtype = Annotated[
    str | None,
    typer.Option(
        help="float32, bfloat16, float16; or screened: the votes of float32, most of them decided "
        "in float16; for GPUs.",
        show_default="float32",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="JSON lines, also on a terminal.", show_default=False)
]


def columns_from(
    text: str | None, pair: str | None, label: str | None, keep: str | None = None
) -> Columns:
    """The columns that were named."""
    from ranmask.data.rows import Columns

    parts: tuple[str, str] | None = None
    if pair is not None:
        names = [name.strip() for name in pair.split(",")]
        if len(names) != 2 or not all(names):
            raise OptionError(f"--pair-columns takes two names, premise,hypothesis; not {pair!r}")
        parts = (names[0], names[1])
    kept = () if keep is None else tuple(name.strip() for name in keep.split(","))
    return Columns(text, parts, label, kept)


def names_from(labels: str | None) -> list[str] | None:
    """The names of the classes that were given."""
    return None if labels is None else [name.strip() for name in labels.split(",")]


def word_losses_from(lm: str | None, sampling: str | None, device: str | None) -> WordLosses | None:
    """The losses of the language model that was named; it is loaded only where it is needed."""
    if (lm is not None) != (sampling == "lm"):
        raise OptionError(
            "--sampling lm needs a masked language model: name its folder with --lm"
            if lm is None
            else f"--lm {lm} goes with --sampling lm"
        )
    if lm is None:
        return None
    tame_libraries()
    from ranmask.attacks.resources.masked_lm import MaskedLM

    return MaskedLM.from_pretrained(lm, device=device).word_losses


def tame_libraries() -> None:
    """Have libraries say little, and keep little.  Call it before they are imported."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # training forks workers
    # Batches have ever other shapes: kernels that are made for each and kept, up to a thousand,
    # are memory that grows for minutes, and looking them up takes longer than making them.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")

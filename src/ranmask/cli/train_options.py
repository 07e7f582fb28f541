"""The options of ``ranmask train``, written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_DEFENCES = "Defences"

Data = Annotated[
    str,
    typer.Option(
        help="Labelled texts: agnews, sst2, imdb, snli, hate, sms_spam, enron_spam, "
        "spamassassin, jigsaw_part, injection; a file or folder; or a dataset on the hub.",
        show_default=False,
    ),
]
ValidationData = Annotated[
    str | None,
    typer.Option("--validation", help="Texts to choose by.", show_default="its own, or carved"),
]
Also = Annotated[
    list[str] | None,
    typer.Option(help="More training texts, of the same classes.", show_default=False),
]
ModelFolder = Annotated[
    Path, typer.Option(help="Folder for the model; resumed if it exists.", show_default=False)
]
Kind = Annotated[
    str,
    typer.Option(
        help="encoder; words: a table of word scores; or mlm: a masked language model, for attacks."
    ),
]
Base = Annotated[
    str | None,
    typer.Option(help="Folder or hub id of the encoder to start from.", show_default=False),
]
Keeps = Annotated[
    str | None,
    typer.Option(help="Words that copies show; several, as 1,2,3, are mixed.", show_default=False),
]
TrainMaskRate = Annotated[
    float | None,
    typer.Option(
        help="Or: share of words that is hidden; mlm: of tokens that are predicted.",
        show_default="mlm: 0.15",
    ),
]
Rows = Annotated[int | None, typer.Option(help="Use only so many rows.", show_default="all")]
TrainHide = Annotated[str | None, typer.Option(help="drop or mask.", show_default="drop")]
TrainFamily = Annotated[
    str | None,
    typer.Option(
        help="auto (random words) or windows; words: all, or distinct (each word counts once).",
        show_default="auto; words: all, distinct for --target-words 0",
    ),
]
Head = Annotated[
    str | None,
    typer.Option(
        help="choice (softmax) or approval (a sigmoid for each class).", show_default="choice"
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        help="Most epochs of (masked) training.",
        show_default="20; words: 8, 12 of target 0; mlm: 3",
    ),
]
Copies = Annotated[
    int | None, typer.Option(help="Masked copies of a text in a step.", show_default="1")
]
Ramp = Annotated[
    float | None,
    typer.Option(help="Share of masked training in which masking rises.", show_default="0"),
]
Patience = Annotated[
    int | None, typer.Option(help="Evaluations without gain before it stops.", show_default="3")
]
VoteEpochs = Annotated[
    int | None, typer.Option(help="Epochs of vote training after it.", show_default="0")
]
VoteCopies = Annotated[
    int | None, typer.Option(help="Most copies of a text in a vote.", show_default="64")
]
VoteLossName = Annotated[
    str | None, typer.Option(help="certified or margin.", show_default="certified")
]
TargetWords = Annotated[
    int | None,
    typer.Option(
        help="Changed words to be certified against; 0 (words): accuracy alone.",
        show_default="5; words: by length",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        help="Width of the certified loss, in words.", show_default="target / 2.5; of target 0: 0.2"
    ),
]
AccuracyWeight = Annotated[
    float | None,
    typer.Option(
        help="Weight of plain accuracy in the loss.", show_default="1; words: 0, 1 of target 0"
    ),
]
Margin = Annotated[
    float | None, typer.Option(help="Margin to reach.", show_default="0.55; words: 0.3")
]
ClassWeightsName = Annotated[
    str | None,
    typer.Option(
        "--class-weights",
        help="balanced: every class counts the same, however few texts it has; or none.",
        show_default="balanced",
    ),
]
FailBelowMajority = Annotated[
    bool,
    typer.Option(
        "--fail-below-majority",
        help="Exit code 4 if it does not beat naming the largest class always.",
        show_default=False,
    ),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        help="Peak of the schedule.",
        show_default="2e-4, 5e-5 from 50M parameters; words: 0.05, 5e-3 of target 0; mlm: 3e-4",
    ),
]
VoteLearningRate = Annotated[
    float | None, typer.Option(help="The same for vote training.", show_default="the same")
]
Warmup = Annotated[
    float | None,
    typer.Option(help="Share of the steps in which it rises (mlm).", show_default="0.06"),
]
WeightDecay = Annotated[
    float | None,
    typer.Option(
        help="AdamW's; words: of squared weights.",
        show_default="1e-6; words: 0, 1e-4 of target 0; mlm: 0.01",
    ),
]
BatchSize = Annotated[
    int | None, typer.Option(help="Texts in a step.", show_default="32; words: up to 512")
]
GradientClip = Annotated[
    float | None, typer.Option(help="Largest norm of the gradient.", show_default="1")
]
Layers = Annotated[
    int | None, typer.Option(help="Keep only the first layers of the base.", show_default="all")
]
Vocabulary = Annotated[
    int | None, typer.Option(help="Keep only the most frequent tokens.", show_default="all")
]
Longest = Annotated[
    int | None,
    typer.Option(
        help="Most tokens of a text that are read.", show_default="as the base; 128 of mlm"
    ),
]
Weights = Annotated[
    str | None, typer.Option(help="Stored as float32 or float16.", show_default="float32")
]
EvaluateEvery = Annotated[
    int | None, typer.Option(help="Steps between evaluations.", show_default="an epoch")
]
HeldOut = Annotated[
    int | None, typer.Option(help="Only the first rows of validation.", show_default="all")
]
ValidationRows = Annotated[
    int | None, typer.Option(help="Texts that an evaluation reads.", show_default="500")
]
Buckets = Annotated[int | None, typer.Option(help="Size of a word table.", show_default="262144")]
FeatureDropout = Annotated[
    float | None, typer.Option(help="Of a word table.", show_default="0.1, 0 of target 0")
]
WarmEpochs = Annotated[
    int | None,
    typer.Option(
        help="Epochs on the margin before the certified loss (words).",
        show_default="2, 0 of target 0",
    ),
]
DefenceName = Annotated[
    str | None,
    typer.Option(
        help="none, ranmask, pgd, freelb, hotflip, dne, augment or safer; ranmask+freelb and the "
        "like do both.",
        rich_help_panel=_DEFENCES,
        show_default="ranmask",
    ),
]
PairHead = Annotated[
    bool | None,
    typer.Option(
        "--pair-head",
        help="For pairs: both encodings, concatenated, and two layers.",
        show_default="no",
    ),
]
Accumulate = Annotated[int | None, typer.Option(help="Batches in a step.", show_default="1")]
Steps = Annotated[
    int | None,
    typer.Option(
        help="Steps of ascent (pgd, freelb, dne).",
        rich_help_panel=_DEFENCES,
        show_default="3; pgd: 10",
    ),
]
StepSize = Annotated[
    float | None,
    typer.Option(help="Length of one.", rich_help_panel=_DEFENCES, show_default="0.3; dne: 1"),
]
InitialMagnitude = Annotated[
    float | None,
    typer.Option(
        help="Random shift before it (pgd, freelb).", rich_help_panel=_DEFENCES, show_default="0.5"
    ),
]
MaxNorm = Annotated[
    float | None,
    typer.Option(
        help="Largest shift (pgd, freelb).", rich_help_panel=_DEFENCES, show_default="0.05"
    ),
]
NormName = Annotated[
    str | None,
    typer.Option(help="l2 or linf (pgd, freelb).", rich_help_panel=_DEFENCES, show_default="l2"),
]
ChangeRate = Annotated[
    float | None,
    typer.Option(
        help="Share of words to flip (hotflip).", rich_help_panel=_DEFENCES, show_default="0.2"
    ),
]
FlipsTo = Annotated[
    str | None,
    typer.Option(
        help="Flip to any words or to synonyms (hotflip).",
        rich_help_panel=_DEFENCES,
        show_default="words",
    ),
]
Hull = Annotated[
    float | None,
    typer.Option(
        help="Share of the synonyms' hull (dne).", rich_help_panel=_DEFENCES, show_default="1"
    ),
]
SetSize = Annotated[
    int | None,
    typer.Option(
        help="Most words that a word is replaced by (safer).",
        rich_help_panel=_DEFENCES,
        show_default="100",
    ),
]
Neighbours = Annotated[
    str | None,
    typer.Option(
        help="Table of neighbours: jia2019, safer2020, dne, or a file.",
        rich_help_panel=_DEFENCES,
        show_default="jia2019",
    ),
]
Attacked = Annotated[
    list[str] | None,
    typer.Option(
        help="Training texts that were attacked already, by ranmask attack (augment).",
        rich_help_panel=_DEFENCES,
        show_default=False,
    ),
]
Victim = Annotated[
    str | None,
    typer.Option(
        help="Model to attack them with (augment).",
        rich_help_panel=_DEFENCES,
        show_default="trained for it",
    ),
]
AttackRecipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help="The attack (augment).",
        rich_help_panel=_DEFENCES,
        show_default="textfooler",
    ),
]
Share = Annotated[
    str | None,
    typer.Option(
        help="Share of the rows to attack (augment).", rich_help_panel=_DEFENCES, show_default="1/2"
    ),
]

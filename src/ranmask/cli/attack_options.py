"""The options of ``ranmask attack``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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

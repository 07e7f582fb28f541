"""``ranmask explain``: parse, call, print."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranmask.cli.command import Given, command
from ranmask.cli.loading import load
from ranmask.cli.options import InputOptions, ModelChoice, SynonymTable, open_input
from ranmask.cli.terminal import print_lines
from ranmask.errors import ClassifierError, TextError
from ranmask.options import SmoothingOptions
from ranmask.options.fields import Checked, option
from ranmask.results import Certificate

if TYPE_CHECKING:
    from rich.console import Console

_BAR, _WIDTH = "█", 40


@dataclass(frozen=True, kw_only=True)
class ExplainCommand(Checked, group="Output"):
    """What is shown."""

    copies: int = option("Copies of the text to show, with their votes.", 12, least=1)
    as_json: bool = option("Print JSON lines, also on a terminal.", False, flag="json")


@command(
    InputOptions,
    ModelChoice,
    SmoothingOptions,
    SynonymTable,
    ExplainCommand,
    without=("sampling", "data", "split", "rows", "skip_bad_rows"),
)
def explain(given: Given) -> bool:
    """Show how a text gets its label: the votes of its copies, and how far the proof reaches.

    Draws them on a terminal, and prints JSON lines otherwise.

    Example: ranmask explain 'Striker scores twice in the cup final'
    """
    asked = given.build(ExplainCommand)
    rows = list(open_input(given).rows)
    from rich.console import Console

    from ranmask.serving.explaining import explain as explained

    smoothed = load(given)
    console = None if asked.as_json or not sys.stdout.isatty() else Console()
    failed = False
    for row in rows:
        try:
            found = explained(smoothed, row.text or "", asked.copies)
        except (TextError, ClassifierError) as error:
            failed, found = True, {"error": row.error or error.reason}
        if console is None:
            print(json.dumps({"row": row.number, **found}), flush=True)
        elif "error" in found:
            console.print(f"row {row.number}: error: {found['error']}", highlight=False)
        else:
            draw(console, found)
    return failed


def draw(console: Console, found: dict[str, Any]) -> None:
    """The votes, the copies and the margins of one text, as lines and bars."""
    from rich.text import Text

    from ranmask.cli.printing import explain as explain_certificate
    from ranmask.cli.printing import marked

    result, labels, words = Certificate.from_dict(found["result"]), found["labels"], found["words"]
    console.print(marked(" ".join(words), "bold underline", set(result.critical_words)))
    radius = "not certified" if result.radius is None else f"radius {result.radius}"
    console.print(Text.assemble((result.label, "bold"), f", {radius} of {result.words} words"))
    explain_certificate(console, result)
    shares = result.scores or [votes / result.masks for votes in result.votes]
    means = [f"{score:.2f}, " for score in result.scores] if result.scores else [""] * len(labels)
    told = [
        (name, f"{mean}{votes:,} of {result.masks:,} copies", share)
        for name, mean, votes, share in zip(labels, means, result.votes, shares, strict=True)
    ]
    console.print(Text("\nmean score, and votes" if result.scores else "\nvotes", style="dim"))
    _bars(console, told, 1.0)
    if (curve := found["curves"].get(result.certificate)) is not None:
        console.print(Text("\nchanged words, and what is left of the lead", style="dim"))
        margins = curve["margins"]
        left = [(str(changed), f"{margin:+.3f}", margin) for changed, margin in enumerate(margins)]
        _bars(console, left, max(*margins, 1e-9))
    if found["copies"]:
        console.print(Text(f"\nthe first {len(found['copies'])} copies", style="dim"))
    names: dict[int | None, str] = {None: "none", **dict(enumerate(labels))}
    width = max(map(len, names.values()))
    for copy in found["copies"]:
        kept = set(copy["kept"])
        shown = [word if place in kept else "·" for place, word in enumerate(words)]
        name = f"{names[copy['label_id']]:<{width}}  "
        console.print(Text.assemble((name, "bold"), " ".join(shown)))


def _bars(console: Console, lines: list[tuple[str, str, float]], whole: float) -> None:
    """Names, figures, and bars, which are as long as their share of the ``whole``."""
    first = max(len(name) for name, _, _ in lines)
    second = max(len(figure) for _, figure, _ in lines)
    for name, figure, share in lines:
        bar = _BAR * round(max(share, 0.0) / whole * _WIDTH)
        print_lines(console, f"{name:>{first}}  {figure:>{second}}  {bar}")

"""Results as people read them on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text as RichText

from ranmask.certificates.assumed import missing_guarantee
from ranmask.certificates.threats import STEPS
from ranmask.cli.command import in_flags
from ranmask.cli.terminal import print_lines, visible
from ranmask.errors import OptionError
from ranmask.metrics import (
    CertifiedSummary,
    aligned,
    certified_values,
    class_lines,
    class_name,
    headline,
    poisoned_table,
)
from ranmask.metrics.detection import detection_lines
from ranmask.results import (
    CascadeCertificate,
    CascadePrediction,
    Certificate,
    Comparison,
    PartitionCertificate,
    ShownCertificate,
)
from ranmask.runs.stored import first_result
from ranmask.runs.summary import RunSummary, all_words, poisoned_values
from ranmask.runs.task import Outcome, Result
from ranmask.words import Text, split

_CRITICAL = "bold underline"
_MOST_SHOWN_RADII = 10
_MOST_SHOWN_POISONED = 5
_COMPARED_RADII = 5
_MOST_SHOWN_LABELS = 10
_HIDDEN = "[MASK]"
_OF_A_CASCADE: dict[type, str] = {
    CascadePrediction: "[yellow]no certificate:[/] a cascade proves nothing about the labels that "
    "it shows; ranmask certify proves something about its smoothed label",
    CascadeCertificate: "[yellow]the radius is that of the first label,[/] the smoothed "
    "classifier's; nothing is proved about the label that is shown",
}


def result_table(
    certified: bool, compared: Sequence[str] = (), threats: Sequence[str] = ()
) -> Table:
    """An empty table for results: one column of radii, or one for each certificate compared.

    And one for each of ``threats`` besides.
    """
    table = Table(show_edge=False, pad_edge=False, expand=False)
    table.add_column("row", justify="right", style="dim")
    table.add_column("label", style="bold")
    table.add_column("support", justify="right")
    for name in compared or (["radius", *threats] if certified else []):
        table.add_column(name.replace("-", "\n"), justify="right")
    table.add_column("text", overflow="fold")
    return table


def add_outcome(table: Table, outcome: Outcome, error: str | None = None) -> None:
    """One row of the table: the label, its votes or mean score, the radii, the critical words.

    ``error``: why the label cannot be compared with the true one.
    """
    number = str(outcome.row.number)
    result = outcome.result
    if result is None:
        empty = [""] * (len(table.columns) - 2)
        table.add_row(number, *empty, RichText(f"error: {outcome.error}", style="red"))
        return
    if result.scores is None:
        support = f"{result.votes[result.label_id]}/{result.masks}"
    else:
        support = f"{result.scores[result.label_id]:.2f}"
    critical = result.critical_words if isinstance(result, Certificate) else ()
    cells: list[str | RichText] = [number, _label(result), support]
    if isinstance(result, Certificate):
        cells.append(radius_text(result))
        if isinstance(result, PartitionCertificate):
            cells.append(" ".join(map(str, result.poisoned[:_MOST_SHOWN_POISONED])))
        others = [radius for threat, radius in result.radii.items() if threat != result.threat]
        cells += ["-" if radius is None else str(radius) for radius in others]
    if isinstance(result, Comparison):
        cells += [RichText(_other_radius(other, result)) for other in result.others.values()]
    shown = marked(outcome.row.text or "", _CRITICAL, set(critical))
    if error is not None:
        shown.append(f"\nerror: {error}", style="red")
    table.add_row(*cells, shown)


def marked(
    text: Text, style: str, chosen: Collection[int], of_premise: Collection[int] = ()
) -> RichText:
    """A text with some of its words in a style; the premise of a pair is dim."""
    premise, hypothesis = text if isinstance(text, tuple) else (None, text)
    parts = [] if premise is None else [(premise, of_premise, "dim")]
    shown = RichText()
    for number, (part, places, plain) in enumerate([*parts, (hypothesis, chosen, "")]):
        shown.append(" / " if number else "", style="dim")
        for position, word in enumerate(split(part)):
            shown.append(" " if position else "")
            shown.append(visible(word), style=style if position in places else plain)
    return shown


def _label(result: Result) -> str:
    """The label; of a cascade, also the path that it comes from, or the one that is shown."""
    if isinstance(result, CascadeCertificate):
        return f"{result.label} (shown: {result.shown_label})"
    if isinstance(result, CascadePrediction):
        return f"{result.label} ({result.path})"
    return result.label


def radius_text(result: Certificate) -> str:
    """The radius in a few characters: ``-`` not certified, ``*`` no guarantee, ``+`` or more."""
    if result.radius is None:
        return "-"
    if not result.guarantee:
        return f"{result.radius}*"
    return str(result.radius) if result.tight else f"{result.radius}+"


def _other_radius(other: Mapping[str, Any], exact: Certificate) -> str:
    """A radius beside the exact one; with the label that it is about, where that is another."""
    if other["radius"] is None:
        return "-"
    shown = f"{other['radius']}{'' if other['guarantee'] else '*'}"
    return shown if other["label_id"] == exact.label_id else f"{shown} ({other['label']})"


def print_run(console: Console, summary: RunSummary, output: Path) -> None:
    """The summary of a run, in words where figures alone would promise too much."""
    print_summary(console, summary)
    example = first_result(output)
    if isinstance(example, CascadePrediction | CascadeCertificate) or (
        isinstance(example, Certificate)
        and (
            example.threat != "substitutions"
            or example.radii
            or "poisoned" in vars(example)
            or not example.guarantee
        )
    ):
        explain(console, example, table=False)


def explain(console: Console, example: Result, *, table: bool = True) -> None:
    """A few sentences that say what radii mean; ``table``: they stand in one, with the texts."""
    if isinstance(example, CascadePrediction | CascadeCertificate):
        console.print(_OF_A_CASCADE[type(example)], highlight=False)
    if not isinstance(example, Certificate):
        return
    if not example.guarantee:
        star = "* " if table else ""
        why, instead = missing_guarantee(example.certificate)
        said = in_flags(OptionError(f"{why}; use {instead}"), {"certificate": "--certificate"})
        console.print(f"[yellow]{star}not a guarantee:[/] {said}", highlight=False)
        return
    chance = "" if example.alpha is None else f", with probability {1 - example.alpha:g}"
    critical = "; underlined: words that could break it, one more than that" if table else ""
    if example.threat == "synonyms" and not example.radii:
        console.print(
            "[dim]radius: replace that many words by words that the table lists for them, and "
            f"the label stays{chance};[/] [yellow]this covers substitutions from the table only[/]"
            f"[dim], no other word{critical if example.critical_words else ''}[/]"
        )
        return
    radius = "exact" if isinstance(example, Comparison) else "radius"
    shown = not isinstance(example, PartitionCertificate)  # which knows no worst words
    underlined = critical if shown and (not example.tight or example.critical_words) else ""
    console.print(
        f"[dim]{radius}: {STEPS[example.threat]}, and the label stays{chance}{underlined}[/]"
    )
    if isinstance(example, PartitionCertificate):
        console.print(
            "[dim]poisoned: how many training texts may be added, removed or relabelled besides, "
            "with 0, 1, 2, ... changed words, and the tables trained anew[/]"
        )
    for threat in example.radii:
        if threat != example.threat:
            console.print(f"[dim]{threat}: {STEPS[threat]}[/]")
    if isinstance(example, Comparison):
        one = next(iter(example.others.values()))
        console.print(
            f"[dim]the others: of a vote over {one['masks']:,} random copies; ablation with "
            f"probability {1 - one['alpha']:g}[/]\n"
            f"[yellow]* not a guarantee:[/] [dim]{missing_guarantee('paper')[0]}[/]",
            highlight=False,
        )


def print_summary(console: Console, summary: RunSummary) -> None:
    """Accuracy, MCB, MCR and CR@d of the labelled rows, the same by class and by certificate.

    Where no row has a label: the labels that were said, and how many texts reach each radius.
    """
    certified = summary.certified
    counted = f"{summary.rows} row{'s' * (summary.rows != 1)}, {summary.errors} with errors"
    labelled = f", {certified.texts} with labels" if certified.texts else ""
    console.print(counted + labelled)
    if summary.reader_failed:
        console.print(
            f"{summary.reader_failed} rows were decided by their copies alone: the reader failed"
        )
    if not certified.texts:
        _print_unlabelled(console, summary)
        return
    by_class = certified_values(certified, summary.labels, certified=summary.has_radii)
    lines = [f"accuracy {float(certified.accuracy):.3f} {headline(by_class)}"]
    if summary.has_radii and not summary.threats:
        rate = certified.median_rate
        shown = "MCR N/A" if rate is None else f"MCR {float(100 * rate):.1f}%"
        most = min(certified.largest_radius, _MOST_SHOWN_RADII)
        lines.append("  ".join([_median(certified), shown, *_shares(certified, most)]))
    for threat, of in summary.threats.items():
        whole = [f"all words {share:.3f}" for share in all_words(threat, of).values()]
        most = min(of.largest_radius, _MOST_SHOWN_RADII)
        lines.append("  ".join([f"{threat:<13}", _median(of), *_shares(of, most), *whole]))
    lines += class_lines(by_class["classes"])
    if summary.poisoned:
        lines += aligned(*poisoned_table(poisoned_values(summary.poisoned)))
    if summary.positive is not None:
        name = class_name(summary.positive, summary.labels)
        lines += detection_lines(name, summary.detection.values())
    for kind, compared in summary.kinds.items():
        figures = [
            f"{kind:<16}",
            f"accuracy {float(compared.summary.accuracy):.3f}",
            _median(compared.summary),
            *_shares(compared.summary, _COMPARED_RADII),
            *([] if compared.guarantee else ["no guarantee"]),
        ]
        lines.append("  ".join(figures))
    print_lines(console, *lines)


def _print_unlabelled(console: Console, summary: RunSummary) -> None:
    """What was said of texts whose true label is not known."""
    said = summary.unlabelled
    if not said.texts:
        return
    named = said.named.most_common(_MOST_SHOWN_LABELS)
    more = ["..."] if len(said.named) > len(named) else []
    labels = [f"{class_name(number, summary.labels)} {texts}" for number, texts in named]
    print_lines(console, f"labels: {', '.join([*labels, *more])}")
    if said.radii():
        shares = [
            f"{changed}: {float(said.certified_accuracy(changed)):.3f}"
            for changed in range(1, min(said.largest_radius, _MOST_SHOWN_RADII) + 1)
        ]
        reached = f", share of texts with a radius of at least {', '.join(shares)}"
        median = "N/A" if said.median_radius is None else said.median_radius
        print_lines(console, f"median radius {median}{reached * bool(shares)}")


def _median(summary: CertifiedSummary) -> str:
    return "MCB N/A" if summary.median_radius is None else f"MCB {summary.median_radius}"


def _shares(summary: CertifiedSummary, most: int) -> list[str]:
    return [
        f"CR@{changed} {float(summary.certified_accuracy(changed)):.3f}"
        for changed in range(1, most + 1)
    ]


def print_copies(console: Console, outcome: Outcome, labels: tuple[str, ...] | None) -> None:
    """The copies of a text that were kept, their hidden words masked, and what each votes for."""
    if not isinstance(outcome.result, ShownCertificate):
        return
    text = outcome.row.text
    words = split((text[1] if isinstance(text, tuple) else text) or "")
    table = Table(show_edge=False, pad_edge=False, expand=False)
    table.add_column("vote", style="bold")
    table.add_column(f"copies of row {outcome.row.number}", overflow="fold")
    for copy in outcome.result.copies:
        kept, vote = set(copy["kept"]), copy["label_id"]
        shown = RichText()
        for position, word in enumerate(words[: outcome.result.words_read]):
            shown.append(" " if position else "")
            shown.append(*((visible(word), "") if position in kept else (_HIDDEN, "dim")))
        name = "none" if vote is None else class_name(vote, labels)
        table.add_row(RichText(name), shown)
    console.print(table)

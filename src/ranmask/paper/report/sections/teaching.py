"""What a certificate is, on our own sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranmask.certificates.ablation import delta
from ranmask.certificates.exact import sets_met
from ranmask.paper.report.blocks import (
    Block,
    Bullets,
    Copy,
    Example,
    Heading,
    Paragraph,
    Section,
    Share,
    prose,
)
from ranmask.paper.report.condensed import Certified, Examples, Reproduction
from ranmask.paper.report.counting import finished, has_result
from ranmask.paper.report.sections import faults
from ranmask.paper.report.tables import Cell, Column, Table, row, share
from ranmask.words import split

_COPIES = 6
_SENTENCES = 4


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The lesson; None where nothing was certified."""
    if not has_result(reproductions, Certified) and not has_result(reproductions, Examples):
        return None
    blocks = (*_idea(reproductions), *faults.blocks())
    return Section("What a certificate is", "certificate", blocks)


def _idea(reproductions: Sequence[Reproduction]) -> list[Block]:
    named = _named_lines(reproductions)
    lines = [line for line, _ in named]
    blocks: list[Block] = [
        Paragraph(
            prose(
                "A smoothed classifier does not read a text once. It makes many **copies**, hides "
                "some of the words of each, asks the model about every copy, and takes a **vote**. "
                "A certificate is what follows from the votes: a number of words, the **radius**. "
                "*Change so many words, any of them, to anything, and the label stays.* The "
                "attacker may know the model, the copies and the votes."
            )
        ),
        Paragraph(prose(_limits(reproductions))),
    ]
    if lines:
        shown, names = max(named, key=lambda pair: _worth_showing(pair[0]))
        blocks.append(_picture(shown, names))
    blocks.append(Paragraph(prose("Why this is a proof and not a hope:")))
    blocks.append(Bullets(_steps(lines), numbered=True))
    if lines:
        blocks += _count(shown)
        blocks.append(Heading("On which words a label hangs"))
        blocks.append(
            Paragraph(
                prose(
                    "Marked words are a worst choice: change **all** of them, and the label could "
                    "fall. Change any one fewer, whichever they are, and it cannot."
                )
            )
        )
        blocks += [_sentence(line) for line in lines[:_SENTENCES]]
    return blocks


def _limits(reproductions: Sequence[Reproduction]) -> str:
    """What a radius does not cover."""
    threats = {
        result.threat for one in reproductions for _, result in finished(one, Certified)
    } or {"substitutions"}
    said = "It says that the label is *stable*, not that it is right."
    if "substitutions" in threats:
        said += " It covers words replaced one for one, not words added or left out."
    if "synonyms" in threats:
        said += (
            " Where copies are made by putting in synonyms (SAFER), a radius covers words of the "
            "table of synonyms only, not any word."
        )
    if "edits" in threats:
        said += " Where a table speaks of edits, words added or left out are covered too."
    return said


def _steps(lines: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    words, kept = (lines[0]["words"], lines[0]["kept"]) if lines else faults.WORKED
    met = share(delta(words, min(kept, words), 1), 2)
    return (
        prose(
            "Which words a copy hides depends on the *number* of words only. Whoever changes "
            "words cannot choose other copies."
        ),
        prose(
            "A copy that shows none of the changed words is the very same copy as before. It "
            "votes as before."
        ),
        prose(
            "So changing some words can turn only the votes of copies that show one of them. With "
            "{kept} of {words} words visible, that is a share of about {met} for one word.",
            kept=kept,
            words=words,
            met=met,
        ),
        prose(
            "Count. Give all those votes to the strongest rival. If the label still wins, "
            "whichever words were meant, no change of so many words can move it."
        ),
    )


def _count(line: Mapping[str, Any]) -> list[Block]:
    """The count for the sentence in the picture, where it is as simple as the text says.

    That is so where every possible copy votes.  The certificate counts more closely, and may
    prove more; then the simple count would only confuse.
    """
    words, kept, votes = line["words"], line["kept"], line["votes"]
    radius, winner = line["radius"], line["label_id"]
    if line.get("family") != "all" or radius is None or radius >= words:
        return []
    rival = max((count for label, count in enumerate(votes) if label != winner), default=0)
    rows, wins = [], []
    for changed in range(radius + 2):
        met = sets_met(words, kept, changed)
        left, most = max(0, votes[winner] - met), rival + met
        wins.append(left > most)
        rows.append(
            row(
                str(changed),
                str(met),
                str(left),
                str(most),
                Cell("yes" if wins[-1] else "perhaps not", strong=changed == radius),
            )
        )
    if wins != [True] * (radius + 1) + [False]:
        return []
    table = Table(
        caption="The count for this sentence",
        columns=(
            Column("changed words"),
            Column("copies that show one"),
            Column("votes left, at least"),
            Column("strongest rival, at most"),
            Column("does the label win?", numeric=False),
        ),
        rows=tuple(rows),
    )
    return [table]


def _named_lines(
    reproductions: Sequence[Reproduction],
) -> list[tuple[Mapping[str, Any], Mapping[int, str]]]:
    """Certified sentences of our own, each with the names of its run's classes."""
    needed = {"label", "label_id", "votes", "words", "kept", "masks", "radius", "critical_words"}
    return [
        (line, _names(examples))
        for one in reproductions
        for _, examples in finished(one, Examples)
        for line in examples.lines
        if needed <= line.keys() and _text(line)
    ]


def _text(line: Mapping[str, Any]) -> str:
    return str(line.get("hypothesis") or line.get("text") or "")


def _names(examples: Examples) -> dict[int, str]:
    """From the run's record; where that has none, the labels that its own lines were given."""
    if examples.labels:
        return dict(enumerate(examples.labels))
    labelled = (line for line in examples.lines if {"label_id", "label"} <= line.keys())
    return {int(line["label_id"]): str(line["label"]) for line in labelled}


def _worth_showing(line: Mapping[str, Any]) -> tuple[bool, bool, int]:
    """Something is proved, the copies do not all agree, and the more is proved the better."""
    dissent = any(copy["label_id"] != line["label_id"] for copy in line.get("copies", ()))
    return bool(line["radius"]), dissent, line["radius"] or 0


def _picture(line: Mapping[str, Any], names: Mapping[int, str]) -> Example:
    words = split(_text(line))
    winner = int(line["label_id"])
    copies = [
        Copy(
            tuple(word if place in set(copy["kept"]) else None for place, word in enumerate(words)),
            tuple(len(word) for word in words),
            _name(names, int(copy["label_id"])),
            int(copy["label_id"]) == winner,
        )
        for copy in _chosen_copies(line.get("copies", ()), winner)
    ]
    tally = tuple(
        Share(_name(names, label), int(votes), label == winner)
        for label, votes in sorted(enumerate(line["votes"]), key=lambda pair: -pair[1])
        if votes
    )
    about = ""
    if copies:
        about = (
            f"{len(copies)} of its {line['masks']:,} copies, and how each votes. Grey: hidden. The "
            "bar below counts all."
        )
    return Example(tuple(words), frozenset(), tuple(copies), tally, _verdict(line), about)


def _chosen_copies(copies: Sequence[Mapping[str, Any]], winner: int) -> list[Mapping[str, Any]]:
    """The first few of either opinion, about as many of each as there are among all copies."""
    dissent = [place for place, copy in enumerate(copies) if int(copy["label_id"]) != winner]
    agree = [place for place, copy in enumerate(copies) if int(copy["label_id"]) == winner]
    shown = min(_COPIES, len(copies))
    wanted = round(shown * len(dissent) / max(1, len(copies)))
    # Both opinions are seen wherever there are two.
    wanted = max(min(1, len(dissent)), min(wanted, shown - min(1, len(agree))))
    places = sorted([*dissent[:wanted], *agree[: shown - wanted]])
    return [copies[place] for place in places]


def _name(names: Mapping[int, str], label: int) -> str:
    return names.get(label, f"class {label}")


def _verdict(line: Mapping[str, Any]) -> Any:
    radius = line["radius"]
    votes, masks = int(line["votes"][int(line["label_id"])]), int(line["masks"])
    counted = {"votes": f"{votes:,}", "masks": f"{masks:,}", "label": line["label"]}
    if not radius:
        return prose(
            "{votes} of {masks} copies say *{label}*. That is too close: the change of one word "
            "could turn the vote.",
            **counted,
        )
    return prose(
        "{votes} of {masks} copies say *{label}*. **Radius {radius}:** change any {words}, to "
        "anything, and it is still *{label}*.",
        radius=radius,
        words=_number_of_words(radius),
        **counted,
    )


def _sentence(line: Mapping[str, Any]) -> Example:
    critical = frozenset(int(place) for place in line["critical_words"])
    radius = line["radius"]
    if radius is None:
        verdict = prose("*{label}*, not certified even unchanged.", label=line["label"])
    elif not radius and critical:
        verdict = prose(
            "*{label}*, radius 0: changing this one word could be enough.", label=line["label"]
        )
    elif not critical:
        verdict = prose("*{label}*, radius {radius}.", label=line["label"], radius=radius)
    else:
        verdict = prose(
            "*{label}*, radius {radius}: change these {these} words and the label could fall; any "
            "{any} cannot do it.",
            label=line["label"],
            radius=radius,
            these=radius + 1,
            any=_number_of_words(radius),
        )
    return Example(tuple(split(_text(line))), critical, (), (), verdict)


def _number_of_words(count: int) -> str:
    return "one word" if count == 1 else f"{count} words"

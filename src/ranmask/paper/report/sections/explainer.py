"""What a certificate is, on our own sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranmask.certificates.kept import sets_met
from ranmask.certificates.sampled import delta
from ranmask.paper.report.blocks import Copy, Example, Prose, Section, Share, prose, text
from ranmask.paper.report.counting import finished
from ranmask.paper.report.sections import faults
from ranmask.paper.report.tables import Cell, Table, share, table
from ranmask.paper.run_data import Certified, Examples, Reproduction
from ranmask.words import split

_COPIES = 6
_SENTENCES = 4
_IDEA = """
    A smoothed classifier does not read a text once. It makes many **copies**, hides some of the
    words of each, asks the model about every copy, and takes a **vote**. A certificate is what
    follows from the votes: a number of words, the **radius**. *Change so many words, any of them,
    to anything, and the label stays.* The attacker may know the model, the copies and the votes.
    """
_PROOF = """
    Why this is a proof and not a hope:

    1. Which words a copy hides depends on the *number* of words only. Whoever changes words cannot
       choose other copies.
    1. A copy that shows none of the changed words is the very same copy as before. It votes as
       before.
    1. So changing some words can turn only the votes of copies that show one of them. With {kept}
       of {words} words visible, that is a share of about {met} for one word.
    1. Count. Give all those votes to the strongest rival. If the label still wins, whichever words
       were meant, no change of so many words can move it.
    """
_CRITICAL = """
    ### On which words a label hangs

    Marked words are a worst choice: change **all** of them, and the label could fall. Change any
    one fewer, whichever they are, and it cannot.
    """
_LIMITS = {
    "substitutions": " It covers words replaced one for one, not words added or left out.",
    "synonyms": " Where copies are made by putting in synonyms (SAFER), a radius covers words of "
    "the table of synonyms only, not any word.",
    "edits": " Where a table speaks of edits, words added or left out are covered too.",
}
_NEEDED = {"label", "label_id", "votes", "words", "kept", "masks", "radius", "critical_words"}


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The lesson; None where nothing was certified."""
    certified = [result for run in reproductions for _, result in finished(run, Certified)]
    examples = [result for run in reproductions for _, result in finished(run, Examples)]
    if not certified and not examples:
        return None
    threats = {result.threat for result in certified} or {"substitutions"}
    limits = "".join(said for threat, said in _LIMITS.items() if threat in threats)
    named = [
        (line, _names(result))
        for result in examples
        for line in result.lines
        if line.keys() >= _NEEDED and _text(line)
    ]
    words, kept = (named[0][0]["words"], named[0][0]["kept"]) if named else faults.WORKED
    blocks = text(_IDEA)
    blocks += text(f"It says that the label is *stable*, not that it is right.{limits}")
    shown, names = max(named, key=lambda pair: _worth_showing(pair[0]), default=({}, {}))
    blocks += [_picture(shown, names)] if named else []
    met = share(delta(words, min(kept, words), 1), 2)
    blocks += text(_PROOF, kept=kept, words=words, met=met)
    if named:
        sentences = [_sentence(line) for line, _ in named[:_SENTENCES]]
        blocks += [*_count(shown), *text(_CRITICAL), *sentences]
    return Section("What a certificate is", "certificate", [*blocks, *faults.blocks()])


def _count(line: Mapping[str, Any]) -> list[Table]:
    """The count for the sentence in the picture, where it is as simple as the text says.

    That is so where every possible copy votes.  The certificate counts more closely, and may
    prove more; then the simple count would only confuse.
    """
    words, votes = line["words"], line["votes"]
    radius, winner = line["radius"], line["label_id"]
    if line.get("family") != "all" or radius is None or radius >= words:
        return []
    rival = max((count for label, count in enumerate(votes) if label != winner), default=0)
    rows, wins = [], []
    for changed in range(radius + 2):
        met = sets_met(words, line["kept"], changed)
        left, most = max(0, votes[winner] - met), rival + met
        wins.append(left > most)
        verdict = Cell("yes" if left > most else "perhaps not", strong=changed == radius)
        rows.append((str(changed), str(met), str(left), str(most), verdict))
    if wins != [True] * (radius + 1) + [False]:
        return []
    titles = [
        "changed words",
        "copies that show one",
        "votes left, at least",
        "strongest rival, at most",
        "<does the label win?",
    ]
    return [table("The count for this sentence", titles, rows)]


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
    winner = int(line["label_id"])
    copies = [
        Copy(
            frozenset(copy["kept"]),
            names.get(label := int(copy["label_id"]), f"class {label}"),
            label == winner,
        )
        for copy in _chosen_copies(line.get("copies", ()), winner)
    ]
    tally = [
        Share(names.get(label, f"class {label}"), int(votes), label == winner)
        for label, votes in sorted(enumerate(line["votes"]), key=lambda pair: -pair[1])
        if votes
    ]
    about = (
        f"{len(copies)} of its {line['masks']:,} copies, and how each votes. Grey: hidden. The bar "
        "below counts all."
    )
    radius = line["radius"]
    said = "{votes} of {masks} copies say *{label}*."
    if radius:
        said += """ **Radius {radius}:** change any {words}, to anything, and it is still
            *{label}*."""
    else:
        said += " That is too close: the change of one word could turn the vote."
    verdict = prose(
        said,
        votes=f"{int(line['votes'][winner]):,}",
        masks=f"{int(line['masks']):,}",
        label=line["label"],
        radius=radius,
        words=_number_of_words(radius),
    )
    words = split(_text(line))
    return Example(words, frozenset(), copies, tally, verdict, about if copies else "")


def _chosen_copies(copies: Sequence[Mapping[str, Any]], winner: int) -> list[Mapping[str, Any]]:
    """The first few of either opinion, about as many of each as there are among all copies."""
    dissent = [place for place, copy in enumerate(copies) if int(copy["label_id"]) != winner]
    agree = [place for place, copy in enumerate(copies) if int(copy["label_id"]) == winner]
    shown = min(_COPIES, len(copies))
    wanted = round(shown * len(dissent) / max(1, len(copies)))
    # Both opinions are seen wherever there are two.
    wanted = max(min(1, len(dissent)), min(wanted, shown - min(1, len(agree))))
    return [copies[place] for place in sorted([*dissent[:wanted], *agree[: shown - wanted]])]


def _sentence(line: Mapping[str, Any]) -> Example:
    critical = frozenset(int(place) for place in line["critical_words"])
    radius = line["radius"]
    if radius is None:
        said = "*{label}*, not certified even unchanged."
    elif not radius and critical:
        said = "*{label}*, radius 0: changing this one word could be enough."
    elif not critical:
        said = "*{label}*, radius {radius}."
    else:
        said = """*{label}*, radius {radius}: change these {these} words and the label could fall;
            any {any} cannot do it."""
    verdict: Prose = prose(
        said,
        label=line["label"],
        radius=radius,
        these=(radius or 0) + 1,
        any=_number_of_words(radius),
    )
    return Example(split(_text(line)), critical, (), (), verdict)


def _number_of_words(count: int | None) -> str:
    return "one word" if count == 1 else f"{count} words"

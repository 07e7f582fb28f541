"""What a certificate is, on our own sentences, and the two faults of the paper's, on numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ranmask.certificates.kept import sets_met
from ranmask.certificates.margins import BEYOND
from ranmask.certificates.sampled import delta
from ranmask.paper.report.axes import Axis, fitted_axis
from ranmask.paper.report.blocks import Block, Copy, Example, Picture, Section, prose, text
from ranmask.paper.report.charts import Plot, Point, Series
from ranmask.paper.report.experiments import experiments
from ranmask.paper.report.tables import Cell, Table, share, table
from ranmask.paper.run_data import Certified, Examples, Reproduction
from ranmask.words import split

_COPIES = 6
_SENTENCES = 4
_IDEA = """
    A smoothed classifier makes many **copies** of a text, hides some words of each, asks the base
    model about every copy, and takes the majority **vote**. From the votes follows a certificate: a
    number of words, the **radius**. *Change that many words, any of them, to anything, and the
    label stays.* The attacker may know the model, the copies and the votes.
    """
_VOTING = """
    ### How masked copies vote
    """
_PROOF = """
    ### Why a few changed words are not enough

    1. Which words a copy hides depends on the *number* of words only. An attacker who replaces
       words cannot change that.
    1. A copy that shows none of the changed words is the same as before, and votes as before.
    1. So changed words can flip only the votes of copies that show one of them. With {kept} of
       {words} words visible, that is a share of about {met} for one word.
    1. Give all those votes to the strongest rival. If the label still wins, whichever words are
       chosen, no change of that many words can flip it.
    """
_CRITICAL = """
    ### The critical words of a label

    Marked words are a worst case: change **all** of them, and the label could flip. Change any one
    fewer, whichever they are, and it cannot.
    """
_LIMITS = {
    "substitutions": " It covers words replaced one for one, not words added or left out.",
    "synonyms": " Where copies are made by putting in synonyms (SAFER), a radius covers words of "
    "the table of synonyms only, not any word.",
    "edits": " Where a table speaks of edits, words added or left out are covered too.",
}
_HALF = Fraction(1, 2)
# The worked step: a sentence of the length that is typical of SST2.
_WORDS, _KEPT, _SHARE = 19, 6, Fraction(9, 10)
_RATE, _KEPT_LOW = Fraction(3, 10), 13
# The counterexample of docs/certificates.md.
_LONG, _SHOWN, _KEYS, _PLANTED = 43, 4, 12, 3

_ONE_TOO_HIGH = """
    ### Why the paper's radius is one too high

    The paper's Algorithm 2 tests one number of changed words d after the other: is `p − βΔ(d)`
    above 1/2? Here p is the share of copies that vote for the label, `Δ(d)` the share of copies
    that show at least one of d changed words, and β is set to p. It stops at the first d that
    **fails**, and returns that d. The last one that passed is one lower.
    """
_NOTHING_CERTIFIED = """
    So a printed 1 can mean that **nothing** was certified, and below a masking rate of one half it
    always does. There `Δ(1)`, the share of copies that show one given word, is more than half:
    with {kept} of {words} words visible ({rate} hidden), even a perfect classifier, p = 1, has
    `1 − Δ(1) = {value}`, below 1/2. No word can be certified, yet the paper's tables print a
    median of 1 word.
    """
_CHOSEN_POSITIONS = """
    ### The second fault: an attacker does not choose at random

    β is how often a copy that shows a changed word votes for the label. The paper averages it over
    *random* positions, or puts p in its place. An attacker picks the positions where it is
    largest. One text is enough to show the difference:

    1. A text of {words} words, {keys} of them key words; each copy shows {kept}. A copy that shows
       a key word, and no planted one, votes for the label: p = {before}.
    1. The paper's test at {planted} words: {before} × (1 − {met}) = {value}, above 1/2. It passes;
       as printed, even {printed} words are claimed.
    1. Now plant {planted} words, all in place of key words. Every copy that shows one of them used
       to vote for the label: β = 1, not {before}.
    1. p falls to {before} − {met} = **{after}**, below 1/2. The label flips. With β = 1
       (Levine–Feizi), and by counting (exact), 2 words are certified, and that is true.
    """
_NEEDED = {"label", "label_id", "votes", "words", "kept", "masks", "radius", "critical_words"}


def section(reproductions: Sequence[Reproduction]) -> Section | None:
    """The lesson; None where nothing was certified."""
    runs = [experiment.run for experiment in experiments(reproductions)]
    certified = [result for run in runs for _, result in run.finished(Certified)]
    examples = [result for run in runs for _, result in run.finished(Examples)]
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
    words, kept = _WORDS, _KEPT
    blocks = text(_IDEA)
    blocks += text(f"It says that the label is *stable*, not that it is right.{limits}")
    shown, names = max(named, key=lambda pair: _worth_showing(pair[0]), default=({}, {}))
    if named:
        words, kept = shown["words"], shown["kept"]
        blocks += [*text(_VOTING), _picture(shown, names)]
    met = share(delta(words, min(kept, words), 1), 2)
    blocks += text(_PROOF, kept=kept, words=words, met=met)
    if named:
        sentences = [_sentence(line) for line, _ in named[:_SENTENCES]]
        blocks += [*_stairs(shown), *text(_CRITICAL), *sentences]
    return Section("What a certificate is", "certificate", [*blocks, *_faults()])


@dataclass(frozen=True)
class _Step:
    """The votes after so many changed words, as bad as can be; ``met``: copies that show one."""

    changed: int
    met: int
    left: int
    rival: int

    @property
    def lead(self) -> int:
        return self.left - self.rival


def _steps(line: Mapping[str, Any]) -> list[_Step]:
    """The count for a sentence, where it is as simple as the text says; else nothing.

    That is so where every possible copy votes.  The certificate counts more closely, and may
    prove more; then the simple count would only confuse.
    """
    words, votes = line["words"], line["votes"]
    radius, winner = line["radius"], line["label_id"]
    if line.get("family") != "all" or radius is None or radius >= words:
        return []
    rival = max((count for label, count in enumerate(votes) if label != winner), default=0)
    steps = []
    for changed in range(min(words, radius + BEYOND) + 1):
        met = sets_met(words, line["kept"], changed)
        steps.append(_Step(changed, met, max(0, votes[winner] - met), rival + met))
    ahead = [step.changed for step in steps if step.lead > 0]
    return steps if ahead == list(range(radius + 1)) else []


def _stairs(line: Mapping[str, Any]) -> list[Block]:
    """What is left of the lead after each number of changed words: a picture, and its numbers."""
    steps = _steps(line)
    if not steps:
        return []
    radius, label = line["radius"], line["label"]
    points = [
        Point(
            step.changed,
            step.lead,
            low=min(0, step.lead),
            high=max(0, step.lead),
            label=f"{step.lead:+}".replace("-", "−") if step.lead else "0",
        )
        for step in steps
    ]
    ticks = tuple((float(step.changed), str(step.changed)) for step in steps)
    chart = Plot(
        title=f"Votes that {label} is ahead, at worst",
        description=f"Above 0 up to {_number_of_words(radius)} changed, whichever they are.",
        x=Axis("changed words", -0.5, len(steps) - 0.5, ticks),
        y=fitted_axis("votes ahead", [step.lead for step in steps], within=(-math.inf, math.inf)),
        series=[Series("lead", points, 1, "step", band=True)],
        rules=[(0.0, "")],
    )
    caption = prose(
        """Every copy that shows a changed word is given to the strongest rival. After {words}
        *{label}* is still ahead, whichever they were; after one more it need not be: the proof
        ends at 0.""",
        words=_number_of_words(radius),
        label=label,
    )
    titles = [
        "changed words",
        "copies that show one",
        "votes left, at least",
        "strongest rival, at most",
        "<does the label win?",
    ]
    rows = [
        (
            str(step.changed),
            str(step.met),
            str(step.left),
            str(step.rival),
            Cell("yes" if step.lead > 0 else "perhaps not", strong=step.changed == radius),
        )
        for step in steps[: radius + 2]
    ]
    return [
        Picture("lead-after-changes", [chart], caption),
        table("The count for this sentence", titles, rows),
    ]


def _text(line: Mapping[str, Any]) -> str:
    return str(line.get("hypothesis") or line.get("text") or "")


def _names(examples: Examples) -> dict[int, str]:
    """From the run's record; where that has none, the labels that its own lines were given."""
    if examples.labels:
        return dict(enumerate(examples.labels))
    labelled = (line for line in examples.lines if {"label_id", "label"} <= line.keys())
    return {int(line["label_id"]): str(line["label"]) for line in labelled}


def _worth_showing(line: Mapping[str, Any]) -> tuple[bool, bool, bool, int]:
    """Something is proved, by a simple count; the copies do not all agree; the more the better."""
    dissent = any(copy["label_id"] != line["label_id"] for copy in line.get("copies", ()))
    return bool(line["radius"]), bool(_steps(line)), dissent, line["radius"] or 0


def _picture(line: Mapping[str, Any], names: Mapping[int, str]) -> Example:
    winner = int(line["label_id"])
    copies = [
        Copy(
            frozenset(copy["kept"]),
            "none" if label is None else names.get(label, f"class {label}"),
            label == winner,
        )
        for copy in _chosen_copies(line.get("copies", ()), winner)
        for label in [copy["label_id"]]  # None: it says nothing
    ]
    tally = [
        (names.get(label, f"class {label}"), int(votes), label == winner)
        for label, votes in sorted(enumerate(line["votes"]), key=lambda pair: -pair[1])
        if votes
    ]
    about = (
        f"{len(copies)} of the {line['masks']:,} copies, with their votes. Grey: hidden. Below: "
        "all votes."
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
    dissent = [place for place, copy in enumerate(copies) if copy["label_id"] != winner]
    agree = [place for place, copy in enumerate(copies) if copy["label_id"] == winner]
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
        said = """*{label}*, radius {radius}: change these {these} words and the label could flip;
            any {any} cannot do it."""
    these, most = (radius or 0) + 1, _number_of_words(radius)
    verdict = prose(said, label=line["label"], radius=radius, these=these, any=most)
    return Example(split(_text(line)), critical, (), (), verdict)


def _number_of_words(count: int | None) -> str:
    return "one word" if count == 1 else f"{count} words"


# -- the faults of the paper's certificate -------------------------------------------------------


def _faults() -> list[Block]:
    before, met = delta(_LONG, _SHOWN, _KEYS), delta(_LONG, _SHOWN, _PLANTED)
    return [
        *text(_ONE_TOO_HIGH),
        _worked(),
        *text(
            _NOTHING_CERTIFIED,
            kept=_KEPT_LOW,
            words=_WORDS,
            rate=f"{float(100 * _RATE):g} %",
            value=share(1 - delta(_WORDS, _KEPT_LOW, 1)),
        ),
        *text(
            _CHOSEN_POSITIONS,
            words=_LONG,
            kept=_SHOWN,
            keys=_KEYS,
            planted=_PLANTED,
            printed=_PLANTED + 1,
            before=share(before, 4),
            met=share(met, 4),
            value=share(before * (1 - met), 4),
            after=share(before - met, 4),
        ),
    ]


def _worked() -> Table:
    shown = [delta(_WORDS, _KEPT, changed) for changed in range(4)]
    values = [_SHARE * (1 - part) for part in shown]
    last = max(changed for changed, value in enumerate(values) if value > _HALF)
    meanings = {
        last: "the last that passes: what the test supports",
        last + 1: "the first that fails: what the paper prints",
    }
    return table(
        f"Algorithm 2, step by step: {_WORDS} words, {_KEPT} visible, p = {share(_SHARE, 1)}",
        ["changed words d", "Δ(d)", "p − pΔ(d)", "<above .5?", "<what it means"],
        [
            (
                str(changed),
                share(shown[changed]),
                share(value),
                "passes" if value > _HALF else "fails",
                Cell(meanings.get(changed, ""), strong=changed == last),
            )
            for changed, value in enumerate(values)
        ],
    )

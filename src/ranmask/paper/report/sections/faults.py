"""The two faults of the paper's certificate, each worked through on numbers."""

from __future__ import annotations

from fractions import Fraction

from ranmask.certificates.ablation import delta
from ranmask.paper.report.blocks import Block, Bullets, Heading, Paragraph, prose
from ranmask.paper.report.symbols import DELTA, MINUS
from ranmask.paper.report.tables import Cell, Column, Table, row, share

_HALF = Fraction(1, 2)
# The worked step: a sentence of the length that is typical of SST2.
_WORDS, _KEPT, _SHARE = 19, 6, Fraction(9, 10)
_RATE, _KEPT_LOW = Fraction(3, 10), 13
# The counterexample of docs/certificates.md.
_LONG, _SHOWN, _KEYS, _PLANTED = 43, 4, 12, 3

WORKED = (_WORDS, _KEPT)
"""Words of the text that the first fault is shown on, and how many of them are visible."""


def blocks() -> list[Block]:
    """Both faults."""
    return [*_one_too_high(), *_chosen_positions()]


def _one_too_high() -> list[Block]:
    perfect = 1 - delta(_WORDS, _KEPT_LOW, 1)
    return [
        Heading("Why the paper's radius is one too high"),
        Paragraph(
            prose(
                "The paper's Algorithm 2 tests one number of changed words d after the other: is "
                "`p {minus} {beta}{Delta}(d)` "
                "above 1/2? Here p is the share of copies that vote for the label, "
                "`{Delta}(d)` the share of copies that show at least one of d changed "
                "words, and {beta} is set to p. It stops at the first d that "
                "**fails**, and returns that d. The last one that passed is one lower."
            )
        ),
        _worked(),
        Paragraph(
            prose(
                "So a printed 1 can mean that **nothing** was certified, and below a masking rate "
                "of one half it always does. There `{Delta}(1)`, the share of copies that show one "
                "given word, is more than half: with {kept} of {words} words visible "
                "({rate} hidden), even a perfect classifier, p = 1, has `1 {minus} "
                "{Delta}(1) = {value}`, below 1/2. No word can be "
                "certified, yet the paper's tables print a median of 1 word.",
                kept=_KEPT_LOW,
                words=_WORDS,
                rate=f"{float(100 * _RATE):g} %",
                value=share(perfect),
            )
        ),
    ]


def _worked() -> Table:
    values = [_SHARE * (1 - delta(_WORDS, _KEPT, changed)) for changed in range(4)]
    last = max(changed for changed, value in enumerate(values) if value > _HALF)
    rows = []
    for changed, value in enumerate(values):
        meaning = ""
        if changed == last:
            meaning = "the last that passes: what the test supports"
        elif changed == last + 1:
            meaning = "the first that fails: what the paper prints"
        rows.append(
            row(
                str(changed),
                share(delta(_WORDS, _KEPT, changed)),
                share(value),
                "passes" if value > _HALF else "fails",
                Cell(meaning, strong=changed == last),
            )
        )
    return Table(
        caption=(
            f"Algorithm 2, step by step: {_WORDS} words, {_KEPT} visible, p = {share(_SHARE, 1)}"
        ),
        columns=(
            Column("changed words d"),
            Column(f"{DELTA}(d)"),
            Column(f"p {MINUS} p{DELTA}(d)"),
            Column("above .5?", numeric=False),
            Column("what it means", numeric=False),
        ),
        rows=tuple(rows),
    )


def _chosen_positions() -> list[Block]:
    before = delta(_LONG, _SHOWN, _KEYS)
    met = delta(_LONG, _SHOWN, _PLANTED)
    after = before - met
    return [
        Heading("The second fault: an attacker does not choose at random"),
        Paragraph(
            prose(
                "{beta} is how often a copy that shows a changed word votes "
                "for the label. The paper averages it over *random* positions, or puts p in its "
                "place. An attacker picks the positions where it is largest. One text is enough "
                "to show the difference:"
            )
        ),
        Bullets(
            (
                prose(
                    "A text of {words} words, {keys} of them key words; each copy shows {kept}. A "
                    "copy that shows a key word, and no planted one, votes for the label: p = "
                    "{before}.",
                    words=_LONG,
                    kept=_SHOWN,
                    keys=_KEYS,
                    before=share(before, 4),
                ),
                prose(
                    "The paper's test at {planted} words: {before} {times} (1 "
                    "{minus} {met}) = {value}, above 1/2. It passes; as printed, even "
                    "{printed} words are claimed.",
                    planted=_PLANTED,
                    before=share(before, 4),
                    met=share(met, 4),
                    value=share(before * (1 - met), 4),
                    printed=_PLANTED + 1,
                ),
                prose(
                    "Now plant {planted} words, all in place of key words. Every copy that shows "
                    "one of them used to vote for the label: {beta} = 1, not "
                    "{before}.",
                    planted=_PLANTED,
                    before=share(before, 4),
                ),
                prose(
                    "p falls to {before} {minus} {met} = **{after}**, below 1/2. The label "
                    "flips. With {beta} = 1 (Levine{dash}Feizi), and by "
                    "counting (exact), 2 words are certified, and that is true.",
                    before=share(before, 4),
                    met=share(met, 4),
                    after=share(after, 4),
                ),
            ),
            numbered=True,
        ),
    ]

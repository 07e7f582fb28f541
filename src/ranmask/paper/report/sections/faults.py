"""The two faults of the paper's certificate, each worked through on numbers."""

from __future__ import annotations

from fractions import Fraction

from ranmask.certificates.sampled import delta
from ranmask.paper.report.blocks import Block, text
from ranmask.paper.report.tables import Cell, Table, share, table

_HALF = Fraction(1, 2)
# The worked step: a sentence of the length that is typical of SST2.
_WORDS, _KEPT, _SHARE = 19, 6, Fraction(9, 10)
_RATE, _KEPT_LOW = Fraction(3, 10), 13
# The counterexample of docs/certificates.md.
_LONG, _SHOWN, _KEYS, _PLANTED = 43, 4, 12, 3

WORKED = (_WORDS, _KEPT)
"""Words of the text that the first fault is shown on, and how many of them are visible."""

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


def blocks() -> list[Block]:
    """Both faults."""
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

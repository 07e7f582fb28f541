"""The paper's risk probability (its eq. 10) in numbers, and what its text says of it.

The risk is the chance that a masked copy of an average text still shows *every* perturbed word.
Beside it stands the chance that a copy shows *any* of them: a certificate has to reckon with that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ranmask.certificates.kept import kept_count
from ranmask.certificates.paper import risk_probability
from ranmask.certificates.sampled import delta
from ranmask.evaluation.intervals import last_kept
from ranmask.paper.published import RiskStatement, published

# The paper states no average for SST2; the training texts have 19.3 words on average.
_UNSTATED_WORDS = {"sst2": 19}
_NOTHING = 1e-9  # words: what is left of exactly none after rounding

EXPLANATION: tuple[str, ...] = (
    "The text asks that this probability be greater than 0.5 for every text, or else more than "
    "half of the copies would show all the perturbed words. It must mean less than 0.5: the "
    "probability is the share of copies that show them all.",
    "The binomials of eq. 10 take the numbers (1 − γ) h and ρ h, which are seldom whole. We "
    "round to a whole number of words as the paper rounds k: the nearest, a half up. Put "
    "gamma functions for factorials and leave the numbers as they are, and little changes.",
    "For AG News (43 words, ρ = 90 %, 4 words shown) the text calls it very close to zero for "
    "every γ. At no perturbed word it is 1, which says nothing; at one word it is 4/43 = "
    "0.093, which is not close to zero; from two words on the text is right.",
    "For SST2 (19 words, ρ = 30 %, 13 words shown) the text calls it about 0.5 and names no "
    "γ. Two perturbed words (γ = 10.5 %) give 0.456, one word 0.684, three 0.295. The "
    "average length is not stated: the texts have 19 words, and 5.26 % in its table is 1 of 19.",
    "None of this is what a certificate needs. A copy that shows any perturbed word may vote as "
    "the attacker likes. For one word of an SST2 text that is 0.684 of the copies, so no vote, "
    "however clear, can be certified at ρ = 30 %; for AG News it is 0.093, and 0.402 at 5 words.",
)


@dataclass(frozen=True)
class RiskRow:
    """``perturbed`` words of a text, and what the copies show of them.

    ``share``: the paper's gamma.  ``every``: the risk, with whole numbers of words;
    ``every_unrounded``: the same with factorials of any number.  ``some``: the chance that a
    copy shows at least one of the words (the paper's Delta).
    """

    perturbed: int
    share: float
    every: float
    every_unrounded: float
    some: float


@dataclass(frozen=True)
class RiskTable:
    """The risk for an average text of a corpus, from no perturbed word to all; ``kept``: k.

    ``share_of_half``: the gamma at which the risk, unrounded, is one half.
    """

    corpus: str
    words: int
    rate: float
    kept: int
    statement: RiskStatement
    share_of_half: float
    rows: tuple[RiskRow, ...]


def risk_table() -> tuple[RiskTable, ...]:
    """The risk for the two corpora that the paper speaks of, at the rates that it attacks."""
    lengths = {**_UNSTATED_WORDS, **published().settings["average_words"]}
    tables = []
    for statement in published().risk.values():
        words, rate = lengths[statement.corpus], statement.rate
        kept = kept_count(words, mask_rate=rate)
        rows = tuple(
            RiskRow(
                perturbed,
                perturbed / words,
                float(risk_probability(words, rate, perturbed / words)),
                unrounded_risk(words, rate, perturbed / words),
                float(delta(words, kept, perturbed)),
            )
            for perturbed in range(words + 1)
        )
        half = _share_of_half(words, rate)
        tables.append(RiskTable(statement.corpus, words, rate, kept, statement, half, rows))
    return tuple(tables)


def unrounded_risk(words: int, rate: float, share: float) -> float:
    """Eq. 10 for any real numbers of hidden and perturbed words; 0 where not all can be shown.

    >>> round(unrounded_risk(43, 0.9, 1 / 43), 3)
    0.1
    """
    shown = (1 - rate) * words
    spare = shown - share * words
    if spare < -_NOTHING:
        return 0.0
    # C(h - d, h - k) / C(h, h - k) = (h - d)! k! / ((k - d)! h!)
    return math.exp(
        math.lgamma(words - share * words + 1)
        + math.lgamma(shown + 1)
        - math.lgamma(max(spare, 0.0) + 1)
        - math.lgamma(words + 1)
    )


def _share_of_half(words: int, rate: float) -> float:
    """The risk falls from 1 as the share grows."""
    return last_kept(0.0, 1 - rate, lambda share: unrounded_risk(words, rate, share) <= 0.5)

"""``tight=True``: some classifier that says the same of every copy fails one word further.

Also where votes are uncertain, scores may move, or unit logits are bounded by more than they reach.
"""

import itertools
import zlib

import numpy as np
import pytest

from ranmask import SmoothedClassifier
from ranmask.certificates.exact import exact_radii
from ranmask.certificates.families import family
from ranmask.certificates.votes import SCALE, count_votes
from ranmask.models.function import FunctionClassifier

EVIL = "#"
CASES = [
    *itertools.product(("vote", "score", "logit"), (0.0, 0.02, 0.3), ((5, 1), (6, 2), (7, 3))),
]


def logits(texts, rival=None, label=None):
    """Three classes; where a copy shows EVIL, as far from ``label`` to ``rival`` as can be."""
    rows = []
    for text in texts:
        random = np.random.default_rng(zlib.crc32(text.encode()))
        row = random.normal((1.2, 0.0, 0.3))
        if rival is not None and EVIL in text.split():
            row = np.zeros(3)
            row[[label, rival]] = -40.0, 40.0
        rows.append(row)
    return np.array(rows)


def smoothed(function, ensemble, tolerance, kept):
    base = FunctionClassifier(function, outputs="logits")
    return SmoothedClassifier(base, keep=kept, ensemble=ensemble, tolerance=tolerance, masks=15)


def texts(length):
    return [" ".join(f"w{number}{place}" for place in range(length)) for number in range(40)]


@pytest.mark.parametrize(("ensemble", "tolerance", "shape"), CASES)
def test_beyond_a_tight_radius_the_label_may_be_lost(ensemble, tolerance, shape):
    length, kept = shape
    results = smoothed(logits, ensemble, tolerance, kept).certify(texts(length))
    for text, result in zip(texts(length), results, strict=True):
        if not result.tight:
            continue
        words = text.split()
        for position in result.critical_words:
            words[position] = EVIL
        label, lost = result.label_id, []
        for rival in {0, 1, 2} - {label}:

            def hostile(shown, rival=rival, label=label):
                return logits(shown, rival, label)

            [scored] = smoothed(hostile, ensemble, tolerance, kept).scored([" ".join(words)])
            [totals] = scored.votes.totals
            lost.append(totals[label] <= totals[rival])
        assert any(lost), (text, result)
    if tolerance == 0 and ensemble != "logit":
        assert all(result.tight for result in results)
    else:
        assert any(result.tight for result in results)


@pytest.mark.parametrize("ensemble", ["vote", "score", "logit"])
def test_a_large_tolerance_hides_what_could_be_proved(ensemble):
    results = smoothed(logits, ensemble, 0.8, 1).certify(texts(6))
    assert not all(result.tight for result in results)
    assert any(result.radius is None and not result.tight for result in results)


def test_unit_logits_reach_less_than_the_bound_that_is_reckoned_with():
    """Copies for the label by A, A and d: one changed word leaves d, and by the bound d - 2."""
    seen = {}
    for below in np.linspace(-4e-6, 10e-6, 40):
        rows = np.array([[1.0, -1.0], [1.0, -1.0], [1.0, 1.0 - below]])
        votes = count_votes(rows, "logit", "logits", 0.0)
        assert votes.attained == 2 * round(SCALE / 2**0.5) == votes.bound - 2
        [radius] = exact_radii(votes, [family(3, 1, choice="all", masks=9)])
        left = int(votes.points[2, 0] - votes.points[2, 1])
        seen[left] = (radius.words, radius.tight)
    assert {left: seen[left] for left in (-1, 0, 1, 2, 3)} == {
        -1: (0, True),
        0: (0, True),
        1: (0, False),
        2: (0, False),
        3: (1, True),
    }

"""A table that reads spellings as one keeps its proofs: every edit of a character is tried."""

import itertools

import numpy as np
import pytest

from ranmask import SmoothedClassifier
from ranmask.models.normalising import Normaliser
from ranmask.models.word_table import WordTable

CYRILLIC, UNSEEN, MANY = "\u0430", "\u200b", "\ufdfa"  # the last is four words in NFKC
ALPHABET = ("a", "b", " ", CYRILLIC, UNSEEN, MANY, ".")
ALIKE = {CYRILLIC: "a"}


def tables(count):
    """Small tables, in which the first class is favoured."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        entries = (rng.integers(-60, 60, (64, 2)) + np.array([40, -40])).astype(np.int8)
        bias = np.zeros(2, dtype=np.int64)
        alike = Normaliser("lookalikes", ALIKE)
        yield WordTable(entries, bias, labels=["a", "b"], shift=4, normaliser=alike)


def edited(text):
    """Every text that one insertion, deletion or substitution of a character makes."""
    for place in range(len(text) + 1):
        before, after = text[:place], text[place:]
        yield from (before + one + after for one in ALPHABET)
        if after:
            yield before + after[1:]
            yield from (before + one + after[1:] for one in ALPHABET)


@pytest.mark.parametrize("steps", [1, 2])
def test_every_edit_of_characters(steps):
    rng = np.random.default_rng(steps)
    proved = tried = 0
    for table in tables(4):
        smoothed = SmoothedClassifier(table, **table.smoothing, threat="characters")
        for size in (6, 9) if steps == 1 else (11,):
            text = " ".join(ALPHABET[one] for one in rng.choice([0, 1, 3], size))
            [certificate] = smoothed.certify([text])
            if (certificate.radius or 0) < steps:
                continue
            proved += 1
            others = set(edited(text))
            if steps == 2:
                some = rng.permutation(sorted(others))[:8]
                others = set(itertools.chain.from_iterable(map(edited, some)))
            others = [one for one in others if one.split()]
            labels = {one.label for one in smoothed.predict(others)}
            assert labels == {certificate.label}
            tried += len(others)
    assert proved >= 3 and tried > 300


def test_spellings_that_are_one_word_cost_nothing_but_are_counted():
    [table] = tables(1)
    smoothed = SmoothedClassifier(table, **table.smoothing, threat="characters")
    plain, *others = (
        f"{word} b{word} ab" for word in ("aa", CYRILLIC * 2, f"a{UNSEEN}a", f"{MANY}a"[1:] + "a")
    )
    [own, *found] = smoothed.certify([plain, *others])
    assert {(one.label, one.radius) for one in found} == {(own.label, own.radius)}

"""What classifiers that others write say of random copies."""

import numpy as np
import pytest

from ranmask import (
    ClassifierError,
    DeletionSmoothedClassifier,
    SynonymSets,
    SynonymSmoothedClassifier,
)
from ranmask.models.base import BaseClassifier


class Miscounting(BaseClassifier):
    """Says too little, or too much, of one copy."""

    labels = ("x", "y")
    repeatable = True

    def __init__(self, change):
        self.change = change

    def score(self, copies):
        return self.change([np.ones((len(one), 2)) for one in copies])

    def configured(self, *, hide=None, mask_token=None):
        return self


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:-1],
        lambda rows: [*rows, rows[0]],
        lambda rows: [np.concatenate(rows[:2]), *rows[1:]],
        lambda rows: [np.concatenate(rows[:2]), rows[1][:0], *rows[2:]],
    ],
    ids=["too few", "too many", "two rows for one", "two rows for one and none for another"],
)
def test_rows_of_another_copy_are_not_counted(change):
    """Random copies of several texts are asked about at once, and told apart by their number."""
    base = Miscounting(change)
    synonyms = SynonymSets({"good": ["fine"], "bad": ["poor"]})
    for classifier in (
        SynonymSmoothedClassifier(base, synonyms, masks=20, recheck=0),
        DeletionSmoothedClassifier(base, mask_rate=0.5, masks=20, recheck=0),
    ):
        with pytest.raises(
            ClassifierError, match=r"Miscounting\.score returned .* rows for .*each"
        ):
            classifier.certify(["good bad good bad", "bad good"])

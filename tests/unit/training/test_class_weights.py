"""What a text of each class counts."""

import numpy as np
import pytest

from ranmask.training.class_weights import class_weights


def test_every_class_counts_the_same():
    labels = [0] * 9 + [1] * 2 + [2]
    weights = class_weights(labels, 3, "balanced")
    totals = [weights[label] * labels.count(label) for label in range(3)]
    assert totals == pytest.approx([4, 4, 4])  # a third of the texts each
    assert class_weights(labels, 3, "none") is None


def test_equal_classes_need_none():
    assert class_weights([1, 0, 1, 0], 2, "balanced").tolist() == [1, 1]


def test_a_class_without_a_text_is_no_division_by_0():
    assert np.isfinite(class_weights([0, 0, 1], 3, "balanced")).all()

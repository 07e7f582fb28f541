"""Every hypothesis of a pair, every kept set, every edit, under the paper's head for pairs."""

import itertools

import numpy as np
import pytest
import tiny_models
import torch

from ranmask import SmoothedClassifier
from ranmask.models.huggingface import HuggingFaceClassifier

PREMISE = "a dull story, and not good"
VOCABULARY = ("great", "awful", "unbelievable")
WORDS = 5
CODES = np.array(list(itertools.product(range(len(VOCABULARY)), repeat=WORDS)))
TEXTS = [(PREMISE, " ".join(VOCABULARY[code] for code in codes)) for codes in CODES]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def broken(results, labels, further=0):
    """Texts with another label within their radius, or so many words further."""
    count = 0
    for codes, result in zip(CODES, results, strict=True):
        if result.radius is not None:
            near = (codes != CODES).sum(axis=1) <= result.radius + further
            count += not (labels[near] == result.label_id).all()
    return count


@pytest.mark.parametrize("ensemble", ["vote", "score"])
@pytest.mark.parametrize("hide", ["mask", "drop"])
@pytest.mark.parametrize("name", ["pair_bert", "pair_roberta"])
def test_no_edit_of_the_hypothesis_within_the_radius_changes_the_label(name, hide, ensemble):
    base = HuggingFaceClassifier(*getattr(tiny_models, name)(), hide=hide)
    largest = further = 0
    for keep in (1, 2):
        smoothed = SmoothedClassifier(base, keep=keep, ensemble=ensemble)
        results = smoothed.certify(TEXTS)
        labels = np.array([found.label_id for found in smoothed.predict(TEXTS)])
        assert all(result.guarantee for result in results)
        assert broken(results, labels) == 0
        largest = max(largest, *(result.radius or 0 for result in results))
        further += broken(results, labels, further=1)
    assert largest > 0, "no edit is within any radius"
    assert further > 0, "the enumeration would not notice a radius too large"

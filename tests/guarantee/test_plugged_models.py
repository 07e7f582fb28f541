"""Estimators, pipelines and functions of all kinds: every edit within a claimed radius is tried."""

import asyncio
import itertools
import zlib

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from ranmask import SmoothedClassifier

VOCABULARY = ("aa", "bb", "!!")
TRAINED = [" ".join(words) for words in itertools.product(VOCABULARY, repeat=2)]
NAMES = ("a", "b", "c")


def drawn(text, classes):
    return zlib.crc32(text.encode()) % classes


def fitted(estimator, classes):
    labels = [NAMES[drawn(text, classes)] for text in TRAINED]
    vectorizer = CountVectorizer(token_pattern=r"\S+", ngram_range=(1, 2))
    return make_pipeline(vectorizer, estimator).fit(TRAINED, labels)


def names(texts):
    return [NAMES[drawn(text, 3)] for text in texts]


def second(texts):
    return np.array([drawn(text, 101) / 100 for text in texts], dtype=np.float32)


async def numbers(texts):
    await asyncio.sleep(0)
    return [drawn(text, 3) for text in texts]


def best_of_a_pipeline(texts):
    return [{"label": f"LABEL_{drawn(text, 3)}", "score": 0.4} for text in texts]


def tensors(texts):
    import torch

    rows = [[drawn(f"{place}{text}", 97) for place in range(3)] for text in texts]
    return torch.tensor(rows, dtype=torch.bfloat16, requires_grad=True)


MODELS = {
    "probabilities": lambda: (fitted(LogisticRegression(), 3), None),
    "decisions": lambda: (fitted(LinearSVC(), 3), None),
    "decisions of two classes": lambda: (fitted(LinearSVC(C=100), 2), None),
    "pairs of classes": lambda: (fitted(SVC(decision_function_shape="ovo"), 3), ["c", "a", "b"]),
    "names": lambda: (names, ["c", "b", "a"]),
    "second": lambda: (second, None),
    "numbers": lambda: (numbers, NAMES),
    "best of a pipeline": lambda: (best_of_a_pipeline, NAMES),
    "tensors": lambda: (tensors, None),
}


@pytest.mark.parametrize("ensemble", ["vote", "score"])
@pytest.mark.parametrize("kind", MODELS)
def test_no_edit_within_the_radius_changes_the_label(kind, ensemble):
    model, labels = MODELS[kind]()
    if kind == "tensors" and ensemble == "score":
        ensemble = "logit"  # which they are
    smoothed = SmoothedClassifier(model, keep=1, hide="drop", labels=labels, ensemble=ensemble)
    texts = [" ".join(words) for words in itertools.product(VOCABULARY, repeat=5)]
    found = dict(zip(texts, smoothed.certify(texts), strict=True))
    largest = 0
    for one, other in itertools.product(texts, repeat=2):
        changed = sum(a != b for a, b in zip(one.split(), other.split(), strict=True))
        if found[one].radius is not None and changed <= found[one].radius:
            assert found[one].label == found[other].label, (one, other)
        largest = max(largest, found[one].radius or 0)
    assert found[texts[0]].guarantee and largest >= 1

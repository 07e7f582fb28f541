"""Classifiers that wrap another pass on all that it says of itself."""

import numpy as np
import pytest

from ranmask.evaluation.tuning import _ScoredOnce
from ranmask.models.base import BaseClassifier, WrappedClassifier
from ranmask.models.known_words import KnownWords
from ranmask.serving.caching import CachingClassifier
from ranmask.serving.context import RequestContext
from ranmask.serving.scorer import BatchScorer
from ranmask.words import Document

PASSED_ON = sorted(
    name for name in vars(BaseClassifier) if not name.startswith("_") and name not in ("score",)
)


class Odd(BaseClassifier):
    """Nothing of it is as by default."""

    outputs = "approvals"
    labels = ("x", "y")
    order_free = True
    blank = True
    known = KnownWords(["x"])
    pairs = True
    repeatable = True
    proves = False
    votes_only = True
    remembered = "answers.jsonl"
    tolerance = 0.25
    assumes = ("much",)

    def score(self, copies):
        return [np.zeros((len(one), 2)) for one in copies]

    def configured(self, *, hide=None, mask_token=None):
        return self

    def words_read(self, document):
        return 7

    def description(self):
        return {"kind": "odd"}


WRAPPERS = {
    "remembering": CachingClassifier,
    "scored once": _ScoredOnce,
    "pooled": lambda base: BatchScorer(base).classifier(RequestContext()),
}


def test_every_wrapper_is_looked_at():
    def below(kind):
        return {kind} | {one for sub in kind.__subclasses__() for one in below(sub)}

    known = {type(wrap(Odd())).__name__ for wrap in WRAPPERS.values()}
    found = {kind.__name__ for kind in below(WrappedClassifier) if "ranmask" in kind.__module__}
    # A screened one scores by its own rules; the tests of its votes look at it.
    assert found - {"WrappedClassifier", "MixedPrecisionClassifier"} == known


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_it_says_of_itself_what_the_inner_one_does(wrap):
    odd = Odd()
    wrapped = wrap(odd)
    for name in BaseClassifier.__annotations__:
        default, value = getattr(BaseClassifier, name), getattr(odd, name)
        assert value != default, f"{name}: this test would see no difference"
        assert getattr(wrapped, name) == value, name
    assert wrapped.tolerance == 0.25 and wrapped.assumes == ("much",)
    assert wrapped.words_read(Document(("a", "b"))) == 7
    assert wrapped.description() == {"kind": "odd"}


def test_every_attribute_is_known_here():
    """A new one has to be passed on, and looked at above."""
    properties = {"without_memory", "tolerance", "assumes"}
    methods = {
        "score_drawn",
        "score_deleted",
        "score_each",
        "configured",
        "words_read",
        "description",
    }
    assert set(PASSED_ON) == {*BaseClassifier.__annotations__, *methods, *properties}

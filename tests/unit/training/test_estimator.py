"""`RanmaskClassifier` in scikit-learn: its own checks, pipelines, searches and copies."""

import contextlib
import pickle
import subprocess
import sys
import unittest

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from ranmask import RanmaskClassifier, SmoothedClassifier, load_classifier
from ranmask.errors import OptionError, TextError

TEXTS = [
    f"{word} {thing}"
    for word in ("good", "great", "fine", "bad", "awful", "poor")
    for thing in ("film", "plot", "acting", "script")
]
LABELS = ["good"] * 12 + ["bad"] * 12
QUICK = {"epochs": 5, "buckets": 512}


def quick(**options):
    return RanmaskClassifier(**{**QUICK, **options})


class OfNumbers(RanmaskClassifier):
    """Rows of numbers as texts, so that scikit-learn's checks, which know no texts, apply."""

    def __init__(self, *, epochs=5, buckets=512, threat="substitutions"):
        super().__init__(epochs=epochs, buckets=buckets, threat=threat)

    def _written(self, X, **more):
        from sklearn.utils.validation import validate_data

        rows = validate_data(self, X, **more)
        return [" ".join(f"{place}:{round(n, 1)}" for place, n in enumerate(row)) for row in rows]

    def fit(self, X, y):
        return super().fit(self._written(X), y)

    def predict(self, X):
        return super().predict(self._asked(X))

    def predict_proba(self, X):
        return super().predict_proba(self._asked(X))

    def _asked(self, X):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return self._written(X, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.one_d_array = tags.input_tags.string = False
        tags.classifier_tags.poor_score = True  # blobs of numbers are no words
        return tags


@parametrize_with_checks([OfNumbers()])
def test_checks_of_scikit_learn(estimator, check):
    with contextlib.suppress(unittest.SkipTest):  # where pandas or the array API is wanted
        check(estimator)


WITHOUT_DATA = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
]


@pytest.mark.parametrize("check", WITHOUT_DATA)
def test_checks_that_need_no_data(check):
    getattr(estimator_checks, check)("RanmaskClassifier", RanmaskClassifier())


def test_texts_alone_are_what_the_checks_cannot_make():
    """Why `OfNumbers` stands in: scikit-learn has no check for an estimator of strings."""
    with pytest.warns(estimator_checks.SkipTestWarning, match="requires input  of type"):
        found = estimator_checks.check_estimator(RanmaskClassifier())
    assert [check["status"] for check in found] == ["passed"]


def test_it_predicts_what_it_was_taught():
    model = quick().fit(TEXTS, LABELS)
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.score(TEXTS, LABELS) == 1
    rows = model.predict_proba(TEXTS)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    assert model.classes_[rows.argmax(axis=1)].tolist() == model.predict(TEXTS).tolist() == LABELS
    assert model.predict([]).shape == (0,) and model.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize("kind", [str, np.int64, bool])
def test_labels_of_any_type_come_back(kind):
    given = np.array([{"good": 7, "bad": 0}[label] for label in LABELS]).astype(kind)
    found = quick().fit(TEXTS, given).predict(TEXTS)
    assert found.dtype == given.dtype and found.tolist() == given.tolist()


def test_what_it_certifies_is_what_it_predicts():
    model = quick().fit(TEXTS, LABELS)
    results = model.certify(TEXTS)
    assert [result.label for result in results] == model.predict(TEXTS).tolist()
    assert isinstance(model.smoothed_, SmoothedClassifier) and results[0].guarantee
    [result] = model.certify(["good great fine good great fine"])
    assert result.certified(1)


def test_options_reach_the_table(tmp_path):
    model = quick(threat="insertions", normalise="case").fit(TEXTS, LABELS)
    assert model.certify(["GOOD film"])[0].threat == "insertions"
    assert model.predict(["GOOD film"]) == ["good"]
    model.smoothed_.save_pretrained(str(tmp_path))
    loaded = load_classifier(str(tmp_path))
    assert loaded.certify(TEXTS) == model.certify(TEXTS)
    with pytest.raises(OptionError, match="threat must be one of"):
        quick(threat="spelling").fit(TEXTS, LABELS)


def test_bad_texts_are_named():
    with pytest.raises(TextError, match="text 1: the text has no words"):
        quick().fit(["good film", " "], [0, 1])
    with pytest.raises(TextError, match=r"text 0: expected a string.*not 3"):
        quick().fit([3, "good"], [0, 1])
    with pytest.raises(TextError, match="not one string"):
        quick().fit(TEXTS, LABELS).predict("good film")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        quick().fit(TEXTS, LABELS[1:])
    with pytest.raises(NotFittedError):
        quick().certify(["good"])


def lowered(texts):
    return [text.lower() for text in texts]


def test_pipelines_searches_and_copies():
    model = make_pipeline(FunctionTransformer(lowered), quick())
    assert cross_val_score(model, TEXTS, LABELS, cv=2).mean() > 0.5
    options = {"ranmaskclassifier__target_words": [1, 2], "ranmaskclassifier__epochs": [5, 10]}
    search = GridSearchCV(model, options, cv=2).fit(np.array(TEXTS), LABELS)
    assert search.predict(["GOOD great film"]) == ["good"]
    assert search.best_params_.keys() == options.keys()
    copied = clone(search.best_estimator_[-1])
    assert copied.get_params() == search.best_estimator_[-1].get_params()
    assert copied.set_params(seed=3).seed == 3 and not hasattr(copied, "classes_")
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert again.predict(TEXTS).tolist() == search.predict(TEXTS).tolist()
    # Its certificates are of what comes out of the other steps.
    smoothed = SmoothedClassifier(search, mask_rate=0.0)
    assert smoothed.predict(["GOOD great film"])[0].label == "good"


def test_without_scikit_learn_it_says_what_to_install():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import ranmask\n"
        "try: ranmask.RanmaskClassifier\n"
        "except ranmask.MissingDependencyError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "scikit-learn is not installed: pip install 'ranmask[sklearn]'\n"

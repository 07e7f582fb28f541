"""`RanmaskClassifier`: a word table as an estimator of scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ranmask.errors import DataError, MissingDependencyError
from ranmask.models.normalising import Normalisation
from ranmask.results import Certificate
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.shared_options import ClassWeights
from ranmask.training.table_options import Lexicon, TableThreat, WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table
from ranmask.words import documents, join

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import assert_all_finite
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
except ImportError as error:
    raise MissingDependencyError("scikit-learn", "sklearn") from error


class RanmaskClassifier(ClassifierMixin, BaseEstimator):
    """Classifies texts, and proves how many words can be changed without changing the label.

    Guarantee: that of `SmoothedClassifier`, for what `predict` says after `fit`.

    1. `fit` trains a word table on texts (a list, an array, a Series, ...) and their labels.
    2. `predict` and `predict_proba` are as in scikit-learn; `certify` adds what is proved.
    3. ``smoothed_.save_pretrained(folder)`` saves it for `ranmask.load_classifier`.

    It takes strings: without a vectorizer, or last in a ``Pipeline`` whose other steps give
    strings.  Parameters are those of `WordTableOptions`, checked by `fit`.

    Attributes:
        classes_: The labels, in the order of the columns of `predict_proba`.
        smoothed_: The `SmoothedClassifier`.

    >>> texts = ["good film", "great plot", "bad film", "awful plot"] * 5
    >>> model = RanmaskClassifier(epochs=5).fit(texts, ["good", "good", "bad", "bad"] * 5)
    >>> model.predict(["great plot and good film"]).tolist()
    ['good']
    >>> [result] = model.certify(["great film and so very good , great , good"])
    >>> result.certified(1)
    True
    """

    classes_: npt.NDArray[Any]
    smoothed_: SmoothedClassifier

    def __init__(
        self,
        *,
        threat: TableThreat = WordTableOptions.threat,
        target_words: int | None = WordTableOptions.target_words,
        class_weights: ClassWeights = WordTableOptions.class_weights,
        normalise: Normalisation = WordTableOptions.normalise,
        lexicon: Lexicon | None = WordTableOptions.lexicon,
        epochs: int | None = WordTableOptions.epochs,
        buckets: int = WordTableOptions.buckets,
        seed: int = WordTableOptions.seed,
    ) -> None:
        self.threat = threat
        self.target_words = target_words
        self.class_weights = class_weights
        self.normalise = normalise
        self.lexicon = lexicon
        self.epochs = epochs
        self.buckets = buckets
        self.seed = seed

    def fit(self, X: Iterable[str], y: npt.ArrayLike) -> Self:  # noqa: N803
        """Train on texts and their labels, of any type."""
        options = WordTableOptions(**self.get_params(deep=False))
        if y is None:
            raise DataError("requires y to be passed, but the target y is None")
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        texts = [join(text.words) for text in documents(X)]
        check_consistent_length(texts, labels)
        self.classes_, ids = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(f"all texts have one class, {self.classes_[0]}: give two or more")
        names = [str(name) for name in self.classes_]
        table = train_word_table(texts, ids.tolist(), names, options=options)
        self.smoothed_ = SmoothedClassifier(table, **table_smoothing(options.resolved(texts)))
        return self

    def predict(self, X: Iterable[str]) -> npt.NDArray[Any]:  # noqa: N803
        """The label of each text, as `fit` was given it."""
        check_is_fitted(self)
        places = [result.label_id for result in self.smoothed_.predict(documents(X))]
        found: npt.NDArray[Any] = self.classes_[np.array(places, dtype=np.intp)]
        return found

    def predict_proba(self, X: Iterable[str]) -> npt.NDArray[np.float64]:  # noqa: N803
        """The mean score of each class over the copies, divided by their sum."""
        check_is_fitted(self)
        rows = [result.scores for result in self.smoothed_.predict(documents(X))]
        scores = np.array(rows, dtype=np.float64).reshape(-1, len(self.classes_))
        sums = scores.sum(axis=1, keepdims=True)
        even = np.full_like(scores, 1 / len(self.classes_))
        shares: npt.NDArray[np.float64] = np.divide(scores, sums, out=even, where=sums > 0)
        return shares

    def certify(self, X: Iterable[str]) -> list[Certificate]:  # noqa: N803
        """The label of each text, as a string, and what is proved of it."""
        check_is_fitted(self)
        return self.smoothed_.certify(documents(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

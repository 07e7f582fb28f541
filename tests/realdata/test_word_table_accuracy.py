"""A word table for accuracy alone, where one class is rare: half a minute on one core."""

import numpy as np
import pytest

from ranmask import SmoothedClassifier
from ranmask.data import data_folder, load_splits
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import table_smoothing, train_word_table

DATA = data_folder()
pytestmark = pytest.mark.skipif(
    DATA is None or not (DATA / "jigsaw_part").is_dir(),
    reason="no datasets: set RANMASK_DATA to the folder that holds jigsaw_part",
)


def test_toxic_comments_are_found_as_by_logistic_regression():
    """Of TF-IDF of single words and logistic regression, F1 on these rows is .776."""
    train, validation = load_splits("jigsaw_part")
    options = WordTableOptions(target_words=0).resolved(train.texts)
    table = train_word_table(train.texts, train.labels, train.label_names, options=options)
    smoothed = SmoothedClassifier(table, **table_smoothing(options))
    found = np.array([one.label_id for one in smoothed.predict(validation.texts)])
    toxic = np.array(validation.labels)
    f1 = 2 * (found & toxic).sum() / (found.sum() + toxic.sum())
    assert f1 > 0.756

"""What a model may return: every form is the same table, and the rest is refused in one line."""

import numpy as np
import pytest

from ranmask.errors import ClassifierError
from ranmask.models.answers import Classes, score_table

NAMES = ("ham", "spam")
THREE = ("a", "b", "c")
ROWS = [[0.75, 0.25], [0.25, 0.75]]
VOTES = [[1.0, 0.0], [0.0, 1.0]]


class Series:
    """What a Series of pandas or polars looks like from outside."""

    def __init__(self, values):
        self._values = values

    def to_numpy(self):
        return np.array(self._values, dtype=object)


class Frame(Series):
    def __init__(self, values, columns):
        super().__init__(values)
        self.columns = columns


class Sparse:
    def toarray(self):
        return np.array(ROWS)


def tensors():
    import torch

    rows = torch.tensor(ROWS)
    return {
        "double": rows.double(),
        "gradient": rows.clone().requires_grad_(),
        "bfloat16": rows.bfloat16(),
        "half": rows.half().requires_grad_(),
        "sparse": rows.to_sparse(),
        "column": rows[:, 1:].requires_grad_(),
        "scalars": list(rows[:, 1]),
        "transposed": rows.T.contiguous().T,
        "list of rows": [row.requires_grad_() for row in rows],
        "tuple of rows": tuple(rows),
    }


def scores(items):
    return [{"label": name, "score": score} for name, score in items]


TABLES = {
    "lists": ROWS,
    "array": np.array(ROWS, order="F"),
    "generator": (row for row in ROWS),
    "sparse matrix": Sparse(),
    "objects": np.array(ROWS, dtype=object),
    "frame": Frame(ROWS, ["x", "y"]),
    "frame in another order": Frame([[0.25, 0.75], [0.75, 0.25]], ["spam", "ham"]),
    "second class": [0.25, 0.75],
    "second class, a column": [[0.25], [0.75]],
    "second class, a series": Series([0.25, 0.75]),
    "pipeline, all": [scores([("spam", q), ("ham", p)]) for p, q in ROWS],
    "pipeline, no names": [scores([("LABEL_1", q), ("LABEL_0", p)]) for p, q in ROWS],
    "by name": [{"spam": 0.25, "ham": 0.75}, {"ham": 0.25, "spam": 0.75}],
}
LABELS = {
    "names": ["ham", "spam"],
    "array of names": np.array(["ham", "spam"]),
    "series of names": Series(["ham", "spam"]),
    "unnamed": ["LABEL_0", "LABEL_1"],
    "numbers": [0, 1],
    "numbers of numpy": np.array([0, 1], dtype=np.uint8),
    "booleans": [False, True],
    "a table of booleans": [[True, False], [False, True]],
    "pipeline, best": [{"label": "ham", "score": 0.6}, {"label": "spam", "score": 0.4}],
    "pipeline, best of a list": [scores([("ham", 0.6)]), scores([("LABEL_1", 0.4)])],
}


@pytest.mark.parametrize("form", TABLES)
def test_scores(form):
    table = score_table(TABLES[form], 2, Classes(NAMES))
    assert table.tolist() == ROWS and table.dtype == np.float64 and table.flags["C_CONTIGUOUS"]


@pytest.mark.parametrize("form", tensors())
def test_tensors(form):
    assert score_table(tensors()[form], 2, Classes(NAMES)).tolist() == ROWS


@pytest.mark.parametrize("form", LABELS)
def test_labels(form):
    assert score_table(LABELS[form], 2, Classes(NAMES)).tolist() == VOTES


def test_the_best_label_counts_though_its_score_is_low():
    """A pipeline that judges each class by itself may like none of two."""
    answer = [{"label": "spam", "score": 0.1}]
    assert score_table(answer, 1, Classes(NAMES)).tolist() == [[0, 1]]


def test_memory_is_its_own():
    for raw in (np.array(ROWS), np.array([0.25, 0.75])):
        table = score_table(raw, 2, Classes(NAMES))
        raw[:] = 9
        assert table.tolist() == ROWS


def test_log_odds_of_the_second_class():
    table = score_table([-3.0, 5.0], 2, Classes(), "logits")
    assert table.tolist() == [[1.5, -1.5], [-2.5, 2.5]]


def test_numbers_are_names_where_all_names_are_numbers():
    assert score_table([1, -1], 2, Classes(("-1", "1"))).tolist() == [[0, 1], [1, 0]]
    assert score_table([1, 0], 2, Classes(("1", "0"))).tolist() == [[1, 0], [0, 1]]
    assert score_table([1, 0], 2, Classes(("1", "zero"))).tolist() == [[0, 1], [1, 0]]


def test_numbers_need_no_names_where_it_is_known_how_many_there_are():
    assert score_table([2, 0], 2, Classes(None, 3)).tolist() == [[0, 0, 1], [1, 0, 0]]


class Output:
    logits = np.ones((2, 2))


@pytest.mark.parametrize(
    ("raw", "classes", "message"),
    [
        (["ham", "spam"], Classes(), r"the label 'ham': say which classes there are, with labels="),
        (["ham", "eggs"], Classes(NAMES), "the label 'eggs', and the classes are ham, spam"),
        (["LABEL_2", "ham"], Classes(NAMES), "the label 'LABEL_2'"),
        ([0, 1], Classes(), "the class 0: say how many there are, with labels="),
        ([0, 2], Classes(NAMES), "the class 2, and there are 2, counted from 0"),
        ([0, -1], Classes(NAMES), "the class -1"),
        ([3, 1], Classes(("1", "2")), "the label '3'"),
        ([0.2, 1.5], Classes(NAMES), "1.5 for a text: one number a text is the probability"),
        ([0.2, 0.5], Classes(THREE), "one number a text, as 0.2, and there are 3 classes"),
        ([True, False], Classes(THREE), "there are 3 classes"),
        ([scores([("a", 0.5), ("b", 0.1)])] * 2, Classes(THREE), r"of a, b, and none of c.*top_k"),
        ([{"a": 0.5, "b": 0.1}] * 2, Classes(THREE), "none of c"),
        ([{"ham": 0.5}] * 3, Classes(NAMES), "3 answers for 2 texts"),
        ({"ham": [0.5], "spam": [0.5]}, Classes(NAMES), "a dict of ham, spam: return a list"),
        (Output(), Classes(NAMES), "a Output: return its logits"),
        ([["1", "0"], ["0", "1"]], Classes(NAMES), "no table of numbers"),
        ([1j, 2j], Classes(NAMES), "no table of numbers"),
        ([[0.1, 0.9], [0.1]], Classes(NAMES), "no table of numbers"),
        ("spam", Classes(NAMES), r"shape \(\) for 2 texts"),
        (None, Classes(NAMES), r"shape \(\) for 2 texts"),
        ([0.1], Classes(NAMES), r"shape \(1,\) for 2 texts"),
        (np.ones((2, 2, 2)), Classes(NAMES), r"shape \(2, 2, 2\)"),
        ([{"label": "ham"}, {"label": "ham"}], Classes(NAMES), "no table of numbers"),
    ],
)
def test_the_rest_is_refused(raw, classes, message):
    with pytest.raises(ClassifierError, match=f"^the model returned .*{message}") as caught:
        score_table(raw, 2, classes, who="the model")
    assert "\n" not in str(caught.value)

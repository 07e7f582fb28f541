"""The choice of a weight: counts are those of the certificate, and the rule is as it says."""

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from ranmask import SmoothedClassifier
from ranmask.errors import DataError, OptionError
from ranmask.models.readers import FunctionReader
from ranmask.smoothing.protected import ProtectedClassifier, segments_of
from ranmask.training.choosing import (
    Weighed,
    alone,
    chosen,
    measured,
    read_texts,
    sum_of,
    weights_for,
)
from ranmask.words import document


def words_of(texts):
    """A word says how much it is for the second class: 'w73' is 0.73."""
    return [[1 - int(text[1:]) / 100, int(text[1:]) / 100] for text in texts]


@pytest.mark.parametrize("weight", [0.125, 1, 2.3])
def test_counts_are_those_of_certify(weight):
    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"w{word}" for word in rng.integers(low, low + 60, size=length))
        for length, low in zip(rng.integers(1, 15, size=200), [0, 40] * 100, strict=True)
    ]
    scores = rng.random(200)
    said = np.stack([1 - scores, scores], axis=1)
    labels = rng.integers(0, 2, size=200)
    answers = dict(zip(texts, said.tolist(), strict=True))
    copies = SmoothedClassifier(words_of, keep=1, hide="drop", ensemble="score", recheck=0)
    protected = ProtectedClassifier.beside(
        copies, lambda shown: [answers[text] for text in shown], (weight,)
    )
    right = [
        result
        for result, label in zip(protected.certify(texts), labels, strict=True)
        if result.label_id == label
    ]
    read = read_texts(copies, texts, said[:, None], labels)
    [other, found] = measured(read, [(2000.0,), (weight,)])
    assert found.weights == (weight,) and found.accuracy() == Fraction(len(right), 200)
    for words in range(1, 15):
        proved = [one for one in right if (one.radius or 0) >= words]
        assert found.share(words) == Fraction(len(proved), 200)
        of_class = sum(one.label_id == 1 for one in proved)
        assert sum(found.certified[1][words - 1 : words]) == of_class
    assert found.share(1) > 0 and found.share(1000) == 0
    assert other.right == alone(said, labels).right and other.texts == alone(said, labels).texts
    assert not any(map(any, other.certified))


def weighed(weight, right, *certified):
    return Weighed((weight,), (1000,), (right,), (certified,))


CURVE = [weighed(1, 940, 900, 700), weighed(2, 955, 850, 600), weighed(4, 960, 500, 100)]


@pytest.mark.parametrize(
    ("give_up", "words", "weight"),
    [
        (1.0, (1,), 2),
        (0.5, (1,), 2),
        (0.4, (1,), 4),
        (2.0, (1, 2), 1),
        (1.9, (2,), 2),
        (0, (1,), 4),
    ],
)
def test_the_most_proved_among_those_that_give_up_no_more(give_up, words, weight):
    best, reached = chosen(CURVE, weighed(0, 960), words, give_up)
    assert best.weights == (weight,) and reached


def test_a_light_weight_that_was_lucky_is_not_chosen():
    lucky = [weighed(0.5, 955, 990), *CURVE]
    assert chosen(lucky, weighed(0, 960), (1,), 1.0)[0].weights == (2,)
    assert chosen(lucky, weighed(0, 960), (1,), 2.0)[0].weights == (0.5,)


def test_where_no_weight_gives_up_so_little_the_nearest_is_taken():
    best, reached = chosen(CURVE, weighed(0, 990), (1,), 1.0)
    assert best.weights == (4,) and not reached
    with pytest.raises(OptionError, match="words"):
        chosen(CURVE, weighed(0, 1000), (), 1.0)


def test_balanced_figures_count_every_class_alike():
    light = Weighed((1,), (900, 100), (899, 80), ((800,), ()))
    heavy = Weighed((2,), (900, 100), (870, 95), ((300, 100), (90,)))
    model = Weighed((0,), (900, 100), (880, 96), ((), ()))
    assert light.accuracy() > heavy.accuracy() and light.share(1) > heavy.share(1)
    assert heavy.accuracy(True) == (Fraction(870, 900) + Fraction(95, 100)) / 2
    assert heavy.share(2, True) == Fraction(100, 1800) and heavy.share(3, True) == 0
    assert chosen([light, heavy], model, (1,), 5.0)[0] is light
    assert chosen([light, heavy], model, (1,), 5.0, balanced=True)[0] is heavy
    [_, second] = heavy.classes(["a", "b"])
    assert second["recall"] == 0.95 and second["certified_recall"][1:3] == [0.9, 0.0]


def test_a_class_without_texts_counts_for_nothing():
    found = Weighed((1,), (10, 0), (5, 0), ((4,), ()))
    assert found.accuracy(True) == Fraction(1, 2)
    assert [one["name"] for one in found.classes(["a", "b"])] == ["a"]


def test_folds_add_up():
    both = sum_of([weighed(2, 955, 850, 600), weighed(2, 5, 4)])
    assert both == Weighed((2,), (2000,), (960,), ((854, 600),))
    assert both.score((1, 2)) == Fraction(854 + 600, 4000)


def test_weights_grow_beyond_the_longest_text():
    weights = weights_for(100)
    assert weights == sorted(set(weights)) and weights[0] == 0.125 and weights[-1] > 100
    assert max(after / before for before, after in pairwise(weights[8:])) < 1.14
    assert len(weights_for(10**9)) < 200


@pytest.mark.parametrize("damage", [{"certified": None}, {"texts": [0]}, {"right": [1, 2]}])
def test_damaged_counts_are_refused(damage):
    values = json.loads(json.dumps(weighed(1, 2, 3).to_dict()))
    assert Weighed.from_dict(values) == weighed(1, 2, 3)
    with pytest.raises(DataError, match="no counts"):
        Weighed.from_dict({**values, **damage})


def levelled(weights, right, certified, expected):
    return Weighed(weights, (1000,), (right,), ((certified,),), expected)


def test_segments_are_chosen_by_the_accuracy_that_is_expected():
    lucky = levelled((0, 8.0), 960, 900, 0.949)
    fair = levelled((0, 16.0), 955, 880, 0.951)
    model = weighed(0, 960)
    assert chosen([*CURVE, lucky, fair], model, (1,), 1.0) == (fair, True)
    assert chosen([*CURVE, lucky, fair], model, (1,), 1.1) == (lucky, True)


def test_more_calls_must_prove_a_point_more():
    model, most = weighed(0, 960), 850
    little, enough = (levelled((0, 8.0), 960, most + more, 0.96) for more in (10, 11))
    assert chosen([*CURVE, little], model, (1,), 1.0)[0].weights == (2,)
    assert chosen([*CURVE, enough], model, (1,), 1.0)[0] is enough
    quarters = levelled((0, 0, 8.0), 960, most + 20, 0.96)
    assert chosen([*CURVE, little, quarters], model, (1,), 1.0)[0] is little
    assert (little.calls, quarters.calls, quarters.name) == (2, 4, "0,0,8")


def test_where_only_segments_come_near_the_model_they_are_taken():
    near = levelled((0, 8.0), 985, 100, 0.975)
    assert chosen([*CURVE, near], weighed(0, 990), (1,), 1.0) == (near, False)
    assert chosen([*CURVE, near], weighed(0, 990), (1,), 1.5) == (near, True)


def test_counts_of_segments_are_those_of_certify():
    """Of texts with fewer words than segments, too."""
    rng = np.random.default_rng(1)
    texts = [
        " ".join(f"w{word}" for word in rng.integers(low, low + 60, size=length))
        for length, low in zip(rng.integers(1, 15, size=150), [0, 40] * 75, strict=True)
    ]
    labels = np.array([0, 1] * 75)

    def model(shown):
        means = [sum(int(word[1:]) for word in text.split()) / 100 for text in shown]
        means = [total / len(text.split()) for total, text in zip(means, shown, strict=True)]
        return [[1 - mean, mean] for mean in means]

    nodes = np.zeros((150, 7, 2))
    for place, text in enumerate(map(document, texts)):
        parts = [text, *(one for n in (2, 4) for one in segments_of(text, len(text.words), n))]
        for node, part in enumerate(parts):
            if part is not None:
                nodes[place, node] = model([" ".join(part.words)])[0]
    copies = SmoothedClassifier(words_of, keep=1, hide="drop", ensemble="score", recheck=0)
    reader = FunctionReader(model, repeatable=True)
    for weights in ((0.5, 0.25, 0.5), (0, 0, 1.0), (0, 2.0), (1.0, 0, 0.25)):
        results = ProtectedClassifier.beside(copies, reader, weights).certify(texts)
        [found] = measured(read_texts(copies, texts, nodes, labels), [weights])
        for words in (1, 2, 3):
            proved = [
                (one.radius or 0) >= words and one.label_id == label
                for one, label in zip(results, labels, strict=True)
            ]
            assert found.share(words) == Fraction(sum(proved), 150)
        assert found.share(1) > 0

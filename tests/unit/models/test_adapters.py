"""What people have, shown copies and whole texts: the same labels as the model's own."""

import asyncio
import itertools
import os
import threading

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from ranmask import FunctionReader, ProtectedClassifier, SmoothedClassifier, WindowDetector, attack
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources import Vocabulary
from ranmask.errors import ClassifierError, ModelError, OptionError, TextError
from ranmask.models.adapters import as_text_function
from ranmask.models.function import FunctionClassifier, as_base
from ranmask.models.readers import as_reader
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.words import document, documents

GOOD = ["good film", "great good plot", "fine film", "a great plot", "good good", "fine acting"]
BAD = ["bad film", "awful bad plot", "poor film", "a poor plot", "bad bad", "awful acting"]
PLAIN = ["a film", "the plot", "a plot of a film", "the acting", "the film", "film of the plot"]
TEXTS = [*GOOD, *BAD, *PLAIN]
NAMES = ["good"] * 6 + ["bad"] * 6 + ["plain"] * 6
ASKED = ["good great film", "bad poor poor plot", "the film of a plot", "unknown words only"]


def fitted(estimator, labels=NAMES, texts=TEXTS):
    return make_pipeline(CountVectorizer(), estimator).fit(texts, labels)


ESTIMATORS = {
    "probabilities": lambda: fitted(LogisticRegression()),
    "two classes": lambda: fitted(LogisticRegression(), NAMES[:12], TEXTS[:12]),
    "decisions": lambda: fitted(LinearSVC()),
    "decisions of two classes": lambda: fitted(LinearSVC(), NAMES[:12], TEXTS[:12]),
    "decisions of pairs of classes": lambda: fitted(SVC(decision_function_shape="ovo")),
    "ridge": lambda: fitted(RidgeClassifier()),
    "labels alone": lambda: make_pipeline(
        TfidfVectorizer(), NearestCentroid(metric="manhattan")
    ).fit(TEXTS, NAMES),
    "search": lambda: GridSearchCV(
        make_pipeline(CountVectorizer(), SVC(decision_function_shape="ovo")),
        {"svc__C": [1.0]},
        cv=2,
    ).fit(TEXTS, NAMES),
    "calibrated": lambda: CalibratedClassifierCV(fitted(MultinomialNB()), cv=2).fit(TEXTS, NAMES),
    "numbers": lambda: fitted(MultinomialNB(), [len(name) for name in NAMES]),
    "booleans": lambda: fitted(LinearSVC(), [name == "good" for name in NAMES]),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_estimator_says_of_copies_and_texts_what_it_predicts(kind):
    model = ESTIMATORS[kind]()
    wanted = [str(label) for label in model.predict(ASKED)]
    # A copy that shows every word is the text.
    smoothed = SmoothedClassifier(model, mask_rate=0.0)
    assert [result.label for result in smoothed.certify(ASKED)] == wanted
    rows = as_reader(model).read(documents(ASKED), len(model.classes_))
    assert [str(model.classes_[place]) for place in rows.argmax(axis=1)] == wanted
    assert ((rows >= 0) & (rows <= 1)).all()


def test_an_estimator_may_have_its_classes_in_any_order():
    model = fitted(LogisticRegression())
    smoothed = SmoothedClassifier(model, mask_rate=0.0, labels=["plain", "good", "bad"])
    assert [result.label for result in smoothed.predict(ASKED)] == model.predict(ASKED).tolist()
    reader = as_reader(model, ["plain", "good", "bad"])
    rows = reader.read(documents(ASKED), 3)
    own = model.predict_proba(ASKED)
    np.testing.assert_array_equal(rows, own[:, [2, 1, 0]])
    assert reader.labels == ("plain", "good", "bad") and reader.repeatable


def test_an_estimator_whose_classes_are_numbers_is_given_names():
    model = fitted(LinearSVC(), [NAMES.index(name) // 6 for name in NAMES])
    smoothed = SmoothedClassifier(model, mask_rate=0.0, labels=["good", "bad", "plain"])
    assert [result.label for result in smoothed.predict(ASKED[:3])] == ["good", "bad", "plain"]


def test_two_estimators_of_one_type_are_told_apart():
    one, same, other = (fitted(LogisticRegression(C=c)) for c in (1.0, 1.0, 100.0))
    found = [SmoothedClassifier(model, keep=1).description() for model in (one, same, other)]
    assert found[0] == found[1] != found[2]
    assert found[0]["tolerance"] > 0 and found[0]["recheck"]


def test_models_that_are_no_classifiers():
    with pytest.raises(ModelError, match="Pipeline is no fitted classifier: call its fit first"):
        SmoothedClassifier(make_pipeline(CountVectorizer(), LogisticRegression()), keep=1)
    with pytest.raises(ModelError, match="LinearRegression is no fitted classifier"):
        SmoothedClassifier(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), keep=1)
    with pytest.raises(ModelError, match=r"Pipeline has the classes bad, good, plain, and not a"):
        SmoothedClassifier(fitted(LogisticRegression()), keep=1, labels=["a", "b", "c"])
    features = LogisticRegression().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ClassifierError, match=r"raised ValueError.*put a vectorizer before it"):
        SmoothedClassifier(features, keep=1).certify(["a b"])
    for model in (42, None, [1, 2]):
        with pytest.raises(OptionError, match=f"not {type(model).__name__}"):
            SmoothedClassifier(model, keep=1)
    with pytest.raises(OptionError, match="from_pretrained"):
        as_base("news")


class Loaded:
    """An object of somebody else's, with a method and no classes."""

    def predict(self, texts):
        return ["good" if "good" in text else "bad" for text in texts]


class Sure(Loaded):
    def predict_proba(self, texts):
        return [[0, 1] if "good" in text else [1, 0] for text in texts]


def by_name(texts):
    return Loaded().predict(texts)


def by_number(texts):
    return np.array(["good" in text for text in texts]).astype(int)


def second(texts):
    return [row[1] for row in keyword_classifier(texts)]


async def awaited(texts):
    await asyncio.sleep(0)
    return keyword_classifier(texts)


async def awaited_names(texts):
    await asyncio.sleep(0)
    return by_name(texts)


def gradients(texts):
    import torch

    rows = torch.tensor(keyword_classifier(texts), dtype=torch.bfloat16)
    return rows.requires_grad_()


FUNCTIONS = [by_name, by_number, second, awaited, awaited_names, gradients, Loaded(), Sure()]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_are_copies_readers_windows_and_victims(function):
    labels = ["bad", "good"]
    smoothed = SmoothedClassifier(function, keep=1, hide="drop", labels=labels)
    text = "good good good good good"
    [result] = smoothed.certify([text])
    assert (result.label, result.radius, result.certified(1)) == ("good", 2, True)
    for reader in (function, FunctionReader(function)):
        beside = ProtectedClassifier(
            function, reader=reader, reader_weights=(1,), keep=1, hide="drop", labels=labels
        )
        [result] = beside.certify([text])
        assert (result.label, result.reader, result.radius) == ("good", "answered", 1)
    detector = WindowDetector(function, sizes=(2,), threshold=0.6, labels=labels)
    assert [found.flagged for found in detector.detect([text, "so so"])] == [True, False]
    words = AttackResources(vocabulary=Vocabulary("made up", ("bad", "film")))
    base = as_base(function, labels)
    [outcome] = attack(base, ["good plot"], [1], "anywords", resources=words, budget=2)
    assert outcome.status == "succeeded"


def test_names_without_labels_are_asked_for():
    for function, value in ((by_name, "'bad'"), (by_number, "class 0")):
        with pytest.raises(ClassifierError, match=f"{value}.*with labels="):
            SmoothedClassifier(function, keep=1).certify(["so so"])


def test_names_of_the_vote_are_lent_to_a_reader():
    reader = FunctionReader(by_name)
    assert as_reader(reader, ["bad", "good"]).labels == ("bad", "good")
    assert reader.labels is None


def test_a_random_function_of_names_is_found_out():
    turns = itertools.count()

    def moody(texts):
        turn = next(turns)
        return [("good", "bad")[(turn + ("good" in text)) % 2] for text in texts]

    with pytest.raises(ClassifierError, match="deterministic and judge each text by itself"):
        SmoothedClassifier(moody, keep=1, labels=["bad", "good"]).certify(["good so so good"])


class Client:
    """A client that works in the loop that it first ran in, as HTTP clients do."""

    def __init__(self):
        self.loops = set()
        self.threads = set()

    async def __call__(self, texts):
        self.loops.add(id(asyncio.get_running_loop()))
        self.threads.add(threading.current_thread().name)
        await asyncio.sleep(0)
        return keyword_classifier(texts)


def test_all_batches_are_awaited_in_one_loop():
    client = Client()
    base = FunctionClassifier(client, batch_size=2)
    wanted = SmoothedClassifier(keyword_classifier, keep=1).certify(GOOD)
    assert SmoothedClassifier(base, keep=1).certify(GOOD) == wanted
    assert len(client.loops) == 1 and client.threads == {"ranmask-async"}

    async def notebook():
        return SmoothedClassifier(client, keep=1).certify(GOOD)

    assert asyncio.run(notebook()) == wanted
    assert len(client.loops) == 1


def test_what_an_async_function_raises_is_told():
    async def broken(texts):
        raise OSError("no line")

    with pytest.raises(ClassifierError, match="raised OSError: no line, for the copy"):
        SmoothedClassifier(broken, keep=1).certify(["a b"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_a_loop_of_its_own():
    smoothed = SmoothedClassifier(awaited, keep=1)
    smoothed.predict(["good"])
    child = os.fork()
    if not child:
        os._exit(smoothed.predict(["good"])[0].label_id + 7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8


class Table:
    """What a DataFrame looks like from outside."""

    def __init__(self, **columns):
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return self._columns[name]

    def __iter__(self):
        return iter(self.columns)


def test_texts_of_a_table():
    smoothed = SmoothedClassifier(keyword_classifier, keep=1)
    wanted = smoothed.certify(GOOD)
    tables = [Table(text=GOOD, label=NAMES), Table(review=GOOD), np.array(GOOD), iter(GOOD)]
    for texts in tables:
        assert smoothed.certify(texts) == wanted
    with pytest.raises(TextError, match="of the columns review, label: pass one of them"):
        smoothed.certify(Table(review=GOOD, label=NAMES))


def test_labels_that_are_not_one_for_each_of_the_models_own():
    base = FunctionClassifier(keyword_classifier, labels=["bad", "good"])
    with pytest.raises(OptionError, match=r"another order than its scores have: bad, good"):
        SmoothedClassifier(base, keep=1, labels=["good", "bad"])
    with pytest.raises(OptionError, match=r"3 classes \(a, b, c\), but the model has 2: bad, good"):
        SmoothedClassifier(base, keep=1, labels=["a", "b", "c"])
    renamed = SmoothedClassifier(base, keep=1, labels=["-", "+"])
    assert renamed.predict(["good"])[0].label == "+"


def test_other_tasks_are_refused():
    class Generates:
        task, model, tokenizer = "text-generation", object(), object()

        def __call__(self, texts):
            return texts

    with pytest.raises(ModelError, match="'text-generation' does not classify"):
        SmoothedClassifier(Generates(), keep=1)


def test_an_object_with_a_task_of_its_own_is_a_function():
    class Tagged:
        task = "spam"

        def __call__(self, texts):
            return hashing_classifier(texts)

    assert as_text_function(Tagged()).scores(["a"], "it").shape == (1, 3)
    assert as_reader(Tagged()).read([document("a")], 3).shape == (1, 3)

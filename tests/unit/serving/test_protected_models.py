"""A protected model in the service: answers are the library's, and both models are shared."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ranmask.models.readers import ModelReader
from ranmask.serving.context import FairSemaphore, RequestContext
from ranmask.serving.problems import DeadlinePassed
from ranmask.serving.registry import ModelRegistry
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.smoothing.store import load_classifier, load_default

TEXTS = ["Stocks fell after the bank raised rates", "The striker scored twice in the final"]


def test_answers_are_those_of_the_library(tmp_path):
    table = load_default("news-words")
    reader = ModelReader(load_default("news-words").base)
    folder = str(tmp_path / "protected")
    ProtectedClassifier.beside(table, reader, (2, 0.5)).save_pretrained(folder)
    registry = ModelRegistry({"mine": folder})
    try:
        assert registry.about("mine")["reader"] == "model"
        assert "reader_weights" not in registry.about("mine")["request_options"]
        served = registry.smoothed("mine", RequestContext())
        assert served.certify(TEXTS) == load_classifier(folder).certify(TEXTS)
        assert registry._of("mine").reading.figures().copies > 0
    finally:
        registry.close()


class Function:
    """A reader that waits for a word before it answers, and counts who asks at the same time."""

    def __init__(self):
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.calls = self.at_once = self.most = 0

    def __call__(self, texts):
        self.calls += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        self.asked.set()
        assert self.may_answer.wait(10)
        time.sleep(0.01)
        self.at_once -= 1
        return [[0.0, 0.0, 1.0, 0.0]] * len(texts)


@pytest.fixture
def function():
    return Function()


@pytest.fixture
def registry(function):
    made = ModelRegistry({"mine": "news-words"}, reader=function, reader_weights=(2,))
    yield made
    made.close()


@pytest.fixture
def requests():
    with ThreadPoolExecutor(8) as threads:
        yield threads


def answered(registry, turns, context=None):
    context = context or RequestContext()
    with context.at_work(turns):
        return registry.smoothed("mine", context).certify(TEXTS)


def test_others_compute_while_a_function_reads(registry, function, requests):
    turns = FairSemaphore(1)
    slow = requests.submit(answered, registry, turns)
    assert function.asked.wait(10)
    other = requests.submit(lambda: turns.__enter__() or turns.__exit__())
    assert other.result(5) is None and not slow.done()
    function.may_answer.set()
    beside = ProtectedClassifier.beside(load_default("news-words"), function, (2,))
    assert slow.result(10) == beside.certify(TEXTS)
    with turns:  # every turn that was taken was given back
        assert not turns.wanted


def test_a_function_is_asked_by_one_thread_at_a_time(registry, function, requests):
    turns = FairSemaphore(8)
    function.may_answer.set()
    asked = [requests.submit(answered, registry, turns) for _ in range(8)]
    assert len({result for one in asked for result in one.result(20)}) == len(TEXTS)
    assert (function.calls, function.most) == (8, 1)


def test_who_waited_too_long_for_a_function_does_not_ask_it(registry, function, requests):
    turns = FairSemaphore(8)
    slow = requests.submit(answered, registry, turns)
    assert function.asked.wait(10)
    late = requests.submit(answered, registry, turns, RequestContext(time.monotonic() + 0.2))
    time.sleep(0.4)
    function.may_answer.set()
    assert slow.result(10)
    with pytest.raises(DeadlinePassed):
        late.result(10)
    assert function.calls == 1

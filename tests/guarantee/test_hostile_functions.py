"""Functions that break the rules: their answers are copied, compared with a second one, refused.

A certificate of a function that keeps its word is the same whether or not anybody checks.
"""

import json
import random

import numpy as np
import pytest

from ranmask import SmoothedClassifier, SynonymSmoothedClassifier
from ranmask.errors import ClassifierError, OptionError
from ranmask.models.base import BaseClassifier
from ranmask.models.function import FunctionClassifier
from ranmask.models.synonyms import SynonymSets
from ranmask.models.testing import hashing_classifier, keyword_classifier

TEXT = "good bad film good story fine acting poor script great"
TEXTS = [" ".join(f"{w}{n % 7}" if n % 3 else w for w in TEXT.split()) for n in range(400)]
TABLE = SynonymSets({"good": ["great"], "great": ["good"], "bad": ["poor"], "poor": ["bad"]})


def tensor(array):
    import torch

    return torch.from_numpy(array)  # shares the memory


class Reusing:
    """Right answers, all in one array that the next call overwrites."""

    def __init__(self, given=lambda rows: rows):
        self.buffer = np.empty((1024, 2))
        self.given = given

    def __call__(self, texts):
        rows = self.buffer[: len(texts)]
        rows[:] = keyword_classifier(texts)
        return self.given(rows)


class ReusingBase(BaseClassifier):
    """The same as a classifier of its own: each call returns views of one array."""

    def __init__(self):
        self.inner = FunctionClassifier(keyword_classifier)
        self.buffer = np.empty((40_000, 2))

    def score(self, copies):
        rows = np.concatenate(self.inner.score(copies))
        self.buffer[: len(rows)] = rows
        ends = np.cumsum([len(one) for one in copies])[:-1]
        return np.split(self.buffer[: len(rows)], ends)

    def configured(self, *, hide=None, mask_token=None):
        return self


@pytest.mark.parametrize("recheck", [0, 4])
@pytest.mark.parametrize("given", [lambda rows: rows, memoryview, tensor, lambda rows: rows[::1]])
def test_an_array_that_is_used_again(given, recheck):
    expected = SmoothedClassifier(keyword_classifier, keep=1, recheck=recheck).certify(TEXTS)
    reusing = SmoothedClassifier(Reusing(given), keep=1, recheck=recheck)
    assert reusing.certify(TEXTS) == expected
    assert reusing.certify(TEXTS[:1]) == expected[:1]


def test_a_classifier_that_uses_its_array_again():
    expected = SmoothedClassifier(keyword_classifier, keep=1).certify(TEXTS)
    assert SmoothedClassifier(ReusingBase(), keep=1).certify(TEXTS) == expected


def test_losses_in_an_array_that_is_used_again():
    def losses(documents):
        buffer = np.empty(10)
        for number, document in enumerate(documents):
            buffer[:] = 1 + number
            buffer[number % len(document.words)] = 50
            yield buffer

    def fresh(documents):
        return [one.copy() for one in losses(documents)]

    said = [
        SmoothedClassifier(
            hashing_classifier, keep=2, sampling="lm", word_losses=one, masks=20
        ).predict([" ".join(f"w{place}" for place in range(10))] * 3 + [TEXT])
        for one in (losses, fresh)
    ]
    assert said[0] == said[1]


class Alternating:
    """Another answer on every second run of ``period`` calls."""

    def __init__(self, period=1):
        self.calls = 0
        self.period = period

    def __call__(self, texts):
        self.calls += 1
        turned = (self.calls - 1) // self.period % 2
        return [row[::-1] if turned else row for row in keyword_classifier(texts)]


def neighbours(texts):
    rows = np.array(keyword_classifier(texts))
    return rows - rows.mean(axis=0)


def batch_size(texts):
    return [[len(texts), 2.0]] * len(texts)


def position(texts):
    return [[place % 3, 1.0] for place in range(len(texts))]


def first_of_batch(texts):
    return [[1.0, 0.0] if text == texts[0] else [0.0, 1.0] for text in texts]


def in_place(texts):
    texts.sort()
    return hashing_classifier(texts)


def dropout(texts):
    return [[random.random(), 0.5] for _ in texts]


class Learning:
    """Drifts with everything that it sees."""

    def __init__(self):
        self.seen = 0

    def __call__(self, texts):
        self.seen += len(texts)
        return [[self.seen, 10.0 * len(text)] for text in texts]


HOSTILE = {
    "alternating": Alternating,
    "neighbours": lambda: neighbours,
    "batch size": lambda: batch_size,
    "position": lambda: position,
    "first of batch": lambda: first_of_batch,
    "in place": lambda: in_place,
    "dropout": lambda: dropout,
    "learning": Learning,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (TEXTS[:1], {"keep": 1}),  # 10 copies
        (TEXTS[:1], {"keep": 3}),  # 120
        (TEXTS, {"keep": 1}),  # 4,000, in several calls
        (TEXTS[:1], {"keep": 2, "certificate": "ablation", "masks": 2048, "selection_masks": 90}),
    ],
)
def test_hostile_functions_are_refused(name, texts, options):
    with pytest.raises(ClassifierError, match=r"text \d+: .* asked again") as caught:
        SmoothedClassifier(HOSTILE[name](), **options).certify(texts)
    assert caught.value.index in range(len(texts))
    # Without the check they pass, which is why there is one.
    [result, *_] = SmoothedClassifier(HOSTILE[name](), **options, recheck=0).certify(texts)
    assert result.guarantee and any("not checked" in one for one in result.assumes)


@pytest.mark.parametrize("batches", range(1, 40))
def test_alternating_is_found_after_any_number_of_calls(batches):
    classifier = FunctionClassifier(Alternating(), batch_size=10)
    with pytest.raises(ClassifierError, match="asked again"):
        SmoothedClassifier(classifier, keep=1).certify(TEXTS[:batches])


def test_one_word_is_asked_about_in_company():
    with pytest.raises(ClassifierError, match="asked again"):
        SmoothedClassifier(batch_size, keep=1).certify(["word"])


def test_state_that_changes_between_calls_is_found_later():
    """The first copy of all is asked about with every later one."""
    smoothed = SmoothedClassifier(Alternating(period=3), keep=1)
    assert smoothed.certify([TEXT])
    with pytest.raises(ClassifierError, match="of a copy of an earlier text") as caught:
        smoothed.certify(["another text entirely"])
    assert caught.value.index is None and "good" not in str(caught.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_functions_are_refused_by_predict_and_under_synonyms(name):
    with pytest.raises(ClassifierError, match="asked again"):
        SmoothedClassifier(HOSTILE[name](), keep=2).predict(TEXTS[:3])
    with pytest.raises(ClassifierError, match="asked again") as caught:
        SynonymSmoothedClassifier(HOSTILE[name](), TABLE, masks=50).certify(TEXTS[:3])
    assert caught.value.index in range(3)


def test_classifiers_of_users_are_asked_again_too():
    class Wrapped(ReusingBase):
        def __init__(self):
            super().__init__()
            self.inner = FunctionClassifier(Alternating())

    with pytest.raises(ClassifierError, match="asked again"):
        SmoothedClassifier(Wrapped(), keep=1).certify([TEXT])


@pytest.mark.parametrize("tolerance", [0, 2e-9, 1e-6])
def test_moves_within_the_tolerance_are_allowed(tolerance):
    state = random.Random(0)

    def noisy(texts):
        moved = state.uniform(-0.4e-9, 0.4e-9)
        return np.array(keyword_classifier(texts)) + moved

    smoothed = SmoothedClassifier(noisy, keep=1, tolerance=tolerance)
    if tolerance:
        [result] = smoothed.certify([TEXT])
        assert any("checked on up to 4" in one for one in result.assumes)
    else:
        with pytest.raises(ClassifierError, match="give a tolerance well above"):
            smoothed.certify([TEXT])


def test_nothing_changes_for_functions_that_keep_their_word():
    shown = []

    def counted(texts):
        shown.append(len(texts))
        return hashing_classifier(texts)

    for options in ({"keep": 1}, {"keep": 2, "certificate": "ablation", "masks": 500}):
        checked = SmoothedClassifier(counted, **options).certify(TEXTS[:50])
        plain = SmoothedClassifier(hashing_classifier, **options, recheck=0).certify(TEXTS[:50])
        for one, other in zip(checked, plain, strict=True):
            assert {**vars(one), "assumes": ()} == {**vars(other), "assumes": ()}
    shown.clear()
    SmoothedClassifier(counted, keep=1).certify(TEXTS[:1])
    assert shown == [10, 2, 1]
    shown.clear()
    SmoothedClassifier(counted, keep=1).certify(TEXTS)
    assert sum(shown) == 4000 + 6 and len(shown) == 6


def test_how_many_is_an_option():
    sizes = []

    def counted(texts):
        sizes.append(len(texts))
        return keyword_classifier(texts)

    smoothed = SmoothedClassifier(counted, keep=1, recheck=9)
    [result, *_] = smoothed.certify(TEXTS[:100])
    assert sizes == [1000, 10, 1]
    assert any("checked on up to 9 of the copies" in one for one in result.assumes)
    assert smoothed.description()["recheck"] == 9
    assert smoothed.with_options(seed=1).recheck == 9
    for wrong in (-1, 1.5, True, "4"):
        with pytest.raises(OptionError, match="recheck must be a whole number"):
            SmoothedClassifier(keyword_classifier, keep=1, recheck=wrong)


def test_a_table_of_ranmask_is_not_asked_again_unless_one_wants_it():
    from ranmask import load_default

    [plain] = load_default("news-words").certify([TEXT])
    assert not any("checked" in one for one in plain.assumes)
    [asked] = load_default("news-words", recheck=3).certify([TEXT])
    assert any("checked on up to 3" in one for one in asked.assumes)
    assert "recheck" not in json.dumps(load_default("news-words").description())


def failing(texts):
    for text in texts:
        if "boom" in text:
            raise KeyError("boom")
    return keyword_classifier(texts)


class TestFailures:
    @pytest.mark.parametrize("place", [0, 1, 7, 333, 399])
    def test_the_text_is_named(self, place):
        texts = [*TEXTS]
        texts[place] = "a boom film"
        for call in (
            SmoothedClassifier(failing, keep=1).certify,
            SmoothedClassifier(failing, keep=1).predict,
            SynonymSmoothedClassifier(failing, TABLE, masks=9, selection_masks=9).certify,
        ):
            with pytest.raises(ClassifierError, match=f"text {place}: .*KeyError: 'boom'") as error:
                call(texts)
            assert error.value.index == place and isinstance(error.value.__cause__, KeyError)
            assert "boom" in str(error.value).partition("for the copy ")[2]

    def test_with_texts_of_many_copies(self, monkeypatch):
        monkeypatch.setattr("ranmask.smoothing.voting.COPIES_AT_ONCE", 25)
        with pytest.raises(ClassifierError, match="text 9: ") as error:
            SmoothedClassifier(failing, keep=1).certify([*TEXTS[:9], "boom", *TEXTS[:9]])
        assert error.value.index == 9

    def test_an_exit_is_a_failure(self):
        def leaving(texts):
            raise SystemExit(5)

        with pytest.raises(ClassifierError, match=r"text 0: .*SystemExit: 5"):
            SmoothedClassifier(leaving, keep=1).certify([TEXT])

    def test_an_interrupt_is_not(self):
        def interrupted(texts):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            SmoothedClassifier(interrupted, keep=1).certify([TEXT])

    def test_an_unusable_answer_is_named_too(self):
        def holes(texts):
            return [[float("nan") if "boom" in text else 1.0, 0.5] for text in texts]

        with pytest.raises(ClassifierError, match=r"text 2: .*not a finite number.* 'boom"):
            SmoothedClassifier(holes, keep=1).certify([TEXT, TEXT, "boom box"])

    def test_only_together(self):
        def small(texts):
            if len(texts) > 6:
                raise MemoryError("too many")
            return keyword_classifier(texts)

        with pytest.raises(ClassifierError, match=r"text 0: .*a list of 10 copies fails") as one:
            SmoothedClassifier(small, keep=1).certify([TEXT])
        assert one.value.index == 0
        with pytest.raises(ClassifierError, match=r"^the base .*a list of 9 copies fails") as many:
            SmoothedClassifier(small, keep=1).certify(["a b c"] * 3)
        assert many.value.index is None

    def test_a_function_may_change_its_list(self):
        def emptying(texts):
            rows = keyword_classifier(texts)
            texts.clear()
            return rows

        assert SmoothedClassifier(emptying, keep=1).certify([TEXT])

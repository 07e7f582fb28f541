"""A request is as large as what it really computes; too large ones are refused before that."""

import pytest
from starlette.testclient import TestClient

from ranmask import SmoothedClassifier, SynonymSets, SynonymSmoothedClassifier
from ranmask import words as words_module
from ranmask.errors import OptionError, TextError
from ranmask.serving import sizing
from ranmask.serving.app import create_app
from ranmask.serving.problems import Problem
from ranmask.serving.registry import ModelRegistry
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.sizing import MOST_DRAWN, MOST_KEPT, read_texts
from ranmask.words import Document


def classify(texts):
    return [[0.25, 0.75] for _ in texts]


class Counted:
    """A classifier that counts the copies it is shown."""

    def __init__(self):
        self.copies = 0

    def __call__(self, texts):
        self.copies += len(texts)
        return classify(texts)


def copies_of(smoothed, texts):
    read = read_texts(texts, len(texts), 10**6)
    usable = [text for text in read if isinstance(text, Document)]
    return sum(sizing.copies_of_one(smoothed.options, len(text.words)) for text in usable)


def words(count):
    return " ".join(f"w{number}" for number in range(count))


MASKS = [
    {"keep": 1},
    {"keep": 2, "masks": 10},
    {"keep": 2, "masks": 1000},
    {"keep": 9},
    {"keep": 1, "family": "all"},
    {"keep": 2, "family": "windows"},
    {"keep": 2, "family": "windows", "masks": 3},
    {"keep": 1, "family": "sampled", "masks": 300},
    {"keep": 9, "family": "sampled", "masks": 300},
    {"mask_rate": 0.5, "masks": 40},
    {"keep": 9, "certificate": "ablation", "masks": 50, "selection_masks": 20},
    {"keep": 2, "certificate": "paper", "masks": 50, "selection_masks": 70},
    {"keep": 1, "certificate": "ablation"},
]


@pytest.mark.parametrize("options", MASKS)
def test_no_fewer_copies_are_counted_than_computed(options):
    model = Counted()
    smoothed = SmoothedClassifier(model, **options, recheck=0)
    texts = [words(count) for count in (1, 2, 5, 9)] + [("a premise", words(4))]
    smoothed.certify(texts)
    # Equal copies may be shown once: those of short texts at least.
    assert copies_of(smoothed, texts) >= model.copies


@pytest.mark.parametrize(
    ("options", "count", "copies"),
    [
        ({"keep": 1}, 7, 7),
        ({"keep": 2}, 7, 21),
        ({"keep": 2, "masks": 20}, 7, 20),
        ({"keep": 9}, 7, 1),
        ({"keep": 7, "family": "sampled", "masks": 30}, 7, 30),
        ({"keep": 2, "family": "windows"}, 7, 7),
        ({"keep": 2, "family": "windows", "masks": 3}, 7, 3),
        ({"keep": 7, "certificate": "ablation", "masks": 30, "selection_masks": 5}, 7, 35),
        ({"keep": 7, "certificate": "paper"}, 7, 6000),
    ],
)
def test_copies_of_one_text(options, count, copies):
    smoothed = SmoothedClassifier(classify, **options)
    assert copies_of(smoothed, [words(count)]) == copies
    assert copies_of(smoothed, [words(count), "", ("a b c", words(count))]) == 2 * copies


@pytest.mark.parametrize(
    "options",
    [
        {"keep": 2000, "family": "sampled", "masks": 1_000_000},
        {"keep": 1000, "masks": 1_000_000},
        {"keep": 300, "certificate": "ablation", "masks": 10, "selection_masks": 1_000_000},
        {"keep": 2, "masks": 1_000_000},
    ],
)
def test_what_would_fill_the_memory_is_refused_before_it_does(options):
    with pytest.raises(OptionError, match="fewer masks"):
        copies_of(SmoothedClassifier(classify, **options), ["a", words(2000)])


@pytest.mark.parametrize("certificate", ["exact", "ablation", "paper"])
def test_default_numbers_of_copies_are_never_refused(certificate):
    longest = [words(ServiceSettings().most_words)]
    for shown in ({"keep": 1}, {"mask_rate": 0.0}, {"mask_rate": 0.5}):
        copies_of(SmoothedClassifier(classify, **shown, certificate=certificate), longest)
    sets = SynonymSets({"film": ["story"]}, name="made up")
    copies_of(SynonymSmoothedClassifier(classify, sets), longest)


def test_the_limits_themselves_are_allowed():
    assert MOST_KEPT % 500 == 0
    masks = MOST_KEPT // 500
    kept = {"keep": 500, "family": "sampled"}
    assert copies_of(SmoothedClassifier(classify, **kept, masks=masks), [words(600)]) == masks
    with pytest.raises(OptionError):
        copies_of(SmoothedClassifier(classify, **kept, masks=masks + 1), [words(600)])
    masks = MOST_DRAWN // 2000
    drawn = {"keep": 1, "family": "sampled"}
    assert copies_of(SmoothedClassifier(classify, **drawn, masks=masks), [words(2000)]) == masks
    with pytest.raises(OptionError):
        copies_of(SmoothedClassifier(classify, **drawn, masks=masks + 1), [words(2000)])


def test_synonyms():
    sets = SynonymSets({"film": ["story"]}, name="made up")
    smoothed = SynonymSmoothedClassifier(classify, sets, masks=80, selection_masks=30)
    assert copies_of(smoothed, ["a film", "", "b"]) == 220
    many = SynonymSmoothedClassifier(classify, sets, masks=11_000)
    assert copies_of(many, [words(1000)]) == 12_000
    with pytest.raises(OptionError, match="fewer masks"):
        copies_of(many, [words(1001)])


def test_texts_and_words():
    read_texts(["a b c", ("a", "b c")], 2, 3)
    with pytest.raises(Problem) as caught:
        read_texts(["a"] * 3, 2, 3)
    assert (caught.value.status, caught.value.code) == (422, "too_many_texts")
    with pytest.raises(Problem) as caught:
        read_texts(["a", ("a b", "c d")], 2, 3)
    assert (caught.value.status, caught.value.code) == (422, "too_many_words")
    assert "text 1 has 4 words, more than 3" in caught.value.message


def test_an_unusable_text_counts_no_copies_and_spoils_no_other():
    read = read_texts(["a b", " ", "\ud800 c"], 3, 3)
    assert [type(text) for text in read] == [Document, TextError, TextError]
    assert copies_of(SmoothedClassifier(classify, keep=1), ["a b", " ", "\ud800 c"]) == 2
    with pytest.raises(Problem) as caught:  # long ones are refused, usable or not
        read_texts(["\ud800 b c d"], 1, 3)
    assert caught.value.code == "too_many_words"


@pytest.mark.parametrize("question", ["predict", "certify", "explain"])
def test_a_request_reads_its_texts_once_and_builds_one_classifier(question, monkeypatch):
    registry = ModelRegistry({"keywords": "ranmask.models.testing:keyword_classifier"}, keep=1)
    client = TestClient(create_app(registry, ServiceSettings()), base_url="http://localhost")
    split, built = [], []

    def counted(function, into):
        def call(*args, **given):
            into.append(args)
            return function(*args, **given)

        return call

    for module in (words_module, sizing):
        monkeypatch.setattr(module, "split", counted(words_module.split, split))
    monkeypatch.setattr(SmoothedClassifier, "__init__", counted(SmoothedClassifier.__init__, built))
    try:
        client.post(f"/v1/{question}", json={"text": "a good film"}).raise_for_status()
    finally:
        registry.close()
    assert [args[0] for args in split if args[0]] == ["a good film"]
    if question != "explain":  # it builds one for each certificate that it sets side by side
        assert len(built) == 1

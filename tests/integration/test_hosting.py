"""Models served by name: the classifier that the same options give anywhere else."""

import json
from dataclasses import replace

import pytest

from ranmask import (
    SmoothedClassifier,
    SynonymSets,
    SynonymSmoothedClassifier,
    load_default,
    load_detector,
)
from ranmask.errors import ModelError, OptionError, RanmaskError
from ranmask.serving.context import RequestContext
from ranmask.serving.problems import Cancelled, Closing, UnknownModel
from ranmask.serving.registry import ModelRegistry, named_models
from ranmask.smoothing.cascade import Cascade
from ranmask.smoothing.store import load_classifier

TEXTS = ["the film was very good and fine", "an awful , dull story", "good", "film " * 70]


@pytest.fixture(scope="module")
def tiny(classifier, tmp_path_factory):
    """A tiny BERT, saved with how it is smoothed and a tolerance of its own."""
    folder = tmp_path_factory.mktemp("hosted") / "tiny"
    smoothed = SmoothedClassifier(
        classifier("bert"), keep=2, masks=60, family="sampled", seed=5, tolerance=0.001
    )
    smoothed.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def safer(classifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hosted") / "safer"
    sets = SynonymSets({"film": ["story", "plot"], "good": ["great", "fine"]}, name="made up")
    one = SynonymSmoothedClassifier(classifier("bert"), sets, masks=80, selection_masks=30)
    one.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def host(tiny, safer):
    host = ModelRegistry({"tiny": str(tiny), "safer": str(safer), "words": "news-words"})
    yield host
    host.close()


def decided(results):
    """All but the mean scores, whose last digits follow the batches."""
    return [replace(one, scores=None) for one in results]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keep": 3},
        {"mask_rate": 0.8},
        {"keep": 1, "family": "all"},
        {"seed": 9},
        {"masks": 20},
        {"ensemble": "score"},
        {"certificate": "ablation", "masks": 100, "selection_masks": 40, "alpha": 0.01},
        {"certificate": "paper", "masks": 100, "selection_masks": None},
        {"keep": 1, "family": "windows"},
    ],
)
def test_options_mean_what_they_mean_when_loading(host, tiny, options):
    alone = load_classifier(str(tiny), **options)
    served = host.smoothed("tiny", RequestContext(), **options)
    assert served.description() == alone.description()
    assert decided(served.certify(TEXTS)) == decided(alone.certify(TEXTS))
    assert decided(served.predict(TEXTS)) == decided(alone.predict(TEXTS))


@pytest.mark.parametrize("options", [{}, {"seed": 3, "masks": 50, "certificate": "safer"}])
def test_synonyms_are_served_too(host, safer, options):
    alone = load_classifier(str(safer), **options)
    served = host.smoothed("safer", RequestContext(), **options)
    assert served.description() == alone.description()
    assert decided(served.certify(TEXTS)) == decided(alone.certify(TEXTS))
    assert decided(served.predict(TEXTS)) == decided(alone.predict(TEXTS))


def test_edits_of_a_word_table(host):
    served = host.smoothed("words", RequestContext(), threat="edits")
    text = "Oil prices soared to a record high"
    assert served.certify([text]) == load_default("news-words", threat="edits").certify([text])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tiny", {"keep": 0}, "keep"),
        ("tiny", {"keep": 1, "mask_rate": 0.5}, "mask_rate"),
        ("tiny", {"certificate": "magic"}, "certificate"),
        ("tiny", {"alpha": 0.1}, "alpha"),
        ("tiny", {"threat": "edits"}, "edits"),
        ("tiny", {"sampling": "fresh"}, "'sampling' is no option of a request"),
        ("tiny", {"hide": "drop"}, "'hide' is no option"),
        ("tiny", {"tolerance": 0.0}, "'tolerance' is no option"),
        ("tiny", {"device": "cpu"}, "'device' is no option"),
        ("safer", {"keep": 1}, "'keep' is no option"),
        ("safer", {"certificate": "exact"}, "certificate='exact' means nothing"),
        ("safer", {"masks": 0}, "masks"),
    ],
)
def test_wrong_options_are_refused(host, name, options, message):
    with pytest.raises(OptionError, match=message):
        host.smoothed(name, RequestContext(), **options)


def test_unknown_models_are_refused(host):
    for ask in (host.about, host.figures, lambda name: host.smoothed(name, RequestContext())):
        with pytest.raises(UnknownModel, match=r"'gone'.*tiny, safer, words") as refusal:
            ask("gone")
        assert not isinstance(refusal.value, RanmaskError)


def test_about_says_what_a_user_may_know_and_names_no_folder(host, tiny):
    assert host.names() == ("tiny", "safer", "words")
    about = host.about("tiny")
    assert about["labels"] == ["negative", "neutral", "positive"]
    assert about["smoothing"] == "masks"
    assert about["tolerance"] == 0.001
    assert about["options"]["keep"] == 2 and about["options"]["masks"] == 60
    assert about["base"]["kind"] == "huggingface" and len(about["base"]["sha256"]) == 64
    assert host.about("safer")["smoothing"] == "synonyms"
    assert host.about("words")["order_free"]
    assert host.about("words")["pairs"] is False and about["pairs"] is None
    for name in host.names():
        assert str(tiny.parent.parent) not in json.dumps(host.about(name))
    about["name"] = "changed"
    assert host.about("tiny")["name"] == "tiny"


def test_figures_count_the_copies(host):
    before = host.figures("words")
    host.smoothed("words", RequestContext()).certify(["one two three"])
    after = host.figures("words")
    assert after.copies - before.copies == 3
    assert after.asks - before.asks == 1


def test_a_cancelled_request_is_not_computed(host):
    context = RequestContext()
    served = host.smoothed("words", context)
    context.cancel()
    before = host.figures("words").copies
    with pytest.raises(Cancelled):
        served.certify(["one two three"])
    assert host.figures("words").copies == before


def test_closing():
    host = ModelRegistry({"words": "news-words"})
    served = host.smoothed("words", RequestContext())
    assert served.certify(["Oil prices soared"])
    host.close()
    for asked in (served, host.smoothed("words", RequestContext())):
        with pytest.raises(Closing):
            asked.certify(["Oil prices soared"])


def test_a_detector_is_hosted_by_name_and_from_its_folder(tmp_path):
    load_detector("spam").save_pretrained(tmp_path / "mine")
    texts = ["WINNER!! You have won a FREE prize, call now to claim it", "see you at lunch"]
    for model in ("spam", str(tmp_path / "mine")):
        host = ModelRegistry({"mine": model})
        served = host.detector("mine", RequestContext())
        assert served.detect(texts) == load_detector("spam").detect(texts)
        host.close()


def test_a_cascade_is_refused_when_the_service_starts(tmp_path):
    table = load_default("news-words").base
    detector = load_default("reviews-words").base.renamed(["clean", "attacked"])
    cascade = Cascade(table, load_default("news-words"), detector)
    cascade.save_pretrained(str(tmp_path / "cascade"))
    with pytest.raises(ModelError, match=r"'mine' is a cascade.*serve the folder 'smoothed'"):
        ModelRegistry({"mine": str(tmp_path / "cascade")})
    host = ModelRegistry({"mine": str(tmp_path / "cascade" / "smoothed")})
    host.close()


def test_what_cannot_be_certified_is_not_served():
    with pytest.raises(OptionError, match="fresh"):
        ModelRegistry({"words": "news-words"}, sampling="fresh")
    with pytest.raises(OptionError, match="name a model"):
        ModelRegistry({})


def test_names():
    given = ["news", "films=models/best", "./models/pairs/", "package.module:classify"]
    assert named_models(given) == {
        "news": "news",
        "films": "models/best",
        "pairs": "./models/pairs/",
        "classify": "package.module:classify",
    }
    with pytest.raises(OptionError, match="two models would be served as 'news'"):
        named_models(["news", "other/news"])
    for wrong in ("", "=news", "name=", "a b=news", "x" * 65 + "=news", ".."):
        with pytest.raises(OptionError, match="write NAME=MODEL"):
            named_models([wrong])

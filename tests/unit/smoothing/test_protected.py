"""A model beside the copies: what it changes, and that it survives being saved."""

import json

import numpy as np
import pytest

from ranmask.errors import ModelError, OptionError
from ranmask.models.readers import FunctionReader, ModelReader, as_reader
from ranmask.models.word_table import WordTable
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.store import load_classifier, load_default

TEXTS = ["Stocks fell after the bank raised rates", "The striker scored twice in the final"]


def undecided(texts):
    return [[0.25] * 4 for _ in texts]


def always_world(texts):
    return [[1.0, 0.0, 0.0, 0.0] for _ in texts]


class Pipeline:
    """What a scikit-learn pipeline looks like from outside."""

    classes_ = np.array(["Sports", "World", "Business", "Sci/Tech"])

    def predict_proba(self, texts):
        return np.array([[0.0, 1.0, 0.0, 0.0] for _ in texts])


class HubPipeline:
    task = "text-classification"

    def __call__(self, texts, top_k=1, truncation=False):
        assert top_k is None and truncation
        scores = {"Sci/Tech": 0.0, "World": 1.0, "Sports": 0.0, "Business": 0.0}
        return [[{"label": k, "score": v} for k, v in scores.items()] for _ in texts]


@pytest.fixture(scope="module")
def table():
    return load_default("news-words")


def test_no_weight_is_the_smoothed_classifier_and_all_weight_the_model(table):
    alone = table.certify(TEXTS)
    light = ProtectedClassifier.beside(table, undecided, (1e-6,)).certify(TEXTS)
    assert [r.label for r in light] == [r.label for r in alone]
    assert [r.radius for r in light] == [r.radius for r in alone]
    heavy = ProtectedClassifier.beside(table, always_world, (1000,)).certify(TEXTS)
    assert [(r.label, r.radius) for r in heavy] == [("World", None)] * 2


@pytest.mark.parametrize("model", [Pipeline(), HubPipeline(), always_world])
def test_what_users_have_is_a_reader_of_the_same_classes(table, model):
    protected = ProtectedClassifier.beside(table, model, (1000,))
    assert [result.label for result in protected.predict(TEXTS)] == ["World"] * 2


def test_classes_that_are_not_the_same_are_refused(table):
    other = FunctionReader(always_world, labels=["a", "b", "c", "d"])
    with pytest.raises(ModelError, match=r"a, b, c, d.*World"):
        ProtectedClassifier.beside(table, other, (1,))
    with pytest.raises(OptionError, match="not int"):
        as_reader(3)


def test_saved_with_a_model_of_ranmasks_own(table, tmp_path):
    words = load_default("news-words")
    protected = ProtectedClassifier.beside(table, ModelReader(words.base), (2, 0, 0.5))
    protected.save_pretrained(str(tmp_path / "m"))
    loaded = load_classifier(str(tmp_path / "m"))
    assert isinstance(loaded, ProtectedClassifier)
    assert isinstance(loaded.reader.base, WordTable)
    assert loaded.options.reader_weights == (2, 0, 0.5)
    assert loaded.certify(TEXTS) == protected.certify(TEXTS)
    assert loaded.description()["options"] == protected.description()["options"]
    other = load_classifier(str(tmp_path / "m"), reader_weights=(1,), seed=3)
    assert other.options.reader_weights == (1,)
    with pytest.raises(ModelError, match=r"ProtectedClassifier\.from_pretrained"):
        SmoothedClassifier.from_pretrained(str(tmp_path / "m"))


def test_saved_with_a_function_or_a_pipeline(table, tmp_path):
    ProtectedClassifier.beside(table, Pipeline(), (2,)).save_pretrained(str(tmp_path / "p"))
    assert json.loads((tmp_path / "p/reader/reader.json").read_text())["kind"] == "given"
    with pytest.raises(ModelError, match="give it again"):
        load_classifier(str(tmp_path / "p"))
    again = load_classifier(str(tmp_path / "p"), reader=Pipeline())
    assert again.options.reader_weights == (2,)
    protected = ProtectedClassifier.beside(table, always_world, (2,))
    protected.save_pretrained(str(tmp_path / "f"))
    name = json.loads((tmp_path / "f/reader/reader.json").read_text())["function"]
    with pytest.raises(ModelError, match=f"if you trust it, give reader='{name}'"):
        load_classifier(str(tmp_path / "f"))
    loaded = load_classifier(str(tmp_path / "f"), reader=always_world)
    assert loaded.certify(TEXTS) == protected.certify(TEXTS)


def test_a_folder_runs_no_code_that_it_names(table, tmp_path):
    protected = ProtectedClassifier.beside(table, always_world, (2,))
    protected.save_pretrained(str(tmp_path / "evil"))
    path = tmp_path / "evil/reader/reader.json"
    for name in ("subprocess:getoutput", "os:system", 5, None):
        record = {**json.loads(path.read_text()), "kind": "function", "function": name}
        path.write_text(json.dumps(record))
        with pytest.raises(ModelError, match="if you trust it"):
            load_classifier(str(tmp_path / "evil")).predict([f"touch {tmp_path}/PWNED"])
        with pytest.raises(ModelError, match="module:name"):
            load_classifier("news-words", reader=str(path), reader_weights=(2,))
    assert not (tmp_path / "PWNED").exists()


class UnspeakableError(Exception):
    def __str__(self):
        raise ValueError


class Unreadable:
    def __array__(self, *_, **__):
        raise KeyError


def leaves(texts):
    raise SystemExit(0)


def fails_to_say_why(texts):
    raise UnspeakableError


@pytest.mark.parametrize(
    "reads",
    [
        leaves,
        fails_to_say_why,
        lambda texts: Unreadable(),
        lambda texts: [[0.0, 0.0, 0.0, 0.0] for _ in texts],
        lambda texts: ["World" for _ in texts[1:]],
        lambda texts: ["Weather" for _ in texts],
        lambda texts: [0.5 for _ in texts],
        lambda texts: [["1", "0", "0", "0"] for _ in texts],
    ],
)
@pytest.mark.filterwarnings("ignore::ranmask.ReaderWarning")
def test_whatever_a_function_does_the_copies_answer(table, reads):
    results = ProtectedClassifier.beside(table, reads, (2,)).certify(TEXTS)
    assert [result.reader for result in results] == ["failed", "failed"]
    assert [result.label for result in results] == [r.label for r in table.predict(TEXTS)]
    # Means are those of the copies, which alone have spoken.
    alone = [result.scores for result in table.predict(TEXTS)]
    assert [result.scores for result in results] == alone


def test_two_pipelines_of_one_name_are_told_apart(table):
    class Other(Pipeline):
        def predict_proba(self, texts):
            return np.array([[1.0, 0.0, 0.0, 0.0] for _ in texts])

    one, other = (ProtectedClassifier.beside(table, m, (2,)) for m in (Pipeline(), Other()))
    assert one.description() != other.description()
    again = ProtectedClassifier.beside(table, Pipeline(), (2,))
    assert one.description() == again.description()


def test_a_hub_pipeline_of_other_classes_is_refused(table):
    class Named(HubPipeline):
        class model:  # noqa: N801
            class config:  # noqa: N801
                id2label = {0: "LABEL_0", 1: "LABEL_1"}  # noqa: RUF012

    with pytest.raises(ModelError, match=r"LABEL_0, LABEL_1.*World"):
        ProtectedClassifier.beside(table, Named(), (2,))


def test_a_reader_beside_a_model_by_name():
    protected = load_classifier("news-words", reader="json:loads", reader_weights=(2,))
    assert isinstance(protected, ProtectedClassifier)
    with pytest.raises(OptionError, match="reader_weights"):
        load_classifier("news-words", reader="json:loads")
    with pytest.raises(OptionError, match="ProtectedClassifier"):
        load_classifier("news-words", reader_weights=(2,))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"reader_weights": ()}, "1 to 7 numbers"),
        ({"reader_weights": (0, 0)}, "above 0"),
        ({"reader_weights": (-1,)}, "at least 0|from 0"),
        ({"reader_weights": (float("nan"),)}, "number"),
        ({"reader_weights": (1,), "certificate": "paper"}, "certificate"),
        ({"reader_weights": (1, 1), "keep": 2}, "keep=1"),
        ({"reader_weights": (1, 1), "threat": "edits"}, "substitutions"),
        ({"reader_weights": (1, 1), "family": "distinct"}, "family"),
    ],
)
def test_weights_that_mean_nothing_are_refused(table, options, match):
    with pytest.raises(OptionError, match=match):
        ProtectedClassifier(table.base, reader=undecided, **{"keep": 1, **options})


def test_results_say_what_is_assumed_of_the_reader(table):
    protected = ProtectedClassifier.beside(table, undecided, (2,))
    [result] = protected.certify(TEXTS[:1])
    assert any("nothing of the reader" in line for line in result.assumes)
    assert not any("segment" in line for line in result.assumes)
    assert protected.calls == 1
    read = ProtectedClassifier.beside(table, FunctionReader(undecided, repeatable=True), (0, 1, 1))
    [result] = read.certify(TEXTS[:1])
    assert any("segment" in line for line in result.assumes)
    assert read.calls == 6


def test_a_reader_sees_words_with_single_blanks_and_pairs():
    seen = []

    def reads(texts):
        seen.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    def says(texts):
        return [[1.0, 0.0] for _ in texts]

    protected = ProtectedClassifier(
        says, reader=FunctionReader(reads, repeatable=True), reader_weights=(1, 1), keep=1
    )
    protected.certify(["  one\n two\tthree ", ("a  b", "c\u00a0d")])
    assert seen == [
        "one two three",
        "one two",
        "three",
        ("a  b", "c d"),
        ("a  b", "c"),
        ("a  b", "d"),
    ]


def test_attacks_see_the_reader(table):
    from ranmask.attacks.victims import Question, SmoothedVictim
    from ranmask.words import document

    protected = ProtectedClassifier.beside(table, always_world, (1000,))
    text = document(TEXTS[0])
    other = document(TEXTS[0].replace("Stocks", "Shares"))
    answers = SmoothedVictim(protected).answer([Question(0, text, text), Question(0, other, text)])
    assert answers.labels.tolist() == [0, 0]
    assert (answers.shares[:, 0] > 0.9).all()

"""Detectors as users meet them: any model, folders, thresholds, failures."""

import json
import warnings
from fractions import Fraction

import numpy as np
import pytest

from ranmask import (
    ClassifierError,
    Detection,
    FunctionReader,
    ModelError,
    OptionError,
    SegmentDetector,
    SmoothedClassifier,
    TextError,
    WindowDetector,
    WordDetector,
    load_classifier,
    load_detector,
)
from ranmask.errors import DataError, ReaderWarning
from ranmask.models.word_table import ONE, WordTable
from ranmask.runs.flag_counts import counted
from ranmask.smoothing.detectors import calibrated

NAMES = ("ham", "spam")


def prize(texts):
    """Scores the share of words that are 'prize'; named by tests, so at the module's top."""
    shares = [text.split().count("prize") / len(text.split()) for text in texts]
    return [[1 - share, share] for share in shares]


def table(seed=0):
    rng = np.random.default_rng(seed)
    entries = rng.integers(-99, 100, (4096, 2)).astype(np.int16)
    return WordTable(entries, np.zeros(2, dtype=np.int64), labels=NAMES, shift=10)


def windows(function=prize, **options):
    return WindowDetector(
        function, **{"sizes": (2, 4), "labels": NAMES, "threshold": 0.4, **options}
    )


def test_a_window_detector_says_by_which_window_and_what_is_proved():
    [found] = windows().detect(["a prize b c d prize e f g prize"])
    assert found.flagged and found.positive == "spam" and found.score == 0.5
    assert found.spans == ((0, 2), (4, 6), (8, 10)) and found.radius == 2
    assert found.insertions == 4 and found.characters == 2 and found.additions == "ends"
    assert found.proved == (
        "stays flagged whatever is added before or after; inside, at least 3 words must be changed "
        "or texts put in, at 5 places if no word is changed"
    )
    assert found.certified(2) and not found.certified(3)
    with pytest.raises(OptionError, match="words must be a whole number of at least 0, not -1"):
        found.certified(-1)
    [other] = windows().detect(["a b c d"])
    assert not other.flagged and other.spans == () and other.proved == "not flagged"


def test_words_are_told_in_words():
    weights = np.zeros((65_521, 2), dtype=np.int16)
    weights[:, 1] = 1
    flat = WordTable(weights, np.zeros(2, dtype=np.int64), labels=NAMES, shift=0)
    [found] = WordDetector(flat, threshold=0.4).detect(["a"])
    assert (
        found.proved == "stays flagged whatever is added anywhere; at least 1 word must be changed"
    )


def test_equal_windows_are_asked_about_once_and_the_cost_is_known():
    asked = []

    def counting(texts):
        asked.extend(texts)
        return prize(texts)

    detector = windows(counting, recheck=0)
    texts = ["a a a a a", "a a a"]
    assert detector.calls(texts) == 4 + 2 + 2
    detector.detect(texts)
    assert sorted(asked) == ["a a", "a a a a"]


@pytest.mark.parametrize("detector", [WordDetector, SegmentDetector])
def test_tables_come_back_from_their_folder(detector, tmp_path):
    made = detector(table(), threshold=0.3)
    made.save_pretrained(tmp_path)
    loaded = load_detector(tmp_path)
    assert type(loaded) is detector and loaded.points == made.points
    assert loaded.description() == made.description()
    texts = ["one two three", "four five", "six"]
    assert loaded.detect(texts) == made.detect(texts)
    again = json.loads((tmp_path / "ranmask.json").read_text())
    assert again["kind"] == "detector" and again["version"] == 1


def test_a_window_detector_around_a_table_comes_back_from_its_folder(tmp_path):
    made = WindowDetector(table(), sizes=(1, 3), threshold=0.6, positive="ham")
    made.save_pretrained(tmp_path)
    loaded = load_detector(tmp_path)
    texts = ["one two three four", "five six"]
    assert loaded.sizes == (1, 3) and loaded.detect(texts) == made.detect(texts)


def test_a_function_is_named_again(tmp_path):
    windows().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="if you trust it, give reader="):
        load_detector(tmp_path)
    loaded = load_detector(tmp_path, reader=prize)
    assert loaded.detect(["a prize b"]) == windows().detect(["a prize b"])
    by_name = load_detector(tmp_path, reader=f"{__name__}:prize")
    assert by_name.detect(["a prize b"]) == windows().detect(["a prize b"])


def test_what_is_no_detector_is_refused(tmp_path):
    with pytest.raises(ModelError, match="holds no model of ranmask's"):
        load_detector(tmp_path)
    with pytest.raises(ModelError, match="'nowhere' is no folder, no detector: name one"):
        load_detector("nowhere")
    with pytest.raises(ModelError, match="'news' is a classifier, no detector: name one"):
        load_detector("news")
    table().save(tmp_path / "table")
    with pytest.raises(ModelError, match="kind 'words'"):
        load_detector(tmp_path / "table")
    WordDetector(table(), threshold=1).save_pretrained(tmp_path / "detector")
    for load in (load_classifier, SmoothedClassifier.from_pretrained):
        with pytest.raises(ModelError, match="is a detector"):
            load(str(tmp_path / "detector"))
    with pytest.raises(ModelError, match="needs no reader"):
        load_detector(tmp_path / "detector", reader=prize)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": 0}, "points must be"),
        ({"points": "x"}, "wrong type"),
        ({"detector": "other"}, "detector must be one of"),
        ({"positive": "none"}, "positive must be one of"),
        ({"colour": "red"}, "does not know"),
        ({"points": None}, "does not say points"),
        ({"detector": None}, "does not say detector"),
    ],
)
def test_damaged_records_are_told(change, message, tmp_path):
    WordDetector(table(), threshold=1).save_pretrained(tmp_path)
    path = tmp_path / "ranmask.json"
    record = json.loads(path.read_text())
    changed = record["smoothing"] | change
    record["smoothing"] = {name: value for name, value in changed.items() if value is not None}
    path.write_text(json.dumps(record))
    with pytest.raises(ModelError, match=message):
        load_detector(tmp_path)


def test_thresholds_are_integers_and_never_too_low():
    detector = WordDetector(table(), threshold=1 / 3)
    assert detector.points == 349_526 and detector.points > ONE / 3 > detector.points - 1
    assert detector.with_threshold(0.25).points == ONE // 4 and detector.points == 349_526
    for wrong in (0, -1, float("nan"), float("inf"), "1", True):
        with pytest.raises(OptionError, match="threshold must be a number above 0"):
            WordDetector(table(), threshold=wrong)


@pytest.mark.parametrize("sizes", [(), (0,), (2.5,), (True,)])
def test_sizes_are_checked(sizes):
    with pytest.raises(OptionError, match="sizes must be"):
        windows(sizes=sizes)


def test_classes_are_checked():
    with pytest.raises(OptionError, match="name them with labels"):
        WindowDetector(prize)
    with pytest.raises(OptionError, match="positive must be one of ham, spam; not 'eggs'"):
        windows(positive="eggs")
    with pytest.raises(OptionError, match="positive must be one of a, b, c; not None"):
        windows(labels=("a", "b", "c"))
    with pytest.raises(OptionError, match="needs a WordTable"):
        WordDetector(prize, threshold=1)


def test_texts_are_checked():
    for detector in (windows(), WordDetector(table(), threshold=1)):
        assert detector.detect([]) == []
        with pytest.raises(TextError, match="not pairs"):
            detector.detect([("premise", "hypothesis")])
        with pytest.raises(TextError, match="no words"):
            detector.detect([" "])


def test_windows_without_an_answer_are_not_flagged_and_are_counted():
    """So that added text that breaks the model does not unflag."""

    def fragile(texts):
        if any("boom" in text for text in texts):
            raise RuntimeError("boom")
        return prize(texts)

    with pytest.warns(ReaderWarning, match="no answer for 2 windows"):
        [found] = windows(fragile, sizes=(2,)).detect(["a prize boom c"])
    assert found.flagged and found.failed == 2 and found.radius == 0
    with (
        warnings.catch_warnings(),
        pytest.raises(ClassifierError, match="for any window"),
    ):
        warnings.simplefilter("ignore")
        windows(fragile, sizes=(2,)).detect(["a prize", "boom boom"])


def test_a_model_that_contradicts_itself_is_refused():
    calls = []

    def moody(texts):
        calls.append(len(texts))
        return [[1.0, 0.0] if len(calls) % 2 else [0.0, 1.0]] * len(texts)

    with pytest.raises(ClassifierError, match="when it was asked again"):
        windows(moody).detect(["a b c d"])


def test_a_tolerance_is_saved_and_never_below_what_is_known(tmp_path):
    made = windows(tolerance=0.25)
    made.save_pretrained(tmp_path)
    assert load_detector(tmp_path, reader=prize).tolerance == 0.25
    reader = FunctionReader(prize, labels=NAMES, repeatable=True)
    reader.tolerance = 0.5
    assert WindowDetector(reader, sizes=(2,), tolerance=0.25).tolerance == 0.5
    assert windows(tolerance=0).tolerance == 0
    with pytest.raises(OptionError, match="tolerance=1"):
        windows(tolerance=1)


def test_a_scikit_learn_pipeline_is_asked():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = ["win a prize", "see you soon", "prize now", "at lunch"] * 4
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(
        texts, ["spam", "ham", "spam", "ham"] * 4
    )
    detector = WindowDetector(model, sizes=(2, 3), threshold=0.6)
    assert detector.labels == NAMES and detector.positive == "spam" and detector.tolerance == 1e-9
    found, other = detector.detect(["hello win a prize now bye", "see you soon at lunch"])
    assert found.flagged and found.radius is not None and not other.flagged


@pytest.mark.parametrize(
    ("rate", "flagged"), [("0", 0), ("0.1", 0), ("0.2", 1), ("0.5", 2), ("0.9", 3)]
)
def test_no_more_harmless_texts_are_flagged_than_asked_for(rate, flagged):
    """Ties count: two texts of one score are flagged together or not at all."""
    harmless = ["prize a a a", "prize prize a a", "prize a prize a", "a a a a", "a a a b"]
    detector = windows(sizes=(4,))
    texts = [*harmless, "prize prize prize prize"]
    expected = [False] * 5 + [True]
    chosen = calibrated(detector, texts, expected, Fraction(rate))
    counts = counted(chosen.detect(texts), expected)
    assert counts.false_positives.whole == 5 and counts.recall.part == 1
    assert counts.false_positives.part == {1: 0, 2: 2, 3: 3}.get(flagged, 0)
    assert counts.false_positives.part <= Fraction(rate) * 5
    if chosen.points > 1:  # a point less, and it would be too many
        lower = chosen.with_threshold((chosen.points - 1) / chosen.unit)
        more = counted(lower.detect(texts), expected).false_positives.part
        assert more > Fraction(rate) * 5


def test_a_threshold_needs_harmless_texts():
    with pytest.raises(DataError, match="no text of a class other than 'spam'"):
        calibrated(windows(), ["a b"], [True], Fraction(1, 100))


def test_shares_by_length_and_with_intervals():
    texts = ["a " * 5, "prize " * 5, "a " * 40, "prize " * 20]
    detector = windows(sizes=(2,))
    values = counted(detector.detect(texts), [False, False, False, True]).values()
    assert values["recall"] == {"texts": 1, "share": 1.0, "interval": [pytest.approx(0.025), 1.0]}
    by_words = values["false_positives_by_words"]
    assert {name: (v["texts"], v["share"]) for name, v in by_words.items()} == {
        "1-10": (2, 0.5),
        "31-100": (1, 0.0),
    }
    assert values["certified_recall"]["5"]["share"] == 1.0


def test_recall_is_certified_up_to_the_radius():
    found = windows().detect(["a prize b c d prize e f g prize"])
    assert found[0].radius == 2
    shares = counted(found, [True]).values()["certified_recall"]
    assert {words: share["share"] for words, share in shares.items()} == {
        "0": 1.0,
        "1": 1.0,
        "2": 1.0,
        "5": 0.0,
    }


def test_records_come_back_from_json():
    [found] = windows().detect(["a prize b c d prize e"])
    again = Detection.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    with pytest.raises(DataError, match="version"):
        Detection.from_dict({**found.to_dict(), "version": 0})
    with pytest.raises(DataError, match="no spans"):
        Detection.from_dict({k: v for k, v in found.to_dict().items() if k != "spans"})


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda texts: [[-3.0, 4.0]] * len(texts), "do not lie between 0 and 1"),
        (lambda texts: [0.5] * (len(texts) + 1), r"it returned shape \(2,\) for 1 texts"),
        (lambda texts: texts[0].missing, "it raised AttributeError"),
    ],
)
def test_why_there_is_no_answer_is_said(function, why):
    with pytest.raises(ClassifierError, match=f"no answer for any window: .*{why}"):
        windows(function).detect(["a b c"])


def test_a_model_that_sees_its_batch_is_found_out_in_few_windows_too():
    def by_batch(texts):
        return [[1 - len(texts) / 100, len(texts) / 100]] * len(texts)

    for text in ("a b", "a b c", "a b c d e f g"):
        with pytest.raises(ClassifierError, match="judge each window by itself"):
            windows(by_batch, sizes=(2,)).detect([text])


def test_classes_of_one_name_are_refused():
    with pytest.raises(OptionError, match="different names, not spam, spam"):
        windows(labels=("spam", "spam"))


def test_other_classes_than_the_model_has_are_refused():
    with pytest.raises(ModelError, match="classes are ham, spam, and not a, b"):
        WindowDetector(table(), labels=("a", "b"))


def test_a_window_that_fails_is_found_in_few_calls():
    class Fragile(FunctionReader):
        asked = 0

        def read(self, texts, classes):
            Fragile.asked += 1
            if any("boom" in text.words for text in texts):
                raise ClassifierError("boom")
            return super().read(texts, classes)

    reader = Fragile(prize, labels=NAMES, repeatable=True)
    words = [f"w{place}" for place in range(256)]
    with pytest.warns(ReaderWarning, match="no answer for 1 windows"):
        [found] = windows(reader, sizes=(1,)).detect([" ".join([*words, "boom", "prize"])])
    assert found.flagged and found.failed == 1 and Fragile.asked < 30

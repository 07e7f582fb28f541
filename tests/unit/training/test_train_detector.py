"""Training a detector: gradients, what is learned, the folder, the threshold."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ranmask import DataError, OptionError, SegmentDetector, WordDetector, load_detector
from ranmask.data import Corpus
from ranmask.smoothing.detectors import too_few
from ranmask.training import detector_tables
from ranmask.training.detector import train_detector
from ranmask.training.detector_options import DetectorTraining, share_of
from ranmask.training.detector_tables import (
    Parameters,
    in_largest_segments,
    loss_and_gradient,
    train_detector_table,
)
from ranmask.training.table_texts import TableTexts

NAMES = ("ham", "spam")
BUCKETS = 97


def made_up(rows, seed=0):
    """Texts of neutral words; in every third of them are a few of spam."""
    rng = np.random.default_rng(seed)
    neutral = [f"word{number}" for number in range(60)]
    telling = ["winner", "prize", "cash", "claim", "urgent"]
    texts, labels = [], []
    for row in range(rows):
        words = rng.choice(neutral, rng.integers(6, 30)).tolist()
        if row % 3 == 0:
            words[:3] = rng.choice(telling, 3, replace=False).tolist()
        labels.append(int(row % 3 == 0))
        texts.append(" ".join(words))
    return texts, labels


def corpus(rows, split, seed, names=NAMES):
    texts, labels = made_up(rows, seed)
    return Corpus("made up", split, tuple(texts), tuple(labels), names)


@pytest.mark.parametrize("additions", ["anywhere", "ends"])
@pytest.mark.parametrize("warm", [False, True])
def test_the_gradient_is_that_of_the_loss(additions, warm):
    texts, labels = made_up(12)
    held = TableTexts(texts, labels, 2, buckets=BUCKETS, most_words=800)
    if additions == "anywhere":
        held.count_words_once()
    batch = held.batch(np.arange(12))
    options = DetectorTraining(additions=additions)
    rng = np.random.default_rng(1)
    learned = Parameters(rng.normal(size=BUCKETS), rng.normal(size=1), rng.normal(size=1) + 2)
    counts = rng.uniform(0.5, 2, 12)
    kept = rng.choice([0.0, 1.4], len(batch.words), p=[0.3, 0.7]) if additions == "ends" else 1.0
    _, gradient = loss_and_gradient(learned, batch, options, counts, warm, kept)
    step = 1e-6
    for name, size in (("features", BUCKETS), ("bias", 1), ("threshold", 1)):
        for place in range(0, size, 7):
            losses = []
            for sign in (1, -1):
                moved = getattr(learned, name).copy()
                moved[place] += sign * step
                there = learned._replace(**{name: moved})
                losses.append(loss_and_gradient(there, batch, options, counts, warm, kept)[0])
            slope = (losses[0] - losses[1]) / (2 * step)
            assert getattr(gradient, name)[place] == pytest.approx(slope, abs=2e-5)


def test_the_largest_segment_by_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(50):
        lengths = rng.integers(1, 9, 5)
        values = rng.integers(-3, 4, lengths.sum()).astype(float)
        chosen = in_largest_segments(values, lengths)
        start = 0
        for length in lengths:
            own, inside = values[start : start + length], chosen[start : start + length]
            best = max(own[a:b].sum() for a in range(length + 1) for b in range(a, length + 1))
            places = np.flatnonzero(inside)
            assert own[inside].sum() == best
            assert len(places) == 0 or len(places) == places[-1] - places[0] + 1
            start += length


@pytest.mark.parametrize(
    ("additions", "kind"), [("anywhere", WordDetector), ("ends", SegmentDetector)]
)
def test_a_trained_detector_finds_what_it_should(additions, kind, tmp_path):
    log = []
    options = DetectorTraining(additions=additions, batch_size=16, false_positives="2%")
    train, validation = corpus(300, "train", 0), corpus(150, "validation", 1)
    made = train_detector(train, validation, tmp_path / "d", options, report=log.append)
    assert type(made) is kind and made.positive == "spam" and made.labels == NAMES
    loaded = load_detector(tmp_path / "d")
    texts, labels = made_up(150, 2)
    found = loaded.detect(texts)
    assert found == made.detect(texts)
    recall = np.mean([one.flagged for one, label in zip(found, labels, strict=True) if label])
    alarms = np.mean([one.flagged for one, label in zip(found, labels, strict=True) if not label])
    assert recall > 0.9 and alarms < 0.1
    assert log[-1]["phase"] == "complete" and log[-1]["false_positives"]["share"] <= 0.02
    record = json.loads((tmp_path / "d" / "training.json").read_text())
    assert record["complete"] and record["run"]["options"]["positive"] == "spam"
    card = (tmp_path / "d" / "README.md").read_text()
    where = {"anywhere": "added anywhere", "ends": "added before or after it"}[additions]
    assert where in card and "false positives" in card


@pytest.mark.parametrize("additions", ["anywhere", "ends"])
def test_segments_are_learned_with_words_dropped_and_harmless_texts_counted_more(
    additions, monkeypatch
):
    seen = []

    def spied(learned, batch, options, counts, warm, kept):
        seen.append((batch.labels, counts, kept))
        return loss_and_gradient(learned, batch, options, counts, warm, kept)

    monkeypatch.setattr(detector_tables, "loss_and_gradient", spied)
    texts, labels = made_up(90)
    options = DetectorTraining(additions=additions, epochs=2)
    train_detector_table(texts, [bool(label) for label in labels], NAMES, options=options)
    given = {
        int(label): float(count)
        for sides, counts, _ in seen
        for label, count in zip(sides, counts, strict=True)
    }
    kept = np.concatenate([np.atleast_1d(words) for _, _, words in seen])
    # Two of three texts are harmless, so that those that are not count twice as much.
    if additions == "anywhere":
        assert given[1] == pytest.approx(2 * given[0]) and (kept == 1).all()
    else:
        assert 2 * given[0] == pytest.approx(3 * given[1])
        assert 0.25 < (kept == 0).mean() < 0.35 and kept.mean() == pytest.approx(1, abs=0.05)


def test_the_same_texts_give_the_same_table():
    texts, labels = made_up(60)
    flags = [bool(label) for label in labels]
    options = DetectorTraining(epochs=2, batch_size=16)
    tables = [train_detector_table(texts, flags, NAMES, options=options) for _ in range(2)]
    assert tables[0].digest == tables[1].digest
    other = DetectorTraining(epochs=2, batch_size=16, seed=1)
    assert train_detector_table(texts, flags, NAMES, options=other).digest != tables[0].digest


def test_one_of_three_classes_is_flagged_by_name(tmp_path):
    names = ("news", "spam", "chat")
    texts, labels = made_up(150)
    three = [1 if label else 2 * (row % 2) for row, label in enumerate(labels)]
    train = Corpus("made up", "train", tuple(texts), tuple(three), names)
    other = Corpus("made up", "validation", tuple(texts[:60]), tuple(three[:60]), names)
    with pytest.raises(OptionError, match="positive must be one of news, spam, chat; not None"):
        train_detector(train, other, tmp_path / "none", DetectorTraining())
    options = DetectorTraining(positive="spam", batch_size=16)
    made = train_detector(train, other, tmp_path / "d", options)
    assert made.labels == names and load_detector(tmp_path / "d").labels == names


def test_one_side_alone_is_refused():
    with pytest.raises(DataError, match="texts of both sides"):
        train_detector_table(["a", "b"], [True, True], NAMES)


@pytest.mark.parametrize(
    ("given", "share"), [("1%", "1/100"), ("0.01", "1/100"), (" 2.5 % ", "1/40"), ("0", "0")]
)
def test_rates_are_exact(given, share):
    assert str(share_of(given)) == share


@pytest.mark.parametrize("given", ["", "one", "-1%", "100%", "1.5", "1/0"])
def test_wrong_rates_are_refused(given):
    with pytest.raises(OptionError, match="false_positives must be a share"):
        DetectorTraining(false_positives=given)


def test_a_limit_goes_with_segments():
    with pytest.raises(OptionError, match="word_limit=3"):
        DetectorTraining(word_limit=3)
    assert DetectorTraining(additions="ends", word_limit=3).limit == 3


def test_rates_by_a_column_are_in_the_record_and_the_card(tmp_path):
    train, validation = corpus(300, "train", 0), corpus(60, "validation", 1)
    sources = [{"source": ("mail", "sms", None, "sms")[row % 4]} for row in range(60)]
    options = DetectorTraining(batch_size=16, epochs=2, by="source")
    with pytest.raises(DataError, match="read without its column 'source'"):
        train_detector(train, validation, tmp_path / "none", options)
    validation = replace(validation, kept=tuple(sources))
    log = []
    made = train_detector(train, validation, tmp_path / "d", options, report=log.append)
    found = log[-1]["by"]
    assert list(found) == ["mail", "sms"]
    rows = range(0, 60, 4)
    flags = [made.detect([validation.texts[row]])[0].flagged for row in rows]
    labels = [validation.labels[row] for row in rows]
    of_mail = [flag for flag, label in zip(flags, labels, strict=True) if not label]
    assert found["mail"]["false_positives"]["texts"] == len(of_mail)
    assert found["mail"]["false_positives"]["share"] == sum(of_mail) / len(of_mail)
    card = (tmp_path / "d" / "README.md").read_text()
    assert "| source | false positives | recall |" in card and "\n| mail | " in card
    # Fewer than 100 harmless texts cannot show 1 %.
    harmless = validation.labels.count(0)
    assert f"too few texts of other classes ({harmless}) to show a rate of 0.01" in card
    assert "too few" in log[-1]["too_few"] and harmless < 100


def test_enough_texts_are_enough():
    assert too_few(100, Fraction(1, 100)) is None and too_few(100, Fraction(0)) is None
    assert too_few(99, Fraction(1, 100)).endswith("use at least 100")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rate", [1e30, 1e300])  # weights that are too large, or no numbers
@pytest.mark.parametrize("additions", ["anywhere", "ends"])
def test_a_training_that_diverges_says_so(additions, rate):
    options = DetectorTraining(additions=additions, learning_rate=rate, epochs=3)
    with pytest.raises(OptionError, match="in epoch 1 of 3: training diverged with learning_rate="):
        train_detector_table(["good film", "bad film"], [True, False], NAMES, options=options)

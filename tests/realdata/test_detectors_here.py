"""A detector of real spam: what it finds, what it proves, and the attack that it withstands."""

import pytest

from ranmask.attacks.appending import append_words, harmless_words
from ranmask.data import data_folder, load_splits
from ranmask.training.detector import train_detector
from ranmask.training.detector_options import DetectorTraining

DATA = data_folder()
pytestmark = pytest.mark.skipif(
    DATA is None or not (DATA / "sms_spam").is_dir(),
    reason="no datasets: set RANMASK_DATA to the folder that holds sms_spam",
)


@pytest.mark.parametrize("additions", ["anywhere", "ends"])
def test_spam_is_found_and_stays_flagged(additions, tmp_path):
    train, validation = load_splits("sms_spam")
    log = []
    options = DetectorTraining(additions=additions)
    detector = train_detector(train, validation, tmp_path / "d", options, report=log.append)
    values = log[-1]
    assert values["false_positives"]["share"] <= 0.01
    assert values["recall"]["share"] >= 0.88
    assert values["certified_recall"]["0"] == values["recall"]
    assert values["certified_recall"]["1"]["share"] >= 0.7

    found = detector.detect(validation.texts)
    pairs = zip(validation.texts, validation.labels, found, strict=True)
    caught = [text for text, label, one in pairs if label and one.flagged]
    words = harmless_words(train.texts, [bool(label) for label in train.labels])

    def scores(texts):
        return [one.score for one in detector.detect(texts)]

    attacks = append_words(scores, caught, detector.threshold, words, most=200)
    assert not any(attack.succeeded for attack in attacks)

"""The exact certificate under fire on real sentences; skipped where the data is not there."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from ranmask import FunctionClassifier, SmoothedClassifier
from ranmask.certificates.families import family
from ranmask.certificates.kept import kept_count
from ranmask.data import data_folder


def columns(part, rows):
    folder = data_folder()
    if folder is None or not (folder / "sst2").is_dir():
        pytest.skip("no data: set RANMASK_DATA to the folder that holds sst2/")
    table = pq.read_table(folder / "sst2" / f"{part}.parquet").slice(0, rows)
    return table.column("text").to_pylist(), table.column("label").to_pylist()


@pytest.fixture(scope="module")
def word_scores():
    """Log-odds of each word, counted on real training sentences."""
    texts, labels = columns("train", 6920)
    counts = {}
    for text, label in zip(texts, labels, strict=True):
        for word in text.split():
            counts.setdefault(word, [0.5, 0.5])[label] += 1
    return {word: np.log(b / a) for word, (a, b) in counts.items()}


@pytest.mark.parametrize(
    "options", [{"keep": 1, "ensemble": "score"}, {"keep": 2}, {"mask_rate": 0.8, "masks": 300}]
)
def test_no_attack_within_the_radius_succeeds(word_scores, options):
    """Greedy attacks with the most hostile words, at critical and at random positions."""

    def classify(texts):
        sums = [sum(word_scores.get(word, 0.0) for word in text.split()) for text in texts]
        return [[-total, total] for total in sums]

    smoothed = SmoothedClassifier(FunctionClassifier(classify, outputs="logits"), **options)
    texts, labels = columns("dev", 60)
    results = smoothed.certify(texts)
    assert np.mean([r.label_id == y for r, y in zip(results, labels, strict=True)]) > 0.55
    hostile = [max(word_scores, key=word_scores.get), min(word_scores, key=word_scores.get)]
    draw = np.random.default_rng(0)
    attacks = 0
    for text, result in zip(texts, results, strict=True):
        if not result.radius:
            continue
        words = text.split()
        edits = []
        for attempt in range(20):
            places = (
                draw.permutation(result.critical_words)[: result.radius]
                if attempt % 2
                else draw.permutation(len(words))[: result.radius]
            )
            edit = list(words)
            for place in places:
                edit[place] = hostile[result.label_id]  # speaks for the other label
            edits.append(" ".join(edit))
        attacks += len(edits)
        assert {one.label_id for one in smoothed.predict(edits)} == {result.label_id}, text
    assert attacks > 200


def test_every_length_of_real_text_has_a_family():
    texts, _ = columns("test", 2000)
    for words in sorted({len(text.split()) for text in texts}):
        for rate in (0.3, 0.7, 0.8, 0.9):
            kept = kept_count(words, mask_rate=rate)
            assert len(family(words, kept, masks=200)) <= 200

"""No change within the radius moves the label of a blend: every one is tried."""

import itertools

import numpy as np
import pytest

from ranmask import Blend, FunctionClassifier, SmoothedClassifier, WordTable

VOCABULARY = ("calm", "storm", "wind", "sea", "!")
LABELS = ("a", "b", "c")


def random_blend(seed):
    """A word table, and logits that also depend on the place of the one visible word."""
    draw = np.random.default_rng(seed)
    entries = draw.integers(-127, 128, (32, 3)).astype(np.int8)
    table = WordTable(entries, np.zeros(3, dtype=np.int64), labels=LABELS, shift=5)
    weights = draw.normal(size=(len(VOCABULARY), 8, 3)) * 3

    def logits(texts):
        rows = []
        for text in texts:
            words = text.split()
            [place] = [i for i, word in enumerate(words) if word != "[MASK]"]
            rows.append(weights[VOCABULARY.index(words[place]), place])
        return rows

    outputs = "approvals" if seed % 2 else "logits"
    return Blend([table, FunctionClassifier(logits, outputs=outputs, labels=LABELS)])


def changed_texts(words, changes):
    for positions in itertools.combinations(range(len(words)), changes):
        for replaced in itertools.product(VOCABULARY, repeat=changes):
            text = list(words)
            for position, word in zip(positions, replaced, strict=True):
                text[position] = word
            yield " ".join(text)


def firmest_texts(smoothed, seed):
    """Of many texts those with the largest radii, so that there is something to shoot at."""
    draw = np.random.default_rng(100 + seed)
    texts = [" ".join([word] * 7) for word in VOCABULARY]
    texts += [" ".join(draw.choice(VOCABULARY, 7)) for _ in range(40)]
    results = smoothed.certify(texts)
    firm = sorted(zip(texts, results, strict=True), key=lambda one: -(one[1].radius or 0))
    return firm[:4]


@pytest.mark.parametrize("seed", range(12))
def test_no_change_within_the_radius_moves_the_label(seed):
    smoothed = SmoothedClassifier(random_blend(seed), keep=1, ensemble="score")
    for text, result in firmest_texts(smoothed, seed):
        assert result.guarantee
        for changes in range(1, (result.radius or 0) + 1):
            attacked = list(changed_texts(text.split(), changes))
            assert {one.label for one in smoothed.predict(attacked)} == {result.label}


def test_the_texts_have_radii_worth_attacking():
    firmest = [
        firmest_texts(SmoothedClassifier(random_blend(seed), keep=1, ensemble="score"), seed)[0]
        for seed in range(12)
    ]
    assert sum((result.radius or 0) >= 1 for _, result in firmest) >= 6

"""How often a sampled certificate is wrong, over thousands of seeds, on a known classifier."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

from ranmask import SmoothedClassifier
from ranmask.certificates.sampled import delta, margin_from_counts, radius_of

ALPHA = 0.05
REPETITIONS = 4000


def radius(kind, counts, samples, words, kept):
    margin = margin_from_counts(kind, counts, 0, samples, words, kept, alpha=ALPHA)
    return radius_of(kind, words, margin).words


def true_radius(chance, words, kept):
    radius = -1
    while radius < words and chance - delta(words, kept, radius + 1) > Fraction(1, 2):
        radius += 1
    return radius


@pytest.mark.parametrize("keys", [7, 9, 12, 17])
def test_levine_feizi_fails_at_most_alpha_often(keys):
    """Certifying more than the true chance allows is a failure; a binomial test counts them."""
    words, kept, samples = 20, 2, 500
    missing = math.comb(words - keys, kept)
    chance = 1 - Fraction(missing, math.comb(words, kept))
    truth = true_radius(chance, words, kept)
    rng = np.random.default_rng(keys)
    votes = rng.binomial(samples, float(chance), size=REPETITIONS)
    radii = {
        count: radius("ablation", [count], samples, words, kept) for count in set(votes.tolist())
    }
    certified = [radii[count] for count in votes.tolist() if radii[count] is not None]
    failures = sum(radius > truth for radius in certified)
    assert certified and truth >= 0
    assert binomtest(failures, REPETITIONS, ALPHA, alternative="greater").pvalue > 1e-3


def test_the_bound_is_not_vacuous():
    """Just below a threshold the bound does fail now and then: about alpha, not never."""
    words, kept, samples = 40, 1, 400
    threshold = Fraction(1, 2) + delta(words, kept, 3)
    votes = np.random.default_rng(0).binomial(samples, float(threshold), size=REPETITIONS)
    failures = sum(
        (radius("ablation", [int(count)], samples, words, kept) or 0) >= 3
        for count in votes.tolist()
    )
    assert 0.02 * REPETITIONS < failures <= 0.065 * REPETITIONS


def test_runner_up_form_fails_at_most_alpha_often():
    """At the exact threshold p_1 - p_2 = 2 Delta, certifying is a failure."""
    words, kept, samples, changed = 40, 1, 600, 3
    gap = float(2 * delta(words, kept, changed))
    chances = np.array([0.4 + gap / 2, 0.4 - gap / 2, 0.2])
    draws = np.random.default_rng(1).multinomial(samples, chances, size=REPETITIONS)
    failures = sum(
        (radius("ablation-runner-up", row, samples, words, kept) or 0) >= changed
        for row in draws.tolist()
    )
    assert binomtest(failures, REPETITIONS, ALPHA, alternative="greater").pvalue > 1e-3


def test_end_to_end_over_seeds():
    """The whole path, selection and estimation drawn anew for each seed."""
    words, kept, keys = 20, 2, 8

    def classify(texts):
        return [[1.0, 0.0] if "key" in text else [0.0, 1.0] for text in texts]

    text = " ".join(["key"] * keys + ["word"] * (words - keys))
    chance = 1 - Fraction(math.comb(words - keys, kept), math.comb(words, kept))
    truth = true_radius(chance, words, kept)
    repetitions, failures = 400, 0
    for seed in range(repetitions):
        smoothed = SmoothedClassifier(
            classify,
            keep=kept,
            certificate="ablation",
            masks=300,
            selection_masks=100,
            alpha=ALPHA,
            seed=seed,
        )
        [result] = smoothed.certify([text])
        failures += result.radius is not None and (result.label_id != 0 or result.radius > truth)
    assert binomtest(failures, repetitions, ALPHA, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("kind", ["ablation", "ablation-runner-up"])
def test_who_knows_the_seed_can_choose_a_text(kind):
    """Key words where the sample looks most often: a label with a chance below a half passes.

    That is why certificates name the seed among what they rest on.
    """
    words, options = 400, {"keep": 1, "masks": 2000, "certificate": kind, "seed": 3}
    asked = []

    def note(texts):
        asked.extend(texts)
        return [[1, 0]] * len(texts)

    positions = [f"w{place}" for place in range(words)]
    smoothed = SmoothedClassifier(note, hide="drop", recheck=0, **options)
    smoothed.certify([" ".join(positions)])
    seen = Counter(asked)  # selection and estimation
    keys = {word for word, _ in seen.most_common(int(words * 0.45))}
    chosen = " ".join("key" if word in keys else "other" for word in positions)

    def classify(texts):
        return [[1, 0] if "key" in text else [0, 1] for text in texts]

    [result] = SmoothedClassifier(classify, **options).certify([chosen])
    assert result.label_id == 0 and result.radius > 0  # though 55 of 100 copies say 1
    assert "the text was not chosen by someone who knows the seed 3" in result.assumes
    [exact] = SmoothedClassifier(classify, keep=1).certify([chosen])
    assert exact.label_id == 1 and not any("seed" in one for one in exact.assumes)

"""Votes over copies that lack words: CERT-ED's radii, every edit of short texts, and coverage."""

import functools
import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from ranmask import DeletionSmoothedClassifier, ModelError, OptionError, load_classifier
from ranmask.certificates.deletion import deletion_radius, edit_radius, kept_words
from ranmask.certificates.kept import DeletionRates
from ranmask.models.base import score_full_texts
from ranmask.words import Document, documents

THEIRS = json.loads((Path(__file__).parents[1] / "data" / "cert_ed.json").read_text())
ALPHA = 0.05
REPETITIONS = 4000


def as_theirs(radius):
    return -1 if radius is None else radius


def test_the_same_bounds_give_the_radii_of_cert_ed():
    for rate, low, high, radius in THEIRS["bounds"]:
        found = edit_radius(Fraction(low), Fraction(high), 20, DeletionRates(rate))
        assert as_theirs(found) == radius
    assert len({radius for *_, radius in THEIRS["bounds"]}) > 10


def test_the_same_votes_give_the_radii_of_cert_ed():
    """With its bound for a majority; with that for the runner-up where there are two classes.

    Of more it bounds only the class that came second in the sample, which nobody knew before; here
    all rivals are bounded, and the radius may be smaller.
    """
    smaller = 0
    for rate, counts, label, majority, runner_up in THEIRS["votes"]:
        given = (counts, label, sum(counts), 20, DeletionRates(rate))
        assert as_theirs(deletion_radius("deletion", *given, alpha=ALPHA).words) == majority
        found = as_theirs(deletion_radius("deletion-runner-up", *given, alpha=ALPHA).words)
        assert found == runner_up if len(counts) == 2 else found <= runner_up
        smaller += found < runner_up
    assert smaller < len(THEIRS["votes"]) / 10


def distance(one, other):
    """Words replaced, inserted or deleted that make one text of another, at least."""
    row = list(range(len(other) + 1))
    for count, word in enumerate(one, 1):
        before, row = row, [count]
        for place, new in enumerate(other, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (word != new)))
    return row[-1]


RATES = [DeletionRates(Fraction(rate)) for rate in ("0.9", "0.8", "0.95")]
RATES += [
    DeletionRates(Fraction(least), keep) for least, keep in (("0.5", 1), ("0.7", 1), ("0.6", 2))
]


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("seed", range(3))
def test_every_text_within_the_radius_keeps_the_label(seed, rates):
    """Of every text of up to six words, by the true chances of a classifier of random answers.

    One rate, and rates by length: with ``keep=1``, five words are deleted at .8, six at .83.
    """
    rng = np.random.default_rng(seed)
    texts = [text for size in range(7) for text in itertools.product("ab", repeat=size)]
    says = {text: int(rng.choice(3, p=[0.1, 0.8, 0.1])) for text in texts}

    @functools.cache
    def chances(text):
        found, chance = [Fraction(0)] * 3, rates.of(max(len(text), 1))
        for kept in itertools.product((False, True), repeat=len(text)):
            left = tuple(itertools.compress(text, kept))
            found[says[left]] += chance ** kept.count(False) * (1 - chance) ** kept.count(True)
        return found

    radii = set()
    for text in texts[1:]:
        own = chances(text)
        label = own.index(max(own))
        rival = max(own[:label] + own[label + 1 :])
        radius = edit_radius(own[label], rival, len(text), rates)
        radii.add(radius)
        for other in texts[1:] if radius else ():
            if distance(text, other) <= radius:
                theirs = chances(other)
                assert all(theirs[label] > theirs[rival] for rival in range(3) if rival != label)
    assert max(radius or 0 for radius in radii) >= (2 if rates.keep is None else 1)


@pytest.mark.parametrize("seed", range(5))
def test_no_more_can_be_proved_against_the_worst_classifier(seed):
    """It says the label of a copy with a word that goes, and a rival of one with a new word."""
    rng, chance = np.random.default_rng(seed), Fraction("0.9")
    sets = list(itertools.product((0, 1), repeat=5))  # of the words that stay
    chances = [chance ** one.count(0) * (1 - chance) ** one.count(1) for one in sets]
    won = lost = 0
    for share, changed in itertools.product(np.linspace(0.5, 1, 30), range(1, 7)):
        of_label = sum(itertools.compress(chances, rng.random(len(sets)) < share), Fraction(0))
        gone = chance**changed  # so often no changed word is left
        before = 1 - gone + gone * of_label
        after = gone * of_label
        radius = edit_radius(before, 1 - before, 5, DeletionRates(chance))
        assert (radius is not None and radius >= changed) == (after > 1 - after)
        won, lost = won + (after > 1 - after), lost + (after <= 1 - after)
    assert min(won, lost) > 20


@pytest.mark.parametrize("kind", ["deletion", "deletion-runner-up"])
def test_it_fails_at_most_alpha_often(kind):
    """At the very chances where a radius is no longer true, claiming it is a failure."""
    rate, claimed, samples = Fraction(9, 10), 3, 500
    rates = DeletionRates(rate)
    lead = float(2 - 2 * rate**claimed)
    chances = [(1 + lead) / 2, (1 - lead) / 2, 0.0]
    if kind == "deletion-runner-up":
        chances = [0.42 + lead / 2, 0.42 - lead / 2, 0.16]
    draws = np.random.default_rng(5).multinomial(samples, chances, size=REPETITIONS)
    radii = {}
    for counts in map(tuple, draws.tolist()):
        if counts not in radii:
            radii[counts] = deletion_radius(kind, counts, 0, samples, 9, rates, alpha=ALPHA).words
    failures = sum((radii[counts] or 0) >= claimed for counts in map(tuple, draws.tolist()))
    assert binomtest(failures, REPETITIONS, ALPHA, alternative="greater").pvalue > 1e-3
    assert failures > 0  # about alpha for one bound, less where it is shared


def has_key(texts):
    return [[1.0, 0.0] if "key" in text else [0.0, 1.0] for text in texts]


def test_end_to_end_over_seeds():
    """Selection and estimation drawn anew for each seed; the true chance is known."""
    rate, keys = 0.8, 9
    text = " ".join(["key", "word"] * keys)
    truth = 1 - Fraction(str(rate)) ** keys
    true_radius = edit_radius(truth, 1 - truth, 2 * keys, DeletionRates(rate))
    failures, found = 0, set()
    for seed in range(150):
        model = DeletionSmoothedClassifier(
            has_key, mask_rate=rate, masks=300, selection_masks=50, seed=seed, recheck=0
        )
        [result] = model.certify([text])
        assert (result.label_id, result.guarantee, result.alpha) == (0, True, ALPHA)
        found.add(result.radius)
        failures += (result.radius or 0) > true_radius
    assert binomtest(failures, 150, ALPHA, alternative="greater").pvalue > 1e-3
    assert true_radius in found


def test_words_are_deleted_independently_and_by_the_number_of_words_alone():
    rate = DeletionRates(0.7).of(7)
    stays = kept_words(7, rate, 40_000, 3, "estimation")
    assert np.abs(stays.mean(axis=0) - 0.3).max() < 0.01
    both = stays.T.astype(float) @ stays / len(stays)
    assert np.abs(both[~np.eye(7, dtype=bool)] - 0.09).max() < 0.01
    assert (kept_words(7, rate, 40_000, 3, "estimation") == stays).all()
    assert (kept_words(7, rate, 40_000, 3, "selection") != stays).any()
    assert (kept_words(7, rate, 100, 4, "estimation") != stays[:100]).any()
    pinned = [[True, False], [True, False], [False, False]]
    assert kept_words(2, rate, 3, 0, "selection").tolist() == pinned
    assert 0 <= Fraction(7, 10) - rate < Fraction(1, 2**64)


def test_a_copy_is_a_shorter_text():
    """What is left is read as if nothing else had been there; nothing left is one word."""
    seen = []

    def classify(texts):
        seen.extend(texts)
        return has_key(texts)

    model = DeletionSmoothedClassifier(classify, mask_rate=0.5, recheck=0, selection_masks=400)
    [prediction] = model.predict(["the key is here"])
    assert {"[MASK]", "the here", "key", "the key is here"} <= set(seen)
    assert len(seen) == len(set(seen)) == 16  # equal copies are scored once
    assert sum(prediction.votes) == prediction.masks == 400
    [copies] = model.copies(documents(["the key is here"]), "selection")
    [others] = model.copies(documents(["the key is here"]), "estimation")
    assert (others.stays[:400] != copies.stays).any() and len(others) == 5000
    [scores] = model.score([copies])
    for row, stays in zip(scores, copies.stays, strict=True):
        left = " ".join(itertools.compress(["the", "key", "is", "here"], stays)) or "[MASK]"
        assert row.tolist() == has_key([left])[0]


def test_a_word_table_and_its_refusals(tmp_path):
    model = load_classifier("news-words", certificate="deletion", mask_rate=0.5, masks=200)
    [result] = model.certify(["Oil prices soared as traders feared supply cuts"])
    assert (result.threat, result.certificate, result.family) == (
        *("edit-distance", "deletion"),
        "deletion",
    )
    assert "the others keep their order" in result.assumes[0]
    [copies] = model.copies([Document(("oil", "cup"))])
    alone = score_full_texts(model.base, copies.documents)
    assert (model.score([copies])[0] == alone).all()
    assert model.with_options(seed=1).certify(["Oil prices"])[0].masks == 200
    for given in ({"threat": "edits"}, {"family": "all"}, {"ensemble": "score"}):
        [(name, value)] = given.items()
        with pytest.raises(OptionError, match=f"{name}={value!r} means nothing with certificate="):
            load_classifier("news-words", certificate="deletion", mask_rate=0.5, **given)
    for rate in (None, 0, 1, -0.5):
        with pytest.raises(OptionError, match="mask_rate"):
            DeletionSmoothedClassifier(has_key, mask_rate=rate)
    with pytest.raises(ModelError, match="kind 'protected', which is not smoothed by deletion"):
        load_classifier("news", certificate="deletion", mask_rate=0.5)
    with pytest.raises(ModelError, match="smoothed by deletion cannot be saved"):
        model.save_pretrained(str(tmp_path))


def test_a_function_that_moves_is_found():
    answers = itertools.cycle([[[1.0, 0.0]], [[0.0, 1.0]]])
    model = DeletionSmoothedClassifier(
        lambda texts: next(answers) * len(texts), mask_rate=0.5, masks=50, selection_masks=50
    )
    with pytest.raises(Exception, match="must be deterministic"):
        model.certify(["one two three"])

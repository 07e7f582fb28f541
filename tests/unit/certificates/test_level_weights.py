"""Many weights at once: the counts are those of the certificate, text by text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.certificates.families import family
from ranmask.certificates.level_weights import LevelWeights, ReadTexts, in_points
from ranmask.certificates.pyramid import pyramid_radii
from ranmask.certificates.readings import read_scores, segment_borders
from ranmask.certificates.votes import count_votes

MOST = 6
WHOLE = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 40.0)


def read(seed, *, classes=2, levels=3, texts=30, ensemble="score", copies_tolerance=0.0):
    """Texts of 1 to 30 words; scores in eighths, so that there are ties."""
    rng = np.random.default_rng(seed)
    words = rng.integers(1, 31, size=texts)
    labels = rng.integers(0, classes, size=texts)
    own = np.repeat(labels, words)
    rows = rng.integers(0, 5, size=(len(own), classes)) / 8
    rows[np.arange(len(own)), own] = 1 - rows[np.arange(len(own)), own]
    nodes = rng.integers(0, 5, size=(texts, 2**levels - 1, classes)) / 4
    nodes[np.arange(texts), :, labels] = 1 - nodes[np.arange(texts), :, labels] / 2
    for level in range(levels):
        borders = segment_borders(words, 2**level)
        empty = borders[:, 1:] == borders[:, :-1]
        nodes[:, 2**level - 1 : 2 ** (level + 1) - 1][empty] = 0
    nodes[rng.random(texts) < 0.1, 0] = 0  # no answer to the whole text
    votes = count_votes(rows, ensemble, "scores", copies_tolerance, words)
    families = [family(int(size), 1, choice="all", masks=100) for size in words]
    return ReadTexts(votes, families, nodes, labels)


def certified(texts, weights, tolerance):
    """By class and whether the model is right: right ones, and those with a radius or more."""
    places = [
        node
        for level, weight in enumerate(weights)
        if weight
        for node in range(2**level - 1, 2 ** (level + 1) - 1)
    ]
    votes = texts.votes.beside(read_scores(texts.nodes[:, places], weights, tolerance=tolerance))
    radii = np.array([radius.words or 0 for radius in pyramid_radii(votes, texts.families)])
    own = (texts.nodes[:, 0].argmax(axis=1) == texts.labels) & (texts.nodes[:, 0].max(axis=1) > 0)
    right = votes.winners == texts.labels
    classes = texts.votes.classes

    def by_class(found):
        return np.array(
            [
                [
                    (found & (own == model) & (texts.labels == label)).sum()
                    for label in range(classes)
                ]
                for model in (False, True)
            ]
        )

    proved = [by_class(right & (radii >= words)) for words in range(1, MOST + 1)]
    return by_class(right), np.stack(proved, axis=2)


@pytest.mark.parametrize("ensemble", ["score", "vote"])
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 4),
    segments=st.lists(st.sampled_from([0.0, 0.25, 1.0, 1.7, 6.0]), max_size=3),
    tolerance=st.sampled_from([0.0, 0.01]),
    copies_tolerance=st.sampled_from([0.0, 0.1]),
)
def test_counts_are_those_of_the_certificate(
    ensemble, seed, classes, segments, tolerance, copies_tolerance
):
    texts = read(
        seed,
        classes=classes,
        levels=1 + len(segments),
        ensemble=ensemble,
        copies_tolerance=copies_tolerance,
    )
    tried = LevelWeights([texts], MOST, tolerance)
    right, proved = tried.counts(segments, in_points(WHOLE))
    for place, whole in enumerate(WHOLE):
        if whole or any(segments):
            expected = certified(texts, (whole, *segments), tolerance)
            assert (right[place] == expected[0]).all() and (proved[place] == expected[1]).all()
    assert (right <= tried.texts).all() and tried.texts.sum() == 30


def test_there_is_something_to_count():
    right, proved = LevelWeights([read(1, texts=300)], MOST).counts((1, 0.5), in_points(WHOLE))
    assert proved[1].sum(axis=(0, 1))[0] > 10 and proved[1].sum(axis=(0, 1))[2] > 0
    assert (right[0] != right[-1]).any() and (right[-1][0] < right[0][0]).any()


def test_batches_of_texts_count_as_one():
    parts = [read(seed, texts=20 + seed) for seed in range(3)]
    together = LevelWeights(parts, MOST).counts((0.5, 2), in_points(WHOLE))
    alone = [LevelWeights([part], MOST).counts((0.5, 2), in_points(WHOLE)) for part in parts]
    for found, of_each in zip(together, zip(*alone, strict=True), strict=True):
        assert (found == sum(of_each)).all()


def test_levels_that_weigh_nothing_may_be_left_out():
    tried = LevelWeights([read(3, levels=4)], MOST)
    for short, long in (((), (0, 0, 0)), ((2,), (2, 0, 0))):
        for one, other in zip(
            tried.counts(short, in_points(WHOLE)), tried.counts(long, in_points(WHOLE)), strict=True
        ):
            assert (one == other).all()

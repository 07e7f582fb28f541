"""The losses of word tables: what is left is the certificate, and gradients are those of losses."""

import itertools
import math
import warnings
from typing import get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask.certificates.exact import single_word_radii
from ranmask.training.options import MARGIN_WIDTH
from ranmask.training.table_learning import Objective, Weights, loss_and_gradient
from ranmask.training.table_loss import (
    ahead,
    certified_loss,
    costs_of,
    label_first,
    largest_sums,
    margin_loss,
    margins,
    sigmoid,
    softplus,
    whole_text,
)
from ranmask.training.table_options import WordTableOptions
from ranmask.training.table_texts import Batch

GRID = 16  # scores are sixteenths, which doubles add exactly
BUCKETS = 9
THREATS = get_args(get_type_hints(WordTableOptions)["threat"])


def left_of(points, label, most, whole=None, weight=0.0):
    """Of one text with one row of points a word: (most + 1, rivals)."""
    points = np.asarray(points)
    order = label_first(np.array([label]), points.shape[1])
    lengths = np.array([len(points)])
    differences = ahead(points.T[order[:, 0]] / GRID)
    cost = costs_of("substitutions", lengths, 1.0, most)
    left, _ = margins(differences, lengths, 1.0, cost)
    if whole is not None:
        left += whole_text(np.asarray(whole, dtype=float)[order], weight, most)
    return left[:, :, 0]


class TestMargins:
    @pytest.mark.parametrize("classes", [2, 3, 5])
    def test_they_are_the_certificate(self, classes):
        """All rivals have something left after d words exactly where the radius is d or more."""
        rng = np.random.default_rng(classes)
        radii = []
        for _ in range(150):
            words, favour = rng.integers(1, 12), rng.integers(0, GRID)
            points = rng.integers(0, GRID + 1, (words, classes))
            points[:, 0] = np.minimum(points[:, 0] + favour, GRID)
            points[:, 1:] = np.maximum(points[:, 1:] - favour, 0)
            label = int(rng.integers(0, 2)) if rng.random() < 0.2 else 0
            rivals = [rival for rival in range(classes) if rival != label]
            apart = np.stack([points[:, label] - points[:, rival] for rival in rivals])
            [radius] = single_word_radii(apart, np.array([words]), GRID)
            left = left_of(points, label, words + 1).min(axis=1)
            certified = -1 if radius.words is None else radius.words
            assert (left > 0).tolist() == [d <= certified for d in range(words + 2)]
            radii.append(radius.words)
        assert {None, 0, 1, 2, 3} <= set(radii)

    def test_by_hand(self):
        """Differences 0.5, 1 and 0 to the nearest rival; the dearest word costs 1 + 1."""
        left = left_of([[12, 4, 0], [16, 0, 0], [8, 8, 8]], 0, 4)
        assert left[:, 0].tolist() == [1.5, -0.5, -2, -3, -3]
        assert left[:, 1].tolist() == [1.75, -0.25, -2, -3, -3]

    @pytest.mark.parametrize("weight", [0.25, 1.0, 2.0])
    def test_the_whole_text_against_every_change(self, weight):
        """Brute force: all sets of words say -1, and so does the whole once a word is changed."""
        rng = np.random.default_rng(0)
        proved = 0
        for _ in range(100):
            words, said = int(rng.integers(1, 7)), rng.integers(0, 5, 3) / 4
            points = rng.integers(0, [GRID + 1, 5, 5], (words, 3))
            points[:, 0] = np.minimum(points[:, 0] + 12, GRID)
            left = left_of(points, 0, words, said, weight)
            for rival, changed in itertools.product((1, 2), range(words + 1)):
                own = (points[:, 0] - points[:, rival]) / GRID
                voter = weight * (said[0] - said[rival] if changed == 0 else -1)
                worst = min(
                    own.sum() - own[list(places)].sum() - changed + voter
                    for places in itertools.combinations(range(words), changed)
                )
                assert left[changed, rival - 1] == worst
                proved += worst > 0 and changed > 0
        assert proved > 20

    def test_texts_are_apart(self):
        rng = np.random.default_rng(3)
        lengths = np.array([2, 5, 1, 3])
        differences = rng.random((2, 11))
        cost = costs_of("substitutions", lengths, 1.0, 4)
        together, _ = margins(differences, lengths, 1.0, cost)
        for text, (start, length) in enumerate(zip([0, 2, 7, 8], lengths, strict=True)):
            own = differences[:, start : start + length]
            cost = costs_of("substitutions", lengths[[text]], 1.0, 4)
            alone, _ = margins(own, lengths[[text]], 1.0, cost)
            assert together[:, :, text] == pytest.approx(alone[:, :, 0])


def worst_of(threat, own, changes, least):
    """The least lead over a rival that so many changes leave: every choice of words, tried."""
    kept = [
        [place not in taken for place in range(len(own))]
        for size in range(len(own) + 1)
        for taken in itertools.combinations(range(len(own)), size)
    ]
    leads = []
    for stays in kept:
        gone = stays.count(False)
        lead = sum(value for value, one in zip(own, stays, strict=True) if one)
        if threat == "substitutions" and gone <= changes:
            leads.append(lead - gone)
        elif threat == "synonyms" and gone <= changes:
            leads.append(lead + sum(b for b, one in zip(least, stays, strict=True) if not one))
        elif (threat == "insertions" and not gone) or (threat == "edits" and gone <= changes):
            leads.append(lead - changes)
        elif threat == "characters" and gone <= 2 * changes:
            leads.append(lead - min(2 * changes, 3 * changes - gone))
    return min(leads)


@given(st.integers(0, 2**32), st.sampled_from(THREATS), st.integers(0, 3))
def test_costs_are_those_of_every_choice(seed, threat, most):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, rng.integers(1, 4))
    own = rng.integers(-8, 9, (2, lengths.sum())) / 8
    least = np.minimum(own, rng.integers(-8, 9, own.shape) / 8)
    every = threat == "synonyms" and most == 0
    cost = costs_of(threat, lengths, 1.0, None if every else most)
    left, _ = margins(own, lengths, 1.0, cost, least if threat == "synonyms" else -1.0)
    assert len(left) == (2 if every else most + 1)
    ends = np.cumsum(lengths)
    for rival, text in itertools.product(range(2), range(len(lengths))):
        text_words = slice(ends[text] - lengths[text], ends[text])
        given = own[rival, text_words].tolist(), least[rival, text_words].tolist()
        for step, found in enumerate(left[:, rival, text]):
            changes = lengths[text] * step if every else step
            if changes > lengths[text] and threat not in ("substitutions", "synonyms"):
                assert found <= 0  # nothing is proved, whatever it costs
                continue
            assert found == worst_of(threat, given[0], changes, given[1]), (threat, step)


@given(st.integers(0, 2**32), st.integers(0, 6))
def test_largest_sums(seed, most):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, rng.integers(1, 5))
    values = rng.integers(0, 5, (2, lengths.sum())) / 4  # many ties
    sums, pullback = largest_sums(values, lengths, most)
    ends = np.cumsum(lengths)
    for rival, text in itertools.product(range(2), range(len(lengths))):
        own = values[rival, ends[text] - lengths[text] : ends[text]]
        falling = np.sort(own)[::-1]
        expected = [falling[:d].sum() for d in range(most + 1)]
        assert sums[:, rival, text].tolist() == expected
        # Sums are linear where nothing overtakes: their values come back from the gradient.
        by = np.zeros_like(sums)
        by[most, rival, text] = 1
        assert (pullback(by) * values).sum() == expected[-1]


class TestCertifiedLoss:
    def test_by_hand(self):
        left = left_of([[16, 0], [16, 0], [8, 8]], 0, 1)[..., None]
        [loss], _ = certified_loss(left, 2.0)
        assert left.ravel().tolist() == [2, 0]
        assert loss == pytest.approx((1 / (1 + math.e) + 0.5) / 2)

    def test_cold_it_counts_what_is_not_proved(self):
        left = np.random.default_rng(0).normal(0.5, 1, (3, 2, 40))
        losses, _ = certified_loss(left, 1e-9)
        assert losses == pytest.approx((left.min(axis=1) <= 0).mean(axis=0))

    def test_accuracy_weight_replaces_the_step_at_no_words(self):
        left = np.random.default_rng(0).normal(0, 1, (4, 2, 5))
        least = left.min(axis=1)
        steps = 1 / (1 + np.exp(least / 0.8))
        wrong = np.log1p(np.exp(-least[0] / 0.8))
        for weight in (0.5, 2.0):
            losses, _ = certified_loss(left, 0.8, weight)
            assert losses == pytest.approx((weight * wrong + steps[1:].sum(axis=0)) / 4)
        assert certified_loss(left, 0.8)[0] == pytest.approx(steps.mean(axis=0))

    def test_accuracy_weight_does_not_give_up(self):
        """A text that is far out of reach pulls with it, and hardly pulls without."""
        far = np.full((1, 1, 1), -6.4)
        pulls = [abs(certified_loss(far, 0.5, weight)[1]).max() for weight in (0.0, 1.0)]
        assert pulls[1] > 1 > 0.01 > pulls[0]

    def test_rivals_that_tie_share_the_gradient(self):
        _, by_left = certified_loss(np.array([[[0.0], [0.0], [1.0]]]), 1.0)
        assert by_left.ravel().tolist() == [-0.125, -0.125, 0]


class TestMarginLoss:
    def test_by_hand(self):
        left = np.array([[[0.3, -0.3], [0.55, 0.25]]])
        losses, _ = margin_loss(left, 0.5, 0.1)
        assert losses == pytest.approx([0.1 * math.log1p(math.exp(2)), 0.1 * math.log1p(math.e**8)])

    def test_past_the_target_hardly_anything_is_left(self):
        assert 0 < margin_loss(np.ones((1, 1, 1)), 0.3, 0.1)[0] < 1e-3


def test_curves_hold_at_both_ends():
    far = np.array([-1e4, -90, -20, 0, 20, 90, 1e4], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sigmoid(far).tolist() == pytest.approx(
            [0, math.exp(-90), 1 / (1 + math.exp(20)), 0.5, 1, 1, 1], rel=1e-5
        )
        assert softplus(far).tolist() == pytest.approx(
            [0, math.exp(-90), math.log1p(math.exp(-20)), math.log(2), 20, 90, 1e4], rel=1e-5
        )
    assert sigmoid(far).dtype == softplus(far).dtype == np.float32


@st.composite
def cases(draw):
    """A small table, a batch and something to minimise, in doubles; nothing is near a tie."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    classes, threat = draw(st.integers(2, 4)), draw(st.sampled_from(THREATS))
    synonyms = threat == "synonyms"
    distinct = draw(st.booleans()) and not synonyms
    words, texts = 5, draw(st.integers(1, 4))
    shown = 3 if synonyms else words  # the others only take the place of these
    lengths, counts = rng.integers(1, 8, texts), rng.integers(1, 5, words)
    batch = Batch(
        buckets=rng.integers(0, BUCKETS, counts.sum()),
        weights=rng.random(counts.sum()),
        counts=counts,
        words=rng.integers(0, shown, lengths.sum()),
        lengths=lengths,
        shares=rng.choice([1, 1 / 2, 1 / 3], lengths.sum()) if distinct else 1.0,
        labels=rng.integers(0, classes, texts),
        others=np.c_[:shown, rng.integers(0, words, (shown, 2))] if synonyms else None,
    )
    weights = Weights(
        rng.normal(size=(classes, BUCKETS)),
        rng.normal(size=classes),
        rng.normal(size=classes) if distinct else None,
    )
    least = 0 if threat == "substitutions" else 1
    options = WordTableOptions(
        threat=threat,
        synonyms="jia2019" if synonyms else None,
        target_words=draw(st.integers(least, 5) | (st.none() if synonyms else st.just(3))),
        temperature=draw(st.sampled_from([0.5, 2.0])),
        accuracy_weight=draw(st.sampled_from([0.0, 0.7])),
        whole_weight=draw(st.sampled_from([0.0, 0.5, 2.0])),
    )
    objective = Objective(
        options,
        warm=draw(st.booleans()),
        counts=rng.random(texts) + 0.5 if draw(st.booleans()) else 1.0,
        whole=rng.random((classes, texts)) if options.whole_weight else None,
    )
    return weights, batch, objective, rng.choice([0, 1.25], BUCKETS, p=[0.2, 0.8])


@given(cases())
def test_gradients_are_finite_differences(case):
    weights, batch, objective, heard = case
    _, gradient = loss_and_gradient(weights, batch, objective, heard)
    step = 1e-5
    for array, found in zip(weights, gradient, strict=True):
        if array is None or found is None:
            assert array is found or objective.warm
            continue
        for place in np.ndindex(array.shape):
            kept = array[place]
            losses = []
            for moved in (kept + step, kept - step):
                array[place] = moved
                losses.append(loss_and_gradient(weights, batch, objective, heard)[0])
            array[place] = kept
            assert found[place] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-6)


@given(cases())
def test_gradients_are_those_of_torch(case):
    torch = pytest.importorskip("torch")
    weights, batch, objective, heard = case
    loss, gradient = loss_and_gradient(weights, batch, objective, heard)
    given = [None if one is None else torch.tensor(one, requires_grad=True) for one in weights]
    expected = torch_loss(torch, given, batch, objective, heard)
    expected.backward()
    assert loss == pytest.approx(expected.item())
    for one, found in zip(given, gradient, strict=True):
        if found is not None:
            assert found == pytest.approx(one.grad.numpy(), abs=1e-12)


def torch_loss(torch, weights, batch, objective, heard):
    """The same loss text by text, rival by rival, as its definition reads."""
    features, bias, blank = weights
    options, warm, counts, whole = objective
    bags = np.split(np.arange(len(batch.buckets)), np.cumsum(batch.counts)[:-1])
    counted = torch.tensor(batch.weights * heard[batch.buckets])
    sums = [(features[:, batch.buckets[bag]] * counted[bag]).sum(1) + bias for bag in bags]
    scores = torch.sigmoid(torch.stack(sums))
    shares = torch.tensor(np.broadcast_to(batch.shares, batch.words.shape).copy())
    losses = []
    ends = np.cumsum(batch.lengths)
    for text, label in enumerate(batch.labels):
        own = slice(ends[text] - batch.lengths[text], ends[text])
        said = scores[batch.words[own]]
        if batch.others is not None:
            instead = scores[torch.tensor(batch.others[batch.words[own]])]
        left = []
        for rival in set(range(len(bias))) - {int(label)}:
            apart = said[:, label] - said[:, rival]
            if warm:
                left.append(apart.mean()[None])
                continue
            apart = apart * shares[own]
            lead = apart.sum()
            put_in = {"edits": 1, "insertions": 1, "characters": 2}.get(options.threat, 0)
            if options.threat == "substitutions":
                taken = apart + 1
            elif options.threat == "synonyms":
                taken = apart - (instead[:, :, label] - instead[:, :, rival]).amin(1)
            else:
                taken = apart.clamp(min=0) * (options.threat != "insertions") + put_in
            sums = taken.sort(descending=True).values.cumsum(0)
            every = options.target_words is None
            changes = np.arange(1, 2 if every else options.target_words + 1)
            at = [-1] if every else np.minimum(changes, len(sums)) - 1
            costs = sums[at]
            if blank is not None:
                lead = lead + torch.sigmoid(blank)[label] - torch.sigmoid(blank)[rival]
            voter = 0.0 if whole is None else whole[label, text] - whole[rival, text]
            first = lead + options.whole_weight * voter
            left.append(torch.cat([first[None], lead - costs - options.whole_weight]))
        margin = torch.stack(left).amin(0)
        if warm:
            hinge = torch.nn.functional.softplus((options.margin - margin) / MARGIN_WIDTH)
            losses.append(hinge[0] * MARGIN_WIDTH)
            continue
        if options.target_words is None:
            wrong = torch.nn.functional.softplus(-margin / options.temperature)
            losses.append(options.accuracy_weight * wrong[0] + wrong[1])
            continue
        lost = torch.sigmoid(-margin / options.temperature)
        if options.accuracy_weight:
            wrong = torch.nn.functional.softplus(-margin[:1] / options.temperature)
            lost = torch.cat([options.accuracy_weight * wrong, lost[1:]])
        losses.append(lost.mean())
    return (torch.stack(losses) * torch.tensor(counts)).mean()

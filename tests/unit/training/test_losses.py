"""The certified loss is a smooth count of what the certificate proves; margins by hand."""

import itertools
import math

import numpy as np
import pytest
import torch

from ranmask.certificates.exact import exact_radius, single_word_radii
from ranmask.certificates.families import all_sets
from ranmask.certificates.kept import Retention
from ranmask.training.losses import (
    certified_loss,
    certified_margins,
    margin_loss,
)
from ranmask.training.masking import MaskingPlan, Turn

GRID = 16  # scores are sixteenths, which doubles add exactly


def random_scores(rng, copies, classes, favour=0):
    """Sixteenths; class 0 is favoured, so that there is something to certify."""
    points = rng.integers(0, GRID + 1, (copies, classes))
    points[:, 0] = np.minimum(points[:, 0] + favour, GRID)
    points[:, 1:] = np.maximum(points[:, 1:] - favour, 0)
    return points


def as_batch(points, label, met):
    scores = torch.tensor(points / GRID).double()[None]
    present = torch.ones(scores.shape[:2], dtype=torch.bool)
    return scores, present, torch.tensor([label]), torch.tensor([met])


def differences(points, label):
    return np.stack(
        [points[:, label] - points[:, rival] for rival in range(points.shape[1]) if rival != label]
    )


class TestMargins:
    @pytest.mark.parametrize("classes", [2, 3, 5])
    def test_with_one_word_a_copy_they_are_the_certificate(self, classes):
        """A margin is left after d words exactly where the radius is d or more."""
        rng = np.random.default_rng(classes)
        radii = []
        for _ in range(150):
            words = int(rng.integers(1, 12))
            points = random_scores(rng, words, classes, favour=int(rng.integers(0, GRID)))
            label = int(rng.integers(0, 2)) if rng.random() < 0.2 else 0
            met = [min(d, words) for d in range(words + 2)]
            left = certified_margins(*as_batch(points, label, met))[0].tolist()
            apart = differences(points, label)
            [one_word] = single_word_radii(apart, np.array([words]), GRID)
            radius = one_word.words
            everywhere = exact_radius(all_sets(words, 1), apart, words, bound=GRID, complete=True)
            assert radius == everywhere.words
            for changed, margin in enumerate(left):
                assert (margin > 0) == (radius is not None and radius >= changed)
            radii.append(radius)
        assert {None, 0, 1, 2, 3} <= set(radii)

    @pytest.mark.parametrize(("words", "kept"), [(7, 2), (9, 2), (8, 3)])
    def test_with_more_words_a_copy_they_promise_no_more_than_the_certificate(self, words, kept):
        rng = np.random.default_rng(0)
        draw = MaskingPlan((Retention(kept),), "auto", 1000, 0.0, 0).draw(words, Turn(0, 0, 1.0))
        met = [draw.met(d) for d in range(words + 1)]
        proved = 0
        for _ in range(60):
            points = random_scores(rng, len(draw.sets), 3, favour=int(rng.integers(6, GRID)))
            left = certified_margins(*as_batch(points, 0, met))[0].tolist()
            radius = exact_radius(draw.sets, differences(points, 0), words, bound=GRID).words
            for changed, margin in enumerate(left):
                assert margin <= 0 or (radius is not None and radius >= changed)
                proved += margin > 0 and changed > 0
        assert proved > 20

    def test_by_hand(self):
        """Differences 0.5, 1 and 0 to the nearest rival; the dearest word costs 1 + 1."""
        points = np.array([[12, 4, 0], [16, 0, 0], [8, 8, 8]])
        left = certified_margins(*as_batch(points, 0, [0, 1, 2, 3]))[0]
        assert left.tolist() == [1.5, 1.5 - 2, 1.5 - 2 - 1.5, 1.5 - 2 - 1.5 - 1]

    def test_the_dearest_rival_counts(self):
        points = np.array([[16, 0, 15], [16, 0, 15]])
        [left] = certified_margins(*as_batch(points, 0, [0])).tolist()
        assert left == [2 / GRID]

    def test_texts_are_apart_and_padding_has_no_effect(self):
        rng = np.random.default_rng(3)
        texts = [random_scores(rng, copies, 3, favour=8) for copies in (2, 5, 3)]
        met = [[min(d, len(points)) for d in range(5)] for points in texts]
        alone = [
            certified_margins(*as_batch(points, 0, those))[0]
            for points, those in zip(texts, met, strict=True)
        ]
        scores = torch.rand(3, 5, 3).double()  # anything may stand in the padding
        present = torch.zeros(3, 5, dtype=torch.bool)
        for row, points in enumerate(texts):
            scores[row, : len(points)] = torch.tensor(points / GRID)
            present[row, : len(points)] = True
        together = certified_margins(scores, present, torch.zeros(3).long(), torch.tensor(met))
        assert torch.equal(together, torch.stack(alone))


class TestCertifiedLoss:
    def batch(self, copies=6, texts=4, classes=3, padding=0, seed=0):
        torch.manual_seed(seed)
        logits = torch.randn(texts, copies + padding, classes, dtype=torch.double)
        present = torch.ones(texts, copies + padding, dtype=torch.bool)
        present[:, copies:] = False
        met = torch.arange(4).expand(texts, -1)
        return logits, present, torch.arange(texts) % classes, met, torch.ones(texts).double()

    def test_by_hand(self):
        points = np.array([[16, 0], [16, 0], [8, 8]])
        scores, present, labels, met = as_batch(points, 0, [0, 1])
        margins = [2.0, 0.0]  # of 3 words that say 1, 1 and 0; the dearest costs 2
        loss = certified_loss(scores, present, labels, met, torch.tensor([0.5]).double(), 2.0)
        expected = sum(1 / (1 + math.exp(margin * 0.5 / 2)) for margin in margins) / 2
        assert loss.item() == pytest.approx(expected)

    def test_cold_it_counts_texts_that_are_not_certified(self):
        logits, present, labels, met, each = self.batch(copies=9, texts=40)
        labels = logits.softmax(-1).sum(1).argmax(-1)
        scores = (logits * 20).softmax(-1)
        lost = certified_margins(scores, present, labels, met) <= 0
        loss = certified_loss(scores, present, labels, met, each, 1e-6)
        assert loss.item() == pytest.approx(lost.double().mean().item(), abs=1e-6)
        assert 0.2 < loss.item() < 0.9

    @pytest.mark.parametrize("weight", [0.0, 1.0])
    def test_gradients_flow_to_every_copy_and_the_right_way(self, weight):
        logits, present, labels, met, each = self.batch()
        logits.requires_grad_()

        def loss():
            scores = logits.softmax(-1)
            return certified_loss(scores, present, labels, met, each, 1.0, weight)

        loss().backward()
        assert torch.isfinite(logits.grad).all()
        moved = logits.grad.gather(2, labels[:, None, None].expand(-1, 6, 1))
        assert (moved < 0).all()  # more for the right class is less loss
        before = loss().item()
        with torch.no_grad():
            logits -= 0.1 * logits.grad
        assert loss().item() < before

    def test_gradients_are_those_of_the_loss(self):
        logits, present, labels, met, each = self.batch(padding=2)
        torch.autograd.gradcheck(
            lambda given: certified_loss(given.sigmoid(), present, labels, met, each, 0.7, 0.5),
            logits.requires_grad_(),
        )

    def test_padding_has_no_effect_and_gets_no_gradient(self):
        logits, present, labels, met, each = self.batch(padding=3)
        logits.requires_grad_()
        loss = certified_loss(logits.sigmoid(), present, labels, met, each, 1.0, 1.0)
        loss.backward()
        assert (logits.grad[:, 6:] == 0).all() and (logits.grad[:, :6] != 0).any()
        alone = certified_loss(logits[:, :6].sigmoid(), present[:, :6], labels, met, each, 1.0, 1.0)
        assert loss.item() == pytest.approx(alone.item(), rel=1e-12)

    def test_accuracy_weight_replaces_the_step_at_no_words(self):
        logits, present, labels, met, each = self.batch()
        scores = logits.sigmoid()
        margins = certified_margins(scores, present, labels, met)
        steps = torch.sigmoid(-margins / 0.8)
        wrong = torch.nn.functional.softplus(-margins[:, 0] / 0.8)
        for weight in (0.5, 2.0):
            expected = (weight * wrong + steps[:, 1:].sum(1)).mean() / 4
            given = certified_loss(scores, present, labels, met, each, 0.8, weight)
            assert given.item() == pytest.approx(expected.item())
        plain = certified_loss(scores, present, labels, met, each, 0.8, 0.0)
        assert plain.item() == pytest.approx(steps.mean().item())

    def test_accuracy_weight_does_not_give_up(self):
        """A text that is far out of reach pulls with it, and hardly pulls without."""
        pulls = []
        for weight in (0.0, 1.0):
            scores = torch.tensor([[[0.1, 0.9]] * 8]).double().requires_grad_()
            everywhere = torch.ones(1, 8, dtype=torch.bool)
            met, each = torch.zeros(1, 1).long(), torch.ones(1).double()
            certified_loss(scores, everywhere, torch.tensor([0]), met, each, 0.5, weight).backward()
            pulls.append(scores.grad.abs().max().item())
        assert pulls[1] > 1 > 0.01 > pulls[0]

    def test_sums_are_read_as_words(self):
        """Twice as many copies of each kind are the same text, if each counts half."""
        logits, present, labels, met, each = self.batch()
        scores = logits.sigmoid()
        one = certified_loss(scores, present, labels, met, each, 1.0)
        twice = certified_loss(
            scores.repeat_interleave(2, 1),
            present.repeat_interleave(2, 1),
            labels,
            2 * met,
            each / 2,
            1.0,
        )
        assert twice.item() == pytest.approx(one.item())


class TestMarginLoss:
    def test_by_hand(self):
        scores = torch.tensor([[[0.9, 0.1, 0.3], [0.5, 0.7, 0.0]]]).double()
        present = torch.ones(1, 2, dtype=torch.bool)
        # Means 0.7, 0.4 and 0.15: the margin of class 0 is 0.3.
        loss = margin_loss(scores, present, torch.tensor([0]), 0.5, 0.1)
        assert loss.item() == pytest.approx(0.1 * math.log1p(math.exp(2)))
        other = margin_loss(scores, present, torch.tensor([1]), 0.5, 0.1)
        assert other.item() == pytest.approx(0.1 * math.log1p(math.exp(8)))

    def test_past_the_target_hardly_anything_is_left(self):
        scores = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]).double()
        loss = margin_loss(scores, torch.ones(2, 1), torch.tensor([0, 1]), 0.3, 0.1)
        assert 0 < loss.item() < 1e-3

    def test_padding_has_no_effect(self):
        torch.manual_seed(0)
        scores = torch.rand(3, 4, 2).double().requires_grad_()
        present = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]).bool()
        labels = torch.tensor([0, 1, 1])
        loss = margin_loss(scores, present, labels, 0.3, 0.1)
        loss.backward()
        assert (scores.grad[~present] == 0).all() and (scores.grad[present] != 0).all()
        alone = [
            margin_loss(scores[[row], :size], present[[row], :size], labels[[row]], 0.3, 0.1)
            for row, size in enumerate((4, 2, 1))
        ]
        assert loss.item() == pytest.approx(sum(one.item() for one in alone) / 3)


def test_every_small_case_with_one_word_a_copy():
    """All votes of up to four words over two classes, in halves."""
    for words in range(1, 5):
        for halves in itertools.product(range(3), repeat=words):
            points = np.array([[half * 8, GRID - half * 8] for half in halves])
            left = certified_margins(*as_batch(points, 0, list(range(words + 1))))[0]
            [radius] = single_word_radii(differences(points, 0), np.array([words]), GRID)
            certified = -1 if radius.words is None else radius.words
            assert (left > 0).tolist() == [d <= certified for d in range(words + 1)]


@pytest.mark.parametrize("accuracy_weight", [0.0, 0.7])
def test_a_weight_is_a_number_of_texts(accuracy_weight):
    """A text of weight 2 counts as if it stood there twice."""
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.random((3, 4, 2)))
    present = torch.ones(3, 4, dtype=torch.bool)
    labels, met = torch.tensor([0, 1, 0]), torch.tensor([[0, 1, 2]] * 3)
    words = torch.ones(3).double()
    weights = torch.tensor([2.0, 1.0, 1.0]).double()
    twice = torch.tensor([0, 0, 1, 2])

    def certified(rows, weights=None):
        return certified_loss(
            *(scores[rows], present[rows], labels[rows], met[rows], words[rows]),
            *(0.5, accuracy_weight, weights),
        )

    def margin(rows, weights=None):
        return margin_loss(scores[rows], present[rows], labels[rows], 0.3, 0.1, weights)

    for loss in (certified, margin):
        assert 3 * loss(torch.arange(3), weights) == pytest.approx(float(4 * loss(twice)))

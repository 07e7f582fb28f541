"""Texts that are counted and certified together get what each gets alone, and what is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask import FunctionClassifier, SmoothedClassifier, WordTable
from ranmask.certificates import exact
from ranmask.certificates.exact import Radius, exact_radius, single_word_radii
from ranmask.certificates.families import all_sets, sampled_sets
from ranmask.certificates.votes import SCALE, count_votes, vote_differences
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.models.word_features import _forms, _gram_weight, _grams, features
from ranmask.words import document

WORDS = ["good", "bad", "film", "the", "GOOD", "naïve", "🙂", "--", "plot", "a"]


def plain_radius(differences, bound):
    """The certificate as its module tells it, in Python's integers, one text and no numpy."""
    if not differences:
        raise AssertionError("a text without rivals")
    if min(map(sum, differences)) <= 0:
        return Radius(None)
    answers = []
    for row in differences:
        order = sorted(range(len(row)), key=lambda place: (-row[place], place))
        left, words = sum(row), 0
        while (left := left - row[order[words]] - bound) > 0:
            words += 1
        answers.append((words, sum(row), sorted(order[: words + 1])))
    words, _, worst = min(answers, key=lambda answer: answer[:2])
    return Radius(words, True, tuple(worst))


def random_texts(rng, bound, rivals, texts):
    """Differences of texts of 1 to 9 words; few values, so many ties, and mostly for the label."""
    sizes = rng.integers(1, 10, size=texts)
    values = np.unique([-bound, -1, 0, 1, bound // 2, bound])
    rows = rng.choice(values, size=(rivals, int(sizes.sum())))
    return np.where(rng.random(rows.shape) < 0.6, bound, rows), sizes


class TestRadii:
    @pytest.mark.parametrize("bits", [63, 0], ids=["packed keys", "lexsort"])
    @pytest.mark.parametrize("bound", [1, 2, 7, 2**20])
    def test_against_python_and_the_search(self, bound, bits, monkeypatch):
        monkeypatch.setattr(exact, "_KEY_BITS", bits)
        rng = np.random.default_rng(bound)
        seen = set()
        for rivals in (1, 2, 3, 5):
            differences, sizes = random_texts(rng, bound, rivals, 60)
            answers = single_word_radii(differences, sizes, bound)
            parts = np.split(differences, np.cumsum(sizes)[:-1], axis=1)
            for answer, part in zip(answers, parts, strict=True):
                assert answer == plain_radius(part.tolist(), bound)
                sets = all_sets(part.shape[1], 1)
                assert answer == exact_radius(sets, part, part.shape[1], bound=bound, complete=True)
            seen |= {answer.words for answer in answers}
        assert {None, 0, 1, 2} <= seen

    def test_differences_too_large_for_one_key(self):
        """2**61 in one text, and one more bit for two texts: the keys have no room for places."""
        huge = 2**59
        differences = np.array([[huge, huge, huge - 1, -huge, 5, huge, huge, huge]])
        answers = single_word_radii(differences, np.array([3, 5]), huge)
        parts = [differences[:, :3], differences[:, 3:]]
        assert answers == [plain_radius(part.tolist(), huge) for part in parts]

    def test_a_single_class_has_nothing_to_lose(self):
        nothing = np.empty((0, 5), dtype=np.int64)
        assert single_word_radii(nothing, np.array([2, 3])) == [Radius(2), Radius(3)]

    def test_a_difference_below_the_bound_is_refused(self):
        with pytest.raises(ValueError, match="below -1"):
            single_word_radii(np.array([[1, 1, -2]]), np.array([2, 1]))


class TestVotes:
    @settings(max_examples=150)
    @given(st.data())
    def test_against_the_definition(self, data):
        classes = data.draw(st.integers(1, 6))
        sizes = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=5))
        total = sum(sizes)
        votes = np.array(data.draw(st.lists(st.integers(0, classes - 1), min_size=total,
                                            max_size=total)))  # fmt: skip
        uncertain = np.array(data.draw(st.lists(st.booleans(), min_size=total, max_size=total)))
        labels = np.array([data.draw(st.integers(0, classes - 1)) for _ in sizes])
        together = vote_differences(votes, uncertain, labels, classes, np.array(sizes))
        ends = np.cumsum(sizes)
        for start, end, label in zip(ends - sizes, ends, labels.tolist(), strict=True):
            some, doubt = votes[start:end], uncertain[start:end]
            expected = {
                tuple(int(v == label and not u) - int(v == rival or u)
                      for v, u in zip(some.tolist(), doubt.tolist(), strict=True))
                for rival in range(classes) if rival != label
            }  # fmt: skip
            assert set(map(tuple, together[:, start:end].tolist())) == expected
            alone = vote_differences(some, doubt, label, classes)
            assert set(map(tuple, alone.tolist())) == expected
            assert len(alone) <= max(len(set(some.tolist()) - {label}) + 1, 1)


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
@pytest.mark.parametrize("ensemble", ["vote", "score", "logit"])
def test_votes_say_of_each_text_what_its_own_say(ensemble, tolerance):
    rng = np.random.default_rng(3)
    sizes = np.array([1, 4, 2, 9, 1])
    scores = np.round(rng.random((int(sizes.sum()), 3)), 1)  # many ties
    votes = count_votes(scores, ensemble, "approvals", tolerance, sizes)
    for number, part in enumerate(np.split(scores, np.cumsum(sizes)[:-1])):
        alone = count_votes(part, ensemble, "approvals", tolerance)
        best = [row.index(max(row)) for row in part.tolist()]
        counts = [best.count(one) for one in range(3)]
        totals = counts if alone.points is None else list(map(sum, alone.points.T.tolist()))
        assert votes.counts[number].tolist() == alone.counts[0].tolist() == counts
        assert votes.totals[number].tolist() == alone.totals[0].tolist() == totals
        assert votes.winners[number] == alone.winners[0] == totals.index(max(totals))
        if alone.points is None:
            assert votes.means() is None and alone.means() is None
        else:
            means = [total / (SCALE * len(part)) for total in totals]
            assert votes.means()[number].tolist() == alone.means()[0].tolist() == means
        assert votes.uncertain_counts[number] == int(alone.uncertain.sum())
        assert votes.blurred[number] == alone.blurred[0]
        own = votes.part(number, number + 1)
        assert np.array_equal(own.best, part.argmax(axis=1))
        for label in range(3):
            labels = np.array([label])
            assert np.array_equal(own.differences(labels), alone.differences(labels))
    assert bool(votes.uncertain_counts.any()) == (tolerance > 0)


@pytest.mark.parametrize("most", [1, 3, 5, 16, 17, 100])
def test_parts_of_votes_hold_every_text_once(most, monkeypatch):
    monkeypatch.setattr("ranmask.certificates.votes._DIFFERENCES_AT_ONCE", most * 3)
    sizes = np.array([1, 4, 2, 9, 1])
    scores = np.random.default_rng(0).random((17, 3))
    votes = count_votes(scores, "score", "scores", 0.1, sizes)
    parts = list(votes.parts())
    assert np.concatenate([part.copies for part in parts]).tolist() == sizes.tolist()
    assert all(len(part.best) == part.copies.sum() for part in parts)
    assert all(part.copies[:-1].sum() < most for part in parts)
    for name in ("best", "uncertain", "points", "slack"):
        pieces = [getattr(part, name) for part in parts]
        assert np.array_equal(np.concatenate(pieces), getattr(votes, name))
    assert np.concatenate([part.winners for part in parts]).tolist() == votes.winners.tolist()


class Nearsighted(BaseClassifier):
    """Three classes, decided by a word's letters; reads seven words of a text."""

    def __init__(self, outputs, tolerance):
        self.outputs = outputs
        self._tolerance = tolerance

    @property
    def tolerance(self):
        return self._tolerance

    def words_read(self, document):
        return min(7, len(document.words))

    def configured(self, *, hide=None, mask_token=None):
        return self

    def score(self, copies):
        return [
            np.array([row(one.document.words[place], self.outputs) for place in one.kept[:, 0]])
            for one in copies
        ]


def row(word, outputs):
    digest = sum(map(ord, word))
    values = [digest % 5 / 4, digest % 4 / 4, digest % 3 / 4]  # many ties
    return values if outputs == "scores" else [4 * value - 2 for value in values]


def plain_certificate(smoothed, text):
    """(label id, votes, radius, worst words) of one text, counted in Python."""
    one = document(text)
    read = smoothed.base.words_read(one)
    [scores] = smoothed.base.score([MaskedCopies(one, read, all_sets(read, 1))])
    options, tolerance = smoothed.options, smoothed.tolerance
    votes = [list(line).index(max(line)) for line in scores.tolist()]
    counts = tuple(votes.count(label) for label in range(3))
    counted = count_votes(scores, options.ensemble, smoothed.base.outputs, tolerance)
    if counted.points is None:
        best = counts.index(max(counts))
        near = [bool(tolerance) and sorted(line)[-1] - sorted(line)[-2] <= tolerance
                for line in scores.tolist()]  # fmt: skip
        rows = [
            [int(vote == best and not doubt) - int(vote == rival or doubt)
             for vote, doubt in zip(votes, near, strict=True)]
            for rival in range(3) if rival != best
        ]  # fmt: skip
        return best, counts, plain_radius(rows, 1), sum(near)
    points, slack = counted.points.tolist(), counted.slack.tolist()
    totals = [sum(column) for column in zip(*points, strict=True)]
    best = totals.index(max(totals))
    rows = [
        [max(line[best] - line[rival] - moved, -counted.bound)
         for line, moved in zip(points, slack, strict=True)]
        for rival in range(3) if rival != best
    ]  # fmt: skip
    return best, counts, plain_radius(rows, counted.bound), int(counted.uncertain.sum())


texts = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join), min_size=1, max_size=8
)


class TestSmoothed:
    @settings(max_examples=60, deadline=None)
    @given(
        texts=texts,
        ensemble=st.sampled_from(["vote", "score", "logit"]),
        outputs=st.sampled_from(["scores", "logits", "approvals"]),
        tolerance=st.sampled_from([0.0, 0.26]),
    )
    def test_together_alone_and_in_python(self, texts, ensemble, outputs, tolerance):
        smoothed = SmoothedClassifier(Nearsighted(outputs, tolerance), keep=1, ensemble=ensemble)
        together = smoothed.certify(texts)
        assert together == [smoothed.certify([text])[0] for text in texts]
        assert smoothed.predict(texts) == [smoothed.predict([text])[0] for text in texts]
        for text, result in zip(texts, together, strict=True):
            label, votes, radius, uncertain = plain_certificate(smoothed, text)
            assert (result.label_id, result.votes, result.uncertain) == (label, votes, uncertain)
            assert (result.radius, result.critical_words) == (radius.words, radius.worst)
            assert (result.words, result.words_read) == (len(text.split()), result.masks)

    @settings(max_examples=30, deadline=None)
    @given(texts=texts, threat=st.sampled_from(["substitutions", "edits"]))
    def test_a_word_table(self, texts, threat):
        rng = np.random.default_rng(0)
        entries = rng.integers(-127, 128, size=(97, 3)).astype(np.int8)
        table = WordTable(entries, np.zeros(3, np.int64), labels=["x", "y", "z"], shift=8)
        smoothed = SmoothedClassifier(table, **table.smoothing, threat=threat)
        together = smoothed.certify(texts)
        assert together == [smoothed.certify([text])[0] for text in texts]
        for text, result in zip(texts, together, strict=True):
            label, votes, radius, _ = plain_certificate(smoothed, text)
            assert (result.label_id, result.votes, result.threat) == (label, votes, threat)
            assert (result.radius, result.critical_words) == (radius.words, radius.worst)

    @pytest.mark.parametrize("at_once", [1, 10, 60])
    def test_texts_that_do_not_fit_together(self, at_once, monkeypatch):
        smoothed = SmoothedClassifier(Nearsighted("scores", 0.1), keep=1, ensemble="score")
        several = [" ".join(WORDS[start : start + size]) for start in range(9) for size in (1, 5)]
        together = smoothed.certify(several)
        monkeypatch.setattr("ranmask.certificates.votes._DIFFERENCES_AT_ONCE", at_once)
        monkeypatch.setattr("ranmask.smoothing.voting.COPIES_AT_ONCE", 20)
        assert smoothed.certify(several) == together
        assert len({one.radius for one in together}) > 1

    @pytest.mark.parametrize("keep", [2, 3])
    def test_texts_too_short_to_hide_a_word_stand_among_others(self, keep):
        """Families of several widths and kinds in one group."""
        smoothed = SmoothedClassifier(
            FunctionClassifier(lambda texts: [row(text, "scores") for text in texts]), keep=keep
        )
        several = ["good", "bad film", "a good film the plot a", "good good", "the"]
        together = smoothed.certify(several)
        assert together == [smoothed.certify([text])[0] for text in several]
        assert [one.kept for one in together] == [1, 2, keep, 2, 1]

    def test_pairs_and_single_texts_differ_in_what_they_assume(self):
        smoothed = SmoothedClassifier(
            FunctionClassifier(lambda texts: [[len(text[0]), 1.0] for text in texts]), keep=1
        )
        single_text, pair = smoothed.certify(["a b", ("premise", "a b")])
        assert set(pair.assumes) - set(single_text.assumes) == {"the premise does not change"}


class TestWordTable:
    @pytest.mark.parametrize("widths", [(1, 1, 1), (2, 2, 2), (1, 2, 3)])
    def test_copies_of_many_texts(self, widths):
        rng = np.random.default_rng(0)
        entries = rng.integers(-127, 128, size=(97, 3)).astype(np.int8)
        table = WordTable(entries, np.zeros(3, np.int64), labels=["x", "y", "z"], shift=4)
        several = ["good bad film", "the plot a naïve 🙂", "-- GOOD film film"]
        copies = [
            MaskedCopies(document(text), len(text.split()), sampled_sets(3, width, 5, 1))
            for text, width in zip(several, widths, strict=True)
        ]
        for together, one in zip(table.score(copies), copies, strict=True):
            [alone] = table.score([one])
            by_word = np.array([table.word_scores(word) for word in one.document.words])
            expected = np.rint(by_word[one.kept].mean(axis=1) * SCALE) / SCALE
            assert np.array_equal(together, alone)
            assert np.abs(alone - expected).max() <= 1 / SCALE

    @settings(max_examples=100)
    @given(st.lists(st.text(min_size=1, max_size=90).filter(lambda word: word == word.strip()
                    and len(word.split()) == 1), min_size=1, max_size=6))  # fmt: skip
    def test_features_of_many_words_are_those_of_each(self, words):
        hashes, weights, starts = features(words)
        ends = [*starts[1:].tolist(), len(hashes)]
        for word, start, end in zip(words, starts.tolist(), ends, strict=True):
            whole, shown = _forms(word)
            grams = _grams(shown)  # by zlib, one after another
            assert hashes[start:end].tolist() == [*whole, *grams]
            weight = _gram_weight(len(grams))
            assert weights[start:end].tolist() == [256] * 3 + [weight] * len(grams)

"""Each distinct word counted once: every substitution and edit of short texts, by brute force.

Wherever the proof asks for new words, there are enough hostile ones in the vocabulary.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask import FunctionClassifier, OptionError, SmoothedClassifier, WordTable
from ranmask.attacks.victims import Question, SmoothedVictim
from ranmask.certificates import distinct
from ranmask.certificates.distinct import DistinctWords, most_removed
from ranmask.certificates.exact import gathered
from ranmask.certificates.margins import exact_margins
from ranmask.models.word_features import features
from ranmask.models.word_table import ONE
from ranmask.smoothing.store import blend_folders
from ranmask.words import document

STEPS = 8  # scores are eighths: ties are common
BUCKETS = 65_521
OWN = ("g1", "g2", "g3", "g4", "so", "bad")
LIKELY = (0.25, 0.25, 0.15, 0.15, 0.1, 0.1)
HOSTILE = ("h1", "h2", "h3", "h4")


def table_of(scores, blank=None):
    """A table that gives each word these scores, in eighths, and all others one half."""
    classes = len(next(iter(scores.values())))
    entries = np.zeros((BUCKETS, classes), dtype=np.int16)
    for word, row in scores.items():
        entries[features([word])[0][2] % BUCKETS] = [value - STEPS // 2 for value in row]
    if blank is not None:
        blank = (np.array(blank) - STEPS // 2).astype(np.int64) << 8
    table = WordTable(
        entries,
        np.zeros(classes, dtype=np.int64),
        labels=[f"class {number}" for number in range(classes)],
        shift=8,
        curve=(np.arange(STEPS + 1) * (ONE // STEPS)).astype(np.int32),
        blank=blank,
    )
    for word, row in scores.items():
        assert table.word_scores(word) == tuple(value / STEPS for value in row)
    return table


def random_table(seed, classes, blank):
    """Words that mostly speak for class 0, and as hostile ones as can be, against each rival."""
    rng = np.random.default_rng(seed)
    scores = {word: rng.integers(0, STEPS + 1, classes).tolist() for word in OWN}
    for word in ("g1", "g2", "g3", "g4"):
        scores[word] = [STEPS, *rng.integers(0, 3, classes - 1).tolist()]
    for number, word in enumerate(HOSTILE):
        scores[word] = [0] * classes
        scores[word][1 + number % (classes - 1)] = STEPS
    return table_of(scores, rng.integers(0, STEPS + 1, classes).tolist() if blank else None)


def once(table, **options):
    return SmoothedClassifier(table, **{**table.smoothing, "family": "distinct", **options})


def within(words, changes, vocabulary, edits):
    """Every text that so many changes make of another, as its sorted words."""
    reached = {tuple(sorted(words))}
    for _ in range(changes):
        found = set(reached)
        for one in reached:
            shorter = {one[:i] + one[i + 1 :] for i in range(len(one))}
            found |= {tuple(sorted((*left, new))) for left in shorter for new in vocabulary}
            if edits:
                found |= shorter | {tuple(sorted((*one, new))) for new in vocabulary}
        reached = found - {()}
    return reached


class Answers:
    """Labels of texts as sets of words, with whether the winner is the only one."""

    def __init__(self, smoothed):
        self.smoothed = smoothed
        self.known = {}

    def of(self, texts):
        new = [text for text in texts if text not in self.known]
        scored = self.smoothed.scored([" ".join(text) for text in new])
        totals = [row for batch in scored for row in batch.votes.totals.tolist()]
        for text, row in zip(new, totals, strict=True):
            self.known[text] = (row.index(max(row)), row.count(max(row)) == 1)
        return [self.known[text] for text in texts]


@pytest.mark.parametrize("blank", [False, True])
@pytest.mark.parametrize(("seed", "classes"), [(0, 2), (1, 2), (2, 2), (3, 3), (4, 3)])
def test_no_change_within_the_radius_and_one_beyond_it(seed, classes, blank):
    smoothed = once(random_table(seed, classes, blank))
    answers = Answers(smoothed)
    vocabulary = ("g1", "so", *HOSTILE)
    rng = np.random.default_rng(seed)
    radii = set()
    for _ in range(30):
        words = tuple(rng.choice(OWN, size=rng.integers(1, 10), p=LIKELY).tolist())
        [certificate] = smoothed.certify([" ".join(words)])
        [(label, only)] = answers.of([tuple(sorted(words))])
        assert certificate.label_id == label
        assert (certificate.radius is not None) == only
        if certificate.radius is None:
            continue
        assert certificate.tight
        assert len(certificate.critical_words) == certificate.radius + 1
        radius = min(certificate.radius, 2)
        radii.add(radius)
        for edits in (False, True):
            reached = within(words, radius, vocabulary, edits)
            assert set(answers.of(sorted(reached))) == {(label, True)}
        if radius < certificate.radius or label != 0:
            continue  # hostile words are hostile to class 0
        beyond = within(words, radius + 1, vocabulary, edits=False)
        assert any(found != (label, True) for found in answers.of(sorted(beyond)))
    assert {0, 1} <= radii


@pytest.mark.parametrize("seed", range(20))
def test_the_critical_words_break_it(seed):
    """All occurrences of a word are named where the label hangs on it, and replacing them works."""
    classes = 2 + seed % 2
    smoothed = once(random_table(seed, classes, seed % 4 == 0))
    rng = np.random.default_rng(seed)
    broken = 0
    for _ in range(20):
        words = rng.choice(OWN, size=rng.integers(2, 9), p=LIKELY).tolist()
        [certificate] = smoothed.certify([" ".join(words)])
        if certificate.radius is None or certificate.radius >= 2 or certificate.label_id != 0:
            continue  # there are two words that are hostile to class 0, for each rival
        changed = [list(words) for _ in range(1, classes)]
        for number, place in enumerate(certificate.critical_words):
            for rival, one in enumerate(changed):
                one[place] = HOSTILE[number * (classes - 1) + rival]
        [scored] = smoothed.scored([" ".join(one) for one in changed])
        totals = scored.votes.totals.tolist()
        assert any(own <= max(others) for own, *others in totals)
        broken += 1
    assert broken


def brute_radius(differences, places, bound):
    """The definition: the first number of edits whose dearest set of words reaches a margin."""
    count = differences.shape[1]
    sizes = np.bincount(places, minlength=count)
    margins = differences.sum(axis=1)
    if margins.min() <= 0:
        return None
    words = [word for word in range(count) if sizes[word]]
    sets = [
        list(one) for size in range(len(words) + 1) for one in itertools.combinations(words, size)
    ]
    edits = 0
    while True:
        edits += 1
        for row, margin in zip(differences, margins, strict=True):
            gone = max(int(row[one].sum()) for one in sets if sizes[one].sum() <= edits)
            if gone + edits * bound >= margin:
                return edits - 1


@st.composite
def some_texts(draw):
    bound = draw(st.sampled_from([1, 3, 2**20]))
    rivals = draw(st.integers(1, 3))
    texts = []
    for _ in range(draw(st.integers(1, 4))):
        distinct_words = draw(st.integers(1, 6))
        more = draw(st.lists(st.integers(0, distinct_words - 1), max_size=7))
        places = draw(st.permutations([*range(distinct_words), *more]))
        blank = draw(st.booleans())
        values = st.integers(-bound, bound) | st.integers(0, bound)
        size = rivals * (distinct_words + blank)
        row = draw(st.lists(values, min_size=size, max_size=size))
        texts.append((np.array(row).reshape(rivals, -1), np.array(places)))
    return bound, texts


def radii_of(bound, texts):
    words = DistinctWords(
        np.concatenate([differences for differences, _ in texts], axis=1),
        np.array([differences.shape[1] for differences, _ in texts]),
        np.concatenate([places for _, places in texts]),
        np.array([len(places) for _, places in texts]),
        bound,
        reserve=0,
    )
    radii, tight = words.proved(bound)
    return gathered(radii, words.margins, words.positions, tight)


@settings(max_examples=200, deadline=None)
@given(some_texts(), st.sampled_from([4, 1 << 22]))
def test_the_knapsack_is_exact(case, at_once):
    bound, texts = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "_CELLS_AT_ONCE", at_once)  # many groups, or one
        radii = radii_of(bound, texts)
    for (differences, places), radius in zip(texts, radii, strict=True):
        assert radius.words == brute_radius(differences, places, bound)
        assert radius.tight
        if radius.words is None:
            continue
        # The named positions are a real worst choice.
        assert len(set(radius.worst)) == radius.words + 1 <= len(places)
        left = set(np.delete(places, radius.worst).tolist())
        gone = [word for word in set(places.tolist()) if word not in left]
        cost = differences[:, gone].sum(axis=1) + (radius.words + 1) * bound
        assert (cost >= differences.sum(axis=1)).any()


@settings(max_examples=200, deadline=None)
@given(some_texts())
def test_a_knapsack_that_is_too_large_is_bounded(case):
    bound, texts = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "_MOST_CELLS", 0)
        radii = radii_of(bound, texts)
    for (differences, places), radius in zip(texts, radii, strict=True):
        exact = brute_radius(differences, places, bound)
        assert (radius.words is None) == (exact is None)
        if exact is not None:
            assert radius.words <= exact
            assert radius.words == exact or not radius.tight


def test_a_bound_that_is_not_tight_says_so(monkeypatch):
    # Half a word cannot be taken out: 3 edits cost 6 + 18 of 26, and by shares 9 + 18.
    differences, sizes = np.array([6, 6, 6, 6, 2]), np.full(5, 2)
    texts = [(differences[None], np.repeat(np.arange(5), sizes))]
    [exact] = radii_of(6, texts)
    assert (exact.words, exact.tight) == (3, True)
    removed, sure = most_removed(differences, sizes, 4)
    assert (removed.tolist(), sure) == ([0, 0, 6, 6, 12], True)
    monkeypatch.setattr(distinct, "_MOST_CELLS", 0)
    [bounded] = radii_of(6, texts)
    assert (bounded.words, bounded.tight) == (2, False)
    removed, sure = most_removed(differences, sizes, 4)
    assert (removed.tolist(), sure) == ([0, 3, 6, 9, 12], False)


class TestWhatCounts:
    TABLE = table_of({"good": [8, 0], "bad": [0, 8], "so": [4, 4]}, blank=[4, 8])

    def test_a_repeated_word_counts_once(self):
        plain = SmoothedClassifier(self.TABLE, **self.TABLE.smoothing)
        text = "good good good bad bad so"
        [often], [result] = plain.certify([text]), once(self.TABLE).certify([text])
        assert (often.votes, often.masks) == ((3, 2), 6)  # "so" says the same of both
        # good, bad, so and the blank
        assert (result.votes, result.masks, result.family) == ((1, 2), 4, "distinct")
        assert result.scores == pytest.approx((4 / 8, 5 / 8))
        assert (often.label, result.label) == ("class 0", "class 1")

    def test_all_occurrences_must_go(self):
        smoothed = once(self.TABLE, threat="edits")
        [result] = smoothed.certify(["good good good good so"])
        # A lead of 1, less 1/2 of the blank; a new word alone costs 1.
        assert (result.radius, result.threat) == (0, "edits")
        table = table_of({f"g{number}": [8, 0] for number in range(4)})
        text = "g0 g0 g0 g1 g1 g1 g2 g2 g2 g3"
        [often] = SmoothedClassifier(table, **table.smoothing).certify([text])
        [result] = once(table).certify([text])
        # d edits cost 2 d where every word counts; here the third takes out g3 and two new words.
        assert (often.radius, result.radius) == (4, 2)
        assert result.critical_words == (0, 1, 9)

    def test_order_is_free(self):
        words = ["good", "good", "so", "bad", "good", "so"]
        smoothed = once(self.TABLE)
        found = {
            (one.label, one.radius, one.votes, one.scores)
            for one in smoothed.certify([" ".join(one) for one in itertools.permutations(words)])
        }
        assert len(found) == 1

    def test_other_spellings_are_other_words(self):
        [result] = once(self.TABLE).certify(["good Good good."])
        assert result.masks == 3 + 1

    def test_the_blank_shows_no_word(self):
        [shown] = once(self.TABLE).certify_showing(["good so good"], copies=9)
        assert [list(copy["kept"]) for copy in shown.to_dict()["copies"]] == [[0], [1], []]

    def test_one_text_or_many(self):
        rng = np.random.default_rng(5)
        texts = [
            " ".join(rng.choice(["good", "bad", "so", "x", "y"], size=n)) for n in range(1, 40)
        ]
        smoothed = once(self.TABLE)
        assert smoothed.certify(texts) == [smoothed.certify([text])[0] for text in texts]

    def test_curve_is_above_zero_up_to_the_radius(self):
        table = table_of({f"g{number}": [8 - number, 0] for number in range(5)}, blank=[6, 4])
        rng = np.random.default_rng(3)
        for threat in ("substitutions", "edits"):
            smoothed = once(table, threat=threat)
            for size in range(1, 12):
                text = " ".join(rng.choice([f"g{number}" for number in range(5)], size=size))
                [result] = smoothed.certify([text])
                [scored] = smoothed.scored([text])
                family = scored.texts[0].family
                curve = exact_margins(scored.votes, family, result.radius, threat)
                above = [margin > 0 for margin in curve.margins]
                assert above == [d <= result.radius for d in range(len(above))]
                assert all(curve.known[: result.radius + 2])

    def test_an_attack_sees_the_classifier_itself(self):
        smoothed = once(self.TABLE)
        victim = SmoothedVictim(smoothed)
        near = "good good so bad x"
        texts = ["good bad so bad x", "y good so bad x", "bad good so bad x", near]
        answers = victim.answer([Question(0, document(text), document(near)) for text in texts])
        assert answers.labels.tolist() == [one.label_id for one in smoothed.predict(texts)]
        means = np.array([one.scores for one in smoothed.predict(texts)])
        shares = means / means.sum(axis=1, keepdims=True)
        assert np.abs(answers.shares - shares).max() < 1e-4


class TestWhatIsRefused:
    TABLE = TestWhatCounts.TABLE

    def test_a_classifier_that_reads_positions(self):
        def function(texts):
            return [[1.0, 0.0] for _ in texts]

        with pytest.raises(OptionError, match="family='distinct' needs a base classifier"):
            SmoothedClassifier(function, keep=1, family="distinct")
        dropping = FunctionClassifier(function, hide="drop")
        [result] = SmoothedClassifier(dropping, keep=1, family="distinct").certify(["a a b"])
        assert result.masks == 2

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            ({"keep": 2}, "keep=1"),
            ({"keep": None, "mask_rate": 0.5}, "keep=1"),
            ({"certificate": "ablation", "ensemble": "vote"}, "certificate="),
            ({"sampling": "fresh"}, "sampling="),
        ],
    )
    def test_options_that_do_not_go_together(self, options, named):
        with pytest.raises(OptionError, match=named):
            once(self.TABLE, **options)

    def test_comparison_with_samples(self):
        """Other certificates count a repeated word each time: each is what choosing it gives."""
        smoothed = once(self.TABLE, ensemble="vote")
        [kinds] = smoothed.compare(["good good bad"])
        assert kinds["exact"] == smoothed.certify(["good good bad"])[0]
        assert (kinds["exact"].family, kinds["ablation"].family) == ("distinct", "sampled")

    def test_more_words_than_may_be_read(self):
        with pytest.raises(OptionError, match="masks=3"):
            once(self.TABLE, masks=3).certify(["a a a a"])


def test_saved_and_loaded(tmp_path):
    smoothed = once(TestWhatCounts.TABLE)
    smoothed.save_pretrained(str(tmp_path / "table"))
    again = SmoothedClassifier.from_pretrained(str(tmp_path / "table"))
    texts = ["good good so bad", "bad", "x y x"]
    assert again.certify(texts) == smoothed.certify(texts)
    assert again.base.digest == smoothed.base.digest
    bare = table_of({"good": [8, 0], "bad": [0, 8], "so": [4, 4]})
    assert bare.digest != smoothed.base.digest
    # A blend counts once too, if all its parts can.
    parts = [str(tmp_path / "table")] * 2
    blended = blend_folders(parts, tmp_path / "blend")
    assert blended.options.family == "distinct"
    assert [one.label for one in blended.certify(texts)] == [
        one.label for one in smoothed.certify(texts)
    ]

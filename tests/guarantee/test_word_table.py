"""Word tables under attack: every substitution and every edit of short texts, hostile words too."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ranmask import FunctionClassifier, OptionError, SmoothedClassifier, WordTable
from ranmask.errors import ClassifierError
from ranmask.models.base import BaseClassifier
from ranmask.models.word_features import features
from ranmask.models.word_table import ONE

STEPS = 8  # scores are eighths: ties are common
BUCKETS = 65_521
LONGEST = 5


def table_of(scores):
    """A table that gives each word these scores, in eighths, and all others one half.

    Only the raw form of each word has an entry; that no other feature falls on it is checked.
    """
    classes = len(next(iter(scores.values())))
    entries = np.zeros((BUCKETS, classes), dtype=np.int16)
    for word, row in scores.items():
        entries[features([word])[0][2] % BUCKETS] = [value - STEPS // 2 for value in row]
    curve = (np.arange(STEPS + 1) * (ONE // STEPS)).astype(np.int32)
    labels = [f"class {number}" for number in range(classes)]
    table = WordTable(
        entries, np.zeros(classes, dtype=np.int64), labels=labels, shift=8, curve=curve
    )
    for word, row in scores.items():
        assert table.word_scores(word) == tuple(value / STEPS for value in row)
    return table


def random_scores(seed, classes):
    """Two words at random, one for class 0, and one that is as hostile to it as can be."""
    rng = np.random.default_rng(seed)
    hostile = [0] * classes
    hostile[int(rng.integers(1, classes))] = STEPS
    friendly = [STEPS] + [int(rng.integers(0, 4)) for _ in range(classes - 1)]
    some = rng.integers(0, STEPS + 1, size=(1, classes)).tolist()
    return dict(zip(("good", "bad", "some"), [friendly, hostile, *some], strict=True))


def texts_up_to(words, longest):
    for length in range(1, longest + 1):
        yield from itertools.product(words, repeat=length)


def after_one_edit(words, vocabulary):
    """Every text that one edit makes of another, as its sorted words: order is free."""
    shorter = {words[:i] + words[i + 1 :] for i in range(len(words))}
    replaced = {tuple(sorted((*left, new))) for left in shorter for new in vocabulary}
    inserted = {tuple(sorted((*words, new))) for new in vocabulary}
    return shorter | replaced | inserted


def edit_sets(words, edits, vocabulary):
    """All texts within ``edits`` edits, as their sorted words."""
    reached = {tuple(sorted(words))}
    for _ in range(edits):
        reached |= set().union(*(after_one_edit(one, vocabulary) for one in reached))
    return reached


class Enumeration:
    """Labels of every text over a vocabulary, and certificates of the shorter ones."""

    def __init__(self, smoothed, vocabulary):
        self.vocabulary = sorted(vocabulary)
        grown = LONGEST + (LONGEST - 1) // 2  # no radius is larger, by the proof
        self.texts = list(texts_up_to(self.vocabulary, grown))
        predictions = smoothed.predict([" ".join(words) for words in self.texts])
        self.label = {
            words: one.label_id for words, one in zip(self.texts, predictions, strict=True)
        }
        # All orders of the same words: more than one label in a set would break the promise.
        self.labels = {}
        for words, label in self.label.items():
            self.labels.setdefault(tuple(sorted(words)), set()).add(label)
        short = list(texts_up_to(self.vocabulary, LONGEST))
        results = smoothed.certify([" ".join(words) for words in short])
        self.certified = [
            (words, result)
            for words, result in zip(short, results, strict=True)
            if result.radius is not None
        ]

    def broken_by_edits(self, beyond=0):
        """Certificates that some text within radius + ``beyond`` edits contradicts."""
        broken = 0
        for words, result in self.certified:
            assert result.guarantee and result.threat == "edits"
            near = edit_sets(words, result.radius + beyond, self.vocabulary)
            if not beyond:
                assert near <= self.labels.keys()  # no text is edited away, and none is left out
            broken += any(
                self.labels[one] != {result.label_id} for one in near if one in self.labels
            )
        return broken

    def broken_by_substitutions(self, beyond=0):
        broken = 0
        for words, result in self.certified:
            assert result.guarantee
            broken += any(
                self.label[other] != result.label_id
                for other in itertools.product(self.vocabulary, repeat=len(words))
                if sum(a != b for a, b in zip(words, other, strict=True)) <= result.radius + beyond
            )
        return broken


@pytest.mark.parametrize("ensemble", ["score", "vote", "logit"])
@pytest.mark.parametrize("seed", range(4))
def test_no_edit_within_the_radius_changes_the_label(seed, ensemble):
    scores = random_scores(seed, classes=2 + seed % 2)
    table = table_of(scores)
    options = {**table.smoothing, "ensemble": ensemble, "threat": "edits"}
    found = Enumeration(SmoothedClassifier(table, **options), scores)
    assert max(result.radius for _, result in found.certified) >= 1
    assert found.broken_by_edits() == 0
    # The same check fails beyond the radius: it can tell truth from falsehood.
    assert found.broken_by_edits(beyond=1) > 0


@pytest.mark.parametrize("keep", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4, 7))
def test_no_substitution_within_the_radius_changes_the_label(seed, keep):
    scores = random_scores(seed, classes=2 + seed % 2)
    table = table_of(scores)
    options = {**table.smoothing, "keep": keep}
    found = Enumeration(SmoothedClassifier(table, **options), scores)
    assert found.broken_by_substitutions() == 0
    assert found.broken_by_substitutions(beyond=1) > 0


@pytest.mark.parametrize("family", ["sampled", "windows"])
def test_a_sample_of_single_words_is_not_certified_as_if_it_were_all_of_them(family):
    """A word that is drawn twice counts twice."""
    scores = random_scores(4, classes=2)
    table = table_of(scores)
    options = {"keep": 1, "ensemble": "score", "family": family, "masks": 4}
    found = Enumeration(SmoothedClassifier(table, **options), scores)
    assert found.broken_by_substitutions() == 0
    assert found.broken_by_substitutions(beyond=1) > 0


def last_letter(texts):
    """Three classes by the last letter shown: a function that sees whatever it is shown."""
    return [[float(text.endswith(letter)) for letter in "abc"] for text in texts]


def length_of_text(texts):
    """Two classes by the length of what is shown: with masks it would see the number of words."""
    return [[len(text) % 2, (len(text) + 1) % 2] for text in texts]


@pytest.mark.parametrize("function", [last_letter, length_of_text])
def test_edits_hold_for_functions_that_are_shown_a_word_and_nothing_else(function):
    base = FunctionClassifier(function, hide="drop")
    found = Enumeration(SmoothedClassifier(base, keep=1, threat="edits"), ("a", "bb", "c"))
    assert found.broken_by_edits() == 0
    assert found.broken_by_edits(beyond=1) > 0


def test_edits_would_not_hold_for_functions_that_see_the_masks():
    """Why ``order_free`` is asked for: claimed falsely, the enumeration finds broken claims."""

    class Lies(FunctionClassifier):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.order_free = True

    def by_number_of_words(texts):
        return [[1.0, 0.0] if len(text.split()) % 2 else [0.0, 1.0] for text in texts]

    with pytest.raises(OptionError, match="blind to the order"):
        SmoothedClassifier(by_number_of_words, keep=1, threat="edits")
    base = Lies(by_number_of_words, hide="mask")
    found = Enumeration(SmoothedClassifier(base, keep=1, threat="edits"), ("a", "b"))
    assert found.broken_by_edits() > 0


@pytest.mark.parametrize("threat", ["substitutions", "edits"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_radius_is_attained(classes, threat):
    """A word that gives the rival 1 and the label 0 breaks the label at radius + 1."""
    rng = np.random.default_rng(classes)
    hostile = {
        f"for{rival}": [STEPS * (number == rival) for number in range(classes)]
        for rival in range(classes)
    }
    plain = {f"w{i}": rng.integers(0, STEPS + 1, classes).tolist() for i in range(8)}
    table = table_of(plain | hostile)
    smoothed = SmoothedClassifier(table, **table.smoothing, threat=threat)
    attacked = 0
    for _ in range(300):
        words = rng.choice([*plain, *hostile], size=int(rng.integers(1, 12))).tolist()
        [result] = smoothed.certify([" ".join(words)])
        if result.radius is None:
            continue
        assert result.tight and len(result.critical_words) == result.radius + 1
        margins = []
        for rival in set(range(classes)) - {result.label_id}:
            changed = list(words)
            for position in result.critical_words:
                changed[position] = f"for{rival}"
            [after] = smoothed.predict([" ".join(changed)])
            margins.append(after.scores[result.label_id] - after.scores[rival])
        assert min(margins) <= 0
        attacked += 1
    assert attacked > 100


class TestLongerTexts:
    def test_are_refused_where_they_cannot_be_certified_not_sampled(self):
        """``masks`` words at most: beyond that a sample would vote, of which nothing is proved."""
        table = table_of(random_scores(0, 2))
        smoothed = SmoothedClassifier(table, keep=1, masks=6, ensemble="score", threat="edits")
        [result] = smoothed.certify(["good " * 6])
        assert result.radius == 2 and result.family == "all"
        assert "a text that grows beyond 6 words is refused, not classified" in result.assumes
        with pytest.raises(OptionError, match="family='all' needs 7 kept sets"):
            smoothed.predict(["good " * 7])
        with pytest.raises(OptionError, match="needs family='all', not 'auto'"):
            SmoothedClassifier(table, keep=1, masks=6, family="auto", threat="edits")

    def test_a_classifier_that_cuts_texts_off_is_refused(self):
        """An insertion could push words out of sight."""

        class ReadsThree(BaseClassifier):
            order_free = True

            def words_read(self, document):
                return min(3, len(document.words))

            def score(self, copies):
                return [np.ones((len(one), 2)) * [1.0, 0.0] for one in copies]

            def configured(self, **options):
                return self

        smoothed = SmoothedClassifier(ReadsThree(), keep=1, threat="edits")
        assert smoothed.certify(["a b c"])[0].radius == 1
        with pytest.raises(ClassifierError, match="reads 3 of 4"):
            smoothed.certify(["a b c d"])


class TestWhatResultsSay:
    def test_of_edits(self):
        table = table_of(random_scores(0, 2))
        [result] = SmoothedClassifier(table, **table.smoothing, threat="edits").certify(["good"])
        assert result.assumes == (
            "each edit replaces, inserts or deletes one word; reordering the words is free",
            "a text that grows beyond 1000000 words is refused, not classified",
            "the base classifier always says the same of the same visible words",
        )

    def test_of_substitutions(self):
        table = table_of(random_scores(0, 2))
        [result] = SmoothedClassifier(table, **table.smoothing).certify(["good"])
        assert result.threat == "substitutions"
        assert result.assumes[0].startswith("words are replaced one for one")

    def test_compare_knows_substitutions_only(self):
        table = table_of(random_scores(0, 2))
        smoothed = SmoothedClassifier(table, keep=1, threat="edits")
        with pytest.raises(OptionError, match="threat='substitutions'"):
            smoothed.compare(["good bad"])


def test_threads_may_share_a_table():
    """A race in what the table has looked up would give one word the scores of another."""
    draw = np.random.default_rng(0)
    entries = draw.integers(-127, 128, (4096, 2)).astype(np.int8)
    texts = [" ".join(f"w{number}" for number in draw.integers(0, 20_000, 40)) for _ in range(600)]

    def smoothed():
        table = WordTable(entries, np.zeros(2, dtype=np.int64), labels=("a", "b"), shift=6)
        return SmoothedClassifier(table, **table.smoothing)

    alone = smoothed().certify(texts)
    shared = smoothed()
    with ThreadPoolExecutor(8) as threads:
        together = [one for [one] in threads.map(lambda text: shared.certify([text]), texts)]
    assert together == alone
    assert shared.certify(texts) == alone

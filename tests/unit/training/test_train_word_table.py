"""Training word tables: made-up data is learned, and the same data gives the same bytes."""

import random
import re

import numpy as np
import pytest

from ranmask import SmoothedClassifier
from ranmask.errors import DataError, OptionError, TextError
from ranmask.metrics import CertifiedSummary
from ranmask.models.word_features import features
from ranmask.training import table_learning
from ranmask.training import word_table as training
from ranmask.training.table_loss import (
    ahead,
    certified_loss,
    costs_of,
    margins,
    sigmoid,
    whole_text,
)
from ranmask.training.table_options import WordTableOptions
from ranmask.training.word_table import train_word_table

NAMES = ("river", "mountain", "desert")
SMALL = {"epochs": 6, "warm_epochs": 2, "batch_size": 32, "buckets": 4096, "target_words": 3}


def made_up(rows, classes=3, seed=0, length=12, telling=0.5):
    """Texts in which some words tell the class and the others do not."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    texts = []
    for label in labels:
        words = [
            f"{NAMES[label]}{rng.integers(0, 30)}"
            if rng.random() < telling
            else f"word{rng.integers(0, 200)}"
            for _ in range(int(rng.integers(length // 2, length + 1)))
        ]
        texts.append(" ".join(words))
    return texts, labels.tolist()


def skewed(rows, seed=0):
    """Texts of two classes, one of which is rare."""
    texts, labels = made_up(rows, 2, seed, telling=0.15)
    rare = [place for place, label in enumerate(labels) if label == 1]
    left_out = set(rare[: 10 * len(rare) // 11])
    kept = [place for place in range(rows) if place not in left_out]
    return [texts[place] for place in kept], [labels[place] for place in kept]


def trained(rows=400, classes=3, seed=0, **options):
    texts, labels = made_up(rows, classes)
    chosen = WordTableOptions(**{**SMALL, "seed": seed, **options})
    return train_word_table(texts, labels, NAMES[:classes], options=chosen)


def measured(table, texts, labels):
    summary = CertifiedSummary()
    results = SmoothedClassifier(table, **table.smoothing).certify(texts)
    for one, label in zip(results, labels, strict=True):
        summary.add(
            correct=one.label_id == label, radius=one.radius, words=one.words, expected=label
        )
    return summary


def left_of(table, text, label, most):
    """What is left of the leads of one text after 0 to ``most`` changed words."""
    scores = np.array([table.word_scores(word) for word in text.split()]).T
    length = np.array([scores.shape[1]])
    differences = ahead(np.roll(scores, -label, axis=0))
    return margins(differences, length, 1.0, costs_of("substitutions", length, 1.0, most))[0]


class TestLearning:
    @pytest.mark.parametrize("classes", [2, 3])
    def test_what_can_be_learned_is_learned_and_certified(self, classes):
        summary = measured(trained(classes=classes), *made_up(300, classes, seed=1))
        assert summary.accuracy > 0.97
        assert summary.certified_accuracy(1) > 0.8
        assert summary.certified_accuracy(2) > 0.3

    def test_new_words_are_read_by_their_n_grams(self):
        table = trained()
        scores = table.word_scores("mountain9999")
        assert scores[1] > 0.8 > 0.2 > max(scores[0], scores[2])

    def test_a_larger_target_gives_larger_radii(self):
        held_out = made_up(300, seed=1, telling=0.4)
        same = {"epochs": 10, "class_weights": "none"}
        small, large = (trained(target_words=target, **same) for target in (0, 4))
        assert measured(large, *held_out).certified_accuracy(2) > (
            measured(small, *held_out).certified_accuracy(2)
        )

    def test_a_small_class_is_found(self):
        """One text in twelve, and few words that tell: alone, it is given up."""
        found = {}
        for weights in ("none", "balanced"):
            texts, labels = skewed(900)
            options = WordTableOptions(**{**SMALL, "class_weights": weights})
            table = train_word_table(texts, labels, NAMES[:2], options=options)
            found[weights] = measured(table, *skewed(600, seed=1)).classes
        assert found["none"].recall(1) < 0.2
        assert found["balanced"].recall(1) > 0.6 and found["balanced"].recall(0) > 0.6

    def test_a_warm_start_keeps_two_classes_from_collapsing(self):
        """Few telling words: always to say the same certifies half of the texts for good."""
        weak = {"classes": 2, "telling": 0.2, "length": 16}
        held_out = made_up(300, seed=1, **weak)
        texts, labels = made_up(600, **weak)
        cold, warm = (
            train_word_table(
                texts,
                labels,
                NAMES[:2],
                options=WordTableOptions(**{**SMALL, "warm_epochs": epochs}),
            )
            for epochs in (0, 3)
        )
        assert measured(cold, *held_out).accuracy < 0.6 < 0.7 < measured(warm, *held_out).accuracy

    def test_which_loss_when(self, monkeypatch):
        calls = []
        for name in ("margin_loss", "certified_loss"):
            loss = getattr(table_learning, name)
            monkeypatch.setattr(
                table_learning,
                name,
                lambda *a, name=name, loss=loss: (calls.append(name), loss(*a))[1],
            )
        trained(rows=64, epochs=5, warm_epochs=2)  # two steps an epoch
        assert calls == ["margin_loss"] * 4 + ["certified_loss"] * 6

    @pytest.mark.parametrize(
        "change",
        [
            {"feature_dropout": 0.5},
            {"temperature": 0.3},
            {"margin": 0.8},
            {"learning_rate": 0.01},
            {"target_words": 1, "temperature": 1.2},
            {"accuracy_weight": 1.0},
            {"weight_decay": 0.01},
            {"family": "distinct"},
            {"batch_size": 16},
        ],
        ids=str,
    )
    def test_every_option_matters(self, change):
        assert trained(rows=64, **change).digest != trained(rows=64).digest

    def test_the_loss_is_the_certificate(self):
        """A margin is left after d words exactly where the radius is d or more."""
        table = trained()
        texts, labels = made_up(100, seed=2)
        results = SmoothedClassifier(table, **table.smoothing).certify(texts)
        checked = 0
        for text, label, result in zip(texts, labels, results, strict=True):
            left = left_of(table, text, label, 3)
            radius = result.radius if result.label_id == label else None
            for changed, margin in enumerate(left.min(axis=(1, 2)).tolist()):
                certified = radius is not None and radius >= changed
                assert certified == (margin > 1e-9), (text, changed, margin, radius)
                checked += certified
        assert checked > 100

    def test_progress(self):
        texts, labels = made_up(50)
        seen = []
        options = WordTableOptions(**{**SMALL, "epochs": 3})
        train_word_table(
            texts, labels, NAMES, options=options, progress=lambda *one: seen.append(one)
        )
        assert [one[:2] for one in seen] == [(1, 3), (2, 3), (3, 3)]
        assert all(0 < loss < 1 for *_, loss in seen)


class TestSameSeed:
    def test_same_bytes_whatever_was_drawn_before(self, tmp_path):
        for name in ("one", "other"):
            trained().save(tmp_path / name)
            np.random.seed(5)
        one, other = (tmp_path / name / "words.safetensors" for name in ("one", "other"))
        assert one.read_bytes() == other.read_bytes()

    def test_other_seeds_give_other_tables(self):
        assert trained(seed=1).digest != trained(seed=0).digest

    def test_the_random_state_of_numpy_is_left_alone(self):
        np.random.seed(7)
        expected = np.random.random(3)
        np.random.seed(7)
        trained(rows=40)
        assert np.array_equal(np.random.random(3), expected)


class TestRounding:
    def test_bytes_are_enough_as_a_rule(self):
        assert trained()._arrays()["entries"].dtype == np.int8

    def test_where_they_are_not_two_are_taken(self, monkeypatch):
        monkeypatch.setattr(training, "_ROUNDING_LOSS", -1.0)
        assert trained()._arrays()["entries"].dtype == np.int16

    @pytest.mark.parametrize("loss", [-1.0, 1.0])
    def test_the_integers_say_what_the_floats_said(self, monkeypatch, loss):
        kept = {}
        learn = training.learned

        def spy(*args, **named):
            kept["all"] = learn(*args, **named)
            return kept["all"]

        monkeypatch.setattr(training, "learned", spy)
        monkeypatch.setattr(training, "_ROUNDING_LOSS", loss)
        table = trained()
        for word in ("river3", "Desert!", "word77", "new"):
            hashes, weights, _ = features([word])
            columns = kept["all"].features[:, hashes % SMALL["buckets"]]
            sums = (columns * weights / 256).sum(axis=1) + kept["all"].bias
            far = np.abs(np.array(table.word_scores(word)) - sigmoid(sums)).max()
            assert far < (0.003 if loss < 0 else 0.1), word


class TestRefused:
    @pytest.mark.parametrize(
        "options",
        [
            {"target_words": -1},
            {"target_words": 1.5},
            {"temperature": 0},
            {"temperature": -1.0},
            {"temperature": float("nan")},
            {"epochs": 0},
            {"warm_epochs": -1},
            {"learning_rate": 0},
            {"learning_rate": float("inf")},
            {"batch_size": 0},
            {"batch_size": True},
            {"feature_dropout": 1.0},
            {"feature_dropout": -0.1},
            {"margin": 0},
            {"margin": 1.0},
            {"accuracy_weight": -0.5},
            {"accuracy_weight": float("nan")},
            {"weight_decay": -1e-3},
            {"whole_weight": -1.0},
            {"whole_weight": float("inf")},
            {"family": "sampled"},
            {"buckets": 0},
            {"most_words": 0},
            {"seed": -1},
        ],
        ids=str,
    )
    def test_options(self, options):
        [name] = options
        with pytest.raises(OptionError, match=name):
            WordTableOptions(**options)

    def test_more_warm_epochs_than_epochs(self):
        with pytest.raises(OptionError, match="warm_epochs=9 is more than epochs=8"):
            WordTableOptions(warm_epochs=9, epochs=8)
        with pytest.raises(OptionError, match="warm_epochs=9 is more than epochs=8"):
            WordTableOptions(warm_epochs=9, target_words=1).resolved(["a"])

    def test_temperature_follows_the_target(self):
        assert WordTableOptions(target_words=5).resolved(["a"]).temperature == 2
        assert WordTableOptions(target_words=0).resolved(["a"]).temperature == 0.2
        assert WordTableOptions(target_words=5, temperature=3.0).resolved(["a"]).temperature == 3

    @pytest.mark.parametrize(
        ("texts", "labels", "message"),
        [
            ([], [], "0 texts"),
            (["a"], [0, 1], "1 texts and 2 labels"),
            (["a", "b"], [0, 3], "row 2: label 3"),
            (["a", "b"], [0, -1], "row 2: label -1"),
            (["a", ("b", "c")], [0, 1], "row 2: .*single texts"),
        ],
    )
    def test_data(self, texts, labels, message):
        with pytest.raises(DataError, match=message):
            train_word_table(texts, labels, NAMES)

    def test_an_empty_text(self):
        with pytest.raises(TextError, match="text 1"):
            train_word_table(["a", " "], [0, 1], NAMES)


class TestTexts:
    def test_one_text_of_one_word(self):
        options = WordTableOptions(**{**SMALL, "target_words": 5})
        table = train_word_table(["a"], [1], NAMES, options=options)
        assert np.argmax(table.word_scores("a")) == 1

    def test_words_beyond_the_limit_are_not_trained_on(self):
        options = WordTableOptions(**{**SMALL, "most_words": 2})
        short = train_word_table(["a b", "c d"], [0, 1], NAMES, options=options)
        long = train_word_table(["a b e e e", "c d f"], [0, 1], NAMES, options=options)
        assert long.digest == short.digest


def test_a_small_file_is_learned_too():
    """Few texts would be few steps in batches of 512: batches shrink with the data."""
    draw = random.Random(3)
    said = {0: ["thanks", "friday", "mom"], 1: ["free", "cash", "prize"]}
    labels = [number % 2 for number in range(120)]
    texts = [
        " ".join([*draw.choices(["see", "you", "at", "lunch"], k=4), *draw.choices(said[y], k=4)])
        for y in labels
    ]
    table = train_word_table(texts[:90], labels[:90], ("ham", "spam"))
    smoothed = SmoothedClassifier(table, **table.smoothing)
    results = smoothed.certify(texts[90:])
    right = [one.label_id == y for one, y in zip(results, labels[90:], strict=True)]
    assert sum(right) >= 29
    assert sum((one.radius or 0) >= 1 for one in results) >= 20


@pytest.mark.parametrize(
    ("words", "texts", "target", "batch"),
    [(38, 64_000, 5, 512), (3, 100, 1, 3), (230, 3200, 8, 100), (19, 10, 2, 1)],
)
def test_defaults_follow_the_data(words, texts, target, batch):
    options = WordTableOptions().resolved(["w " * words] * texts)
    assert (options.target_words, options.batch_size) == (target, batch)
    assert options.temperature == target / 2.5
    assert options.resolved(["w"]) == options


def rare_words(rows, seed):
    """Label 1 is one text in five: one of two words, among many that tell nothing.

    Every third text says its words over and over, and most words occur once in all texts.
    """
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for row in range(rows):
        label = int(rng.random() < 0.2)
        words = [f"w{seed}x{row}x{number}" for number in range(rng.integers(4, 30))]
        words[0] = f"flag{rng.integers(0, 2)}" if label else "plain"
        texts.append(" ".join(words * (4 if row % 3 == 0 else 1)))
        labels.append(label)
    return texts, labels


class TestAccuracyAlone:
    def test_a_text_is_read_by_its_words_and_the_blank(self):
        """Only the rare class has words of its own: the blank speaks for the other."""
        texts, labels = rare_words(600, 0)
        options = WordTableOptions(target_words=0).resolved(texts)
        table = train_word_table(texts, labels, ("no", "yes"), options=options)
        smoothed = SmoothedClassifier(table, **training.table_smoothing(options))
        new, wanted = rare_words(300, 1)
        found = [one.label_id for one in smoothed.predict(new)]
        assert np.mean(np.array(found) == wanted) > 0.9
        assert smoothed.options.family == "distinct"
        assert table.blank

    def test_what_is_set_stays_set(self):
        options = WordTableOptions(target_words=0, family="all", learning_rate=0.5)
        options = options.resolved(["a"])
        assert (options.family, options.learning_rate, options.warm_epochs) == ("all", 0.5, 0)
        table = train_word_table(*made_up(30), NAMES, options=options)
        assert not table.blank
        options = WordTableOptions(target_words=2, family="distinct").resolved(["a"])
        assert (options.family, options.learning_rate, options.warm_epochs) == ("distinct", 0.05, 2)

    def test_one_epoch_is_enough_to_ask_for(self):
        assert WordTableOptions(epochs=1).resolved(["a"]).warm_epochs == 1


def test_the_trained_margin_is_the_certificate_of_distinct_words():
    """Where no word is repeated among those for the label, shares are the knapsack itself."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        words = rng.permutation([0, 1, 2, 3, 4, 5, 5, 5])
        scores = rng.random((6, 2))
        scores[5] = [0.1, 0.9]  # what is repeated speaks against the label
        shares = np.where(words == 5, 1 / 3, 1)
        length = np.array([8])
        cost = costs_of("substitutions", length, shares, 3)
        left, _ = margins(ahead(scores[words].T), length, shares, cost)
        own = scores[:, 0] - scores[:, 1]
        dearest = np.sort(own[:5])[::-1]
        usable = (dearest > 0).sum()
        costs = [dearest[:d].sum() + d for d in range(min(usable, 3) + 1)]
        assert left[: len(costs), 0, 0] == pytest.approx(own.sum() - np.array(costs))


class TestWholeText:
    """A model that reads the whole text votes too: the table is trained for the sum."""

    def said(self, labels, right, seed=0):
        """One-hot answers for three classes, of which so large a share is right."""
        rng = np.random.default_rng(seed)
        wrong = (np.array(labels) + rng.integers(1, 3, len(labels))) % 3
        return np.eye(3)[np.where(rng.random(len(labels)) < right, labels, wrong)]

    def test_no_weight_is_no_model(self):
        texts, labels = made_up(64)
        options = WordTableOptions(**SMALL)
        table = train_word_table(
            texts, labels, NAMES, options=options, whole=self.said(labels, 0.9)
        )
        assert table.digest == trained(rows=64).digest

    def test_its_weight_and_its_answers_matter(self):
        texts, labels = made_up(64)

        def digest(weight, right):
            options = WordTableOptions(**SMALL, whole_weight=weight)
            said = self.said(labels, right)
            return train_word_table(texts, labels, NAMES, options=options, whole=said).digest

        assert len({digest(0.0, 0.9), digest(1.0, 0.9), digest(2.0, 0.9), digest(1.0, 0.5)}) == 4

    def test_a_table_does_best_what_it_was_trained_for(self):
        texts, labels = made_up(400, telling=0.3)
        said = self.said(labels, 0.9)
        lost = {}
        for trained_for in (0.0, 2.0):
            chosen = {**SMALL, "target_words": 1, "class_weights": "none"}
            options = WordTableOptions(**chosen, whole_weight=trained_for)
            table = train_word_table(texts, labels, NAMES, options=options, whole=said)
            for weight in (0.0, 2.0):
                rows = zip(texts, labels, said, strict=True)
                lost[trained_for, weight] = np.mean(
                    [self.lost(table, *row, weight) for row in rows]
                )
        assert lost[0.0, 0.0] < lost[2.0, 0.0] - 0.02
        assert lost[2.0, 2.0] < lost[0.0, 2.0] - 0.02

    def lost(self, table, text, label, said, weight):
        """The loss of a text at 0 and 1 changed words, next to a model of this weight."""
        left = left_of(table, text, label, 1)
        left += whole_text(np.roll(said, -label)[:, None], weight, 1)
        return certified_loss(left, 0.4)[0][0]

    @pytest.mark.parametrize(
        ("whole", "message"),
        [
            ([[1, 0, 0]], r"shape \(1, 3\); 2 texts of 3 classes need \(2, 3\)"),
            ([[1, 0], [0, 1]], r"shape \(2, 2\)"),
            ([[1, 0, 0], [0, 1.5, 0]], "row 2: .*from 0 to 1, not"),
            ([[1, 0, float("nan")], [0, 1, 0]], "row 1: .*from 0 to 1, not"),
            ([[1, 0, -0.5], [0, 1, 0]], "row 1: .*from 0 to 1, not"),
        ],
    )
    def test_refused(self, whole, message):
        options = WordTableOptions(**SMALL, whole_weight=1.0)
        with pytest.raises(DataError, match=message):
            train_word_table(["a", "b"], [0, 1], NAMES, options=options, whole=whole)

    def test_a_weight_without_answers(self):
        options = WordTableOptions(**SMALL, whole_weight=1.0)
        with pytest.raises(OptionError, match=r"whole_weight=1.0 needs whole"):
            train_word_table(["a", "b"], [0, 1], NAMES, options=options)


@pytest.mark.parametrize("rate", [1e30, 1e300])  # weights that are too large, or no numbers
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_training_that_diverges_says_so(rate):
    with pytest.raises(
        OptionError,
        match=r"^a weight has become \S+ in epoch 1 of 3: training diverged with learning_rate="
        rf"{re.escape(f'{rate:g}')}\. Lower the learning rate$",
    ):
        train_word_table(
            ["good film", "bad film"],
            [1, 0],
            ["neg", "pos"],
            options=WordTableOptions(learning_rate=rate, epochs=3),
        )


def test_one_weight_that_is_no_number_is_enough():
    weights = [np.ones(2), np.array([1.0, np.nan]), None]
    with pytest.raises(OptionError, match="a weight has become nan in epoch 1 of 2"):
        table_learning.check_weights(weights, 0, 2, 1.0)

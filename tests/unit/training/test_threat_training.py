"""Training for a threat: the table proves more against it than one trained for substitutions."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ranmask import SmoothedClassifier, WordTable
from ranmask.attacks.resources.neighbours import load_synonyms
from ranmask.errors import DataError, OptionError
from ranmask.models.normalising import Normaliser
from ranmask.models.synonyms import SynonymSets
from ranmask.training import word_table as training
from ranmask.training.table_learning import Objective, Weights, loss_and_gradient
from ranmask.training.table_loss import ahead, costs_of, margins
from ranmask.training.table_options import WordTableOptions
from ranmask.training.table_texts import TableTexts, vocabulary
from ranmask.training.word_table import train_word_table

NAMES = ("river", "mountain")
WEAK = ("wet", "high")
SMALL = {"epochs": 20, "warm_epochs": 1, "temperature": 0.5, "batch_size": 32, "buckets": 4096}
SYNONYMS = SynonymSets(
    # A word that says most of a class has one of the other class for a synonym.
    {
        f"{name}{number}": [f"{other}{number}"]
        for name, other in (NAMES, NAMES[::-1])
        for number in range(20)
    }
)


def made_up(rows, seed=0):
    """Three words that say all, and twelve that are right somewhat more often than not."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    texts = []
    for label in labels:
        told = np.where(rng.random(12) < 0.65, label, 1 - label)
        words = [f"{NAMES[label]}{number}" for number in rng.integers(0, 20, 3)]
        words += [
            f"{WEAK[one]}{number}"
            for one, number in zip(told, rng.integers(0, 20, 12), strict=True)
        ]
        texts.append(" ".join(words))
    return texts, labels.tolist()


def trained(rows=1000, **options):
    texts, labels = made_up(rows)
    chosen = WordTableOptions(**{**SMALL, **options})
    synonyms = SYNONYMS if chosen.threat == "synonyms" else None
    return train_word_table(texts, labels, NAMES, options=chosen, synonyms=synonyms)


def proved(table, threat, most):
    """Share of other texts that are proved against 0 to ``most`` changes; None: all words."""
    texts, labels = made_up(300, seed=1)
    left = []
    for text, label in zip(texts, labels, strict=True):
        words, length = text.split(), np.array([len(text.split())])
        apart = {
            other: ahead(np.roll(table.word_scores(other), -label))[0]
            for word in words
            for other in SYNONYMS.replacements(word)
        }
        own = np.array([[apart[word] for word in words]])
        least = np.array([[min(map(apart.get, SYNONYMS.replacements(word))) for word in words]])
        cost = costs_of(threat, length, 1.0, most)
        left.append(margins(own, length, 1.0, cost, least if threat == "synonyms" else -1.0)[0])
    return (np.concatenate(left, axis=2)[:, 0] > 0).mean(axis=1)


class TestItIsWorthIt:
    @pytest.mark.parametrize(("threat", "most"), [("insertions", 2), ("characters", 1)])
    def test_more_is_proved_against_it(self, threat, most):
        """Three words are enough against two insertions; not against one edited character."""
        found = [
            proved(trained(threat=one, target_words=most, lexicon="open"), threat, most)
            for one in (threat, "substitutions")
        ]
        assert found[0][most] > found[1][most] + 0.02

    @pytest.mark.parametrize("most", [3, None])
    def test_synonyms(self, most):
        """Without the words that have synonyms for the rival."""
        table = trained(threat="synonyms", synonyms="given", target_words=most, warm_epochs=0)
        plain = trained(target_words=3)
        assert proved(table, "synonyms", most)[-1] > proved(plain, "synonyms", most)[-1] + 0.1
        assert proved(table, "synonyms", most)[0] > 0.8


class TestSeveralThreats:
    THREATS = ("substitutions", "characters", "synonyms")

    def table(self, **options):
        chosen = WordTableOptions(**{**SMALL, "target_words": 2, **options})
        synonyms = SYNONYMS if chosen.synonyms else None
        return train_word_table(*made_up(1000), NAMES, options=chosen, synonyms=synonyms)

    def test_one_table_proves_something_of_each(self):
        several = {"threats": self.THREATS[1:], "synonyms": "given", "synonym_weight": 2.0}
        together, alone = self.table(**several), self.table()
        assert together.known is not None
        found = [proved(table, "synonyms", None)[-1] for table in (together, alone)]
        assert found[0] > found[1] + 0.1
        assert proved(together, "substitutions", 2)[1] > 0.5

    def test_the_loss_is_the_mean_of_theirs(self):
        texts, labels = made_up(40)
        options = WordTableOptions(
            **SMALL, threats=("synonyms",), synonyms="given", target_words=2, synonym_weight=0.5
        ).resolved(texts)
        corpus = TableTexts(texts, labels, 2, buckets=4096, most_words=99, synonyms=SYNONYMS)
        batch = corpus.batch(np.arange(40))
        rng = np.random.default_rng(0)
        weights = Weights(rng.normal(size=(2, 4096)), rng.normal(size=2), None)
        heard = np.ones(4096)

        def of(**changed):
            objective = Objective(replace(options, **changed), False, 1.0, None)
            return loss_and_gradient(weights, batch, objective, heard)

        both, gradient = of()
        words, by_words = of(threats=None, synonyms=None)
        every, by_every = of(threat="synonyms", threats=None, target_words=None)
        assert both == pytest.approx((words + 0.5 * every) / 2)
        expected = (by_words.features + 0.5 * by_every.features) / 2
        np.testing.assert_allclose(gradient.features, expected, atol=1e-12)
        np.testing.assert_allclose(gradient.bias, (by_words.bias + 0.5 * by_every.bias) / 2)

    def test_an_unknown_word_stays_where_a_synonym_is_known(self):
        known = vocabulary(["river0 stone", "river0 stone"], 800, 10)
        synonyms = SynonymSets({"brook": ["river0"]})
        how = {"buckets": 2, "most_words": 8, "known": known}
        texts = TableTexts(["brook thing stone"], [0], 2, synonyms=synonyms, **how)
        assert texts.batch(np.arange(1)).lengths.tolist() == [2]
        plain = TableTexts(["brook thing stone"], [0], 2, **how)
        assert plain.batch(np.arange(1)).lengths.tolist() == [1]

    def test_options(self):
        options = WordTableOptions(threats=("substitutions", "edits", "edits"))
        assert options.all_threats == ("substitutions", "edits")
        assert WordTableOptions(threats=("substitutions",)).threats is None
        several = WordTableOptions(threats=("characters", "synonyms"), synonyms="jia2019")
        found = several.resolved(["word " * 24])
        assert (found.lexicon, found.target_words) == ("closed", 2)
        assert [found.target_of(threat) for threat in found.all_threats] == [2, 2, None]
        for wrong in (
            {"threats": ("synonyms",)},
            {"threats": ("edits",), "synonyms": "jia2019"},
            {"threats": ("edits",), "target_words": 0},
            {"threats": ("edits",), "partitions": 2},
            {"threats": ("synonyms",), "synonyms": "jia2019", "family": "distinct"},
        ):
            with pytest.raises(OptionError):
                WordTableOptions(**wrong)
        with pytest.raises(OptionError, match=r"threat='edits,characters' .* partitions=2"):
            WordTableOptions(threat="edits", threats=("characters",), partitions=2)


class TestClosedVocabulary:
    def certified(self, **options):
        texts, labels = made_up(300, seed=1)
        chosen = WordTableOptions(**{**SMALL, "threat": "characters", "target_words": 2, **options})
        table = train_word_table(*made_up(1000), NAMES, options=chosen)
        smoothed = SmoothedClassifier(table, **WordTable.smoothing, threat="characters")
        results = smoothed.certify(texts)
        right = [
            result.certified(2) and result.label == NAMES[label]
            for result, label in zip(results, labels, strict=True)
        ]
        return table, float(np.mean(right))

    def test_it_is_what_characters_are_trained_with_and_proves_more(self):
        (closed, more), (_, less) = self.certified(), self.certified(lexicon="open")
        assert {len(word) for word in closed.known.words} <= set(range(4, 11))
        assert closed.known.words == tuple(sorted(closed.known.words))
        assert more > less + 0.1

    def test_the_most_frequent_words_are_kept(self):
        texts = ["river one here", "river two", "stone river", "stone it it it"]
        assert vocabulary(texts, 800, 10).words == ("river", "stone")
        assert vocabulary(texts, 800, 1).words == ("river",)
        with pytest.raises(DataError, match=r"stands in two .* open lexicon"):
            vocabulary(["River a", "x river! b"], 1, 9)

    def test_a_text_without_known_words_stays(self):
        known = vocabulary(["river stone", "river stone", "other"], 800, 10)
        texts = TableTexts(
            ["other thing", "other river"], [0, 1], 2, buckets=2, most_words=8, known=known
        )
        batch = texts.batch(np.arange(2))
        assert batch.lengths.tolist() == [1, 1]
        assert batch.weights.tolist() == [0, 1]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"normalise": "case"},
            {"family": "distinct"},
            {"target_words": 0},
        ],
    )
    def test_what_does_not_go_with_it(self, wrong):
        with pytest.raises(OptionError, match="lexicon='closed'"):
            WordTableOptions(lexicon="closed", **wrong)
        assert WordTableOptions(**wrong).resolved(["a b"]).lexicon == "open"

    def test_no_vocabulary(self):
        with pytest.raises(DataError, match=r"stands in two .* open lexicon"):
            train_word_table(
                ["apple", "stone"], [0, 1], NAMES, options=WordTableOptions(threat="characters")
            )


class TestOptions:
    def test_synonyms_need_their_table(self):
        with pytest.raises(
            OptionError, match="threat='synonyms' and no synonyms: they go together"
        ):
            WordTableOptions(threat="synonyms")
        with pytest.raises(OptionError, match="'substitutions' and synonyms='jia2019': they go"):
            WordTableOptions(synonyms="jia2019")

    def test_a_threat_needs_a_target(self):
        with pytest.raises(OptionError, match="accuracy alone"):
            WordTableOptions(threat="characters", target_words=0)

    def test_synonyms_of_words_that_count_once(self):
        with pytest.raises(OptionError, match="distinct"):
            WordTableOptions(threat="synonyms", synonyms="jia2019", family="distinct")

    @pytest.mark.parametrize(
        ("threat", "words", "target", "temperature"),
        [
            ("substitutions", 40, 5, 2.0),
            ("substitutions", 900, 8, 3.2),
            ("insertions", 40, 10, 2.0),
            ("insertions", 900, 16, 3.2),
            ("characters", 40, 3, 1.8),
            ("characters", 2, 1, 0.6),
        ],
    )
    def test_targets_are_as_far_as_a_change_is_dear(self, threat, words, target, temperature):
        found = WordTableOptions(threat=threat).resolved(["x " * words])
        assert found.target_words == target
        assert found.temperature == pytest.approx(temperature)

    def test_synonyms_are_for_all_words_unless_a_number_is_given(self):
        every = WordTableOptions(threat="synonyms", synonyms="x").resolved(["a b c"])
        some = WordTableOptions(threat="synonyms", synonyms="x", target_words=2).resolved(["a"])
        assert every.target_words is None and some.target_words == 2
        assert every.temperature is not None


class TestTables:
    def test_a_file(self, tmp_path):
        path = tmp_path / "mine.json"
        path.write_text(json.dumps({"film": ["movie"]}))
        sets = load_synonyms(str(path))
        assert sets.replacements("Film,") == ("Film,", "Movie,") and sets.name == "mine.json"
        sets.save(tmp_path)
        again = load_synonyms(str(tmp_path))
        assert again.description() == sets.description()

    def test_vectors_are_refused(self, tmp_path):
        path = tmp_path / "vectors.txt"
        path.write_text("film 1 0\nmovie 1 1\n")
        for wrong in (str(path), "nothing", "", str(tmp_path)):
            with pytest.raises(OptionError, match=r"is no table: name a JSON file .* jia2019"):
                load_synonyms(wrong)
        for content in ("[]", "{}", '{"film": "movie"}', '{"film": [1]}', "{"):
            (tmp_path / "wrong.json").write_text(content)
            with pytest.raises(DataError, match=r"wrong\.json"):
                load_synonyms(str(tmp_path / "wrong.json"))

    def test_all_that_a_file_lists_counts(self, tmp_path):
        """An attack leaves special tokens out; a certificate is about all words of the table."""
        path = tmp_path / "mine.json"
        path.write_text(json.dumps({"film": ["@@UNKNOWN@@", "movie", "motion picture"]}))
        sets = load_synonyms(str(path))
        assert sets.replacements("film") == ("film", "@@UNKNOWN@@", "movie")


class TestTexts:
    def test_others_are_the_replacements(self):
        sets = SynonymSets({"film": ["movie", "picture"], "good": ["fine"]})
        texts = TableTexts(
            *(["A good film", "film film x"], [0, 1], 2),
            **{"buckets": 512, "most_words": 9, "synonyms": sets},
        )
        first, second = texts.batch(np.array([0])), texts.batch(np.array([1]))
        assert first.words.tolist() == [0, 1, 2] and first.others.shape == (3, 3)
        own = [sorted(set(row)) for row in first.others.tolist()]
        assert own == [[0], [1, 3], [2, 4, 5]] and len(first.counts) == 6
        assert second.words.tolist() == [0, 0, 1] and len(second.counts) == 4

    def test_normal_forms_are_one_word(self):
        sizes = {"buckets": 512, "most_words": 9}
        texts = TableTexts(["Film, film FILM"], [0], 2, **sizes, normaliser=Normaliser("case"))
        texts.count_words_once()  # as they are spelt: so they are counted when they vote
        batch = texts.batch(np.array([0]))
        assert batch.words.tolist() == [0, 0, 0] and len(batch.counts) == 1
        assert np.all(batch.shares == 1)

    def test_the_table_reads_what_was_trained(self, monkeypatch):
        alike = Normaliser("lookalikes", {"а": "a"})  # noqa: RUF001
        monkeypatch.setattr(training, "installed", {"lookalikes": alike}.__getitem__)
        table = trained(100, normalise="lookalikes")
        assert table.normaliser == alike
        assert table.word_scores("RIVER1!") == table.word_scores("river1")

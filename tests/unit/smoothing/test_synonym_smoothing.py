"""`SynonymSmoothedClassifier` over functions: what it asks, what it answers, what it refuses."""

import json
from fractions import Fraction

import numpy as np
import pytest

from ranmask import (
    Certificate,
    FunctionClassifier,
    ModelError,
    OptionError,
    SmoothedClassifier,
    SynonymSets,
    SynonymSmoothedClassifier,
    TextError,
    WordTable,
    attack,
    load_default,
)
from ranmask.attacks.api import as_victim
from ranmask.attacks.victims import Question, SmoothedVictim
from ranmask.certificates.safer import _moves, synonym_radius
from ranmask.certificates.votes import count_votes
from ranmask.models import pretrained
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.words import document


def asked(attempt, text, near):
    """A question about texts as they are spelt."""
    return Question(attempt, document(text), document(near))


TABLE = {
    "good": ["fine", "poor", "great"],
    "poor": ["awful"],
    "film": ["movie"],
    "movie": ["film"],
}
CHAIN = {f"w{n}": [f"w{n + 1}"] for n in range(12)}
TEXTS = ["a good film", "the poor , poor movie", "nothing here", "Good , good , GOOD"]


def smoothed(function=keyword_classifier, table=TABLE, size=100, **options):
    return SynonymSmoothedClassifier(function, SynonymSets(table, size=size, name="t"), **options)


class Noted(FunctionClassifier):
    """Remembers what it was shown."""

    def __init__(self, **options):
        super().__init__(self._judge, **options)
        self.seen = []

    def _judge(self, texts):
        self.seen.append(list(texts))
        return hashing_classifier([str(text) for text in texts])


class FewWords(FunctionClassifier):
    """Reads no more than three words."""

    def words_read(self, document):
        return min(3, len(document.words))


class TestRadius:
    def test_products_of_the_smallest_overlaps(self):
        overlaps = [Fraction(1, 2), Fraction(1), Fraction(3, 4)]
        moves = list(_moves(overlaps))
        assert moves == [0, Fraction(1, 2), Fraction(5, 8), Fraction(5, 8)]

    def test_the_words_that_it_hangs_on(self):
        overlaps = [Fraction(1), Fraction(7, 10), Fraction(3, 5), Fraction(9, 10)]
        radius = synonym_radius([990, 10], 0, 1000, overlaps)
        assert (radius.words, radius.worst, radius.tight) == (1, (1, 2), False)

    def test_all_words(self):
        radius = synonym_radius([900, 100], 0, 1000, [Fraction(1)] * 4)
        assert (radius.words, radius.worst, radius.tight) == (4, (), True)

    def test_not_certified(self):
        radius = synonym_radius([500, 500], 0, 1000, [Fraction(1)])
        assert (radius.words, radius.worst) == (None, ())

    def test_every_class_has_a_part_of_alpha(self):
        """A thousand rivals without a vote cost what a split of alpha costs, not nothing."""
        overlaps = [Fraction(9, 10)]
        few = [synonym_radius([n, 100 - n], 0, 100, overlaps, alpha=0.1).words for n in range(101)]
        many = [
            synonym_radius([n, 100 - n, *[0] * 1000], 0, 100, overlaps, alpha=0.1).words
            for n in range(101)
        ]
        assert few.index(1) < many.index(1)

    @pytest.mark.parametrize("value", [Fraction(-1, 2), Fraction(3, 2)])
    def test_no_overlap(self, value):
        with pytest.raises(ValueError, match=str(value)):
            synonym_radius([9, 1], 0, 10, [value])


class TestCopies:
    def test_two_samples_and_no_copy_twice(self):
        base = Noted()
        smoothed(base, masks=300, selection_masks=200, recheck=0).certify(["a good film"])
        selection, estimation = base.seen
        assert len(set(selection)) == len(selection) <= 10 and len(estimation) <= 10
        allowed = {
            f"a {one} {other}"
            for one in ("good", "fine", "poor", "great", "awful")
            for other in ("film", "movie")
        }
        assert set(selection) == set(estimation) == allowed

    def test_the_estimation_sample_is_another_one(self):
        base = Noted()
        chain = smoothed(base, CHAIN, size=6, masks=40, selection_masks=40, recheck=0)
        chain.certify([" ".join(["w5"] * 30)])
        selection, estimation = base.seen
        assert len(selection) == len(estimation) == 40 and not set(selection) & set(estimation)

    def test_votes_count_every_copy(self):
        result = smoothed(hashing_classifier, masks=300).predict(["a good film"])[0]
        assert sum(result.votes) == result.masks == 300

    def test_how_many(self):
        [result] = smoothed().predict(["a good film"])
        assert result.masks == 100
        [result] = smoothed().certify(["a good film"])
        assert result.masks == 5000

    def test_other_texts_do_not_matter(self):
        one = smoothed(hashing_classifier, masks=50, selection_masks=20)
        assert one.predict(TEXTS) == [one.predict([text])[0] for text in TEXTS]
        assert one.certify(TEXTS) == [one.certify([text])[0] for text in TEXTS]

    def test_many_copies_in_parts(self, monkeypatch):
        whole = smoothed(hashing_classifier, masks=50).predict(TEXTS)
        monkeypatch.setattr("ranmask.smoothing.voting.COPIES_AT_ONCE", 60)
        assert smoothed(hashing_classifier, masks=50).predict(TEXTS) == whole

    def test_pairs_keep_their_premise(self):
        base = Noted()
        [result] = smoothed(base, masks=20).predict([("the film", "a good movie")])
        assert {premise for premise, _ in base.seen[0]} == {"the film"} and result.words == 3
        [result] = smoothed(base, masks=20).certify([("the film", "a good movie")])
        assert "the premise does not change" in result.assumes

    def test_words_that_are_not_read(self):
        """They are shown in no copy, do not move the draws, and cost nothing."""
        base = FewWords(hashing_classifier)
        long, other = "w5 w6 the w1 w2 w3", "w5 w6 the w7 w8 w9"
        one = smoothed(base, CHAIN, size=4, masks=500)
        assert one.predict([long])[0].votes == one.predict([other])[0].votes
        result = smoothed(FewWords(lambda texts: [[1, 0]] * len(texts)), CHAIN, size=4).certify(
            [long]
        )[0]
        assert (result.words, result.words_read, result.kept) == (6, 3, 3)
        whole = smoothed(lambda texts: [[1, 0]] * len(texts), CHAIN, size=4).certify([long])[0]
        assert (result.radius, whole.radius) == (6, 2)

    def test_a_word_table_reads_copies_too(self):
        base = load_default("reviews-words").base
        assert isinstance(base, WordTable)
        [result] = SynonymSmoothedClassifier(base, SynonymSets(TABLE)).certify(["a good film"])
        assert result.label in ("negative", "positive")


class TestResults:
    def test_certificate(self):
        chain = smoothed(table=CHAIN, size=3, labels=["no", "yes"], alpha=0.01)
        [result] = chain.certify(["good w5 w6"])
        assert (result.label, result.label_id, result.radius) == ("yes", 1, 1)
        assert (result.certificate, result.threat, result.family) == ("safer", *["synonyms"] * 2)
        assert result.guarantee and result.alpha == 0.01 and not result.tight
        assert result.critical_words == (1, 2)
        assert Certificate.from_dict(result.to_dict()) == result

    def test_what_it_assumes_comes_with_the_table_first(self):
        [result] = smoothed().certify(["a good film"])
        assert "only by words that the table 't' lists for them" in result.assumes[0]
        assert any("always says the same" in one for one in result.assumes)
        [result] = smoothed(tolerance=0.5).certify(["a good film"])
        assert any("by more than 0.25" in one for one in result.assumes)

    def test_near_ties_count_against_the_label(self):
        """One copy in five is too close to call: it is taken from the label, given to the rival."""

        def classify(texts):
            return [[0.51, 0.49] if "awful" in text else [1, 0] for text in texts]

        sure = smoothed(classify, masks=1000).certify(["good film"])[0]
        careful = smoothed(classify, masks=1000, tolerance=0.1).certify(["good film"])[0]
        assert sure.votes == careful.votes == (1000, 0) and sure.uncertain == 0
        assert 150 < careful.uncertain < 250
        unsure = smoothed(classify, masks=1000, tolerance=1.0).certify(["good film"])[0]
        assert unsure.uncertain == 1000 and unsure.radius is None

    def test_near_ties_count_for_every_rival(self):
        """Half the votes are sure of class 0, a fifth of class 1; the rest could be class 1's."""
        scores = np.repeat([[1, 0, 0], [0, 1, 0], [0, 0.45, 0.5]], [500, 200, 300], axis=0)
        overlaps = [Fraction(1)] * 2
        radii = [
            synonym_radius(
                count_votes(scores, "vote", "scores", tolerance).against([0])[0].tolist(),
                0,
                len(scores),
                overlaps,
                alpha=0.05,
            ).words
            for tolerance in (0, 0.1)
        ]
        assert radii == [2, None]

    def test_near_ties_shorten_the_radius(self):
        def classify(texts):
            return [[0.51, 0.49] if "w9" in text else [1, 0] for text in texts]

        text = "w5 w5 w5 w5 w7 w7"
        results = [
            smoothed(classify, CHAIN, size=6, masks=2000, tolerance=one).certify([text])[0]
            for one in (0, 0.1)
        ]
        assert results[0].radius > (results[1].radius or 0)

    @pytest.mark.parametrize("ensemble", ["score", "logit"])
    def test_means(self, ensemble):
        [result] = smoothed(hashing_classifier, ensemble=ensemble).predict(["a good film"])
        assert result.scores is not None and result.ensemble == ensemble

    def test_seeds(self):
        one = smoothed(hashing_classifier, CHAIN, size=6, masks=50)
        other = one.with_options(seed=1)
        texts = ["w5 w6 w7"] * 2
        assert one.predict(texts)[0] == one.predict(texts)[1]
        assert one.predict(texts) != other.predict(texts)
        assert other.options.seed == 1 and other.options.masks == 50

    def test_description(self):
        described = smoothed(masks=7, labels=["no", "yes"]).description()
        assert described["options"]["masks"] == described["options"]["estimation_masks"] == 7
        assert described["options"]["selection_masks"] == 1000
        assert described["options"]["certificate"] == "safer"
        assert described["synonyms"]["name"] == "t" and described["labels"] == ["no", "yes"]
        described = smoothed().description()["options"]
        assert (described["masks"], described["estimation_masks"]) == (100, 5000)


class TestRefused:
    @pytest.mark.parametrize("ensemble", ["score", "logit"])
    def test_only_votes_are_certified(self, ensemble):
        one = smoothed(ensemble=ensemble)
        with pytest.raises(OptionError, match="use ensemble='vote'; or predict"):
            one.check_certifiable()
        with pytest.raises(OptionError, match=f"ensemble='{ensemble}' cannot be certified"):
            one.certify(["a good film"])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"masks": 0}, "masks must be a whole number of at least 1, not 0"),
            ({"selection_masks": 1.5}, "selection_masks must be .* not 1.5"),
            ({"ensemble": "mean"}, "ensemble must be one of vote, score, logit; not 'mean'"),
            ({"alpha": 1}, "alpha must be a number between 0 and 1, not 1"),
            ({"seed": -1}, "seed must be .* not -1"),
            ({"labels": ["one"]}, "at least two different names"),
            ({"tolerance": -1}, "tolerance must be a number of at least 0, not -1"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_options(self, options, message):
        with pytest.raises(OptionError, match=message):
            smoothed(**options)

    def test_a_table_is_not_sets_yet(self):
        with pytest.raises(OptionError, match=r"must be SynonymSets, not a dict: .*SynonymSets\("):
            SynonymSmoothedClassifier(keyword_classifier, TABLE)

    def test_texts(self):
        with pytest.raises(TextError, match="no words"):
            smoothed().certify(["good", " "])

    def test_labels_of_another_number(self):
        with pytest.raises(OptionError, match="labels names 3 classes"):
            smoothed(labels=["a", "b", "c"]).predict(["good"])

    def test_saving_functions_and_tables(self, tmp_path):
        with pytest.raises(ModelError, match="FunctionClassifier cannot be saved"):
            smoothed().save_pretrained(str(tmp_path / "x"))
        with pytest.raises(ModelError, match="WordTable that is smoothed by synonyms"):
            smoothed(load_default("reviews-words").base).save_pretrained(str(tmp_path / "x"))
        assert not (tmp_path / "x").exists()

    def test_loading_what_is_not_there(self, tmp_path):
        with pytest.raises(ModelError, match="there is no folder"):
            SynonymSmoothedClassifier.from_pretrained(str(tmp_path / "nothing"))

    def test_loading_what_is_smoothed_otherwise(self, tmp_path):
        SmoothedClassifier(load_default("reviews-words").base, keep=1).save_pretrained(
            str(tmp_path / "words")
        )
        with pytest.raises(ModelError, match=r"load it with SmoothedClassifier\.from_pretrained"):
            SynonymSmoothedClassifier.from_pretrained(str(tmp_path / "words"))


class TestVictim:
    def test_answers_are_those_of_predict(self):
        for ensemble in ("vote", "score"):
            one = smoothed(hashing_classifier, masks=40, ensemble=ensemble)
            victim = as_victim(one)
            assert isinstance(victim, SmoothedVictim)
            answers = victim.answer([asked(0, text, text) for text in TEXTS])
            expected = one.predict(TEXTS)
            assert answers.labels.tolist() == [result.label_id for result in expected]
            shares = [
                np.array(result.votes) / 40 if result.scores is None else np.array(result.scores)
                for result in expected
            ]
            assert np.allclose(answers.shares, shares, atol=2**-15)

    def test_many_texts_are_scored_together(self, monkeypatch):
        base = Noted(batch_size=10**6)
        victim = as_victim(smoothed(base, masks=40, recheck=0))
        answers = victim.answer([asked(0, text, text) for text in TEXTS])
        assert len(base.seen) == 1 and victim.copies_scored == len(base.seen[0])
        monkeypatch.setattr("ranmask.attacks.victims.COPIES_AT_ONCE", 50)
        again = victim.answer([asked(0, text, text) for text in TEXTS])
        assert len(base.seen) == 3 and (again.shares == answers.shares).all()

    def test_again_is_another_draw(self):
        victim = as_victim(smoothed(hashing_classifier, CHAIN, size=6, masks=30))
        [one] = victim.answer([asked(0, "w5 w6 w7", "w5 w6 w7")]).shares
        [other] = victim.again().answer([asked(0, "w5 w6 w7", "w5 w6 w7")]).shares
        assert (one != other).any()

    def test_attacked(self):
        from ranmask.attacks.recipes import AttackResources
        from ranmask.attacks.resources.word_lists import Vocabulary

        words = AttackResources(vocabulary=Vocabulary("made up", ("awful", "film", "bad")))
        # The table says nothing of "bad", so that it may break the label within the radius.
        [outcome] = attack(
            smoothed(), ["a good film"], [1], "anywords", resources=words, budget="radius"
        )
        assert outcome.radius == 3 and outcome.status == "succeeded"


def test_a_word_that_the_table_lists_is_covered_or_disclaimed():
    def positive_unless_bad(texts):
        return [["bad." in text.split(), "bad." not in text.split()] for text in texts]

    table = {"good": ["bad.", "fine"], "fine": ["good"]}
    listed = smoothed(positive_unless_bad, table, labels=("negative", "positive"))
    [before] = listed.certify(["good film"])
    [after] = listed.certify(["bad. film"])
    disclaimed = any("left out" in one for one in before.assumes)
    assert before.label == after.label or not before.radius or disclaimed


def test_a_saved_model_with_options_of_masks_is_a_model_error(tmp_path, monkeypatch):
    SynonymSets({"good": ["fine"]}).save(tmp_path)
    record = {"format": "ranmask", "version": 1, "kind": "synonyms", "smoothing": {"keep": 3}}
    (tmp_path / "ranmask.json").write_text(json.dumps(record))
    base = FunctionClassifier(keyword_classifier, labels=("negative", "positive"))
    monkeypatch.setattr(pretrained, "load", lambda folder, **_: base)
    with pytest.raises(ModelError):
        SynonymSmoothedClassifier.from_pretrained(str(tmp_path))

import numpy as np
import pytest

from ranmask import (
    Certificate,
    ClassifierError,
    DataError,
    FunctionClassifier,
    OptionError,
    Prediction,
    SmoothedClassifier,
    TextError,
)
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.options import CERTIFICATES


def shown_to(function_calls):
    def classify(texts):
        function_calls.extend(texts)
        return np.ones((len(texts), 2)) * [0.6, 0.4]

    return classify


class TestCopies:
    def test_mask(self):
        seen = []
        SmoothedClassifier(shown_to(seen), keep=2, recheck=0).predict(["a b c"])
        assert seen == ["a b [MASK]", "a [MASK] c", "[MASK] b c"]

    def test_drop_and_mask_token(self):
        seen = []
        options = {"keep": 1, "recheck": 0}
        SmoothedClassifier(shown_to(seen), hide="drop", **options).predict(["a b"])
        SmoothedClassifier(shown_to(seen), mask_token="<mask>", **options).predict(["a b"])
        assert seen == ["a", "b", "a <mask>", "<mask> b"]

    def test_pairs_mask_only_the_hypothesis(self):
        seen = []
        SmoothedClassifier(shown_to(seen), keep=1, recheck=0).predict([("the premise", "a b")])
        assert seen == [("the premise", "a [MASK]"), ("the premise", "[MASK] b")]

    def test_texts_share_calls(self):
        sizes = []

        def classify(texts):
            sizes.append(len(texts))
            return np.ones((len(texts), 2))

        SmoothedClassifier(classify, keep=1).predict(["a b c"] * 400)
        assert sizes == [1024, 176, 5, 1]  # the last are asked about again

    def test_result_does_not_depend_on_company(self):
        smoothed = SmoothedClassifier(hashing_classifier, keep=2, masks=50)
        texts = [" ".join(f"w{i * j}" for i in range(3 + j)) for j in range(12)]
        together = smoothed.certify(texts)
        assert together == [smoothed.certify([text])[0] for text in texts]
        assert together[::-1] == smoothed.certify(texts[::-1])


class TestResults:
    def test_fields(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=1, labels=["neg", "pos"])
        [result] = smoothed.certify(["good great fine best bad"])
        assert result == Certificate(
            label="pos",
            label_id=1,
            votes=(1, 4),
            scores=None,
            words=5,
            words_read=5,
            kept=1,
            masks=5,
            family="all",
            ensemble="vote",
            radius=1,
            threat="substitutions",
            uncertain=0,
            certificate="exact",
            guarantee=True,
            alpha=None,
            tight=True,
            critical_words=(0, 1),
            assumes=(
                "words are replaced one for one; none is inserted, deleted, split or joined",
                "the base classifier always says the same of the same visible words (checked on up "
                "to 4 of the copies that are scored together)",
                "the base classifier answers for every copy; a text that it fails on gets no label",
            ),
        )

    def test_pairs_say_that_the_premise_is_assumed(self):
        smoothed = SmoothedClassifier(
            lambda pairs: keyword_classifier([h for _, h in pairs]), keep=1
        )
        [result] = smoothed.certify([("good good", "bad bad bad")])
        assert result.label_id == 0 and result.words == 3
        assert "the premise does not change" in result.assumes

    def test_json_round_trip(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=1)
        [result] = smoothed.certify(["good great bad"])
        assert Certificate.from_dict(result.to_dict()) == result
        [prediction] = smoothed.predict(["good great bad"])
        assert Prediction.from_dict(prediction.to_dict()) == prediction

    def test_json_of_another_version(self):
        [result] = SmoothedClassifier(keyword_classifier, keep=1).certify(["good"])
        with pytest.raises(DataError, match="version 9"):
            Certificate.from_dict({**result.to_dict(), "version": 9})
        with pytest.raises(DataError, match="no radius"):
            Certificate.from_dict({k: v for k, v in result.to_dict().items() if k != "radius"})

    def test_tie_predicts_the_lowest_id_and_is_not_certified(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=1)
        [result] = smoothed.certify(["good bad"])
        assert (result.label_id, result.radius, result.critical_words) == (0, None, ())

    @pytest.mark.parametrize("text", ["good", "good good", "good good good"])
    def test_short_texts_keep_all_words(self, text):
        [result] = SmoothedClassifier(keyword_classifier, keep=3).certify([text])
        assert (result.radius, result.kept, result.masks) == (0, len(text.split()), 1)

    def test_twenty_thousand_words(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=2, masks=200)
        [result] = smoothed.certify(["good " * 20_000])
        assert result.words == 20_000 and result.masks == 200 and result.radius > 10

    def test_score_ensemble_reports_means(self):
        [result] = SmoothedClassifier(keyword_classifier, keep=1, ensemble="score").certify(
            ["good good good bad"]
        )
        assert result.scores == pytest.approx((5 / 12, 7 / 12), abs=1e-5)

    def test_same_seed_same_answer(self):
        def certified(seed):
            smoothed = SmoothedClassifier(hashing_classifier, keep=3, masks=100, seed=seed)
            return smoothed.certify(["a b c d e f g h i j k l m n o p"])

        assert certified(1) == certified(1)
        assert certified(1)[0].votes != certified(2)[0].votes


OF_ONE_CERTIFICATE = (*("certificate", "family", "masks", "ensemble", "selection_masks", "alpha"),)


class TestSampledCertificates:
    text = " ".join(["good"] * 18 + ["word"] * 6)

    def test_over_one_sample_all_read_the_same_votes_which_are_counted_once(self):
        asked = []

        def counting(texts):
            asked.extend(texts)
            return keyword_classifier(texts)

        smoothed = SmoothedClassifier(counting, keep=2, family="sampled", masks=2000, recheck=0)
        [kinds] = smoothed.compare([self.text], masks=2000)
        assert len(asked) == 2000 + 1000  # and those that select the label
        assert tuple(kinds) == CERTIFICATES
        assert len({result.votes for result in kinds.values()}) == 1
        assert all(result.masks == 2000 for result in kinds.values())
        assert kinds["paper-as-printed"].radius == kinds["paper"].radius + 1
        assert kinds["ablation"].radius <= kinds["paper"].radius
        assert kinds["exact"].radius >= kinds["ablation"].radius

    def test_only_exact_and_ablation_are_guarantees(self):
        [kinds] = SmoothedClassifier(keyword_classifier, keep=2).compare([self.text])
        assert {kind for kind, result in kinds.items() if result.guarantee} == {
            "exact",
            "ablation",
            "ablation-runner-up",
        }
        assert kinds["exact"].alpha is None and kinds["ablation"].alpha == 0.05
        assert not kinds["paper"].assumes

    @pytest.mark.parametrize(
        "options",
        [
            {"keep": 2},
            {"keep": 3, "masks": 300},
            {"keep": 3, "family": "windows"},
            {"keep": 3, "family": "sampled", "masks": 40, "seed": 5},
            {"keep": 1, "ensemble": "score", "masks": 10**6, "family": "all"},
            {"mask_rate": 0.8, "ensemble": "logit", "tolerance": 1e-4},
            {"mask_rate": 0.8, "masks": 5000},  # the sample where there are more sets than that
            {"keep": 2, "certificate": "ablation", "masks": 700, "selection_masks": 60},
            {"keep": 2, "certificate": "paper", "alpha": 0.01, "seed": 4},
        ],
        ids=str,
    )
    def test_compare_gives_each_certificate_as_choosing_it_does(self, options):
        smoothed = SmoothedClassifier(keyword_classifier, **options)
        texts = [self.text, "good bad film", self.text.replace("word", "bad"), "good " * 60]
        compared = smoothed.compare(texts)
        own = smoothed.options.certificate
        assert [one[own] for one in compared] == smoothed.certify(texts)
        plain = {name: options[name] for name in options if name not in OF_ONE_CERTIFICATE}
        same = {name: options[name] for name in ("masks", "selection_masks", "alpha")
                if own != "exact" and name in options}  # fmt: skip
        for kind in CERTIFICATES:
            if kind != own:
                sizes = {} if kind == "exact" else same
                alone = SmoothedClassifier(keyword_classifier, **plain, **sizes, certificate=kind)
                assert [one[kind] for one in compared] == alone.certify(texts)

    def test_what_compare_is_given_goes_to_the_certificates_that_it_means_something_to(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=2, ensemble="score")
        given = {"masks": 90, "selection_masks": 30, "alpha": 0.2, "family": "sampled"}
        [kinds] = smoothed.compare([self.text], **given)
        assert {one.masks for one in kinds.values()} == {90}
        assert kinds["exact"].ensemble == "score" and kinds["exact"].family == "sampled"
        assert (kinds["ablation"].alpha, kinds["ablation"].ensemble) == (0.2, "vote")

    def test_compare_asks_for_what_it_shows_only(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=2)
        [only] = smoothed.compare([self.text], ["exact"])
        assert only == {"exact": smoothed.certify([self.text])[0]}
        [one] = smoothed.compare([self.text], ["paper", "ablation"])
        assert list(one) == ["paper", "ablation"]
        assert smoothed.compare([self.text], []) == [{}] and smoothed.compare([]) == []
        with pytest.raises(OptionError, match="certificate must be one of"):
            smoothed.compare([], ["exakt"])

    def test_uncertain_votes_count_against_the_label(self):
        def near(texts):
            return [[0.5, 0.49] if "x" in text else [1.0, 0.0] for text in texts]

        text = "x " + "w " * 29
        options = {"keep": 1, "masks": 3000, "certificate": "ablation"}
        [sure] = SmoothedClassifier(near, **options).certify([text])
        [doubtful] = SmoothedClassifier(near, tolerance=0.02, **options).certify([text])
        assert doubtful.uncertain > 0 == sure.uncertain
        assert doubtful.radius < sure.radius

    def test_selection_and_estimation_draw_other_sets(self):
        calls = []

        def classify(texts):
            calls.append(list(texts))
            return [[1.0, 0.0]] * len(texts)

        options = {"certificate": "ablation", "masks": 30, "selection_masks": 30, "recheck": 0}
        SmoothedClassifier(classify, keep=2, **options).certify(["a b c d e f g h"])
        selection, estimation = calls
        assert len(selection) == len(estimation) == 30 and selection != estimation

    def test_selection_and_estimation_are_separate(self):
        """The label comes from the selection sample even where estimation disagrees."""
        calls = []

        def classify(texts):
            calls.append(len(texts))
            first = len(calls) == 1
            return [[1.0, 0.0] if first else [0.0, 1.0]] * len(texts)

        smoothed = SmoothedClassifier(
            classify, keep=1, certificate="ablation", masks=40, selection_masks=20, recheck=0
        )
        [result] = smoothed.certify(["a b c d"])
        assert calls == [20, 40]
        assert (result.label_id, result.votes, result.radius) == (0, (0, 40), None)


class TestOptions:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"keep": 2, "mask_rate": 0.5},
            {"keep": 2, "alpha": 0.05},
            {"keep": 2, "selection_masks": 10},
            {"keep": 2, "certificate": "ablation", "family": "all"},
            {"keep": 2, "certificate": "paper", "family": "auto"},
            {"keep": 2, "certificate": "ablation", "ensemble": "score"},
            {"keep": 2, "certificate": "proof"},
            {"keep": 2, "certificate": "ablation", "alpha": 1.0},
            {"keep": 2, "ensemble": "sum"},
            {"keep": 2, "family": "some"},
            {"keep": 2, "masks": 0},
            {"keep": 2, "masks": 1.5},
            {"keep": 2, "seed": -1},
            {"keep": 2, "labels": "pos"},
            {"keep": 2, "labels": ["pos", "pos"]},
            {"keep": 2, "hide": "delete"},
            {"keep": 2, "mask_token": "two words"},
            {"keep": 2, "tolerance": -1},
            {"keep": 2, "tolerance": float("nan")},
            {"keep": 1, "threat": "typos"},
            {"keep": 1, "threat": "edits"},  # this function sees where a word stands
            {"keep": 1, "threat": "edits", "hide": "mask"},
            {"keep": 2, "threat": "edits", "hide": "drop"},
            {"mask_rate": 0.9, "threat": "edits", "hide": "drop"},
            {"keep": 1, "threat": "edits", "hide": "drop", "family": "auto"},
            {"keep": 1, "threat": "edits", "hide": "drop", "family": "windows"},
            {"keep": 1, "threat": "edits", "hide": "drop", "certificate": "ablation"},
            {"keep": 1, "threat": "edits", "hide": "drop", "certificate": "paper"},
        ],
        ids=str,
    )
    def test_refused(self, options):
        with pytest.raises(OptionError):
            SmoothedClassifier(keyword_classifier, **options)

    def test_message_quotes_the_value_and_says_what_to_do(self):
        with pytest.raises(OptionError, match=r"alpha=0.1 means nothing.*'ablation'"):
            SmoothedClassifier(keyword_classifier, keep=1, alpha=0.1)

    @pytest.mark.parametrize(
        ("certificate", "smoothed"),
        [("safer", "by synonyms"), ("deletion", "by deleted words")],
    )
    def test_a_certificate_of_another_kind_of_classifier(self, certificate, smoothed):
        told = f"certificate='{certificate}' is that of a classifier smoothed {smoothed}"
        with pytest.raises(OptionError, match=told):
            SmoothedClassifier(keyword_classifier, keep=1, certificate=certificate)
        with pytest.raises(OptionError, match="certificate must be one of"):
            SmoothedClassifier(keyword_classifier, keep=1, certificate=[certificate])

    def test_labels_must_fit_the_classifier(self):
        smoothed = SmoothedClassifier(keyword_classifier, keep=1, labels=["a", "b", "c"])
        with pytest.raises(OptionError, match="labels names 3 classes"):
            smoothed.certify(["good"])

    def test_a_name_is_not_a_classifier(self):
        with pytest.raises(OptionError, match="from_pretrained"):
            SmoothedClassifier("some/model", keep=1)

    def test_not_callable(self):
        with pytest.raises(OptionError, match="callable"):
            SmoothedClassifier(42, keep=1)


class TestBadClassifiers:
    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (lambda n: np.ones((n + 1, 2)), "shape"),
            (lambda n: np.ones((n, 0)), "at least 2 classes"),
            (lambda n: np.full((n, 2), np.nan), "finite"),
            (lambda n: np.full((n, 2), np.inf), "finite"),
            (lambda n: [[1, 2]] * (n - 1) + [[]], "at least 2 classes"),
            (lambda n: [[1, 2]] * (n - 1) + [[1]], "the class 1: say how many there are"),
            (lambda n: "positive", "table of numbers"),
            (lambda n: None, "shape|table"),
        ],
    )
    def test_unusable_answers(self, answer, message):
        smoothed = SmoothedClassifier(lambda texts: answer(len(texts)), keep=1)
        with pytest.raises(ClassifierError, match=message):
            smoothed.certify(["a b c"])

    def test_classes_may_not_change(self):
        classifier = FunctionClassifier(
            lambda texts: np.ones((len(texts), 2 + ("z" in texts[0]))), batch_size=1
        )
        with pytest.raises(ClassifierError, match="3 classes, expected 2"):
            SmoothedClassifier(classifier, keep=1).certify(["a z"])

    def test_an_exception_is_told_with_its_cause(self):
        def broken(texts):
            raise RuntimeError("no GPU today")

        with pytest.raises(ClassifierError, match="RuntimeError: no GPU today") as caught:
            SmoothedClassifier(broken, keep=1).certify(["a"])
        assert isinstance(caught.value.__cause__, RuntimeError)

    def test_nothing_is_classified_before_all_texts_are_checked(self):
        calls = []
        smoothed = SmoothedClassifier(shown_to(calls), keep=1)
        with pytest.raises(TextError, match="text 1"):
            smoothed.certify(["fine", " "])
        assert not calls

    def test_no_texts(self):
        assert SmoothedClassifier(keyword_classifier, keep=1).certify([]) == []

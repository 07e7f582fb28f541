"""A cascade of functions: who answers, what is said, and how it is attacked and measured."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ranmask import FunctionClassifier, SmoothedClassifier, attack
from ranmask.attacks.api import as_victim
from ranmask.attacks.outcome import AttackOutcome, Change
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.attacks.victims import CascadeVictim, Question
from ranmask.errors import DataError, ModelError, OptionError, TextError
from ranmask.evaluation.cascade_report import (
    Accuracy,
    CascadeReport,
    Paths,
    Proved,
    covers,
    measure,
)
from ranmask.models.testing import keyword_classifier
from ranmask.results import CascadeCertificate, CascadePrediction, Certificate
from ranmask.smoothing.cascade import Cascade
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.words import document


def asked(attempt, text, near):
    """A question about texts as they are spelt."""
    return Question(attempt, document(text), document(near))


NAMES = ("negative", "positive")
KINDS = ("clean", "attacked")


def last_word(texts):
    """A plain classifier that reads the last word alone."""
    return [[0.2, 0.8] if text.split()[-1] == "good" else [0.9, 0.1] for text in texts]


def exclamations(texts):
    """Suspicious of exclamation marks, the more the more; never of anything else."""
    shares = [min(1.0, 0.4 * text.split().count("!")) for text in texts]
    return [[1 - share, share] for share in shares]


def cascade(threshold=0.5, plain=last_word, keep=1, kinds=KINDS, **options):
    return Cascade(
        FunctionClassifier(plain, labels=NAMES),
        SmoothedClassifier(keyword_classifier, keep=keep, labels=NAMES, **options),
        FunctionClassifier(exclamations, labels=kinds),
        threshold,
    )


class TestLabels:
    TEXTS = ("awful bad good", "awful bad good ! !", "best fine fine ! ! film good", "good good")

    def test_the_path_follows_from_the_suspicion(self):
        found = cascade().predict(self.TEXTS)
        assert [one.path for one in found] == ["plain", "smoothed", "smoothed", "plain"]
        assert [one.suspicion for one in found] == pytest.approx([0, 0.8, 0.8, 0], abs=2**-16)
        assert [one.label for one in found] == ["positive", "negative", "positive", "positive"]
        assert all(isinstance(one, CascadePrediction) for one in found)

    def test_each_path_says_what_its_classifier_says(self):
        both = cascade()
        plain, smoothed, *_ = both.predict(self.TEXTS)
        assert plain.scores == (0.2, 0.8) and plain.votes == (0, 1) and plain.masks == 1
        assert plain.kept == plain.words == 3 and plain.family == "whole text"
        [alone] = both.smoothed.predict(self.TEXTS[1:2])
        assert smoothed == CascadePrediction(
            **vars(alone), path="smoothed", suspicion=0.8000030517578125
        )

    def test_alone_or_together(self):
        both = cascade()
        assert both.predict(self.TEXTS) == [both.predict([text])[0] for text in self.TEXTS]
        assert both.certify(self.TEXTS) == [both.certify([text])[0] for text in self.TEXTS]

    def test_the_threshold_is_not_above_itself(self):
        text = "good ! !"
        suspicion = cascade().suspicions([text])[0]
        assert cascade(float(suspicion)).predict([text])[0].path == "plain"
        assert cascade(float(suspicion) - 1e-6).predict([text])[0].path == "smoothed"

    @pytest.mark.parametrize("kinds", [KINDS, KINDS[::-1]], ids=["clean first", "attacked first"])
    def test_the_order_of_the_detectors_classes(self, kinds):
        suspicions = cascade(kinds=kinds).suspicions(["a ! !", "a"])
        assert (suspicions[0] > suspicions[1]) == (kinds == KINDS)

    def test_certificates_are_the_smoothed_classifiers(self):
        both = cascade()
        results = both.certify(self.TEXTS)
        for result, alone, shown in zip(
            results, both.smoothed.certify(self.TEXTS), both.predict(self.TEXTS), strict=True
        ):
            own = {name: getattr(result, name) for name in vars(alone) if name != "assumes"}
            assert own == {name: value for name, value in vars(alone).items() if name != "assumes"}
            assert (result.shown_label, result.shown_label_id) == (shown.label, shown.label_id)
            assert (result.path, result.suspicion) == (shown.path, shown.suspicion)
            assert result.assumes[:-1] == alone.assumes
            assert "none is given for `shown_label`" in result.assumes[-1]
        assert results[0].label == "negative" and results[0].shown_label == "positive"

    def test_no_texts(self):
        assert cascade().predict([]) == [] == cascade().certify([])

    def test_a_text_without_words_is_named(self):
        with pytest.raises(TextError, match="text 1: the text has no words"):
            cascade().predict(["good", " "])

    def test_to_and_from_json(self):
        [result] = cascade().certify(["awful good"])
        [shown] = cascade().predict(["awful good"])
        for one in (result, shown):
            assert type(one).from_dict(json.loads(json.dumps(one.to_dict()))) == one
        assert CascadeCertificate.from_dict(result.to_dict()).path == "plain"
        with pytest.raises(DataError, match="not a CascadeCertificate: no shown_label"):
            CascadeCertificate.from_dict(cascade().smoothed.certify(["a good"])[0].to_dict())

    def test_is_a_text_classifier(self):
        both: CertifiedClassifier = cascade()
        assert both.labels == NAMES and both.base.labels == NAMES
        described = both.description()
        assert described["kind"] == "cascade" and described["threshold"] == 0.5
        assert set(described) == {"kind", "threshold", "plain", "smoothed", "detector"}
        json.dumps(described)

    def test_what_cannot_be_certified(self):
        drawn = cascade(sampling="fresh")
        with pytest.raises(OptionError):
            drawn.check_certifiable()
        assert drawn.predict(["good ! !"])[0].path == "smoothed"


class TestRefused:
    @pytest.mark.parametrize("threshold", [-0.1, 1.1, "half", True, float("nan")], ids=str)
    def test_thresholds(self, threshold):
        with pytest.raises(OptionError, match="threshold must be a number from 0 to 1"):
            cascade(threshold)

    def test_a_detector_of_other_things(self):
        with pytest.raises(ModelError, match="this one's are spam, ham"):
            cascade(kinds=("spam", "ham"))
        with pytest.raises(ModelError, match="this one's are unnamed"):
            cascade(kinds=None)

    def test_other_classes(self):
        plain = FunctionClassifier(last_word, labels=NAMES[::-1])
        with pytest.raises(ModelError, match="the plain classifier has the classes positive, neg"):
            Cascade(plain, cascade().smoothed, cascade().detector)

    def test_parts_whose_scores_mean_nothing(self):
        """Of a screened model only votes are right, and a cascade shows scores."""
        both = cascade()
        both.plain.votes_only = True
        with pytest.raises(OptionError, match=r"a cascade needs scores.*float32"):
            Cascade(both.plain, both.smoothed, both.detector)


class TestVictim:
    def test_answers_are_those_of_the_path(self):
        both = cascade()
        texts = ["awful bad good", "awful bad good ! !", "best ! !", "good"]
        questions = [asked(number, text, text) for number, text in enumerate(texts)]
        answers = as_victim(both).answer(questions)
        assert answers.labels.tolist() == [one.label_id for one in both.predict(texts)]
        alone = [as_victim(part).answer(questions) for part in (both.plain, both.smoothed)]
        expected = [alone[path].shares[place] for place, path in enumerate([0, 1, 1, 0])]
        assert np.array_equal(answers.shares, np.array(expected))

    def test_the_attack_goes_through_the_detector(self):
        """``!`` is harmless to the votes, but it is what reveals the text; the search sees that."""

        def unsure(texts):
            return [[0.45, 0.55] if text.endswith("good") else [0.9, 0.1] for text in texts]

        both = cascade(plain=unsure)
        words = AttackResources(vocabulary=Vocabulary("made up", ("film", "awful")))
        text = " ".join(["good"] * 4 + ["!", "!"] + ["good"] * 5)
        given = ([text], [1], "anywords")
        [alone] = attack(both.smoothed, *given, resources=words, budget=2)
        [whole] = attack(both, *given, resources=words, budget=2)
        assert alone.status == "failed" and whole.status == "succeeded"
        [after] = both.predict([whole.adversarial])
        assert after.path == "plain" and after.label_id == 0 == whole.final_label

    def test_copies_are_counted(self):
        victim = as_victim(cascade())
        assert isinstance(victim, CascadeVictim)
        victim.answer([asked(1, "good", "good"), asked(2, "a b ! !", "a b ! !")])
        assert victim.copies_scored == 2 + 1 + 4  # the detector's, the plain, the masked copies
        victim.forget(2)
        victim.answer([asked(2, "a b ! !", "a b ! !")])
        assert victim.copies_scored == 7 + 1 + 4

    def test_no_radius(self):
        words = AttackResources(vocabulary=Vocabulary("made up", ("film",)))
        given = (["good"], [1], "anywords")
        with pytest.raises(OptionError, match="the cascade as a whole carries no certificate"):
            attack(cascade(), *given, resources=words, budget="radius")

    def test_fresh_masks(self):
        assert as_victim(cascade()).again() is None
        again = as_victim(cascade(sampling="fresh", masks=5)).again()
        assert isinstance(again, CascadeVictim)


def outcome(number, text, label, status, adversarial=None):
    changes = ()
    if adversarial is not None:
        pairs = enumerate(zip(text.split(), adversarial.split(), strict=True))
        changes = tuple(Change(place, *words) for place, words in pairs if words[0] != words[1])
    return AttackOutcome(
        number,
        text,
        label,
        status,
        adversarial=adversarial,
        words_changed=len(changes),
        changes=changes,
    )


class TestReport:
    OUTCOMES = (
        # Plain is fooled after; the smoothed one is not, and the detector sees it.
        outcome(1, "best fine fine fine a good", 1, "succeeded", "best fine fine fine ! !"),
        # Plain is fooled, and the detector is too.
        outcome(2, "best fine fine fine good", 1, "succeeded", "best fine fine fine film"),
        outcome(3, "awful bad", 0, "failed", "awful film"),
        outcome(4, "awful good", 0, "skipped"),  # plain was wrong; smoothed is right
        AttackOutcome(5, "", None, "error", error="no words"),
    )

    def test_counts(self):
        found = measure(cascade(), self.OUTCOMES)
        assert (found.texts, found.succeeded, found.failed, found.skipped) == (4, 2, 1, 1)
        assert found.class_texts == (2, 2)
        assert found.plain == Accuracy(3, 1, clean_classes=(1, 2), robust_classes=(1, 0))
        assert found.smoothed == Accuracy(4, 3, clean_classes=(2, 2), robust_classes=(1, 2))
        assert found.cascade == Accuracy(3, 2, clean_classes=(1, 2), robust_classes=(1, 1))
        assert found.clean_classes("cascade").balanced == Fraction(3, 4)
        assert found.robust_classes("plain").recall(0) == Fraction(1, 2)
        assert found.clean_paths == Paths(4, 0) and found.attacked_paths == Paths(2, 1)
        # One of two attacked texts is above all clean ones, the other ties with them.
        assert found.roc is not None and float(found.roc.area) == 0.75
        # The first has radius 1 and 2 changed words; the second 2 and 1.
        radii = [one.radius for one in cascade().certify([one.text for one in self.OUTCOMES[:2]])]
        assert radii == [1, 2] and found.proved == Proved(right=4, harmless=1)

    def test_counts_by_hand_for_any_outcomes(self):
        """Against the definitions, one text after another."""
        both = cascade()
        found = measure(both, self.OUTCOMES, certified=False)
        right = 0
        for one in self.OUTCOMES[:4]:
            text = one.adversarial if one.status == "succeeded" else one.text
            right += one.status != "skipped" and both.predict([text])[0].label_id == one.label
        assert found.cascade.robust == right and found.proved is None

    def test_to_and_from_json(self):
        found = measure(cascade(), self.OUTCOMES)
        line = json.loads(json.dumps(found.to_dict()))
        assert CascadeReport.from_dict(line) == found
        assert line["shares"]["AUC"] == {"share": 0.75, "exactly": "3/4"}
        assert line["shares"]["plain_robust"]["share"] == 0.25
        assert line["shares"]["majority"] == 0.5
        assert line["shares"]["plain_balanced_robust"] == 0.25
        with pytest.raises(DataError, match="version 9"):
            CascadeReport.from_dict({**line, "version": 9})
        with pytest.raises(DataError, match="not a whole cascade report"):
            CascadeReport.from_dict({key: line[key] for key in line if key != "plain"})

    def test_nothing_succeeded(self):
        found = measure(cascade(), self.OUTCOMES[2:4])
        assert found.roc is None and found.attacked_paths == Paths(0, 0)
        assert CascadeReport.from_dict(json.loads(json.dumps(found.to_dict()))) == found

    def test_nothing_usable(self):
        with pytest.raises(DataError, match="none of the 1 attacked texts can be used"):
            measure(cascade(), self.OUTCOMES[4:])

    def test_classes_of_another_corpus(self):
        with pytest.raises(DataError, match=r"row 1: .*class 2; the cascade has 2: negative"):
            measure(cascade(), [outcome(1, "a", 2, "failed")])

    def test_what_a_certificate_covers(self):
        [result] = cascade().certify(["best fine fine fine good"])
        assert isinstance(result, Certificate) and result.radius == 2
        attacked = self.OUTCOMES[1]
        assert covers(result, attacked)
        assert covers(result, replace(attacked, words_changed=2))
        assert not covers(result, replace(attacked, words_changed=3))
        assert not covers(replace(result, threat="synonyms"), attacked)
        assert not covers(replace(result, guarantee=False), attacked)
        assert not covers(replace(result, radius=None), attacked)
        premise = (replace(attacked.changes[0], premise=True),)
        assert not covers(result, replace(attacked, changes=premise))


def test_a_cascade_in_a_cascade_is_refused():
    detector = FunctionClassifier(exclamations, labels=KINDS)
    with pytest.raises(ModelError, match="is a cascade itself"):
        Cascade(FunctionClassifier(last_word, labels=NAMES), cascade(), detector)

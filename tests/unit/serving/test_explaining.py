"""What the page shows of a text, and the attack that it offers."""

import json

import numpy as np
import pytest

from ranmask import (
    ProtectedClassifier,
    SmoothedClassifier,
    SynonymSets,
    SynonymSmoothedClassifier,
)
from ranmask.attacks.outcome import AttackOutcome
from ranmask.errors import OptionError, ReaderWarning
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.models.function import FunctionClassifier
from ranmask.models.normalising import Normaliser
from ranmask.models.testing import keyword_classifier
from ranmask.models.word_table import WordTable, spelt
from ranmask.serving.attack_vocabulary import WORDS, most_telling
from ranmask.serving.caching import CachingClassifier
from ranmask.serving.explaining import attack_once, explain
from ranmask.smoothing.store import load_default
from ranmask.words import Document, distance

REVIEW = "A wonderful film , superb acting and a moving , perfect story that stays with you"


class Counting(BaseClassifier):
    """The word table of the reviews, which counts the copies that it is asked about."""

    def __init__(self):
        self.inner = load_default("reviews-words").base
        self.labels = self.inner.labels
        self.copies = 0

    def score(self, copies):
        self.copies += sum(map(len, copies))
        return self.inner.score(copies)

    def configured(self, *, hide=None, mask_token=None):
        return self


@pytest.mark.parametrize(
    "options",
    [
        {"keep": 1, "ensemble": "score"},
        {"keep": 2, "ensemble": "vote"},
        {"keep": 3, "ensemble": "vote", "certificate": "ablation", "masks": 500},
        {"keep": 4, "ensemble": "vote", "certificate": "paper-as-printed", "masks": 500},
    ],
)
def test_the_result_is_the_certificate_and_the_curve_is_its_own(options):
    smoothed = load_default("reviews-words", **options)
    explained = json.loads(json.dumps(explain(smoothed, REVIEW, copies=5)))
    [certificate] = smoothed.certify([REVIEW])
    assert explained["result"] == json.loads(json.dumps(certificate.to_dict()))
    assert explained["words"] == REVIEW.split()
    assert explained["labels"] == ["negative", "positive"]
    [(kind, curve)] = explained["curves"].items()
    assert kind == certificate.certificate
    positive = [changed for changed, left in enumerate(curve["margins"]) if left > 0]
    last = positive[-1] if positive else None
    assert curve["radius"] == (last + 1 if kind == "paper-as-printed" else last)
    assert curve["guarantee"] == (not kind.startswith("paper"))
    assert curve["radius"] == certificate.radius
    assert len(explained["copies"]) == 5
    assert len(explained["word_votes"]) == certificate.words_read


def test_copies_vote_as_the_base_classifier_says():
    smoothed = load_default("reviews-words", keep=2, ensemble="vote")
    explained = explain(smoothed, REVIEW, copies=7)
    [shown] = smoothed.certify_showing([REVIEW], 7)
    assert explained["copies"] == list(shown.copies)


def test_a_word_votes_as_the_one_copy_that_shows_it():
    explained = explain(load_default("reviews-words"), REVIEW, copies=100)
    votes = [vote["label_id"] for vote in explained["word_votes"]]
    assert votes == [copy["label_id"] for copy in explained["copies"]]
    [rows] = load_default("reviews-words").base.score(
        [MaskedCopies(Document(tuple(REVIEW.split())), 16, np.arange(16, dtype=np.int32)[:, None])]
    )
    leads = [vote["lead"] for vote in explained["word_votes"]]
    assert leads == pytest.approx(np.abs(rows[:, 0] - rows[:, 1]).tolist(), abs=1e-4)


def test_a_word_votes_as_most_copies_that_show_it():
    def classify(texts):
        return [["good" not in text, "good" in text] for text in texts]

    smoothed = SmoothedClassifier(classify, keep=2, hide="drop", ensemble="vote")
    votes = explain(smoothed, "a good film good")["word_votes"]
    # "a" is in three copies, two of which show "good"; "good" is in none without it.
    assert votes == [
        {"label_id": 1, "lead": pytest.approx(1 / 3, abs=1e-4)},
        {"label_id": 1, "lead": 1.0},
        {"label_id": 1, "lead": pytest.approx(1 / 3, abs=1e-4)},
        {"label_id": 1, "lead": 1.0},
    ]


def test_words_that_stand_twice_vote_alike_where_they_have_one_copy():
    smoothed = load_default("reviews-words", family="distinct", ensemble="vote")
    votes = explain(smoothed, "superb dull superb film")["word_votes"]
    alone = explain(load_default("reviews-words", ensemble="vote"), "superb dull superb film")
    assert votes == alone["word_votes"]


def test_words_that_no_copy_shows_have_no_vote():
    smoothed = load_default("reviews-words", family="sampled", masks=3)
    votes = explain(smoothed, REVIEW)["word_votes"]
    shown = {place for copy in explain(smoothed, REVIEW)["copies"] for place in copy["kept"]}
    assert {place for place, vote in enumerate(votes) if vote is not None} == shown
    assert len(shown) <= 3


def test_a_reader_s_votes_are_told_with_the_words_that_it_read():
    table = load_default("reviews-words").base
    protected = ProtectedClassifier(
        table, reader=table, reader_weights=[0.25, 0.75], **table.smoothing
    )
    text = "superb wonderful film dull tedious boring"
    whole, first, second = explain(protected, text)["readings"]
    assert (whole["start"], whole["stop"], whole["weight"]) == (0, 6, 0.25)
    assert first == {"start": 0, "stop": 3, "weight": 0.75, "label_id": 1}
    assert second == {"start": 3, "stop": 6, "weight": 0.75, "label_id": 0}
    [alone] = load_default("reviews-words").predict([text])
    assert whole["label_id"] == alone.label_id
    assert explain(load_default("reviews-words"), text)["readings"] == []


def test_a_reader_that_fails_says_nothing():
    def silent(texts):
        raise ConnectionError("nobody there")

    table = load_default("reviews-words").base
    protected = ProtectedClassifier(table, reader=silent, reader_weights=[2], **table.smoothing)
    with pytest.warns(ReaderWarning, match="nobody there"):
        [reading] = explain(protected, REVIEW)["readings"]
    assert reading["label_id"] is None


def test_no_copy_is_computed_twice():
    base = Counting()
    smoothed = SmoothedClassifier(base, keep=1, recheck=0)
    explain(smoothed, REVIEW)
    assert base.copies == len(REVIEW.split())


def test_a_remembering_classifier_gives_every_copy_its_own_row():
    inner = load_default("reviews-words").base
    remembering = CachingClassifier(inner)
    random = np.random.default_rng(0)
    texts = [Document(tuple(REVIEW.split())), Document(tuple(REVIEW.split()[::-1]))]
    for _ in range(3):
        asked = [
            MaskedCopies(text, 16, np.sort(random.integers(0, 16, (9, 2)), axis=1).astype(np.int32))
            for text in texts
        ]
        for one, other in zip(remembering.score(asked), inner.score(asked), strict=True):
            assert (one == other).all()


def test_a_remembering_classifier_looks_a_text_up_once_for_all_its_copies():
    class Counted(Document):
        hashes = 0

        def __hash__(self):
            Counted.hashes += 1
            return super().__hash__()

    text = Counted(tuple(REVIEW.split()))
    copies = [MaskedCopies(text, 16, np.arange(16, dtype=np.int32)[:, None])]
    CachingClassifier(load_default("reviews-words").base).score(copies)
    assert Counted.hashes <= 2  # to look, and to keep


def closed_table():
    """It knows "good", which is for class 1, and "poor", which is for class 0; no other word."""
    limit = 2**12
    return WordTable(
        np.array([[limit, -limit], [-limit, limit]], dtype=np.int16),
        np.zeros(2, dtype=np.int64),
        labels=["a", "b"],
        shift=8,
        normaliser=Normaliser("letters"),
        vocabulary=spelt(["good", "poor"]),
    )


def test_words_and_copies_that_say_nothing_vote_for_no_class():
    smoothed = SmoothedClassifier(closed_table(), **WordTable.smoothing)
    explained = explain(smoothed, "good unheard poor")
    said = [copy["label_id"] for copy in explained["copies"]]
    votes = [vote and vote["label_id"] for vote in explained["word_votes"]]
    assert said == votes and said[1] is None and {said[0], said[2]} == {0, 1}
    assert sum(explained["result"]["votes"]) == 2
    [shown] = smoothed.certify_showing(["good unheard poor"], 3)
    assert explained["copies"] == list(shown.copies)


def test_words_whose_copies_say_this_as_often_as_that_vote_for_no_class():
    def classify(texts):
        return [["good" not in text, "good" in text] for text in texts]

    smoothed = SmoothedClassifier(classify, keep=2, hide="drop", ensemble="vote")
    assert explain(smoothed, "a good film")["word_votes"][0] is None


def test_characters_of_known_words_have_no_curve_which_is_that_of_any_word():
    smoothed = SmoothedClassifier(closed_table(), **WordTable.smoothing, threat="characters")
    explained = explain(smoothed, " ".join(["good"] * 9))
    [certificate] = smoothed.certify([" ".join(["good"] * 9)])
    assert explained["result"]["radius"] == certificate.radius > 2
    assert explained["curves"] == {}


def test_copies_must_be_a_number():
    with pytest.raises(OptionError, match="copies must be"):
        explain(load_default("reviews-words"), REVIEW, copies=0)


@pytest.mark.parametrize("options", [{}, {"keep": 2, "ensemble": "vote"}, {"threat": "edits"}])
def test_attacks_fail_within_the_radius_and_succeed_just_beyond_it(options):
    smoothed = load_default("reviews-words", **options)
    [certificate] = smoothed.certify([REVIEW])
    within = attack_once(smoothed, REVIEW, budget="radius")
    assert (within.status, within.radius) == ("failed", certificate.radius)
    assert within.words_changed == certificate.radius > 0, "the attack did not use its budget"
    assert within.final_share < within.clean_share
    beyond = attack_once(smoothed, REVIEW, certificate.label_id, "radius+1")
    assert beyond.status == "succeeded"
    assert distance(REVIEW, beyond.adversarial) == beyond.words_changed == certificate.radius + 1
    assert smoothed.predict([beyond.adversarial])[0].label_id != certificate.label_id
    assert AttackOutcome.from_dict(beyond.to_dict()) == beyond


def test_a_failed_attack_tries_again_until_its_time_is_up():
    smoothed = load_default("reviews-words")
    patient = attack_once(smoothed, REVIEW, budget="radius")
    hasty = attack_once(smoothed, REVIEW, budget="radius", seconds=0)
    assert 1 < hasty.queries < patient.queries


def test_a_label_that_the_victim_does_not_give_is_not_attacked():
    assert attack_once(load_default("reviews-words"), REVIEW, 0, 3).status == "skipped"


def test_a_class_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match="from 0 to 1, not 7"):
        attack_once(load_default("reviews-words"), REVIEW, 7)


def test_pairs_are_explained_and_attacked_in_the_hypothesis():
    base = FunctionClassifier(
        lambda pairs: [[float("good" not in two), float("good" in two)] for _, two in pairs]
    )
    smoothed = SmoothedClassifier(base, keep=1)
    pair = ("A good premise", "good good good fine")
    assert explain(smoothed, pair)["words"] == ["good", "good", "good", "fine"]
    outcome = attack_once(smoothed, pair, budget="radius+1")
    assert outcome.status == "succeeded"
    assert outcome.adversarial[0] == pair[0]


def test_the_most_telling_words_come_first():
    base = load_default("reviews-words").base
    against_positive = most_telling(base, 1)
    assert sorted(against_positive) == sorted(WORDS)
    first, last = (
        base.score([MaskedCopies(Document((word,)), 1, np.zeros((1, 1), dtype=np.int32))])[0][0]
        for word in (against_positive[0], against_positive[-1])
    )
    assert first[0] - first[1] > 0.5
    assert last[0] - last[1] < -0.5


def test_synonyms_have_a_certificate_only_and_are_not_attacked_with_any_words():
    films = SynonymSets({"film": ["movie"], "movie": ["film"]})
    smoothed = SynonymSmoothedClassifier(keyword_classifier, films, masks=50, selection_masks=20)
    explained = explain(smoothed, "a good film")
    assert explained["result"] == smoothed.certify(["a good film"])[0].to_dict()
    assert (explained["copies"], explained["curves"]) == ([], {})
    assert (explained["word_votes"], explained["readings"]) == ([], [])
    assert explained["replacements"] == [[], [], ["movie"]]
    with pytest.raises(OptionError, match="not smoothed by masks"):
        attack_once(smoothed, "a good film")


def test_a_given_tolerance_holds_for_all_that_is_shown():
    smoothed = SmoothedClassifier(Counting(), keep=1, tolerance=0.2)
    explained = explain(smoothed, REVIEW)
    assert explained["result"]["uncertain"] == smoothed.certify([REVIEW])[0].uncertain > 0
    certain = explain(SmoothedClassifier(Counting(), keep=1), REVIEW)
    low, high = (one["curves"]["exact"]["margins"][0] for one in (explained, certain))
    assert low < high

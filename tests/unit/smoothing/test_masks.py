"""Which copies vote: those of a fixed family, those drawn for a text, those a model weighs."""

import json
from fractions import Fraction

import numpy as np
import pytest

from ranmask import (
    BaseClassifier,
    ClassifierError,
    FunctionClassifier,
    OptionError,
    Prediction,
    SmoothedClassifier,
    TextError,
)
from ranmask.certificates.families import family, fresh_sets, sampled_sets, weighted_sets
from ranmask.models.testing import hashing_classifier, keyword_classifier
from ranmask.options import SmoothingOptions
from ranmask.smoothing import masks
from ranmask.smoothing.masks import copies_of, fixed_family
from ranmask.words import Document, document, text_seed

LETTERS = "a b c d e f g h i j k l"
TEXTS = [LETTERS, "good film", LETTERS.upper(), "one", "bad " * 30]
DOCUMENTS = [document(text) for text in TEXTS]


def even_losses(documents):
    return [np.ones(len(one.words)) for one in documents]


def vowel_losses(documents):
    """A language model that is surprised by vowels only."""
    return [np.array([float(word in "aeiou") for word in one.words]) for one in documents]


def smoothed(sampling="fresh", base=hashing_classifier, **options):
    if sampling == "lm":
        options.setdefault("word_losses", vowel_losses)
    if "mask_rate" not in options:
        options.setdefault("keep", 3)
    return SmoothedClassifier(base, sampling=sampling, **options)


def sets_of(classifier, text):
    [copies] = classifier.copies([document(text)])
    return copies.kept.tolist()


class TestTextSeed:
    def test_golden(self):
        """A result names its masks by seed and text alone, so this may never change."""
        assert text_seed(0, None, ("a", "b")) == GOLDEN
        assert text_seed(7, "a premise", ("é",)) == GOLDEN_PAIR

    def test_no_two_texts_share_one(self):
        texts = [
            (0, None, ("a", "b")),
            (1, None, ("a", "b")),
            (0, "", ("a", "b")),
            (0, "a", ("b",)),
            (0, "a b", ("b",)),
            (0, "a", ("b", "b")),
            (0, None, ("a b".replace(" ", ""),)),
            (0, None, ("b", "a")),
            (0, None, ('a"', "b")),
            (0, None, ('"a', "b")),
        ]
        seeds = [text_seed(*one) for one in texts]
        assert len(set(seeds)) == len(texts)
        assert all(0 <= seed < 2**256 for seed in seeds) and max(seeds) > 2**240


def test_texts_of_one_length_are_drawn_at_once(monkeypatch):
    """A call for each text would take ten times as long."""
    asked = []

    def counting(words, kept, masks, seeds):
        asked.append((words, len(seeds)))
        return fresh_sets(words, kept, masks, seeds)

    monkeypatch.setattr(masks.families, "fresh_sets", counting)
    list(smoothed("fresh").copies(DOCUMENTS * 4))
    assert sorted(asked) == [(1, 4), (2, 4), (12, 8), (30, 4)]
    asked.clear()
    monkeypatch.setattr(masks, "_MOST_DRAWN", 1)  # else many long texts would take all memory
    drawn = smoothed("fresh").copies(DOCUMENTS)
    next(drawn)
    assert asked == [(12, 1)]
    list(drawn)
    assert asked == [(len(one.words), 1) for one in DOCUMENTS]


@pytest.mark.parametrize("sampling", ["fresh", "lm"])
class TestDrawnForEachText:
    def test_a_hundred_sets_by_default(self, sampling):
        [result] = smoothed(sampling).predict([LETTERS])
        assert (result.masks, result.family, result.kept) == (100, sampling, 3)
        assert type(result) is Prediction
        assert Prediction.from_dict(result.to_dict()) == result

    def test_as_many_as_are_asked_for_even_where_there_are_fewer_sets(self, sampling):
        """It is the paper's ensemble: a set is drawn again."""
        for text, most in (("a b c d", 4), ("a b c", 1), ("a", 1)):
            sets = sets_of(smoothed(sampling, masks=77), text)
            assert len(sets) == 77 and len(set(map(tuple, sets))) <= most

    def test_the_same_text_has_the_same_sets_in_any_company(self, sampling):
        classifier = smoothed(sampling)
        together = list(classifier.copies(DOCUMENTS))
        for one, copies in zip(DOCUMENTS, together, strict=True):
            assert copies.document == one
            [alone] = smoothed(sampling).copies([one])
            assert (copies.kept == alone.kept).all()
        for one, copies in zip(DOCUMENTS[::-1], classifier.copies(DOCUMENTS[::-1]), strict=True):
            assert copies.kept.tolist() == sets_of(classifier, " ".join(one.words))

    def test_nor_on_how_many_are_drawn_at_once(self, sampling, monkeypatch):
        # Of one length in a row and apart, and no two of them alike.
        row = [document(LETTERS.replace(letter, letter * 2)) for letter in "aebcd"]
        documents = [*row, DOCUMENTS[1], *row[::-1], *DOCUMENTS]
        whole = [sets_of(smoothed(sampling), " ".join(one.words)) for one in documents]
        for most in (1, 700, masks._MOST_DRAWN):  # 300 positions a text: one, two, all at once
            monkeypatch.setattr(masks, "_MOST_DRAWN", most)
            found = list(smoothed(sampling).copies(documents))
            assert [copies.kept.tolist() for copies in found] == whole
            assert [copies.document for copies in found] == documents
        assert list(smoothed(sampling).copies([])) == []

    def test_results_do_not_depend_on_company(self, sampling):
        classifier = smoothed(sampling)
        together = classifier.predict(TEXTS)
        assert together == [classifier.predict([text])[0] for text in TEXTS]
        assert together[::-1] == classifier.predict(TEXTS[::-1])

    def test_other_texts_have_other_sets(self, sampling):
        """One word changed, to one that the language model finds as likely."""
        classifier = smoothed(sampling)
        assert sets_of(classifier, LETTERS) != sets_of(classifier, LETTERS.replace("b", "x"))
        fixed = smoothed("fixed")
        assert sets_of(fixed, LETTERS) == sets_of(fixed, LETTERS.replace("b", "x"))

    def test_blanks_are_no_part_of_a_text(self, sampling):
        classifier = smoothed(sampling)
        spread = LETTERS.replace(" ", "\n  ")
        assert sets_of(classifier, LETTERS) == sets_of(classifier, spread)

    def test_a_premise_is(self, sampling):
        classifier = smoothed(sampling)
        sets = [
            sets_of(classifier, text) for text in (LETTERS, ("", LETTERS), ("premise", LETTERS))
        ]
        assert sets[0] != sets[1] != sets[2] != sets[0]

    def test_seeds(self, sampling):
        first = smoothed(sampling)
        other = first.with_options(seed=1)
        assert other.options.seed == 1
        assert sets_of(first, LETTERS) == sets_of(smoothed(sampling), LETTERS)
        assert sets_of(first, LETTERS) != sets_of(other, LETTERS)
        assert sets_of(other, LETTERS) == sets_of(smoothed(sampling, seed=1), LETTERS)

    def test_words_beyond_those_read_have_no_say(self, sampling):
        class Short(FunctionClassifier):
            def words_read(self, document):
                return min(8, len(document.words))

        asked = []

        def losses(documents):
            asked.extend(documents)
            return vowel_losses(documents)

        options = {"word_losses": losses} if sampling == "lm" else {}
        classifier = smoothed(sampling, Short(hashing_classifier), **options)
        texts = [LETTERS, LETTERS.replace("k l", "x y z")]
        first, second = classifier.copies([document(text) for text in texts])
        assert (first.kept == second.kept).all() and first.kept.max() < 8
        assert first.words_read == 8 and len(first.document.words) == 12
        assert all(one.words == tuple("abcdefgh") for one in asked)

    def test_texts_are_checked_before_anything_is_asked(self, sampling):
        def never(documents):
            raise AssertionError

        options = {"word_losses": never} if sampling == "lm" else {}
        with pytest.raises(TextError, match="text 1"):
            smoothed(sampling, never, **options).predict(["fine", " "])
        with pytest.raises(TextError, match="text 1"):
            smoothed(sampling, never, **options).scored(["fine", " "])

    def test_no_texts(self, sampling):
        def never(documents):
            raise AssertionError

        options = {"word_losses": never} if sampling == "lm" else {}
        assert smoothed(sampling, **options).predict([]) == []
        assert list(smoothed(sampling, **options).copies([])) == []


class TestFresh:
    def test_are_uniform_draws_of_the_texts_own(self):
        seed = text_seed(5, None, tuple(LETTERS.split()))
        [expected] = fresh_sets(12, 3, 40, [seed])
        assert sets_of(smoothed(masks=40, seed=5), LETTERS) == expected.tolist()

    def test_many_texts_see_every_word_as_often(self):
        """Were one draw shared by all texts, its unevenness would not average out."""
        documents = [document(f"{LETTERS} {number}") for number in range(300)]
        kept = np.concatenate([one.kept for one in smoothed(keep=1).copies(documents)])
        counts = np.bincount(kept[:, 0], minlength=13)
        expected = kept.size / 13
        assert ((counts - expected) ** 2 / expected).sum() < 39.1  # 99.99 % point, 12 degrees

    def test_description(self):
        described = smoothed().description()
        assert described["options"]["sampling"] == "fresh"
        assert described["options"]["masks"] == 100 and described["options"]["family"] is None
        assert "language_model" not in described
        assert SmoothedClassifier(keyword_classifier, keep=1).description()["options"][
            "sampling"
        ] == ("fixed")


class TestLanguageModels:
    def test_words_are_hidden_by_their_losses(self):
        """Nine of twelve are hidden: all of the vowels, before any other."""
        sets = sets_of(smoothed("lm"), LETTERS)
        vowels = {position for position, word in enumerate(LETTERS.split()) if word in "aeiou"}
        assert not vowels & {position for row in sets for position in row}

    def test_are_weighted_draws_of_the_texts_own(self):
        seed = text_seed(5, None, tuple(LETTERS.split()))
        [weights] = vowel_losses([document(LETTERS)])
        expected = weighted_sets(weights, 3, 40, seed)
        assert sets_of(smoothed("lm", masks=40, seed=5), LETTERS) == expected.tolist()

    def test_the_losses_of_all_texts_are_asked_for_in_one_call(self):
        calls = []

        def losses(documents):
            calls.append(list(documents))
            return even_losses(documents)

        classifier = smoothed("lm", word_losses=losses, masks=20_000)
        classifier.predict(TEXTS)  # more copies than are scored at once
        assert calls == [DOCUMENTS]
        list(classifier.copies(DOCUMENTS[:2]))
        assert calls[1:] == [DOCUMENTS[:2]]

    def test_lists_of_losses_will_do(self):
        lists = smoothed("lm", word_losses=lambda many: [[1, 2, 3.5, 0] for _ in many])
        assert len(sets_of(lists, "a b c d")) == 100

    def test_a_premise_reaches_the_language_model(self):
        seen = []

        def losses(documents):
            seen.extend(documents)
            return even_losses(documents)

        list(smoothed("lm", word_losses=losses).copies([document(("a premise", "one two"))]))
        assert seen == [Document(("one", "two"), "a premise")]

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (lambda many: [], "0 arrays for 2 documents"),
            (lambda many: [np.ones(4)] * 3, "3 arrays for 2 documents"),
            (lambda many: [np.ones(3)] * 2, r"shape \(3,\) for a text of 4 words"),
            (lambda many: [np.ones((4, 1))] * 2, r"shape \(4, 1\)"),
            (lambda many: [[1, 2, np.nan, 4]] * 2, "nan for the word 'c'"),
            (lambda many: [[1, 2, 3, np.inf]] * 2, "inf for the word 'd'"),
            (lambda many: [[1, -0.5, 3, 4]] * 2, "-0.5 for the word 'b'"),
            (lambda many: ["many"] * 2, "ValueError"),
            (lambda many: None, "TypeError"),
            (lambda many: 1 / 0, "word_losses raised ZeroDivisionError: division by zero"),
        ],
    )
    def test_unusable_losses(self, answer, message):
        with pytest.raises(ClassifierError, match=message):
            smoothed("lm", word_losses=answer).predict(["a b c d", "e f g h"])

    def test_our_own_errors_pass(self):
        def losses(documents):
            raise TextError("a word of blanks", 1)

        with pytest.raises(TextError, match="a word of blanks"):
            smoothed("lm", word_losses=losses).predict(["a b c d"])

    def test_description_names_the_model(self):
        class Model:
            def word_losses(self, documents):
                return even_losses(documents)

        class Described(Model):
            def description(self):
                return {"kind": "masked-lm", "sha256": "beef"}

        def described(losses):
            found = smoothed("lm", word_losses=losses).description()
            return json.loads(json.dumps(found))["language_model"]

        assert described(Described().word_losses) == {"kind": "masked-lm", "sha256": "beef"}
        assert described(Model().word_losses)["function"].endswith("Model")
        assert described(even_losses)["function"].endswith(":even_losses")

    def test_reseeded_keeps_the_language_model(self):
        again = smoothed("lm").with_options(seed=3)
        assert again.description()["language_model"]["function"].endswith(":vowel_losses")


class TestSteps:
    """`voters`, `base.score` and `count`, as an attack takes them one by one."""

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"sampling": "fresh"},
            {"sampling": "lm", "word_losses": vowel_losses},
            {"certificate": "ablation", "selection_masks": 30},
            {"ensemble": "score"},
            {"family": "windows"},
        ],
        ids=lambda options: " ".join(map(str, options)) or "plain",
    )
    def test_come_to_what_predict_says(self, options):
        classifier = SmoothedClassifier(hashing_classifier, keep=3, **options)
        predicted = classifier.predict(TEXTS)
        copies = list(classifier.copies(DOCUMENTS))
        counted = classifier.count(classifier.base.score(copies))
        [scored] = classifier.scored(TEXTS)
        assert (scored.votes.totals == counted.totals).all()
        assert [one.label_id for one in predicted] == counted.winners.tolist()
        assert [list(one.votes) for one in predicted] == counted.counts.tolist()
        means = counted.means()
        assert [one.scores for one in predicted] == (
            [None] * len(predicted) if means is None else [tuple(row) for row in means.tolist()]
        )
        for result, shown, text in zip(predicted, copies, scored.texts, strict=True):
            assert (text.document, text.words_read) == (shown.document, shown.words_read)
            assert (text.family.sets == shown.kept).all() and text.family.kind == result.family
            assert (text.kept == shown.kept).all()
            assert len(shown) == result.masks

    def test_certificates_that_estimate_predict_by_their_selection(self):
        options = {"certificate": "ablation", "masks": 50, "selection_masks": 30}
        [copies] = smoothed("fixed", **options).copies([document(LETTERS)])
        assert copies.kept.tolist() == sampled_sets(12, 3, 30, 0, stream="selection").tolist()

    def test_the_fixed_family_is_what_it_was(self):
        [copies] = smoothed("fixed").copies([document(LETTERS)])
        assert copies.kept.tolist() == family(12, 3).sets.tolist()
        [again] = smoothed("fixed").copies([document(LETTERS)])
        assert again.kept is copies.kept

    def test_count_reads_scores_as_the_classifier_does(self):
        classifier = SmoothedClassifier(keyword_classifier, keep=1, tolerance=0.1)
        votes = classifier.count([np.array([[0.5, 0.45], [0.2, 0.8]])])
        assert votes.uncertain.tolist() == [True, False] and votes.points is None
        scoring = SmoothedClassifier(keyword_classifier, keep=1, ensemble="score")
        assert scoring.count([np.array([[0.25, 0.75]])]).means().tolist() == [[0.25, 0.75]]

    def test_count_checks_the_labels(self):
        classifier = SmoothedClassifier(keyword_classifier, keep=1, labels=["a", "b", "c"])
        with pytest.raises(OptionError, match="labels names 3 classes"):
            classifier.count([np.ones((4, 2))])

    def test_reseeded_changes_the_seed_only(self):
        first = SmoothedClassifier(
            FunctionClassifier(keyword_classifier, hide="drop"),
            mask_rate=0.5,
            masks=20,
            labels=["n", "p"],
            tolerance=0.25,
        )
        again = first.with_options(seed=9)
        assert again.base is first.base
        one, other = first.description(), again.description()
        assert other["options"].pop("seed") == 9 and one["options"].pop("seed") == 0
        assert one == other


class TestOptions:
    @pytest.mark.parametrize("sampling", ["fresh", "lm"])
    @pytest.mark.parametrize(
        "options",
        [
            {"family": "auto"},
            {"family": "sampled"},
            {"family": "all"},
            {"certificate": "ablation"},
            {"certificate": "paper"},
            {"threat": "edits", "keep": 1, "hide": "drop"},
            {"alpha": 0.1},
            {"selection_masks": 10},
            {"masks": 0},
        ],
        ids=str,
    )
    def test_meaningless_together(self, sampling, options):
        with pytest.raises(OptionError, match=next(iter(options))):
            smoothed(sampling, **options)

    def test_the_message_says_what_to_do(self):
        with pytest.raises(OptionError, match=r"family='all' means nothing.*'fixed'"):
            smoothed(family="all")

    def test_unknown(self):
        with pytest.raises(OptionError, match="one of fixed, fresh, lm; not 'lmm'"):
            smoothed("lmm")

    def test_lm_needs_losses_and_the_others_have_no_use_for_them(self):
        with pytest.raises(OptionError, match=r"needs word_losses.*lm\.word_losses"):
            SmoothedClassifier(keyword_classifier, keep=1, sampling="lm")
        for sampling in ("fixed", "fresh"):
            with pytest.raises(OptionError, match=f"means nothing with sampling='{sampling}'"):
                smoothed(sampling, word_losses=even_losses)
        with pytest.raises(OptionError, match="must be a function of documents"):
            smoothed("lm", word_losses=[[1.0]])

    def test_a_base_classifier_of_ones_own_will_do(self):
        class Constant(BaseClassifier):
            def score(self, copies):
                return [np.tile([0.1, 0.9], (len(one), 1)) for one in copies]

            def configured(self, *, hide=None, mask_token=None):
                return self

        [result] = smoothed("fresh", Constant()).predict([LETTERS])
        assert result.votes == (0, 100)


GOLDEN = 0x4FD21034CDE407C4DF1C715C968CB24DFBA16AC5D5928A75DFB9674BCFD20F71
GOLDEN_PAIR = 0x95C8AEA481ECA9A0E4F03550367E54B3D6F8BADAD106F559D752D1825F495737


def test_large_families_are_not_remembered():
    small = SmoothingOptions(keep=2, family="sampled", masks=1000)
    large = SmoothingOptions(keep=2, family="sampled", masks=200_000)
    assert fixed_family(small, "vote", 20) is fixed_family(small, "vote", 20)
    assert fixed_family(small, "vote", 20) is not fixed_family(small, "estimation", 20)
    first, again = (fixed_family(large, "vote", 20) for _ in range(2))
    assert first is not again and np.array_equal(first.sets, again.sets)


@pytest.mark.parametrize(
    "options",
    [
        {"keep": 1},
        {"keep": 3, "masks": 50},
        {"mask_rate": 0.5, "family": "windows"},
        {"keep": 2, "family": "sampled", "masks": 7},
        {"keep": 2, "certificate": "ablation", "masks": 30, "selection_masks": 20},
        {"keep": 2, "sampling": "fresh"},
        {"keep": 20, "family": "all"},
    ],
    ids=str,
)
def test_copies_are_counted_without_a_classifier(options):
    classifier = SmoothedClassifier(keyword_classifier, **options)
    read = [document(LETTERS)]
    samples = ["selection", "estimation"] if "certificate" in options else ["vote"]
    texts = [text for sample in samples for text in classifier.copies(read, sample)]
    expected = (sum(map(len, texts)), texts[0].kept.shape[1])
    assert copies_of(classifier.options, len(read[0].words)) == expected


def test_a_family_is_not_that_of_a_rate_which_only_equals_this_one():
    """A fraction is read exactly, a float as it is written; both are one key of a dictionary."""
    exact, written = (SmoothingOptions(mask_rate=rate) for rate in (Fraction(0.9), 0.9))
    assert exact == written
    sizes = [fixed_family(options, "vote", 15).sets.shape[1] for options in (exact, written)]
    assert sizes == [1, 2]


@pytest.mark.parametrize(
    "given",
    [
        {"masks": np.int64(50)},
        {"seed": np.int64(3)},
        {"seed": True},
        {"certificate": "ablation", "alpha": Fraction(1, 20)},
    ],
)
def test_numbers_that_no_file_could_hold_are_refused(given):
    with pytest.raises(OptionError, match="must be a"):
        SmoothingOptions(keep=1, **given)

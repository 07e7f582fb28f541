"""A hidden word leaves no trace in what a Hugging Face model is given, nor in what it answers.

Every certificate rests on this.  All kept sets of short texts are enumerated, and every word is
replaced by strings that are made to leak: through their length, their number of tokens, the
special tokens that they spell, or the characters that tokenizers remove.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import tiny_models
import torch

from ranmask import SmoothedClassifier
from ranmask.certificates.families import all_sets, sampled_sets
from ranmask.models.base import MaskedCopies
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.words import Document

pytestmark = pytest.mark.slow

WORDS = ("the", "film", "was", "unbelievable", "good")
PREMISE = "a dull story, and not good"
LONG_PREMISE = " ".join(["unbelievable story"] * 40)
LONG_TEXT = ("the", "film", "was", "not", "very", "good", "but", "fine", "acting") * 12
OVERFULL_TEXT = ("unbelievablenessrebeliever", "x-ray/x-ray/x-ray", "unreunreunreun") * 34

REPLACEMENTS = {
    "shorter": "a",
    "more tokens": "unbelievablenessly",
    "as many tokens as are read": "re" * 16,
    "300 characters": "x" * 300,
    "300 words' worth": "good-" * 300,
    "punctuation": "!?...,;",
    "BERT separator": "[SEP]",
    "BERT first token": "[CLS]",
    "BERT padding": "[PAD]",
    "BERT mask": "[MASK]",
    "BERT masks": "[MASK][MASK][MASK]",
    "RoBERTa first token": "<s>",
    "RoBERTa separators": "</s></s>",
    "RoBERTa padding": "<pad>",
    "RoBERTa mask": "<mask>",
    "a word that may stand for hidden ones": "story",
    "emoji": "🙂👩‍👩‍👧‍👦",
    "unknown script": "ﷺ" * 20,
    "zero width": "\u200b",
    "zero width inside": "un\u200b\u200dable\ufeff",
    "accent alone": "\u0301",
    "control characters": "\x00\x07\x7f",
}


@dataclass(frozen=True)
class Case:
    base: HuggingFaceClassifier
    premise: str | None

    def text(self, words):
        return " ".join(words) if self.premise is None else (self.premise, " ".join(words))

    def copies(self, words, kept):
        document = Document(tuple(words), self.premise)
        return MaskedCopies(document, self.base.words_read(document), kept)

    def words_read(self, words):
        return self.base.words_read(Document(tuple(words), self.premise))

    def rows(self, words, kept):
        return self.base.encoder.rows(self.copies(words, kept))


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny matrices are fastest on one thread, far more so on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((name, hide, pair, None), id=f"{name}-{hide}-{'pair' if pair else 'single'}")
        for name in ("bert", "roberta", "mpnet", "gpt2", "pair_bert", "pair_roberta")
        for hide in ("mask", "drop")
        for pair in (False, True)
        if (pair or not name.startswith("pair")) and (name, hide) != ("gpt2", "drop")
    ]
    + [
        # An ordinary word stands for hidden words: anybody can write it.
        pytest.param(("bert", hide, False, "story"), id=f"bert-{hide}-single-story")
        for hide in ("mask", "drop")
    ],
)
def setting(request):
    name, hide, pair, token = request.param
    return HuggingFaceClassifier(*getattr(tiny_models, name)(), hide=hide, mask_token=token), pair


@pytest.fixture
def case(setting):
    return Case(setting[0], PREMISE if setting[1] else None)


@pytest.fixture
def crowded(setting):
    """As ``case``, with a premise that is too long for the model."""
    return Case(setting[0], LONG_PREMISE if setting[1] else None)


def replaced(words, place, word):
    return (*words[:place], word, *words[place + 1 :])


def hiding(kept, place):
    return kept[(kept != place).all(axis=1)]


def showing(kept, place):
    return kept[(kept == place).any(axis=1)]


def every_kept_set(words):
    return [all_sets(len(words), keep) for keep in range(1, len(words))]


def families_of_long_texts(words_read):
    return [all_sets(words_read, 1), sampled_sets(words_read, 6, 40, seed=0)]


def same_rows(one, other):
    return (
        np.array_equal(one.ids, other.ids)
        and np.array_equal(one.positions, other.positions)
        and np.array_equal(one.lengths, other.lengths)
        and (one.first_body_place, one.body_type) == (other.first_body_place, other.body_type)
    )


class TestShortTexts:
    def test_a_hidden_word_changes_no_token_row(self, case):
        for kept in every_kept_set(WORDS):
            for place in range(len(WORDS)):
                before = case.rows(WORDS, hiding(kept, place))
                for name, word in REPLACEMENTS.items():
                    after = case.rows(replaced(WORDS, place, word), hiding(kept, place))
                    assert same_rows(before, after), (name, place, kept.shape)

    def test_nor_in_the_company_of_copies_that_show_it(self, case):
        """Rows of one text share an array, whose width the shown word does change."""
        for kept in every_kept_set(WORDS):
            before = case.rows(WORDS, kept)
            for place in range(len(WORDS)):
                after = case.rows(replaced(WORDS, place, "unbelievablenessly"), kept)
                for row in np.flatnonzero((kept != place).all(axis=1)):
                    end = before.lengths[row]
                    assert end == after.lengths[row]
                    assert np.array_equal(before.ids[row, :end], after.ids[row, :end])
                    assert np.array_equal(before.positions[row, :end], after.positions[row, :end])

    def test_a_hidden_word_changes_no_bit_of_any_logit(self, case):
        def logits(changed):
            return case.base.score(
                [
                    case.copies(changed(place), hiding(kept, place))
                    for kept in every_kept_set(WORDS)
                    for place in range(len(WORDS))
                ]
            )

        before = logits(lambda place: WORDS)
        for name, word in REPLACEMENTS.items():
            after = logits(lambda place, word=word: replaced(WORDS, place, word))
            assert all(map(np.array_equal, before, after)), name

    def test_a_shown_word_does_change_the_logits(self, case):
        """Otherwise the tests above could not fail."""
        sets = [(place, showing(k, place)) for k in every_kept_set(WORDS) for place in range(5)]
        before = case.base.score([case.copies(WORDS, kept) for _, kept in sets])
        for name, word in REPLACEMENTS.items():
            after = case.base.score(
                [case.copies(replaced(WORDS, place, word), kept) for place, kept in sets]
            )
            moved = np.concatenate(
                [abs(a - b).max(axis=1) for a, b in zip(before, after, strict=True)]
            )
            assert moved.min() > 1e-3, name

    def test_where_a_word_stands_does_change_the_logits(self, case):
        """Positions are part of what a copy shows: the same word, kept in other places."""
        kept = all_sets(5, 1)
        [logits] = case.base.score([case.copies(("film",) * 5, kept)])
        for one in range(1, 5):
            for other in range(one + 1, 5):
                assert abs(logits[one] - logits[other]).max() > 1e-3


class TestLongTexts:
    @pytest.mark.parametrize("words", [LONG_TEXT, OVERFULL_TEXT], ids=["plain", "overfull"])
    def test_a_hidden_word_changes_no_bit(self, crowded, words):
        read = crowded.words_read(words)
        assert read < len(words)
        for kept in families_of_long_texts(read):
            for place in (0, 1, read // 2, read - 1):
                for word in ("a", "unbelievablenessly", "x" * 300, "[SEP]", "</s>", "\u200b"):
                    sets, changed = hiding(kept, place), replaced(words, place, word)
                    before, after = crowded.copies(words, sets), crowded.copies(changed, sets)
                    assert before.words_read == after.words_read
                    assert same_rows(
                        crowded.base.encoder.rows(before), crowded.base.encoder.rows(after)
                    )
                [one] = crowded.base.score([before])
                [other] = crowded.base.score([after])
                assert np.array_equal(one, other)

    @pytest.mark.parametrize("words", [LONG_TEXT, OVERFULL_TEXT], ids=["plain", "overfull"])
    def test_a_word_beyond_those_that_are_read_changes_no_bit(self, crowded, words):
        read = crowded.words_read(words)
        for kept in families_of_long_texts(read):
            [before] = crowded.base.score([crowded.copies(words, kept)])
            for place in (read, len(words) - 1):
                changed = replaced(words, place, "x" * 300)
                assert same_rows(crowded.rows(words, kept), crowded.rows(changed, kept))
                [after] = crowded.base.score([crowded.copies(changed, kept)])
                assert np.array_equal(before, after)

    def test_the_last_word_that_is_read_does_change_the_logits(self, crowded):
        """The limit is where it is said to be, and the last word is not cut off."""
        last = crowded.words_read(LONG_TEXT) - 1
        kept = np.array([[last]], dtype=np.int32)
        [before] = crowded.base.score([crowded.copies(LONG_TEXT, kept)])
        changed = replaced(LONG_TEXT, last, "a")
        [after] = crowded.base.score([crowded.copies(changed, kept)])
        assert abs(before - after).max() > 1e-3

    def test_overfull_rows_are_cut_to_what_the_model_takes(self, crowded):
        read = crowded.words_read(OVERFULL_TEXT)
        rows = crowded.rows(OVERFULL_TEXT, sampled_sets(read, 6, 40, seed=0))
        assert rows.positions.max() < tiny_models.LONGEST
        assert rows.lengths.max() <= tiny_models.LONGEST
        if crowded.base.encoder.hide == "mask":
            assert (rows.lengths == tiny_models.LONGEST).all()

    def test_a_certificate_does_not_move_with_words_beyond_those_read(self, crowded):
        smoothed = SmoothedClassifier(crowded.base, keep=2, masks=60)
        changed = replaced(LONG_TEXT, len(LONG_TEXT) - 1, "[SEP]")
        assert smoothed.certify([crowded.text(LONG_TEXT)]) == smoothed.certify(
            [crowded.text(changed)]
        )


@pytest.mark.parametrize("hide", ["mask", "drop"])
@pytest.mark.parametrize("name", ["bert", "roberta", "mpnet", "pair_bert", "pair_roberta"])
def test_the_premise_is_shown_in_every_copy_of_a_pair(name, hide):
    """Only the hypothesis is hidden: the certificate says that the premise must not change."""
    base = HuggingFaceClassifier(*getattr(tiny_models, name)(), hide=hide)
    [one] = base.score([Case(base, PREMISE).copies(WORDS, all_sets(5, 2))])
    [other] = base.score([Case(base, PREMISE + " great").copies(WORDS, all_sets(5, 2))])
    assert abs(one - other).max(axis=1).min() > 1e-3
    [certificate] = SmoothedClassifier(base, keep=2).certify([(PREMISE, " ".join(WORDS))])
    assert "the premise does not change" in certificate.assumes

"""Screened votes are the exact model's, however the fast one moves within the measured bound."""

import zlib

import numpy as np
import pytest
import tiny_models

from ranmask import SmoothedClassifier
from ranmask.certificates.families import sampled_sets
from ranmask.certificates.votes import count_votes
from ranmask.data.rows import Row
from ranmask.errors import ClassifierError, ModelError
from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.models.encoding import WordEncoder
from ranmask.models.mixed_precision import MixedPrecisionClassifier
from ranmask.models.tokenizing import RowFormat
from ranmask.runs.task import classify_rows
from ranmask.words import Document

TOLERANCE = 2.0**-10
MOVED = 2.0**-9  # what a logit is seen to move by when the bound is measured
BOUND = 2 * 8 * MOVED
STEP = 2.0**-12  # all leads are multiples of it, so that nothing is rounded
LEADS = np.arange(0, 3 * BOUND, STEP)  # every one, from a tie to far beyond
CLASSES = 3
MANY = 4000


class Exact(BaseClassifier):
    """Logits that follow from the tokens of a row alone: their leads are spread over `LEADS`."""

    outputs = "logits"
    batch_tokens, epsilon, dtype = 2000, 2.0**-23, "float32"

    def __init__(self):
        tokenizer = tiny_models.wordpiece_tokenizer()
        takes = RowFormat(tiny_models.LONGEST, tokenizer.pad_token_id, types=True, first_position=0)
        self.encoder = WordEncoder(tokenizer, takes, "mask")
        self.tolerance_in_force = TOLERANCE
        self.asked = []  # how many rows, call by call

    @property
    def tolerance(self):
        return self.tolerance_in_force

    def configured(self, *, hide=None, mask_token=None):
        raise NotImplementedError

    def logits(self, rows):
        table = []
        for text in rows:
            for ids, length in zip(text.ids, text.lengths, strict=True):
                digest = zlib.crc32(ids[:length].tobytes())
                first, second, third = [(0, 1, 2), (1, 2, 0), (2, 0, 1)][digest % CLASSES]
                lead = LEADS[(digest >> 8) % len(LEADS)]
                row = np.empty(CLASSES)
                row[first], row[second], row[third] = (
                    2.0,
                    2.0 - lead,
                    2.0 - lead - (digest >> 7) % 2,
                )
                table.append(row)
        return np.array(table)

    def score_rows(self, rows, *, tokens=None):
        table = self.logits(rows)
        self.asked.append(len(table))
        return table

    def score_copies(self, copies):
        return self.score_rows(self.encoder.rows_of_all(copies))

    def score(self, copies):
        table = self.score_copies(copies)
        return np.split(table, np.cumsum([len(one) for one in copies])[:-1])


class Fast:
    """The exact logits, moved towards another class: each one by ``moves``."""

    epsilon, dtype = 2.0**-10, "float16"

    def __init__(self, exact):
        self.exact = exact
        self.moves = MOVED
        self.toward = None  # the class that gains; None: every class but the best
        self.spoils = lambda table: np.zeros(len(table), dtype=bool)
        self.spoilt_row = (np.nan,) * CLASSES

    def raw_rows(self, rows, *, tokens=None):
        table = self.exact.logits(rows)
        gains = np.ones_like(table)
        if self.toward is None:
            gains[np.arange(len(table)), table.argmax(axis=1)] = -1
        else:
            gains[:, [place for place in range(CLASSES) if place != self.toward]] = -1
        moved = table + self.moves * gains
        moved[self.spoils(table)] = self.spoilt_row
        return moved

    def raw_copies(self, copies):
        return self.raw_rows(self.exact.encoder.rows_of_all(copies))


def every(share):
    """Spoil one row in ``share`` of those that are scored."""
    return lambda table: np.arange(len(table)) % share == 0


def pair():
    exact = Exact()
    return exact, MixedPrecisionClassifier(exact, Fast(exact))


def many_copies():
    """Of several texts: some few thousand rows of different tokens."""
    random = np.random.default_rng(0)
    words = [*tiny_models.KNOWN_WORDS, "x-ray", "unbelievable", "redo"]
    texts = [tuple(random.choice(words, 30).tolist()) for _ in range(8)]
    return [MaskedCopies(Document(text), 30, sampled_sets(30, 4, MANY // 8, 1)) for text in texts]


def leads(rows):
    top_two = np.sort(rows, axis=1)[:, -2:]
    return top_two[:, 1] - top_two[:, 0]


def counted(rows):
    return count_votes(rows, "vote", "logits", TOLERANCE)


def test_the_bound_is_what_was_measured():
    _, screened = pair()
    assert (screened.difference, screened.tolerance) == (BOUND, TOLERANCE)
    assert screened.screen == BOUND + TOLERANCE


@pytest.mark.parametrize("toward", [None, *range(CLASSES)])
@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_no_movement_within_the_bound_turns_a_vote(toward, share):
    exact, screened = pair()
    copies = many_copies()
    assert screened.difference == BOUND  # measured before the fast model misbehaves
    wanted = np.concatenate(exact.score(copies))
    assert (counted(wanted).uncertain.sum(), (leads(wanted) == TOLERANCE).sum()) > (10, 1)
    screened.fast.moves, screened.fast.toward = share * BOUND / 2, toward
    found = np.concatenate(screened.score(copies))
    assert (counted(found).best == counted(wanted).best).all()
    assert (counted(found).uncertain == counted(wanted).uncertain).all()
    kept_fast = (found != wanted).any(axis=1)
    assert (leads(wanted)[kept_fast] > TOLERANCE).all()
    assert share == 0 or kept_fast.sum() > MANY // 10, "all was computed again: nothing was tested"


def test_a_smaller_screen_would_turn_votes(monkeypatch):
    """What the test above looks for is there to be found."""
    exact, screened = pair()
    copies = many_copies()
    assert screened.difference == BOUND
    screened.fast.moves = BOUND / 2
    monkeypatch.setattr(MixedPrecisionClassifier, "screen", BOUND / 2)
    wanted = counted(np.concatenate(exact.score(copies)))
    found = counted(np.concatenate(screened.score(copies)))
    assert (found.best != wanted.best).sum() > 10
    monkeypatch.setattr(MixedPrecisionClassifier, "screen", BOUND)  # forgets the exact tolerance
    screened.fast.toward = 0  # which was nearly tied, and now seems clear
    found = counted(np.concatenate(screened.score(copies)))
    assert (found.uncertain != wanted.uncertain).any()


def test_copies_within_the_screen_are_computed_again_in_one_call():
    exact, screened = pair()
    copies = many_copies()
    assert screened.screen > 0
    exact.asked.clear()
    fast = screened.fast.raw_rows(exact.encoder.rows_of_all(copies))
    close = leads(fast) <= BOUND + TOLERANCE
    found = np.concatenate(screened.score(copies))
    assert exact.asked == [close.sum()] and 0 < close.sum() < MANY
    assert screened.rechecked == close.sum()
    wanted = np.concatenate(exact.score(copies))
    assert (found[close] == wanted[close]).all() and (found[~close] == fast[~close]).all()
    screened.score(copies[:1])
    assert screened.rechecked == close.sum() + close[: len(copies[0])].sum()


def test_nothing_is_computed_again_where_all_is_clear():
    exact, screened = pair()
    [text, *_] = many_copies()
    assert screened.screen > 0
    fast = screened.fast.raw_rows(exact.encoder.rows_of_all([text]))
    clear = MaskedCopies(text.document, 30, text.kept[leads(fast) > screened.screen])
    exact.asked.clear()
    [rows] = screened.score([clear])
    assert (len(rows), exact.asked, screened.rechecked) == (len(clear), [], 0)


@pytest.mark.parametrize(
    "row", [(np.nan, 0, 0), (np.inf, 0, 0), (0, -np.inf, 0), (np.inf, -np.inf, np.nan)]
)
def test_rows_that_overflow_are_never_accepted(row):
    exact, screened = pair()
    copies = many_copies()
    assert screened.difference == BOUND
    screened.fast.spoils, screened.fast.spoilt_row = every(7), row
    found = np.concatenate(screened.score(copies))
    wanted = np.concatenate(exact.score(copies))
    assert (found[::7] == wanted[::7]).all() and np.isfinite(found).all()
    assert (counted(found).best == counted(wanted).best).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_overflow_are_left_out_of_the_measurement(value):
    _, screened = pair()
    screened.fast.spoils, screened.fast.spoilt_row = every(7), (value, 0, 0)
    assert screened.difference == BOUND


def test_a_model_that_overflows_on_most_rows_is_refused():
    _, screened = pair()
    screened.fast.spoils = lambda table: ~every(3)(table)
    with pytest.raises(ModelError, match=r"overflow in half precision.*use dtype='float32'"):
        screened.score(many_copies())


def test_a_movement_beyond_the_bound_is_noticed():
    """On the copies that both models compute, the assumption is put to the test."""
    _, screened = pair()
    assert screened.difference == BOUND
    screened.fast.moves = BOUND / 2 + STEP
    with pytest.raises(ClassifierError, match=r"moves a difference .* by 0\.031.*float32"):
        screened.score(many_copies())


def test_once_the_bound_is_broken_nothing_is_certified_any_more():
    """A run asks again for text by text, and goes on with the others: they rest on it, too."""
    _, screened = pair()
    assert screened.difference == BOUND
    smoothed = SmoothedClassifier(screened, keep=2)
    texts = [" ".join(tiny_models.KNOWN_WORDS[place : place + 9]) for place in range(3)]
    screened.fast.moves = BOUND / 2 + STEP
    with pytest.raises(ClassifierError, match="was allowed for, on which all results so far rest"):
        smoothed.certify(texts)
    screened.fast.moves = 0
    rows = [Row(number, text, None) for number, text in enumerate(texts, 1)]
    outcomes = list(classify_rows(rows, smoothed.certify))
    assert all("compute them again with dtype='float32'" in str(one.error) for one in outcomes)
    assert len(outcomes) == 3


def test_certificates_are_those_of_the_exact_model():
    exact, screened = pair()
    assert screened.difference == BOUND
    screened.fast.moves = BOUND / 2
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(tiny_models.KNOWN_WORDS, 9)) for _ in range(30)]
    wanted = SmoothedClassifier(exact, keep=2).certify(texts)
    found = SmoothedClassifier(screened, keep=2).certify(texts)
    assert [(one.label, one.radius, one.uncertain) for one in found] == [
        (one.label, one.radius, one.uncertain) for one in wanted
    ]
    assert any(one.uncertain for one in wanted) and 0 < screened.rechecked < 30 * 36

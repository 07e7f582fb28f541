"""A certificate is worth the same from a busy service as from a classifier that is alone.

Votes that are nearly tied may fall another way in another batch; certificates count them against
the label (``uncertain``), so that nothing else moves.
"""

import itertools
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import tiny_models

from ranmask import SmoothedClassifier, load_default
from ranmask.errors import ClassifierError
from ranmask.models.blend import Blend
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.serving.context import RequestContext
from ranmask.serving.scorer import BatchScorer

THREADS = 12
PATIENCE = 120
WORDS = (*tiny_models.KNOWN_WORDS, "unbelievable", "Oil", "prices", "striker", "[MASK]", "cup")


def texts(count, seed, longest=40):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(count)]


def under_load(base, options, rows, **sizes):
    """Each text certified by itself, in many threads at once, over one pool."""
    start = threading.Barrier(THREADS)

    def work(number):
        start.wait(PATIENCE)
        found = {}
        for place in range(number, len(rows) * len(options), THREADS):
            text, option = divmod(place, len(options))
            smoothed = SmoothedClassifier(pool.classifier(RequestContext()), **options[option])
            [found[text, option]] = smoothed.certify([rows[text]])
        return found

    with BatchScorer(base, **sizes) as pool, ThreadPoolExecutor(THREADS) as executor:
        parts = [executor.submit(work, number) for number in range(THREADS)]
        answers = {place: one for part in parts for place, one in part.result(PATIENCE).items()}
        figures = pool.figures()
    return answers, figures


def compare(base, options, rows, **sizes):
    """Certificates under load against those of a lone classifier; returns the pool's figures."""
    answers, figures = under_load(base, options, rows, **sizes)
    assert len(answers) == len(rows) * len(options) and figures.failed_asks == 0
    for option, chosen in enumerate(options):
        alone = SmoothedClassifier(base, **chosen)
        for text, row in enumerate(rows):
            [expected] = alone.certify([row])
            check_same(answers[text, option], expected, base.tolerance)
    return figures


def check_same(answer, expected, tolerance):
    if tolerance == 0:
        assert answer == expected
        return
    moved = sum(abs(one - other) for one, other in zip(answer.votes, expected.votes, strict=True))
    assert moved <= answer.uncertain + expected.uncertain
    if expected.scores is not None:  # means, for reading: they move in their last digits
        assert answer.scores == pytest.approx(expected.scores, abs=1e-4)
    same = {"votes": expected.votes, "scores": expected.scores, "uncertain": expected.uncertain}
    assert replace(answer, **same) == expected  # label and radius above all


OPTIONS = [
    {"keep": 1},
    {"keep": 2, "masks": 50, "ensemble": "score"},
    {"mask_rate": 0.7, "masks": 40, "seed": 3},
    {"keep": 3, "certificate": "ablation", "masks": 60, "selection_masks": 20},
]


@pytest.mark.parametrize(
    ("architecture", "hide"),
    [("bert", "mask"), ("roberta", "drop"), ("mpnet", "drop"), ("deberta", "mask")],
)
def test_tiny_encoders(architecture, hide):
    model, tokenizer = getattr(tiny_models, architecture)()
    base = HuggingFaceClassifier(model, tokenizer, hide=hide)
    figures = compare(base, OPTIONS, texts(15, seed=1), batch_copies=200)
    assert figures.batches < figures.asks  # copies did share batches


def test_shipped_word_table():
    base = load_default("news-words").base
    rows = texts(60, seed=2, longest=200)
    compare(base, [*OPTIONS, {"keep": 1, "threat": "edits"}], rows, batch_copies=700)


def test_blend_of_shipped_models():
    blend = Blend([load_default("news").reader.base, load_default("news-words").base])
    options = [{"keep": 1, "ensemble": "score"}, {"keep": 2, "masks": 60, "ensemble": "score"}]
    compare(blend, options, texts(24, seed=3), batch_copies=300)


def test_pairs_beside_single_texts_and_texts_that_fail():
    """A word table refuses pairs: whoever sends one fails alone."""
    base = load_default("news-words").base
    rows = texts(100, seed=4)
    expected = SmoothedClassifier(base, keep=1).certify(rows)

    def one(place):
        smoothed = SmoothedClassifier(pool.classifier(RequestContext()), keep=1)
        if place % 5 == 0:
            with pytest.raises(ClassifierError, match="single texts only"):
                smoothed.certify([("a premise", rows[place])])
            return None
        return smoothed.certify([rows[place]])[0]

    with BatchScorer(base) as pool, ThreadPoolExecutor(THREADS) as executor:
        answers = list(executor.map(one, range(100), timeout=PATIENCE))
    assert all(answers[place] == expected[place] for place in range(100) if place % 5)


def test_pairs_of_encoders():
    model, tokenizer = tiny_models.pair_bert()
    base = HuggingFaceClassifier(model, tokenizer)
    premises = itertools.cycle(["a dull story", "the film"])
    rows = list(zip(premises, texts(24, seed=5, longest=10), strict=False))
    compare(base, OPTIONS[:2], rows, batch_copies=100)

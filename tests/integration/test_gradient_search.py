"""The gradient of a smoothed encoder: against differences, and as a search."""

import numpy as np
import pytest
import tiny_models
import torch

from ranmask import SmoothedClassifier, attack
from ranmask.attacks.api import as_victim, attack_loop
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.attacks.resources.word_lists import StopWords, Vocabulary
from ranmask.attacks.white_box import first_order, has_slopes
from ranmask.models import SHIPPED_FOLDER
from ranmask.models.base import whole_copy
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.models.slopes import word_slopes, word_vectors
from ranmask.words import document

TEXT = "the film was a good story but not very great"


@pytest.fixture(scope="module", params=["mask", "drop"])
def base(request):
    return HuggingFaceClassifier(*tiny_models.bert(), hide=request.param)


def mean_shares(base, copies):
    [logits] = base.score([copies])
    return torch.from_numpy(logits).softmax(1).mean(0).numpy()


@pytest.mark.parametrize("keep", [None, 1, 3])
def test_slopes_are_derivatives(base, keep):
    """The vector of a word that the text has once is moved a little, both ways."""
    text = document(TEXT)
    copies = whole_copy(text, len(text.words))
    if keep:
        [copies] = SmoothedClassifier(base, keep=keep, masks=40).copies([text])
    slopes = word_slopes(base, copies)
    weights = base.model.get_input_embeddings().weight
    [words] = base.encoder.spelt([copies])[0][:1]
    direction = np.random.default_rng(0).normal(size=weights.shape[1])
    checked = 0
    for place, ids in enumerate(words):
        if sum(set(ids) & set(other) != set() for other in words) > 1 or len(set(ids)) < len(ids):
            continue
        moved = []
        for step in (0.001, -0.001):
            with torch.no_grad():
                weights[list(ids)] += torch.from_numpy(step * direction).float()
            moved.append(mean_shares(base, copies))
            with torch.no_grad():
                weights[list(ids)] -= torch.from_numpy(step * direction).float()
        measured = (moved[0] - moved[1]) / 0.002
        assert slopes[:, place] @ direction == pytest.approx(measured, abs=2e-3, rel=0.02)
        checked += 1
    assert checked >= 5 and np.abs(slopes).max() > 1e-3


def test_first_order_of_texts(base):
    victim = as_victim(SmoothedClassifier(base, keep=2, masks=30))
    text = document(TEXT)
    others = [text, document(TEXT.replace("good", "bad")), document("a" + TEXT[3:])]
    rises = first_order(victim, text, others)
    assert rises.shape == (3, len(base.labels)) and not rises[0].any() and rises[1].any()
    assert rises.sum(axis=1) == pytest.approx(np.zeros(3), abs=1e-5)  # shares sum to one
    slopes = word_slopes(base, next(iter(victim.smoothed.copies([text]))))
    old, new = word_vectors(base, ["good", "bad"])
    assert rises[1] == pytest.approx(slopes[:, text.words.index("good")] @ (new - old))


def test_as_a_search(base):
    """With all candidates confirmed it finds what the margin finds; with few it asks less."""
    words = ("film", "plot", "good", "bad", "fine", "dull", "story", "great", "awful", "acting")
    resources = AttackResources(
        neighbours=NeighbourTable({word: [*words] for word in words}),
        stop_words=StopWords("none", frozenset()),
        vocabulary=Vocabulary("made up", words),
    )
    victim = SmoothedClassifier(base, keep=2, masks=60, ensemble="score")
    assert has_slopes(as_victim(victim)) and has_slopes(as_victim(base))
    texts = [" ".join(np.roll(words, turn)[:7]) for turn in range(6)]
    labels = [result.label_id for result in victim.predict(texts)]
    found = {
        search: attack(victim, texts, labels, "textfooler", resources=resources, search=search)
        for search in ("margin", "gradient", "strongest")
    }
    queries = {name: sum(one.queries for one in some) for name, some in found.items()}
    assert queries["gradient"] < queries["margin"]
    for one, strongest in zip(found["gradient"], found["strongest"], strict=True):
        assert strongest.status == "succeeded" or one.status == "failed"
        assert one.status == "failed" or strongest.words_changed <= one.words_changed
    loop = attack_loop(victim, "anywords", resources=resources, search="gradient")
    assert loop.recipe.candidates.each == 64


def test_what_numpy_computes_has_no_gradient_and_is_attacked_without():
    folder = str(SHIPPED_FOLDER / "news" / "reader")
    smoothed = SmoothedClassifier.from_pretrained(folder, mask_rate=0.9, hide="drop", masks=8)
    assert not has_slopes(as_victim(smoothed))
    resources = AttackResources(
        neighbours=NeighbourTable({"oil": ["football"], "prices": ["goals"], "stock": ["cup"]}),
        stop_words=StopWords("none", frozenset()),
    )
    texts = ["oil prices fell on the stock exchange"]
    labels = [result.label_id for result in smoothed.predict(texts)]
    given = {"resources": resources, "search": "strongest"}
    [outcome] = attack(smoothed, texts, labels, "textfooler", **given)
    assert outcome.status in ("succeeded", "failed") and outcome.queries > 1

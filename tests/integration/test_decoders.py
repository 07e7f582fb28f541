"""Decoders as classifiers: GPT-2 looks token types up among its words, and finds the last token
of a row by its padding.  Whatever else is in a batch must not matter."""

import copy

import numpy as np
import pytest
import tiny_models
import transformers
from tokenizers import normalizers

from ranmask import SmoothedClassifier
from ranmask.certificates.families import all_sets
from ranmask.errors import ModelError
from ranmask.models.base import MaskedCopies
from ranmask.models.batching import batches
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.words import Document

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = [
    "the film was very good",
    "a dull story and not good acting",
    "great",
    "the plot is unbelievable but the acting was fine and the story was not bad",
]
PAIRS = [("a dull story - not good", text) for text in TEXTS]


def one_by_one(smoothed, texts):
    return [smoothed.certify([text])[0] for text in texts]


@pytest.fixture
def gpt2():
    """A model of one's own, to change."""
    model, tokenizer = tiny_models.gpt2()
    return copy.deepcopy(model), tokenizer


@pytest.mark.parametrize("keep", [1, 2])
def test_certificates_are_the_same_alone_and_among_pairs(classifier, keep):
    smoothed = SmoothedClassifier(classifier("gpt2"), keep=keep)
    alone = one_by_one(smoothed, [*TEXTS, *PAIRS])
    mixed = [*PAIRS, *TEXTS, *PAIRS[::-1], *TEXTS[::-1]]
    found = smoothed.certify(mixed)
    assert found == one_by_one(smoothed, mixed)
    assert sum(one.radius is not None for one in alone) >= 4
    assert not any(one.uncertain for one in alone)


def test_the_tolerance_is_that_of_other_models(classifier):
    assert classifier("gpt2").tolerance < 1e-3


def test_it_says_what_the_model_says_of_the_masked_text(classifier):
    """Against the tokenizer's own rows, one by one."""
    base = classifier("gpt2")
    words = ("the", "film", "was", "unbelievable", "good")
    kept = all_sets(5, 2)
    found = base.score([MaskedCopies(Document(words), 5, kept)])[0]
    texts = [
        "".join((" " if place else "") + word if place in shown else "<mask>"
                for place, word in enumerate(words))
        for shown in kept.tolist()
    ]  # fmt: skip
    for text, row in zip(texts, found, strict=True):
        inputs = base.tokenizer(text, return_tensors="pt")
        assert "token_type_ids" not in inputs
        assert np.abs(base.model(**inputs).logits[0].detach().numpy() - row).max() < 1e-4


def test_the_padding_is_the_models(gpt2):
    """Its tokenizer names none, or another one: a row's end is found all the same."""
    model, tokenizer = gpt2
    wanted = SmoothedClassifier(HuggingFaceClassifier(model, tokenizer), keep=1).certify(TEXTS)
    for named in ({}, {"pad_token": "<|endoftext|>"}):
        other = tiny_models.decoder_tokenizer(mask_token="<mask>", **named)
        base = HuggingFaceClassifier(model, other)
        assert base.encoder.pad_id == model.config.pad_token_id != other.pad_token_id
        assert SmoothedClassifier(base, keep=1).certify(TEXTS) == wanted


@pytest.mark.parametrize("text", ["\u200b", "\u200b \u200b", "good \u200b"])
def test_words_without_tokens_and_nothing_around_them(gpt2, text):
    model, tokenizer = gpt2
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("\u200b", "")
    smoothed = SmoothedClassifier(HuggingFaceClassifier(model, tokenizer), keep=1)
    [alone] = smoothed.certify([text])
    assert smoothed.certify([*TEXTS, text])[-1] == alone


def test_a_model_without_padding_is_refused(gpt2):
    model, tokenizer = gpt2
    model.config.pad_token_id = None
    with pytest.raises(ModelError, match=r"no padding token is defined.*as pad_token_id"):
        HuggingFaceClassifier(model, tokenizer)


def test_a_model_that_reads_its_padding_never_sees_any(gpt2):
    model, tokenizer = gpt2
    model.config.pad_token_id = -1  # no token: the last one is then the last of the batch
    smoothed = SmoothedClassifier(HuggingFaceClassifier(model, tokenizer), keep=1)
    together = smoothed.certify(TEXTS)
    assert [smoothed.certify([text])[0] for text in TEXTS] == together


def inputs_of(base, premise):
    """What the model is given for a text of two words, or for a pair."""
    copies = MaskedCopies(Document(("good", "film"), premise), 2, all_sets(2, 1))
    rows = [base.encoder.rows(copies)]
    [batch] = batches(rows, tokens=1000, least_rows=1000, pad_id=base.encoder.pad_id)
    return base.inputs(batch)


@pytest.mark.parametrize("name", ["bert", "electra", "albert", "pair_bert"])
def test_models_that_tell_segments_apart_get_types_in_every_batch(classifier, name):
    base = classifier(name)
    assert not inputs_of(base, None)["token_type_ids"].any()
    assert inputs_of(base, "a dull story")["token_type_ids"].any()


@pytest.mark.parametrize("name", ["roberta", "distilbert", "deberta", "mpnet", "gpt2"])
def test_others_get_none_in_any_batch(classifier, name):
    for premise in (None, "a dull story"):
        assert "token_type_ids" not in inputs_of(classifier(name), premise)


def test_a_table_of_one_segment_is_not_asked_for_a_second():
    """A pair's second text is of type 1 by the tokenizer, and the model knows type 0 alone."""
    tokenizer = tiny_models.wordpiece_tokenizer()
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), type_vocab_size=1, hidden_size=32, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    for engine in ("plain", "packed"):
        base = HuggingFaceClassifier(model, tokenizer, backend=engine)
        [found] = SmoothedClassifier(base, keep=1).certify([PAIRS[0]])
        assert found.words == 5

"""Pipelines of Hugging Face's: shown copies, reading whole texts, and looking for windows."""

import numpy as np
import pytest
import tiny_models
import transformers

from ranmask import ProtectedClassifier, SmoothedClassifier, WindowDetector
from ranmask.errors import ModelError, OptionError
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.models.readers import as_reader
from ranmask.words import documents

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["the film was good", "a dull plot and bad acting", "not a fine story"]
LABELS = list(tiny_models.LABELS)


def pipeline(model, tokenizer, **options):
    return transformers.pipeline(
        "text-classification", model=model, tokenizer=tokenizer, device="cpu", **options
    )


@pytest.fixture(scope="module", params=[1, None])
def bert(request, one_thread):
    return pipeline(*tiny_models.bert(), top_k=request.param)


def own_labels(pipe):
    found = pipe(TEXTS, top_k=1)
    return [(one[0] if isinstance(one, list) else one)["label"] for one in found]


def test_copies_are_shown_to_its_model(bert):
    smoothed = SmoothedClassifier(bert, mask_rate=0.0)
    assert isinstance(smoothed.base, HuggingFaceClassifier)
    assert smoothed.labels == tiny_models.LABELS
    assert [result.label for result in smoothed.certify(TEXTS)] == own_labels(bert)
    assert smoothed.certify(TEXTS)[0].guarantee
    for labels, error in ((LABELS[::-1], OptionError), (["x", "y", "z"], ModelError)):
        with pytest.raises(error, match="negative, neutral, positive"):
            SmoothedClassifier(bert, keep=1, labels=labels)


def test_it_reads_whole_texts_and_windows(bert):
    labels = LABELS[::-1]
    reader = as_reader(bert, labels)
    rows = reader.read(documents(TEXTS), 3)
    assert [labels[place] for place in rows.argmax(axis=1)] == own_labels(bert)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-5)
    beside = ProtectedClassifier(
        lambda texts: [[1 / 3] * 3] * len(texts),
        reader=bert,
        reader_weights=(99,),
        keep=1,
        labels=labels,
    )
    assert [result.label for result in beside.predict(TEXTS)] == own_labels(bert)
    detector = WindowDetector(bert, sizes=(2,), positive="positive", threshold=0.01)
    assert detector.detect(TEXTS)[0].failed == 0


def test_a_function_may_return_what_a_pipeline_does(bert):
    smoothed = SmoothedClassifier(lambda texts: bert(texts), mask_rate=0.0, labels=LABELS)
    assert [result.label for result in smoothed.predict(TEXTS)] == own_labels(bert)


def test_classes_without_a_name_are_named():
    model, tokenizer = tiny_models.untrained_bert()
    pipe = pipeline(model, tokenizer)
    smoothed = SmoothedClassifier(pipe, keep=1, hide="drop", labels=["ham", "spam"])
    assert smoothed.predict(TEXTS)[0].label in ("ham", "spam")
    assert as_reader(pipe, ["ham", "spam"]).read(documents(TEXTS), 2).shape == (3, 2)


def test_a_decoder_hides_words_as_it_is_told():
    model, tokenizer = tiny_models.gpt2()
    smoothed = SmoothedClassifier(pipeline(model, tokenizer), keep=2, hide="mask")
    assert smoothed.certify(TEXTS)[0].guarantee

"""Windows of encoders: a Hugging Face model and a pipeline as detectors."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tiny_models
import transformers

from ranmask import HuggingFaceClassifier, WindowDetector, load_detector
from ranmask.models.readers import ModelReader
from ranmask.serving.context import RequestContext
from ranmask.serving.registry import ModelRegistry
from ranmask.words import document

TEXTS = ["the film was good and the plot was bad", "good good bad", "a fine film"]


@pytest.fixture(scope="module")
def encoder():
    cached, tokenizer = tiny_models.bert()
    model = copy.deepcopy(cached)  # other tests have its own names
    names = [f"class {number}" for number in range(model.config.num_labels - 1)]
    model.config.id2label = dict(enumerate([*names, "spam"]))
    model.config.label2id = {name: number for number, name in model.config.id2label.items()}
    return model, tokenizer


def test_an_encoder_reads_windows_and_comes_back_from_its_folder(encoder, tmp_path):
    base = HuggingFaceClassifier(*encoder, hide="drop")
    detector = WindowDetector(base, sizes=(2, 4), positive="spam")
    reader = ModelReader(base)
    words = TEXTS[0].split()
    windows = [(a, a + size) for size in (2, 4) for a in range(len(words) - size + 1)]
    shown = [document(" ".join(words[a:b])) for a, b in windows]
    alone = np.array([reader.read([window], len(base.labels))[0, -1] for window in shown])
    middle = float(np.median(alone))
    detector = detector.with_threshold(middle)
    [found] = detector.detect(TEXTS[:1])
    assert found.flagged and found.score == pytest.approx(alone.max(), abs=1e-5)
    assert all(window in windows for window in found.spans)
    detector.save_pretrained(tmp_path)
    loaded = load_detector(tmp_path)
    assert loaded.labels == base.labels and loaded.points == detector.points
    again = loaded.detect(TEXTS)
    assert [one.flagged for one in again] == [one.flagged for one in detector.detect(TEXTS)]


def test_requests_share_batches_of_windows(encoder, tmp_path):
    base = HuggingFaceClassifier(*encoder, hide="drop")
    detector = WindowDetector(base, sizes=(2, 4), positive="spam")
    scores = sorted(one.score for one in detector.detect(TEXTS))
    detector = detector.with_threshold((scores[0] + scores[1]) / 2)
    detector.save_pretrained(tmp_path / "windows")
    host = ModelRegistry({"windows": str(tmp_path / "windows")}, device="cpu")
    assert host.copies("windows", [document(text) for text in TEXTS]) == detector.calls(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(host.detector("windows", RequestContext()).detect, TEXTS) for _ in range(8)
        ]
        expected = detector.detect(TEXTS)
        for one in asked:
            for found, here in zip(one.result(), expected, strict=True):
                assert (found.flagged, found.words) == (here.flagged, here.words)
                assert found.score == pytest.approx(here.score, abs=1e-5)
    assert {found.flagged for found in expected} == {True, False}
    figures = host.figures("windows")
    assert figures.asks == 8 and figures.copies == 8 * 18  # equal windows are asked about once
    host.close()


def test_a_pipeline_reads_windows(encoder):
    model, tokenizer = encoder
    pipeline = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
    detector = WindowDetector(pipeline, sizes=(3,), positive="spam")
    base = HuggingFaceClassifier(model, tokenizer, hide="drop")
    own = WindowDetector(base, sizes=(3,), positive="spam")
    found, expected = detector.detect(TEXTS), own.detect(TEXTS)
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-5)
    assert "at most 0.0001 (checked on 4 windows a batch)" in found[0].assumes[1]

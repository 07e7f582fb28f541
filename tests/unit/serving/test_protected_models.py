"""A protected model in the service: answers are the library's, and both models are shared."""

from ranmask.models.readers import ModelReader
from ranmask.serving.context import RequestContext
from ranmask.serving.registry import ModelRegistry
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.smoothing.store import load_classifier, load_default

TEXTS = ["Stocks fell after the bank raised rates", "The striker scored twice in the final"]


def test_answers_are_those_of_the_library(tmp_path):
    table = load_default("news-words")
    reader = ModelReader(load_default("news-words").base)
    folder = str(tmp_path / "protected")
    ProtectedClassifier.beside(table, reader, (2, 0.5)).save_pretrained(folder)
    registry = ModelRegistry({"mine": folder})
    try:
        assert registry.about("mine")["reader"] == "model"
        assert "reader_weights" not in registry.about("mine")["request_options"]
        served = registry.smoothed("mine", RequestContext())
        assert served.certify(TEXTS) == load_classifier(folder).certify(TEXTS)
        assert registry._of("mine").reading.figures().copies > 0
    finally:
        registry.close()

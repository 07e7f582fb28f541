"""Fixtures: base classifiers over tiny models, and a model folder to load from.

PyTorch is imported where it is needed: other tests of this folder do without.
"""

import gc

import pytest


@pytest.fixture(scope="session")
def one_thread():
    """Tiny matrices are fastest on one thread, far more so on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def classifier(one_thread):
    """``classifier("bert", "drop")``: built, checked and measured once."""
    import tiny_models

    from ranmask.models.huggingface import HuggingFaceClassifier

    built = {}

    def get(architecture, hide="mask"):
        if (architecture, hide) not in built:
            model, tokenizer = getattr(tiny_models, architecture)()
            built[architecture, hide] = HuggingFaceClassifier(model, tokenizer, hide=hide)
        return built[architecture, hide]

    return get


@pytest.fixture(scope="session")
def model_folder(one_thread, tmp_path_factory):
    """A folder as a training run leaves it; tests that change it copy it first."""
    import tiny_models

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    model, tokenizer = tiny_models.bert()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def base_folder(one_thread, tmp_path_factory):
    """A tiny encoder to be trained: its words differ, it knows no classes, and it has dropout."""
    import tiny_models

    folder = tmp_path_factory.mktemp("bases") / "base"
    model, tokenizer = tiny_models.untrained_bert()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def quiet():
    """No bars and hints of the libraries, as on the command line; and fast collections."""
    from transformers import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    gc.freeze()  # every training run collects garbage, among all that was ever imported
    yield
    gc.unfreeze()
    logging.set_verbosity(verbosity)
    if bars:
        logging.enable_progress_bar()

"""Masks by a real language model's losses, from a folder, through the library and the command."""

import json
import os
from unittest import mock

import pytest
import tiny_models
import torch
import transformers

from commands import run_cli
from ranmask import OptionError, SmoothedClassifier
from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.models.testing import hashing_classifier
from ranmask.words import document

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["the film was not very good", "unbelievable acting but a dull story", "great"]
FAKE = "ranmask.models.testing:hashing_classifier"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = tiny_models.wordpiece_tokenizer()
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=1,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=tiny_models.LONGEST,
        initializer_range=0.4,
    )
    place = tmp_path_factory.mktemp("masked-lm")
    transformers.BertForMaskedLM(config).eval().save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


@pytest.fixture
def smoothed(folder):
    lm = MaskedLM.from_pretrained(folder, device="cpu")
    return SmoothedClassifier(
        hashing_classifier, keep=2, sampling="lm", word_losses=lm.word_losses, masks=400
    )


def test_words_are_hidden_the_more_often_the_less_they_were_expected(smoothed, folder):
    [poll] = smoothed.copies([document(TEXTS[0])])
    [losses] = MaskedLM.from_pretrained(folder, device="cpu").word_losses([poll.document])
    seen = [int((poll.family.sets == place).sum()) for place in range(len(losses))]
    least, most = int(losses.argmin()), int(losses.argmax())
    assert losses[most] > 1.5 * losses[least] and seen[least] > seen[most] + 50


def test_results_do_not_depend_on_company(smoothed):
    together = smoothed.predict(TEXTS)
    assert together == [smoothed.predict([text])[0] for text in TEXTS]
    assert together[::-1] == smoothed.predict(TEXTS[::-1])
    assert [one.family for one in together] == ["lm"] * 3


def test_the_record_names_the_model_and_nothing_is_certified(smoothed, folder):
    described = json.loads(json.dumps(smoothed.description()))
    assert described["language_model"]["kind"] == "masked-lm"
    assert str(folder) in json.dumps(described["language_model"])
    with pytest.raises(OptionError, match="cannot be certified"):
        smoothed.certify(TEXTS)


@pytest.fixture
def run():
    """The command, in this process; it sets variables for its libraries, which are taken back."""
    with mock.patch.dict(os.environ):
        yield lambda *arguments: run_cli(*arguments)


def test_the_command(run, smoothed, folder):
    given = ["--model", FAKE, "--keep", "2", "--masks", "400", "--lm", str(folder)]
    done = run("predict", "--sampling", "lm", *given, *TEXTS)
    assert done.exit_code == 0, done.output
    votes = [json.loads(line)["votes"] for line in done.stdout.splitlines()]
    assert votes == [list(one.votes) for one in smoothed.predict(TEXTS)]


def test_a_folder_without_a_model(run, tmp_path):
    given = ["--model", FAKE, "--keep", "2", "--lm", str(tmp_path / "absent")]
    done = run("predict", "--sampling", "lm", *given, "a b c")
    assert done.exit_code == 1 and "absent" in done.stderr and done.stdout == ""

"""Tokenizers that split words at random: a text must have one answer, in every process."""

import copy
import json
import warnings

import pytest
import tiny_models
import transformers

from ranmask import SmoothedClassifier
from ranmask.attacks.resources.sentence_encoders import HuggingFaceSentenceEncoder
from ranmask.errors import ModelError
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.models.pretrained import load
from ranmask.models.tokenizing import split_one_way

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["unbelievable acting and awful story", "the unbelievably dull film was not rebelievable"]


@pytest.fixture
def folder(tmp_path):
    """A trained model with the tokenizer that it was trained with, BPE dropout and all."""
    model, tokenizer = tiny_models.roberta()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    _edit(tmp_path / "tokenizer.json", lambda saved: saved["model"].update(dropout=0.5))
    generic = {"tokenizer_class": "TokenizersBackend"}
    _edit(tmp_path / "tokenizer_config.json", lambda saved: saved.update(generic))
    return tmp_path


def _edit(path, change):
    saved = json.loads(path.read_text())
    change(saved)
    path.write_text(json.dumps(saved))


def ways(tokenizer, text="unbelievable"):
    return len({tuple(tokenizer(text)["input_ids"]) for _ in range(40)})


class Stuttering(transformers.RobertaTokenizerFast):
    """Now and then splits a word that has many letters in another way."""

    often = 50
    seen = 0

    def __call__(self, texts, **options):
        encoded = super().__call__(texts, **options)
        for ids in encoded["input_ids"] if isinstance(texts, list) else []:
            if len(ids) > 4:
                self.seen += 1
                if self.seen % self.often == 0:
                    ids[-1] = ids[0]
        return encoded


def test_dropout_is_switched_off_and_said_so(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert ways(tokenizer) > 1, "this folder's tokenizer does not split at random"
    with pytest.warns(RuntimeWarning, match=r"BPE dropout, dropout=0\.5\): this was switched off"):
        base = load(str(folder))
    assert ways(base.tokenizer) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base.configured(hide="drop")  # it is off now


@pytest.mark.filterwarnings("ignore:the tokenizer splits words at random")
def test_every_load_gives_the_answers_of_the_model_without_dropout(folder):
    whole = SmoothedClassifier(HuggingFaceClassifier(*tiny_models.roberta()), keep=2)
    wanted = whole.certify(TEXTS)
    for _ in range(3):
        assert SmoothedClassifier(load(str(folder)), keep=2).certify(TEXTS) == wanted


@pytest.mark.filterwarnings("ignore:the tokenizer splits words at random")
def test_what_is_saved_has_no_dropout(folder, tmp_path):
    SmoothedClassifier(load(str(folder)), keep=2).save_pretrained(str(tmp_path / "again"))
    saved = json.loads((tmp_path / "again" / "tokenizer.json").read_text())
    assert saved["model"]["dropout"] is None


def test_unigram_sampling_is_switched_off():
    tokenizer = copy.deepcopy(tiny_models.unigram_tokenizer())
    tokenizer.backend_tokenizer.model.alpha = 0.1
    assert ways(tokenizer) > 1
    with pytest.warns(RuntimeWarning, match=r"unigram sampling, alpha=0\.1"):
        HuggingFaceClassifier(tiny_models.albert()[0], tokenizer)
    assert ways(tokenizer) == 1


def test_sentencepiece_sampling_is_refused():
    tokenizer = copy.deepcopy(tiny_models.byte_tokenizer())
    tokenizer.sp_model_kwargs = {"enable_sampling": True, "alpha": 0.1, "nbest_size": -1}
    with pytest.raises(ModelError, match="enable_sampling"):
        HuggingFaceClassifier(tiny_models.roberta()[0], tokenizer)


def test_a_tokenizer_with_two_answers_is_refused():
    plain = tiny_models.byte_tokenizer()
    tokenizer = Stuttering(tokenizer_object=plain.backend_tokenizer, **plain.special_tokens_map)
    with pytest.raises(ModelError, match=r"splits .* in one way and then in another"):
        HuggingFaceClassifier(tiny_models.roberta()[0], tokenizer)
    tokenizer.often = 10**9  # the same one, once it has one answer
    HuggingFaceClassifier(tiny_models.roberta()[0], tokenizer)


def test_a_call_of_its_own_may_not_change_the_answer():
    """One call is always consistent; the next one is not."""
    tokenizer = copy.deepcopy(tiny_models.byte_tokenizer())
    calls = []

    def split(texts, **options):
        calls.append(texts)
        return tokenizer([text[len(calls) % 2 :] for text in texts], **options)

    class Odd:
        __call__ = staticmethod(split)
        all_special_ids = tokenizer.all_special_ids
        decode = staticmethod(tokenizer.decode)
        __len__ = staticmethod(lambda: len(tokenizer))

    with pytest.raises(ModelError, match="in one way and then in another"):
        split_one_way(Odd())


def test_language_models_of_attacks_split_one_way_too():
    tokenizer = copy.deepcopy(tiny_models.byte_tokenizer())
    tokenizer.backend_tokenizer.model.dropout = 0.3
    with pytest.warns(RuntimeWarning, match="BPE dropout"):
        HuggingFaceSentenceEncoder(tiny_models.roberta()[0].roberta, tokenizer)
    assert ways(tokenizer) == 1


@pytest.mark.parametrize("name", ["wordpiece", "byte", "unigram"])
def test_ordinary_tokenizers_are_left_as_they_are(name):
    tokenizer = getattr(tiny_models, f"{name}_tokenizer")()
    before = json.loads(tokenizer.backend_tokenizer.to_str())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        split_one_way(tokenizer)
    after = json.loads(tokenizer.backend_tokenizer.to_str())
    assert {k: before[k] for k in ("model", "normalizer")} == {
        k: after[k] for k in ("model", "normalizer")
    }

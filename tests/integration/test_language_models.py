"""Masked language models and sentence encoders, against one text at a time computed by hand."""

import copy
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import safetensors.torch
import tiny_models
import tokenizers
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask.attacks.resources import (
    HuggingFaceSentenceEncoder,
    MaskedLM,
    checkpoints,
    load_sentence_encoder,
)
from ranmask.attacks.resources.masked_lm import Gap
from ranmask.errors import ModelError, OptionError
from ranmask.models.tokenizing import splits_at_blanks
from ranmask.words import Document, document

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = [
    "the film was not very good",
    "unbelievable acting",
    "great",
    "a dull story but the plot is fine and the acting was unbelievably good",
    "the film was not very good",
    "rebelieved the unable",
    " ".join(["good", "bad", "unable"] * 30),
]
SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.4,
}


def build(model_class, config_class, tokenizer, **changes):
    """Random weights, large ones, so that every token and position moves what comes out."""
    sizes = SIZES | {"pad_token_id": tokenizer.pad_token_id, "vocab_size": len(tokenizer)}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = model_class(config_class(**sizes | changes)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.copy_(torch.linspace(-0.2, 0.2, parameter.numel()))
    return model, tokenizer


def bert_lm(**changes):
    sizes = {"max_position_embeddings": tiny_models.LONGEST} | changes
    tokenizer = tiny_models.wordpiece_tokenizer()
    return build(transformers.BertForMaskedLM, transformers.BertConfig, tokenizer, **sizes)


def roberta_lm():
    return build(
        transformers.RobertaForMaskedLM,
        transformers.RobertaConfig,
        tiny_models.byte_tokenizer(),
        max_position_embeddings=tiny_models.LONGEST + 2,
        type_vocab_size=1,
    )


def albert_lm():
    return build(
        transformers.AlbertForMaskedLM,
        transformers.AlbertConfig,
        tiny_models.unigram_tokenizer(),
        max_position_embeddings=tiny_models.LONGEST,
        embedding_size=16,
    )


def bert_encoder():
    return build(
        transformers.BertModel,
        transformers.BertConfig,
        tiny_models.wordpiece_tokenizer(),
        max_position_embeddings=tiny_models.LONGEST,
    )


BUILDERS = {"bert": bert_lm, "roberta": roberta_lm, "albert": albert_lm}


@pytest.fixture(scope="module", params=BUILDERS)
def pair(request):
    return BUILDERS[request.param]()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a masked language model; tests that change it copy it first."""
    return save(tmp_path_factory.mktemp("lm") / "tiny-lm", *bert_lm())


def save(folder, model, tokenizer):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "lm")


def change_weights(folder, change):
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    change(weights)
    safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def logits_of(model, ids, **inputs):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), **inputs).logits[0].double().numpy()


def count_rows(model):
    """How many rows the model is given, whenever it is called from now on."""
    rows = []
    hook = model.register_forward_pre_hook(
        lambda module, args, inputs: rows.append(len(inputs["input_ids"])), with_kwargs=True
    )
    return rows, hook


class TestFill:
    def gap(self, tokenizer, count=5, least=0.0, counts=lambda token: True, words=3):
        text = f"the film {tokenizer.mask_token} " + "good " * words
        return Gap(text.strip(), count, least, counts)

    def test_are_the_likeliest_of_each_text_by_itself(self, pair):
        model, tokenizer = pair
        lm = MaskedLM(model, tokenizer)
        gaps = [self.gap(tokenizer, words=words) for words in (1, 4, 2)]
        for gap, found in zip(gaps, lm.fill(gaps), strict=True):
            ids = tokenizer(gap.text)["input_ids"]
            row = logits_of(model, ids)[ids.index(tokenizer.mask_token_id)]
            order = np.argsort(-row, kind="stable")[:5]
            assert found == tokenizer.convert_ids_to_tokens(order)

    def test_only_what_counts_and_is_likely_enough(self):
        lm = MaskedLM(*bert_lm())
        [all_tokens] = lm.fill([self.gap(lm.tokenizer, count=10**6)])
        assert sorted(all_tokens) == sorted(lm.tokenizer.get_vocab())
        long = [token for token in all_tokens if len(token) > 3]
        assert lm.fill([self.gap(lm.tokenizer, 3, counts=long.__contains__)]) == [long[:3]]
        assert lm.fill([self.gap(lm.tokenizer, least=1.0)]) == [[]]
        [some] = lm.fill([self.gap(lm.tokenizer, 10**6, least=1 / len(all_tokens))])
        assert some == all_tokens[: len(some)] and 0 < len(some) < len(all_tokens)

    def test_a_mask_that_is_cut_off(self):
        lm = MaskedLM(*bert_lm())
        text = "good " * 100 + lm.mask_token
        assert lm.fill([Gap(text, 3, 0.0, bool), self.gap(lm.tokenizer)])[0] == []


class TestRows:
    """Words that are tokenised one by one give the tokens of the text."""

    @staticmethod
    def rows_of(model, texts):
        rows = model.rows(texts)
        return [ids[:size].tolist() for ids, size in zip(rows.ids, rows.lengths, strict=True)]

    @given(st.lists(st.text("abgodunfilm.,-'[]#MASKSEPé中\x0b\x1c\u00a0\u0301İ \n", max_size=40)))
    @settings(max_examples=150, deadline=None)
    def test_are_the_tokenizers(self, texts):
        tokenizer = tiny_models.wordpiece_tokenizer()
        model = MaskedLM(bert_lm()[0], tokenizer)
        texts = [*texts, *TEXTS, "", "good [MASK] film[SEP]x", "[MASK]\n[CLS] ##able"]
        for _ in range(2):  # words that are new, and words that are known
            expected = tokenizer(texts, truncation=True, max_length=model.longest)["input_ids"]
            assert self.rows_of(model, texts) == expected

    def test_each_word_is_read_once(self, monkeypatch):
        model = MaskedLM(*bert_lm())
        assert self.rows_of(model, ["good film"]) == self.rows_of(model, ["good film"])
        monkeypatch.setattr(model, "tokenizer", None)
        model.rows(["film good good"])
        with pytest.raises(TypeError):
            model.rows(["film bad"])

    def test_a_full_memory_of_words_is_emptied(self, monkeypatch):
        model, tokenizer = MaskedLM(*bert_lm()), tiny_models.wordpiece_tokenizer()
        monkeypatch.setattr(checkpoints, "_CACHED_WORDS", 3)
        for text in TEXTS[:4]:
            assert self.rows_of(model, [text]) == tokenizer([text])["input_ids"]

    def test_whose_words_are_read_one_by_one(self):
        tokenizer = copy.deepcopy(tiny_models.wordpiece_tokenizer())
        assert splits_at_blanks(tokenizer)
        assert not splits_at_blanks(roberta_lm()[1])
        tokenizer.add_tokens(["New York"])
        assert not splits_at_blanks(tokenizer)


class TestTopTokens:
    @pytest.mark.parametrize("count", [1, 7])
    def test_are_those_of_each_text_by_itself(self, pair, count):
        model, tokenizer = pair
        expected = []
        for text in TEXTS:
            ids = tokenizer(text, truncation=True, max_length=tiny_models.LONGEST)["input_ids"]
            order = np.argsort(-logits_of(model, ids), axis=1, kind="stable")[:, :count]
            expected.append([tuple(tokenizer.convert_ids_to_tokens(row)) for row in order])
        assert MaskedLM(model, tokenizer).top_tokens(TEXTS, count) == expected
        assert len(expected[-1]) == tiny_models.LONGEST

    def test_in_some_places(self, pair):
        model = MaskedLM(*pair)
        every = model.top_tokens(TEXTS, 5)
        places = [range(index, index + 3) for index in range(len(TEXTS))]
        some = model.top_tokens(TEXTS, 5, places)
        assert some == [
            own[place.start : place.stop] for own, place in zip(every, places, strict=True)
        ]
        beyond = range(tiny_models.LONGEST - 1, tiny_models.LONGEST + 5)
        assert model.top_tokens(TEXTS[-1:], 5, [beyond]) == [every[-1][-1:]]

    def test_each_text_once(self):
        lm = MaskedLM(*bert_lm())
        lm.top_tokens(["great"], 2)  # sees how its head reads
        rows, hook = count_rows(lm.model)
        lm.top_tokens(TEXTS, 2)
        hook.remove()
        assert sum(rows) == len(set(TEXTS)) == len(TEXTS) - 1

    @pytest.mark.parametrize("builder", BUILDERS.values(), ids=BUILDERS)
    def test_the_model_says_how_long_a_text_may_be(self, builder):
        """Where its tokenizer does not: RoBERTa's first position is not 0."""
        model, tokenizer = builder()
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.model_max_length = 10**30
        [long] = MaskedLM(model, tokenizer).top_tokens(TEXTS[-1:], 2)
        assert len(long) == tiny_models.LONGEST

    def test_nothing(self):
        assert MaskedLM(*bert_lm()).top_tokens([], 3) == []

    @pytest.mark.parametrize("count", [0, -2])
    def test_count(self, count):
        with pytest.raises(OptionError, match=f"at least 1, not {count}"):
            MaskedLM(*bert_lm()).top_tokens(TEXTS, count)

    def test_tokens_that_nobody_can_name_are_left_out(self):
        model, tokenizer = bert_lm(vocab_size=len(tiny_models.wordpiece_tokenizer()) + 5)
        with torch.no_grad():
            model.cls.predictions.bias[-5:] = 1000.0
        [places] = MaskedLM(model, tokenizer).top_tokens(["great"], 10**6)
        assert {tuple(sorted(tokens)) for tokens in places} == {tuple(sorted(tokenizer.vocab))}


def mpnet_lm():
    position = {"max_position_embeddings": tiny_models.LONGEST + 2}
    tokenizer = tiny_models.byte_tokenizer()
    return build(transformers.MPNetForMaskedLM, transformers.MPNetConfig, tokenizer, **position)


def distilbert_lm():
    sizes = {"n_layers": 2, "dim": 32, "n_heads": 2, "hidden_dim": 64}
    sizes["max_position_embeddings"] = tiny_models.LONGEST
    tokenizer = tiny_models.wordpiece_tokenizer()
    config = transformers.DistilBertConfig
    return build(transformers.DistilBertForMaskedLM, config, tokenizer, **sizes)


def electra_lm():
    sizes = {"max_position_embeddings": tiny_models.LONGEST, "embedding_size": 16}
    tokenizer = tiny_models.wordpiece_tokenizer()
    config = transformers.ElectraConfig
    return build(transformers.ElectraForMaskedLM, config, tokenizer, **sizes)


def attention_that_is_allowed():
    """Of the whole process; which of them is used depends on the device."""
    cuda = torch.backends.cuda
    return (
        cuda.flash_sdp_enabled(),
        cuda.mem_efficient_sdp_enabled(),
        cuda.math_sdp_enabled(),
        cuda.cudnn_sdp_enabled(),
    )


class TestPlaces:
    """The head reads the places that are asked for, and no others."""

    @pytest.mark.parametrize(
        "builder",
        [*BUILDERS.values(), mpnet_lm, distilbert_lm, electra_lm],
        ids=lambda b: b.__name__,
    )
    def test_logits_are_those_of_the_whole_text(self, builder):
        lm = MaskedLM(*builder())
        assert lm._reads_apart
        [batch] = lm.batches(lm.rows(TEXTS[:4]))
        row, place = np.array([0, 3, 1, 3]), np.array([1, 5, 0, 2])
        logits, whole = lm._logits(batch, row, place), lm.output(batch).logits
        assert logits.shape == (4, whole.shape[2])
        np.testing.assert_allclose(logits, whole[row, place], rtol=1e-4, atol=1e-4)
        assert not lm.model.base_model._forward_hooks

    def test_threads_may_share_a_model(self):
        lm = MaskedLM(*bert_lm())
        before = attention_that_is_allowed()
        texts = [
            " ".join(["film", "great", "awful", "plot"][: 1 + n % 4] * (1 + n)) for n in range(8)
        ]
        alone = [lm.top_tokens([text], 3) for text in texts]
        with ThreadPoolExecutor(len(texts)) as threads:
            found = list(threads.map(lambda text: lm.top_tokens([text], 3), texts * 10))
        assert found == alone * 10 and not lm.model.base_model._forward_hooks
        assert attention_that_is_allowed() == before  # of other models in this process, too

    def test_a_head_that_reads_others_too_is_shown_all(self):
        model, tokenizer = bert_lm()
        head = model.cls.forward
        model.cls.forward = lambda states: head(states - 3 * states[:, :1])
        lm = MaskedLM(model, tokenizer)
        assert not lm._reads_apart
        [places] = lm.top_tokens(["great"], 3)
        order = np.argsort(-logits_of(model, tokenizer("great")["input_ids"]), kind="stable")
        assert places == [tuple(tokenizer.convert_ids_to_tokens(row[:3])) for row in order]


class MadeUpModel(torch.nn.Module):
    """Says the same of every place, whatever the text."""

    def __init__(self, logits):
        super().__init__()
        self.logits = logits
        self.embeddings = torch.nn.Embedding(len(logits), 2)
        self.config = transformers.BertConfig(max_position_embeddings=64)
        self.device = torch.device("cpu")

    def get_input_embeddings(self):
        return self.embeddings

    def forward(self, input_ids, attention_mask=None):
        shape = (*input_ids.shape, len(self.logits))
        return transformers.modeling_outputs.MaskedLMOutput(logits=self.logits.expand(shape))


class TestTies:
    @pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
    def test_lower_ids_first(self, count):
        tokenizer = tiny_models.wordpiece_tokenizer()
        logits = torch.zeros(len(tokenizer))
        logits[[50, 9, 20]] = 2.0
        logits[[70, 30]] = 1.0
        order = [9, 20, 50, 30, 70, 0, 1, 2, 3]
        expected = tuple(tokenizer.convert_ids_to_tokens(order[:count]))
        [places] = MaskedLM(MadeUpModel(logits), tokenizer).top_tokens(["great"], count)
        assert places == [expected] * 3

    def test_not_numbers(self):
        tokenizer = tiny_models.wordpiece_tokenizer()
        model = MaskedLM(MadeUpModel(torch.full((len(tokenizer),), torch.nan)), tokenizer)
        with pytest.raises(ModelError, match="not numbers"):
            model.top_tokens(["great"], 2)
        with pytest.raises(ModelError, match="not numbers"):
            model.word_losses([Document(("great",))])

    def test_zero_has_no_sign(self):
        tokenizer = tiny_models.wordpiece_tokenizer()
        logits = torch.full((len(tokenizer),), -1.0)
        logits[[9, 20, 30]] = torch.tensor([0.0, -0.0, 0.0])
        [places] = MaskedLM(MadeUpModel(logits), tokenizer).top_tokens(["great"], 4)
        assert places[0] == tuple(tokenizer.convert_ids_to_tokens([9, 20, 30, 0]))

    def test_below_zero_and_beyond_all_numbers(self):
        tokenizer = tiny_models.wordpiece_tokenizer()
        logits = torch.full((len(tokenizer),), -torch.inf)
        order = [70, 30, 50, 9, 20, 60]
        logits[order] = torch.tensor([torch.inf, 3.0, 1e-9, -1e-9, -2.0, -1e30])
        [places] = MaskedLM(MadeUpModel(logits), tokenizer).top_tokens(["great"], 7)
        assert places[0] == tuple(tokenizer.convert_ids_to_tokens([*order, 0]))


class TestTokens:
    def test_bert(self):
        model = MaskedLM(*bert_lm())
        assert model.mask_token == "[MASK]"
        assert model.pieces("unbelievable") == ("un", "##believ", "##able")
        assert model.pieces("film") == ("film",)
        assert model.continues("##able", True) and model.continues("##able", False)
        assert not model.continues("film", True) and not model.continues("film", False)
        assert (model.plain("##able"), model.plain("film")) == ("able", "film")

    def test_roberta(self):
        model = MaskedLM(*roberta_lm())
        assert model.mask_token == "<mask>"
        assert model.pieces("film") == ("film",)
        assert model.continues("film", False) and not model.continues("Ġfilm", False)
        assert not model.continues("film", True) and not model.continues("Ġfilm", True)
        assert (model.plain("Ġfilm"), model.plain("able")) == ("film", "able")
        assert model.plain("Ġ##") == "##"

    def test_albert(self):
        model = MaskedLM(*albert_lm())
        assert not model.continues("▁film", True) and model.continues("able", True)
        assert model.plain("▁film") == "film"

    def test_mask_place(self):
        model = MaskedLM(*bert_lm())
        assert model.mask_place("[MASK]") == 1
        assert model.mask_place("unbelievable [MASK] film [MASK]") == 4

    def test_mask_place_is_a_place_of_top_tokens(self, pair):
        """Where the mask stands is where the word's own first token stood."""
        model = MaskedLM(*pair)
        tokenizer = pair[1]
        words = TEXTS[3].split()
        for index, word in enumerate(words):
            masked = " ".join([*words[:index], model.mask_token, *words[index + 1 :]])
            place = model.mask_place(masked)
            token = tokenizer.convert_ids_to_tokens(tokenizer(TEXTS[3])["input_ids"])[place]
            assert word.startswith(model.plain(token))

    @given(st.lists(st.sampled_from([*"ago.,-'[]# \n", "film", "unable", "[SEP]", "é", "[MASK]"])))
    @settings(max_examples=200, deadline=None)
    def test_mask_place_is_the_tokenizers(self, parts):
        model, text = MaskedLM(*bert_lm()), "".join(parts)
        ids = model.tokenizer(text, truncation=True, max_length=model.longest)["input_ids"]
        mask = model.tokenizer.mask_token_id
        assert model.mask_place(text) == (ids.index(mask) if mask in ids else None)

    def test_no_mask_place(self):
        model = MaskedLM(*bert_lm())
        assert model.mask_place("the film") is None
        assert model.mask_place("film " * 61 + "[MASK]") == 62
        assert model.mask_place("film " * 62 + "[MASK]") is None

    def test_a_mask_token_that_must_be_a_word_is_none_inside_one(self):
        model, tokenizer = bert_lm()
        word = tokenizers.AddedToken("[MASK]", single_word=True, special=True)
        tokenizer = copy.deepcopy(tokenizer)  # the others of this file read with it
        tokenizer.add_special_tokens({"mask_token": word})
        lm = MaskedLM(model, tokenizer)
        assert [lm.mask_place(f"good{blank}[MASK]") for blank in (" ", "")] == [2, None]


def by_hand(model, before, words, after, types=None):
    """The loss of each word, from the tokens of a row that is written down here."""
    ids = [*before, *(token for word in words for token in word), *after]
    inputs = {} if types is None else {"token_type_ids": torch.tensor([types])}
    logits = logits_of(model, ids, **inputs)
    lost = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(ids)), ids]
    start, losses = len(before), []
    for word in words:
        losses.append(lost[start : start + len(word)].mean())
        start += len(word)
    return np.array(losses)


class TestWordLosses:
    """Losses are rounded to 3 digits: within half of the last one, and the noise of batching."""

    NEAR = 0.0006

    def test_bert(self):
        model, tokenizer = bert_lm()
        texts = [*TEXTS[:6], "[MASK] film [SEP]"]
        found = MaskedLM(model, tokenizer).word_losses([document(text) for text in texts])
        cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        for text, losses in zip(texts, found, strict=True):
            spelt = [
                tokenizer.convert_tokens_to_ids(self.wordpieces(tokenizer, word))
                for word in text.split()
            ]
            expected = by_hand(model, [cls], spelt, [sep])
            np.testing.assert_allclose(losses, expected, atol=self.NEAR)
            np.testing.assert_array_equal(losses, np.round(losses, 3))
            assert len(set(losses)) > 1 or len(losses) == 1

    @staticmethod
    def wordpieces(tokenizer, word):
        """Read as plain characters, even what spells a special token."""
        bare = word.strip("[]")
        if bare == word:
            return tokenizer.tokenize(word)
        return ["[", *tokenizer.tokenize(bare.lower()), "]"]

    def test_roberta(self):
        model, tokenizer = roberta_lm()
        found = MaskedLM(model, tokenizer).word_losses([document(text) for text in TEXTS[:4]])
        for text, losses in zip(TEXTS, found, strict=False):
            first, *others = text.split()
            words = [first, *(f" {word}" for word in others)]
            spelt = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
            expected = by_hand(model, [tokenizer.bos_token_id], spelt, [tokenizer.eos_token_id])
            np.testing.assert_allclose(losses, expected, atol=self.NEAR)

    def test_a_premise_is_context_and_has_no_losses(self):
        model, tokenizer = bert_lm()
        premise, hypothesis = "unbelievable acting", "the plot was fine"
        [pair] = MaskedLM(model, tokenizer).word_losses([document((premise, hypothesis))])
        [alone] = MaskedLM(model, tokenizer).word_losses([document(hypothesis)])
        sep = tokenizer.sep_token_id
        before = tokenizer(premise)["input_ids"]
        spelt = [tokenizer(w, add_special_tokens=False)["input_ids"] for w in hypothesis.split()]
        types = [0] * len(before) + [1] * 5
        expected = by_hand(model, before, spelt, [sep], types)
        np.testing.assert_allclose(pair, expected, atol=self.NEAR)
        assert np.abs(pair - alone).max() > 0.01

    @pytest.mark.parametrize("premise", [None, "a film"])
    def test_words_that_are_cut_off_have_the_mean_of_the_others(self, premise):
        model, tokenizer = bert_lm()
        words = ("good", "bad", "unable", "film") * 20
        [losses] = MaskedLM(model, tokenizer).word_losses([Document(words, premise)])
        spelt = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
        cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        before = [cls] if premise is None else tokenizer(premise)["input_ids"]
        room = tiny_models.LONGEST - len(before) - 1
        if premise is not None:  # so many words are read that the longest premise fits in too
            spelt = spelt[: tiny_models.LONGEST - 3 - tiny_models.LONGEST // 2]
        fitting, used = [], 0
        for word in spelt:
            if used < room:
                fitting.append(word[: room - used])
                used += len(fitting[-1])
        types = None if premise is None else [0] * len(before) + [1] * (used + 1)
        expected = by_hand(model, before, fitting, [sep], types)
        assert len(fitting) < len(words) == len(losses)
        np.testing.assert_allclose(losses[: len(fitting)], expected, atol=self.NEAR)
        np.testing.assert_allclose(losses[len(fitting) :], expected.mean(), atol=self.NEAR)

    def test_a_word_in_the_middle_of_which_the_row_ends(self):
        model, tokenizer = bert_lm()
        words = ("film",) * 61 + ("unbelievable", "bad")
        [losses] = MaskedLM(model, tokenizer).word_losses([Document(words)])
        spelt = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
        spelt = [*spelt[:61], spelt[61][:1]]
        expected = by_hand(model, [tokenizer.cls_token_id], spelt, [tokenizer.sep_token_id])
        np.testing.assert_allclose(losses[:62], expected, atol=self.NEAR)
        np.testing.assert_allclose(losses[62], expected.mean(), atol=self.NEAR)

    def test_long_words_are_read_in_part(self):
        """By the same limits as in classifiers: 16 tokens of 256 characters."""
        model, tokenizer = bert_lm()
        word = "unable" * 10
        [losses] = MaskedLM(model, tokenizer).word_losses([Document(("film", word, "bad"))])
        spelt = [tokenizer(w, add_special_tokens=False)["input_ids"] for w in ("film", word, "bad")]
        assert len(spelt[1]) > 16
        spelt[1] = spelt[1][:16]
        expected = by_hand(model, [tokenizer.cls_token_id], spelt, [tokenizer.sep_token_id])
        np.testing.assert_allclose(losses, expected, atol=self.NEAR)

    def test_a_word_of_no_token_has_the_mean_of_the_others(self):
        lm = MaskedLM(*bert_lm())
        [with_it] = lm.word_losses([Document(("film", "\u200b", "bad"))])
        [without] = lm.word_losses([Document(("film", "bad"))])
        np.testing.assert_allclose(with_it[[0, 2]], without, atol=0.0011)
        assert with_it[1] == pytest.approx(without.mean(), abs=0.0011)
        [nothing] = lm.word_losses([Document(("\u200b", "\u200b"))])
        np.testing.assert_array_equal(nothing, 1.0)

    def test_no_loss_is_nothing(self):
        tokenizer = tiny_models.wordpiece_tokenizer()
        logits = torch.zeros(len(tokenizer))
        logits[tokenizer.vocab["film"]] = 100.0
        [losses] = MaskedLM(MadeUpModel(logits), tokenizer).word_losses(
            [Document(("film", "bad", "film"))]
        )
        np.testing.assert_array_equal(losses, [0.001, 100.0, 0.001])

    def test_other_texts_in_the_batch_do_not_matter(self, pair):
        lm = MaskedLM(*pair)
        documents = [document(text) for text in TEXTS]
        together = lm.word_losses(documents)
        np.testing.assert_array_equal(together[0], together[4])
        for one, losses in zip(documents, together, strict=True):
            np.testing.assert_allclose(lm.word_losses([one])[0], losses, atol=0.0011)
        assert lm.word_losses([]) == []


class TestLoadingMaskedLM:
    def test_gives_what_the_model_in_memory_gives(self, saved):
        loaded, built = MaskedLM.from_pretrained(saved), MaskedLM(*bert_lm())
        assert loaded.top_tokens(TEXTS, 4) == built.top_tokens(TEXTS, 4)
        assert loaded.description()["sha256"] == built.description()["sha256"]
        assert loaded.description()["name"] == "tiny-lm"
        json.dumps(loaded.description())

    @pytest.mark.parametrize("builder", [roberta_lm, albert_lm])
    def test_tied_weights_may_be_missing(self, tmp_path, builder):
        save(tmp_path / "lm", *builder())
        built = MaskedLM(*builder())
        loaded = MaskedLM.from_pretrained(str(tmp_path / "lm"))
        assert loaded.top_tokens(TEXTS, 4) == built.top_tokens(TEXTS, 4)

    def test_dropout_is_off(self):
        model, tokenizer = bert_lm()
        model.train()
        assert model.config.hidden_dropout_prob > 0
        assert MaskedLM(model, tokenizer).top_tokens(TEXTS, 4) == MaskedLM(*bert_lm()).top_tokens(
            TEXTS, 4
        )

    def test_other_weights_are_another_model(self, folder, saved):
        change_weights(folder, lambda weights: weights["cls.predictions.bias"].add_(1))
        digests = {MaskedLM.from_pretrained(one).description()["sha256"] for one in (folder, saved)}
        assert len(digests) == 2

    def test_an_encoder_without_its_head_is_refused(self, tmp_path, caplog):
        save(tmp_path / "encoder", *bert_encoder())
        logger = transformers.utils.logging.get_logger()
        logger.addHandler(caplog.handler)
        with pytest.raises(ModelError, match=r"no weights for cls\..*ranmask train --kind mlm"):
            MaskedLM.from_pretrained(tmp_path / "encoder")
        logger.removeHandler(caplog.handler)
        assert not caplog.records  # the error says it all

    def test_one_missing_weight_is_refused(self, folder):
        change_weights(
            folder, lambda weights: weights.pop("cls.predictions.transform.dense.weight")
        )
        with pytest.raises(ModelError, match=r"cls\.predictions\.transform\.dense\.weight"):
            MaskedLM.from_pretrained(folder)

    def test_pickles_are_refused(self, folder):
        weights = safetensors.torch.load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        torch.save(weights, folder / "pytorch_model.bin")
        with pytest.raises(ModelError, match="cannot load"):
            MaskedLM.from_pretrained(folder)

    @pytest.mark.parametrize("name", ["./none", "/none/here", "~/none/here", "a/b/c", ""])
    def test_a_folder_that_is_not_there_is_not_looked_up(self, name):
        with pytest.raises(ModelError, match="there is no model folder"):
            MaskedLM.from_pretrained(name)

    def test_nor_is_a_path_object(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ModelError, match="there is no model folder"):
            MaskedLM.from_pretrained(tmp_path.relative_to(tmp_path.parent))

    def test_a_damaged_folder(self, folder):
        (folder / "config.json").write_text("{")
        with pytest.raises(ModelError, match="cannot load"):
            MaskedLM.from_pretrained(folder)

    def test_no_tokenizer(self, folder):
        for file in folder.glob("*token*"):
            file.unlink()
        with pytest.raises(ModelError, match="tokenizer"):
            MaskedLM.from_pretrained(folder)

    def test_a_tokenizer_of_another_model(self):
        model, _ = bert_lm()
        with pytest.raises(ModelError, match="do not belong together"):
            MaskedLM(model, tiny_models.byte_tokenizer())

    def test_device(self, saved):
        assert MaskedLM.from_pretrained(saved, device="cpu").description()["device"] == "cpu"
        with pytest.raises(OptionError, match="'abacus'"):
            MaskedLM.from_pretrained(saved, device="abacus")

    def test_dtype(self, saved):
        single, half = (
            MaskedLM.from_pretrained(saved, "cpu", dtype) for dtype in ("float32", "bfloat16")
        )
        assert MaskedLM.from_pretrained(saved, "cpu").description() == single.description()
        assert "dtype" not in single.description()  # as before there was a choice
        assert half.description()["dtype"] == "bfloat16"
        [places], [others] = (lm.top_tokens(["great"], 1) for lm in (single, half))
        assert len(places) == len(others)

    @pytest.mark.parametrize("dtype", ["float64", "", 16])
    def test_a_dtype_that_is_none_of_ours(self, saved, dtype):
        with pytest.raises(OptionError, match=f"float32, bfloat16, float16; not {dtype!r}"):
            MaskedLM.from_pretrained(saved, "cpu", dtype)

    @pytest.mark.parametrize(("device", "dtype"), [("cuda", "float16"), ("cpu", "float32")])
    def test_dtype_of_a_device(self, saved, monkeypatch, device, dtype):
        def no_weights(loader, name, **given):
            assert given == {"dtype": dtype}
            raise ModelError("asked for")

        monkeypatch.setattr(checkpoints.hub, "usable_device", torch.device)
        monkeypatch.setattr(checkpoints.hub, "load_pretrained", no_weights)
        with pytest.raises(ModelError, match="asked for"):
            MaskedLM.from_pretrained(saved, device)

    def test_losses_are_computed_in_single_precision(self, saved):
        half = MaskedLM.from_pretrained(saved, "cpu", "bfloat16")
        with pytest.raises(OptionError, match="in bfloat16: load it with dtype='float32'"):
            half.word_losses([Document(("great",))])

    def test_hints_of_the_library_are_left_as_they_were(self, saved):
        logging = transformers.utils.logging
        before = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_info()
        logging.enable_progress_bar()
        MaskedLM.from_pretrained(saved)
        after = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity(before[0])
        if not before[1]:
            logging.disable_progress_bar()
        assert after == (logging.INFO, True)


def sentence_by_hand(model, tokenizer, sentence, longest=tiny_models.LONGEST):
    inputs = tokenizer(sentence, truncation=True, max_length=longest, return_tensors="pt")
    with torch.no_grad():
        mean = model(**inputs).last_hidden_state[0].double().mean(dim=0).numpy()
    return mean / np.linalg.norm(mean)


class TestSentenceEncoder:
    def test_rows_are_those_of_each_sentence_by_itself(self):
        model, tokenizer = bert_encoder()
        sentences = [*TEXTS, ""]
        found = HuggingFaceSentenceEncoder(model, tokenizer).encode(sentences)
        expected = [sentence_by_hand(model, tokenizer, sentence) for sentence in sentences]
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
        assert np.abs(found[0] - found[1]).max() > 0.01

    def test_each_sentence_once(self):
        model, tokenizer = bert_encoder()
        rows, hook = count_rows(model)
        HuggingFaceSentenceEncoder(model, tokenizer).encode(TEXTS * 3)
        hook.remove()
        assert sum(rows) == len(set(TEXTS))

    def test_not_numbers(self):
        model, tokenizer = bert_encoder()
        with torch.no_grad():
            model.embeddings.word_embeddings.weight[tokenizer.vocab["great"]] = torch.nan
        encoder = HuggingFaceSentenceEncoder(model.bfloat16(), tokenizer)
        encoder.encode(["good"])
        with pytest.raises(ModelError, match="vectors that are not numbers: load it with dtype"):
            encoder.encode(["good", "great"])

    def test_no_sentence(self):
        assert HuggingFaceSentenceEncoder(*bert_encoder()).encode([]).shape == (0, 32)

    def test_many_sentences(self):
        model, tokenizer = bert_encoder()
        encoder = HuggingFaceSentenceEncoder(model, tokenizer)
        words = TEXTS[3].split()
        sentences = [" ".join(words[: 1 + n % 13]) + " good" * (n // 13) for n in range(300)]
        rows, hook = count_rows(model)
        found = encoder.encode(sentences)
        hook.remove()
        assert len(rows) > 1 and max(rows) > 8  # batches, and not of single sentences
        for place in range(0, 300, 23):
            expected = sentence_by_hand(model, tokenizer, sentences[place])
            np.testing.assert_allclose(found[place], expected, atol=1e-5)

    def test_loading(self, tmp_path):
        model, tokenizer = bert_encoder()
        save(tmp_path / "enc", model, tokenizer)
        encoder = load_sentence_encoder(tmp_path / "enc", "cpu")
        built = HuggingFaceSentenceEncoder(model, tokenizer)
        np.testing.assert_allclose(encoder.encode(TEXTS), built.encode(TEXTS), atol=1e-6)
        described = encoder.description()
        assert described["sha256"] == built.description()["sha256"]
        assert (described["name"], described["pooling"]) == ("enc", "mean")
        assert described["longest"] == tiny_models.LONGEST
        json.dumps(described)

    def test_the_limit_of_sentence_transformers_holds(self, tmp_path):
        model, tokenizer = bert_encoder()
        save(tmp_path, model, tokenizer)
        config = tmp_path / "sentence_bert_config.json"
        config.write_text('{"max_seq_length": 16, "do_lower_case": false}')
        encoder = load_sentence_encoder(tmp_path)
        expected = sentence_by_hand(model, tokenizer, TEXTS[-1], 16)
        np.testing.assert_allclose(encoder.encode(TEXTS[-1:])[0], expected, atol=1e-5)
        assert encoder.description()["longest"] == 16
        config.write_text('{"max_seq_length": null}')
        assert load_sentence_encoder(tmp_path).description()["longest"] == tiny_models.LONGEST
        config.write_text('{"max_seq_length": -5}')
        with pytest.raises(ModelError, match="-5"):
            load_sentence_encoder(tmp_path)

    def test_a_pooler_is_not_needed_and_the_rest_is(self, folder):
        model, tokenizer = bert_lm()
        found = load_sentence_encoder(str(folder)).encode(TEXTS[:1])
        expected = sentence_by_hand(model.bert, tokenizer, TEXTS[0])
        np.testing.assert_allclose(found[0], expected, atol=1e-5)
        name = "bert.encoder.layer.1.output.dense.weight"
        change_weights(folder, lambda weights: weights.pop(name))
        with pytest.raises(ModelError, match=r"encoder\.layer\.1\.output\.dense\.weight"):
            load_sentence_encoder(folder)

    def test_not_there(self, tmp_path):
        with pytest.raises(ModelError, match="there is no model folder"):
            load_sentence_encoder(tmp_path / "none")

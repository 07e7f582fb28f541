"""Encoders made smaller: every word is still read, and what is left means what it meant."""

import copy
import string

import pytest
import tiny_models
import tokenizers
import torch
import transformers

from ranmask.errors import OptionError
from ranmask.training.compact import keep_layers, keep_tokens

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ["good", "film", "good", "unbelievable", "the", "the", "the"]
CHARACTERS = string.ascii_lowercase + string.digits + string.punctuation
NEEDED = 5 + 2 * len(CHARACTERS)


def bert(tokenizer=None):
    model, own = tiny_models.bert()
    if tokenizer is None:
        return copy.deepcopy(model), own
    config = copy.deepcopy(model.config)
    config.vocab_size = len(tokenizer)
    config.pad_token_id = tokenizer.pad_token_id
    torch.manual_seed(0)
    return type(model)(config).eval(), tokenizer


def logits(model, tokenizer, texts):
    with torch.inference_mode():
        return torch.cat([model(**tokenizer(*text, return_tensors="pt")).logits for text in texts])


class TestTokens:
    def test_the_most_frequent_stay(self):
        model, tokenizer = bert()
        reduced = keep_tokens(model, tokenizer, WORDS, NEEDED + 4)
        assert len(reduced) == NEEDED + 4
        multiple = {token for token in reduced.get_vocab() if len(token.removeprefix("##")) > 1}
        # Three times "the", twice "good"; the others once, so that the lowest ids win.
        assert multiple - set(tokenizer.all_special_tokens) == {"the", "good", "film", "un"}

    def test_every_word_of_known_characters_is_read(self):
        model, tokenizer = bert()
        reduced = keep_tokens(model, tokenizer, WORDS, NEEDED)
        for word in (*tiny_models.KNOWN_WORDS, "unbelievable", "qzx9", "o'clock", "a", "UPPER"):
            ids = reduced(word, add_special_tokens=False)["input_ids"]
            assert reduced.unk_token_id not in ids
            spelt = "".join(reduced.convert_ids_to_tokens(ids)).replace("##", "")
            assert spelt == word.lower()

    def test_ids_are_those_of_the_right_rows(self):
        """Without tokens that no text needs, logits are what they were."""
        model, tokenizer = bert()
        texts = [("the good film",), ("a dull plot was not fine , 7 %",), ("good", "the film")]
        needed = {
            token
            for text in texts
            for part in text
            for token in tokenizer.tokenize(part)
            if len(token) > 1
        }
        before = logits(model, tokenizer, texts)
        size = NEEDED + len(needed)
        reduced = keep_tokens(model, tokenizer, [" ".join(text) for text in texts], size)
        assert len(reduced) == size < len(tokenizer)
        assert torch.equal(logits(model, reduced, texts), before)
        assert model.config.vocab_size == model.get_input_embeddings().num_embeddings == size

    def test_special_tokens_may_move(self, tmp_path):
        """As in BERT's vocabulary, where unused tokens stand before and between them."""
        plain = tiny_models.wordpiece_tokenizer().get_vocab()
        entries = [f"[unused{place}]" for place in range(40)] + sorted(plain, key=plain.get)
        tokenizer = transformers.BertTokenizer(
            vocab={entry: place for place, entry in enumerate(entries)}, model_max_length=32
        )
        model, _ = bert(tokenizer)
        texts = [("good film",), ("the [MASK] film", "good")]
        before = logits(model, tokenizer, texts)
        reduced = keep_tokens(model, tokenizer, ["good film the"] * 2, NEEDED + 3)
        assert torch.equal(logits(model, reduced, texts), before)
        assert (tokenizer.pad_token_id, reduced.pad_token_id) == (40, 0)
        assert model.config.pad_token_id == model.get_input_embeddings().padding_idx == 0
        assert reduced.convert_ids_to_tokens(reduced("good", "the")["input_ids"]) == [
            *("[CLS]", "good", "[SEP]", "the", "[SEP]")
        ]
        padded = reduced(["good", "good film"], padding=True)["input_ids"]
        assert reduced.convert_ids_to_tokens(padded[0])[-1] == "[PAD]"
        self.saved_and_loaded(reduced, tmp_path)

    def test_everything_else_of_the_tokenizer_stays(self, tmp_path):
        characters = "aäbdgou"
        entries = ["<p>", "<u>", "<c>", "<s>", "<m>", *characters, *(f"##{c}" for c in characters)]
        entries += ["Bad", "gut", "##ad", "ABBA"]
        special = {"pad": "<p>", "unk": "<u>", "cls": "<c>", "sep": "<s>", "mask": "<m>"}
        tokenizer = transformers.BertTokenizer(
            vocab={entry: place for place, entry in enumerate(entries)},
            do_lower_case=False,
            strip_accents=False,
            model_max_length=17,
            **{f"{name}_token": token for name, token in special.items()},
        )
        model, _ = bert(tokenizer)
        reduced = keep_tokens(model, tokenizer, ["Bad", "Bad", "gut"], len(entries) - 2)
        assert reduced.tokenize("Bad gut bäd") == ["Bad", "gut", "b", "##ä", "##d"]
        assert reduced.tokenize("ABBA") == ["<u>"]  # capitals were no characters of their own
        assert reduced.model_max_length == 17
        assert {name: getattr(reduced, f"{name}_token") for name in special} == special
        self.saved_and_loaded(reduced, tmp_path)

    @pytest.mark.parametrize("form", ["template", "bert"])
    def test_a_tokenizer_that_is_all_file(self, form, tmp_path):
        """Without a class that builds the frame of a row anew from the names of its tokens."""
        plain = tiny_models.wordpiece_tokenizer().get_vocab()
        entries = [f"[unused{place}]" for place in range(9)] + sorted(plain, key=plain.get)
        ids = {entry: place for place, entry in enumerate(entries)}
        backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))
        backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        ends = [("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
        processors = tokenizers.processors
        backend.post_processor = (
            processors.TemplateProcessing("[CLS] $A [SEP]", None, special_tokens=ends)
            if form == "template"
            else processors.BertProcessing(ends[1], ends[0])
        )
        special = ("pad", "unk", "cls", "sep", "mask")
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=backend,
            **{f"{name}_token": f"[{name.upper()}]" for name in special},
        )
        model, _ = bert(tokenizer)
        reduced = keep_tokens(model, tokenizer, WORDS, NEEDED + 2)
        shown = reduced.convert_ids_to_tokens(reduced("good the")["input_ids"])
        assert shown == ["[CLS]", "good", "the", "[SEP]"]
        assert reduced.cls_token_id == tokenizer.cls_token_id - 9
        self.saved_and_loaded(reduced, tmp_path)

    def saved_and_loaded(self, tokenizer, folder):
        tokenizer.save_pretrained(folder)
        loaded = transformers.AutoTokenizer.from_pretrained(folder)
        assert loaded.get_vocab() == tokenizer.get_vocab()
        for text in ("good film", "Bad bäd [MASK] <m>"):
            assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]

    def test_a_vocabulary_as_large_as_it_is_stays(self):
        model, tokenizer = bert()
        before = model.get_input_embeddings().weight.clone()
        reduced = keep_tokens(model, tokenizer, WORDS, 10**6)
        assert reduced.get_vocab() == tokenizer.get_vocab()
        assert torch.equal(model.get_input_embeddings().weight, before)

    def test_too_small(self):
        model, tokenizer = bert()
        with pytest.raises(OptionError, match=f"special tokens and single characters are {NEEDED}"):
            keep_tokens(model, tokenizer, WORDS, NEEDED - 1)
        assert len(tokenizer) == model.config.vocab_size  # untouched

    @pytest.mark.parametrize(
        ("name", "kind"), [("byte_tokenizer", "BPE"), ("unigram_tokenizer", "Unigram")]
    )
    def test_other_tokenizers_are_refused(self, name, kind):
        with pytest.raises(OptionError, match=f"needs a WordPiece tokenizer.* this one is {kind}"):
            keep_tokens(bert()[0], getattr(tiny_models, name)(), WORDS, 200)

    def test_a_tokenizer_written_in_python_is_refused(self):
        class Characters:
            """Without the backend that the others share."""

        with pytest.raises(OptionError, match="this one is Characters"):
            keep_tokens(bert()[0], Characters(), WORDS, 200)


class TestLayers:
    def test_the_first_ones_stay(self):
        model, tokenizer = bert()
        before = model.bert.encoder.layer[0].state_dict()
        keep_layers(model, 1)
        assert len(model.bert.encoder.layer) == model.config.num_hidden_layers == 1
        after = model.bert.encoder.layer[0].state_dict()
        assert all(torch.equal(before[name], after[name]) for name in before)
        assert logits(model, tokenizer, [("good film",)]).shape == (1, 3)

    def test_all_of_them_is_no_change(self):
        model, tokenizer = bert()
        before = logits(model, tokenizer, [("good film",)])
        keep_layers(model, 2)
        assert torch.equal(logits(model, tokenizer, [("good film",)]), before)

    def test_more_than_there_are(self):
        with pytest.raises(OptionError, match="layers=3, but the encoder has only 2"):
            keep_layers(bert()[0], 3)

    def test_another_structure(self):
        with pytest.raises(OptionError, match="DistilBertForSequenceClassification is not built"):
            keep_layers(tiny_models.distilbert()[0], 1)

"""Tiny real models with random weights and real tokenizers, built offline from their configs.

The weights are drawn ten times larger than usual, so that every token and every position moves
the logits: with the usual ones a test that looks for a trace could not find any.
"""

import copy
import functools
import string
import warnings

import torch
import transformers
from tokenizers import AddedToken, pre_tokenizers

LONGEST = 64
LABELS = ("negative", "neutral", "positive")

KNOWN_WORDS = (
    *("the", "a", "film", "plot", "was", "is", "not", "good", "bad", "fine", "dull", "story"),
    *("very", "great", "awful", "and", "but", "acting"),
)
PIECES = ("un", "believ", "able", "ly", "ing", "ed", "er", "ness", "re")

_SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.4,
    "id2label": dict(enumerate(LABELS)),
    "label2id": {label: index for index, label in enumerate(LABELS)},
}
_BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


@functools.cache
def wordpiece_tokenizer():
    """BERT's: ``[CLS] A [SEP] B [SEP]`` with token types 0 and 1."""
    characters = string.ascii_lowercase + string.digits + string.punctuation
    entries = [*_BERT_SPECIAL, *characters, *(f"##{c}" for c in characters)]
    entries += [word for word in KNOWN_WORDS if len(word) > 1]
    entries += ["un", "re", *(f"##{piece}" for piece in PIECES)]
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    return transformers.BertTokenizerFast(vocab=vocabulary, model_max_length=LONGEST)


@functools.cache
def byte_tokenizer():
    """RoBERTa's: ``<s> A </s></s> B </s>``, and a mask token that swallows the blank before it."""
    entries, merges = _byte_entries(_ROBERTA_SPECIAL)
    vocabulary = {entry: index for index, entry in enumerate([*entries, "<mask>"])}
    return transformers.RobertaTokenizerFast(
        vocab=vocabulary,
        merges=merges,
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        model_max_length=LONGEST,
    )


def decoder_tokenizer(**special):
    """GPT-2's: nothing around a text, nothing between premise and hypothesis; a new one."""
    entries, merges = _byte_entries(("<|endoftext|>",))
    vocabulary = {entry: index for index, entry in enumerate([*entries, "<mask>", "<pad>"])}
    return transformers.GPT2Tokenizer(
        vocab=vocabulary, merges=merges, model_max_length=LONGEST, **special
    )


def _byte_entries(special):
    entries = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = []
    for word in [*(f"Ġ{word}" for word in KNOWN_WORDS), *KNOWN_WORDS, *PIECES]:
        for end in range(2, len(word) + 1):  # letter by letter, from the left
            if word[:end] not in entries:
                entries.append(word[:end])
                merges.append((word[: end - 1], word[end - 1]))
    return entries, merges


@functools.cache
def unigram_tokenizer():
    """ALBERT's: the special tokens are pieces of the vocabulary like any other."""
    special = [(token, 0.0) for token in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")]
    characters = string.ascii_lowercase + string.digits + string.punctuation + "▁"
    pieces = [(character, -8.0) for character in characters]
    pieces += [(f"▁{word}", -4.0) for word in KNOWN_WORDS]
    pieces += [(piece, -5.0) for piece in PIECES]
    return transformers.AlbertTokenizer(vocab=special + pieces, model_max_length=LONGEST)


def _build(model_class, config_class, tokenizer, **changes):
    padding = tokenizer.pad_token_id
    sizes = _SIZES | {"vocab_size": len(tokenizer), "pad_token_id": padding} | changes
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = model_class(config_class(**sizes)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") and parameter.dim() == 1:
                parameter.copy_(torch.linspace(-0.2, 0.2, len(parameter)))
        model.get_input_embeddings().weight *= 3  # words say more than positions
        _balance(model, tokenizer(list(KNOWN_WORDS), return_tensors="pt", padding=True))
    return model, tokenizer


def _balance(model, words):
    """Sharpen the last layer, and let every class win about as many words as the others.

    A head without a bias is only sharpened.
    """
    *_, last = (module for module in model.modules() if isinstance(module, torch.nn.Linear))
    last.weight *= 3
    if last.bias is not None:
        last.bias -= model(**words).logits.mean(dim=0)


@functools.cache
def bert():
    return _build(
        transformers.BertForSequenceClassification,
        transformers.BertConfig,
        wordpiece_tokenizer(),
        max_position_embeddings=LONGEST,
    )


@functools.cache
def pair_bert():
    """BERT under the paper's head for pairs."""
    return _with_pair_head(*bert())


@functools.cache
def pair_roberta():
    return _with_pair_head(*roberta())


def _with_pair_head(model, tokenizer):
    from ranmask.models.pair_head import PairHeadModel

    with torch.random.fork_rng():
        torch.manual_seed(7)
        pair = PairHeadModel.around(copy.deepcopy(model.base_model), tokenizer).eval()
    premises = ["a dull story, and not good"] * len(KNOWN_WORDS)
    with torch.no_grad():
        _balance(pair, tokenizer(premises, list(KNOWN_WORDS), return_tensors="pt", padding=True))
    return pair, tokenizer


@functools.cache
def untrained_bert():
    """To be trained: ordinary weights, but words that stand out from their positions."""
    tokenizer = wordpiece_tokenizer()
    config = transformers.BertConfig(
        **_SIZES
        | {"initializer_range": 0.1, "id2label": None, "label2id": None}
        | {"vocab_size": len(tokenizer), "max_position_embeddings": LONGEST}
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():
        model.get_input_embeddings().weight *= 10
    return model, tokenizer


@functools.cache
def roberta():
    return _build(
        transformers.RobertaForSequenceClassification,
        transformers.RobertaConfig,
        byte_tokenizer(),
        max_position_embeddings=LONGEST + 2,
        type_vocab_size=1,
    )


@functools.cache
def distilbert():
    return _build(
        transformers.DistilBertForSequenceClassification,
        transformers.DistilBertConfig,
        wordpiece_tokenizer(),
        max_position_embeddings=LONGEST,
        hidden_dim=64,
    )


@functools.cache
def electra():
    return _build(
        transformers.ElectraForSequenceClassification,
        transformers.ElectraConfig,
        wordpiece_tokenizer(),
        max_position_embeddings=LONGEST,
        embedding_size=16,
    )


@functools.cache
def albert():
    return _build(
        transformers.AlbertForSequenceClassification,
        transformers.AlbertConfig,
        unigram_tokenizer(),
        max_position_embeddings=LONGEST,
        embedding_size=16,
    )


@functools.cache
def deberta():
    """Relative positions in the attention."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit.script, on import
        model_class = transformers.DebertaV2ForSequenceClassification
    return _build(
        model_class,
        transformers.DebertaV2Config,
        wordpiece_tokenizer(),
        max_position_embeddings=LONGEST,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=16,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
    )


@functools.cache
def mpnet():
    """Absolute positions, and a bias for relative ones.

    One head: products of 16 columns round a row by its place, and it would be computed by itself.
    """
    return _build(
        transformers.MPNetForSequenceClassification,
        transformers.MPNetConfig,
        byte_tokenizer(),
        max_position_embeddings=LONGEST + 2,
        num_attention_heads=1,
    )


@functools.cache
def modernbert():
    """Rotary positions, and a window of attention in every second layer."""
    return _build(
        transformers.ModernBertForSequenceClassification,
        transformers.ModernBertConfig,
        wordpiece_tokenizer(),
        max_position_embeddings=LONGEST,
        local_attention=8,
        global_attn_every_n_layers=2,
        cls_token_id=2,
        sep_token_id=3,
        bos_token_id=2,
        eos_token_id=3,
    )


@functools.cache
def gpt2():
    """A decoder: its head reads the last token that is not padding."""
    return _build(
        transformers.GPT2ForSequenceClassification,
        transformers.GPT2Config,
        decoder_tokenizer(mask_token="<mask>", pad_token="<pad>"),
        n_positions=LONGEST,
        bos_token_id=0,
        eos_token_id=0,
    )

"""The paper's head for pairs: what it computes, what it is saved as, and how it is trained."""

import copy
import json
from dataclasses import replace

import made_up
import numpy as np
import pytest
import tiny_models
import torch
import transformers
from transformers.models.auto import configuration_auto, modeling_auto

from ranmask import SmoothedClassifier
from ranmask.certificates.families import all_sets
from ranmask.errors import DataError, ModelError, OptionError
from ranmask.models import hub
from ranmask.models.base import MaskedCopies
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.models.pair_head import (
    MODEL_TYPE,
    PairConfig,
    PairHeadModel,
    register,
    with_pair_head,
)
from ranmask.training import compact
from ranmask.training.encoder import train_encoder
from ranmask.training.options import TrainingOptions
from ranmask.words import document

pytestmark = pytest.mark.usefixtures("quiet", "one_thread")

PREMISE = "a dull story, and not good"
PAIRS = [
    (PREMISE, "the film was unbelievable"),
    ("good", "a"),
    ("not very good but fine acting", "the plot"),
    ("the plot", "{mask} {mask} great {mask} zz"),
]
NAMES = ["pair_bert", "pair_roberta"]


def tiny(name):
    return getattr(tiny_models, name)()


def radii(certificates):
    """What is compared of two computations: measured tolerances may differ."""
    return [(one.label, one.radius, one.votes) for one in certificates]


def with_masks(text, tokenizer):
    return text.format(mask=tokenizer.mask_token)


def encoded(tokenizer, *pair):
    return tokenizer(
        *(with_masks(text, tokenizer) for text in pair), return_tensors="pt", padding=True
    )


def by_hand(model, tokenizer, pair):
    """Logits of one pair from its hidden states: numpy, doubles, and places counted by hand."""
    double = copy.deepcopy(model).double()
    inputs = encoded(tokenizer, *pair)
    with torch.no_grad():
        hidden = double.backbone(**inputs).last_hidden_state[0].numpy()
    spelt = [
        len(tokenizer(with_masks(text, tokenizer), add_special_tokens=False)["input_ids"])
        for text in pair
    ]
    between = 1 if model.backbone.config.model_type == "bert" else 2
    second = 1 + spelt[0] + between
    sides = hidden[1 : 1 + spelt[0]], hidden[second : second + spelt[1]]
    assert len(hidden) == second + spelt[1] + 1
    joined = np.concatenate([side.sum(axis=0) / len(side) for side in sides])
    first, last = (
        (layer.weight.detach().numpy(), layer.bias.detach().numpy())
        for layer in (double.head[0], double.head[3])
    )
    return last[0] @ np.tanh(first[0] @ joined + first[1]) + last[1]


class TestLogits:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1])
    def test_equal_a_computation_by_hand(self, name, pair):
        model, tokenizer = tiny(name)
        with torch.no_grad():
            logits = copy.deepcopy(model).double()(**encoded(tokenizer, *pair)).logits[0]
        np.testing.assert_allclose(logits.numpy(), by_hand(model, tokenizer, pair), atol=1e-12)

    @pytest.mark.parametrize("name", NAMES)
    def test_padding_counts_for_nothing(self, name):
        model, tokenizer = tiny(name)
        premises, hypotheses = (
            [with_masks(text, tokenizer) for text in side] for side in zip(*PAIRS, strict=True)
        )
        inputs = tokenizer(premises, hypotheses, return_tensors="pt", padding=True)
        assert not inputs["attention_mask"].all()
        with torch.no_grad():
            logits = copy.deepcopy(model).double()(**inputs).logits.numpy()
        alone = [by_hand(model, tokenizer, pair) for pair in PAIRS]
        np.testing.assert_allclose(logits, alone, atol=1e-10)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_side_without_tokens_is_zero(self, name):
        model, tokenizer = tiny(name)
        with torch.no_grad():
            single = model(**encoded(tokenizer, "the film")).logits
            nothing = model(**encoded(tokenizer, "")).logits
            zero = model.head(torch.zeros(1, 2 * 32))
            hidden = model.backbone(**encoded(tokenizer, "the film")).last_hidden_state[:, 1:-1]
            first = torch.cat([hidden.mean(dim=1), torch.zeros(1, 32)], dim=1)
        torch.testing.assert_close(nothing, zero)
        torch.testing.assert_close(single, model.head(first))

    @pytest.mark.parametrize("hide", ["mask", "drop"])
    @pytest.mark.parametrize("name", NAMES)
    def test_a_copy_has_the_same_bits_in_any_company(self, name, hide, classifier):
        base = classifier(name, hide)
        pairs = [document((premise, text.format(mask="x"))) for premise, text in PAIRS]
        copies = [
            MaskedCopies(pair, len(pair.words), all_sets(len(pair.words), keep))
            for pair in pairs
            for keep in range(1, len(pair.words) + 1)
        ]
        rows = base.encoder.rows_of_all(copies)
        first = base.score_rows(rows)
        for tokens in (1, 200, 1 << 30):
            assert np.array_equal(base.score_rows(rows, tokens=tokens), first)
        assert base.tolerance == 0

    @pytest.mark.parametrize("name", NAMES)
    def test_leaving_words_out_equals_hiding_them_from_attention(self, name, classifier):
        """In the hypothesis of a pair: the classifier's own check reads single texts."""
        base = classifier(name, "drop")
        pair = document((PREMISE, "the film was good"))
        rows = base.encoder.rows(MaskedCopies(pair, 4, np.array([[1, 3]], dtype=np.int32)))
        whole = base.encoder.rows(MaskedCopies(pair, 4, np.arange(4, dtype=np.int32)[None]))
        hidden = ~np.isin(whole.positions[0], rows.positions[0])
        assert hidden.sum() == 2
        start = base.encoder.first_position
        types = np.arange(whole.ids.shape[1])[None] >= whole.first_body_place
        types = types * whole.body_type
        with torch.no_grad():
            dropped = base.model(
                input_ids=torch.from_numpy(rows.ids),
                token_type_ids=torch.from_numpy(types[:, ~hidden]),
                position_ids=torch.from_numpy(rows.positions + start),
            ).logits
            unseen = base.model(
                input_ids=torch.from_numpy(whole.ids),
                attention_mask=torch.from_numpy(~hidden[None] * 1),
                token_type_ids=torch.from_numpy(types),
                position_ids=torch.from_numpy(whole.positions + start),
            ).logits
        torch.testing.assert_close(dropped, unseen, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("name", ["distilbert", "electra", "albert", "mpnet", "modernbert"])
    def test_other_encoders(self, name):
        """With and without token types, poolers and positions of their own."""
        model, tokenizer = tiny(name)
        pair = PairHeadModel.around(copy.deepcopy(model.base_model), tokenizer).eval()
        base = HuggingFaceClassifier(pair, tokenizer)
        [one] = base.score([MaskedCopies(document((PREMISE, "a film")), 2, all_sets(2, 1))])
        [other] = base.score([MaskedCopies(document((PREMISE, "a plot")), 2, all_sets(2, 1))])
        assert np.array_equal(one[0], other[0]) and abs(one[1] - other[1]).max() > 1e-4

    def test_the_first_row_alone_is_not_enough(self, classifier):
        """The shortcut for heads that read one row must not be taken."""
        assert classifier("bert")._fast is not None
        assert all(classifier(name)._fast is None for name in NAMES)

    def test_every_weight_has_a_gradient(self):
        """Several devices wait for all of them: no pooler may be left over."""
        model = copy.deepcopy(tiny("pair_bert")[0])
        model(**encoded(tiny("pair_bert")[1], *PAIRS[0])).logits.sum().backward()
        assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


class TestRefused:
    def test_dropping_where_the_encoder_takes_no_positions(self):
        model, tokenizer = tiny("pair_bert")
        model = copy.deepcopy(model)
        model._takes -= {"position_ids"}
        HuggingFaceClassifier(model, tokenizer, hide="mask")
        with pytest.raises(ModelError, match=r"BertModel takes no position_ids.*hide='mask'"):
            HuggingFaceClassifier(model, tokenizer, hide="drop")

    def test_a_tokenizer_without_separator(self):
        model, tokenizer = tiny("bert")
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.sep_token = None
        with pytest.raises(ModelError, match="no separator token"):
            PairHeadModel.around(copy.deepcopy(model.base_model), tokenizer)

    def test_a_config_of_nothing(self):
        with pytest.raises(ModelError, match=r"PairHeadModel\.around"):
            PairHeadModel(PairConfig())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of each tiny model, saved smoothed."""
    saved = {}

    def get(name):
        if name not in saved:
            saved[name] = tmp_path_factory.mktemp("pairs") / name
            base = HuggingFaceClassifier(*tiny(name), hide="drop")
            SmoothedClassifier(base, keep=2).save_pretrained(str(saved[name]))
        return saved[name]

    return get


@pytest.fixture
def unregistered(monkeypatch):
    """As in a process that has not heard of this model yet."""
    for known in (
        configuration_auto.CONFIG_MAPPING,
        modeling_auto.MODEL_MAPPING,
        modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    ):
        monkeypatch.setattr(known, "_extra_content", {})


class TestFolders:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_loaded_model_is_the_same(self, name, folder):
        model, tokenizer = tiny(name)
        register()
        loaded, report = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder(name), output_loading_info=True
        )
        assert not report["missing_keys"] and not report["unexpected_keys"]
        assert type(loaded) is PairHeadModel and not loaded.training
        assert loaded.config.id2label == dict(enumerate(tiny_models.LABELS))
        assert loaded.backbone.config._attn_implementation == "sdpa"
        for key, weight in model.state_dict().items():
            assert torch.equal(loaded.state_dict()[key], weight), key
        inputs = encoded(tokenizer, *PAIRS[0])
        torch.testing.assert_close(loaded(**inputs).logits, model(**inputs).logits)
        assert sorted(path.suffix for path in folder(name).iterdir()).count(".safetensors") == 1

    @pytest.mark.parametrize("name", NAMES)
    def test_ranmask_loads_it_without_more_ado(self, name, folder, unregistered):
        with pytest.raises(ValueError, match=MODEL_TYPE):
            transformers.AutoConfig.from_pretrained(folder(name))
        loaded = SmoothedClassifier.from_pretrained(str(folder(name)))
        before = SmoothedClassifier(HuggingFaceClassifier(*tiny(name), hide="drop"), keep=2)
        pairs = [(premise, text.format(mask="x")) for premise, text in PAIRS]
        assert radii(loaded.certify(pairs)) == radii(before.certify(pairs))
        assert loaded.labels == tiny_models.LABELS

    def test_as_a_base_too(self, folder, unregistered):
        path = str(folder("pair_bert"))
        model, _, missing = hub.load_pretrained("AutoModelForSequenceClassification", path)
        assert type(model) is PairHeadModel and not missing

    def test_a_lost_weight_is_noticed(self, folder, tmp_path):
        model, tokenizer = tiny("pair_bert")
        weights = {k: v for k, v in model.state_dict().items() if k != "head.3.weight"}
        model.save_pretrained(tmp_path, state_dict=weights)
        tokenizer.save_pretrained(tmp_path)
        with pytest.raises(ModelError, match=r"no weights for head\.3\.weight"):
            SmoothedClassifier.from_pretrained(str(tmp_path), keep=1)

    def test_half_precision(self, tmp_path):
        model, tokenizer = tiny("pair_bert")
        copy.deepcopy(model).half().save_pretrained(tmp_path)
        register()
        loaded = transformers.AutoModelForSequenceClassification.from_pretrained(
            tmp_path, dtype=torch.float32
        )
        assert {weight.dtype for weight in loaded.parameters()} == {torch.float32}
        inputs = encoded(tokenizer, *PAIRS[0])
        close = {"rtol": 0.05, "atol": 0.05}
        torch.testing.assert_close(loaded(**inputs).logits, model(**inputs).logits, **close)


class TestCompact:
    def test_fewer_layers(self, tmp_path):
        model, tokenizer = copy.deepcopy(tiny("pair_bert"))
        inputs = encoded(tokenizer, *PAIRS[0])
        before = model(**inputs).logits
        compact.keep_layers(model, 1)
        after = model(**inputs).logits
        assert len(model.backbone.encoder.layer) == 1 and abs(before - after).max() > 1e-3
        model.save_pretrained(tmp_path)
        register()
        loaded, report = transformers.AutoModelForSequenceClassification.from_pretrained(
            tmp_path, output_loading_info=True
        )
        assert not report["missing_keys"] and not report["unexpected_keys"]
        assert loaded.config.num_hidden_layers == 1
        torch.testing.assert_close(loaded(**inputs).logits, after)

    def test_fewer_tokens(self):
        """Other ids for the same tokens: the same logits."""
        model, tokenizer = copy.deepcopy(tiny("pair_bert"))
        vocabulary = tokenizer.get_vocab()
        kept = sorted(vocabulary.keys() - {"film", "un", "!"})  # special tokens among the others
        before = model(**encoded(tokenizer, *PAIRS[2])).logits
        compact._cut_embeddings(model, [vocabulary[token] for token in kept])
        small = compact._reduced(tokenizer, {token: place for place, token in enumerate(kept)})
        assert small.sep_token_id != tokenizer.sep_token_id
        assert with_pair_head(model, small) is model
        after = model(**encoded(small, *PAIRS[2])).logits
        torch.testing.assert_close(after, before)
        assert model.config.vocab_size == len(kept) == model.backbone.config.vocab_size


TRAIN = made_up.corpus(48, pairs=True)
HELD_OUT = made_up.corpus(24, "validation", seed=1, pairs=True)
QUICK = TrainingOptions(
    pair_head=True,
    keep=(1,),
    epochs=2,
    vote_epochs=1,
    vote_copies=4,
    evaluate_every=3,
    batch_size=16,
    learning_rate=1e-3,
    target_words=1,
)


@pytest.fixture(scope="module")
def train(base_folder):
    def run(output, options=QUICK, data=TRAIN, held_out=HELD_OUT, base=base_folder):
        return train_encoder(str(base), data, held_out, output, options, device="cpu")

    return run


@pytest.fixture(scope="module")
def finished(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "quick"
    return folder, train(folder)


class TestTraining:
    def test_what_can_be_learned_is_learned(self, train, tmp_path):
        options = replace(
            QUICK, epochs=5, copies=8, vote_epochs=0, ensemble="score", learning_rate=1e-2
        )
        data = made_up.corpus(144, pairs=True)
        classifier = train(tmp_path / "out", replace(options, evaluate_every=None), data)
        assert isinstance(classifier.base.model, PairHeadModel)
        right = [
            found.label_id == label
            for found, label in zip(
                classifier.predict(HELD_OUT.texts), HELD_OUT.labels, strict=True
            )
        ]
        assert sum(right) > 0.8 * len(right)

    def test_both_phases_and_loading(self, finished, base_folder):
        folder, classifier = finished
        loaded = SmoothedClassifier.from_pretrained(str(folder))
        found = loaded.certify(HELD_OUT.texts)
        assert radii(found) == radii(classifier.certify(HELD_OUT.texts))
        assert all(one.guarantee for one in found)
        assert {one.label for one in found} <= set(made_up.CLASSES)
        assert json.loads((folder / "training.json").read_text())["run"]["options"]["pair_head"]
        config = (folder / "config.json").read_text()
        assert MODEL_TYPE in config and str(base_folder) not in config

    def test_the_seed_fixes_the_head(self, train, finished, tmp_path):
        def weights(folder):
            return (folder / "model.safetensors").read_bytes()

        train(tmp_path / "same")
        assert weights(tmp_path / "same") == weights(finished[0])
        train(tmp_path / "other", replace(QUICK, seed=1))
        assert weights(tmp_path / "other") != weights(finished[0])

    def test_smaller_and_by_approval(self, train, tmp_path):
        options = replace(QUICK, layers=1, vocabulary=160, head="approval", weights="float16")
        model = train(tmp_path / "small", options).base.model
        assert model.config.problem_type == "multi_label_classification"
        assert len(model.backbone.encoder.layer) == 1
        assert model.get_input_embeddings().num_embeddings == 160
        loaded = SmoothedClassifier.from_pretrained(str(tmp_path / "small"))
        tokenizer = loaded.base.tokenizer
        assert loaded.base.model.config.separator_id == tokenizer.sep_token_id
        assert loaded.base.outputs == "approvals"
        loaded.certify(HELD_OUT.texts[:3])

    def test_a_pair_head_is_trained_on(self, train, finished, tmp_path):
        """A step so small that the head it began with is still to be seen."""
        options = replace(QUICK, epochs=1, vote_epochs=0, learning_rate=1e-9)
        more = train(tmp_path / "more", options, base=finished[0]).base.model
        torch.testing.assert_close(more.head[0].weight, finished[1].base.model.head[0].weight)

    def test_but_not_by_mistake(self, train, finished, tmp_path):
        with pytest.raises(OptionError, match="has a pair head: train it with pair_head"):
            train(tmp_path / "out", replace(QUICK, pair_head=False), base=finished[0])
        assert not (tmp_path / "out").exists()

    def test_single_texts_are_refused(self, train, tmp_path):
        with pytest.raises(DataError, match=r"row 1: pair_head .* train without pair_head"):
            train(tmp_path / "out", data=made_up.corpus(24), held_out=HELD_OUT)
        assert not (tmp_path / "out").exists()

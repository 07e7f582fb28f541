"""Models from folders: loading, saving with ``ranmask.json``, and every way that it can fail."""

import copy
import io
import json
import shutil

import pytest
import tiny_models
import torch
import transformers

from ranmask import SmoothedClassifier
from ranmask.errors import ModelError, OptionError
from ranmask.models.huggingface import HuggingFaceClassifier

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["the film was not very good", "unbelievable acting but a dull story", "great"]


@pytest.fixture
def folder(model_folder, tmp_path):
    """A copy of the model folder, to be changed."""
    return shutil.copytree(model_folder, tmp_path / "model")


def load(folder, **options):
    return SmoothedClassifier.from_pretrained(str(folder), **options)


def smoothed_bert(hide="mask", **options):
    model, tokenizer = tiny_models.bert()
    return SmoothedClassifier(
        HuggingFaceClassifier(copy.deepcopy(model), tokenizer, hide=hide), **options
    )


def edit_json(path, **changes):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | changes))


def record(**smoothing):
    return json.dumps({"format": "ranmask", "version": 1, "smoothing": smoothing})


class TestLoading:
    def test_gives_what_the_model_in_memory_gives(self, model_folder):
        loaded = load(model_folder, keep=2)
        assert loaded.certify(TEXTS) == smoothed_bert(keep=2).certify(TEXTS)

    def test_labels_are_the_models(self, model_folder):
        assert load(model_folder, keep=2).certify(TEXTS)[0].label in tiny_models.LABELS

    def test_a_path_object_will_do(self, model_folder):
        assert SmoothedClassifier.from_pretrained(model_folder, keep=2).options.keep == 2

    def test_runs_in_full_precision_on_a_cpu(self, model_folder):
        base = load(model_folder, keep=2, device="cpu").base
        assert (base.model.device.type, base.model.dtype) == ("cpu", torch.float32)

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_in_a_smaller_dtype(self, model_folder, dtype):
        loaded = load(model_folder, keep=2, dtype=dtype)
        assert loaded.base.model.dtype == getattr(torch, dtype)
        assert loaded.tolerance == 0

    def test_roberta(self, tmp_path):
        model, tokenizer = tiny_models.roberta()
        model.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        base = HuggingFaceClassifier(model, tokenizer, hide="drop")
        expected = SmoothedClassifier(base, keep=2).certify([*TEXTS, ("a film", "good acting")])
        loaded = load(tmp_path, keep=2, hide="drop")
        assert loaded.certify([*TEXTS, ("a film", "good acting")]) == expected

    def test_does_not_train(self, model_folder):
        """Dropout would make every answer a matter of chance."""
        assert not load(model_folder, keep=2).base.model.training

    def test_neither_keep_nor_mask_rate(self, model_folder):
        with pytest.raises(OptionError, match="keep and mask_rate"):
            load(model_folder)


class TestSaving:
    @pytest.mark.parametrize("hide", ["mask", "drop"])
    @pytest.mark.parametrize(
        "options",
        [
            {"keep": 2},
            {"mask_rate": 0.7, "family": "windows", "seed": 3},
            {"keep": 1, "ensemble": "score", "masks": 50},
            {
                "keep": 2,
                "certificate": "ablation",
                "masks": 40,
                "selection_masks": 20,
                "alpha": 0.1,
            },
        ],
        ids=["keep", "windows", "score", "ablation"],
    )
    def test_a_saved_classifier_comes_back_the_same(self, tmp_path, hide, options):
        saved = smoothed_bert(hide, **options)
        saved.save_pretrained(str(tmp_path / "saved"))
        loaded = load(tmp_path / "saved")
        assert loaded.options == saved.options
        assert loaded.base.encoder.hide == hide
        assert loaded.certify(TEXTS) == saved.certify(TEXTS)

    def test_the_record_is_versioned_json(self, tmp_path):
        smoothed_bert("drop", keep=2).save_pretrained(str(tmp_path))
        content = json.loads((tmp_path / "ranmask.json").read_text())
        assert (content["format"], content["version"]) == ("ranmask", 1)
        assert content["smoothing"].items() >= {"keep": 2, "hide": "drop"}.items()

    def test_weights_are_safetensors(self, tmp_path):
        smoothed_bert(keep=2).save_pretrained(str(tmp_path))
        assert (tmp_path / "model.safetensors").is_file()
        assert not [*tmp_path.glob("*.bin"), *tmp_path.glob("*.pt"), *tmp_path.glob("*.pkl")]

    def test_labels_are_kept(self, tmp_path):
        saved = smoothed_bert(keep=2, labels=["no", "perhaps", "yes"])
        saved.save_pretrained(str(tmp_path))
        assert load(tmp_path).certify(TEXTS) == saved.certify(TEXTS)
        assert load(tmp_path).labels == ("no", "perhaps", "yes")

    def test_another_mask_token_is_kept(self, tmp_path):
        saved = smoothed_bert(keep=2, mask_token="[UNK]")
        saved.save_pretrained(str(tmp_path))
        assert load(tmp_path).base.encoder.mask_id == saved.base.encoder.mask_id
        assert load(tmp_path).certify(TEXTS) == saved.certify(TEXTS)

    def test_a_given_tolerance_is_kept(self, tmp_path):
        """A wider one was given for a reason; certificates without it would claim more."""
        saved = smoothed_bert(keep=2, tolerance=0.5)
        saved.save_pretrained(str(tmp_path))
        assert load(tmp_path).tolerance == 0.5

    def test_arguments_override_what_was_saved(self, tmp_path):
        smoothed_bert("drop", keep=2, seed=3, ensemble="score").save_pretrained(str(tmp_path))
        loaded = load(tmp_path, mask_rate=0.5, hide="mask", seed=4, ensemble="vote")
        assert (loaded.options.keep, loaded.options.mask_rate) == (None, 0.5)
        assert (loaded.options.seed, loaded.options.ensemble) == (4, "vote")
        assert loaded.base.encoder.hide == "mask"

    def test_one_override_leaves_the_rest(self, tmp_path):
        smoothed_bert("drop", keep=2, seed=3).save_pretrained(str(tmp_path))
        loaded = load(tmp_path, keep=1)
        assert (loaded.options.keep, loaded.options.seed) == (1, 3)
        assert loaded.base.encoder.hide == "drop"

    def test_masks_drawn_for_each_text_are_drawn_again(self, tmp_path):
        saved = smoothed_bert(keep=1, sampling="fresh", masks=30, seed=2)
        saved.save_pretrained(str(tmp_path))
        loaded = load(tmp_path)
        assert loaded.options == saved.options and loaded.options.sampling == "fresh"
        assert loaded.predict(TEXTS) == saved.predict(TEXTS)
        with pytest.raises(OptionError, match="cannot be certified"):
            loaded.certify(TEXTS)

    def test_masks_of_another_sampling_are_left_out(self, tmp_path):
        smoothed_bert(keep=2, sampling="fresh", masks=7).save_pretrained(str(tmp_path / "fresh"))
        fixed = load(tmp_path / "fresh", sampling="fixed")
        assert (fixed.options.masks, fixed.options.sampling) == (None, "fixed")
        assert fixed.certify(TEXTS) == smoothed_bert(keep=2).certify(TEXTS)
        ablation = {"certificate": "ablation", "masks": 40, "selection_masks": 20, "alpha": 0.1}
        for number, options in enumerate([{"family": "windows", "masks": 9}, ablation]):
            smoothed_bert(keep=2, **options).save_pretrained(str(tmp_path / str(number)))
            fresh = load(tmp_path / str(number), sampling="fresh")
            assert fresh.options == smoothed_bert(keep=2, sampling="fresh").options
            assert load(tmp_path / str(number), sampling="fresh", masks=5).options.masks == 5

    def test_a_saved_threat_does_not_give_way_to_sampling(self, folder):
        (folder / "ranmask.json").write_text(record(keep=1, threat="edits"))
        with pytest.raises(OptionError, match="threat='edits' means nothing with sampling"):
            load(folder, sampling="fresh")

    def test_a_language_model_is_not_saved_but_given_when_loading(self, tmp_path):
        def losses(documents):
            return [[len(word) for word in one.words] for one in documents]

        weighed = {"sampling": "lm", "word_losses": losses}
        with pytest.raises(OptionError, match=r"'lm' cannot be saved.*when loading"):
            smoothed_bert(keep=2, **weighed).save_pretrained(str(tmp_path / "saved"))
        assert not (tmp_path / "saved").exists()
        smoothed_bert(keep=2, masks=9).save_pretrained(str(tmp_path / "saved"))
        loaded = load(tmp_path / "saved", **weighed)
        assert loaded.predict(TEXTS) == smoothed_bert(keep=2, **weighed).predict(TEXTS)

    def test_over_an_earlier_one(self, tmp_path):
        smoothed_bert("drop", keep=2).save_pretrained(str(tmp_path))
        smoothed_bert("mask", keep=1).save_pretrained(str(tmp_path))
        assert load(tmp_path).options.keep == 1

    def test_a_function_cannot_be_saved(self, tmp_path):
        smoothed = SmoothedClassifier(lambda texts: [[0.5, 0.5] for _ in texts], keep=1)
        with pytest.raises(ModelError, match="cannot be saved"):
            smoothed.save_pretrained(str(tmp_path))


class TestFoldersThatAreRefused:
    @pytest.mark.parametrize("name", ["missing", "some/deep/missing", ""])
    def test_missing(self, tmp_path, name):
        with pytest.raises(ModelError, match="no model folder"):
            load(tmp_path / "no" / name if name else "", keep=2)

    def test_missing_and_not_on_the_hub_either(self, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(ModelError, match="no-such-model"):
            load("no-such-model", keep=2)

    def test_without_weights(self, folder):
        (folder / "model.safetensors").unlink()
        with pytest.raises(ModelError, match=r"no file named model\.safetensors"):
            load(folder, keep=2)

    def test_without_a_config(self, folder):
        (folder / "config.json").unlink()
        with pytest.raises(ModelError, match=r"holds no model: it has no config\.json"):
            load(folder, keep=2)

    def test_without_a_tokenizer(self, folder):
        """transformers makes one up, with no words in it: every word would be unknown."""
        for file in folder.glob("tokenizer*"):
            file.unlink()
        with pytest.raises(ModelError, match="tokenizer"):
            load(folder, keep=2)

    def test_empty(self, tmp_path):
        with pytest.raises(ModelError, match=r"holds no model: it has no config\.json"):
            load(tmp_path, keep=2)

    def test_pickled_weights(self, folder):
        """Unpickling can run anything."""
        (folder / "model.safetensors").unlink()
        torch.save(tiny_models.bert()[0].state_dict(), folder / "pytorch_model.bin")
        with pytest.raises(ModelError, match="safetensors"):
            load(folder, keep=2)

    @pytest.mark.parametrize("content", [b"", b"junk" * 50, None], ids=["empty", "junk", "cut"])
    def test_broken_weights(self, folder, content):
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:5000] if content is None else content)
        with pytest.raises(ModelError, match="cannot load"):
            load(folder, keep=2)

    @pytest.mark.parametrize(
        "changes",
        [
            {"hidden_size": 48},
            {"id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}},
        ],
        ids=["sizes", "classes"],
    )
    def test_weights_that_do_not_fit_the_config(self, folder, changes):
        edit_json(folder / "config.json", **changes)
        with pytest.raises(ModelError, match="cannot load"):
            load(folder, keep=2)

    def test_class_names_that_do_not_count_from_zero(self, folder):
        names = {"1": "a", "2": "b", "3": "c"}
        edit_json(folder / "config.json", id2label=names, label2id={v: k for k, v in names.items()})
        with pytest.raises(ModelError):
            load(folder, keep=2)

    @pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
    def test_broken_json(self, folder, file):
        (folder / file).write_text("{")
        with pytest.raises(ModelError, match="cannot load"):
            load(folder, keep=2)

    def test_an_architecture_that_is_unknown(self, folder):
        edit_json(folder / "config.json", model_type="zorp")
        with pytest.raises(ModelError, match="zorp"):
            load(folder, keep=2)

    def test_code_that_comes_with_a_model_is_not_run_nor_asked_about(self, folder, monkeypatch):
        """transformers would ask on the terminal; whoever says yes by habit runs anything."""
        (folder / "evil.py").write_text(
            f"open({str(folder / 'ran')!r}, 'w').close()\n"
            "from transformers import BertConfig, BertForSequenceClassification\n"
            "class Config(BertConfig):\n    model_type = 'zorp'\n"
            "class Model(BertForSequenceClassification):\n    config_class = Config\n"
        )
        classes = {
            "AutoConfig": "evil.Config",
            "AutoModelForSequenceClassification": "evil.Model",
        }
        edit_json(folder / "config.json", model_type="zorp", auto_map=classes)
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
        with pytest.raises(ModelError):
            load(folder, keep=2)
        assert not (folder / "ran").exists()

    def test_an_encoder_without_a_head(self, tmp_path):
        """transformers would make up a random head, and every answer with it."""
        model, tokenizer = tiny_models.bert()
        model.bert.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        with pytest.raises(ModelError, match=r"not a trained classifier.*classifier\.weight"):
            load(tmp_path, keep=2)

    def test_a_model_with_a_single_output(self, tmp_path):
        model, tokenizer = tiny_models.bert()
        config = copy.deepcopy(model.config)
        config.num_labels = 1
        transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        with pytest.raises(ModelError, match="1 output: a classifier needs at least two"):
            load(tmp_path, keep=2)

    def test_dropping_with_relative_positions(self, tmp_path):
        model, tokenizer = tiny_models.deberta()
        model.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        with pytest.raises(ModelError, match="hide='drop' is not exact"):
            load(tmp_path, keep=2, hide="drop")


class TestMaskTokens:
    @pytest.fixture
    def without_mask(self, folder):
        edit_json(folder / "tokenizer_config.json", mask_token=None)
        return folder

    def test_a_tokenizer_without_one_is_refused(self, without_mask):
        with pytest.raises(ModelError, match=r"no mask token.*mask_token="):
            load(without_mask, keep=2)

    def test_another_token_can_be_named(self, without_mask):
        """As the message says."""
        assert load(without_mask, keep=2, mask_token="[UNK]").base.encoder.mask_id == 1

    def test_in_place_of_the_tokenizers_own(self, model_folder):
        assert load(model_folder, keep=2, mask_token="[PAD]").base.encoder.mask_id == 0

    def test_one_that_the_vocabulary_does_not_hold_is_refused(self, model_folder):
        with pytest.raises(ModelError, match=r"'\[BLANK\]' is not a token"):
            load(model_folder, keep=2, mask_token="[BLANK]")


class TestRecordsThatAreRefused:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", "cannot read"),
            ("\udcff", "cannot read"),
            ("[]", "ranmask.json holds no JSON object"),
            ('{"version": 1, "smoothing": {"keep": 2}}', "has format None, not 'ranmask'"),
            ('{"format": "ranmask", "version": 2, "smoothing": {"keep": 2}}', "version 2"),
            ('{"format": "ranmask", "smoothing": {"keep": 2}}', "version None"),
            ('{"format": "ranmask", "version": 1}', "no table of options"),
            (record(keep=2, kep=3), "option 'kep', which this ranmask does not know"),
        ],
    )
    def test_broken_or_of_another_version(self, folder, content, message):
        (folder / "ranmask.json").write_bytes(content.encode("utf-8", "surrogateescape"))
        with pytest.raises(ModelError, match=message):
            load(folder)

    @pytest.mark.parametrize(
        "options",
        [
            {"keep": "2"},
            {"keep": 2, "mask_rate": 0.5},
            {"keep": 2, "hide": "blur"},
            {"keep": 2, "masks": 1.5},
            {"keep": 2, "ensemble": ["vote"]},
            {"keep": 2, "tolerance": "wide"},
            {"keep": 2, "labels": 3},
            {"keep": 2, "mask_token": 3},
        ],
        ids=str,
    )
    def test_with_a_wrong_value(self, folder, options):
        (folder / "ranmask.json").write_text(record(**options))
        with pytest.raises((OptionError, ModelError)):
            load(folder)


class TestOptionsThatAreRefused:
    @pytest.mark.parametrize("device", ["banana", "cuda:99", "", "meta"])
    def test_a_device_that_is_not_there(self, model_folder, device):
        with pytest.raises(OptionError, match="device"):
            load(model_folder, keep=2, device=device)

    @pytest.mark.parametrize("dtype", ["banana", "float64", "int8"])
    def test_an_unknown_dtype(self, model_folder, dtype):
        with pytest.raises(OptionError, match="dtype must be one of float32, bfloat16, float16"):
            load(model_folder, keep=2, dtype=dtype)

    def test_an_unknown_way_of_hiding(self, model_folder):
        with pytest.raises(OptionError, match="'mask' or 'drop'"):
            load(model_folder, keep=2, hide="blur")

    def test_labels_of_another_number_of_classes(self, model_folder):
        with pytest.raises(OptionError, match="labels names 2 classes"):
            load(model_folder, keep=2, labels=["no", "yes"]).certify(TEXTS)


def test_a_model_of_the_hubs_cache_loads_offline(model_folder, tmp_path, monkeypatch):
    """Though it cannot be asked whether there is a ``ranmask.json`` beside it."""
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(model_folder, repository / "snapshots" / ("0" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert load("someone/tiny", keep=2).certify(TEXTS) == load(model_folder, keep=2).certify(TEXTS)


def test_a_saved_tolerance_is_for_the_computation_it_was_given_for(model_folder, tmp_path):
    given = SmoothedClassifier.from_pretrained(str(model_folder), keep=1, tolerance=1e-6)
    given.save_pretrained(str(tmp_path / "saved"))
    saved = str(tmp_path / "saved")
    assert SmoothedClassifier.from_pretrained(saved).tolerance == 1e-6
    assert SmoothedClassifier.from_pretrained(saved, dtype="bfloat16").tolerance != 1e-6
    assert SmoothedClassifier.from_pretrained(saved, hide="drop").tolerance != 1e-6
    again = SmoothedClassifier.from_pretrained(saved, dtype="bfloat16", tolerance=1e-5)
    assert again.tolerance == 1e-5

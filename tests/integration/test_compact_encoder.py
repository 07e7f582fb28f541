"""Encoders of one layer without torch: the same function, the same bits in any company."""

import copy
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tiny_models
import torch

from ranmask import HuggingFaceClassifier, load_default
from ranmask.errors import ModelError, OptionError, OutputError
from ranmask.models import SHIPPED_FOLDER, model_config, pretrained
from ranmask.models.base import MaskedCopies, whole_copy
from ranmask.models.compact_encoder import _NORMS, TOLERANCE, CompactEncoder
from ranmask.models.readers import ModelReader
from ranmask.training.compact import keep_layers
from ranmask.words import Document

TEXTS = [
    Document(("a", "good", "film")),
    Document(("unbelievably", "dull", ",", "zxqv!", "[SEP]", "[MASK]", "GOOD", "Ä", "ﬁne", "中文")),
    Document(("the", "plot", "was", "not") * 40),
    Document(("x" * 300, "re" * 40, "\u200b", "é")),
    Document(("fine",)),
    Document(("acting", "is", "bad"), "the story was great"),
]
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def copies_of(base):
    """Whole texts, and copies of them with some words hidden."""
    whole = [whole_copy(text, base.words_read(text)) for text in TEXTS]
    some = [np.array([[0, 2]], dtype=np.int32), np.array([[1, 2], [0, 1]], dtype=np.int32)]
    return [*whole, *(MaskedCopies(TEXTS[0], 3, kept) for kept in some)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("one-layer")
    model, tokenizer = copy.deepcopy(tiny_models.bert())
    keep_layers(model, 1)
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


@pytest.mark.parametrize("hide", ["drop", "mask"])
class TestSameFunction:
    def test_as_torch_computes_it(self, folder, hide):
        compact = CompactEncoder.load(folder, hide=hide)
        slow = pretrained.load(str(folder), hide=hide)
        assert isinstance(slow, HuggingFaceClassifier)
        assert (compact.labels, compact.outputs) == (slow.labels, slow.outputs)
        assert [compact.words_read(text) for text in TEXTS] == list(map(slow.words_read, TEXTS))
        for found, expected in zip(
            compact.score(copies_of(compact)), slow.score(copies_of(slow)), strict=True
        ):
            assert np.ptp(expected) > 0.1
            np.testing.assert_allclose(found, expected, atol=2e-5)

    def test_in_double_precision(self, folder, hide):
        compact = CompactEncoder.load(folder, hide=hide)
        model = pretrained.load(str(folder), hide=hide).model.double()
        for rows in compact.encoder.rows_of_all(copies_of(compact)):
            for place, length in enumerate(rows.lengths.tolist()):
                types = np.where(np.arange(length) < rows.first_body_place, 0, rows.body_type)
                expected = model(
                    input_ids=torch.from_numpy(rows.ids[[place], :length]),
                    position_ids=torch.from_numpy(rows.positions[[place], :length]),
                    token_type_ids=torch.from_numpy(types[None]),
                ).logits.detach()
                found = compact.score_rows([rows.some(np.array([place]))])
                np.testing.assert_allclose(found, expected.numpy(), atol=1e-12)

    def test_rows_of_tokens(self, folder, hide):
        compact = CompactEncoder.load(folder, hide=hide).encoder
        slow = pretrained.load(str(folder), hide=hide).encoder
        assert compact.wordless_ids == slow.wordless_ids
        for found, expected in zip(
            compact.rows_of_all(copies_of(compact)),
            slow.rows_of_all(copies_of(slow)),
            strict=True,
        ):
            assert found.ids.tolist() == expected.ids.tolist()
            assert found.positions.tolist() == expected.positions.tolist()
            assert found.body_type == expected.body_type


@pytest.mark.parametrize("name", ["news", "reviews"])
class TestShipped:
    def test_labels_and_radii_are_those_of_torch(self, name):
        shipped = load_default(name)
        reader = pretrained.hub.load_pretrained(
            "AutoModelForSequenceClassification", str(SHIPPED_FOLDER / name / "reader")
        )[:2]
        beside = ModelReader(HuggingFaceClassifier(*reader, hide="drop"))
        slow = load_default(name, reader=beside)
        assert shipped.options == slow.options
        texts = [
            "Oil prices soared to a record high as traders feared supply cuts by producers",
            "A wonderful film , superb acting ; but far too long , and the worst ending ever",
            "Ünïcode — “quotes” , 中文 , emoji 🙂 and a_very-long/word" + "x" * 400,
            "[CLS] [SEP] [MASK] [PAD] [UNK] ##s",
            "good bad " * 200,
            "!",
        ]
        for found, expected in zip(shipped.certify(texts), slow.certify(texts), strict=True):
            assert (found.label, found.radius) == (expected.label, expected.radius)
            np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)

    def test_another_order_of_sums_stays_far_inside_the_tolerance(self, name):
        base = load_default(name).reader.base
        other = CompactEncoder(
            base._config, permuted(base._weights), base.encoder.tokenizer, hide="drop"
        )
        rows = base.encoder.rows_of_all(copies_of(base))
        moved = np.abs(base.score_rows(rows) - other.score_rows(rows)).max()
        assert 0 < moved < TOLERANCE / 1000

    def test_bits_do_not_depend_on_the_number_of_threads(self, name):
        code = (
            "import hashlib, numpy as np\n"
            "from ranmask import load_default\n"
            f"base = load_default({name!r}).reader.base\n"
            "from ranmask.models.base import whole_copy\n"
            "from ranmask.words import Document\n"
            "texts = [Document(('good', 'bad', 'oil') * n) for n in (1, 20, 80)]\n"
            "rows = base.score([whole_copy(text, base.words_read(text)) for text in texts])\n"
            "print(np.concatenate(rows).tobytes().hex())\n"
        )
        said = {
            subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
                capture_output=True,
                check=True,
            ).stdout
            for threads in ("1", "4")
        }
        assert len(said) == 1


def permuted(weights):
    """The same encoder with its hidden numbers in another order."""
    draw = np.random.default_rng(0)
    width = draw.permutation(weights["classifier.weight"].shape[1])
    inner = draw.permutation(len(weights["bert.encoder.layer.0.intermediate.dense.bias"]))
    found = {}
    for name, array in weights.items():
        part, kind = name.rsplit(".", 1)
        if "embeddings" in name and "LayerNorm" not in name:
            array = array[:, width]
        elif part in _NORMS:
            array = array[width]
        elif "self" in part or part == "bert.pooler.dense":
            array = array[:, width] if kind == "weight" else array
        elif "intermediate" in part:
            array = array[inner][:, width] if kind == "weight" else array[inner]
        elif part.endswith("attention.output.dense"):
            array = array[width]
        elif part.endswith("output.dense"):
            array = array[width][:, inner] if kind == "weight" else array[width]
        found[name] = array
    return found


def test_a_copy_has_the_same_bits_in_any_company(folder):
    base = CompactEncoder.load(folder, hide="drop")
    copies = copies_of(base)
    alone = [base.score([one])[0] for one in copies]
    for order in (range(len(copies)), range(len(copies))[::-1]):
        together = base.score([copies[place] for place in order] * 3)
        for place, found in zip([*order] * 3, together, strict=True):
            assert found.tobytes() == alone[place].tobytes()


def test_saved_and_loaded(folder, tmp_path):
    base = CompactEncoder.load(folder, hide="drop")
    pretrained.save(base, str(tmp_path), options={"mask_rate": 0.0}, labels=("a", "b", "c"))
    known = model_config.of_folder(tmp_path)
    assert (known.kind, known.smoothing) == ("compact", {"mask_rate": 0.0, "hide": "drop"})
    again = pretrained.load_part(tmp_path.parent, tmp_path.name, {"device": "cuda", "dtype": None})
    assert isinstance(again, CompactEncoder)
    assert again.labels == ("a", "b", "c") and again.encoder.hide == "drop"
    assert again.digest != base.digest
    for found, expected in zip(
        again.score(copies_of(again)), base.score(copies_of(base)), strict=True
    ):
        assert found.tobytes() == expected.tobytes()
    pretrained.save(again, str(tmp_path / "back"), options={}, labels=base.labels)
    back = pretrained.load(str(tmp_path / "back"), hide="drop")
    assert back.description() == base.description()
    assert back.configured(hide="mask").description()["hide"] == "mask"
    with pytest.raises(OutputError, match="cannot write"):
        base.save(tmp_path / "config.json", {})


def test_options_of_torch_are_refused(folder, tmp_path):
    pretrained.save(CompactEncoder.load(folder), str(tmp_path), options={}, labels=None)
    for given in ({"device": "cuda"}, {"dtype": "float16"}, {"revision": "main"}):
        with pytest.raises(OptionError, match="compact encoder: leave it out"):
            pretrained.load(str(tmp_path), **given)
    assert pretrained.load(str(tmp_path), device="cpu")  # where it is computed anyway
    with pytest.raises(ModelError, match="smoothed by synonyms"):
        pretrained.save(
            CompactEncoder.load(folder), str(tmp_path), options={}, labels=None, kind="synonyms"
        )


@pytest.fixture
def copied(folder, tmp_path):
    for name in FILES:
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path


def reconfigured(place, **values):
    path = place / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("name", "value"), [("num_hidden_layers", 2), ("model_type", "roberta"), ("hidden_act", "relu")]
)
def test_what_it_cannot_compute_is_refused(copied, name, value):
    reconfigured(copied, **{name: value})
    with pytest.raises(ModelError, match=f"{name} must be .* with torch"):
        CompactEncoder.load(copied)


def test_classes_that_do_not_fit(copied):
    reconfigured(copied, id2label={"0": "no", "1": "yes"})
    with pytest.raises(ModelError, match="2 classes are named, and 3 are scored"):
        CompactEncoder.load(copied)


def test_several_labels_at_once(copied):
    reconfigured(copied, problem_type="multi_label_classification")
    assert CompactEncoder.load(copied).outputs == "approvals"


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_folder_is_named(copied, name):
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match="holds no compact encoder, or is damaged"):
        CompactEncoder.load(copied)
    (copied / name).unlink()
    with pytest.raises(ModelError, match="holds no compact encoder, or is damaged"):
        CompactEncoder.load(copied)


def test_a_tokenizer_of_another_model(copied):
    table = "bert.embeddings.word_embeddings.weight"
    base = CompactEncoder.load(copied)
    fewer = base._weights | {table: base._weights[table][:20]}
    with pytest.raises(ModelError, match="the model only 20"):
        CompactEncoder(base._config, fewer, base.encoder.tokenizer)

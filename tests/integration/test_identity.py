"""A model is the same one only where it gives the same answers: what a resumed run goes by."""

import json
import shutil

import pytest
import tiny_models
import torch
import transformers

from commands import run_cli
from ranmask.attacks.resources.masked_lm import MaskedLM
from ranmask.models.blend import Blend
from ranmask.models.identity import digest
from ranmask.models.pretrained import load

pytestmark = pytest.mark.usefixtures("one_thread", "quiet")

FAMILIES = (
    *("bert", "roberta", "distilbert", "electra", "albert", "deberta", "modernbert", "gpt2"),
    *("pair_bert", "pair_roberta"),
)


def saved(folder, name="bert"):
    model, tokenizer = getattr(tiny_models, name)()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def changed(**values):
    return lambda content: content.update(values)


def digest_of(folder):
    return load(str(folder)).description()["sha256"]


CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"

OTHERS = {
    "heads": ("bert", CONFIG, changed(num_attention_heads=4)),
    "activation": ("bert", CONFIG, changed(hidden_act="relu")),
    "epsilon": ("bert", CONFIG, changed(layer_norm_eps=1e-3)),
    "problem": ("bert", CONFIG, changed(problem_type="multi_label_classification")),
    "names of classes": ("bert", CONFIG, lambda c: c["id2label"].update({"0": "neutral?"})),
    "padding": ("gpt2", CONFIG, changed(pad_token_id=5)),
    "encoder in a pair head": (
        "pair_bert",
        CONFIG,
        lambda c: c["encoder_config"].update(layer_norm_eps=1e-3),
    ),
    "casing": ("bert", TOKENIZER, lambda c: c["normalizer"].update(lowercase=False)),
    "accents": ("bert", TOKENIZER, lambda c: c["normalizer"].update(strip_accents=False)),
    "prefix": ("bert", TOKENIZER, lambda c: c["model"].update(continuing_subword_prefix="@")),
    "merges": ("roberta", TOKENIZER, lambda c: c["model"]["merges"].reverse()),
    "no merges": ("roberta", TOKENIZER, lambda c: c["model"].update(merges=[])),
    "longest": ("bert", SETTINGS, changed(model_max_length=20)),
    "mask": ("bert", SETTINGS, changed(mask_token="[UNK]")),
    "unknown": ("bert", SETTINGS, changed(unk_token="[PAD]")),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_answer_is_another_model(tmp_path, what):
    name, file, change = OTHERS[what]
    folder = saved(tmp_path, name)
    if file == TOKENIZER:  # as it stands there: classes of their own build some parts anew
        edit(folder / SETTINGS, changed(tokenizer_class="TokenizersBackend"))
    before = digest_of(folder)
    edit(folder / file, change)
    assert digest_of(folder) != before


SAME = {
    "version": (CONFIG, changed(transformers_version="4.0.0")),
    "name": (CONFIG, changed(_name_or_path="somewhere/else")),
    "number type on disk": (CONFIG, changed(dtype="bfloat16")),
    "class of its files": (CONFIG, changed(architectures=["BertModel"])),
    "rows that every call cuts anew": (
        TOKENIZER,
        changed(
            truncation={
                "direction": "Right",
                "max_length": 3,
                "strategy": "LongestFirst",
                "stride": 0,
            }
        ),
    ),
    "name of the tokenizer": (SETTINGS, changed(name_or_path="somewhere/else")),
}


@pytest.mark.parametrize("what", SAME)
def test_the_same_answer_is_the_same_model(tmp_path, what):
    file, change = SAME[what]
    before = digest_of(saved(tmp_path))
    edit(tmp_path / file, change)
    assert digest_of(tmp_path) == before


@pytest.mark.parametrize("name", FAMILIES)
def test_saving_and_loading_leave_it_as_it_is(tmp_path, name):
    model, tokenizer = getattr(tiny_models, name)()
    before = digest(model, tokenizer)
    one = saved(tmp_path / "one", name)
    two = tmp_path / "elsewhere" / "two"
    shutil.copytree(one, two)
    loaded = [load(str(folder)) for folder in (one, two)]
    assert {part.description()["sha256"] for part in loaded} == {before}
    # Nor does it move with use, or with a text that is cut.
    tokenizer("a film " * 100, truncation=True, max_length=5, padding="max_length")
    assert digest(model, tokenizer) == before


def test_a_shape_counts(tmp_path):
    """The same bytes in another shape are other weights."""
    model, tokenizer = tiny_models.bert()
    weights = {**model.state_dict()}
    name = "classifier.weight"

    class Reshaped:
        config = model.config
        state_dict = staticmethod(lambda: {**weights, name: weights[name].reshape(32, 3)})

    class Whole(Reshaped):
        state_dict = staticmethod(lambda: weights)

    Whole.__name__ = "Reshaped"
    assert digest(Reshaped(), tokenizer) != digest(Whole(), tokenizer)


class TestSlowTokenizers:
    """In Python, with files of their own."""

    MERGES = ("f i", "fi l", "fil m</w>", "g o", "o d</w>", "go od</w>")

    def build(self, folder, merges=MERGES, **given):
        folder.mkdir(exist_ok=True)
        pieces = [
            *"abcdefghijklmnopqrstuvwxyz",
            *(f"{c}</w>" for c in "abcdefghijklmnopqrstuvwxyz"),
        ]
        pieces += [merge.replace(" ", "") for merge in self.MERGES]
        entries = ["<unk>", "<mask>", "<pad>", *pieces]
        vocabulary = {piece: index for index, piece in enumerate(entries)}
        (folder / "vocab.json").write_text(json.dumps(vocabulary))
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
        return transformers.CTRLTokenizer(
            str(folder / "vocab.json"),
            str(folder / "merges.txt"),
            mask_token="<mask>",
            pad_token="<pad>",
            **given,
        )

    def test_files_and_settings_count(self, tmp_path):
        model = tiny_models.bert()[0]
        slow = self.build(tmp_path / "a")
        assert not slow.is_fast
        before = digest(model, slow)
        assert digest(model, self.build(tmp_path / "b")) == before
        others = [
            self.build(tmp_path / "c", merges=self.MERGES[::-1]),
            self.build(tmp_path / "d", model_max_length=7),
            self.build(tmp_path / "e", do_lower_case=True),
            self.build(tmp_path / "f", cls_token="<pad>"),
        ]
        assert len({before, *(digest(model, other) for other in others)}) == 5

    def test_saving_and_loading(self, tmp_path):
        model = tiny_models.bert()[0]
        slow = self.build(tmp_path / "a", do_lower_case=True)
        slow.save_pretrained(tmp_path / "b")
        again = transformers.CTRLTokenizer.from_pretrained(tmp_path / "b")
        assert digest(model, again) == digest(model, slow)


class TestRuns:
    """Resumed with a model whose config was edited: refused, whatever the command."""

    @pytest.fixture
    def model(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        rows = ["good film,2", "a dull story,0", "the acting was fine,1"]
        (tmp_path / "in.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        (tmp_path / "stop.txt").write_text("the\nwas\na\n")
        return saved(tmp_path / "model")

    def invoke(self, command, *more):
        given = [command, "--model", "model", "--input", "in.csv", "--label-column", "label"]
        return run_cli(*given, "--output", "out", *more)

    @pytest.mark.parametrize(
        ("command", "more"),
        [
            ("certify", ("--keep", "1")),
            ("certify", ("--keep", "1", "--shard-rows", "2")),
            ("attack", ("--keep", "1", "--recipe", "deepwordbug", "--stop-words", "stop.txt")),
        ],
    )
    def test_an_edited_model_is_refused(self, model, command, more):
        done = self.invoke(command, *more)
        assert done.exit_code == 0, done.output
        again = self.invoke(command, *more)
        assert again.exit_code == 0 and "resuming" in again.stderr, again.output
        edit(model / CONFIG, changed(hidden_act="relu"))
        refused = self.invoke(command, *more)
        assert refused.exit_code == 1, refused.output
        said = " ".join(refused.stderr.replace("│", " ").split())
        assert "another" in said and "(different: base)" in said


def test_language_models_of_attacks_too(tmp_path):
    tokenizer = tiny_models.wordpiece_tokenizer()
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    before, same = (MaskedLM.from_pretrained(tmp_path).description()["sha256"] for _ in range(2))
    edit(tmp_path / CONFIG, changed(hidden_act="relu"))
    assert before == same != MaskedLM.from_pretrained(tmp_path).description()["sha256"]


def test_parts_of_a_blend_too(tmp_path):
    parts = [saved(tmp_path / name) for name in ("one", "two")]
    before = Blend([load(str(part)) for part in parts]).description()
    edit(parts[1] / CONFIG, changed(layer_norm_eps=1e-3))
    after = Blend([load(str(part)) for part in parts]).description()
    assert before["parts"][0] == after["parts"][0] and before["parts"][1] != after["parts"][1]

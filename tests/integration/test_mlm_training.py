"""Training a tiny masked language model: it learns from context, and kills do no harm."""

import json
import math
import os
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import made_up
import pytest
import tiny_models
import torch
import transformers
from safetensors.torch import load_file, save_file

from commands import run_cli
from ranmask.data import Corpus
from ranmask.errors import DataError, ModelError, OptionError, OutputError
from ranmask.training import mlm, trainer
from ranmask.training.masking import Turn
from ranmask.training.mlm import (
    HiddenTokenLoss,
    HidingCollator,
    hidden_loss,
    train_mlm,
)
from ranmask.training.options import MlmOptions
from ranmask.training.records import RunFolder
from ranmask.words import documents

pytestmark = pytest.mark.usefixtures("quiet")

TRAIN, HELD_OUT = made_up.corpus(24), made_up.corpus(12, "validation", seed=1)
# 6 steps, with checkpoints at 2, 4 and 6.
QUICK = MlmOptions(epochs=2, evaluate_every=2, batch_size=8, learning_rate=1e-3, mask_rate=0.3)
PHRASES = ("good", "bad", "film", "plot", "story", "acting", "very", "dull")
WITH_HEADS = (
    "bert",
    "roberta",
    "distilbert",
    "electra",
    "albert",
    "deberta",
    "mpnet",
    "modernbert",
)


@pytest.fixture(scope="module")
def train(base_folder):
    def run(output, options=QUICK, data=TRAIN, held_out=HELD_OUT, base=base_folder, **given):
        return train_mlm(str(base), data, held_out, output, options, device="cpu", **given)

    return run


@pytest.fixture(scope="module")
def finished(train, tmp_path_factory):
    """The folder of a quick run, and what it returned."""
    folder = tmp_path_factory.mktemp("runs") / "quick"
    return folder, train(folder)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def record(folder):
    return json.loads((folder / "training.json").read_text())


def log(folder):
    lines = [json.loads(line) for line in (folder / "training.jsonl").read_text().splitlines()]
    return [{name: line[name] for name in line if name != "seconds"} for line in lines]


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def loaded(folder):
    model, report = transformers.AutoModelForMaskedLM.from_pretrained(
        folder, output_loading_info=True
    )
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder), report


def one_word_texts(rows, split, seed):
    """Texts of one word over and over: a hidden one can be read off the others."""
    rng = random.Random(seed)
    texts = tuple(" ".join([rng.choice(PHRASES)] * 8) for _ in range(rows))
    return Corpus("phrases", split, texts, (0,) * rows, ("only", "unused"))


class TestLearning:
    def test_a_hidden_word_is_read_off_the_others(self, train, tmp_path):
        options = replace(QUICK, epochs=12, batch_size=16, evaluate_every=None, learning_rate=5e-3)
        data, held_out = (
            one_word_texts(rows, split, seed)
            for rows, split, seed in ((160, "train", 0), (40, "validation", 1))
        )
        measured = train(tmp_path / "out", options, data, held_out)
        lines = [line for line in log(tmp_path / "out") if "loss" in line]
        assert lines[0]["loss"] > math.log(len(PHRASES))  # not even which words there are
        # Whoever knows the words but looks at no other place loses log 8, about 2.08.
        assert measured["validation_loss"] < 0.5
        assert measured["perplexity"] == pytest.approx(math.exp(measured["validation_loss"]))

        model, tokenizer, _ = loaded(tmp_path / "out")
        for word in PHRASES:
            text = f"{word} {word} {word} [MASK] {word} {word} {word} {word}"
            row = tokenizer(text, return_tensors="pt")
            [place] = (row["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0].tolist()
            best = int(model(**row).logits[0, place].argmax())
            assert tokenizer.convert_ids_to_tokens(best) == word

    def test_pairs(self, train, tmp_path):
        data = made_up.corpus(24, pairs=True)
        held_out = made_up.corpus(12, "validation", seed=1, pairs=True)
        options = replace(QUICK, epochs=8, learning_rate=5e-3, evaluate_every=3)
        measured = train(tmp_path / "out", options, data, held_out)
        first = next(line for line in log(tmp_path / "out") if "perplexity" in line)
        assert measured["validation_loss"] < first["validation_loss"] - 0.5


@pytest.fixture(scope="module")
def language_model(one_thread):
    """``language_model("bert")``: a tiny masked language model with its tokenizer."""

    def build(architecture):
        model, tokenizer = getattr(tiny_models, architecture)()
        with torch.random.fork_rng():
            torch.manual_seed(3)
            made = transformers.AutoModelForMaskedLM.from_config(model.config)
        return made.eval(), tokenizer

    return build


class TestBatches:
    TEXTS = (
        "good film",
        "the plot was unbelievable and the acting unbelievably dull but fine",
        "a very very good story",
        "[MASK] the film [SEP] was good",
        "story " * 100,
    )
    TURNS = tuple(Turn(row, 1, 0.0) for row in (1, 4, 0, 2, 3))

    def collator(self, model, tokenizer, texts=TEXTS, **options):
        return HidingCollator(model, tokenizer, documents(texts), replace(QUICK, **options))

    @pytest.mark.parametrize("architecture", WITH_HEADS)
    def test_the_loss_is_that_of_transformers(self, language_model, architecture):
        """And the last layer, as wide as the vocabulary, scores the hidden places alone."""
        model, tokenizer = language_model(architecture)
        batch = self.collator(model, tokenizer)(self.TURNS)
        sizes, expected = [], 0.0
        last = model.get_output_embeddings()
        handle = last.register_forward_hook(lambda _, __, out: sizes.append(out.shape[:-1].numel()))
        with torch.no_grad():
            found, tokens = hidden_loss(model, batch)
            handle.remove()
            for part in batch["parts"]:
                labels = torch.full_like(part["inputs"]["input_ids"], -100)
                labels[part["places"]] = part["targets"]
                mean = model(**part["inputs"], labels=labels).loss.item()
                expected += mean * len(part["targets"])
        assert found.item() == pytest.approx(expected, rel=1e-5)
        assert sizes == [len(part["targets"]) for part in batch["parts"]]
        assert sum(sizes) == tokens and len(sizes) > 1

    def test_a_model_that_scores_every_place(self, language_model):
        """As one behind a wrapper, whose last layer is not to be had."""
        model, tokenizer = language_model("bert")
        batch = self.collator(model, tokenizer)(self.TURNS)
        with torch.no_grad():
            plain, _ = hidden_loss(model, batch)
            wrapped, _ = hidden_loss(lambda **inputs: model(**inputs), batch)
        assert wrapped.item() == pytest.approx(plain.item(), rel=1e-5)

    def rows(self, collate, turns):
        """Tokens, predicted places and targets of each row."""
        rows = []
        for part in collate(turns)["parts"]:
            ids, places = part["inputs"]["input_ids"], part["places"]
            visible = part["inputs"].get("attention_mask", torch.ones_like(ids)).bool()
            assert not (places & ~visible).any()
            targets = part["targets"].split(places.sum(1).tolist())
            rows += [
                (one[shown].tolist(), hidden.nonzero().flatten().tolist(), these.tolist())
                for one, shown, hidden, these in zip(ids, visible, places, targets, strict=True)
            ]
        assert len(rows) == len(turns)
        return sorted(rows)

    def test_a_row_does_not_depend_on_its_batch(self, language_model):
        collate = self.collator(*language_model("bert"))
        together = self.rows(collate, self.TURNS)
        alone = sorted(row for turn in self.TURNS for row in self.rows(collate, [turn]))
        assert together == alone
        later = [Turn(turn.row, 2, 0.0) for turn in self.TURNS]
        assert self.rows(collate, later) != together

    def test_the_hidden_tokens_are_those_of_the_text(self, language_model):
        model, tokenizer = language_model("bert")
        collate = self.collator(model, tokenizer, mask_rate=0.5)
        text = self.TEXTS[1]
        [(ids, places, targets)] = self.rows(collate, [Turn(1, 0, 0.0)])
        expected = tokenizer(text)["input_ids"]
        assert [expected[place] for place in places] == targets
        for place, target in zip(places, targets, strict=True):
            ids[place] = target
        assert ids == expected

    def test_text_that_spells_a_special_token_is_text(self, language_model):
        model, tokenizer = language_model("bert")
        collate = self.collator(model, tokenizer, mask_rate=0.5)
        [(_, places, targets)] = self.rows(collate, [Turn(3, 0, 0.0)])
        assert not set(targets) & set(tokenizer.all_special_ids)
        assert len(places) > 6  # [, mask and ] are tokens too

    def test_long_texts_are_cut(self, language_model):
        model, tokenizer = language_model("bert")
        for longest, expected in ((20, 20), (128, 64)):  # the model takes 64
            collate = self.collator(model, tokenizer, longest=longest)
            [(ids, _, _)] = self.rows(collate, [Turn(4, 0, 0.0)])
            assert len(ids) == expected and ids[-1] == tokenizer.sep_token_id

    def test_of_a_pair_both_texts(self, language_model):
        model, tokenizer = language_model("bert")
        pairs = [("the film was", "a good story"), ("bad acting", "very dull plot")]
        collate = self.collator(model, tokenizer, pairs)
        seen = set()
        for epoch in range(40):
            [(_, places, _)] = self.rows(collate, [Turn(0, epoch, 0.0)])
            seen.update(places)
        assert seen == {1, 2, 3, 5, 6, 7}  # all but [CLS] and two [SEP]
        [part] = collate([Turn(0, 0, 0.0)])["parts"]
        assert part["inputs"]["token_type_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1, 1, 1]]

    def test_words_that_the_tokenizer_does_not_know(self, language_model):
        """They cannot be predicted; a batch of them is no reason to fail."""
        model, tokenizer = language_model("bert")
        collate = self.collator(model, tokenizer, ["日本", "語"])
        batch = collate([Turn(0, 0, 0.0), Turn(1, 0, 0.0)])
        assert all(len(part["targets"]) == 0 for part in batch["parts"])
        objective = HiddenTokenLoss(collate, collate, 2, QUICK)
        loss = objective.loss(model, batch, None)
        loss.backward()
        assert loss.item() == 0
        with pytest.raises(DataError, match="knows no word of validation"):
            objective.measured(model)


class Killed(Exception):  # noqa: N818
    """Stands for the end of the process: nothing catches it."""


@pytest.fixture
def kill(monkeypatch):
    """``kill(owner, name, matches)``: raise there, once, before or after it is done."""

    def patch(owner, name, matches, after=False):
        original = getattr(owner, name)

        def stand_in(self, *args, **given):
            reached = matches(*args)
            result = original(self, *args, **given) if after or not reached else None
            if reached:
                monkeypatch.setattr(owner, name, original)
                raise Killed
            return result

        monkeypatch.setattr(owner, name, stand_in)

    return patch


def at(step):
    return lambda args, state, *_: state.global_step == step


def torn(step):
    """A checkpoint of which only a part was written."""

    def matches(args, state, *_):
        if state.global_step != step:
            return False
        folder = Path(args.output_dir) / f"checkpoint-{step}"
        (folder / "trainer_state.json").unlink()
        (folder / "model.safetensors").write_bytes(b"half")
        return True

    return matches


class TestResume:
    @pytest.mark.parametrize(
        "where",
        [
            (trainer.Watcher, "on_step_begin", at(1)),
            (trainer.Watcher, "on_step_begin", at(3)),
            (trainer.Watcher, "on_save", torn(4)),
            (trainer.Watcher, "on_save", at(4), True),
            (trainer.Watcher, "on_save", at(6), True),
            (RunFolder, "finish_phase", lambda *_: True),
            (RunFolder, "finish_phase", lambda *_: True, True),
            (RunFolder, "complete", lambda *_: True),
            (RunFolder, "_write", lambda line: line["complete"]),
        ],
        ids=[
            *("first step", "fourth step", "torn checkpoint", "checkpoint", "last checkpoint"),
            *("before the end of the phase", "after it", "before the card", "before the record"),
        ],
    )
    def test_killed_anywhere_it_ends_with_the_same_bytes(
        self, where, train, finished, kill, tmp_path
    ):
        kill(*where)
        with pytest.raises(Killed):
            train(tmp_path / "out")
        assert not record(tmp_path / "out")["complete"]
        train(tmp_path / "out")
        assert weights(tmp_path / "out") == weights(finished[0])
        assert log(tmp_path / "out") == log(finished[0])
        assert record(tmp_path / "out") == record(finished[0])
        assert files(tmp_path / "out") == files(finished[0])

    def test_only_the_rest_is_trained(self, train, kill, tmp_path, monkeypatch):
        kill(trainer.Watcher, "on_step_begin", at(5))
        with pytest.raises(Killed):
            train(tmp_path / "out")
        steps = []
        loss = trainer.PhaseTrainer.compute_loss

        def counted(self, *args, **given):
            steps.append(self.state.global_step)
            return loss(self, *args, **given)

        monkeypatch.setattr(trainer.PhaseTrainer, "compute_loss", counted)
        train(tmp_path / "out")
        assert steps == [4, 5]

    def test_same_seed_same_bytes(self, train, finished, tmp_path):
        torch.rand(3)  # whatever happened before
        train(tmp_path / "again")
        assert weights(tmp_path / "again") == weights(finished[0])

    @pytest.mark.parametrize(
        "change",
        [
            {"seed": 1},
            {"mask_rate": 0.5},
            {"warmup": 0.5},
            {"weight_decay": 0.5},
            {"gradient_clip": 0.01},
            {"learning_rate": 2e-3},
        ],
        ids=str,
    )
    def test_other_options_other_bytes(self, change, train, finished, tmp_path):
        train(tmp_path / "other", replace(QUICK, **change))
        assert weights(tmp_path / "other") != weights(finished[0])


class TestBest:
    def test_lowest_loss_on_the_same_hidden_tokens(self, train, tmp_path, monkeypatch):
        """Three evaluations of the first rows, and one of all rows by the best of them."""
        losses = iter([1.5, 2.5, 2.0])
        measure, seen, states = HiddenTokenLoss.measured, [], []

        def scripted(self, model):
            found = measure(self, model)
            states.append({name: one.clone() for name, one in model.state_dict().items()})
            return found | {"validation_loss": next(losses, found["validation_loss"])}

        collate = HidingCollator.__call__

        def spy(self, turns):
            batch = collate(self, turns)
            if self._masking.held_out:
                parts = batch["parts"]
                seen.append([(one["inputs"]["input_ids"], one["targets"]) for one in parts])
            return batch

        monkeypatch.setattr(HiddenTokenLoss, "measured", scripted)
        monkeypatch.setattr(HidingCollator, "__call__", spy)
        train(tmp_path / "out", replace(QUICK, validation_rows=8))
        first, *others, rest = seen  # 8 rows three times, then 8 and 4
        assert len(others) == 3 and sum(len(ids) for ids, _ in rest) == 4
        for other in others:
            for one, same in zip(first, other, strict=True):
                assert all(torch.equal(*pair) for pair in zip(one, same, strict=True))
        *at_steps, saved = states
        names = saved.keys()
        found = [all(torch.equal(saved[name], one[name]) for name in names) for one in at_steps]
        assert found == [True, False, False]
        assert "chosen by the first 8 of them" in (tmp_path / "out" / "README.md").read_text()

    def test_looking_changes_nothing(self, train, tmp_path, monkeypatch):
        """However often it is evaluated, training takes the same steps."""
        found = iter([3, 2, 1, 0, 2, 1, 0])
        monkeypatch.setattr(
            HiddenTokenLoss,
            "measured",
            lambda self, model: {
                "texts": 1,
                "tokens": 1,
                "validation_loss": next(found),
                "perplexity": 1.0,
            },
        )
        for every in (2, 3):
            train(tmp_path / str(every), replace(QUICK, evaluate_every=every))
        assert weights(tmp_path / "2") == weights(tmp_path / "3")

    def test_a_loss_that_is_no_number(self, train, tmp_path, monkeypatch):
        for loss in (math.nan, math.inf, 1e9):
            monkeypatch.setattr(mlm, "hidden_loss", lambda *_, loss=loss: (torch.tensor(loss), 1))
            monkeypatch.setattr(
                trainer.PhaseTrainer,
                "compute_loss",
                lambda _, model, *__, **___: model.get_input_embeddings().weight.sum() * 0,
            )
            with pytest.raises(OptionError, match=r"learning_rate=0\.001 is too large"):
                train(tmp_path / str(loss))


class TestFolder:
    def test_what_is_in_it(self, finished):
        assert files(finished[0]) == [
            "README.md",
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
            "training.json",
            "training.jsonl",
        ]

    def test_an_ordinary_masked_language_model(self, finished, base_folder):
        model, tokenizer, report = loaded(finished[0])
        assert not report["missing_keys"] and not report["unexpected_keys"]
        assert model.config.architectures == ["BertForMaskedLM"]
        embeddings = model.get_input_embeddings().weight
        assert model.get_output_embeddings().weight is embeddings
        before = load_file(base_folder / "model.safetensors")
        assert not torch.equal(embeddings, before["bert.embeddings.word_embeddings.weight"])
        assert tokenizer.get_vocab() == tiny_models.wordpiece_tokenizer().get_vocab()
        stored = load_file(finished[0] / "model.safetensors")
        assert sum(one.shape == embeddings.shape for one in stored.values()) == 1
        assert not any("classifier" in name or "pooler" in name for name in stored)

    def test_measured_is_what_was_saved(self, finished):
        folder, measured = finished
        model, tokenizer, _ = loaded(folder)
        collate = HidingCollator(model, tokenizer, documents(HELD_OUT.texts), QUICK, held_out=True)
        objective = HiddenTokenLoss(None, collate, len(HELD_OUT.texts), QUICK)
        assert objective.measured(model) == pytest.approx(measured)
        assert record(folder)["validation"] == measured
        assert measured["texts"] == 12 and measured["tokens"] == 12 * 2  # .3 of 8 words

    def test_half_precision_is_measured_as_it_is_stored(self, train, finished, tmp_path):
        measured = train(tmp_path / "half", replace(QUICK, weights="float16"))
        stored = load_file(tmp_path / "half" / "model.safetensors")
        assert {one.dtype for one in stored.values()} == {torch.float16}
        model, tokenizer, report = loaded(tmp_path / "half")
        assert not report["missing_keys"]
        collate = HidingCollator(model, tokenizer, documents(HELD_OUT.texts), QUICK, held_out=True)
        objective = HiddenTokenLoss(None, collate, 12, QUICK)
        assert objective.measured(model.float()) == pytest.approx(measured)
        assert measured["validation_loss"] != finished[1]["validation_loss"]

    def test_log(self, finished):
        first, *lines = log(finished[0])
        assert (first["step"], first["steps"]) == (1, 6) and first["loss"] > 0
        assert [line["phase"] for line in lines] == ["mlm"] * 6 + ["complete"]
        steps = [(line["step"], line["steps"], line["epoch"]) for line in lines[:6]]
        assert steps == [(2, 6, 0.667)] * 2 + [(4, 6, 1.333)] * 2 + [(6, 6, 2.0)] * 2
        assert all(line["loss"] > 0 for line in lines[:6:2])
        for line in lines[1:6:2]:
            assert line["perplexity"] == pytest.approx(math.exp(line["validation_loss"]))
        assert {name: lines[-1][name] for name in lines[-1] if name != "phase"} == finished[1]

    def test_record(self, finished, base_folder):
        run = record(finished[0])["run"]
        assert run["base"] == str(base_folder) and run["kind"] == "mlm"
        assert run["train"] == TRAIN.description() and run["options"] == QUICK.to_dict()

    def test_card(self, finished):
        card = (finished[0] / "README.md").read_text()
        for expected in (
            "# made-up, mlm",
            "It is no\nclassifier.",
            "AutoModelForMaskedLM.from_pretrained",
            "Trained on: made-up train, 24 rows (24 rows were made up)",
            "Validation: made-up validation, 12 rows (12 rows were made up)",
            "12 texts of the validation rows above, with 24 tokens hidden",
            "checkpoint was chosen by them.",
            f"| {finished[1]['validation_loss']:.4f} | {finished[1]['perplexity']:.2f} |",
            "- `mask_rate`: 0.3",
        ):
            assert expected in card, expected
        assert "SmoothedClassifier" not in card and "Classes" not in card


class TestBases:
    def test_a_bare_encoder_gets_a_head(self, base_folder, train, tmp_path):
        """As all-MiniLM-L6-v2 is: neither pooler nor head, and names without a prefix."""
        bare = tmp_path / "bare"
        tiny_models.untrained_bert()[0].bert.save_pretrained(bare)
        tiny_models.wordpiece_tokenizer().save_pretrained(bare)
        assert "embeddings.word_embeddings.weight" in load_file(bare / "model.safetensors")
        train(tmp_path / "out", replace(QUICK, epochs=1), base=bare)
        assert not loaded(tmp_path / "out")[2]["missing_keys"]

    def test_a_head_that_is_there_is_kept(self, finished):
        model, _ = mlm._new_model(str(finished[0]), QUICK)
        stored = load_file(finished[0] / "model.safetensors")
        own = model.state_dict()
        assert all(torch.equal(own[name], stored[name]) for name in stored)
        assert any(name.startswith("cls.predictions.transform") for name in stored)

    def test_a_new_head_follows_the_seed(self, base_folder):
        heads = [
            mlm._new_model(str(base_folder), replace(QUICK, seed=seed))[0].cls.state_dict()
            for seed in (0, 0, 1)
        ]
        name = "predictions.transform.dense.weight"
        assert torch.equal(heads[0][name], heads[1][name])
        assert not torch.equal(heads[0][name], heads[2][name])

    def test_refused_and_nothing_is_left(self, base_folder, train, tmp_path):
        hollow = tmp_path / "hollow"  # the names of another architecture
        shutil.copytree(base_folder, hollow)
        stored = load_file(base_folder / "model.safetensors")
        renamed = {f"other.{name}": one for name, one in stored.items()}
        save_file(renamed, hollow / "model.safetensors", {"format": "pt"})
        unmasked = tmp_path / "unmasked"
        shutil.copytree(base_folder, unmasked)
        for path in unmasked.glob("tokenizer*"):
            path.unlink()
        backend = tiny_models.wordpiece_tokenizer().backend_tokenizer
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]"
        ).save_pretrained(unmasked)
        narrow = tmp_path / "narrow"  # a tokenizer of another model
        shutil.copytree(base_folder, narrow)
        tokenizer = transformers.AutoTokenizer.from_pretrained(base_folder)
        tokenizer.add_tokens(["blockbuster"])
        tokenizer.save_pretrained(narrow)
        for base, message in (
            (tmp_path / "absent", "there is no model folder"),
            (narrow, "they do not belong together"),
            (hollow, "is not a trained encoder: it has no weights for bert.embeddings"),
            (unmasked, "has no mask token: name another base"),
        ):
            with pytest.raises(ModelError, match=message):
                train(tmp_path / "out", base=base)
            assert not (tmp_path / "out").exists()

    def test_several_processes_and_no_rows(self, train, tmp_path, monkeypatch):
        with pytest.raises(DataError, match="made-up train has no rows"):
            train(tmp_path / "out", data=replace(TRAIN, texts=(), labels=()))
        monkeypatch.setenv("WORLD_SIZE", "2")
        with pytest.raises(OptionError, match="by one process: start it without torchrun"):
            train(tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_labels_do_not_count(self, train, tmp_path):
        """A class without a row, or other classes in validation, stop a classifier only."""
        held_out = replace(HELD_OUT, label_names=("a", "b", "c"))
        train(
            tmp_path / "out", replace(QUICK, epochs=1), replace(TRAIN, labels=(0,) * 24), held_out
        )

    def test_the_folder_of_another_run(self, train, finished, tmp_path):
        with pytest.raises(OutputError, match="finished training run"):
            train(finished[0])
        shutil.copytree(finished[0], tmp_path / "begun")
        path = tmp_path / "begun" / "training.json"
        path.write_text(json.dumps(record(finished[0]) | {"complete": False}))
        with pytest.raises(OutputError, match=r"options.mask_rate \(0.3 there, 0.2 here\)"):
            train(tmp_path / "begun", replace(QUICK, mask_rate=0.2))
        with pytest.raises(OutputError, match="'elsewhere' here"):  # before it is looked for
            train(tmp_path / "begun", base="elsewhere")
        (tmp_path / "thesis.txt").write_text("precious")
        with pytest.raises(OutputError, match="holds no training run"):
            train(tmp_path)


@pytest.fixture
def command(monkeypatch, tmp_path):
    """``command(...)``: ranmask train --kind mlm, on a folder with train and validation."""
    for name in ("TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS", "TQDM_DISABLE"):
        monkeypatch.setenv(name, os.environ.get(name, "1" if "_DISABLE" in name else "error"))
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    folder = tmp_path / "data"
    folder.mkdir()
    made_up.write_csv(folder / "train.csv", 24)
    made_up.write_csv(folder / "validation.csv", 9, seed=1)

    def run(*arguments):
        given = ("train", "--kind", "mlm", "--data", folder, "--output", tmp_path / "out")
        return run_cli(*given, *arguments)

    return run


class TestCommand:
    def test_trains_and_says_how_it_went(self, command, base_folder, tmp_path):
        given = ("--base", base_folder, "--epochs", 1, "--batch-size", 8, "--device", "cpu")
        done = command(*given)
        assert done.exit_code == 0, done.stderr
        lines = done.stderr.splitlines()
        measured = record(tmp_path / "out")["validation"]
        figures = f"loss {measured['validation_loss']:.4f}, perplexity {measured['perplexity']:.2f}"
        assert done.stdout == "" and len(lines) == 4
        assert lines[0].startswith("mlm epoch 0.333, step 1 of 3: loss ")
        assert lines[1].startswith("mlm epoch 1, step 3 of 3: loss ")
        assert re.fullmatch(
            r"mlm epoch 1: validation loss \d+\.\d{4}, perplexity \d+\.\d\d", lines[2]
        )
        assert lines[3] == f"{tmp_path}/out: validation {figures}"

        again = command(*given)
        assert again.exit_code == 1 and "holds a finished training run" in again.stderr
        certified = run_cli("certify", "-m", str(tmp_path / "out"), "--keep", "1", "good film")
        assert certified.exit_code == 1 and certified.stdout == ""
        assert "is not a trained classifier" in certified.stderr

    def test_all_options_reach_it(self, command, base_folder, tmp_path):
        made_up.write_csv(tmp_path / "more.csv", 9, seed=5)
        done = command(
            *("--base", base_folder, "--also", tmp_path / "more.csv", "--rows", 30),
            *("--epochs", 2, "--mask-rate", 0.2, "--learning-rate", 1e-3, "--warmup", 0.1),
            *("--weight-decay", 0.02, "--batch-size", 4, "--accumulate", 1, "--gradient-clip", 2),
            *("--longest", 32),
            *("--weights", "float16", "--evaluate-every", 9, "--validation-rows", 5, "--seed", 3),
        )
        assert done.exit_code == 0, done.stderr
        run = record(tmp_path / "out")["run"]
        assert run["train"]["rows"] == 30 and "with 8 rows of" in run["train"]["note"]
        assert run["options"] == {
            "epochs": 2,
            "mask_rate": 0.2,
            "learning_rate": 0.001,
            "warmup": 0.1,
            "weight_decay": 0.02,
            "batch_size": 4,
            "accumulate": 1,
            "gradient_clip": 2.0,
            "longest": 32,
            "weights": "float16",
            "evaluate_every": 9,
            "validation_rows": 5,
            "seed": 3,
        }

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((), "an mlm needs a base to start from: name a folder or a hub id with --base\n"),
            (("--base", "b", "--keep", "1"), "--keep means nothing with --kind mlm: leave it out"),
            (("--base", "b", "--hide", "mask"), "--hide means nothing with --kind mlm"),
            (("--base", "b", "--layers", "1"), "--layers means nothing with --kind mlm"),
            (("--base", "b", "--buckets", "9"), "--buckets means nothing with --kind mlm"),
            (
                ("--base", "b", "--mask-rate", "1"),
                "--mask-rate must be a number from 0 up to, not including, 1, not 1.0",
            ),
            (("--base", "b", "--longest", "12"), "--longest must be a whole number of at least 16"),
            (("--base", "b", "--device", "tpu"), "device must be cpu or cuda"),
        ],
    )
    def test_refused(self, arguments, message, command, tmp_path):
        done = command(*arguments)
        assert done.exit_code == 2 and message in done.stderr
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()

    def test_options_of_a_language_model_are_refused_elsewhere(self, command):
        encoder = ("--base", "b", "--keep", 1)
        for kind, given, name in (("encoder", encoder, "--warmup"), ("words", (), "--mask-rate")):
            done = command("--kind", kind, *given, name, 0)
            assert f"{name} means nothing with --kind {kind}" in done.stderr

"""Training a tiny encoder: it learns, the same seed gives the same bytes, and kills do no harm."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import made_up
import numpy as np
import pytest
import tiny_models
import torch
import transformers
from safetensors.torch import load_file

from ranmask import SmoothedClassifier
from ranmask.certificates.families import all_sets
from ranmask.certificates.kept import Retention
from ranmask.certificates.votes import SCALE, count_votes
from ranmask.errors import ClassifierError, DataError, ModelError, OptionError, OutputError
from ranmask.metrics import CertifiedSummary
from ranmask.models.base import MaskedCopies
from ranmask.models.huggingface import HuggingFaceClassifier
from ranmask.training import encoder, losses, trainer
from ranmask.training.defence import Defence
from ranmask.training.encoder import train_encoder
from ranmask.training.evaluating import certified_score, certified_summary, figures
from ranmask.training.masking import MaskingPlan, Turns
from ranmask.training.options import MARGIN_WIDTH, TrainingOptions
from ranmask.training.records import RunFolder
from ranmask.words import document, documents

pytestmark = pytest.mark.usefixtures("quiet")

TRAIN, HELD_OUT = made_up.corpus(24), made_up.corpus(12, "validation", seed=1)
# 6 steps of masked training with checkpoints at 2, 4 and 6, then 3 of vote training: 2 and 3.
MEASURED = ("certified_summary", "measured_figures")  # while it trains, and when it is done
QUICK = TrainingOptions(
    keep=(1,),
    epochs=2,
    vote_epochs=1,
    vote_copies=4,
    evaluate_every=2,
    batch_size=8,
    learning_rate=1e-3,
    target_words=1,
    patience=None,
)


@pytest.fixture(scope="module")
def train(base_folder):
    def run(output, options=QUICK, data=TRAIN, held_out=HELD_OUT, base=base_folder, **given):
        return train_encoder(str(base), data, held_out, output, options, device="cpu", **given)

    return run


@pytest.fixture(scope="module")
def finished(train, tmp_path_factory):
    """The folder of a quick run, and the classifier that it returned."""
    folder = tmp_path_factory.mktemp("runs") / "quick"
    return folder, train(folder)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def record(folder):
    return json.loads((folder / "training.json").read_text())


def log(folder):
    lines = [json.loads(line) for line in (folder / "training.jsonl").read_text().splitlines()]
    return [{name: line[name] for name in line if name != "seconds"} for line in lines]


def evaluations(folder, phase="masked"):
    return [line["step"] for line in log(folder) if line["phase"] == phase and "score" in line]


class TestLearning:
    LONG = replace(
        QUICK,
        epochs=5,
        copies=8,
        vote_epochs=4,
        vote_copies=8,
        evaluate_every=None,
        batch_size=16,
        learning_rate=1e-2,
    )

    def learned(self, train, folder, options, pairs=False):
        data = made_up.corpus(144, pairs=pairs)
        held_out = made_up.corpus(60, "validation", seed=1, pairs=pairs)
        classifier = train(folder, options, data, held_out)
        summary = certified_summary(classifier, held_out.texts, held_out.labels)
        assert figures(summary, data.label_names, "balanced") == record(folder)["validation"]
        return summary

    def untrained(self, base_folder, options):
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            base_folder, num_labels=3, ignore_mismatched_sizes=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(base_folder)
        classifier = SmoothedClassifier(
            HuggingFaceClassifier(model, tokenizer, hide=options.hide), **options.smoothing()
        )
        held_out = made_up.corpus(60, "validation", seed=1)
        return certified_summary(classifier, held_out.texts, held_out.labels)

    @pytest.mark.parametrize(
        "change",
        [
            {"hide": "drop", "head": "choice", "vote_loss": "certified"},
            {"hide": "drop", "head": "approval", "vote_loss": "certified"},
            {"hide": "mask", "head": "choice", "vote_loss": "margin"},
            {"hide": "mask", "head": "approval", "vote_epochs": 6},
            {"hide": "drop", "vote_epochs": 0, "ensemble": "score", "epochs": 7},
            {"keep": (2, 1), "family": "windows", "vote_epochs": 0, "epochs": 8, "ramp": 0.5},
        ],
        ids=lambda change: " ".join(str(value) for value in change.values()),
    )
    def test_what_can_be_learned_is_learned_and_certified(
        self, change, train, base_folder, tmp_path
    ):
        """Chance is a third: a constant classifier is right, and certified, that often."""
        options = replace(self.LONG, **change)
        summary = self.learned(train, tmp_path / "out", options)
        before = self.untrained(base_folder, options)
        assert summary.accuracy > 0.8 > 0.5 > before.accuracy
        assert summary.certified_accuracy(1) > 0.45 > 0.35 > before.certified_accuracy(1)

    def test_pairs(self, train, tmp_path):
        options = replace(self.LONG, vote_epochs=0, ensemble="score", epochs=7)
        summary = self.learned(train, tmp_path / "out", options, pairs=True)
        assert summary.accuracy > 0.8 and summary.certified_accuracy(1) > 0.45


@pytest.fixture(scope="module")
def votes_only(train, tmp_path_factory):
    """Options without masked training, and what comes of them."""
    options = replace(QUICK, epochs=0, evaluate_every=None)
    folder = tmp_path_factory.mktemp("votes") / "out"
    train(folder, options)
    return options, weights(folder)


class TestSameSeed:
    def test_same_bytes(self, train, finished, tmp_path):
        torch.rand(3)  # whatever happened before
        train(tmp_path / "again")
        assert weights(tmp_path / "again") == weights(finished[0])
        assert log(tmp_path / "again") == log(finished[0])

    @pytest.mark.parametrize(
        "change",
        [
            {"seed": 1},
            {"copies": 2},
            {"ramp": 1.0},
            {"gradient_clip": 0.01},
            {"weight_decay": 0.5},
            {"head": "approval"},
        ],
        ids=str,
    )
    def test_other_masked_training_gives_other_bytes(self, change, train, tmp_path):
        masked = replace(QUICK, epochs=1, vote_epochs=0, evaluate_every=None)
        train(tmp_path / "one", replace(masked, **change))
        train(tmp_path / "other", masked)
        assert weights(tmp_path / "one") != weights(tmp_path / "other")

    @pytest.mark.parametrize(
        "change",
        [
            {"vote_loss": "margin"},
            {"temperature": 3.0},
            {"target_words": 2, "temperature": 0.4},
            {"accuracy_weight": 0.0},
            {"vote_copies": 2},
            {"vote_learning_rate": 1e-4},
        ],
        ids=str,
    )
    def test_other_vote_training_gives_other_bytes(self, change, train, votes_only, tmp_path):
        options, expected = votes_only
        train(tmp_path / "other", replace(options, **change))
        assert weights(tmp_path / "other") != expected

    def test_order_and_masks_follow_seed_and_phase(self, train, tmp_path, monkeypatch):
        seen = []
        collate = encoder.Collator.__call__

        def spy(self, turns):
            seen.append((self.plan, [turn.row for turn in turns]))
            return collate(self, turns)

        monkeypatch.setattr(encoder.Collator, "__call__", spy)
        train(tmp_path / "out", replace(QUICK, epochs=1, seed=5, ramp=0.5, copies=3))
        keep = (Retention(1),)
        masked, votes = (seen[start : start + 3] for start in (0, 3))
        assert {plan for plan, _ in masked} == {MaskingPlan(keep, "auto", 3, 0.5, 5, 0)}
        assert {plan for plan, _ in votes} == {MaskingPlan(keep, "auto", 4, 0.0, 5, 1)}
        for phase, steps in enumerate((masked, votes)):
            expected = [turn.row for turn in Turns(24, 1, 8, 5, phase)]
            assert [row for _, rows in steps for row in rows] == expected

    def test_dropout_has_the_seed_too(self, train, tmp_path, monkeypatch):
        seeds = []
        begin = trainer.Watcher.on_train_begin

        def spy(self, *args, **given):
            seeds.append(torch.initial_seed())
            return begin(self, *args, **given)

        monkeypatch.setattr(trainer.Watcher, "on_train_begin", spy)
        train(tmp_path / "out", replace(QUICK, epochs=1, seed=11))
        assert seeds == [11, 11]

    def test_looking_changes_nothing(self, train, scored, tmp_path):
        """However often it is evaluated, training takes the same steps."""
        scored(lambda step: step / 100)  # so that the last checkpoint is the best
        for every in (2, 3):
            train(tmp_path / str(every), replace(QUICK, evaluate_every=every))
        assert weights(tmp_path / "2") == weights(tmp_path / "3")


class TestLoss:
    """Of one step, by hand: two texts with two copies and one."""

    LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.1, 0.3, -2.0], [-1.0, 0.0, 3.0]])
    BATCH = MappingProxyType(
        {
            "parts": [{"rows": [2]}, {"rows": [0, 1]}],
            "bodies": [],
            "seed": torch.tensor(0),
            "text": torch.tensor([1, 0, 0]),
            "copy": torch.tensor([0, 1, 0]),
            "classes": torch.tensor([0, 2]),
            "present": torch.tensor([[True, True], [True, False]]),
            "met": torch.tensor([[0, 1], [0, 1]]),
            "words_per_copy": torch.tensor([0.5, 2.0], dtype=torch.float64),
        }
    )

    def loss(self, *, votes, weights=None, **options):
        objective = encoder.CertifiedClassification(
            *(None, replace(QUICK, **options), Defence(), votes, made_up.CLASSES, weights),
            *(None, None),
        )
        model = lambda rows: SimpleNamespace(logits=self.LOGITS[rows])  # noqa: E731
        return objective.loss(model, self.BATCH, None)

    def test_of_copies(self):
        """Rows come as the parts have them: the second text's copy first."""
        order, classes = [2, 0, 1], torch.tensor([2, 0, 0])
        expected = torch.nn.functional.cross_entropy(self.LOGITS[order], classes)
        assert torch.allclose(self.loss(votes=False), expected)
        wanted = torch.tensor([[0.0, 0, 1], [1, 0, 0], [1, 0, 0]])
        expected = torch.nn.functional.binary_cross_entropy_with_logits(self.LOGITS[order], wanted)
        assert torch.allclose(self.loss(votes=False, head="approval"), expected)

    def test_weights_of_classes(self):
        """The one copy of class 2 counts three times, the two of class 0 half."""
        weights = torch.tensor([0.5, 7.0, 3.0])
        order, classes = [2, 0, 1], torch.tensor([2, 0, 0])
        each = torch.nn.functional.cross_entropy(self.LOGITS[order], classes, reduction="none")
        expected = (each * torch.tensor([3.0, 0.5, 0.5])).mean()
        assert torch.allclose(self.loss(votes=False, weights=weights), expected)
        wanted = torch.tensor([[0.0, 0, 1], [1, 0, 0], [1, 0, 0]])
        each = torch.nn.functional.binary_cross_entropy_with_logits(
            self.LOGITS[order], wanted, reduction="none"
        )
        expected = (each.mean(1) * torch.tensor([3.0, 0.5, 0.5])).mean()
        found = self.loss(votes=False, weights=weights, head="approval")
        assert torch.allclose(found, expected)

    @pytest.mark.parametrize("vote_loss", ["certified", "margin"])
    def test_weights_of_classes_in_votes(self, vote_loss):
        weights = torch.tensor([0.5, 7.0, 3.0])
        scores = self.LOGITS.softmax(-1)
        table = torch.stack([scores[[1, 0]], torch.stack([scores[2], torch.zeros(3)])])
        given = (table, self.BATCH["present"], self.BATCH["classes"])
        of_texts = torch.tensor([0.5, 3.0])
        words = self.BATCH["words_per_copy"].float()
        if vote_loss == "margin":
            expected = losses.margin_loss(*given, 0.7, MARGIN_WIDTH, of_texts)
        else:
            expected = losses.certified_loss(*given, self.BATCH["met"], words, 0.3, 0.6, of_texts)
        chosen = {"margin": 0.7, "temperature": 0.3, "accuracy_weight": 0.6}
        found = self.loss(votes=True, weights=weights, vote_loss=vote_loss, **chosen)
        assert torch.equal(found, expected)
        assert not torch.equal(found, self.loss(votes=True, vote_loss=vote_loss, **chosen))

    @pytest.mark.parametrize("head", ["choice", "approval"])
    def test_of_votes(self, head):
        scores = self.LOGITS.softmax(-1) if head == "choice" else self.LOGITS.sigmoid()
        table = torch.stack([scores[[1, 0]], torch.stack([scores[2], torch.zeros(3)])])
        given = (table, self.BATCH["present"], self.BATCH["classes"])
        expected = losses.margin_loss(*given, 0.7, MARGIN_WIDTH)
        found = self.loss(votes=True, head=head, vote_loss="margin", margin=0.7)
        assert torch.equal(found, expected)
        words = self.BATCH["words_per_copy"].float()
        expected = losses.certified_loss(*given, self.BATCH["met"], words, 0.3, 0.6)
        found = self.loss(votes=True, head=head, temperature=0.3, accuracy_weight=0.6)
        assert torch.equal(found, expected)


class Killed(Exception):  # noqa: N818
    """Stands for the end of the process: nothing catches it."""


@pytest.fixture
def kill(monkeypatch):
    """``kill(where, phase, step)``: raise there, once."""

    def patch(owner, name, matches, after):
        original = getattr(owner, name)

        def stand_in(self, *args, **given):
            reached = matches(self, *args)
            result = original(self, *args, **given) if after or not reached else None
            if reached:
                monkeypatch.setattr(owner, name, original)
                raise Killed
            return result

        monkeypatch.setattr(owner, name, stand_in)

    def at(where, phase=None, step=None):
        def here(self, args, state, *_):
            return (self._phase.name, state.global_step) == (phase, step)

        match where:
            case "in a step":
                patch(trainer.Watcher, "on_step_begin", here, after=False)
            case "before a checkpoint":
                patch(trainer.Watcher, "on_step_end", here, after=False)
            case "in a checkpoint":

                def tear(self, args, state, *_):
                    if not here(self, args, state):
                        return False
                    folder = Path(args.output_dir) / f"checkpoint-{step}"
                    (folder / "trainer_state.json").unlink()
                    (folder / "model.safetensors").write_bytes(b"half")
                    return True

                patch(trainer.Watcher, "on_save", tear, after=False)
            case "after a checkpoint":
                patch(trainer.Watcher, "on_save", here, after=True)
            case "before a phase is finished":
                patch(RunFolder, "finish_phase", lambda self, name, _: name == phase, after=False)
            case "after a phase is finished":
                patch(RunFolder, "finish_phase", lambda self, name, _: name == phase, after=True)
            case "before the end":
                patch(RunFolder, "complete", lambda *_: True, after=False)
            case "before the last line":
                patch(RunFolder, "_write", lambda _, line: line["complete"], after=False)

    return at


@pytest.fixture
def scored(monkeypatch):
    """``scored(score_at)``: evaluations find what it says of a step; returns weights by step."""

    def by(score_at):
        seen = {}
        evaluate = trainer.PhaseTrainer.evaluate

        def stand_in(self, *args, **given):
            state = self.model.state_dict()
            seen[self.state.global_step] = {name: one.clone() for name, one in state.items()}
            score = score_at(self.state.global_step)
            monkeypatch.setattr(encoder, "certified_score", lambda *_: score)
            return evaluate(self, *args, **given)

        monkeypatch.setattr(trainer.PhaseTrainer, "evaluate", stand_in)
        return seen

    return by


class TestResume:
    @pytest.mark.parametrize(
        "where",
        [
            ("in a step", "masked", 0),
            ("in a step", "masked", 1),
            ("in a step", "masked", 3),
            ("before a checkpoint", "masked", 2),
            ("in a checkpoint", "masked", 2),
            ("in a checkpoint", "masked", 4),
            ("after a checkpoint", "masked", 4),
            ("after a checkpoint", "masked", 6),
            ("before a phase is finished", "masked"),
            ("after a phase is finished", "masked"),
            ("in a step", "votes", 0),
            ("in a step", "votes", 2),
            ("after a checkpoint", "votes", 2),
            ("after a phase is finished", "votes"),
            ("before the end",),
            ("before the last line",),
        ],
        ids=lambda where: " ".join(map(str, where)),
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

    def test_killed_again_and_again(self, train, finished, kill, tmp_path):
        for where in (
            ("in a step", "masked", 3),
            ("in a checkpoint", "masked", 4),
            ("in a step", "masked", 5),
            ("in a step", "votes", 1),
        ):
            kill(*where)
            with pytest.raises(Killed):
                train(tmp_path / "out")
        train(tmp_path / "out")
        assert weights(tmp_path / "out") == weights(finished[0])

    def test_only_the_rest_is_trained(self, train, kill, tmp_path, monkeypatch):
        kill("in a step", "masked", 5)
        with pytest.raises(Killed):
            train(tmp_path / "out")
        steps = []
        loss = trainer.PhaseTrainer.compute_loss

        def counted(self, *args, **given):
            steps.append((Path(self.args.output_dir).name, self.state.global_step))
            return loss(self, *args, **given)

        monkeypatch.setattr(trainer.PhaseTrainer, "compute_loss", counted)
        train(tmp_path / "out")
        assert steps == [("masked", 4), ("masked", 5), *(("votes", step) for step in range(3))]

    def test_a_log_line_of_which_half_was_written(self, train, finished, kill, tmp_path):
        kill("in a step", "masked", 3)
        with pytest.raises(Killed):
            train(tmp_path / "out")
        with (tmp_path / "out" / "training.jsonl").open("a") as file:
            file.write('{"phase": "mas')
        train(tmp_path / "out")
        assert log(tmp_path / "out") == log(finished[0])

    def test_killed_before_the_first_line(self, train, tmp_path, monkeypatch):
        replacing = Path.replace

        def killed(self, target):
            raise Killed

        monkeypatch.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            train(tmp_path / "out")
        monkeypatch.setattr(Path, "replace", replacing)
        assert not list((tmp_path / "out").iterdir())
        (tmp_path / "out" / "training.json.tmp").touch()  # as a loss of power leaves it
        train(tmp_path / "out", replace(QUICK, epochs=1, vote_epochs=0))

    def test_in_another_place(self, train, finished, kill, tmp_path):
        """The folder may be moved in between."""
        kill("in a step", "votes", 2)
        with pytest.raises(Killed):
            train(tmp_path / "out")
        (tmp_path / "out").rename(tmp_path / "moved")
        train(tmp_path / "moved")
        assert weights(tmp_path / "moved") == weights(finished[0])


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture(scope="module")
def started(train, tmp_path_factory):
    """The folder of a run that was killed at its first checkpoint."""
    folder = tmp_path_factory.mktemp("started") / "out"

    def killed(*_, **__):
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer.Watcher, "on_save", killed)
        with pytest.raises(Killed):
            train(folder)
    return folder


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "difference"),
        [
            ({"options": replace(QUICK, seed=3)}, r"options.seed \(0 there, 3 here\)"),
            ({"options": replace(QUICK, keep=(2,))}, r"options.keep \(\[1\] there, \[2\] here\)"),
            ({"data": made_up.corpus(24, seed=9)}, "train.sha256"),
            ({"held_out": made_up.corpus(9, "validation")}, "validation.rows"),
            ({"base": "elsewhere"}, "base .*there, 'elsewhere' here"),
        ],
    )
    def test_the_folder_of_another_run(self, change, difference, train, started, tmp_path):
        before = files(started)
        with pytest.raises(OutputError, match=difference):
            train(started, **change)
        assert files(started) == before

    def test_the_folder_of_a_finished_run(self, train, finished):
        with pytest.raises(OutputError, match="finished training run"):
            train(finished[0])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("nonsense", "cannot read"),
            ("[]", "holds no JSON object"),
            ('{"format": "other"}', "has format 'other', not 'ranmask-training'"),
            ('{"format": "ranmask-training", "version": 9}', "version 9"),
        ],
    )
    def test_a_damaged_record(self, content, message, train, tmp_path):
        (tmp_path / "training.json").write_text(content)
        with pytest.raises(OutputError, match=message):
            train(tmp_path)

    def test_a_folder_with_something_else(self, train, tmp_path):
        (tmp_path / "thesis.txt").write_text("precious")
        with pytest.raises(OutputError, match="holds no training run"):
            train(tmp_path)
        with pytest.raises(OutputError, match="holds no training run"):
            train(tmp_path / "thesis.txt")
        assert files(tmp_path) == ["thesis.txt"]

    def test_where_nothing_can_be_written(self, train):
        with pytest.raises(OutputError, match="cannot write /proc/nowhere"):
            train(Path("/proc/nowhere/out"))

    def test_classes_that_differ(self, train, tmp_path):
        other = replace(HELD_OUT, label_names=("blame", "praise", "report"))
        with pytest.raises(OptionError, match="praise, blame, report, validation blame"):
            train(tmp_path / "out", held_out=other)
        with pytest.raises(DataError, match="made-up train has no rows"):
            train(tmp_path / "out", data=replace(TRAIN, texts=(), labels=()))
        assert not (tmp_path / "out").exists()

    def test_a_device_that_is_not_there(self, base_folder, tmp_path):
        given = (str(base_folder), TRAIN, HELD_OUT, tmp_path / "out", QUICK)
        for device in ("tpu", "cuda:1", "" if torch.cuda.is_available() else "cuda"):
            with pytest.raises(OptionError, match="device"):
                train_encoder(*given, device=device)

    def test_nothing_is_left_of_a_run_that_could_not_begin(self, train, base_folder, tmp_path):
        deberta = tmp_path / "deberta"
        model, tokenizer = tiny_models.deberta()
        model.save_pretrained(deberta)
        tokenizer.save_pretrained(deberta)
        mute = tmp_path / "mute"
        shutil.copytree(base_folder, mute)
        for path in mute.glob("tokenizer*"):
            path.unlink()
        cases = [
            ({"base": tmp_path / "absent"}, ModelError, "there is no model folder"),
            ({"base": deberta}, ModelError, "hide='drop' is not exact"),
            ({"base": mute}, ModelError, "has no tokenizer files"),
            ({"options": replace(QUICK, layers=9)}, OptionError, "has only 2"),
            ({"options": replace(QUICK, vocabulary=100)}, OptionError, "too small"),
        ]
        for change, error, message in cases:
            with pytest.raises(error, match=message):
                train(tmp_path / "out", **change)
            assert not (tmp_path / "out").exists()


def summary(accuracy, certified):
    """Of ten texts."""
    made = CertifiedSummary()
    for place in range(10):
        radius = 1 if place < certified else 0
        made.add(correct=place < accuracy, radius=radius, words=8, expected=place % 3)
    return made


class TestBest:
    def test_the_best_certifies_most_and_need_not_be_the_most_accurate(
        self, train, scored, tmp_path, monkeypatch
    ):
        found = {2: summary(9, 1), 4: summary(7, 6), 6: summary(8, 3)}
        scores = {step: certified_score(one, 1) for step, one in found.items()}
        seen = scored(scores.__getitem__)
        steps = iter([*found, 6])
        monkeypatch.setattr(encoder, "certified_summary", lambda *_: found[next(steps)])
        classifier = train(tmp_path / "out", replace(QUICK, vote_epochs=0))
        assert evaluations(tmp_path / "out") == [2, 4, 6]
        assert same_weights(classifier.base.model.state_dict(), seen[4])
        assert not same_weights(classifier.base.model.state_dict(), seen[2])

    def test_always_the_same_class_is_never_the_best(self, train, tmp_path, monkeypatch):
        """Certified at any number of words wherever it is right, and yet worth nothing."""
        shares = Counter(HELD_OUT.labels)
        commonest = max(shares.values()) / len(HELD_OUT.labels)
        texts = len(HELD_OUT.labels)
        constant, modest = CertifiedSummary(), CertifiedSummary()
        for place in range(texts):
            label = int(place // (commonest * texts))
            constant.add(correct=not label, radius=8, words=8, expected=label)
            modest.add(correct=place <= commonest * texts, radius=0, words=8, expected=label)
        assert constant.certified_accuracy(3) > modest.certified_accuracy(0) / 2
        for weights in ("none", "balanced"):
            assert certified_score(constant, 3, weights) < 0 < certified_score(modest, 3, weights)
        found = {2: constant, 4: modest, 6: constant}
        steps = iter([*found, 6])
        monkeypatch.setattr(encoder, "certified_summary", lambda *_: found[next(steps)])
        kind = transformers.BertForSequenceClassification
        read, load = [], kind.from_pretrained
        monkeypatch.setattr(
            *(kind, "from_pretrained"),
            lambda folder, **given: (read.append(folder), load(folder, **given))[1],
        )
        train(tmp_path / "out", replace(QUICK, vote_epochs=0, patience=None))
        assert [Path(folder).name for folder in read[-2:]] == ["checkpoint-4", "masked-best"]

    def test_patience_begins_when_something_was_learned(self, train, scored, tmp_path):
        """Three evaluations that name one class always, then two that do not."""
        scored({2: -0.5, 4: -0.5, 6: -0.5, 8: 0.2, 10: 0.1, 12: 0.1}.__getitem__)
        options = replace(QUICK, vote_epochs=0, epochs=6, patience=1)
        train(tmp_path / "out", options)
        assert evaluations(tmp_path / "out") == [2, 4, 6, 8, 10]

    def test_votes_start_from_the_best_of_masked_training(self, train, scored, tmp_path):
        seen = scored({2: 0.5, 4: 0.8, 6: 0.1, 3: 0.1}.__getitem__)
        starts = []
        begin = trainer.Watcher.on_train_begin

        def spy(self, *args, model, **given):
            starts.append({name: one.clone() for name, one in model.state_dict().items()})
            return begin(self, *args, **given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trainer.Watcher, "on_train_begin", spy)
            train(tmp_path / "out")
        assert same_weights(starts[1], seen[4])

    @pytest.mark.parametrize("stop", [None, 3, 4, 5])
    def test_early_stopping(self, stop, train, scored, kill, tmp_path):
        """Two evaluations without gain are enough, whenever it is killed in between."""
        seen = scored({1: 0.2, 2: 0.5, 3: 0.5, 4: 0.6, 5: 0.3, 6: 0.6}.__getitem__)
        options = replace(QUICK, epochs=5, vote_epochs=0, evaluate_every=1, patience=2)
        if stop is not None:
            kill("after a checkpoint", "masked", stop)
            with pytest.raises(Killed):
                train(tmp_path / "out", options)
        classifier = train(tmp_path / "out", options)
        assert evaluations(tmp_path / "out") == [1, 2, 3, 4, 5, 6]
        assert same_weights(classifier.base.model.state_dict(), seen[4])

    def test_killed_after_the_last_evaluation_it_stays_stopped(self, train, scored, kill, tmp_path):
        scored({1: 0.5, 2: 0.4, 3: 0.9}.__getitem__)
        options = replace(QUICK, vote_epochs=0, evaluate_every=1, patience=1)
        kill("after a checkpoint", "masked", 2)
        with pytest.raises(Killed):
            train(tmp_path / "out", options)
        train(tmp_path / "out", options)
        assert evaluations(tmp_path / "out") == [1, 2]

    def test_patience_is_for_masked_training_only(self, train, scored, tmp_path):
        scored(lambda step: 1 / step)
        options = replace(QUICK, epochs=1, vote_epochs=2, evaluate_every=1, patience=1)
        train(tmp_path / "out", options)
        assert evaluations(tmp_path / "out") == [1, 2]
        assert evaluations(tmp_path / "out", "votes") == [1, 2, 3, 4, 5, 6]

    def test_the_last_step_is_evaluated_too(self, finished):
        assert evaluations(finished[0]) == [2, 4, 6]
        assert evaluations(finished[0], "votes") == [2, 3]


def same_weights(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class TestFolder:
    def test_what_is_in_it(self, finished):
        assert files(finished[0]) == [
            "README.md",
            "config.json",
            "model.safetensors",
            "ranmask.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "training.json",
            "training.jsonl",
        ]

    def test_smoothed_classifier(self, finished):
        folder, classifier = finished
        loaded = SmoothedClassifier.from_pretrained(folder, device="cpu")
        assert loaded.labels == made_up.CLASSES
        assert loaded.options == classifier.options
        assert (loaded.options.keep, loaded.options.ensemble) == (1, "score")
        assert loaded.base.encoder.hide == "drop"
        assert loaded.certify(HELD_OUT.texts) == classifier.certify(HELD_OUT.texts)
        summary = certified_summary(loaded, HELD_OUT.texts, HELD_OUT.labels)
        assert figures(summary, made_up.CLASSES, "balanced") == record(folder)["validation"]

    def test_plain_classifier(self, finished):
        folder, classifier = finished
        model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, output_loading_info=True
        )
        assert not report["missing_keys"] and not report["unexpected_keys"]
        assert model.config.id2label == dict(enumerate(made_up.CLASSES))
        assert same_weights(model.state_dict(), classifier.base.model.state_dict())
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        logits = model(**tokenizer("a good film", return_tensors="pt")).logits
        assert logits.shape == (1, 3)

    def test_other_smoothing(self, train, tmp_path):
        options = replace(
            QUICK, keep=(2, 1), hide="mask", family="windows", masks=5, epochs=1, vote_epochs=0
        )
        train(tmp_path / "out", options)
        loaded = SmoothedClassifier.from_pretrained(tmp_path / "out", device="cpu")
        assert loaded.options.keep == 2 and loaded.base.encoder.hide == "mask"
        [result] = loaded.certify(["a good film was very dull"])
        assert (result.family, result.masks, result.ensemble) == ("windows", 5, "vote")

    def test_approvals(self, train, tmp_path):
        train(tmp_path / "out", replace(QUICK, head="approval", epochs=0))
        loaded = SmoothedClassifier.from_pretrained(tmp_path / "out", device="cpu")
        assert loaded.base.model.config.problem_type == "multi_label_classification"
        assert loaded.base.outputs == "approvals"
        text = document("a good film was very dull and awful")
        [scores] = loaded.base.score([MaskedCopies(text, 8, all_sets(8, 1))])
        points = count_votes(scores, "score", "approvals", loaded.tolerance).points
        assert points.dtype == np.int64 and points.min() >= 0 and points.max() <= SCALE
        expected = torch.sigmoid(torch.tensor(scores)).numpy() * SCALE
        assert np.abs(points - expected).max() <= 0.5 + 1e-6
        [result] = loaded.certify(["a good film was very dull and awful"])
        assert sum(result.scores) != pytest.approx(1, abs=1e-3)  # each class by itself

    def test_half_precision_is_measured_as_it_is_stored(
        self, train, finished, tmp_path, monkeypatch
    ):
        folder = tmp_path / "half"
        halves = []

        def spy(count, classifier, *data, **settings):
            weights = classifier.base.model.state_dict().values()
            halves.append(all(torch.equal(one, one.half().float()) for one in weights))
            return count(classifier, *data, **settings)

        for name in MEASURED:
            monkeypatch.setattr(encoder, name, partial(spy, getattr(encoder, name)))
        classifier = train(folder, replace(QUICK, weights="float16"))
        whole, half = ((one / "model.safetensors").stat().st_size for one in (finished[0], folder))
        assert 0.4 < half / whole < 0.6
        stored = load_file(folder / "model.safetensors")
        assert {one.dtype for one in stored.values()} == {torch.float16}
        loaded = SmoothedClassifier.from_pretrained(folder, device="cpu")
        mine, theirs = (one.base.model.state_dict() for one in (classifier, loaded))
        assert {one.dtype for one in mine.values()} == {torch.float32}
        assert same_weights(mine, theirs)
        assert not same_weights(mine, finished[1].base.model.state_dict())
        assert halves == [False] * 5 + [True]  # five evaluations, and the last word
        found = certified_summary(loaded, HELD_OUT.texts, HELD_OUT.labels)
        assert figures(found, made_up.CLASSES, "balanced") == record(folder)["validation"]

    def test_a_smaller_encoder(self, train, tmp_path):
        classifier = train(tmp_path / "out", replace(QUICK, layers=1, vocabulary=145, epochs=0))
        loaded = SmoothedClassifier.from_pretrained(tmp_path / "out", device="cpu")
        config = loaded.base.model.config
        assert (config.num_hidden_layers, config.vocab_size) == (1, 145)
        assert len(loaded.base.tokenizer) == 145
        texts = ["unbelievable acting", "good film"]
        assert loaded.certify(texts) == classifier.certify(texts)

    def test_a_smaller_vocabulary_knows_the_premises(self, base_folder):
        pairs = documents(made_up.corpus(24, pairs=True).texts)
        options = replace(QUICK, vocabulary=144)
        _, tokenizer = encoder._new_model(str(base_folder), pairs, made_up.CLASSES, options)
        assert {"the", "film", "was"} <= set(tokenizer.get_vocab())
        assert len(tokenizer) == 144  # special tokens, characters, and these

    def test_log(self, finished):
        first, *lines = log(finished[0])
        assert (first["step"], first["steps"]) == (1, 6) and first["loss"] > 0
        assert [line["phase"] for line in lines] == ["masked"] * 6 + ["votes"] * 4 + ["complete"]
        steps = [(line["step"], line["steps"], line["epoch"]) for line in lines[:6]]
        assert steps == [(2, 6, 0.667)] * 2 + [(4, 6, 1.333)] * 2 + [(6, 6, 2.0)] * 2
        assert all(line["loss"] > 0 and line["learning_rate"] > 0 for line in lines[:6:2])
        evaluation = lines[1]
        assert evaluation["texts"] == 12 and 0 <= evaluation["accuracy"] <= 1
        certified = evaluation["certified_accuracy"]
        assert evaluation["score"] == pytest.approx((certified[0] + certified[1]) / 2)
        assert {name: lines[-1][name] for name in lines[-1] if name != "phase"} == (
            record(finished[0])["validation"]
        )

    def test_report_gets_every_line(self, train, tmp_path):
        lines = []
        train(tmp_path / "out", replace(QUICK, epochs=1, vote_epochs=0), report=lines.append)
        written = (tmp_path / "out" / "training.jsonl").read_text().splitlines()
        assert lines == [json.loads(line) for line in written]
        seconds = [line["seconds"] for line in lines[:-1]]
        assert seconds == sorted(seconds)

    def test_record(self, finished, base_folder):
        run = record(finished[0])["run"]
        assert run["base"] == str(base_folder) and run["kind"] == "encoder"
        assert run["train"] == TRAIN.description()
        assert run["options"] == QUICK.to_dict() and run["processes"] == 1

    def test_card(self, finished):
        card = (finished[0] / "README.md").read_text()
        measured = record(finished[0])["validation"]
        for expected in (
            "Trained on: made-up train, 24 rows (24 rows were made up)",
            "Validation: made-up validation, 12 rows (12 rows were made up)",
            "Classes: praise, blame, report",
            "12 texts",
            "checkpoint was chosen by them.",
            f"| {measured['accuracy']:.3f} | {measured['median_radius']} | "
            f"{measured['certified_accuracy'][1]:.3f} |",
            "- `learning_rate`: 0.001",
            "- `keep`: [1]",
        ):
            assert expected.replace("None", "none") in card, expected

    def test_evaluations_read_the_first_rows_only(self, train, tmp_path, monkeypatch):
        sizes = []

        def spy(count, classifier, texts, labels, *names, **settings):
            sizes.append((len(texts), len(labels)))
            return count(classifier, texts, labels, *names, **settings)

        for name in MEASURED:
            monkeypatch.setattr(encoder, name, partial(spy, getattr(encoder, name)))
        options = replace(QUICK, epochs=1, vote_epochs=0, evaluate_every=None, validation_rows=5)
        train(tmp_path / "out", options)
        assert sizes == [(5, 5), (12, 12)]
        assert "chosen by the first 5 of them" in (tmp_path / "out" / "README.md").read_text()

    def test_evaluations_check_the_model_once_a_phase_and_measure_nothing(
        self, train, tmp_path, monkeypatch
    ):
        checked, measured = [], []
        prepare, found = HuggingFaceClassifier._prepare, HuggingFaceClassifier._find_tolerance
        monkeypatch.setattr(
            HuggingFaceClassifier, "_prepare", lambda self: (checked.append(self), prepare(self))
        )
        monkeypatch.setattr(
            HuggingFaceClassifier,
            "_find_tolerance",
            lambda self: measured.append(self) or found(self),
        )
        train(tmp_path / "out", replace(QUICK, evaluate_every=2))
        log = (tmp_path / "out" / "training.jsonl").read_text()
        assert log.count('"score"') > 4
        # Of two phases what learns and what is measured, and in the end what is saved.
        assert len(checked) == 5
        assert measured == checked[-1:]

    def test_a_loss_that_is_no_number_is_null_in_the_log(self):
        lines = []
        run = SimpleNamespace(log=lines.append)
        watcher = trainer.Watcher(trainer.Phase("masked", 1, 1e-3), 4, run)
        state = SimpleNamespace(global_step=2, max_steps=4, is_world_process_zero=True)
        watcher.on_log(None, state, None, logs={"loss": float("nan"), "grad_norm": float("inf")})
        assert (lines[0]["loss"], lines[0]["grad_norm"], lines[0]["step"]) == (None, None, 2)
        json.dumps(lines, allow_nan=False)

    @pytest.mark.parametrize("every", [None, 2])  # a look where it is logged, or evaluated
    def test_a_training_that_diverges_says_so(self, train, tmp_path, every):
        """The library's own filter would log such a loss as 0, the best there is."""
        options = replace(QUICK, vote_epochs=0, learning_rate=1e36, evaluate_every=every)
        with pytest.raises(
            OptionError,
            match=r"the loss is no number since step [12] of \d+: training diverged with "
            r"learning_rate=1e\+36 and gradient_clip=1\. Lower the learning rate first",
        ):
            train(tmp_path / "out", options)
        losses = [line["loss"] for line in log(tmp_path / "out") if "loss" in line]
        assert losses[0] > 0 and 0 not in losses

    def test_a_training_whose_last_step_diverges_says_so(self, train, tmp_path, monkeypatch):
        """No loss comes after it: its weights tell."""
        plain, steps = encoder.CertifiedClassification.loss, itertools.count(1)

        def loss(self, model, *given):
            found = plain(self, model, *given)
            if next(steps) == 4:
                next(model.parameters()).data[0] = float("nan")
            return found

        monkeypatch.setattr(encoder.CertifiedClassification, "loss", loss)
        with pytest.raises(OptionError, match=r"weights are no numbers since step 4 of \d+: "):
            train(tmp_path / "out", replace(QUICK, vote_epochs=0, evaluate_every=4))

    def test_the_learning_rate_that_made_it_diverge_is_named(self, train, tmp_path):
        options = replace(QUICK, epochs=1, vote_learning_rate=1e36, evaluate_every=None)
        with pytest.raises(OptionError, match=r"diverged with vote_learning_rate=1e\+36 and"):
            train(tmp_path / "out", options)
        assert {line["phase"] for line in log(tmp_path / "out")} == {"masked", "votes"}

    @pytest.mark.parametrize(
        ("step", "logged", "every"), [(1, [1], 4), (3, [1, 4], 4), (4, [1, 3], 3)]
    )
    def test_since_which_step_the_loss_is_no_number(
        self, train, tmp_path, monkeypatch, step, logged, every
    ):
        """It is found by the next line of the log or measure, and named by where it began."""
        plain, steps = encoder.CertifiedClassification.loss, itertools.count(1)
        arguments = trainer.TrainingArguments

        def loss(*given):
            return plain(*given) * (float("inf") if next(steps) == step else 1)

        def logging(**given):
            return arguments(**given | {"logging_steps": every})

        monkeypatch.setattr(encoder.CertifiedClassification, "loss", loss)
        monkeypatch.setattr(trainer, "TrainingArguments", logging)
        with pytest.raises(OptionError, match=rf"no number since step {step} of \d+: "):
            train(tmp_path / "out", replace(QUICK, vote_epochs=0, evaluate_every=4))
        assert [line["step"] for line in log(tmp_path / "out")] == logged

    @pytest.mark.parametrize("error", [ClassifierError("nan"), ModelError("overflow")])
    def test_what_half_precision_cannot_measure_single_precision_does(self, error):
        def measure(base):
            if base == "half":
                raise error
            return base

        with pytest.warns(RuntimeWarning, match=f"single precision.*in half, {error}"):
            assert encoder._in_half_if_possible(measure, "half", "single") == "single"
        assert encoder._in_half_if_possible(measure, None, "single") == "single"
        assert encoder._in_half_if_possible(lambda base: base, "half", "single") == "half"


@pytest.mark.slow
def test_two_processes_train_one_model(base_folder, tmp_path):
    """What each does, and that a killed run resumes, is checked there; here what they made."""
    script = Path(__file__).with_name("two_processes.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*command, str(script), str(base_folder), str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in "01")
    assert first["sha256"] == second["sha256"]  # both returned the same model
    defended = [(tmp_path / f"{rank}-defended.json").read_text() for rank in "01"]
    assert defended[0] == defended[1]
    steps = itertools.chain(first["rows"][:3], second["rows"][:3])
    assert sorted(itertools.chain(*steps)) == list(range(48))  # three steps are an epoch
    assert first["parts"] != second["parts"]
    assert evaluations(tmp_path / "quiet") == [2, 3]
    assert [line["phase"] for line in log(tmp_path / "quiet")].count("complete") == 1
    assert weights(tmp_path / "killed") == weights(tmp_path / "quiet")
    assert log(tmp_path / "killed") == log(tmp_path / "quiet")
    assert SmoothedClassifier.from_pretrained(tmp_path / "quiet", device="cpu").certify(["good"])

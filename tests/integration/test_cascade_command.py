"""Augmentation, the detector and the cascade with tiny encoders, as a user runs them."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import made_up
import pytest

from commands import run_cli
from ranmask import DataError, ModelError, OptionError, OutputError, SmoothedClassifier, WordTable
from ranmask.attacks import loop
from ranmask.attacks.adversarial_data import augmented, read_attacked
from ranmask.attacks.outcome import AttackOutcome
from ranmask.attacks.recipes import AttackResources, build_recipe
from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.attacks.resources.word_lists import StopWords
from ranmask.data import load_splits
from ranmask.evaluation.cascade_report import CascadeReport
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines
from ranmask.runs.task import RunEvents
from ranmask.smoothing.cascade import Cascade
from ranmask.smoothing.store import load_classifier
from ranmask.training.defences import augment
from ranmask.training.defences.augment import AttackPlan, augmented_corpus, victim_options
from ranmask.training.encoder import train_encoder
from ranmask.training.options import WHOLE_TEXTS, TrainingOptions

pytestmark = pytest.mark.usefixtures("quiet")

# Every telling word has a synonym that tells another class, so that attacks succeed.
SYNONYMS = {"good": ["bad", "dull"], "great": ["awful"], "fine": ["dull", "plot"]}
SYNONYMS |= {"bad": ["good"], "awful": ["great"], "dull": ["fine"], "plot": ["bad", "good"]}
QUICK = TrainingOptions(
    **WHOLE_TEXTS, epochs=3, batch_size=16, learning_rate=1e-2, patience=None, target_words=1
)
TRAIN, HELD_OUT = made_up.corpus(72), made_up.corpus(24, "validation", seed=1)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """What the command sets for its own process must not outlive a test."""
    for name in ("TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS", "TQDM_DISABLE"):
        monkeypatch.setenv(name, os.environ.get(name, "1" if "_DISABLE" in name else "error"))
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("RANMASK_MODEL", raising=False)


def plan(**changes):
    resources = AttackResources(
        neighbours=NeighbourTable(SYNONYMS, name="made up"),
        stop_words=StopWords("none", frozenset()),
    )
    return AttackPlan(build_recipe("textfooler", resources), **changes)


def invoke(*arguments):
    return run_cli(*arguments)


def done_well(*arguments):
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    return done


def refused(done, code, message):
    assert done.exit_code == code and message in done.stderr, done.output
    return True


@pytest.fixture(scope="module")
def augmentation(base_folder, tmp_path_factory):
    """The folder of the first two steps, and the corpus that they gave."""
    output = tmp_path_factory.mktemp("augment") / "model"
    found = augmented_corpus(str(base_folder), TRAIN, HELD_OUT, output, QUICK, plan(), device="cpu")
    return output, found


def victim_of(output):
    return output.with_name(output.name + ".victim")


def attacked_of(output):
    return output.with_name(output.name + ".attacked.jsonl")


class TestAugmentation:
    def test_half_is_attacked_and_successes_are_added(self, augmentation):
        output, found = augmentation
        outcomes = read_attacked([attacked_of(output)])
        assert len(outcomes.outcomes) == 36 and len(outcomes.successes) >= 10
        assert len(found.texts) == 72 + len(outcomes.successes)
        assert set(TRAIN.texts) < set(found.texts)
        assert not output.exists()  # the third step's, which begins with a folder of its own
        record = read_header(Path(attacked_of(output)))
        assert record["input"]["sha256"] == TRAIN.sha256 and record["input"]["share"] == "1/2"

    def test_the_third_step(self, augmentation, base_folder, tmp_path):
        _, found = augmentation
        short = replace(QUICK, epochs=1)
        train_encoder(str(base_folder), found, HELD_OUT, tmp_path / "m", short, device="cpu")
        card = (tmp_path / "m" / "README.md").read_text()
        assert "texts attacked with success by textfooler" in card

    def test_again_nothing_is_made_anew(self, augmentation, base_folder, monkeypatch):
        output, found = augmentation
        before = attacked_of(output).read_bytes()

        def never(*_, **__):
            raise AssertionError("made again")

        monkeypatch.setattr("ranmask.training.encoder.train_encoder", never)
        monkeypatch.setattr(augment.AttackLoop, "_start", never_for_texts)
        again = augmented_corpus(
            str(base_folder), TRAIN, HELD_OUT, output, QUICK, plan(), device="cpu"
        )
        assert again.sha256 == found.sha256 and attacked_of(output).read_bytes() == before

    def test_an_interrupted_attack_is_resumed(
        self, augmentation, base_folder, tmp_path, monkeypatch
    ):
        output, found = augmentation
        other = tmp_path / "model"
        shutil.copytree(victim_of(output), victim_of(other))
        finish = loop.AttackLoop._end
        ended = []

        def killed(self, *given):
            finish(self, *given)
            ended.append(given)
            if len(ended) == 9:
                raise KeyboardInterrupt

        given = (str(base_folder), TRAIN, HELD_OUT, other, QUICK, plan(together=4))
        with monkeypatch.context() as patch:
            patch.setattr(loop.AttackLoop, "_end", killed)
            with pytest.raises(KeyboardInterrupt):
                augmented_corpus(*given, device="cpu")
        done = len(list(stored_lines(attacked_of(other))))
        assert 0 < done < 36
        told = []
        events = RunEvents(started=lambda *counts: told.append(counts), progress=told.append)
        again = augmented_corpus(*given, device="cpu", events=events)
        assert told[0] == (36, done)
        assert sum(told[1:]) == 36 - done
        assert again.sha256 == found.sha256

    def test_an_interrupted_victim_is_resumed(self, base_folder, tmp_path, monkeypatch):
        from ranmask.training.records import RunFolder

        output = tmp_path / "model"
        given = (str(base_folder), TRAIN, HELD_OUT, output, replace(QUICK, epochs=1), plan())

        def killed(*_, **__):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "complete", killed)
            with pytest.raises(KeyboardInterrupt):
                augmented_corpus(*given, device="cpu")
        assert not attacked_of(output).exists()
        assert len(augmented_corpus(*given, device="cpu").texts) >= 72

    def test_another_run_is_refused(self, augmentation, base_folder):
        output, _ = augmentation
        given = (str(base_folder), TRAIN, HELD_OUT, output)
        with pytest.raises(OutputError, match=r"differs in options.seed \(0 there, 1 here"):
            augmented_corpus(*given, replace(QUICK, seed=1), plan(), device="cpu")
        with pytest.raises(OutputError, match="belongs to another run"):
            augmented_corpus(*given, QUICK, plan(seed=1), device="cpu")

    def test_an_output_that_is_taken_is_refused_first(self, base_folder, tmp_path):
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "mine.txt").touch()
        given = (str(base_folder), TRAIN, HELD_OUT, tmp_path / "model", QUICK, plan())
        with pytest.raises(OutputError, match="holds no training run"):
            augmented_corpus(*given, device="cpu")
        assert not victim_of(tmp_path / "model").exists()

    def test_files_and_victims_that_there_are(self, augmentation, base_folder, tmp_path):
        output, found = augmentation
        given = (str(base_folder), TRAIN, HELD_OUT, tmp_path / "model", QUICK)
        again = augmented_corpus(*given, None, attacked=[attacked_of(output)])
        assert again.sha256 == found.sha256 and not list(tmp_path.iterdir())
        again = augmented_corpus(*given, plan(), victim=str(victim_of(output)), device="cpu")
        assert again.sha256 == found.sha256
        assert not victim_of(tmp_path / "model").exists()
        with pytest.raises(OptionError, match="give either"):
            augmented_corpus(*given, plan(), attacked=[attacked_of(output)])
        with pytest.raises(OptionError, match="name a recipe"):
            augmented_corpus(*given, None)

    def test_several_processes_are_refused(self, base_folder, tmp_path, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "2")
        given = (str(base_folder), TRAIN, HELD_OUT, tmp_path / "model", QUICK, plan())
        with pytest.raises(OptionError, match="attacked by one process"):
            augmented_corpus(*given)

    def test_the_victim_hides_nothing(self):
        masked = TrainingOptions(keep=(2, 3), copies=4, vote_epochs=2, epochs=0, masks=9, ramp=0.5)
        plain = victim_options(masked)
        assert plain == TrainingOptions(**WHOLE_TEXTS, epochs=1)


def never_for_texts(self, targets):
    assert not targets
    return []


@pytest.fixture(scope="module")
def parts(augmentation, base_folder, tmp_path_factory):
    """Folders of a plain and a smoothed model, a detector, and the cascade of them."""
    output, _ = augmentation
    folder = tmp_path_factory.mktemp("parts")
    smoothed = TrainingOptions(
        keep=(3,), hide="drop", epochs=3, batch_size=16, learning_rate=1e-2, target_words=1
    )
    train_encoder(str(base_folder), TRAIN, HELD_OUT, folder / "smooth", smoothed, device="cpu")
    given = ("--base", base_folder, "--output", folder / "det", "--device", "cpu", "--epochs", 4)
    sizes = ("--batch-size", 8, "--learning-rate", 0.005)
    command = ("cascade", "detector", "--attacked", attacked_of(output), *given, *sizes)
    done = done_well(*command)
    assert "validation accuracy" in done.stderr and done.stdout == ""
    models = (victim_of(output), folder / "smooth", folder / "det")
    done = done_well("cascade", "build", *models, "--output", folder / "cascade")
    assert done.stderr == f"{folder / 'cascade'}: a cascade, threshold 0.5\n"
    return folder, models, command


@pytest.fixture(scope="module")
def held_out_attack(parts, tmp_path_factory):
    """The plain model attacked on texts that nothing was trained on."""
    folder = tmp_path_factory.mktemp("attacked")
    made_up.write_csv(folder / "test.csv", 24, seed=5)
    (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))
    given = (
        *("attack", "--recipe", "textfooler", "--input", folder / "test.csv"),
        *("--label-column", "label", "--neighbours", folder / "synonyms.json"),
        *("--tagger", "none", "--stop-words", "none", "--device", "cpu"),
    )
    done_well(*given, "--plain", "--model", parts[1][0], "--output", folder / "out.jsonl")
    return given, folder


class TestDetector:
    def test_what_it_is(self, parts, augmentation):
        folder, _, _ = parts
        record = json.loads((folder / "det" / "training.json").read_text())
        assert record["run"]["train"]["label_names"] == ["clean", "attacked"]
        successes = len(read_attacked([attacked_of(augmentation[0])]).successes)
        rows = record["run"]["train"]["rows"] + record["run"]["validation"]["rows"]
        assert rows <= 2 * successes and record["run"]["validation"]["rows"] >= 2

    def test_the_same_command_again(self, parts):
        assert refused(invoke(*parts[2]), 1, "holds a finished training run")

    def test_what_is_no_attack(self, base_folder, tmp_path):
        given = ("--base", base_folder, "--output", tmp_path / "det")
        done = invoke("cascade", "detector", "--attacked", tmp_path / "none", *given)
        assert refused(done, 1, "there is no file") and not (tmp_path / "det").exists()


class TestCascade:
    def test_loaded(self, parts):
        folder, _, _ = parts
        both = load_classifier(str(folder / "cascade"), device="cpu")
        assert isinstance(both, Cascade) and both.labels == made_up.CLASSES
        smoothed = SmoothedClassifier.from_pretrained(str(folder / "smooth"), device="cpu")
        text = "the good film was great and fine"
        [result], [alone] = both.certify([text]), smoothed.certify([text])
        assert (result.radius, result.label, result.votes) == (
            *(alone.radius, alone.label, alone.votes),
        )

    def test_saved_and_loaded_again(self, parts, tmp_path):
        both = load_classifier(str(parts[0] / "cascade"), device="cpu")
        changed = Cascade(both.plain, both.smoothed, both.detector, 0.25)
        changed.save_pretrained(str(tmp_path / "saved"))
        again = load_classifier(str(tmp_path / "saved"), device="cpu")
        assert again.threshold == 0.25
        texts = list(HELD_OUT.texts)
        assert again.predict(texts) == changed.predict(texts)

    def test_predicts_and_certifies(self, parts):
        model = ("--model", parts[0] / "cascade", "--device", "cpu", "--json")
        done = done_well("predict", *model, "good great fine the film")
        [line] = map(json.loads, done.stdout.splitlines())
        assert line["path"] in ("plain", "smoothed") and 0 <= line["suspicion"] <= 1
        done = done_well("certify", *model, "good great fine the film", "--masks", 5)
        [line] = map(json.loads, done.stdout.splitlines())
        assert line["masks"] == 5  # options of smoothing are the smoothed part's
        assert line["shown_label"] in made_up.CLASSES and "radius" in line
        assert "none is given for `shown_label`" in line["assumes"][-1]

    def test_over_files(self, parts, tmp_path):
        made_up.write_csv(tmp_path / "in.csv", 6, seed=3)
        given = ("--input", tmp_path / "in.csv", "--label-column", "label", "--device", "cpu")
        for command in ("predict", "certify"):
            out = tmp_path / f"{command}.jsonl"
            for _ in range(2):
                model = ("--model", parts[0] / "cascade", "--output", out)
                assert (
                    "6 rows, 0 with errors, 6 with labels"
                    in done_well(command, *given, *model).stderr
                )
            record = read_header(Path(out))
            assert record["classifier"]["kind"] == "cascade"

    def test_attacked_as_a_whole(self, parts, held_out_attack, tmp_path):
        given, _ = held_out_attack
        model = ("--model", parts[0] / "cascade")
        done = done_well(*given, *model, "--output", tmp_path / "out.jsonl")
        assert "masked copies in" in done.stderr
        record = read_header(tmp_path / "out.jsonl")
        assert record["classifier"]["kind"] == "cascade"
        both = load_classifier(str(parts[0] / "cascade"), device="cpu")
        outcomes = list(map(AttackOutcome.from_dict, stored_lines(tmp_path / "out.jsonl")))
        fooled = [one for one in outcomes if one.status == "succeeded"]
        assert fooled
        after = both.predict([one.adversarial for one in fooled])
        assert [one.label_id for one in after] == [one.final_label for one in fooled]
        assert refused(
            invoke(*given, *model, "--budget", "radius"), 2, "the cascade as a whole carries no"
        )

    def test_the_plain_part_by_itself(self, parts, held_out_attack):
        given, folder = held_out_attack
        done = done_well(*given, "--plain", "--model", parts[0] / "cascade")
        printed = [json.loads(line) for line in done.stdout.splitlines()]
        assert printed == list(stored_lines(folder / "out.jsonl"))

    def test_report(self, parts, held_out_attack, tmp_path):
        _, folder = held_out_attack
        given = ("--model", parts[0] / "cascade", "--attacked", folder / "out.jsonl")
        given += ("--device", "cpu")
        done = done_well("cascade", "report", *given, "--output", tmp_path / "report.json")
        written = json.loads((tmp_path / "report.json").read_text())
        found = CascadeReport.from_dict(written)
        run = read_header(folder / "out.jsonl")["finished"]
        # The plain part is the file's victim: its figures are those of the attack.
        assert found.plain.clean == run["attempted"] and found.plain.robust == run["failed"]
        assert found.texts == 24 and found.succeeded == run["succeeded"] > 0
        assert found.roc.clean == 24 and found.proved is not None
        assert written["about"]["model"]["kind"] == "cascade"
        for words in ("clean accuracy", "cascade as a whole carries no certificate", "AUC"):
            assert words in done.stdout
        less = done_well("cascade", "report", *given, "--no-certify")
        assert "certified variant" in done.stdout and "certified variant" not in less.stdout

    def test_report_of_something_else(self, parts, held_out_attack):
        given = ("--attacked", held_out_attack[1] / "out.jsonl", "--device", "cpu")
        done = invoke("cascade", "report", "--model", parts[0] / "smooth", *given)
        assert refused(done, 2, "is not a cascade")


class TestRefused:
    def test_other_ways_to_load_it(self, parts):
        folder = str(parts[0] / "cascade")
        with pytest.raises(ModelError, match=r"holds several models \(kind 'cascade'\)"):
            SmoothedClassifier.from_pretrained(folder, keep=1)
        with pytest.raises(OptionError, match=r"labels=.* means nothing for a cascade"):
            load_classifier(folder, labels=["a", "b", "c"])

    def test_tuning(self, parts, tmp_path):
        made_up.write_csv(tmp_path / "in.csv", 40)
        given = ("--data", tmp_path / "in.csv", "--split", "validation", "--device", "cpu")
        done = invoke("tune", "--model", parts[0] / "cascade", *given)
        assert refused(done, 2, "is not smoothed by masking words")

    def test_building(self, parts, tmp_path):
        folder, models, _ = parts
        plain, smoothed, _ = models
        output = ("--output", tmp_path / "new")
        done = invoke("cascade", "build", plain, smoothed, plain, *output)
        assert refused(done, 1, "a detector has the classes clean and attacked")
        done = invoke("cascade", "build", plain, smoothed, tmp_path / "none", *output)
        assert refused(done, 1, "there is no model folder")
        done = invoke("cascade", "build", *models, *output, "--threshold", 2)
        assert refused(done, 2, "threshold must be a number from 0 to 1")
        done = invoke("cascade", "build", *models, "--output", folder / "cascade")
        assert refused(done, 1, "exists and is not an empty folder")
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            pytest.param({"smoothing": {"keep": 1}}, "the option 'keep'", id="option"),
            pytest.param({"smoothing": {"threshold": "x"}}, "wrong type", id="threshold"),
            pytest.param({"parts": ["plain"]}, "'cascade' are plain, smoothed", id="parts"),
        ],
    )
    def test_damaged_records(self, change, message, parts, tmp_path):
        record = json.loads((parts[0] / "cascade" / "ranmask.json").read_text())
        (tmp_path / "ranmask.json").write_text(json.dumps({**record, **change}))
        with pytest.raises(ModelError, match=message):
            load_classifier(str(tmp_path))

    def test_a_missing_part(self, parts, tmp_path):
        shutil.copy(parts[0] / "cascade" / "ranmask.json", tmp_path)
        with pytest.raises(ModelError, match="has no folder 'plain'"):
            load_classifier(str(tmp_path))


def test_word_tables_have_no_device(parts, tmp_path):
    """A word table may be the plain or the smoothed part, whatever device the others use."""
    import numpy as np

    entries = np.random.default_rng(0).integers(-127, 128, (32, 3)).astype(np.int8)
    table = WordTable(entries, np.zeros(3, dtype=np.int64), labels=made_up.CLASSES, shift=5)
    table.save(tmp_path / "table")
    names = (str(tmp_path / "table"), str(tmp_path / "table"), str(parts[0] / "det"))
    done_well("cascade", "build", *names, "--output", tmp_path / "cascade")
    both = load_classifier(str(tmp_path / "cascade"), device="cpu")
    assert both.predict(["good film"])[0].label in made_up.CLASSES


def test_an_attack_on_a_training_split_is_used_as_it_is(parts, held_out_attack, tmp_path):
    """`ranmask attack --split train` writes what augmentation reads; another split is refused."""
    given, _ = held_out_attack
    data = tmp_path / "data"
    data.mkdir()
    made_up.write_csv(data / "train.csv", 24, seed=0)
    made_up.write_csv(data / "validation.csv", 12, seed=1)
    made_up.write_csv(data / "test.csv", 12, seed=2)
    train, validation = load_splits(str(data), label_names=made_up.CLASSES)
    rest = [one for one in given if one not in ("--input", "--label-column", "label")]
    rest = [one for one in rest if not str(one).endswith("test.csv")]
    for split in ("train", "test"):
        out = tmp_path / f"{split}.jsonl"
        done_well(
            *(*rest, "--plain", "--model", parts[1][0], "--data", data, "--split", split),
            *("--output", out),
        )
    more = augmented(train, read_attacked([tmp_path / "train.jsonl"]), without=validation)
    assert len(more.texts) > 24
    with pytest.raises(DataError, match="an attacked text is no row of"):
        augmented(train, read_attacked([tmp_path / "test.jsonl"]), without=validation)

"""``ranmask train`` as a user runs it: what it says, where it stops, that it can be repeated."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import made_up
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import run_cli
from ranmask.errors import OptionError

pytestmark = pytest.mark.usefixtures("quiet")

ENCODER = ("--keep", "1", "--epochs", "1", "--batch-size", "8", "--target-words", "1")
WORDS = ("--kind", "words", "--epochs", "3", "--warm-epochs", "1", "--buckets", "4096")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """What the command sets for its own process must not outlive a test."""
    for name in ("TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS", "TQDM_DISABLE"):
        monkeypatch.setenv(name, os.environ.get(name, "1" if "_DISABLE" in name else "error"))
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture
def data(tmp_path):
    """A folder with train and validation."""
    folder = tmp_path / "data"
    folder.mkdir()
    made_up.write_csv(folder / "train.csv", 48)
    made_up.write_csv(folder / "validation.csv", 15, seed=1)
    return folder


def train(*arguments):
    return run_cli("train", *arguments)


def refused(done, code, message):
    """One line on standard error, and nothing else."""
    assert done.exit_code == code, done.output
    assert done.stdout == "" and message in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    return True


class TestWords:
    def test_trains_saves_and_certifies(self, data, tmp_path):
        done = train("--data", data, "--output", tmp_path / "table", *WORDS)
        assert done.exit_code == 0, done.stderr
        assert "words epoch 3: loss" in done.stderr and "validation accuracy" in done.stderr
        record = json.loads((tmp_path / "table" / "training.json").read_text())
        assert record["complete"] and record["run"]["kind"] == "words"
        assert record["validation"]["accuracy"] > 0.8
        card = (tmp_path / "table" / "README.md").read_text()
        assert "train, 48 rows" in card and "checkpoint" not in card

        given = ("certify", "-m", str(tmp_path / "table"), "--json", "good great fine good the")
        plain = run_cli(*given)
        [line] = [json.loads(line) for line in plain.stdout.splitlines()]
        assert line["label"] == "praise" and line["radius"] >= 1
        edits = run_cli(*given, "--threat", "edits")
        [edited] = [json.loads(line) for line in edits.stdout.splitlines()]
        assert edited["threat"] == "edits" and edited["radius"] == line["radius"]

    def test_all_options_reach_it(self, data, tmp_path):
        done = train(
            *("--data", data, "--output", tmp_path / "table", *WORDS),
            *("--batch-size", 16, "--accuracy-weight", 0.5, "--target-words", 2, "--margin", 0.4),
            *("--temperature", 0.5, "--feature-dropout", 0.2, "--learning-rate", 0.1, "--seed", 3),
            *("--class-weights", "none", "--weight-decay", 0.001, "--family", "distinct"),
            *("--threat", "edits,insertions", "--normalise", "case", "--lexicon", "open"),
            *("--positive", "praise", "--synonym-weight", 0.5),
        )
        assert done.exit_code == 0, done.stderr
        record = json.loads((tmp_path / "table" / "ranmask.json").read_text())
        assert record["smoothing"]["family"] == "distinct"
        assert record["smoothing"]["threat"] == "edits"
        options = json.loads((tmp_path / "table" / "training.json").read_text())["run"]["options"]
        assert options == {
            "threat": "edits",
            "threats": ["insertions"],
            "synonyms": None,
            "synonym_weight": 0.5,
            "target_words": 2,
            "family": "distinct",
            "temperature": 0.5,
            "epochs": 3,
            "warm_epochs": 1,
            "learning_rate": 0.1,
            "batch_size": 16,
            "feature_dropout": 0.2,
            "weight_decay": 0.001,
            "margin": 0.4,
            "accuracy_weight": 0.5,
            "whole_weight": 0.0,
            "class_weights": "none",
            "normalise": "case",
            "lexicon": "open",
            "positive": "praise",
            "buckets": 4096,
            "most_words": 800,
            "partitions": None,
            "seed": 3,
        }

    def test_synonyms_are_kept_beside_it(self, data, tmp_path):
        (tmp_path / "mine.json").write_text(json.dumps({"good": ["bad"], "bad": ["good"]}))
        output = tmp_path / "table"
        given = ("--data", data, "--output", output, *WORDS, "--threat", "synonyms")
        assert refused(train(*given), 2, "--synonyms")
        done = train(*given, "--warm-epochs", 0, "--synonyms", tmp_path / "mine.json")
        assert done.exit_code == 0, done.stderr
        run = json.loads((output / "training.json").read_text())["run"]
        kept = json.loads((output / "synonyms.json").read_text())
        assert kept["table"] == {"good": ["bad"], "bad": ["good"]}
        assert run["synonyms"]["name"] == kept["name"] == "mine.json"
        assert run["options"]["target_words"] is None
        assert "all words at once" in done.stderr
        assert "| all words at once |" in (output / "README.md").read_text()

        found = run_cli("certify", "-m", str(output), "--json", "great fine great the film")
        [line] = [json.loads(line) for line in found.stdout.splitlines()]
        assert line["threat"] == "synonyms" and line["radius"] == line["words"] == 5

    def test_lookalikes_need_their_package(self, data, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "confusable_homoglyphs", None)
        given = ("--data", data, "--output", tmp_path / "table", *WORDS)
        assert refused(train(*given, "--normalise", "lookalikes"), 1, "ranmask[lookalikes]")
        assert not (tmp_path / "table").exists()

    def test_a_threat_is_certified_by_default(self, data, tmp_path):
        output = tmp_path / "table"
        done = train("--data", data, "--output", output, *WORDS, "--threat", "insertions")
        assert done.exit_code == 0, done.stderr
        assert "certified at d inserted words" in (output / "README.md").read_text()
        given = ("certify", "-m", str(output), "--json", "good great fine good the")
        radii = []
        for more in ((), ("--threat", "substitutions")):
            found = run_cli(*given, *more)
            [line] = [json.loads(line) for line in found.stdout.splitlines()]
            assert line["threat"] == (more or ("", "insertions"))[1]
            radii.append(line["radius"])
        assert radii[0] > radii[1]

    def test_the_closing_lines_are_by_class(self, data, tmp_path):
        done = train("--data", data, "--output", tmp_path / "table", *WORDS)
        assert "(majority class alone 0." in done.stderr and "balanced accuracy" in done.stderr
        assert "class" in done.stderr and "recall" in done.stderr
        assert "warning" not in done.stderr
        measured = json.loads((tmp_path / "table" / "training.json").read_text())["validation"]
        assert measured["beats_majority"] is True
        assert [one["name"] for one in measured["classes"]] == sorted(made_up.CLASSES)
        card = (tmp_path / "table" / "README.md").read_text()
        assert f"| {made_up.CLASSES[0]} |" in card and "balanced accuracy" in card
        assert "do not use it" not in card

    @pytest.mark.parametrize("weights", ["none", "balanced"])
    def test_nothing_learned(self, tmp_path, weights):
        """Texts that do not tell: the largest class is named for all of them."""
        rows = "".join(f"the same words,{'rare' if n % 10 == 0 else 'often'}\n" for n in range(60))
        for part in ("train", "validation"):
            (tmp_path / f"{part}.csv").write_text("text,label\n" + rows)
        arguments = ("--data", tmp_path, *WORDS, "--class-weights", weights)
        done = train(*arguments, "--output", tmp_path / "one")
        assert done.exit_code == 0
        assert "warning: this model is no better than naming the largest class" in done.stderr
        done = train(*arguments, "--output", tmp_path / "other", "--fail-below-majority")
        assert done.exit_code == 4 and "warning: this model" in done.stderr
        record = json.loads((tmp_path / "other" / "training.json").read_text())
        assert record["complete"] and record["validation"]["beats_majority"] is False
        assert "do not use it" in (tmp_path / "other" / "README.md").read_text()

    def test_a_class_that_is_hardly_found(self, capsys, tmp_path):
        from ranmask.cli.training_log import TrainingLog

        classes = [
            {"name": name, "texts": texts, "recall": recall, "certified_recall": [recall, 0.0]}
            for name, texts, recall in (("fine", 90, 1.0), ("toxic", 10, 0.1))
        ]
        measured = {"accuracy": 0.91, "majority": 0.9, "balanced_accuracy": 0.55}
        measured |= {"certified_accuracy": [0.9, 0.8], "beats_majority": True, "classes": classes}
        TrainingLog(tmp_path)({"phase": "complete", **measured})
        said = capsys.readouterr().err
        assert "warning: the class toxic is found less often than by guessing: recall 0.100" in said

    def test_a_model_that_is_asked_to_learn_something_is_a_classifier(self, data, tmp_path):
        given = ("--kind", "mlm", "--base", "b", "--fail-below-majority")
        done = train("--data", data, "--output", tmp_path / "lm", *given)
        assert refused(done, 2, "--fail-below-majority means nothing with --kind mlm")

    def test_the_base_install_is_enough(self, data, tmp_path):
        """Where torch cannot be imported a table is trained, measured, saved and certified with."""
        table = str(tmp_path / "table")
        code = (
            "import sys\n"
            "for name in ('torch', 'transformers', 'accelerate'): sys.modules[name] = None\n"
            "from ranmask.cli.main import main\n"
            "main()\n"
        )
        commands = (
            ("train", "--data", str(data), "--output", table, *WORDS),
            ("certify", "--model", table, "the film was great"),
        )
        for command in commands:
            arguments = (sys.executable, "-c", code, *command)
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["label"] == "praise"

    def test_interrupted_it_begins_anew(self, data, tmp_path, monkeypatch):
        from ranmask.training import word_table

        trained = word_table.train_word_table

        def interrupted(*args, progress, **given):
            progress(1, 3, 0.5)
            raise KeyboardInterrupt

        arguments = ("--data", data, "--output", tmp_path / "table", *WORDS)
        monkeypatch.setattr(word_table, "train_word_table", interrupted)
        done = train(*arguments)
        assert done.exit_code == 130 and "the same command resumes" in done.stderr
        monkeypatch.setattr(word_table, "train_word_table", trained)
        assert train(*arguments).exit_code == 0
        log = (tmp_path / "table" / "training.jsonl").read_text().splitlines()
        assert [json.loads(line).get("epoch") for line in log] == [1, 2, 3, None]

    def test_classes_that_differ(self, tmp_path):
        from ranmask.training.table_options import WordTableOptions
        from ranmask.training.word_table import train_words

        held_out = replace(made_up.corpus(6, "validation"), label_names=("a", "b", "c"))
        with pytest.raises(OptionError, match="they must be the same"):
            train_words(made_up.corpus(6), held_out, tmp_path / "table", WordTableOptions())
        assert not (tmp_path / "table").exists()

    def test_several_processes_are_refused(self, data, tmp_path, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "2")
        done = train("--data", data, "--output", tmp_path / "table", *WORDS)
        assert refused(done, 2, "without torchrun") and not (tmp_path / "table").exists()


class TestEncoder:
    def test_trains_saves_and_certifies(self, data, base_folder, tmp_path):
        arguments = ("--data", data, "--output", tmp_path / "model", "--base", base_folder)
        done = train(*arguments, *ENCODER, "--vote-epochs", 1, "--head", "approval")
        assert done.exit_code == 0, done.stderr
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert lines[0].startswith("masked epoch 0.167, step 1 of 6: loss ")
        assert lines[1].startswith("masked epoch 1, step 6 of 6: loss ")
        assert lines[2].startswith("masked epoch 1: validation accuracy ")
        closing = f"{tmp_path}/model: validation accuracy "
        assert sum(line.startswith(closing) for line in lines) == 1
        certified = run_cli("certify", "-m", str(tmp_path / "model"), "good film")
        [line] = [json.loads(line) for line in certified.stdout.splitlines()]
        assert line["label"] in made_up.CLASSES and line["ensemble"] == "score"

    def test_options_reach_it(self, data, base_folder, tmp_path):
        done = train(
            *("--data", data, "--output", tmp_path / "model", "--base", base_folder),
            *("--keep", "2,1", "--hide", "mask", "--epochs", 1, "--rows", 16, "--layers", 1),
            *("--vocabulary", 150, "--weights", "float16", "--validation-rows", 5, "--masks", 9),
        )
        assert done.exit_code == 0, done.stderr
        record = json.loads((tmp_path / "model" / "training.json").read_text())
        options = record["run"]["options"]
        assert record["run"]["train"]["rows"] == 16
        assert (options["keep"], options["hide"], options["epochs"]) == ([2, 1], "mask", 1)
        assert (options["layers"], options["vocabulary"]) == (1, 150)
        assert (options["weights"], options["validation_rows"]) == ("float16", 5)
        assert options["patience"] == 3  # a default

    @pytest.mark.slow
    def test_killed_in_a_process_of_its_own(self, data, base_folder, tmp_path):
        """SIGKILL once there is a checkpoint; the same command ends as if nothing had happened."""

        def arguments(output):
            given = ("--data", data, "--output", output, "--base", base_folder, "--device", "cpu")
            more = ("--epochs", "6", "--evaluate-every", "2", "--patience", "99")
            return [str(one) for one in (*given, *ENCODER, *more)]

        process = subprocess.Popen(
            [sys.executable, "-m", "ranmask.cli", "train", *arguments(tmp_path / "killed")],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        checkpoints = tmp_path / "killed" / "checkpoints" / "masked"
        while process.poll() is None and not list(checkpoints.glob("checkpoint-*/complete")):
            time.sleep(0.01)
        process.kill()
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
        assert "Warning" not in errors and "Traceback" not in errors
        assert not json.loads((tmp_path / "killed" / "training.json").read_text())["complete"]
        for name in ("killed", "quiet"):
            done = train(*arguments(tmp_path / name))
            assert done.exit_code == 0, done.stderr
        assert done.stderr.count("\n") > 35  # the quiet one: 36 steps, 18 evaluations
        one, other = (tmp_path / name / "model.safetensors" for name in ("killed", "quiet"))
        assert one.read_bytes() == other.read_bytes()


class TestRefused:
    def test_help_imports_nothing_heavy(self):
        code = (
            "import sys\n"
            "from ranmask.cli.main import run_command\n"
            "assert run_command(['train', '--help']) == 0\n"
            "heavy = {'torch', 'transformers', 'scipy', 'numpy', 'pyarrow'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
        )
        environment = {**os.environ, "COLUMNS": "200", "TERM": "dumb"}
        told = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
        assert "vote-epochs" in told

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (ENCODER, "name a folder or a hub id with --base, or train a word table"),
            (("--base", "b", "--kind", "forest"), "--kind must be one of encoder, words, mlm; "),
            (("--base", "b"), "give exactly one of --keep and --mask-rate"),
            (("--base", "b", "--keep", "one"), "--keep takes whole numbers, as 2 or 1,2,3; not 'o"),
            (("--base", "b", "--keep", "1,"), "--keep takes whole numbers"),
            (("--base", "b", "--keep", "0"), "--keep must be a whole number of at least 1, not 0"),
            (
                ("--base", "b", "--keep", "1", "--mask-rate", "0.5"),
                "exactly one of --keep and --mask-r",
            ),
            (("--base", "b", "--mask-rate", "1.5"), "--mask-rate must be a number from 0"),
            (("--base", "b", *ENCODER, "--warm-epochs", "1"), "--warm-epochs means nothing with"),
            (("--base", "b", *ENCODER, "--buckets", "64"), "--buckets means nothing with --kind e"),
            (("--base", "b", *ENCODER, "--head", "two"), "--head must be one of choice, approval"),
            (
                ("--base", "b", *ENCODER, "--learning-rate", "0"),
                "--learning-rate must be a number ab",
            ),
            (("--base", "b", *ENCODER, "--device", "tpu"), "--device must be cpu or cuda"),
            (("--base", "b", *ENCODER, "--pair-columns", "one"), "--pair-columns takes two names"),
            (("--base", "b", *ENCODER, "--rows", "0"), "--rows must be a whole number of at least"),
            ((*WORDS, "--keep", "1"), "--keep means nothing with --kind words: leave it out"),
            ((*WORDS, "--base", "b"), "--base means nothing with --kind words"),
            ((*WORDS, "--device", "cpu"), "--device means nothing with --kind words"),
            ((*WORDS, "--vote-epochs", "1"), "--vote-epochs means nothing with --kind words"),
            ((*WORDS, "--margin", "2"), "--margin must be a number between 0 and 1"),
        ],
    )
    def test_options(self, arguments, message, data, tmp_path):
        done = train("--data", data, "--output", tmp_path / "out", *arguments)
        assert refused(done, 2, message)
        assert not (tmp_path / "out").exists()

    def test_usage(self, tmp_path):
        for arguments, message in (
            (("--output", tmp_path), "ranmask train needs --data"),
            (("--data", "d"), "ranmask train needs --output"),
            (("--data", "d", "--outptu", "o"), "needs --output, and does not know --outptu"),
            (("--data", "d", "--output"), "--output needs a value"),
            (("--data", "d", "--output", "o", "--learning-rate", "fast"), "'fast' is not a number"),
        ):
            assert refused(train(*arguments), 2, message)

    @pytest.mark.parametrize("kind", ["encoder", "words"])
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "there is no file or folder"),
            ("text,label\ngood film,1\nbad film,1\n", "has one class only, '1'"),
            ("text,label\ngood film,0\nbad film,2\n", "an empty class"),
            ("text,label\ngood film,0\n ,1\n", "row 2: "),
            ("text,label\ngood film,0\nbad film,\n", "row 2: "),
            ("text\ngood film\n", "label"),
            ("a,b,label\ngood,c,0\nbad,d,1\n", "text"),
            ("text,label\n", "has no rows"),
        ],
        ids=str,
    )
    def test_data(self, kind, content, message, base_folder, tmp_path):
        source = tmp_path / "data.csv"
        if content is not None:
            source.write_text(content)
        chosen = ("--base", base_folder, *ENCODER) if kind == "encoder" else WORDS
        done = train("--data", source, "--output", tmp_path / "out", *chosen)
        assert refused(done, 1, message) and str(source) in done.stderr
        assert not (tmp_path / "out").exists()

    def test_bad_rows_can_be_left_out(self, data, tmp_path):
        more = tmp_path / "more.csv"
        made_up.write_csv(more, 10, seed=2)
        for path in (data / "train.csv", data / "validation.csv", more):
            path.write_text(path.read_text() + " ,praise\ngood film,\n")
        given = ("--data", data, "--also", more, "--output", tmp_path / "out", *WORDS)
        done = train(*given)
        assert refused(done, 1, "row 49: ") and "; 1 more row cannot be used" in done.stderr
        assert "--skip-bad-rows" in done.stderr and not (tmp_path / "out").exists()
        done = train(*given, "--skip-bad-rows")
        assert done.exit_code == 0, done.stderr
        run = json.loads((tmp_path / "out" / "training.json").read_text())["run"]
        for part in ("train", "validation"):
            assert "left out 2 rows that cannot be used" in json.dumps(run[part]), run
        assert run["validation"]["rows"] == 15

    def test_labels_of_validation(self, data, base_folder, tmp_path):
        other = tmp_path / "other.csv"
        other.write_text("text,label\ngood film,praise\nbad film,neutral\n")
        given = ("--data", data, "--output", tmp_path / "out", "--base", base_folder, *ENCODER)
        done = train(*given, "--validation", other)
        assert refused(done, 1, "its label 'neutral' is none of blame, praise, report")
        assert not (tmp_path / "out").exists()

    def test_damaged_parquet(self, base_folder, tmp_path):
        whole = tmp_path / "whole.parquet"
        pq.write_table(pa.table({"text": ["good film"] * 50, "label": [0] * 50}), whole)
        damaged = tmp_path / "damaged.parquet"
        damaged.write_bytes(whole.read_bytes()[:-20])
        for source in (damaged, tmp_path / "absent.parquet"):
            done = train("--data", source, "--output", tmp_path / "out", *WORDS)
            assert refused(done, 1, str(source))
        assert not (tmp_path / "out").exists()

    def test_pairs_and_a_word_table(self, tmp_path):
        source = tmp_path / "pairs.csv"
        lines = [f"the film,{text},{label}" for text, label in made_up.texts(30, 0)]
        source.write_text("\n".join(["a,b,label", *lines]))
        given = ("--data", source, "--output", tmp_path / "out", "--pair-columns", "a,b")
        assert refused(train(*given, *WORDS), 1, "a word table reads single texts only")
        assert not (tmp_path / "out").exists()

    def test_a_folder_with_something_else(self, data, base_folder, tmp_path):
        taken = tmp_path / "taken"
        taken.mkdir()
        (taken / "thesis.txt").write_text("precious")
        for chosen in (("--base", base_folder, *ENCODER), WORDS):
            done = train("--data", data, "--output", taken, *chosen)
            assert refused(done, 1, "holds no training run: name another folder")
        assert [path.name for path in taken.iterdir()] == ["thesis.txt"]

    def test_the_folder_of_another_run(self, data, tmp_path):
        given = ("--data", data, "--output", tmp_path / "out", *WORDS)
        assert train(*given).exit_code == 0
        assert refused(train(*given), 1, "holds a finished training run")
        record = json.loads((tmp_path / "out" / "training.json").read_text())
        (tmp_path / "out" / "training.json").write_text(json.dumps(record | {"complete": False}))
        assert refused(train(*given, "--seed", 9), 1, "options.seed (0 there, 9 here)")

    def test_a_base_that_is_no_model(self, data, base_folder, tmp_path):
        """And a corrected command then uses the same folder."""
        damaged = tmp_path / "damaged"
        damaged.mkdir()
        (damaged / "config.json").write_text('{"model_type": "bert"}')
        given = ("--data", data, "--output", tmp_path / "out", *ENCODER)
        for base, message in (
            (data, f"the folder '{data}' holds no model: it has no config.json"),
            (tmp_path / "absent", f"there is no model folder '{tmp_path}/absent'"),
            ("./absent", "there is no model folder './absent'"),
            (damaged, f"cannot load the base encoder '{damaged}': "),
        ):
            assert refused(train(*given, "--base", base), 1, message)
            assert not (tmp_path / "out").exists()
        assert refused(train(*given, "--base", base_folder, "--layers", 7), 2, "has only 2")
        assert train(*given, "--base", base_folder).exit_code == 0


class TestMoreData:
    def test_columns_and_all_rows_of_another_file(self, tmp_path):
        for name, rows in (("one.csv", 60), ("two.csv", 10)):
            made_up.write_csv(tmp_path / name, rows, seed=len(name) + rows)
            text = (tmp_path / name).read_text().replace("text,label", "title,topic", 1)
            (tmp_path / name).write_text(text)
        done = train(
            *("--data", tmp_path / "one.csv", "--also", tmp_path / "two.csv", "--rows", 1000),
            *("--text-column", "title", "--label-column", "topic"),
            *("--output", tmp_path / "table", *WORDS),
        )
        assert done.exit_code == 0, done.stderr
        record = json.loads((tmp_path / "table" / "training.json").read_text())["run"]
        assert record["train"]["rows"] + record["validation"]["rows"] == 70

    def test_rows_that_leave_a_class_empty(self, data, tmp_path):
        done = train("--data", data, "--rows", 1, "--output", tmp_path / "table", *WORDS)
        assert refused(done, 1, "use more rows")
        assert not (tmp_path / "table").exists()

    def test_names_for_numbers(self, tmp_path):
        made_up.write_csv(tmp_path / "in.csv", 60)
        done = train(
            *("--data", tmp_path / "in.csv", "--labels", "only-one"),
            *("--output", tmp_path / "table", *WORDS),
        )
        assert done.exit_code != 0
        assert "error: " in done.stderr

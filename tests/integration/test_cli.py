"""The command as a user runs it: in a process of its own, on real files."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import types
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import run_cli
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines

FAKE = "ranmask.models.testing:keyword_classifier"
COMMAND = [sys.executable, "-m", "ranmask.cli"]


def ranmask(*arguments, cwd=None, **options):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, **options
    )


def certify(*arguments, **options):
    return ranmask("certify", "--model", FAKE, "--keep", 1, *arguments, **options)


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text(
        "text,label\ngood good good good,1\nbad bad film,0\n,1\ngood bad,0\ngood fine,spam\n"
    )
    return path


class TestTexts:
    def test_json_lines_when_piped(self):
        done = certify("good good bad", "bad bad bad bad bad")
        assert done.returncode == 0 and done.stderr == ""
        first, second = lines(done.stdout)
        assert (first["label_id"], first["radius"], first["row"]) == (1, 0, 1)
        assert (second["label_id"], second["radius"], second["guarantee"]) == (0, 2, True)

    def test_table_on_a_terminal_marks_critical_words(self):
        done = on_terminal("certify", "--model", FAKE, "--keep", "1", "good fine film best great")
        assert "radius" in done and "4/5" in done
        assert "\x1b[1;4mgood" in done and "\x1b[1;4mfilm" not in done
        assert "change that many words, any of them" in done

    def test_texts_give_a_terminal_no_orders(self):
        hostile = "good \x1b]0;title\x07 fine \x9b2K film \x1b[1A best"
        for how in ((), ("--copies", "9")):
            done = on_terminal("certify", "--model", FAKE, "--keep", "1", *how, hostile)
            assert "\ufffd]0;title\ufffd" in done and "\ufffd2K" in done
            assert not any(order in done for order in ("\x1b]0", "\x9b", "\x1b[1A best"))

    def test_paper_certificate_is_marked_on_a_terminal(self):
        done = on_terminal(
            "certify", "--model", FAKE, "--keep", "1", "--certificate", "paper", "good " * 9
        )
        assert "not a guarantee" in done

    def test_predict(self):
        done = ranmask("predict", "--model", FAKE, "--keep", 1, "good good bad")
        [line] = lines(done.stdout)
        assert line["label_id"] == 1 and "radius" not in line

    def test_predict_with_masks_drawn_for_each_text(self):
        fresh = ("predict", "--model", FAKE, "--keep", 2, "--sampling", "fresh")
        done = ranmask(*fresh, "good film best bad", "great film best worst")
        assert done.returncode == 0, done.stderr
        first, second = lines(done.stdout)
        assert (first["family"], first["masks"], sum(first["votes"])) == ("fresh", 100, 100)
        assert first["votes"] != second["votes"] and "guarantee" not in first
        [alone] = lines(ranmask(*fresh, "--masks", 100, "great film best worst").stdout)
        assert alone["votes"] == second["votes"]

    def test_a_text_without_words_is_reported_and_the_others_done(self):
        done = certify("", "good")
        bad, good = lines(done.stdout)
        assert done.returncode == 3
        assert "no words" in bad["error"] and good["label_id"] == 1

    def test_labels_and_options(self):
        done = certify(
            "--labels", "neg,pos", "--certificate", "ablation", "--alpha", 0.01, "good good good"
        )
        [line] = lines(done.stdout)
        assert (line["label"], line["alpha"], line["masks"]) == ("pos", 0.01, 5000)


FUNCTIONS = """
import itertools
import sys
from ranmask.models.testing import keyword_classifier

count = itertools.count()


def raising(texts):
    if any("boom" in text for text in texts):
        raise KeyError("boom")
    return keyword_classifier(texts)


def leaving(texts):
    if any("boom" in text for text in texts):
        sys.exit(0)
    return keyword_classifier(texts)


def small(texts):
    if len(texts) > 5:
        raise MemoryError("too many")
    return keyword_classifier(texts)


def alternating(texts):
    turned = next(count) % 2
    return [row[::-1] if turned else row for row in keyword_classifier(texts)]
"""


class TestFunctionsThatFail:
    @pytest.fixture
    def here(self, tmp_path):
        (tmp_path / "mine.py").write_text(FUNCTIONS)
        rows = ["good film,1"] * 6
        rows[3] = "good boom film,1"
        (tmp_path / "in.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        return tmp_path

    @pytest.mark.parametrize("model", ["raising", "leaving"])
    @pytest.mark.parametrize("command", ["certify", "predict"])
    @pytest.mark.parametrize("shards", [(), ("--shard-rows", 4)])
    def test_the_row_is_named_and_the_rest_goes_on(self, here, model, command, shards):
        done = ranmask(
            *(command, "--model", f"mine:{model}", "--keep", 1, "--label-column", "label"),
            *("--input", "in.csv", "--output", "out" if shards else "rows.jsonl", *shards),
            cwd=here,
        )
        assert done.returncode == 3, done.stderr
        assert "6 rows, 1 with errors, 5 with labels" in done.stderr
        if shards:
            ranmask("runs", "merge", "out", "rows.jsonl", cwd=here)
        found = list(stored_lines(here / "rows.jsonl"))
        assert [line["row"] for line in found if "error" in line] == [4]
        assert "the base classifier raised" in found[3]["error"]
        assert "for the copy '[MASK] boom [MASK]'" in found[3]["error"]

    @pytest.mark.parametrize("more", [("--keep", 1), ("--plain",)])
    def test_under_attack(self, here, more):
        done = ranmask(
            *("attack", "--recipe", "deepwordbug", "--model", "mine:leaving", *more),
            *("--stop-words", "textfooler"),
            *("--input", "in.csv", "--label-column", "label"),
            cwd=here,
        )
        assert done.returncode == 3, done.stderr
        assert "1 with errors" in done.stderr
        assert [line["row"] for line in lines(done.stdout) if line["error"]] == [4]

    @pytest.mark.parametrize("shards", [(), ("--shard-rows", 6)])
    def test_what_fails_only_together_is_told(self, here, shards):
        done = ranmask(
            *("certify", "--model", "mine:small", "--keep", 1, "--input", "in.csv"),
            *("--output", "out" if shards else "out.jsonl", *shards),
            cwd=here,
        )
        assert done.returncode == 0, done.stderr
        assert "were classified one by one, because together they failed" in done.stderr
        assert "MemoryError: too many" in done.stderr

    def test_a_function_that_contradicts_itself(self, here):
        given = ("certify", "--model", "mine:alternating", "--keep", 1, "good good film")
        done = ranmask(*given, cwd=here)
        [line] = lines(done.stdout)
        assert done.returncode == 3 and "asked again in another batch" in line["error"]
        done = ranmask(*given, "--recheck", 0, cwd=here)
        [line] = lines(done.stdout)
        assert done.returncode == 0 and any("(not checked)" in one for one in line["assumes"])
        assert ranmask(*given, "--recheck", -1, cwd=here).returncode == 2


class TestFiles:
    def test_summary_and_exit_code(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        done = certify("--input", reviews, "--output", out, "--label-column", "label")
        assert done.returncode == 3
        assert "5 rows, 2 with errors, 3 with labels" in done.stderr
        assert "accuracy 1.000" in done.stderr and "MCB 1  MCR 25.0%" in done.stderr
        rows = list(stored_lines(out))
        assert [row["row"] for row in rows] == [1, 2, 3, 4, 5]
        assert "no words" in rows[2]["error"]
        assert "unknown label 'spam'" in rows[4]["error"] and rows[4]["label_id"] == 1
        record = read_header(tmp_path / "out.jsonl")
        assert record["finished"]["labelled"] == 3

    def test_a_run_without_labels_points_at_a_column_that_looks_like_them(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        told = certify("--input", reviews, "--output", out).stderr
        assert told.splitlines()[-1] == (
            "the column 'label' was not read: if it holds true labels, give --label-column label "
            "and another --output to have results compared with them"
        )
        for command, *more in (("certify",), ("predict",), ("detect", "--model", "spam")):
            model = more or ["--model", FAKE, "--keep", 1]
            told = run_cli(command, *model, "--input", reviews).stderr
            assert "give --label-column label to have results compared" in told
            labels = ("--label-column", "label")
            assert "not read" not in run_cli(command, *model, "--input", reviews, *labels).stderr
        flags = ("--model", "spam", "--input", reviews, "--output", tmp_path / "flags.jsonl")
        assert "give --label-column label and another --output" in run_cli("detect", *flags).stderr

    def test_the_same_command_again_changes_nothing(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        arguments = ("--input", reviews, "--output", out)
        certify(*arguments)
        before = out.read_bytes()
        done = certify(*arguments)
        assert "resuming" in done.stderr and out.read_bytes() == before

    def test_a_resumed_run_sums_up_all_of_its_rows(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        arguments = ("--input", reviews, "--output", out, "--label-column", "label")
        certify(*arguments)
        before, finished = out.read_bytes(), read_header(out)["finished"]
        for complete in (1, 3):
            out.write_bytes(b"".join(before.splitlines(keepends=True)[:complete]) + b'{"row": ')
            done = certify(*arguments)
            assert done.returncode == 3 and out.read_bytes() == before
            assert read_header(out)["finished"] == finished

    def test_other_options_are_refused(self, reviews, tmp_path):
        out = tmp_path / "out.jsonl"
        certify("--input", reviews, "--output", out)
        for other in (
            *(["--seed", "5"], ["--label-column", "label"], ["--mask-token", "<m>"]),
            *(["--tolerance", "0.1"], ["--labels", "no,yes"], ["--masks", "7"]),
        ):
            done = certify("--input", reviews, "--output", out, *other)
            assert done.returncode == 1 and "belongs to another run" in done.stderr
        reviews.write_text("text\nother\n")
        done = certify("--input", reviews, "--output", out)
        assert done.returncode == 1 and "(different: input)" in done.stderr

    def test_formats_agree(self, tmp_path):
        texts = ["good good", "bad", "fine film"]
        (tmp_path / "a.txt").write_text("\n".join(texts) + "\n")
        (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
        (tmp_path / "a.tsv").write_text("text\n" + "\n".join(texts) + "\n")
        pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
        outputs = {certify("--input", path).stdout for path in sorted(tmp_path.glob("a.*"))}
        assert len(outputs) == 1 and len(lines(outputs.pop())) == 3

    def test_pairs(self, tmp_path):
        path = tmp_path / "pairs.jsonl"
        path.write_text('{"p": "good", "h": "bad bad"}\n')
        (tmp_path / "mine.py").write_text(
            "from ranmask.models.testing import keyword_classifier\n"
            "def judge(pairs):\n    return keyword_classifier([h for _, h in pairs])\n"
        )
        done = ranmask(
            *("certify", "--model", "mine:judge", "--keep", 1, "--input", path),
            *("--pair-columns", "p,h"),
            cwd=tmp_path,
        )
        [line] = lines(done.stdout)
        assert (line["premise"], line["hypothesis"], line["label_id"]) == ("good", "bad bad", 0)

    def test_killed_runs_lose_and_double_nothing(self, tmp_path):
        """SIGKILL soon after each new line; the finished file equals that of a quiet run."""
        source = tmp_path / "in.txt"
        source.write_text("".join(f"good film {i} bad best\n" for i in range(400)))
        (tmp_path / "slow.py").write_text(
            "import time\nfrom ranmask.models.testing import keyword_classifier\n"
            "def judge(texts):\n    time.sleep(0.002 * len(texts))\n"
            "    return keyword_classifier(texts)\n"
        )
        out = tmp_path / "out.jsonl"
        command = [*COMMAND, "certify", "--model", "slow:judge", "--keep", "1"]
        command += ["--input", str(source), "--output", str(out)]
        kills = 0
        for _ in range(4):
            before = out.stat().st_size if out.exists() else 0
            process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
            while process.poll() is None and (not out.exists() or out.stat().st_size <= before):
                time.sleep(0.01)
            process.kill()
            kills += process.wait() == -signal.SIGKILL
        assert kills == 4
        finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        assert [row["row"] for row in list(stored_lines(out))] == list(range(1, 401))
        quiet = certify("--input", source)
        assert list(stored_lines(out)) == lines(quiet.stdout)

    def test_interrupt_stops_cleanly(self, tmp_path):
        source = tmp_path / "in.txt"
        source.write_text("good film\n" * 2000)
        (tmp_path / "slow.py").write_text(
            "import time\n"
            "def judge(texts):\n    time.sleep(0.05)\n    return [[1, 0]] * len(texts)\n"
        )
        out = tmp_path / "out.jsonl"
        process = subprocess.Popen(
            [
                *(*COMMAND, "certify", "--model", "slow:judge", "--keep", "1"),
                *("--input", str(source), "--output", str(out)),
            ],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not out.exists() or not out.stat().st_size:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "the same command resumes" in errors and "Traceback" not in errors
        assert all(row["row"] for row in list(stored_lines(out)))

    def test_full_disk_stops_cleanly_and_resumes(self, tmp_path):
        source = tmp_path / "in.txt"
        source.write_text("good film with a few more words in it\n" * 200)
        out = tmp_path / "out.jsonl"

        def small_disk():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        done = certify("--input", source, "--output", out, preexec_fn=small_disk)
        assert done.returncode == 1
        assert "cannot write" in done.stderr and "File too large" in done.stderr
        assert "Traceback" not in done.stderr
        again = certify("--input", source, "--output", out)
        assert again.returncode == 0
        assert [row["row"] for row in list(stored_lines(out))] == list(range(1, 201))

    def test_a_failing_classifier_is_reported(self, tmp_path):
        source = tmp_path / "in.txt"
        source.write_text("good\n" * 10 + "poison\n" + "good\n" * 10)
        (tmp_path / "flaky.py").write_text(
            "def judge(texts):\n"
            "    if any('poison' in t for t in texts):\n        raise RuntimeError('choked')\n"
            "    return [[0, 1]] * len(texts)\n"
        )
        done = ranmask(
            *("certify", "--model", "flaky:judge", "--keep", 1, "--input", source), cwd=tmp_path
        )
        rows = lines(done.stdout)
        assert done.returncode == 3 and len(rows) == 21
        assert "RuntimeError: choked" in rows[10]["error"] and "Traceback" not in done.stderr


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["certify"], 2, "give texts, or a file"),
            (["certify", "--keep", "1.5", "a"], 2, "--keep: '1.5' is not a whole number"),
            (["train", "--epochs", "2.0", "--data", "x", "--output", "o"], 2, "--epochs: '2.0'"),
            (["certify", "-m", FAKE, "--input", "-absent.txt"], 1, "-absent.txt"),
            (["certify", "-m", FAKE, "--keep", "1", "--threat", "edits", "a"], 2, "--threat edits"),
            (["certify", "--split", "test", "a"], 2, "goes with --data"),
            (["certify", "--data", "nothing/here", "a"], 2, "one of them"),
            (["blend", "news-words", "./absent", "--output", "o"], 1, "no model folder"),
            (["certify", "-m", FAKE, "--sampling", "fresh", "a"], 2, "Unknown option"),
            (["predict", "--sampling", "lm", "a"], 2, "name its folder with --lm"),
            (["predict", "--lm", "./x", "a"], 2, "--lm ./x goes with --sampling lm"),
            (["predict", "--lm", "./x", "--sampling", "fresh", "a"], 2, "goes with --sampling lm"),
            (["predict", "--sampling", "luck", "a"], 2, "one of fixed, fresh, lm; not 'luck'"),
            (["predict", "--sampling", "fresh", "--family", "all", "a"], 2, "--family all means"),
            (["certify", "-m", FAKE, "a"], 2, "exactly one of --keep and --mask-rate"),
            (["certify", "-m", FAKE, "--keep", "0", "a"], 2, "at least 1, not 0"),
            (["certify", "-m", FAKE, "--keep", "x", "a"], 2, "'x' is not a whole number"),
            (["certify", "-m", FAKE, "--keep", "1", "--family", "some", "a"], 2, "'some'"),
            (["certify", "-m", FAKE, "--keep", "1", "--alpha", ".1", "a"], 2, "means nothing"),
            (["certify", "-m", FAKE, "--keep", "1", "--output", "o", "a"], 2, "--output goes with"),
            (["certify", "-m", FAKE, "--keep", "1", "--device", "cpu", "a"], 2, "Python function"),
            (["certify", "-m", "no.module:f", "--keep", "1", "a"], 1, "cannot import 'no.module'"),
            (["certify", "-m", "json:nothing", "--keep", "1", "a"], 1, "has no 'nothing'"),
            (["certify", "-m", "./absent", "--keep", "1", "a"], 1, "no model folder"),
            (["certify", "-m", FAKE, "--keep", "1", "--input", "absent.txt"], 1, "No such file"),
            (["certify", "--wrong"], 2, "Unknown option"),
        ],
    )
    def test_messages_and_exit_codes(self, arguments, code, message, tmp_path):
        done = ranmask(*arguments, cwd=tmp_path)
        assert done.returncode == code
        assert message in done.stderr
        assert "Traceback" not in done.stderr and done.stdout == ""

    def test_output_not_writable(self, reviews):
        done = certify("--input", reviews, "--output", "/proc/nowhere/out.jsonl")
        assert done.returncode == 1 and "cannot write" in done.stderr

    def test_a_reader_that_goes_away(self, tmp_path):
        source = tmp_path / "in.txt"
        source.write_text("good film\n" * 3000)
        done = subprocess.run(
            f"{' '.join(COMMAND)} certify -m {FAKE} --keep 1 --input {source} | head -1",
            shell=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.count("\n") == 1 and done.stderr == ""

    def test_help_and_version(self):
        assert "certify" in ranmask("--help").stdout
        assert ranmask("--version").stdout.startswith("ranmask ")

    def test_help_imports_nothing_heavy(self):
        code = (
            "import sys\n"
            "from ranmask.cli.main import run_command\n"
            "assert run_command(['--help']) == 0\n"
            "heavy = {'torch', 'transformers', 'scipy', 'numpy', 'pyarrow'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


class TestLanguageModel:
    """--lm with a stand-in for the real thing, which tests of its own load from a folder."""

    @pytest.fixture
    def stand_in(self, monkeypatch):
        loaded = []

        class MaskedLM:
            @classmethod
            def from_pretrained(cls, folder, device=None, dtype=None):
                assert dtype == "float32"  # on a GPU, too: masks follow from its losses
                loaded.append((folder, device))
                return cls()

            def word_losses(self, documents):
                return [[float(word == "strange") for word in one.words] for one in documents]

            def description(self):
                return {"kind": "stand-in"}

        module = types.ModuleType("ranmask.attacks.resources.masked_lm")
        module.MaskedLM = MaskedLM
        monkeypatch.setitem(sys.modules, "ranmask.attacks.resources.masked_lm", module)
        with mock.patch.dict(os.environ):  # the command sets variables for its libraries
            yield loaded

    def predict(self, *arguments):
        given = ["predict", "--sampling", "lm", "--lm", "some/folder", *map(str, arguments)]
        return run_cli(*given)

    def test_hides_what_the_model_did_not_expect(self, stand_in, tmp_path, monkeypatch):
        (tmp_path / "sees_strange.py").write_text(
            "def judge(texts):\n    return [['strange' in t, 'strange' not in t] for t in texts]\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        text = "one strange word here"
        done = self.predict("--model", "sees_strange:judge", "--keep", 3, text)
        [line] = lines(done.stdout)
        assert (line["votes"], line["family"]) == ([0, 100], "lm")
        assert stand_in == [("some/folder", None)]

    def test_device_and_record(self, stand_in, tmp_path):
        """The model is a word table, which takes no device: that is told after both were loaded."""
        done = self.predict("--model", "news-words", "--device", "cuda", "a b c")
        assert done.exit_code == 2 and "--device cuda means nothing" in done.stderr
        assert stand_in == [("some/folder", "cuda")]
        (tmp_path / "in.txt").write_text("oil prices soared\n")
        out = tmp_path / "out.jsonl"
        done = self.predict(
            *("--model", "news-words", "--input", tmp_path / "in.txt", "--output", out)
        )
        assert done.exit_code == 0, done.output
        record = read_header(tmp_path / "out.jsonl")
        assert '"language_model": {"kind": "stand-in"}' in json.dumps(record)
        assert '"sampling": "lm"' in json.dumps(record)


def on_terminal(*arguments):
    """Run under a pseudo-terminal and return what it shows."""
    import pty

    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            block = os.read(leader, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
    process.wait()
    os.close(leader)
    return shown.decode()


def test_another_corpus_than_the_model_knows_is_told_before_the_first_row(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("train", "test"):
        rows = [f"text {i},{('x', 'y')[i % 2]}" for i in range(40)]
        (tmp_path / "data" / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    done = ranmask("certify", "--data", "./data", "-m", "news-words", cwd=tmp_path)
    assert done.returncode == 2
    assert "the data have the class 'x', the model has World" in done.stderr
    assert done.stdout == ""


def test_models_by_name_are_what_people_have(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from sklearn.feature_extraction.text import CountVectorizer\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.svm import LinearSVC\n"
        "texts, labels = ['free cash', 'see you', 'a prize', 'my way'], ['spam', 'ham'] * 2\n"
        "pipeline = make_pipeline(CountVectorizer(), LinearSVC(C=9)).fit(texts, labels)\n"
        "async def named(texts):\n"
        "    return ['spam' if 'cash' in text else 'ham' for text in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    for name, *labels in (("pipeline",), ("named", "--labels", "ham,spam")):
        done = run_cli("certify", "-m", f"mine:{name}", "--keep", 1, *labels, "cash cash cash cash")
        assert done.exit_code == 0, done.stderr
        [line] = lines(done.stdout)
        assert (line["label"], line["radius"], line["guarantee"]) == ("spam", 1, True)
    refused = run_cli("certify", "-m", "mine:named", "--keep", 1, "cash")
    [line] = lines(refused.stdout)
    assert refused.exit_code == 3 and "with labels=[...]" in line["error"]

